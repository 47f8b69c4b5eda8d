"""Builds the hand-eye calibration of a robot from its section `hand_eye`."""

from understudy.errors import located_at
from understudy.jobs.arm_motion import ControllerMotion
from understudy.jobs.hand_eye import HAND_EYE
from understudy.jobs.hand_eye.config import HandEyeConfig
from understudy.jobs.hand_eye.job import CalibrationVision, Equipment, HandEyeJob
from understudy.ports import Component
from understudy.ports.jobs import JobSite, StartsWhenAllowed, keep_apart
from understudy.ports.vision import Vision, VisionUse
from understudy.units import NS_PER_MS, nanoseconds


def hand_eye_components(site: JobSite) -> dict[str, Component]:
    config: HandEyeConfig = site.sections[HAND_EYE]
    own: dict[str, Component] = {}
    with located_at(f"{HAND_EYE}.target"):
        config.target.check()
    asked = site.find(CalibrationVision)
    if asked is None:
        name = "vision" if site.find(Vision) is None else "hand_eye_vision"
        own[name] = asked = _vision(site, config, name)
    arm = site.arm
    own["hand_eye_motion"] = motion = ControllerMotion(arm.controller, arm.move_to, arm.flange)
    own[HAND_EYE] = job = HandEyeJob(config, Equipment(motion, arm, asked, site.tool))
    for other in site.find_all(StartsWhenAllowed):
        keep_apart(job, other)
    return own


def _vision(site: JobSite, config: HandEyeConfig, name: str) -> CalibrationVision:
    need = VisionUse(
        f"{site.name}.{name}",
        latency=nanoseconds(config.latency_s),
        timeout=round(config.timeout_ms * NS_PER_MS),
        pictures=True,
    )
    found = site.provide(Vision, need)
    assert isinstance(found, CalibrationVision)
    return found
