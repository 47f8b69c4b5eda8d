"""Cell files and the files they include, read into frozen Config classes."""

from understudy.config.cell import (
    CellConfig,
    FaceConfig,
    Hmi,
    RobotConfig,
    endpoint_name,
    load_config,
    read_config,
)
from understudy.config.files import shipped_cells
from understudy.config.wires import read_wire
from understudy.wire.interface import Wire

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
