"""Waypoints: targets without a program around them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.gcode import Block
from understudy.gcode.dialect import Axes
from understudy.gcode.program import ProgramLine
from understudy.gcode.requests import JointMove, LineMove, Move, Spindle
from understudy.motion.path import Floats
from understudy.offline.setup import Mover, Setup
from understudy.offline.walk import Event, Walker, impossible
from understudy.space.given import given_positive, given_row, shown
from understudy.space.pose import Pose
from understudy.units import MM

POINTS = 17
"""Points through which the way of the tool in a joint move is measured."""

Speeds = tuple[float | None, float | None]
"""m/s of the tool without and with process; None: as fast as the joints can."""


@dataclass(frozen=True, slots=True)
class Waypoint:
    """A target, as joints (rad) or as a pose of the tool (m, rad); `process`: the arc burns.

    `speed` of the tool in m/s. To a pose the tool goes straight if it has a speed; without one,
    and to joints, each joint takes its own way.
    """

    target: Axes | Pose
    speed: float | None = None
    process: bool = False


def follow(
    waypoints: Sequence[Waypoint],
    setup: Setup,
    speeds: Speeds = (None, None),
    start: Floats | None = None,
) -> Iterator[Event]:
    """The events of waypoints, as of `walk`: line n is waypoint n.

    The robot stands where the process begins or ends, and the devices switch the arc there, as M3
    and M5 do.
    """
    _check(waypoints, len(setup.mover.limits.velocity))
    walker = Walker(setup, start)
    for number, waypoint in enumerate(waypoints, 1):
        walker.events.append(ProgramLine(number, _text(number, waypoint), Block(line=number)))
        if waypoint.process != walker.process:
            _switch(walker, waypoint.process, number)
        speed = waypoint.speed if waypoint.speed is not None else speeds[waypoint.process]
        refused = walker.move(_move(waypoint, speed, walker.q, setup.mover), number)
        if refused:
            walker.events.append(impossible(number, refused, _text(number, waypoint)))
        yield from walker.take()
    if walker.process and waypoints:
        _switch(walker, False, len(waypoints))
    walker.end(len(waypoints))
    yield from walker.take()


def _check(waypoints: Any, joints: int) -> None:
    """Raises ValueError for what is no waypoint, or not one of this arm."""
    if not isinstance(waypoints, Sequence) or isinstance(waypoints, str | bytes):
        raise ValueError(f"waypoints: a list of Waypoint is needed, got {shown(waypoints)}")
    for number, each in enumerate(waypoints, 1):
        what = f"waypoint {number}"
        if not isinstance(each, Waypoint):
            raise ValueError(f"{what}: a Waypoint is needed, got {shown(each)}")
        given_row(each.target, 6 if isinstance(each.target, Pose) else joints, f"{what}: target")
        if each.speed is not None:
            given_positive(each.speed, f"{what}: speed")


def _switch(walker: Walker, process: bool, number: int) -> None:
    walker.rest()
    devices = walker.devices
    if devices is not None:
        delay = devices.carry_out(Spindle("M3" if process else "M5", 0.0), number, walker.now)
        walker.events += delay.remarks
        walker.stand(number, "process", delay.seconds)
    walker.process = process


def _move(waypoint: Waypoint, speed: float | None, here: Floats, mover: Mover) -> Move:
    target = waypoint.target
    if isinstance(target, Pose):
        return LineMove(target, speed)
    if speed is None:
        return JointMove(target)
    way = tool_way(mover, here, np.array(target))
    return JointMove(target, duration=way / speed) if way > 0.0 else JointMove(target)


def tool_way(mover: Mover, start: Floats, end: Floats) -> float:
    """Metres that the tool covers while the joints go straight from one position to another."""
    shares = np.linspace(0.0, 1.0, POINTS)[:, None]
    points = [mover.pose(q)[:3] for q in start + shares * (end - start)]
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum()) * MM


def _text(number: int, waypoint: Waypoint) -> str:
    kind = "pose" if isinstance(waypoint.target, Pose) else "joints"
    return f"waypoint {number} ({kind}{', process' if waypoint.process else ''})"
