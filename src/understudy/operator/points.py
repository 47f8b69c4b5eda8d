"""Points, tool centre points and work frames, taught by moving the robot there."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from understudy.errors import Refused
from understudy.gcode.blocks import COORDINATE_SYSTEMS
from understudy.operator.models import chain_of, figures_of, tool_of, tools_of
from understudy.operator.motion import Number, Six, TcpSpeed
from understudy.operator.robots import Robot, Robots
from understudy.operator.table import Command, command, commands_of, query
from understudy.ports import Component
from understudy.ports.operation import Target
from understudy.simulation.points import LONGEST_NAME, Points
from understudy.space.pose import pose_mm_deg, pose_of
from understudy.units import MM

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell

Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
Poses = Annotated[Sequence[Six], Meta(max_length=100)]
Rows = Annotated[Sequence[list[float]], Meta(max_length=100)]
Names = Annotated[Sequence[Name], Meta(max_length=100)]
Three = tuple[Number, Number, Number]
System = Literal["G54", "G55", "G56", "G57", "G58", "G59"]

MOST_TURN_DEG = 0.05
"""A taught frame that is rotated by less counts as not rotated."""


def commands(cell: "OperatedCell") -> list[Command]:
    points = PointCommands(cell.robots, cell.components)
    return commands_of(points) + commands_of(TeachCommands(cell.robots))


class PointCommands:
    """The points are a part of the cell: snapshots hold them."""

    def __init__(self, robots: Robots, components: dict[str, Component]) -> None:
        self._robots = robots
        self._components = components

    @query()
    def points(self, robot: str) -> Any:
        """The points of a robot."""
        found = self._of(robot)
        return found if isinstance(found, Refused) else _answer(*found)

    @command()
    def teach_point(self, robot: str, name: Name) -> Any:
        """Add a point where the robot is."""
        return self._changed(robot, "teach", name)

    @command()
    def touch_up(self, robot: str, name: Name) -> Any:
        """Move a point to where the robot is."""
        return self._changed(robot, "touch_up", name)

    @command()
    def set_point(
        self,
        robot: str,
        name: Name,
        pose_mm_deg: Six | None = None,
        joints_deg: list[Number] | None = None,
    ) -> Any:
        """Move a point to typed coordinates.

        `pose_mm_deg` of the present tool, or `joints_deg`; the other one is computed.
        """
        found = self._of(robot)
        if isinstance(found, Refused):
            return found
        of, points = found
        before = points.find(name)
        if isinstance(before, Refused):
            return before
        from understudy.operator.typed_place import typed_place  # it loads compiled code

        place = typed_place(of, before, pose_mm_deg, joints_deg)
        if isinstance(place, Refused):
            return place
        return points.set(name, *place) or _answer(of, points)

    @command()
    def undo_point(self, robot: str) -> Any:
        """Take the last change of a point back."""
        found = self._of(robot)
        if isinstance(found, Refused):
            return found
        undone = found[1].undo()
        return undone if isinstance(undone, Refused) else _answer(*found)

    @command()
    def rename_point(self, robot: str, name: Name, to: Name) -> Any:
        """Rename a point."""
        found = self._of(robot)
        if isinstance(found, Refused):
            return found
        return found[1].rename(name, to) or _answer(*found)

    @command()
    def delete_point(self, robot: str, name: Name) -> Any:
        """Delete a point."""
        found = self._of(robot)
        if isinstance(found, Refused):
            return found
        return found[1].delete(name) or _answer(*found)

    @command()
    def go_to_point(
        self, robot: str, name: Name, line: bool = False, speed_mm_s: TcpSpeed = 100.0
    ) -> Any:
        """Move to a point, straight or not."""
        found = self._of(robot)
        if isinstance(found, Refused):
            return found
        of, points = found
        point = points.find(name)
        if isinstance(point, Refused):
            return point
        straight = line or not point.joints or "joint" not in of.side.actions.frames
        target = Target(
            None if straight else point.joints,
            point.pose if straight else None,
            line,
            speed_mm_s * MM,
        )
        return self._robots.do(robot, "move_to", target)

    # ── TCP and work frame ──

    @command()
    def tcp_by_four_points(self, robot: str, points: Names = (), joints_deg: Rows = ()) -> Any:
        """Compute the TCP of a tool, with its residual.

        Four or more taught points, or joints, with the tip on one spot in different orientations.
        """
        import numpy as np

        from understudy.space.kinematics.teach import tcp_by_points

        found = self._of(robot)
        if isinstance(found, Refused):
            return found
        chain = chain_of(found[0])
        if isinstance(chain, Refused):
            return chain
        taught = _taught(found[1], points)
        if isinstance(taught, Refused):
            return taught
        rows = [point.joints for point in taught]
        if any(len(row) != chain.dof for row in (*rows, *joints_deg)):
            return Refused(f"{robot} has {chain.dof} joints; give as many in each row")
        rows += [tuple((np.array(row) * chain.units).tolist()) for row in joints_deg]
        tip = tcp_by_points(chain.flanges(np.array(rows).reshape(-1, chain.dof)))
        if isinstance(tip, Refused):
            return tip
        offset = [value / MM for value in tip.offset.tolist()]
        return {
            "tcp_mm_deg": [*offset, 0.0, 0.0, 0.0],
            "point_mm": [value / MM for value in tip.point.tolist()],
            "residual_mm": tip.residual / MM,
        }

    @command()
    def frame_by_three_points(
        self, robot: str, points: Names = (), poses_mm_deg: Poses = ()
    ) -> Any:
        """Compute a work frame.

        The origin, a point on +x and a point on the +y side: names of points, or tool poses.
        """
        import numpy as np

        from understudy.space.kinematics.teach import frame_by_three
        from understudy.space.transform import pose

        found = self._of(robot)
        if isinstance(found, Refused):
            return found
        taught = _taught(found[1], points)
        if isinstance(taught, Refused):
            return taught
        poses = [point.pose for point in taught] + [pose_of(six) for six in poses_mm_deg]
        if len(poses) != 3:
            return Refused(f"three points are needed, there are {len(poses)}")
        origin, on_x, on_plane = (np.array(each[:3]) for each in poses)
        frame = frame_by_three(origin, on_x, on_plane)
        if isinstance(frame, Refused):
            return frame
        return {"frame_mm_deg": pose_mm_deg(pose(frame)), "matrix": frame.reshape(-1).tolist()}

    # ── inside ──

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


def _taught(points: Points, names: Sequence[str]) -> list[Any] | Refused:
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


class TeachCommands:
    """Commands that put taught values into use; they answer with the new values."""

    def __init__(self, robots: Robots) -> None:
        self._robots = robots

    @command()
    def set_tcp(
        self, robot: str, tcp_mm: Three | None = None, turn_deg: Three | None = None
    ) -> Any:
        """Set the TCP of the active tool.

        The TCP of the active tool, seen from the flange. Without `tcp_mm` the value of the cell
        file applies again; without `turn_deg` the orientation stays.
        """
        found = self._robots.find(robot)
        if isinstance(found, Refused):
            return found
        tool = tool_of(found)
        known = tools_of(found).get(str(tool))
        if known is None:
            there = ", ".join(f"T{number}" for number in tools_of(found)) or "none in its file"
            return Refused(f"{robot} has no tool in hand whose TCP could be set; tools: {there}")
        tip = None
        if tcp_mm is not None:
            tip = pose_of((*tcp_mm, *(turn_deg or known["tcp_mm_deg"][3:])))
        if refused := found.do("set_tcp", tip):
            return refused
        now = tools_of(found)[str(tool)]
        key = f"robots.{robot}.tools.{tool}.tcp_mm_deg"
        return {**found.summary(), "tool": tool, **now, "cell_file": _key(key, now["tcp_mm_deg"])}

    @command()
    def set_work_frame(
        self,
        robot: str,
        frame_mm_deg: Six,
        system: System = "G54",
        origin_only: bool = False,
    ) -> Any:
        """Set one of G54 … G59 to a work frame.

        `frame_mm_deg`: seen from the robot's base. `origin_only`: ignore the rotation.
        """
        found = self._robots.find(robot)
        if isinstance(found, Refused):
            return found
        turn = max(abs(math.remainder(angle, 360.0)) for angle in frame_mm_deg[3:])
        if "base" not in found.side.actions.frames or "gcode" not in found.skills():
            return Refused(
                f"{robot} ({found.kind}) has no work frames: it knows no lines of the tool"
            )
        if turn > MOST_TURN_DEG and not origin_only:
            return Refused(
                f"{system} shifts zero and turns no axis; this frame is turned by up to "
                f"{turn:.1f}°. Teach it along the axes of the base, or take its origin only "
                "(origin_only)"
            )
        origin = [round(value, 6) for value in frame_mm_deg[:3]]
        words = " ".join(
            f"{axis}{value + 0.0:g}" for axis, value in zip("XYZ", origin, strict=True)
        )
        line = f"G21 G10 L2 P{COORDINATE_SYSTEMS.index(system) + 1} {words} A0 B0 C0"
        if refused := found.do("send_gcode", line):
            return refused
        return {**found.summary(), "system": system, "origin_mm": origin, "gcode": line}


def _key(path: str, values: list[float]) -> str:
    return f"{path}: [{', '.join(f'{round(value, 3) + 0.0:g}' for value in values)}]"
