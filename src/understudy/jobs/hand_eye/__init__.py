"""The hand-eye calibration of a robot's camera as a job, its commands, page and command line."""

from collections.abc import Mapping
from typing import Any

from understudy.errors import located_at
from understudy.jobs.hand_eye.config import HandEyeConfig
from understudy.ports import Component
from understudy.ports.job_arm import JobArm
from understudy.ports.jobs import JobSections, JobSite
from understudy.ports.object_finder import ObjectFinder

HAND_EYE = "hand_eye"
SECTIONS = {HAND_EYE: HandEyeConfig}


def needs(sections: Mapping[str, Any]) -> tuple[type, ...]:
    return (JobArm, ObjectFinder) if HAND_EYE in sections else ()


def check(robot: JobSections) -> None:
    with located_at(f"{HAND_EYE}.target"):
        robot.sections[HAND_EYE].target.check()


def build(site: JobSite) -> dict[str, Component]:
    """`hand_eye_motion`, `hand_eye`, and the vision that it asks if no other job of the robot has
    one that takes pictures."""
    if HAND_EYE not in site.sections:
        return {}
    from understudy.jobs.hand_eye.job import hand_eye_components

    return hand_eye_components(site)


build_real = build
