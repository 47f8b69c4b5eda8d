"""Vision: the section `vision` of a robot, vision for its jobs, the process with its cameras."""

import re
from collections.abc import Callable
from functools import partial
from math import dist
from typing import TYPE_CHECKING, Any

from understudy.config.files import find_calibration, path_beside
from understudy.errors import Refused, located_at
from understudy.ports import Component
from understudy.ports.device import SizesPictures
from understudy.ports.fault_reactions import (
    Reaction,
    Reactions,
    Seen,
    Trial,
    start_job,
)
from understudy.ports.jobs import ChildProcesses, JobSections, JobSite
from understudy.ports.object_finder import FoundObjects
from understudy.vision.config import VisionConfig, VisionSource
from understudy.vision.faults import FAULTS as FAULTS

if TYPE_CHECKING:
    from understudy.app.live import Live
    from understudy.config import CellConfig
    from understudy.simulation.cell import Cell

VISION = "vision"
SECTIONS = {VISION: VisionConfig}
CALIBRATION_HEAD = re.compile(r"^hand_eye_calibration\s*:", re.MULTILINE)


def build(site: JobSite) -> dict[str, Component]:
    """Vision is built for the jobs that need it: see `provide`."""
    return {}


def provide(site: JobSite, kind: type, need: Any) -> Any:
    from understudy.vision.assembly import PROVIDES

    return PROVIDES[kind](site, need) if kind in PROVIDES else None


def check(robot: JobSections) -> None:
    """Raises ConfigError for a camera, detectors or a calibration with which nothing is seen."""
    section: VisionConfig | None = robot.sections.get(VISION)
    if section is None:
        return
    from understudy.vision.assembly import camera_of_section

    with located_at(VISION):
        section.check_in_file(robot.given[VISION], partial(path_beside, beside=robot.file))
        camera_of_section(section, calibration_text(section, robot.file))
        for device in robot.devices.values():
            if isinstance(device, SizesPictures):
                device.check_size(section.width_px, section.height_px)


def files(robot: JobSections) -> dict[str, str | None]:
    section: VisionConfig | None = robot.sections.get(VISION)
    return {} if section is None else {VISION: calibration_text(section, robot.file)}


def check_file(text: str, file: str) -> str:
    """What the file is: a calibration of a camera; empty if it is none. Raises ConfigError for one
    that cannot be used."""
    if not CALIBRATION_HEAD.search(text):
        return ""
    from understudy.vision.config import read_calibration

    read_calibration(text, file)
    return "a camera calibration; vision: {hand_eye_calibration_file: …} uses it"


def calibration_text(section: VisionConfig, file: str) -> str | None:
    """The text of the calibration file; None if there is none, or no such file."""
    name = section.calibration_file
    return find_calibration(name, beside=file) if name else None


def add_calibrations(group: Any) -> None:
    from understudy.vision.command_line import camera

    group.command()(camera)


def answer_questions(cell: "Cell", config: "CellConfig") -> None:
    from understudy.vision.in_process import answer_in_process

    answer_in_process(cell, config)


def child_processes(live: "Live", is_up: Callable[[str, str, str], None]) -> ChildProcesses:
    from understudy.vision.child import VisionProcesses

    return VisionProcesses(live, is_up)


def _with_source(config: "CellConfig", source: VisionSource) -> "CellConfig":
    from understudy.vision.assembly import with_source

    return with_source(config, source)


def without_processes(config: "CellConfig") -> "CellConfig":
    return _with_source(config, "ground_truth")


OPTIONS = {VISION: _with_source}


# ── expected reactions to its faults, in the answers that follow ──

SCANNED_S, ANSWERED_S = 30.0, 2.0
NOISE_MM = 1.0


def listen(trial: Trial) -> None:
    results: dict[int, Any] = {}
    trial.notes["results"] = results
    trial.own("vision").on_result(lambda ticket, result, now: results.update({ticket: result}))


def looked(trial: Trial) -> None:
    """the job has just got its first picture"""
    listen(trial)
    start_job(trial)
    trial.run_until(lambda: bool(trial.notes["results"]), SCANNED_S, "no picture")
    (trial.notes["first"],) = trial.notes["results"].values()


def look_again(trial: Trial) -> None:
    """another picture is asked for"""
    trial.notes["ticket"] = trial.part.request("", trial.now)
    trial.advance(ANSWERED_S)


def _result(trial: Trial) -> FoundObjects | None:
    """The disturbed answer."""
    found = trial.notes["results"].get(trial.notes["ticket"])
    return found if isinstance(found, FoundObjects) else None


def _objects(trial: Trial) -> Any:
    found = _result(trial)
    return () if found is None else found.objects


def _is_old(trial: Trial) -> bool:
    answer = trial.notes["results"].get(trial.notes["ticket"])
    return isinstance(answer, Refused) and answer.reason.startswith("an old picture")


def _is_shifted(trial: Trial) -> bool:
    """Every object is beside its true place, by at most the amplitude along each axis."""
    true = {each.part: each.pose for each in trial.notes["first"].objects if each.part}
    shifts = [
        dist(each.pose[:3], true[each.part][:3]) * 1e3
        for each in _objects(trial)
        if each.part in true
    ]
    return bool(shifts) and all(0.0 < by <= NOISE_MM * 3**0.5 for by in shifts)


REACTIONS: Reactions = {
    "vision_no_object": Reaction(
        looked,
        (Seen("no object is reported", lambda t: _result(t) is not None and not _objects(t)),),
        then=look_again,
    ),
    "vision_low_confidence": Reaction(
        looked,
        (
            Seen(
                "all objects have the confidence 0.3",
                lambda t: {each.confidence for each in _objects(t)} == {0.3},
            ),
        ),
        then=look_again,
    ),
    "vision_noise": Reaction(
        looked, (Seen("objects are reported beside their places", _is_shifted),), then=look_again
    ),
    "vision_silent": Reaction(
        looked, (Seen("no answer comes", lambda t: _result(t) is None),), then=look_again
    ),
    "vision_old_picture": Reaction(
        looked,
        (Seen("the answer comes late, and is refused as an old picture", _is_old),),
        parameters={"late_s": 1.0},
        then=look_again,
    ),
    "vision_wrong_class": Reaction(
        looked,
        (
            Seen(
                "all objects have the class `unknown`",
                lambda t: {each.class_name for each in _objects(t)} == {"unknown"},
            ),
        ),
        then=look_again,
    ),
}
