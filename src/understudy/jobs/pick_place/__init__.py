"""The pick & place job: cycle, pallet, safety, commands, page, command line, offline check."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from understudy.jobs.pick_place.config import (
    CycleConfig,
    PalletConfig,
    SafetyConfig,
    check_sections,
)
from understudy.jobs.pick_place.reactions import DURING as DURING
from understudy.jobs.pick_place.reactions import EXPLORED as EXPLORED
from understudy.ports import Component
from understudy.ports.hand import Hand
from understudy.ports.job_arm import JobArm
from understudy.ports.jobs import JobSections, JobSite
from understudy.ports.object_finder import ObjectFinder

if TYPE_CHECKING:
    from understudy.app.validate import OfflineJob

CYCLE, SAFETY, PALLET = "pickplace", "safety", "pallet"
SECTIONS = {CYCLE: CycleConfig, SAFETY: SafetyConfig, PALLET: PalletConfig}


def needs(sections: Mapping[str, Any]) -> tuple[type, ...]:
    cycle: CycleConfig | None = sections.get(CYCLE)
    if cycle is None:
        return ()
    return (JobArm, Hand, ObjectFinder) if cycle.looks else (JobArm, Hand)


def check(robot: JobSections) -> None:
    cycle: CycleConfig | None = robot.sections.get(CYCLE)
    if cycle is not None:
        check_sections(cycle, robot.sections.get(SAFETY) or SafetyConfig())


def build(site: JobSite) -> dict[str, Component]:
    """`motion`, `vision`, `pallet`, `source_pallet` and `pick_place`, those that the sections ask
    for; only the pallet without the section `pickplace`."""
    if CYCLE not in site.sections and PALLET not in site.sections:
        return {}
    from understudy.jobs.pick_place.assembly import pick_place_components

    return pick_place_components(site)


build_real = build


def offline_check() -> "OfflineJob":
    """The check of the job without running its cell, for `understudy validate`."""
    from understudy.jobs.pick_place import offline

    return offline
