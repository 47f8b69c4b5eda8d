"""The robot_config.json files of the mobile robots of a cell."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from understudy.robots.mobile.config.profile import (
    BarcodeMarker,
    InitialState,
    ProfilePose,
    SimulationProfile,
)
from understudy.robots.mobile.config.robot_file import RobotFile
from understudy.units import DEG

if TYPE_CHECKING:
    from understudy.robots.mobile import Config


def robot_of(
    name: str, config: "Config", file: RobotFile, markers: tuple[BarcodeMarker, ...] = ()
) -> RobotFile:
    """The file of a robot with what the cell file says of it. ``markers``: of the cell."""
    known = file.identity
    code = config.robot_code or (known.robot_code if known.robot_id == name else name)
    identity = replace(known, robot_id=name, robot_code=code)
    profile = file.runtime.simulation_profile or SimulationProfile()
    state = _initial(config, profile.initial_state)
    world = replace(profile.world, barcode_markers=profile.world.barcode_markers + markers)
    profile = replace(profile, initial_state=state, world=world)
    runtime = replace(file.runtime, simulation_profile=profile)
    return replace(file, identity=identity, runtime=runtime)


def _initial(config: "Config", state: InitialState) -> InitialState:
    if config.pose is not None:
        x, y, yaw = config.pose
        state = replace(state, pose=ProfilePose(x, y, yaw * DEG))
    if config.battery_percent is not None:
        state = replace(state, battery_percent=config.battery_percent)
    return state
