"""Points, tool centre points and work frames, taught by moving the robot there."""

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.gcode.blocks import COORDINATE_SYSTEMS
from understudy.operator.models import chain_of, figures_of, tool_of, tools_of
from understudy.operator.motion import Number, Six
from understudy.operator.robots import OfRobot, Robot, Robots
from understudy.operator.table import Command
from understudy.ports import Component
from understudy.ports.operation import Target
from understudy.simulation.points import LONGEST_NAME, Points
from understudy.space.pose import pose_mm_deg, pose_of
from understudy.units import MM

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell

Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
Poses = Annotated[list[Six], Meta(max_length=100)]
Names = Annotated[list[Name], Meta(max_length=100)]
Three = tuple[Number, Number, Number]
System = Literal["G54", "G55", "G56", "G57", "G58", "G59"]

MOST_TURN_DEG = 0.05
"""A taught frame that is rotated by less counts as not rotated."""


def commands(cell: "OperatedCell") -> list[Command]:
    points = PointCommands(cell.robots, cell.components)
    return points.commands() + TeachCommands(cell.robots).commands()


class Named(Struct, frozen=True, forbid_unknown_fields=True):
    robot: str
    name: Name


class Rename(Struct, frozen=True, forbid_unknown_fields=True):
    robot: str
    name: Name
    to: Name


class GoTo(Struct, frozen=True, forbid_unknown_fields=True):
    robot: str
    name: Name
    line: bool = False
    speed_mm_s: Annotated[float, Meta(gt=0, le=10_000)] = 100.0


class SetPoint(Struct, frozen=True, forbid_unknown_fields=True):
    """`pose_mm_deg` of the present tool, or `joints_deg`; the other one is computed."""

    robot: str
    name: Name
    pose_mm_deg: Six | None = None
    joints_deg: list[Number] | None = None


class FourPoints(Struct, frozen=True, forbid_unknown_fields=True):
    """Four or more taught points, or joints, with the tip on one spot in different orientations."""

    robot: str
    points: Names = []
    joints_deg: Annotated[list[list[float]], Meta(max_length=100)] = []


class ThreePoints(Struct, frozen=True, forbid_unknown_fields=True):
    """The origin, a point on +x and a point on the +y side: names of points, or tool poses."""

    robot: str
    points: Names = []
    poses_mm_deg: Poses = []


class PointCommands:
    """The points are a part of the cell: snapshots hold them."""

    def __init__(self, robots: Robots, components: dict[str, Component]) -> None:
        self._robots = robots
        self._components = components

    def commands(self) -> list[Command]:
        add = Command
        return [
            add("points", "the points of a robot", self._list, OfRobot, role="viewer"),
            add("teach_point", "add a point where the robot is", self._teach, Named),
            add("touch_up", "move a point to where the robot is", self._touch_up, Named),
            add("set_point", "move a point to typed coordinates", self._set, SetPoint),
            add("undo_point", "take the last change of a point back", self._undo, OfRobot),
            add("rename_point", "rename a point", self._rename, Rename),
            add("delete_point", "delete a point", self._delete, Named),
            add("go_to_point", "move to a point, straight or not", self._go, GoTo),
            add(
                "tcp_by_four_points",
                "compute the TCP of a tool, with its residual",
                self._tcp,
                FourPoints,
            ),
            add("frame_by_three_points", "compute a work frame", self._frame, ThreePoints),
        ]

    # ── points ──

    def _list(self, given: OfRobot) -> Any:
        found = self._of(given.robot)
        return found if isinstance(found, Refused) else _answer(*found)

    def _teach(self, given: Named) -> Any:
        return self._changed(given.robot, "teach", given.name)

    def _touch_up(self, given: Named) -> Any:
        return self._changed(given.robot, "touch_up", given.name)

    def _rename(self, given: Rename) -> Any:
        found = self._of(given.robot)
        if isinstance(found, Refused):
            return found
        return found[1].rename(given.name, given.to) or _answer(*found)

    def _delete(self, given: Named) -> Any:
        found = self._of(given.robot)
        if isinstance(found, Refused):
            return found
        return found[1].delete(given.name) or _answer(*found)

    def _set(self, given: SetPoint) -> Any:
        found = self._of(given.robot)
        if isinstance(found, Refused):
            return found
        robot, points = found
        before = points.find(given.name)
        if isinstance(before, Refused):
            return before
        from understudy.operator.typed_place import typed_place  # it loads compiled code

        place = typed_place(robot, before, given.pose_mm_deg, given.joints_deg)
        if isinstance(place, Refused):
            return place
        return points.set(given.name, *place) or _answer(robot, points)

    def _undo(self, given: OfRobot) -> Any:
        found = self._of(given.robot)
        if isinstance(found, Refused):
            return found
        undone = found[1].undo()
        return undone if isinstance(undone, Refused) else _answer(*found)

    def _go(self, given: GoTo) -> Any:
        found = self._of(given.robot)
        if isinstance(found, Refused):
            return found
        robot, points = found
        point = points.find(given.name)
        if isinstance(point, Refused):
            return point
        straight = given.line or not point.joints or "joint" not in robot.side.actions.frames
        target = Target(
            None if straight else point.joints,
            point.pose if straight else None,
            given.line,
            given.speed_mm_s * MM,
        )
        return self._robots.do(given.robot, "move_to", target)

    def _changed(self, name: str, action: str, point: str) -> Any:
        found = self._of(name)
        if isinstance(found, Refused):
            return found
        robot, points = found
        axis_reading = robot.axis_reading()
        refused = getattr(points, action)(point, axis_reading.joints, axis_reading.pose)
        return refused or _answer(robot, points)

    def _of(self, name: str) -> tuple[Robot, Points] | Refused:
        robot = self._robots.find(name)
        if isinstance(robot, Refused):
            return robot
        points = self._components[f"{name}.points"]
        assert isinstance(points, Points)
        return robot, points

    # ── TCP and work frame ──

    def _tcp(self, given: FourPoints) -> Any:
        import numpy as np

        from understudy.space.kinematics.teach import tcp_by_points

        found = self._of(given.robot)
        if isinstance(found, Refused):
            return found
        robot, points = found
        chain = chain_of(robot)
        if isinstance(chain, Refused):
            return chain
        taught = _taught(points, given.points)
        if isinstance(taught, Refused):
            return taught
        rows = [point.joints for point in taught]
        if any(len(row) != chain.dof for row in (*rows, *given.joints_deg)):
            return Refused(f"{given.robot} has {chain.dof} joints; give as many in each row")
        rows += [tuple((np.array(row) * chain.units).tolist()) for row in given.joints_deg]
        tip = tcp_by_points(chain.flanges(np.array(rows).reshape(-1, chain.dof)))
        if isinstance(tip, Refused):
            return tip
        offset = [value / MM for value in tip.offset.tolist()]
        return {
            "tcp_mm_deg": [*offset, 0.0, 0.0, 0.0],
            "point_mm": [value / MM for value in tip.point.tolist()],
            "residual_mm": tip.residual / MM,
        }

    def _frame(self, given: ThreePoints) -> Any:
        import numpy as np

        from understudy.space.kinematics.teach import frame_by_three
        from understudy.space.transform import pose

        found = self._of(given.robot)
        if isinstance(found, Refused):
            return found
        taught = _taught(found[1], given.points)
        if isinstance(taught, Refused):
            return taught
        poses = [point.pose for point in taught] + [pose_of(six) for six in given.poses_mm_deg]
        if len(poses) != 3:
            return Refused(f"three points are needed, there are {len(poses)}")
        origin, on_x, on_plane = (np.array(each[:3]) for each in poses)
        frame = frame_by_three(origin, on_x, on_plane)
        if isinstance(frame, Refused):
            return frame
        return {"frame_mm_deg": pose_mm_deg(pose(frame)), "matrix": frame.reshape(-1).tolist()}


def _taught(points: Points, names: list[str]) -> list[Any] | Refused:
    found: list[Any] = []
    for name in names:
        point = points.find(name)
        if isinstance(point, Refused):
            return point
        found.append(point)
    return found


def _answer(robot: Robot, points: Points) -> dict[str, Any]:
    """All points, and the command and point of the change that `undo_point` would take back."""
    last = points.last_change
    undo = None if last is None else {"command": last.command, "name": last.name}
    return {"points": written(robot, points), "undo": undo}


def written(robot: Robot, points: Points) -> list[dict[str, Any]]:
    return [
        {
            "name": point.name,
            "joints_deg": figures_of(robot, point.joints),
            "pose_mm_deg": pose_mm_deg(point.pose),
        }
        for point in points.all()
    ]


# ── teaching ────────────────────────────────────────────────────────────────────────────────────


class SetTcp(Struct, frozen=True, forbid_unknown_fields=True):
    """The TCP of the active tool, seen from the flange. Without `tcp_mm` the value of the cell file
    applies again; without `turn_deg` the orientation stays."""

    robot: str
    tcp_mm: Three | None = None
    turn_deg: Three | None = None


class SetWorkFrame(Struct, frozen=True, forbid_unknown_fields=True):
    """`frame_mm_deg`: seen from the robot's base. `origin_only`: ignore the rotation."""

    robot: str
    frame_mm_deg: Six
    system: System = "G54"
    origin_only: Annotated[bool, Meta()] = False


class TeachCommands:
    """Commands that put taught values into use; they answer with the new values."""

    def __init__(self, robots: Robots) -> None:
        self._robots = robots

    def commands(self) -> list[Command]:
        frame = "set one of G54 … G59 to a work frame"
        return [
            Command("set_tcp", "set the TCP of the active tool", self._set_tcp, SetTcp),
            Command("set_work_frame", frame, self._set_frame, SetWorkFrame),
        ]

    def _set_tcp(self, given: SetTcp) -> Any:
        robot = self._robots.find(given.robot)
        if isinstance(robot, Refused):
            return robot
        tool = tool_of(robot)
        known = tools_of(robot).get(str(tool))
        if known is None:
            there = ", ".join(f"T{number}" for number in tools_of(robot)) or "none in its file"
            return Refused(
                f"{robot.name} has no tool in hand whose TCP could be set; tools: {there}"
            )
        tip = None
        if given.tcp_mm is not None:
            tip = pose_of((*given.tcp_mm, *(given.turn_deg or known["tcp_mm_deg"][3:])))
        if refused := robot.do("set_tcp", tip):
            return refused
        now = tools_of(robot)[str(tool)]
        key = f"robots.{robot.name}.tools.{tool}.tcp_mm_deg"
        return {**robot.summary(), "tool": tool, **now, "cell_file": _key(key, now["tcp_mm_deg"])}

    def _set_frame(self, given: SetWorkFrame) -> Any:
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
        return {**robot.summary(), "system": given.system, "origin_mm": origin, "gcode": line}


def _shifted(number: int, origin: list[float]) -> str:
    words = " ".join(f"{axis}{value + 0.0:g}" for axis, value in zip("XYZ", origin, strict=True))
    return f"G21 G10 L2 P{number} {words} A0 B0 C0"


def _no_lines(robot: Robot) -> Refused | None:
    if "base" in robot.side.actions.frames and "gcode" in robot.skills():
        return None
    return Refused(f"{robot.name} ({robot.kind}) has no work frames: it knows no lines of the tool")


def _turned(given: SetWorkFrame) -> Refused | None:
    turn = max(abs(math.remainder(angle, 360.0)) for angle in given.frame_mm_deg[3:])
    if turn <= MOST_TURN_DEG:
        return None
    return Refused(
        f"{given.system} shifts zero and turns no axis; this frame is turned by up to {turn:.1f}°. "
        "Teach it along the axes of the base, or take its origin only (origin_only)"
    )


def _key(path: str, values: list[float]) -> str:
    return f"{path}: [{', '.join(f'{round(value, 3) + 0.0:g}' for value in values)}]"
