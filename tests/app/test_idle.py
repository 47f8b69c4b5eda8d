"""A cell that has idled for a month moves at once: the same motion, with the same work.

The work is the number of python calls and the number of wakes of each part, never wall time.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pytest
from tests.robots.kuka.kuka_wire import command

from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.config.files import shipped_cells
from understudy.operator.robots import Robot, Robots
from understudy.ports.operation import Jog
from understudy.robots.mobile.group import SimulatedHardware
from understudy.simulation.cell import Cell
from understudy.space.pose import pose_mm_deg
from understudy.units import DEG, MM, NS_PER_SECOND
from understudy.wire.exchange import Client, InProcessCell

Outcome = TypeVar("Outcome")
Act = Callable[[Robot], None]

MONTH = 30 * 86_400 * NS_PER_SECOND
MINUTE = 60 * NS_PER_SECOND
STEP = NS_PER_SECOND // 5
MOST_CALLS = 5_000_000
"""Calls of the dearest motion, and far fewer than walking through a month takes."""
LONGEST = 200
"""Steps of the longest motion."""
ROUNDING = 1.05
"""Searches in a plan take a few calls more or less where times are rounded differently."""

POINT_RULE = """
description: a fault at a point of the path, in a cell that idles
robots:
  g60: {kind: arm, model: g60, faces: {grblhal: {port: 0}}}
  other: {kind: arm, model: g60, base_mm_deg: [2500, 0, 0, 0, 0, 0]}
scenario:
  rules:
    at_point:
      fault: emergency_stop
      on: other
      when: {of: g60, near_mm: [0, 0, 9000], within_mm: 1}
"""


SAID = {
    "g60.grblhal": b"G91 G1 A5 F300\n",
    "machine.grblhal": b"G91 G1 X5 F300\n",
    "bench.text_tcp": b"MOVE_REL 10,0,0\n",
    "kuka.kuka_eki.command": command(1, X=5.0, F=100.0) + command(2, X=10.0, F=100.0),
}
"""A motion in the language of each face."""


class Motion(NamedTuple):
    """What a motion did, and what it cost."""

    positions: list[list[float]]
    wakes: Counter[str]
    calls: int


class Bench:
    """A cell in this process whose robots are operated."""

    def __init__(self, name: str) -> None:
        config = load_config(name).without_rules() if name in shipped_cells() else load_config(name)
        self.cell = build_cell(config)
        self.wires = InProcessCell(self.cell)
        self._clients: list[Client] = []
        _give_large_batteries(self.cell)
        self.robots = Robots(config, self.cell.components, self)
        for robot in self.robots:
            if "drives" in robot.skills():
                assert robot.do("enable") is None

    def now(self) -> int:
        return self.cell.now

    def act(self, action: Callable[[int], Outcome]) -> Outcome:
        outcome = action(self.cell.now)
        self.wires.exchange.deliver()
        return outcome

    def say(self, endpoint: str) -> None:
        """A new client asks for a motion."""
        self._clients.append(self.wires.connect(endpoint))
        self._clients[-1].say(SAID[endpoint])

    def hang_up(self) -> None:
        """The clients leave: a KUKA sends to its clients for as long as they are there."""
        for client in self._clients:
            client.leave()
        self._clients.clear()

    def motion(self, robot: Robot, act: Act) -> Motion:
        """Acts on the robot and follows its motion in steps."""
        positions = list[list[float]]()
        with counted(self.cell) as calls:
            act(robot)
            while not positions or robot.under_way():
                self.wires.advance_to(self.cell.now + STEP)
                reading = robot.axis_reading()
                positions.append([*reading.joints, *pose_mm_deg(reading.pose)])
                assert len(positions) < LONGEST
            self.hang_up()
        return Motion(positions, calls, calls.pop("python calls"))

    def idle(self, duration: int) -> int:
        """Idles, and returns the number of calls that it took."""
        with counted(self.cell) as calls:
            self.wires.advance_to(self.cell.now + duration)
        return calls["python calls"]


def _give_large_batteries(cell: Cell) -> None:
    """An empty battery of a mobile robot is an event that a month has and a minute has not."""
    for part in cell.components.values():
        if isinstance(part, SimulatedHardware) and part.graph.mock is not None:
            for row in range(len(part.heights)):
                part.graph.mock.set_battery(row, 1e9)


@contextmanager
def counted(cell: Cell) -> Iterator[Counter[str]]:
    """Counts the calls of python functions, and the wakes of each part."""
    calls: Counter[str] = Counter()
    names = {id(part): name for name, part in cell.components.items()}

    def count(frame: Any, event: str, _: object) -> None:
        if event == "call":
            calls["python calls"] += 1
            assert calls["python calls"] < MOST_CALLS, calls
            if frame.f_code.co_name == "wake" and id(frame.f_locals.get("self")) in names:
                calls[names[id(frame.f_locals["self"])]] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(before)


# ── motions ─────────────────────────────────────────────────────────────────────────────────────


def done(robot: Robot, action: str, *arguments: Any) -> None:
    assert robot.do(action, *arguments) is None


def jog(step: float) -> Act:
    def act(robot: Robot) -> None:
        frame = robot.side.actions.frames[0]
        size = 5.0 * DEG if frame == "joint" else 20.0 * MM
        done(robot, "jog", Jog(frame, 0, size, step * size))

    return act


def line(robot: Robot) -> None:
    word = "A" if robot.kind == "arm" else "X"
    done(robot, "send_gcode", f"G91 G1 {word}5 F300")


def held_line(robot: Robot) -> None:
    """A line that is held after it has begun."""
    line(robot)
    time: Any = robot.side.time
    time.wires.advance_to(time.cell.now + STEP)
    done(robot, "hold")
    time.wires.advance_to(time.cell.now + 5 * STEP)


def resumed(robot: Robot) -> None:
    done(robot, "cycle_start")


def said(robot: Robot) -> None:
    """A motion that a new client of the robot asks for; the arm of `g60_welding` has no face."""
    bench: Any = robot.side.time
    for endpoint in bench.cell.faces:
        if endpoint in SAID and endpoint.startswith(f"{robot.name}."):
            bench.say(endpoint)


def rests(robot: Robot) -> None:
    """A mobile robot that nobody commands."""


def motions(robot: Robot) -> list[list[Act]]:
    """Motions, each as acts between which the cell idles."""
    if robot.kind == "mobile":
        return [[rests]]
    found: list[list[Act]] = [[said], [jog(1.0)], [jog(-1.0)], [said]]
    if "gcode" in robot.skills():
        found += [[line], [line]]
    if "gcode" in robot.skills() and "hold" in robot.skills():
        found += [[held_line, resumed]]
    return found


# ── the property ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=[*shipped_cells(), "point_rule"])
def cell(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param in shipped_cells():
        return str(request.param)
    (tmp_path / "cell.yaml").write_text(POINT_RULE)
    return str(tmp_path / "cell.yaml")


def test_a_motion_after_a_month_is_the_same_and_costs_the_same(cell: str) -> None:
    warm, short, long = Bench(cell), Bench(cell), Bench(cell)
    for first, robot, later in zip(warm.robots, short.robots, long.robots, strict=True):
        for acts in motions(robot):
            for act in acts:
                warm.motion(first, act)  # loads what a first motion loads
                short_idle, long_idle = short.idle(MINUTE), long.idle(MONTH)
                assert long_idle <= short_idle * ROUNDING
                one, other = short.motion(robot, act), long.motion(later, act)
                assert one.wakes == other.wakes
                assert other.calls <= one.calls * ROUNDING
                assert np.allclose(one.positions, other.positions, atol=1e-6)
