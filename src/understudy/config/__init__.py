"""Files become the rooms' own frozen Config classes, checked at the door."""

from understudy.config.cell import (
    CellConfig,
    FaceConfig,
    Hmi,
    RobotConfig,
    Wire,
    endpoint_name,
    load_config,
    read_config,
)
from understudy.config.files import shipped_cells

__all__ = [
    "CellConfig",
    "FaceConfig",
    "Hmi",
    "RobotConfig",
    "Wire",
    "endpoint_name",
    "load_config",
    "read_config",
    "shipped_cells",
]
