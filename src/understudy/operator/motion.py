"""Commands that move a robot: drives, homing, G-code lines, overrides, jogs, moves, tools."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.operator.models import joints_from, units_of
from understudy.operator.robots import OfRobot, Robot, Robots
from understudy.operator.run_modes import DeadManSwitch
from understudy.operator.table import Command
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
Number = Annotated[float, Meta(ge=-1e6, le=1e6)]
Six = tuple[Number, Number, Number, Number, Number, Number]
Text = Annotated[str, Meta(max_length=256)]


def commands(cell: "OperatedCell") -> list[Command]:
    return MotionCommands(cell.robots, cell.modes.dead_man).commands()


class Home(Struct, frozen=True, forbid_unknown_fields=True):
    """`axis`: the axis to home; None: all."""

    robot: str
    axis: Axis | None = None


class SendLine(Struct, frozen=True, forbid_unknown_fields=True):
    robot: str
    line: Text


class Override(Struct, frozen=True, forbid_unknown_fields=True):
    robot: str
    feed_percent: Percent | None = None
    rapid_percent: Percent | None = None


class JogOrder(Struct, frozen=True, forbid_unknown_fields=True):
    """`speed`: deg/s of a joint or about an axis, mm/s along an axis; its sign is the direction.

    `step`: the distance in deg or mm; None: the jog goes on until `stop_jog`.
    """

    robot: str
    frame: Literal["joint", "base", "tool"]
    axis: Axis
    speed: Speed
    step: Step | None = None


class MoveTo(Struct, frozen=True, forbid_unknown_fields=True):
    """`joints_deg` or `pose_mm_deg` of the tool. `line`: the tool goes straight at `speed_mm_s`;
    otherwise the joints move at their own speeds."""

    robot: str
    joints_deg: list[Number] | None = None
    pose_mm_deg: Six | None = None
    line: bool = False
    speed_mm_s: Annotated[float, Meta(gt=0, le=10_000)] = 100.0


class SetJoints(Struct, frozen=True, forbid_unknown_fields=True):
    robot: str
    joints_deg: list[Number]


class SetTool(Struct, frozen=True, forbid_unknown_fields=True):
    robot: str
    tool: Annotated[int, Meta(ge=0, le=99)]


PLAIN = {
    "enable": "connect if necessary and switch the drives on",
    "disable": "switch the drives off and drop what waits",
    "hold": "brake along the path and wait for cycle_start",
    "cycle_start": "go on after hold, M0 or M1",
    "stop_jog": "end every jog",
}
HOW_TO = Refused("give either joints_deg or pose_mm_deg")


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

    def commands(self) -> list[Command]:
        return [
            *(self._plain(name, doc) for name, doc in PLAIN.items()),
            Command("home", "home all axes, or one", self._home, Home),
            Command("send_gcode", "one line, as from a program", self._send, SendLine),
            Command(
                "override", "set feed and rapid override, in percent", self._override, Override
            ),
            Command("jog", "one axis, by a step or until stop_jog", self._jog, JogOrder),
            Command("move_to", "joints or pose, straight or not", self._move, MoveTo),
            Command(
                "set_joint_positions", "put the arm there (simulation only)", self._put, SetJoints
            ),
            Command("set_tool", "change the tool", self._set_tool, SetTool),
        ]

    def _plain(self, name: str, doc: str) -> Command:
        def run(given: OfRobot) -> Any:
            if name == "stop_jog":
                self._dead_man.release(given.robot)
                self._held.discard(given.robot)
            return self._robots.do(given.robot, name)

        return Command(name, doc, run, OfRobot)

    def _home(self, given: Home) -> Any:
        axis = -1 if given.axis is None else given.axis
        return self._robots.do(given.robot, "home", axis)

    def _send(self, given: SendLine) -> Any:
        return self._robots.do(given.robot, "send_gcode", given.line)

    def _override(self, given: Override) -> Any:
        wanted = {"override_feed": given.feed_percent, "override_rapid": given.rapid_percent}
        asked = {verb: percent for verb, percent in wanted.items() if percent is not None}
        if not asked:
            return Refused("give feed_percent or rapid_percent")
        answer: Any = None
        for verb, percent in asked.items():
            answer = self._robots.do(given.robot, verb, percent)
            if isinstance(answer, Refused):
                return answer
        return answer

    def _jog(self, given: JogOrder) -> Any:
        if given.speed == 0.0:
            return Refused("speed 0 goes nowhere: its sign is the direction; stop_jog ends a jog")
        robot = self._robots.find(given.robot)
        if isinstance(robot, Refused):
            return robot
        jog = jog_of(given, units_of(robot))
        answer = self._robots.do(given.robot, "jog", jog)
        if isinstance(answer, Refused):
            return answer
        if robot.real is not None and jog.step is None:
            self._dead_man.hold(robot, jog)
        elif jog.step is None:
            self._held.add(robot.name)
        return answer

    def _collided(self, robot: Robot, contact: Contact) -> None:
        """A new contact ends a held jog; the next jog may lead out of it, or go on."""
        if robot.name in self._held and robot.real is None:
            self._held.discard(robot.name)
            if stop := getattr(robot.simulated.actions, "stop_jog", None):
                stop(contact.at)

    def _move(self, given: MoveTo) -> Any:
        if (given.joints_deg is None) == (given.pose_mm_deg is None):
            return HOW_TO
        joints = given.joints_deg and self._angles(given.robot, given.joints_deg)
        if isinstance(joints, Refused):
            return joints
        pose = None if given.pose_mm_deg is None else pose_of(given.pose_mm_deg)
        target = Target(joints or None, pose, given.line, given.speed_mm_s * MM)
        return self._robots.do(given.robot, "move_to", target)

    def _put(self, given: SetJoints) -> Any:
        joints = self._angles(given.robot, given.joints_deg)
        if isinstance(joints, Refused):
            return joints
        return self._robots.do(given.robot, "set_joint_positions", joints)

    def _set_tool(self, given: SetTool) -> Any:
        return self._robots.do(given.robot, "set_tool", given.tool)

    def _angles(self, name: str, degrees: list[float]) -> tuple[float, ...] | Refused:
        robot = self._robots.find(name)
        if isinstance(robot, Refused):
            return robot
        count = len(robot.axis_reading().joints)
        if len(degrees) != count:
            return Refused(f"{name} has {count} joints, joints_deg has {len(degrees)} numbers")
        return joints_from(robot, degrees)


def jog_of(given: JogOrder, units: Sequence[float]) -> Jog:
    """The jog in m and rad; ``units``: sizes of the joints' units."""
    frame: Frame = given.frame
    if frame == "joint":
        unit = units[given.axis] if given.axis < len(units) else DEG
    else:
        unit = MM if given.axis < 3 else DEG
    return Jog(
        frame, given.axis, given.speed * unit, None if given.step is None else given.step * unit
    )
