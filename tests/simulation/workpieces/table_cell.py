"""A cell with an arm, a table and parts, on virtual time."""

from typing import Any

import msgspec

from understudy.app.build import build_cell
from understudy.config import read_config
from understudy.robots.arm.controller import ArmController
from understudy.simulation.cell import Cell
from understudy.simulation.workpieces.workpieces import Workpieces

TABLE = {
    "name": "table", "type": "box", "position_mm": [600.0, 0.0, 25.0],
    "dimensions_mm": [600.0, 900.0, 50.0],
}  # fmt: skip
TOP = 0.050
"""Height of the table in metres."""
CUBE = {"name": "cube", "dimensions_mm": [40.0, 40.0, 40.0], "position_mm": [500.0, 0.0, 70.0]}


def at(part: dict[str, Any], name: str, x: float, y: float, z: float) -> dict[str, Any]:
    """The same part with another name and place, in mm."""
    return {**part, "name": name, "position_mm": [x, y, z]}


def table_cell(
    *parts: dict[str, Any], objects: tuple[dict[str, Any], ...] = (), **keys: Any
) -> Cell:
    """A G60 beside a table with these parts."""
    robot = {
        "kind": "arm", "model": "g60",
        "simulation": {"enable_dynamics": True, "command_delay_ms": 0, "feedback_delay_ms": 0},
    }  # fmt: skip
    content = {
        "robots": {"g60": robot},
        "environment": {"objects": [TABLE, *objects]},
        "parts": list(parts),
        **keys,
    }
    cell = build_cell(read_config(msgspec.json.encode(content).decode(), "table.yaml"))
    arm_of(cell).connect(0)
    arm_of(cell).enable(0)
    return cell


def components_of(cell: Cell) -> Workpieces:
    found = cell.components["parts"]
    assert isinstance(found, Workpieces)
    return found


def arm_of(cell: Cell) -> ArmController:
    found = cell.components["g60"]
    assert isinstance(found, ArmController)
    return found


def send(cell: Cell, line: str, *, until_idle: bool = True) -> None:
    """One line of G-code; the cell runs until the arm rests."""
    arm = arm_of(cell)
    assert arm.send_gcode(line, cell.now) is None, line
    while until_idle and arm.busy() and (due := cell.next_wake()) is not None:
        cell.advance(due)
