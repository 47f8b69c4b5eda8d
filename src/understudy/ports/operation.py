"""How a robot is operated: what its kind declares, and the values that are exchanged.

A kind of robot is a module in the table `robots` of the registry. It must declare the first two
names; without the others the robot is part of the cell and can be stopped and reset:

    Config                               the keys of the cell file
    build(name, config, deps)            the simulated robot, a `Component` that is `Injectable`
    operator_actions(robot)              `OperatorActions` on the simulated robot
    robot_model(config, robot)           `RobotModel`: axes, tools, offsets, overrides
    program_run(robot)                   `ports.program.ProgramControl`, a part that runs programs
    real_client(config, name, robot)     `RealClient`: the driver of the REAL robot
    NO_REAL_CLIENT                       why there is none, for the message that refuses `real`
    offline_robot(config, name)          the robot without a running cell, for `validate`
    recorded(config, name, chat)         what a recording shows of the robot, for `fit`
    program_hint(text)                   the hint that a program for another robot is one for it
    sender()                             `Sender`: how `understudy send` streams a program to it
    build_group(robots, head, deps)      instead of `build`: all robots of the kind in one call, a
                                         `ports.Group`; ``head``: the keys of the cell file
    group_wires(robots, head, find)      the wires of its endpoints; ``find(name)``: path and text
                                         of a file beside the cell file
    prepare()                            compiles what the robots of such a kind need
    GROUP_FACES                          its endpoints and the kinds of their faces
    FACES                                the faces that fit; without it every face is accepted
    SIMULATION_SECTIONS                  the sections of simulation.yaml that apply to it
    job_arm(robot)                       `ports.job_arm.JobArm`: the arm as jobs use it
    JOB_SECTIONS                         the sections of pickplace.yaml that it can have

The simulated robot should be `Supervised`, so that the engine can stop it and see its faults.

`OperatorActions` has those of the actions below that its robot can do, and no others: this is how
the command table knows the capabilities of a robot. An action takes the time last and returns at
once: `Refused` or None.

    enable disable · home(axis) · stop emergency_stop reset · hold cycle_start
    send_gcode(text) · override_feed(percent) override_rapid(percent) · set_tool(number)
    jog(Jog) stop_jog · move_to(Target) · follow_joints(points, durations)
    set_joint_positions(radians) · set_tcp(pose)
    set_tcp_of(number, pose) · set_work_offsets(rows of mm and deg)
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from understudy.errors import Refused
from understudy.ports import Caller, Component, Joints
from understudy.space.pose import Pose

if TYPE_CHECKING:
    from understudy.ports.io import PollsInputs
    from understudy.ports.job_arm import JobArm
    from understudy.ports.program import ProgramControl

Frame = Literal["joint", "base", "tool"]
SixNumbers = tuple[float, float, float, float, float, float]

SKILLS: Mapping[str, str] = {
    "drives": "enable",
    "home": "home",
    "gcode": "send_gcode",
    "hold": "hold",
    "override": "override_feed",
    "move_to": "move_to",
    "follow_joints": "follow_joints",
    "jog": "jog",
    "jog_held": "stop_jog",
    "set_tool": "set_tool",
    "set_tcp": "set_tcp",
    "set_joint_positions": "set_joint_positions",
}
"""Capability in the query `robots` → the action that an `OperatorActions` has for it."""


# ── operator actions ────────────────────────────────────────────────────────────────────────────


class Jog(NamedTuple):
    """A jog of axis 0–5 at a speed (rad/s, or m/s along an axis of a frame).

    `step`: the distance (rad or m); None: the jog goes on until `stop_jog`.
    """

    frame: Frame
    axis: int
    speed: float
    step: float | None


class Target(NamedTuple):
    """The target of a move: joints (rad) or a pose of the tool.

    `line`: the tool goes straight, at `speed` (m/s).
    """

    joints: Joints | None
    pose: Pose | None
    line: bool
    speed: float


class Condition(Struct, frozen=True):
    """The state of a robot of any kind. `line`: of its program, 0 if none is executed.
    `waiting_tasks`: they begin when the robot is reset."""

    state: str
    moving: bool = False
    connected: bool = True
    enabled: bool = True
    error: str = ""
    code: int = 0
    line: int = 0
    waiting_tasks: int = 0


class AxisReading(Struct, frozen=True):
    """Joints, velocities and torques (rad, rad/s, Nm; empty without joints) and the tool's pose.
    `speed` of the tool in m/s, None: not reported. `at`: since when the values are so, of a robot
    that moves in steps; None: they are those of the present instant."""

    joints: Joints
    velocities: Joints
    torques: Joints
    pose: Pose
    speed: float | None = None
    at: int | None = None


class OperatorActions(Protocol):
    """The actions and readings that every robot has."""

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The frames in which the robot can be jogged; `joint`: it also moves to joint targets."""
        ...

    def condition(self, now: int) -> Condition: ...

    def axis_reading(self, now: int) -> AxisReading: ...

    def stop(self, now: int) -> Any: ...

    def emergency_stop(self, now: int) -> Any: ...

    def reset(self, now: int) -> Any: ...


def skills(actions: OperatorActions) -> tuple[str, ...]:
    """The capabilities of these actions, in the words of the query `robots`."""
    able = [skill for skill, action in SKILLS.items() if hasattr(actions, action)]
    return (*able, *(f"jog_{_side(frame)}" for frame in actions.frames if frame != "tool"))


def _side(frame: Frame) -> str:
    return "joint" if frame == "joint" else "cartesian"


# ── model ───────────────────────────────────────────────────────────────────────────────────────

IDENTITY = (1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0)


class ModelTool(NamedTuple):
    """A tool. `shapes`: the space it takes, as cell files describe objects, seen from the flange.

    `measured`: the TCP was taught and differs from the cell file; None: it cannot be taught.
    """

    name: str
    tcp_mm_deg: list[float]
    shapes: tuple[Any, ...] = ()
    measured: bool | None = None


class ModelAxis(NamedTuple):
    """An axis of a robot without a kinematic chain: along or about a unit vector."""

    name: str
    kind: Literal["prismatic", "revolute"]
    direction: tuple[float, float, float]


class VehicleBody(NamedTuple):
    """Metres; `ahead`: of its centre, as seen from the pose of the robot."""

    length: float
    width: float
    height: float
    ahead: float


class Vehicle(NamedTuple):
    """A robot that drives on the floor; its highest speeds: m/s and rad/s."""

    body: VehicleBody
    fastest: tuple[float, float]


@runtime_checkable
class HasVehicles(Protocol):
    """A component of a cell that knows where robots drive."""

    def vehicles(self) -> Mapping[str, Vehicle]:
        """The robots whose true places are known, by name."""
        ...

    def place(self, robot: str) -> tuple[float, float, float]:
        """Where a robot is: x, y, yaw in metres and radians."""
        ...

    def driven_at(self) -> int | None:
        """The time of the last tick, if a robot moves or shall move; None while all stand."""
        ...


@dataclass(frozen=True)
class RobotModel:
    """What queries and pages show of a simulated robot beside its state.

    A kind declares the fields it has; the defaults are those of a robot without any of it.
    """

    chain: Any = None
    """The kinematic chain (`understudy.space.kinematics.chain.Chain`) of an arm."""
    axes: tuple[ModelAxis, ...] = ()
    """The axes of a robot that has no chain."""
    base: tuple[float, ...] = IDENTITY
    """The foot, seen from the frame in which tool poses are reported: 4×4, row by row."""
    vehicle: VehicleBody | None = None
    """The body of a robot that drives: its pose is that of the tool."""
    tools: Callable[[], Mapping[int, ModelTool]] = dict
    """The tools by number; 0 is the flange."""
    tool: Callable[[int], int] = lambda now: 0
    """The number of the active tool."""
    work_offsets: Callable[[], Mapping[str, SixNumbers]] = dict
    """The offsets of G54 … G59.3 (mm, deg) that are not zero."""
    overrides: Callable[[int], Mapping[str, float] | None] = lambda now: None
    """Feed and rapid override in percent."""
    live_setup: Callable[[Any], Any] = field(default=lambda setup: setup)
    """An offline `Setup` with the tool and offsets that the robot has now, for previews."""
    program_events: Callable[[str, AxisReading], Iterator[Any]] | None = None
    """Offline events of a program that begins at a reading, for previews of a robot that has no
    `Setup`: its programs are not G-code as `understudy.gcode` reads it."""
    tip: Callable[[Any, int], list[float]] = lambda axes, tool: []
    """The tip of a tool (m) for these axes, where `program_events` has motions of axes."""


# ── parts and REAL robots ───────────────────────────────────────────────────────────────────────


@runtime_checkable
class Supervised(Protocol):
    """A robot that the engine stops, resets and asks for faults.

    A robot without these methods gets its emergency stop when the engine stops, and only a reset
    releases it; the engine does not see its faults.
    """

    def inhibit_motion(self, now: int) -> None:
        """Stops the motion, drops what waits, and refuses new motion until `permit_motion`."""
        ...

    def permit_motion(self, now: int) -> None:
        """Accepts motion again; nothing moves by itself."""
        ...

    def reset(self, now: int) -> Any:
        """Clears faults and the emergency stop, also of the devices on the robot, and everything
        that was forced or switched on its pins."""
        ...

    def fault(self, now: int) -> Refused | None:
        """The fault or emergency stop that no reset has cleared yet."""
        ...


@runtime_checkable
class OccupiesRobot(Protocol):
    """A job that moves a robot by itself: no other command may move it meanwhile."""

    def occupied(self, now: int) -> Refused | None:
        """Why other commands may not move the robot now."""
        ...


@runtime_checkable
class StopsWithRobot(Protocol):
    """A job that ends when an operator stops its robot."""

    def stop(self, now: int) -> Refused | None: ...


@runtime_checkable
class HasComponents(Protocol):
    """A robot that adds parts of its own to the cell: pins, devices, its collision watch."""

    @property
    def parts(self) -> Mapping[str, Component]:
        """Own name → part; in the cell the part is called `<robot>.<own name>`."""
        ...


@runtime_checkable
class ReportsMessages(Protocol):
    """A robot whose messages, such as refused commands of its client, appear in the event log."""

    def on_message(self, listener: Callable[[str, int], None]) -> None:
        """Calls ``listener(text, now)`` with every message."""
        ...


def components_of(robot: Any) -> Mapping[str, Component]:
    """The parts that a robot adds to the cell."""
    return robot.parts if isinstance(robot, HasComponents) else {}


@dataclass(frozen=True)
class RealClient:
    """The REAL sibling of a simulated robot: a driver and what operates it.

    `driver` is a `Component` too. `program`: its `ProgramControl`, if it runs programs. `connect`
    and `disconnect` begin and end its session with the robot; neither enables, homes or resets.
    `job_arm`: what jobs need of it, if it can have some. `pins`: of its controller, for devices and
    jobs; a component too.
    """

    driver: Caller
    actions: OperatorActions
    program: "ProgramControl | None" = None
    connect: Callable[[int], Any] = lambda now: None
    disconnect: Callable[[int], Any] = lambda now: None
    job_arm: "JobArm | None" = None
    pins: "PollsInputs | None" = None


# ── programs that are streamed from the command line ────────────────────────────────────────────


class SendOptions(NamedTuple):
    """Options of `understudy send`. `cell`: the cell file with the robot of the program."""

    dialect: str = ""
    cell: str = ""


class ProgramStream(Protocol):
    """A program on its way to a robot, as the command line starts it and reports its progress."""

    @property
    def driver(self) -> Caller: ...

    @property
    def total(self) -> int:
        """The number of lines, records or moves."""
        ...

    def start(self, now: int, ended: "StreamEnded") -> bool | Refused:
        """Starts the program; False while the robot has not answered yet: call again."""
        ...

    def progress(self) -> int | None:
        """The number of lines, records or moves that are done."""
        ...

    def give_up(self, now: int) -> None:
        """Stops the robot; the program ends with a refusal."""
        ...

    def closing(self, now: int) -> bool:
        """Called after a program failed: True while the driver still needs its connection."""
        ...


StreamEnded = Callable[[Refused | None], None]
"""Called once when a program has ended: None if the robot has done all of it."""


@runtime_checkable
class WatchesTelemetry(Protocol):
    """A `ProgramStream` that learns from a second connection what the robot really did."""

    def telemetry_reader(self) -> Callable[[bytes, int], bool]:
        """A reader of one connection: takes received bytes, True if they completed a reading."""
        ...

    def confirmed(self) -> bool:
        """The telemetry has shown the robot at the end of the program."""
        ...


class Sender(NamedTuple):
    """How programs are streamed to a kind of robot.

    `name`: for the command line, when `--to` names an address. `endpoint` and `telemetry`: the
    endings of its endpoints in a running cell. `unit`: what the progress bar counts.
    """

    name: str
    endpoint: str
    unit: str
    read: Callable[[str, SendOptions], ProgramStream | Refused | None]
    """The program as a stream; None if it is empty."""
    dialects: tuple[str, ...] = ()
    """The dialects that programs may be written in; empty: one language, without a name."""
    telemetry: str = ""
