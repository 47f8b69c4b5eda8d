"""Builds the mode manager of a robot from its section `modes`."""

from collections.abc import Mapping
from typing import Any

from understudy.jobs.arm_motion import ControllerMotion
from understudy.jobs.modes.config import ModesConfig, check_modes
from understudy.jobs.modes.controller_tools import ControllerTools
from understudy.jobs.modes.manager import ModeManager, Surroundings
from understudy.jobs.pick_place.manager import PickPlaceManager
from understudy.ports import Component
from understudy.ports.modes import ObeysModes, Settles, ToolsInHand
from understudy.ports.pick_place import Gripper, JobArm


def mode_parts(
    config: ModesConfig,
    robot: Any,
    arm: JobArm,
    devices: Mapping[str, Any],
    *,
    tools: ToolsInHand | None = None,
    gripper: Gripper | None = None,
    pick_place: PickPlaceManager | None = None,
) -> dict[str, Component]:
    """The mode manager and its moves. ``tools``: a tool changer; without one, tools are changed by
    hand."""
    check_modes(config, arm.tools, automatic=tools is not None)
    motion = ControllerMotion(arm.controller, arm.move_to, arm.flange)
    process = next((each for each in devices.values() if isinstance(each, Settles)), None)
    around = Surroundings(
        controller=arm.controller,
        arm=motion,
        tools=tools or ControllerTools(arm),
        process=process,
        arc_on=arm.arc_on,
        gripper=gripper,
        pick_place=pick_place,
    )
    manager = ModeManager(config, around)
    if pick_place is not None:
        pick_place.may_start = manager.pick_place_refusal
    if isinstance(robot, ObeysModes):
        robot.obey(manager)
    return {"modes_motion": motion, "modes": manager}
