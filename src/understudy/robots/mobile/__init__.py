"""Mobile robots in MOCK mode: the drive, the axes, the world and the sensors of many robots.

All mobile robots of a cell are rows of one table: they are built in one call and share the part
`fleet` (their runtime) and the endpoint `nats`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from understudy.robots.mobile.faults import FAULTS
from understudy.robots.mobile.reactions import EXPLORED, REACTIONS

if TYPE_CHECKING:
    from understudy.config import CellConfig
    from understudy.offline.fit import Recorded
    from understudy.offline.recorded_run import RecordedRun
    from understudy.ports import Deps, FaultSource, Group, Run
    from understudy.ports.operation import OperatorActions, RobotModel
    from understudy.space.model.environment import Environment
    from understudy.wire.chat import Chat
    from understudy.wire.interface import Wire

__all__ = [
    "EXPLORED",
    "FACES",
    "FAULTS",
    "GROUP_FACES",
    "REACTIONS",
    "Config",
    "build_group",
    "check_file",
    "group_wires",
    "kernel_probe",
    "name_in_file",
    "operator_actions",
    "place_copies",
    "prepare",
    "recorded",
    "recorded_runs",
    "robot_model",
    "sections_beside_first_shard",
    "sections_of_shard",
    "warm_kernels",
]

GROUP_FACES = {"nats": "fleet"}
FACES = ("vda5050",)
"""Faces of one robot, beside the endpoint that the robots share."""
Metres = Annotated[float, Meta(ge=-1e6, le=1e6)]
Degrees = Annotated[float, Meta(ge=-1e6, le=1e6)]


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """A mobile robot of a cell. Its name in the cell is its robotId.

    `file`: its robot_config.json, beside the cell file or a shipped one (`amr.json`). `pose`: x and
    y in metres and yaw in degrees, `battery_percent`: in place of the initial state of the file's
    profile. `robot_code`: in place of the file's; without it a robot with another name than that in
    the file has its name as code.
    """

    file: Annotated[str, Meta(min_length=1, max_length=1024)]
    pose: tuple[Metres, Metres, Degrees] | None = None
    battery_percent: Annotated[float, Meta(ge=0, le=100)] | None = None
    robot_code: Annotated[str, Meta(min_length=1, max_length=64)] | None = None


def build_group(robots: Mapping[str, Config], sections: Mapping[str, Any], deps: "Deps") -> "Group":
    """All mobile robots of a cell, their runtime and their face."""
    from understudy.robots.mobile.group import build

    return build(robots, sections, deps)


def check_file(text: str, file: str) -> str:
    """What a robot_config.json is, in words; empty for another file. ConfigError if it is wrong."""
    from understudy.robots.mobile.config import is_robot_file, read_robot_file

    if not is_robot_file(text):
        return ""
    robot = read_robot_file(text, file)
    motors, sensors = len(robot.motors), len(robot.io.devices)
    return (
        f"the file of the mobile robot {robot.identity.robot_id} "
        f"({robot.runtime.mode}, motors: {motors}, sensors: {sensors})"
    )


def place_copies(
    robots: Mapping[str, Config],
    copies: Collection[str],
    environment: "Environment",
    read: Callable[[str], bytes],
) -> dict[str, Config]:
    """The copies of ``robots`` with poses on the free floor."""
    from understudy.robots.mobile.group import robot_of
    from understudy.robots.mobile.placement import place_copies as place

    new = set(copies)
    originals = {name: config for name, config in robots.items() if name not in new}
    files = {name: robot_of(name, config, read(config.file)) for name, config in originals.items()}
    return place(robots, files, copies, environment)


def kernel_probe() -> Any:
    """A kernel that is in the cache if all kernels of mobile robots are."""
    from understudy.robots.mobile.runtime.late_drives import give_ramped

    return give_ramped


def warm_kernels() -> "Callable[[], None]":
    """Imports the kernels of mobile robots; the result compiles them."""
    from understudy.robots.mobile.warm import warm

    return partial(warm, see_each_other=True)


def group_wires(
    robots: Mapping[str, Config],
    sections: Mapping[str, Any],
    find: Callable[[str], tuple[str, str]],
) -> "Mapping[str, Wire]":
    """The wire of the endpoint `nats`."""
    from understudy.robots.mobile.config.server import wire_of

    files = {name: config.file for name, config in robots.items()}
    return {"nats": wire_of(files, sections.get("nats"), find)}


def sections_of_shard(
    sections: Mapping[str, Any], robots: int, elsewhere: Sequence[str] | None
) -> dict[str, Any]:
    """The sections of a cell for one of several processes; a `ConfigError` if its robots cannot be
    divided. ``robots``: of all processes; ``elsewhere``: those of the others, for the first one."""
    from understudy.robots.mobile.config.fleet_keys import FleetKeys, divided

    return {**sections, "fleet": divided(sections.get("fleet") or FleetKeys(), robots, elsewhere)}


def sections_beside_first_shard(
    sections: Mapping[str, Any], endpoints: Mapping[str, str]
) -> dict[str, Any]:
    """The sections of a cell for the processes of a divided fleet that have no server.
    ``endpoints``: of the first one."""
    from understudy.robots.mobile.config import server

    return server.sections_beside_first_shard(sections, endpoints)


def name_in_file(text: str, path: str) -> str:
    """The robotId in a robot_config.json that a cell file includes."""
    from understudy.robots.mobile.config.robot_file import read_robot_file

    return read_robot_file(text, path).identity.robot_id


def operator_actions(robot: Any) -> "OperatorActions":
    from understudy.robots.mobile.robot import MobileActions

    return MobileActions(robot)


def robot_model(config: Config, robot: Any) -> "RobotModel":
    from understudy.robots.mobile.robot import model_of

    return model_of(robot)


def recorded(config: "CellConfig", robot: str, chat: "Chat") -> "Recorded":
    from understudy.robots.mobile.fit import recorded_robot

    return recorded_robot(config, robot, chat)


def recorded_runs(
    config: "CellConfig",
    programs: Mapping[str, str | bytes],
    faults: "FaultSource",
    run: "Run",
) -> "dict[str, RecordedRun]":
    """The runs of all mobile robots of a cell with these missions, by robot."""
    from understudy.robots.mobile.offline import recorded_runs

    return recorded_runs(config, programs, faults, run)


def prepare() -> None:
    """Compiles all kernels, or loads those that were compiled before."""
    from understudy.robots.mobile.warm import warm

    warm()
