"""Builds the mode manager of a robot from its section `modes`."""

from understudy.jobs.arm_motion import ControllerMotion
from understudy.jobs.modes import MODES
from understudy.jobs.modes.config import ModesConfig, check_modes
from understudy.jobs.modes.manager import ControllerTools, ModeManager, Surroundings
from understudy.ports import Component
from understudy.ports.hand import Hand
from understudy.ports.jobs import JobSite, Played, start_only_if
from understudy.ports.modes import ObeysModes, Settles, ToolsInHand


def mode_components(site: JobSite) -> dict[str, Component]:
    """The mode manager and its moves; without a tool changer tools are changed by hand."""
    config: ModesConfig = site.sections[MODES]
    arm, tools, job = site.arm, site.find(ToolsInHand), site.find(Played)
    check_modes(config, arm.tools, automatic=tools is not None)
    motion = ControllerMotion(arm.controller, arm.move_to, arm.flange)
    around = Surroundings(
        controller=arm.controller,
        arm=motion,
        tools=tools or ControllerTools(arm),
        process=site.find(Settles),
        arc_on=arm.arc_on,
        hand=site.find(Hand),
        job=job,
    )
    manager = ModeManager(config, around)
    if job is not None:
        start_only_if(job, manager.job_refusal)
    if isinstance(site.controller, ObeysModes):
        site.controller.obey(manager)
    return {"modes_motion": motion, "modes": manager}
