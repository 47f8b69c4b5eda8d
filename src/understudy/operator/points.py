"""Points and frames that are taught by going there."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.operator.motion import OfRobot, Six
from understudy.operator.robots import Robot, Robots
from understudy.operator.table import Command
from understudy.ports import Part
from understudy.ports.operation import Target
from understudy.simulation.points import LONGEST_NAME, Points
from understudy.space.pose import pose_mm_deg, pose_of
from understudy.units import DEG, MM

Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
Poses = Annotated[list[Six], Meta(max_length=100)]
Names = Annotated[list[Name], Meta(max_length=100)]


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


class FourPoints(Struct, frozen=True, forbid_unknown_fields=True):
    """Four or more points taught with the tip on one spot and the hand turned; or the joints."""

    robot: str
    points: Names = []
    joints_deg: Annotated[list[list[float]], Meta(max_length=100)] = []


class ThreePoints(Struct, frozen=True, forbid_unknown_fields=True):
    """The origin, a point on +x, a point on the side of +y: names, or poses of the tool."""

    robot: str
    points: Names = []
    poses_mm_deg: Poses = []


class PointCommands:
    """The points live in the cell: they are in its snapshots."""

    def __init__(self, robots: Robots, parts: dict[str, Part]) -> None:
        self._robots = robots
        self._parts = parts

    def commands(self) -> list[Command]:
        add = Command
        return [
            add("points", "the points of a robot", self._list, OfRobot, role="viewer"),
            add("teach_point", "a new point, where the robot is", self._teach, Named),
            add("touch_up", "a point is where the robot is now", self._touch_up, Named),
            add("rename_point", "another name for a point", self._rename, Rename),
            add("delete_point", "forget a point", self._delete, Named),
            add("go_to_point", "go there, straight or not", self._go, GoTo),
            add("tcp_by_four_points", "a tool's tip, and how well it fits", self._tcp, FourPoints),
            add("frame_by_three_points", "a work frame", self._frame, ThreePoints),
        ]

    # ── points ──

    def _list(self, given: OfRobot) -> Any:
        found = self._of(given.robot)
        return found if isinstance(found, Refused) else {"points": _written(found[1])}

    def _teach(self, given: Named) -> Any:
        return self._changed(given.robot, "teach", given.name)

    def _touch_up(self, given: Named) -> Any:
        return self._changed(given.robot, "touch_up", given.name)

    def _rename(self, given: Rename) -> Any:
        found = self._of(given.robot)
        if isinstance(found, Refused):
            return found
        return found[1].rename(given.name, given.to) or {"points": _written(found[1])}

    def _delete(self, given: Named) -> Any:
        found = self._of(given.robot)
        if isinstance(found, Refused):
            return found
        return found[1].delete(given.name) or {"points": _written(found[1])}

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

    def _changed(self, name: str, verb: str, point: str) -> Any:
        found = self._of(name)
        if isinstance(found, Refused):
            return found
        robot, points = found
        axis_reading = robot.axis_reading()
        refused = getattr(points, verb)(point, axis_reading.joints, axis_reading.pose)
        return refused or {"points": _written(points)}

    def _of(self, name: str) -> tuple[Robot, Points] | Refused:
        robot = self._robots.find(name)
        if isinstance(robot, Refused):
            return robot
        points = self._parts[f"{name}.points"]
        assert isinstance(points, Points)
        return robot, points

    # ── what they show ──

    def _tcp(self, given: FourPoints) -> Any:
        import numpy as np

        from understudy.operator.models import chain_of
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
        rows += [tuple(value * DEG for value in row) for row in given.joints_deg]
        if any(len(row) != chain.dof for row in rows):
            return Refused(f"{given.robot} has {chain.dof} joints")
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


def _written(points: Points) -> list[dict[str, Any]]:
    return [
        {
            "name": point.name,
            "joints_deg": [value / DEG for value in point.joints],
            "pose_mm_deg": pose_mm_deg(point.pose),
        }
        for point in points.all()
    ]
