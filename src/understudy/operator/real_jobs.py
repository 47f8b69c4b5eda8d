"""The jobs of a REAL robot: the calibration of its camera. All others run in simulation only."""

import logging

from understudy.config import CellConfig
from understudy.errors import Refused
from understudy.ports import Component
from understudy.ports.pick_place import JobArm
from understudy.simulation import scenario
from understudy.vision.config import VisionConfig

log = logging.getLogger(__name__)

HAND_EYE = "hand_eye"


def real_jobs(config: CellConfig, robot: str, arm: JobArm | None) -> dict[str, Component] | Refused:
    """The parts of the jobs by kind, with those that they need; a refusal says why a robot with the
    section `hand_eye` has none."""
    sections = config.robots[robot].pick_place
    if sections.hand_eye is None or arm is None:
        return {}
    vision = sections.vision or VisionConfig()
    if not vision.camera and vision.start:
        return Refused(
            f"{robot} is REAL and its camera is simulated: name the real one in vision.camera, as "
            "opencv:0, or start the vision process elsewhere (vision.start: false)"
        )
    from understudy.jobs.hand_eye.build import hand_eye_parts
    from understudy.jobs.pick_place.build import JobSite

    site = JobSite(
        name=robot,
        arm=arm,
        gripper=None,
        pins=None,
        parts=None,
        camera=lambda: config.camera(robot),
        fault_source=scenario.build(scenario.Config(), config.head.seed),
        warn=log.warning,
        has_camera=True,
    )
    return hand_eye_parts(sections.hand_eye, vision, site, {})
