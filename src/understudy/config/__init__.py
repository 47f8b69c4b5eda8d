"""Files become the rooms' own frozen Config classes, checked at the door."""

from understudy.config.cell import (
    CellConfig,
    FaceConfig,
    Hmi,
    RobotConfig,
    Wire,
    endpoint_name,
    read_cell,
)
from understudy.config.files import find_cell, shipped_cells

__all__ = [
    "CellConfig",
    "FaceConfig",
    "Hmi",
    "RobotConfig",
    "Wire",
    "endpoint_name",
    "find_cell",
    "read_cell",
    "shipped_cells",
]
