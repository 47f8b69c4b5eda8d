"""What was measured is put to use: a tool's tip, a work frame as one of G54 … G59."""

import math
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.gcode.blocks import COORDINATE_SYSTEMS
from understudy.operator.models import tool_of, tools_of
from understudy.operator.motion import Number, Six
from understudy.operator.robots import Robot, Robots
from understudy.operator.table import Command
from understudy.space.pose import pose_of

Three = tuple[Number, Number, Number]
System = Literal["G54", "G55", "G56", "G57", "G58", "G59"]

MOST_TURN_DEG = 0.05
"""What is turned by less is not turned: nobody teaches points that well."""


class Tip(Struct, frozen=True, forbid_unknown_fields=True):
    """The tip of the tool in hand, from the flange; `turn_deg`: None: as it was. Without `tcp_mm`
    the cell's file counts again."""

    robot: str
    tcp_mm: Three | None = None
    turn_deg: Three | None = None


class WorkFrame(Struct, frozen=True, forbid_unknown_fields=True):
    """`frame_mm_deg`: from the robot's base. `origin_only`: though it is turned, shift alone."""

    robot: str
    frame_mm_deg: Six
    system: System = "G54"
    origin_only: Annotated[bool, Meta()] = False


class TeachCommands:
    """Each answers with what counts now, and where the cell's file would hold it."""

    def __init__(self, robots: Robots) -> None:
        self._robots = robots

    def commands(self) -> list[Command]:
        frame = "a work frame becomes one of G54 … G59"
        return [
            Command("set_tcp", "the tool in hand ends there from now on", self._set_tcp, Tip),
            Command("set_work_frame", frame, self._set_frame, WorkFrame),
        ]

    def _set_tcp(self, given: Tip) -> Any:
        robot = self._robots.find(given.robot)
        if isinstance(robot, Refused):
            return robot
        tool = tool_of(robot)
        known = tools_of(robot).get(str(tool))
        if known is None:
            there = ", ".join(f"T{number}" for number in tools_of(robot)) or "none in its file"
            return Refused(f"{robot.name} has no tool in hand whose tip could be set: {there}")
        tip = None
        if given.tcp_mm is not None:
            tip = pose_of((*given.tcp_mm, *(given.turn_deg or known["tcp_mm_deg"][3:])))
        if refused := robot.do("set_tcp", tip):
            return refused
        now = tools_of(robot)[str(tool)]
        key = f"robots.{robot.name}.tools.{tool}.tcp_mm_deg"
        return {**robot.brief(), "tool": tool, **now, "cell_file": _key(key, now["tcp_mm_deg"])}

    def _set_frame(self, given: WorkFrame) -> Any:
        robot = self._robots.find(given.robot)
        if isinstance(robot, Refused):
            return robot
        refused = _no_lines(robot) or (None if given.origin_only else _turned(given))
        if refused:
            return refused
        origin = [round(value, 6) for value in given.frame_mm_deg[:3]]
        number = COORDINATE_SYSTEMS.index(given.system) + 1
        line = _shifted(number, origin)
        if refused := robot.do("send_gcode", line):
            return refused
        return {**robot.brief(), "system": given.system, "origin_mm": origin, "gcode": line}


def _shifted(number: int, origin: list[float]) -> str:
    words = " ".join(f"{axis}{value + 0.0:g}" for axis, value in zip("XYZ", origin, strict=True))
    return f"G21 G10 L2 P{number} {words} A0 B0 C0"


def _no_lines(robot: Robot) -> Refused | None:
    if "base" in robot.side.actions.frames and "gcode" in robot.skills():
        return None
    return Refused(f"{robot.name} ({robot.kind}) has no work frames: it knows no lines of the tool")


def _turned(given: WorkFrame) -> Refused | None:
    turn = max(abs(math.remainder(angle, 360.0)) for angle in given.frame_mm_deg[3:])
    if turn <= MOST_TURN_DEG:
        return None
    return Refused(
        f"{given.system} shifts zero and turns no axis; this frame is turned by up to {turn:.1f}°. "
        "Teach it along the axes of the base, or take its origin only (origin_only)"
    )


def _key(path: str, values: list[float]) -> str:
    return f"{path}: [{', '.join(f'{round(value, 3) + 0.0:g}' for value in values)}]"
