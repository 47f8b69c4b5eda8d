"""Builds the hand-eye calibration of a robot from its section `hand_eye`."""

from collections.abc import Callable, Mapping
from typing import Any

from understudy.errors import ConfigError, located_at
from understudy.jobs.arm_motion import ControllerMotion
from understudy.jobs.hand_eye.config import HandEyeConfig
from understudy.jobs.hand_eye.equipment import Equipment
from understudy.jobs.hand_eye.job import HandEyeJob
from understudy.jobs.pick_place.build import JobSite, shot_of
from understudy.ports import Component
from understudy.units import NS_PER_MS, nanoseconds
from understudy.vision.bridge import ProcessVision
from understudy.vision.config import VisionConfig


def hand_eye_parts(
    config: HandEyeConfig, vision: VisionConfig, site: JobSite, others: Mapping[str, Any]
) -> dict[str, Component]:
    """The parts `hand_eye_motion` and `hand_eye`, and the vision process that they ask, if no other
    job of the robot has one. ``others``: the parts of those jobs."""
    own: dict[str, Component] = {}
    with located_at("hand_eye.target"):
        config.target.check()
    asked = others.get("vision")
    if not isinstance(asked, ProcessVision):
        name = "hand_eye_vision" if "vision" in others else "vision"
        own[name] = asked = _vision(config, vision, site, f"{site.name}.{name}")
    own["hand_eye_motion"] = motion = ControllerMotion(
        site.arm.controller, site.arm.move_to, site.arm.flange
    )
    own["hand_eye"] = job = HandEyeJob(config, Equipment(motion, site.arm, asked, site.tool))
    if (cycle := others.get("pick_place")) is not None:
        job.may_start = cycle.occupied
    return own


def keep_apart(job: HandEyeJob, cycle: Any) -> None:
    """A pick & place cycle does not start while its robot is calibrated."""
    before: Callable[[int], Any] = cycle.may_start
    cycle.may_start = lambda now: job.occupied(now) or before(now)


def _vision(config: HandEyeConfig, vision: VisionConfig, site: JobSite, name: str) -> ProcessVision:
    with located_at("vision"):
        vision.check_address()
    if not vision.camera and not site.has_camera:
        raise ConfigError(
            "the hand-eye calibration needs a camera",
            key="vision.camera",
            allowed="camera: {} of the robot (a virtual one), opencv:0 or files:DIR here",
        )
    return ProcessVision(
        name,
        vision.camera_address,
        site.arm.flange,
        camera=site.camera(),
        latency=nanoseconds(config.latency_s),
        timeout=round(config.timeout_ms * NS_PER_MS),
        fault_source=site.fault_source,
        shot=shot_of(vision),
    )
