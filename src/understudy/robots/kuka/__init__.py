"""A KUKA that runs a G-code server behind Ethernet KRL."""

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, field

from understudy.ports.exploration import Exploration
from understudy.ports.fault_reactions import (
    ENGINE_FAILED,
    ENGINE_RUNS,
    STANDS,
    Reaction,
    Reactions,
    moving,
    state,
    stopped,
)
from understudy.ports.faults import EMERGENCY_STOP
from understudy.space.model.environment import CollisionConfig, LimitsConfig, ObjectConfig

if TYPE_CHECKING:
    from understudy.config import CellConfig
    from understudy.offline.fit import Recorded
    from understudy.offline.robot import OfflineRobot
    from understudy.ports import Deps
    from understudy.ports.operation import OperatorActions, RobotModel, Sender
    from understudy.robots.kuka.robot import KukaGcodeServer
    from understudy.simulation.program.run import ProgramRun
    from understudy.wire.chat import Chat


NO_REAL_CLIENT = (
    "the G-code server on its controller has no stop, hold, reset or override, so that the buttons "
    "of an operator could not stop it; `understudy send kuka PROGRAM --to HOST:PORT` streams "
    "programs to a real one"
)
"""Why there is no REAL KUKA behind the operator's commands."""

Six = tuple[float, float, float, float, float, float]
"""X Y Z in mm and A B C in degrees, R = Rz(A)·Ry(B)·Rx(C); or A1…A6 in degrees."""
Positive = Annotated[float, Meta(gt=0, le=1e6)]
ToolNumber = Annotated[int, Meta(ge=1, le=9)]
BaseNumber = Annotated[int, Meta(ge=1, le=6)]

TOOLS: dict[ToolNumber, Six] = {
    1: (0.0, 0.0, 150.0, 0.0, 0.0, 180.0),
    2: (0.0, 0.0, 100.0, 0.0, 0.0, 180.0),
    4: (0.0, 0.0, 200.0, 0.0, 0.0, 180.0),
    5: (0.0, 0.0, 250.0, 0.0, 0.0, 180.0),
}
BASES: dict[BaseNumber, Six] = {
    1: (450.0, 200.0, 200.0, 0.0, 0.0, 0.0),
    2: (450.0, -200.0, 200.0, 0.0, 0.0, 0.0),
    3: (450.0, 200.0, 0.0, 0.0, 0.0, 0.0),
    4: (450.0, -200.0, 0.0, 0.0, 0.0, 0.0),
    5: (450.0, 0.0, 200.0, 0.0, 0.0, 0.0),
}


class LoadConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Load data of a tool ($LOAD): its mass, and its centre of mass seen from the flange."""

    mass_kg: Annotated[float, Meta(ge=0)] = 0.0
    com_mm: tuple[float, float, float] = (0.0, 0.0, 0.0)


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The KUKA in a cell file.

    `model`: a shipped robot, or the path of a URDF or xacro file (with its arguments) from the cell
    file. `tip`: its last link, where several could be it. `fixed_joints_deg`: joints that stay.
    `base_mm_deg`: place of the robot in the cell, as x y z rx ry rz.
    `tool_shapes`: shapes of the tools, seen from the flange. `tool_loads`: their masses.
    `tools_mm_deg`, `bases_mm_deg`: the frames. A number without a frame can be selected, but the
    robot does not move with it.
    `blend_percent`: share of the programmed speed at which a line passes into the next (C_VEL); at
    0 every line ends at rest. `advance_run`: number of lines that are planned ahead for it.
    `on_emergency_stop`: `clear` drops all records at an emergency stop or a contact that stops the
    robot, and refuses those that arrive before the release; `keep` keeps them and continues the
    motion at the release.
    `on_disconnect`: `clear` drops the waiting records when the client disconnects, `drain` carries
    them out.
    """

    model: str = "kr6_r900"
    tip: str = ""
    fixed_joints_deg: dict[str, float] = {}
    limits: LimitsConfig = LimitsConfig()
    base_mm_deg: Six = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    collision: CollisionConfig = CollisionConfig()
    tool_shapes: dict[ToolNumber, tuple[ObjectConfig, ...]] = {}
    tool_loads: dict[ToolNumber, LoadConfig] = {}
    tools_mm_deg: dict[ToolNumber, Six] = field(default_factory=TOOLS.copy)
    bases_mm_deg: dict[BaseNumber, Six] = field(default_factory=BASES.copy)
    tool: ToolNumber = 1
    base: BaseNumber = 5
    start_mm_deg: Six = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    home_deg: Six = (0.0, -90.0, 90.0, 0.0, 45.0, 0.0)
    home_speed_percent: Annotated[float, Meta(gt=0, le=100)] = 10.0
    speed_limit_mm_s: Annotated[float, Meta(ge=0.01, le=10_000)] = 100.0
    lowest_z_mm: float | None = 0.0
    turning_speed_deg_s: Positive = 4.2
    acceleration_m_s2: Positive = 10.0
    blend_percent: Annotated[float, Meta(ge=0, le=100)] = 2.0
    advance_run: Annotated[int, Meta(ge=0, le=5)] = 2
    on_emergency_stop: Literal["clear", "keep"] = "clear"
    on_disconnect: Literal["clear", "drain"] = "clear"
    gas_post_flow_s: Annotated[float, Meta(ge=0, le=600)] = 5.0


FACES = ("kuka_eki",)
FAULTS = EMERGENCY_STOP
REACTIONS: Reactions = {
    "emergency_stop": Reaction(
        moving("base", 0.02, 0.05),
        (state("EmergencyStopped"), ENGINE_FAILED, STANDS),
        within_s=0.5,
    ),
    "emergency_release": Reaction(stopped, (state("Idle"), ENGINE_RUNS), within_s=0.5),
}
EXPLORED = Exploration(reach={"state": ("Idle", "Run", "EmergencyStopped")})
SIMULATION_SECTIONS = ("collision",)

# The simulated robot, its check and its actions are imported on first use: they load
# compiled code, which a driver or a configuration does not need.


def build(name: str, config: Config, deps: "Deps") -> "KukaGcodeServer":
    from understudy.robots.kuka.assembly import build

    return build(name, config, deps)


KRL = re.compile(
    r"^\s*(?:&ACCESS|DEF\s+\w+\s*\(|(?:PTP|LIN|CIRC|SPTP|SLIN)\s+[\w{$]|\$VEL\b)",
    re.MULTILINE | re.IGNORECASE,
)


def program_hint(text: str) -> str:
    """The hint that a program for another robot is KRL; empty if it is not."""
    if not KRL.search(text):
        return ""
    return (
        "this is KRL, which runs on the KUKA controller itself; here a KUKA has a G-code server: "
        "give G-code, with --cell kuka_eki"
    )


def operator_actions(robot: Any) -> "OperatorActions":
    from understudy.robots.kuka.operator import KukaActions

    return KukaActions(robot)


def robot_model(config: Config, robot: "KukaGcodeServer") -> "RobotModel":
    from understudy.robots.kuka.operator import model_of

    return model_of(config, robot)


def program_run(robot: "KukaGcodeServer") -> "ProgramRun":
    from understudy.robots.kuka.operator import program_run

    return program_run(robot)


def sender() -> "Sender":
    from understudy.robots.kuka.driver import SENDER

    return SENDER


def recorded(config: "CellConfig", robot: str, chat: "Chat") -> "Recorded":
    from understudy.robots.kuka.fit import recorded_robot

    return recorded_robot(config, robot, chat)


def offline_robot(config: "CellConfig", robot: str) -> "OfflineRobot":
    from understudy.robots.kuka.offline import KukaOffline

    return KukaOffline(config, robot)
