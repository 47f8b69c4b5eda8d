"""Cameras see the fingers of a gripper as far open as they are."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.jobs.pick_place.cell_bench import CellBench, box, cube

from understudy.devices.camera.camera import VisibleCell, visible_cell
from understudy.simulation.environment import CellEnvironment
from understudy.space.transform import Array
from understudy.units import MM

TOOL = {
    "name": "gripper",
    "tcp_mm_deg": [0, 0, 80, 0, 0, 30],
    "shapes": [
        box("palm", [0, 0, 20], [60, 90, 40]),
        box("finger_1", [-22.5, 38.971, 60], [20, 10, 40]),
        box("finger_2", [22.5, -38.971, 60], [20, 10, 40]),
    ],
}
"""Turned by 30° about its axis."""
Y = np.array([-0.5, 0.8660254, 0.0])
"""The axis of the fingers, seen from the flange."""


class Eye:
    """A `SeesCell` that looks for the two fingers."""

    starting = False

    def __init__(self, bench: CellBench) -> None:
        parts: Any = bench.cell.components
        assert isinstance(parts["environment"], CellEnvironment)
        self.see(visible_cell(parts["environment"], parts["parts"], {"g60": parts["g60"]}, parts))

    def see(self, cell: Any) -> None:
        self._cell: VisibleCell = cell

    def prepare(self) -> Iterator[None]:
        yield

    def axis(self, now: int) -> Array:
        flange = self._cell.flange("g60", now)
        assert flange is not None
        return np.asarray(flange[:3, :3] @ Y)

    def fingers(self, now: int) -> list[Array]:
        robot = [body for body in self._cell.bodies(now) if body.robot]
        return [body.place[:3, 3] for body in robot[-2:]]


def test_fingers_move_along_the_axis_of_the_tool() -> None:
    bench = CellBench(cube("cube", 450.0, 0.0), robot={"tools": {2: TOOL}})
    eye, widest = Eye(bench), bench.gripper.opening(0)
    first, second = eye.fingers(0)
    assert first - second == pytest.approx(eye.axis(0) * 90 * MM, abs=1e-6)
    bench.gripper.start_grip(0)
    openings = []
    for _ in range(3):
        bench.run(0.05)
        openings.append(bench.gripper.opening(bench.now))
        left, right = eye.fingers(bench.now)
        gap = 90 * MM - (widest - openings[-1])
        assert left - right == pytest.approx(eye.axis(bench.now) * gap, abs=1e-6)
        assert left + right == pytest.approx(first + second, abs=1e-6)
    assert openings[-1] < openings[0] < widest
