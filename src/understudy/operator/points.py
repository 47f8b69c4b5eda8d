"""Points, tool centre points and work frames, taught by moving the robot there."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from understudy.errors import Refused
from understudy.gcode.blocks import COORDINATE_SYSTEMS
from understudy.operator.models import chain_of, point_rows, tool_of, tools_of
from understudy.operator.robots import HOW_TO, Number, Robot, Robots, Six, TcpSpeed
from understudy.operator.table import Command, command, commands_of, query
from understudy.ports import Component, Joints
from understudy.ports.operation import Target
from understudy.simulation.points import LONGEST_NAME, Point, Points
from understudy.space.pose import Pose, pose_mm_deg, pose_of
from understudy.units import MM

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell
    from understudy.space.kinematics.chain import Frames

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
        return self._act(robot, lambda robot, points: None)

    @command()
    def teach_point(self, robot: str, name: Name) -> Any:
        """Add a point where the robot is."""
        return self._act(robot, lambda robot, points: points.teach(name, *_place(robot)))

    @command()
    def touch_up(self, robot: str, name: Name) -> Any:
        """Move a point to where the robot is."""
        return self._act(robot, lambda robot, points: points.touch_up(name, *_place(robot)))

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

        def put(robot: Robot, points: Points) -> Refused | None:
            before = points.find(name)
            if isinstance(before, Refused):
                return before
            place = _typed_place(robot, before, pose_mm_deg, joints_deg)
            return place if isinstance(place, Refused) else points.set(name, *place)

        return self._act(robot, put)

    @command()
    def undo_point(self, robot: str) -> Any:
        """Take the last change of a point back."""
        return self._act(robot, lambda robot, points: points.undo())

    @command()
    def rename_point(self, robot: str, name: Name, to: Name) -> Any:
        """Rename a point."""
        return self._act(robot, lambda robot, points: points.rename(name, to))

    @command()
    def delete_point(self, robot: str, name: Name) -> Any:
        """Delete a point."""
        return self._act(robot, lambda robot, points: points.delete(name))

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

    def _act(self, name: str, action: Callable[[Robot, Points], object]) -> Any:
        """Acts on the points of a robot; all of them afterwards, and the command and point of the
        change that `undo_point` would take back."""
        found = self._of(name)
        if isinstance(found, Refused):
            return found
        robot, points = found
        outcome = action(robot, points)
        if isinstance(outcome, Refused):
            return outcome
        last = points.last_change
        undo = None if last is None else {"command": last.command, "name": last.name}
        return {"points": point_rows(robot, points), "undo": undo}

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


# ── places ──────────────────────────────────────────────────────────────────────────────────────


def _place(robot: Robot) -> tuple[Joints, Pose]:
    """Where the robot is."""
    here = robot.axis_reading()
    return here.joints, here.pose


def _typed_place(
    robot: Robot,
    before: Point,
    pose_mm_deg: Sequence[float] | None,
    joints_deg: Sequence[float] | None,
) -> tuple[Joints, Pose] | Refused:
    """The joints and the pose of typed coordinates; the joints nearest to those of before."""
    if (pose_mm_deg is None) == (joints_deg is None):
        return HOW_TO
    import numpy as np  # this and the kinematics load compiled code

    from understudy.space.transform import pose

    if pose_mm_deg is not None:
        there = pose_of(pose_mm_deg)
        joints = _joints_at(robot, there, before)
        return joints if isinstance(joints, Refused) else (joints, there)
    chain = chain_of(robot)
    if isinstance(chain, Refused):
        return chain
    given = joints_deg or ()
    if len(given) != chain.dof:
        return Refused(f"{robot.name} has {chain.dof} joints, joints_deg has {len(given)} numbers")
    joints = tuple((np.array(given) * chain.units).tolist())
    return joints, pose(_frames(robot).tcp(chain.flange(joints)))


def _joints_at(robot: Robot, there: Pose, before: Point) -> Joints | Refused:
    """The joints of a pose: empty for a robot without joint targets, the axes of a machine."""
    from understudy.space.kinematics.ik import nearest, solve
    from understudy.space.transform import matrix

    if "joint" not in robot.side.actions.frames:
        return ()
    if robot.model.chain is None:
        return tuple(there)
    near = before.joints or robot.axis_reading().joints
    found = solve(robot.model.chain, matrix(there), frames=_frames(robot), near=near)
    return found if isinstance(found, Refused) else tuple(nearest(found, near).tolist())


def _frames(robot: Robot) -> "Frames":
    """The frames in which the robot's poses are: its base, and the tip of its present tool."""
    import numpy as np

    from understudy.space.kinematics.chain import Frames
    from understudy.space.transform import inverse, matrix

    tool = robot.model.tools().get(tool_of(robot))
    tip = np.eye(4) if tool is None else matrix(pose_of(tool.tcp_mm_deg))
    return Frames(inverse(np.array(robot.model.base).reshape(4, 4)), tip)


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
