"""A G60 with a gripper beside a table with a cube, on virtual time."""

from typing import Any

import msgspec
from tests.simulation.workpieces.table_cell import CUBE, TABLE, send

from understudy.app.build import build_cell
from understudy.config import read_config
from understudy.devices.gripper.controller import GripperController
from understudy.errors import Refused
from understudy.robots.arm.controller import ArmController
from understudy.simulation.cell import Cell, read_snapshot, write_snapshot
from understudy.simulation.workpieces.workpieces import Workpieces
from understudy.units import NS_PER_MS


def cell_text(
    gripper: dict[str, Any] | None = None, robot: dict[str, Any] | None = None, **keys: Any
) -> str:
    """A cell file with one arm, its gripper and a cube of 0.3 kg at x = 500, y = 0 mm."""
    arm = {
        "kind": "arm",
        "model": "g60",
        "tool": 1,
        "tools": {1: {"tcp_mm_deg": [0, 0, 80, 0, 0, 0]}},
        "simulation": {"command_delay_ms": 0, "feedback_delay_ms": 0},
        "gripper": gripper or {},
        **(robot or {}),
    }
    content = {
        "robots": {"g60": arm},
        "environment": {"objects": [TABLE]},
        "parts": [{**CUBE, "mass_kg": 0.3}],
        **keys,
    }
    return msgspec.json.encode(content).decode().replace('"1":', "1:")


class GripperCell:
    """The cell of `cell_text` on virtual time, with enabled drives."""

    def __init__(self, gripper: dict[str, Any] | None = None, **keys: Any) -> None:
        self.cell: Cell = build_cell(read_config(cell_text(gripper, **keys), "gripper.yaml"))
        arm, found, parts = (self.cell.components[name] for name in ("g60", "g60.gripper", "parts"))
        assert isinstance(arm, ArmController)
        assert isinstance(found, GripperController)
        assert isinstance(parts, Workpieces)
        self.arm, self.gripper, self.parts = arm, found, parts
        arm.connect(0)
        arm.enable(0)

    @property
    def now(self) -> int:
        return self.cell.now

    def send(self, *lines: str) -> None:
        for line in lines:
            send(self.cell, line)

    def run_for(self, ms: float) -> None:
        self.cell.advance(self.now + round(ms * NS_PER_MS))

    def grip(self) -> None:
        assert not isinstance(self.gripper.start_grip(self.now), Refused)
        self.run_for(600)

    def release(self) -> None:
        assert not isinstance(self.gripper.start_release(self.now), Refused)
        self.run_for(600)

    def written(self) -> bytes:
        return write_snapshot(self.cell.snapshot())

    def restore(self, written: bytes) -> None:
        self.cell.restore(read_snapshot(written))

    def state(self) -> str:
        return self.gripper.status(self.now).state

    def cube(self) -> tuple[float, ...]:
        """The centre of the cube in mm."""
        place = self.parts.reading("cube", self.now).pose
        return tuple(round(value * 1e3, 3) for value in place[:3])
