"""Vision of a robot, made from its section `vision` for a job that needs it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import structs

from understudy.config import CellConfig
from understudy.config.files import name_of_cell
from understudy.errors import ConfigError, located_at
from understudy.ports.device import SeesCell
from understudy.ports.jobs import JobSite, needs_of
from understudy.ports.object_finder import FinderUse, ObjectFinder
from understudy.sight.lens import CameraModel
from understudy.vision import VISION, calibration_text
from understudy.vision.bridge import ProcessVision
from understudy.vision.config import (
    CALIBRATE,
    CALIBRATION_FILE,
    VisionConfig,
    VisionSource,
    camera_of,
    read_calibration,
)
from understudy.vision.detector_config import DetectorChoice, check_detectors
from understudy.vision.ground_truth import GroundTruthVision


def section_in_use(sections: Mapping[str, Any]) -> VisionConfig | None:
    """The section `vision` of a robot whose jobs look at something; None if none does."""
    return sections.get(VISION) or VisionConfig() if ObjectFinder in needs_of(sections) else None


def with_source(config: CellConfig, source: VisionSource) -> CellConfig:
    """All robots that look for parts see through the vision process, or through the simulated
    parts themselves."""
    used = {name: section_in_use(robot.sections) for name, robot in config.robots.items()}
    if source == "process" and not any(used.values()):
        raise ConfigError(
            "no robot of this cell looks for parts, so there is nothing to ask the vision process",
            file=config.document.file,
            allowed="a robot with a job that looks for parts, and a camera",
        )
    robots = dict(config.robots)
    for name, section in used.items():
        if section is not None:
            changed = {VISION: structs.replace(section, source=source)}
            robots[name] = structs.replace(robots[name], sections=robots[name].sections | changed)
    return replace(config, robots=robots)


# ── the camera ──────────────────────────────────────────────────────────────────────────────────


def camera_of_section(section: VisionConfig, text: str | None) -> CameraModel:
    """The camera of a section, with the text of its calibration file."""
    found = None
    if text is not None:
        with located_at(CALIBRATION_FILE):
            found = read_calibration(text, section.calibration_file)
    return camera_of(section, found)


def camera_of_robot(
    robot: str, section: VisionConfig, file: str, warn: Callable[[str], None] = lambda text: None
) -> CameraModel:
    """The camera of a robot, with its calibration file read. ``file``: the cell file."""
    text, name = calibration_text(section, file), section.calibration_file
    if name and text is None and section.camera_mm_deg is None:
        where = "flange" if section.mount == "eye_in_hand" else "origin of the cell"
        warn(
            f"{robot}: there is no file {name}: its camera is taken to be at the {where}; "
            f"`{CALIBRATE} --cell {name_of_cell(file)} --out "
            f"{Path(file).parent / name}` writes it, or give vision.camera_mm_deg"
        )
    with located_at(VISION):
        return camera_of_section(section, text)


def _camera(site: JobSite, need: None = None) -> CameraModel:
    return camera_of_robot(site.name, _section(site), site.file, site.warn)


def _section(site: JobSite) -> VisionConfig:
    return site.sections.get(VISION) or VisionConfig()


# ── vision ──────────────────────────────────────────────────────────────────────────────────────


def _vision(site: JobSite, need: FinderUse) -> ObjectFinder:
    """Vision by the process, or by the simulated workpieces themselves."""
    section = _section(site)
    if need.pictures or section.source == "process":
        return _process_vision(site, section, need)
    if site.real:
        raise ConfigError(
            f"{site.name} is REAL, and ground-truth vision sees simulated parts only",
            key="vision.source",
            allowed="vision: {source: process}, or --vision process",
        )
    if site.workpieces is None:
        raise ConfigError("ground-truth vision needs parts in the cell", key="vision.source")
    return GroundTruthVision(
        need.name,
        site.workpieces,
        site.arm.flange,
        camera=_camera(site),
        latency=need.latency,
        fault_source=site.fault_source,
    )


def _process_vision(site: JobSite, section: VisionConfig, need: FinderUse) -> ProcessVision:
    with located_at(VISION):
        section.check_address()
        if need.pictures:
            _check_camera(site, section, "the calibration of a camera")
        else:
            section.check_camera()
            check_detectors(section.detectors)
            _check_camera(site, section, "the vision process")
    shot = {"exposure_ms": section.exposure_ms, "gain_db": section.gain_db}
    return ProcessVision(
        need.name,
        section.camera_address,
        site.arm.flange,
        camera=_camera(site),
        latency=need.latency,
        timeout=need.timeout,
        fault_source=site.fault_source,
        shot={key: value for key, value in shot.items() if value is not None},
        obstacles=need.points,
        detectors=None if need.pictures else DetectorChoice(section.detectors),
        own_camera=not site.real and not section.camera,
    )


def _check_camera(site: JobSite, section: VisionConfig, who: str) -> None:
    """Raises ConfigError if the process has no camera that sees what the robot is at."""
    if section.camera:
        return
    if site.real and section.start:
        raise ConfigError(
            f"{site.name} is REAL and its camera is simulated: name the real one in vision.camera, "
            "as opencv:0, or start the vision process elsewhere (vision.start: false)"
        )
    if not site.real and site.find(SeesCell) is None:
        raise ConfigError(
            f"{who} needs a camera",
            key="camera",
            allowed="camera: {} of the robot (a virtual one), opencv:0 or files:DIR here",
        )


PROVIDES: Mapping[type, Callable[[JobSite, Any], Any]] = {
    CameraModel: _camera,
    ObjectFinder: _vision,
}
