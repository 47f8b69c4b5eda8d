"""Builds the hand-eye calibration of a robot from its section `hand_eye`."""

from understudy.errors import located_at
from understudy.jobs.arm_motion import ControllerMotion
from understudy.jobs.hand_eye import HAND_EYE
from understudy.jobs.hand_eye.config import HandEyeConfig
from understudy.jobs.hand_eye.job import Equipment, HandEyeJob, TargetFinder
from understudy.ports import Component
from understudy.ports.jobs import JobSite, StartsWhenAllowed, keep_apart
from understudy.ports.object_finder import FINDER, FinderUse, ObjectFinder
from understudy.units import NS_PER_MS, nanoseconds


def hand_eye_components(site: JobSite) -> dict[str, Component]:
    config: HandEyeConfig = site.sections[HAND_EYE]
    own: dict[str, Component] = {}
    with located_at(f"{HAND_EYE}.target"):
        config.target.check()
    asked = site.find(TargetFinder)
    if asked is None:
        name = FINDER if site.find(ObjectFinder) is None else f"{HAND_EYE}_{FINDER}"
        own[name] = asked = _finder(site, config, name)
    arm = site.arm
    own["hand_eye_motion"] = motion = ControllerMotion(arm.controller, arm.move_to, arm.flange)
    own[HAND_EYE] = job = HandEyeJob(config, Equipment(motion, arm, asked, site.tool))
    for other in site.find_all(StartsWhenAllowed):
        keep_apart(job, other)
    return own


def _finder(site: JobSite, config: HandEyeConfig, name: str) -> TargetFinder:
    need = FinderUse(
        f"{site.name}.{name}",
        latency=nanoseconds(config.latency_s),
        timeout=round(config.timeout_ms * NS_PER_MS),
        pictures=True,
    )
    found = site.provide(ObjectFinder, need)
    assert isinstance(found, TargetFinder)
    return found
