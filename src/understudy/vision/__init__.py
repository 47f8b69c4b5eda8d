"""Vision: the section `vision` of a robot, vision for its jobs, the process with its cameras."""

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from understudy.config.files import find_calibration, path_beside
from understudy.errors import located_at
from understudy.ports import Component
from understudy.ports.device import SizesPictures
from understudy.ports.jobs import ChildProcesses, JobSections, JobSite
from understudy.vision.config import VisionConfig, VisionSource
from understudy.vision.faults import FAULTS as FAULTS
from understudy.vision.reactions import REACTIONS as REACTIONS

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
