"""Cell files and the files they include, read into frozen Config classes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from understudy.config.cell import (
        CellConfig,
        FaceConfig,
        Hmi,
        RobotConfig,
        endpoint_name,
        load_config,
        read_config,
        read_wire,
    )
    from understudy.config.files import shipped_cells
    from understudy.wire.interface import Wire

# name → module; imported when asked for, so that the process that reads a xacro file starts fast.
_OFFERED = {
    "CellConfig": "understudy.config.cell",
    "FaceConfig": "understudy.config.cell",
    "Hmi": "understudy.config.cell",
    "RobotConfig": "understudy.config.cell",
    "Wire": "understudy.wire.interface",
    "endpoint_name": "understudy.config.cell",
    "load_config": "understudy.config.cell",
    "read_config": "understudy.config.cell",
    "read_wire": "understudy.config.cell",
    "shipped_cells": "understudy.config.files",
}
__all__ = [
    "CellConfig",
    "FaceConfig",
    "Hmi",
    "RobotConfig",
    "Wire",
    "endpoint_name",
    "load_config",
    "read_config",
    "read_wire",
    "shipped_cells",
]


def __getattr__(name: str) -> Any:
    if name not in _OFFERED:
        raise AttributeError(f"module 'understudy.config' has no attribute {name!r}")
    return getattr(import_module(_OFFERED[name]), name)
