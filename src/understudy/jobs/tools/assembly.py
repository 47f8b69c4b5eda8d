"""Builds the tool manager of an arm and, if it has a tool changer, the job that changes tools."""

from understudy.jobs.arm_motion import ControllerMotion
from understudy.jobs.tools.change import ToolChanger
from understudy.jobs.tools.manager import ToolManager
from understudy.ports import Component
from understudy.ports.hand import Hand
from understudy.ports.jobs import JobSite
from understudy.ports.tools import ChangesTools


def tool_components(site: JobSite, device: ChangesTools | None) -> dict[str, Component]:
    arm, settings = site.arm, None if device is None else device.settings
    manager = ToolManager(
        table=arm.table,
        controller=arm.controller,
        settings=settings,
        feed_per_second=arm.feed_per_second,
    )
    if settings is None:
        return {"tools": manager}
    motion = ControllerMotion(arm.controller, arm.move_to, arm.flange)
    changer = ToolChanger(
        manager,
        arm=motion,
        pins=site.pins,
        controller=arm.controller,
        settings=settings,
        hand=site.find(Hand),
    )
    return {"tools": manager, "tool_motion": motion, "tool_change": changer}
