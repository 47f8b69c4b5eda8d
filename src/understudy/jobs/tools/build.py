"""Builds the tool manager of an arm and, if it has a tool changer, the job that changes tools."""

from collections.abc import Mapping
from typing import Any

from understudy.jobs.arm_motion import ControllerMotion
from understudy.jobs.tools.change import ChangerPins, ToolChanger
from understudy.jobs.tools.manager import ToolManager
from understudy.ports import Component
from understudy.ports.pick_place import JobArm
from understudy.ports.tools import ChangesTools


def tool_parts(
    arm: JobArm, pins: ChangerPins, devices: Mapping[str, Any]
) -> tuple[dict[str, Component], ToolChanger | None]:
    """The parts, and the changer if there is one. `tools`: the manager; `tool_change` and
    `tool_motion`: the changer and its moves."""
    device = next((each for each in devices.values() if isinstance(each, ChangesTools)), None)
    settings = None if device is None else device.settings
    manager = ToolManager(
        table=arm.table,
        controller=arm.controller,
        settings=settings,
        feed_per_second=arm.feed_per_second,
    )
    if settings is None:
        return {"tools": manager}, None
    motion = ControllerMotion(arm.controller, arm.move_to, arm.flange)
    changer = ToolChanger(
        manager,
        arm=motion,
        pins=pins,
        controller=arm.controller,
        settings=settings,
        gripper=devices.get("gripper"),
    )
    return {"tools": manager, "tool_motion": motion, "tool_change": changer}, changer
