"""A cell with a G60, a two-finger gripper, a table and cubes, on virtual time."""

from typing import Any

import yaml

from understudy.app.build import build_cell
from understudy.config import read_config
from understudy.jobs.pick_place.manager import PickPlaceManager
from understudy.ports.workpieces import WorkpieceReading
from understudy.simulation.cell import Cell
from understudy.units import NS_PER_MS, nanoseconds


def box(name: str, at: list[float], size: list[float]) -> dict[str, Any]:
    return {"name": name, "type": "box", "position_mm": at, "dimensions_mm": size}


GRIPPER = {
    "name": "gripper",
    "tcp_mm_deg": [0, 0, 80, 0, 0, 0],
    "mass_kg": 1.0,
    "com_mm": [0, 0, 40],
    "shapes": [
        box("palm", [0, 0, 20], [60, 90, 40]),
        box("left", [0, 45, 60], [20, 10, 40]),
        box("right", [0, -45, 60], [20, 10, 40]),
    ],
}
TABLE = [box("floor", [0, 0, -50], [4000, 4000, 100]), box("table", [600, 0, 25], [700, 900, 50])]
PLACE = {"x": 600.0, "y": -200.0, "z": 70.0}


def cube(name: str, x: float, y: float, yaw: float = 0.0, kind: str = "cube") -> dict[str, Any]:
    """A cube of 40 mm on the table."""
    return {
        "name": name, "class": kind, "dimensions_mm": [40, 40, 40], "mass_kg": 0.2,
        "position_mm": [x, y, 70], "rotation_deg": [0, 0, yaw],
    }  # fmt: skip


CUBES = (cube("a", 400.0, 0.0), cube("b", 450.0, 120.0, 30.0), cube("c", 380.0, -110.0, -20.0))


class CellBench:
    """``pickplace``: keys over those of the bench; ``robot``: further keys of the robot."""

    def __init__(
        self,
        *parts: dict[str, Any],
        pickplace: dict[str, Any] | None = None,
        robot: dict[str, Any] | None = None,
        objects: tuple[dict[str, Any], ...] = (),
        rules: dict[str, Any] | None = None,
    ) -> None:
        cycle = {"place_position": PLACE, "grasps": {"*": {"symmetry_deg": 90}}}
        content = {
            "robots": {
                "g60": {
                    "kind": "arm", "tool": 2, "tools": {2: GRIPPER},
                    "gripper": {}, "pickplace": cycle | (pickplace or {}), **(robot or {}),
                },
            },
            "parts": list(parts or CUBES),
            "environment": {"objects": [*TABLE, *objects]},
            "scenario": {"rules": rules or {}},
        }  # fmt: skip
        text = yaml.safe_dump(content)
        self.config = read_config(text, "pick.yaml")
        self.cell: Cell = build_cell(self.config)
        self.now = 0
        robot_part: Any = self.cell.components["g60"]
        self.robot = robot_part
        self.gripper: Any = self.cell.components["g60.gripper"]
        job = self.cell.components["g60.pick_place"]
        assert isinstance(job, PickPlaceManager)
        self.job = job
        self.states: list[tuple[str, int]] = []
        self.cycles: list[tuple[int, bool]] = []
        job.on_state(lambda old, new, now: self.states.append((new, now)))
        job.on_cycle(lambda number, success, now: self.cycles.append((number, success)))
        robot_part.connect(0)
        robot_part.enable(0)

    @property
    def status(self) -> Any:
        return self.job.status(self.now)

    @property
    def state(self) -> str:
        return str(self.status.state)

    def run(self, seconds: float) -> None:
        self.now += nanoseconds(seconds)
        self.cell.advance(self.now)

    def run_to(self, *states: str, most: float = 120.0) -> None:
        """In steps of 2 ms until the job is in one of these states."""
        end = self.now + nanoseconds(most)
        while self.state not in states:
            assert self.now < end, f"{self.state} after {most} s: {self.status.last_error}"
            self.now = max(self.now + 2 * NS_PER_MS, 0)
            self.cell.advance(self.now)

    def finish(self, most: float = 300.0) -> None:
        """Until the run has ended and the arm rests."""
        end = self.now + nanoseconds(most)
        while self.job.busy() or not self.at_rest():
            assert self.now < end, f"{self.state} after {most} s: {self.status.last_error}"
            self.now += 50 * NS_PER_MS
            self.cell.advance(self.now)

    def at_rest(self) -> bool:
        return not self.robot.status(self.now).moving

    def part(self, name: str) -> WorkpieceReading:
        parts: Any = self.cell.components["parts"]
        found: WorkpieceReading = parts.reading(name, self.now)
        return found

    def place_of(self, name: str) -> list[float]:
        """The position of a part in mm."""
        return [round(value * 1000, 3) for value in self.part(name).pose[:3]]

    def contacts(self) -> int:
        return int(self.robot.tally(self.now).collisions_detected)
