"""A six-axis arm with the controller that a real grblHAL-driven one would have."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

from understudy.ports.exploration import Exploration
from understudy.ports.fault_reactions import (
    ENGINE_FAILED,
    ENGINE_RUNS,
    STANDS,
    Reaction,
    Reactions,
    error,
    moving,
    state,
    stopped,
)
from understudy.ports.faults import EMERGENCY_STOP, Fault, Faults, Figure
from understudy.simulation.io.virtual_io import Config as IoConfig
from understudy.space.model.environment import CollisionConfig, LimitsConfig, ObjectConfig
from understudy.space.pose import Position

if TYPE_CHECKING:
    from understudy.config import CellConfig
    from understudy.offline.fit import Recorded
    from understudy.offline.robot import OfflineRobot
    from understudy.ports import Deps
    from understudy.ports.job_arm import JobArm
    from understudy.ports.operation import (
        OperatorActions,
        RealClient,
        RobotModel,
        Sender,
        SendOptions,
    )
    from understudy.robots.arm.controller import ArmController
    from understudy.robots.grblhal.driver import LineStream
    from understudy.simulation.program.run import ProgramRun
    from understudy.wire.chat import Chat


Axes6 = tuple[float, float, float, float, float, float]
Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
FAULTS: Faults = {
    **EMERGENCY_STOP,
    "axis_fault": Fault(
        "brought",
        "a drive trips: no torque until reset (alarm 17)",
        {"axis": Figure(0.0, 0.0, 5.0)},
    ),
}
EMERGENCY, MOTOR = 10, 17
jogging = moving("joint", 0.2, 0.5)
REACTIONS: Reactions = {
    "emergency_stop": Reaction(
        jogging, (state("Alarm"), error(EMERGENCY), ENGINE_FAILED, STANDS), within_s=0.5
    ),
    "emergency_release": Reaction(stopped, (ENGINE_RUNS, error(0)), within_s=0.5),
    "axis_fault": Reaction(
        jogging,
        (error(MOTOR), ENGINE_FAILED, STANDS),
        within_s=0.5,
        parameters={"axis": 2.0},
    ),
}
EXPLORED = Exploration(
    reach={"state": ("Idle", "Run", "Jog", "Hold", "Home", "Alarm"), "alarm": ("2", "10", "17")}
)
ToolNumber = Annotated[int, Meta(ge=1, le=99)]


class ToolConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool: its tip, its mass and its shapes, all seen from the flange.

    `outputs`: digital outputs that belong to the tool; they are off before it is put away. `dock`:
    the pose of the bare flange in the cell when the tool sits in its dock.
    """

    name: str = ""
    tcp_mm_deg: Axes6 = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    mass_kg: NotNegative = 0.0
    com_mm: tuple[float, float, float] = (0.0, 0.0, 0.0)
    shapes: tuple[ObjectConfig, ...] = ()
    outputs: Annotated[tuple[Annotated[int, Meta(ge=0, lt=32)], ...], Meta(max_length=32)] = ()
    dock: Position | None = None


class Simulation(Struct, frozen=True, forbid_unknown_fields=True):
    """Keys of the simulation: rate of the callbacks, dynamics, delays of real hardware."""

    update_rate_hz: Annotated[float, Meta(ge=0.001, le=100_000)] = 1000.0
    enable_dynamics: bool = False
    joint_inertia: list[NotNegative] | None = None
    joint_friction: list[NotNegative] | None = None
    command_delay_ms: Annotated[float, Meta(ge=0, le=10_000)] = 1.0
    feedback_delay_ms: Annotated[float, Meta(ge=0, le=900)] = 0.5


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The arm in a cell file.

    `model`: a shipped robot, or the path of a URDF or xacro file (with its arguments) from the cell
    file. `tip`: its last link, where several could be it. `fixed_joints_deg`: joints that stay.
    `arc_wait`: whether M3 and M5 wait for the device that they switch; if not, programs use M66.
    `arc_within_mm`: validation warns of an arc that burns farther from every object; 0: of none.
    """

    model: str = "g60"
    tip: str = ""
    fixed_joints_deg: dict[str, float] = {}
    limits: LimitsConfig = LimitsConfig()
    dialect: Literal["arm", "grblhal"] = "arm"
    feed_unit: Literal["per_minute", "per_second"] = "per_minute"
    profile: Literal["trapezoid", "jerk_limited"] | None = None
    planner_blocks: Annotated[int, Meta(ge=2, le=1000)] = 100
    junction_deviation_deg: NotNegative = 0.01
    base_mm_deg: Axes6 = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    tool: Annotated[int, Meta(ge=0, le=99)] = 0
    tools: dict[ToolNumber, ToolConfig] = {}
    home_deg: list[float] | None = None
    start_deg: list[float] | None = None
    homing_speed_percent: Annotated[float, Meta(gt=0, le=100)] = 25.0
    max_velocity_deg_s: list[Positive] | None = None
    max_acceleration_deg_s2: list[Positive] | None = None
    max_jerk_deg_s3: list[Positive] | None = None
    simulation: Simulation = Simulation()
    collision: CollisionConfig = CollisionConfig()
    io: IoConfig = IoConfig()
    arc_wait: Literal["implicit", "none"] = "implicit"
    arc_within_mm: Annotated[float, Meta(ge=0, le=10_000)] = 50.0


FACES = ("grblhal",)
SIMULATION_SECTIONS = ("simulation", "collision", "io")

# The simulated robot, its check and its actions are imported on first use: they load
# compiled code, which a driver or a configuration does not need.


def build(name: str, config: Config, deps: "Deps") -> "ArmController":
    from understudy.robots.arm.assembly import build

    return build(name, config, deps)


def operator_actions(robot: Any) -> "OperatorActions":
    from understudy.robots.arm.operator import ArmActions

    return ArmActions(robot, robot.arm, dialect=robot.arm.options.dialect, simulated=robot)


def robot_model(config: Config, robot: "ArmController") -> "RobotModel":
    from understudy.robots.arm.operator import model_of

    return model_of(config, robot)


def program_run(robot: "ArmController") -> "ProgramRun":
    from understudy.robots.grblhal.language import GcodeLanguage
    from understudy.simulation.program.run import ProgramRun

    return ProgramRun(robot, GcodeLanguage(robot.arm.options.dialect))


def job_arm(robot: "ArmController") -> "JobArm":
    from understudy.robots.arm.operator import job_arm

    return job_arm(robot)


def real_client(config: "CellConfig", name: str, robot: "ArmController") -> "RealClient":
    from understudy.robots.arm.real import real_client

    return real_client(config, name, robot)


DIALECTS: tuple[Literal["grblhal", "arm"], ...] = ("grblhal", "arm")


def sender() -> "Sender":
    from understudy.ports.operation import Sender

    return Sender("grblhal", "grblhal", unit="lines", read=read_to_send, dialects=DIALECTS)


def read_to_send(text: str, options: "SendOptions") -> "LineStream":
    """A program for `understudy send`, in grblHAL's dialect or in the arm's own, of which this host
    makes joint lines; a cell file names the arm."""
    from understudy.robots.grblhal import driver

    dialect = next(each for each in DIALECTS if each == options.dialect)
    cell = options.cell or ("default" if dialect == "arm" else "")
    if not cell:
        return driver.stream(text, options)
    from understudy.config import load_config
    from understudy.robots.arm.real import driver_of

    settings = driver.Config(dialect=dialect, poll_ms=driver.POLL_MS)
    return driver.LineStream(driver_of(load_config(cell), "", settings), text)


def recorded(config: "CellConfig", robot: str, chat: "Chat") -> "Recorded":
    from understudy.robots.arm.fit import recorded_arm

    return recorded_arm(config, robot, chat)


def offline_robot(config: "CellConfig", robot: str) -> "OfflineRobot":
    from understudy.robots.arm.offline import ArmOffline

    return ArmOffline(config, robot)
