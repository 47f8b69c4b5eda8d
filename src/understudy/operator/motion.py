"""Commands that move a robot: drives, homing, G-code lines, overrides, jogs, moves, tools."""

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from understudy.errors import Refused
from understudy.operator.models import joints_from, units_of
from understudy.operator.robots import HOW_TO, Number, Robot, Robots, Six, TcpSpeed
from understudy.operator.run_modes import DeadManSwitch
from understudy.operator.table import Command, command, commands_of
from understudy.ports.operation import Frame, Jog, Target, components_of
from understudy.simulation.collision.contact import Contact, ReportsContacts
from understudy.space.pose import pose_of
from understudy.units import DEG, MM

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell

Axis = Annotated[int, Meta(ge=0, le=5)]
Percent = Annotated[float, Meta(gt=0, le=200)]
Speed = Annotated[float, Meta(ge=-10_000, le=10_000)]
Step = Annotated[float, Meta(gt=0, le=10_000)]
Text = Annotated[str, Meta(max_length=256)]


def commands(cell: "OperatedCell") -> list[Command]:
    return commands_of(MotionCommands(cell.robots, cell.modes.dead_man))


MOST_POINTS = 10_000
SHORTEST = 0.0005
"""Seconds between two points of joints that are followed."""


class MotionCommands:
    """Each command answers with the summary of the robot."""

    def __init__(self, robots: Robots, dead_man: DeadManSwitch) -> None:
        self._robots = robots
        self._dead_man = dead_man
        self._held: set[str] = set()
        """Simulated robots with a jog that lasts until `stop_jog`."""
        for robot in robots:
            for part in components_of(robot.simulated.controller).values():
                if isinstance(part, ReportsContacts):
                    part.on_collision(partial(self._collided, robot))

    @command()
    def enable(self, robot: str) -> Any:
        """Connect if necessary and switch the drives on."""
        return self._robots.do(robot, "enable")

    @command()
    def disable(self, robot: str) -> Any:
        """Switch the drives off and drop what waits."""
        return self._robots.do(robot, "disable")

    @command()
    def hold(self, robot: str) -> Any:
        """Brake along the path and wait for cycle_start."""
        return self._robots.do(robot, "hold")

    @command()
    def cycle_start(self, robot: str) -> Any:
        """Go on after hold, M0 or M1."""
        return self._robots.do(robot, "cycle_start")

    @command()
    def stop_jog(self, robot: str) -> Any:
        """End every jog."""
        self._dead_man.release(robot)
        self._held.discard(robot)
        return self._robots.do(robot, "stop_jog")

    @command()
    def home(self, robot: str, axis: Axis | None = None) -> Any:
        """Home all axes, or one.

        `axis`: the axis to home; None: all.
        """
        return self._robots.do(robot, "home", -1 if axis is None else axis)

    @command()
    def send_gcode(self, robot: str, line: Text) -> Any:
        """One line, as from a program."""
        return self._robots.do(robot, "send_gcode", line)

    @command()
    def override(
        self, robot: str, feed_percent: Percent | None = None, rapid_percent: Percent | None = None
    ) -> Any:
        """Set feed and rapid override, in percent."""
        answer: Any = None
        for action, percent in (("override_feed", feed_percent), ("override_rapid", rapid_percent)):
            if percent is None:
                continue
            answer = self._robots.do(robot, action, percent)
            if isinstance(answer, Refused):
                break
        return answer or Refused("give feed_percent or rapid_percent")

    @command()
    def jog(
        self, robot: str, frame: Frame, axis: Axis, speed: Speed, step: Step | None = None
    ) -> Any:
        """One axis, by a step or until stop_jog.

        `speed`: deg/s of a joint or about an axis, mm/s along an axis; its sign is the direction.

        `step`: the distance in deg or mm; None: the jog goes on until `stop_jog`.
        """
        if speed == 0.0:
            return Refused("speed 0 goes nowhere: its sign is the direction; stop_jog ends a jog")
        found = self._robots.find(robot)
        if isinstance(found, Refused):
            return found
        unit, units = MM if frame != "joint" and axis < 3 else DEG, units_of(found)
        if frame == "joint" and axis < len(units):
            unit = units[axis]
        jog = Jog(frame, axis, speed * unit, None if step is None else step * unit)
        answer = self._robots.do(robot, "jog", jog)
        if isinstance(answer, Refused):
            return answer
        if found.real is not None and step is None:
            self._dead_man.hold(found, jog)
        elif step is None:
            self._held.add(robot)
        return answer

    @command()
    def move_to(
        self,
        robot: str,
        joints_deg: list[Number] | None = None,
        pose_mm_deg: Six | None = None,
        line: bool = False,
        speed_mm_s: TcpSpeed = 100.0,
    ) -> Any:
        """Joints or pose, straight or not.

        `joints_deg` or `pose_mm_deg` of the tool. `line`: the tool goes straight at `speed_mm_s`;
        otherwise the joints move at their own speeds.
        """
        if (joints_deg is None) == (pose_mm_deg is None):
            return HOW_TO
        joints = joints_deg and self._angles(robot, joints_deg)
        if isinstance(joints, Refused):
            return joints
        pose = None if pose_mm_deg is None else pose_of(pose_mm_deg)
        target = Target(joints or None, pose, line, speed_mm_s * MM)
        return self._robots.do(robot, "move_to", target)

    @command()
    def follow_joints(
        self,
        robot: str,
        joints_deg: Annotated[list[list[Number]], Meta(min_length=1, max_length=MOST_POINTS)],
        at_s: Annotated[list[Number], Meta(max_length=MOST_POINTS)],
    ) -> Any:
        """Joints through points, each at its time.

        `at_s`: the time of each point, counted from now; they rise. The joints go straight from
        point to point. Limits of joints and of their speeds are checked before anything moves; the
        times are kept as far as the accelerations of the controller allow.
        """
        if len(at_s) != len(joints_deg):
            return Refused(f"follow_joints: {len(joints_deg)} points with {len(at_s)} times")
        durations = [late - early for early, late in pairwise([0.0, *at_s])]
        if min(durations) < SHORTEST:
            number = next(n for n, each in enumerate(durations) if each < SHORTEST)
            before = at_s[number - 1] if number else 0.0
            return Refused(
                f"point {number} is at {at_s[number]:g} s, after {before:g} s: each point comes at "
                f"least {SHORTEST * 1e3:g} ms after the one before it"
            )
        points = []
        for row in joints_deg:
            if isinstance(joints := self._angles(robot, row), Refused):
                return joints
            points.append(joints)
        return self._robots.do(robot, "follow_joints", points, durations)

    @command()
    def set_joint_positions(self, robot: str, joints_deg: list[Number]) -> Any:
        """Put the arm there (simulation only)."""
        joints = self._angles(robot, joints_deg)
        if isinstance(joints, Refused):
            return joints
        return self._robots.do(robot, "set_joint_positions", joints)

    @command()
    def set_tool(self, robot: str, tool: Annotated[int, Meta(ge=0, le=99)]) -> Any:
        """Change the tool."""
        return self._robots.do(robot, "set_tool", tool)

    def _collided(self, robot: Robot, contact: Contact) -> None:
        """A new contact ends a held jog; the next jog may lead out of it, or go on."""
        if robot.name in self._held and robot.real is None:
            self._held.discard(robot.name)
            if stop := getattr(robot.simulated.actions, "stop_jog", None):
                stop(contact.at)

    def _angles(self, name: str, degrees: list[float]) -> tuple[float, ...] | Refused:
        robot = self._robots.find(name)
        if isinstance(robot, Refused):
            return robot
        count = len(robot.axis_reading().joints)
        if len(degrees) != count:
            return Refused(f"{name} has {count} joints, joints_deg has {len(degrees)} numbers")
        return joints_from(robot, degrees)
