"""Builds the vision of a robot from its section `vision`, for the jobs that use it."""

from collections.abc import Callable
from dataclasses import dataclass

from understudy.errors import ConfigError, located_at
from understudy.ports import FaultSource
from understudy.ports.vision import VisionUse
from understudy.ports.workpieces import SeenWorkpieces
from understudy.sight.camera import CameraModel
from understudy.space.pose import Pose
from understudy.space.transform import matrix
from understudy.vision.bridge import ProcessVision
from understudy.vision.config import VisionConfig
from understudy.vision.detector_config import DetectorChoice
from understudy.vision.ground_truth import GroundTruthVision


@dataclass(frozen=True)
class VisionSite:
    """The robot for which vision is built. `flange`: its pose in the cell. `camera`: as the section
    and its calibration file describe it; `has_camera`: a virtual one. `workpieces`: of the cell,
    which ground-truth vision sees."""

    name: str
    flange: Callable[[int], Pose]
    camera: Callable[[], CameraModel]
    fault_source: FaultSource
    has_camera: bool = False
    workpieces: SeenWorkpieces | None = None


def vision_parts(
    config: VisionConfig,
    site: VisionSite,
    *,
    detection: VisionUse | None = None,
    calibration: VisionUse | None = None,
) -> dict[str, ProcessVision | GroundTruthVision]:
    """`vision`, for the job that looks for objects, and for the one that calibrates the camera.

    A calibration always asks the process: beside vision that knows the parts without pictures it
    gets a `hand_eye_vision` of its own."""
    found: dict[str, ProcessVision | GroundTruthVision] = {}
    if detection is not None:
        found["vision"] = _detecting(config, site, detection)
    if calibration is not None and not isinstance(found.get("vision"), ProcessVision):
        name = "hand_eye_vision" if found else "vision"
        found[name] = _calibrating(config, site, calibration, name)
    return found


def _detecting(
    config: VisionConfig, site: VisionSite, use: VisionUse
) -> ProcessVision | GroundTruthVision:
    """Vision that looks for objects: with the detectors of the section, or without pictures."""
    with located_at("vision"):
        config.check()
    if config.source == "process":
        _check_camera(config, site, "the vision process needs a camera")
        return _process(config, site, use, "vision", DetectorChoice(config.detectors))
    if site.workpieces is None:
        raise ConfigError("ground-truth vision needs parts in the cell", key="vision.source")
    return GroundTruthVision(
        f"{site.name}.vision",
        site.workpieces,
        lambda now: matrix(site.flange(now)),
        camera=site.camera(),
        latency=use.latency,
        fault_source=site.fault_source,
    )


def _calibrating(
    config: VisionConfig, site: VisionSite, use: VisionUse, name: str
) -> ProcessVision:
    """Vision that looks for the target of a calibration, and for no objects."""
    with located_at("vision"):
        config.check_address()
    _check_camera(config, site, "the hand-eye calibration needs a camera")
    return _process(config, site, use, name, None)


def _check_camera(config: VisionConfig, site: VisionSite, problem: str) -> None:
    if not config.camera and not site.has_camera:
        allowed = "camera: {} of the robot (a virtual one), opencv:0 or files:DIR here"
        raise ConfigError(problem, key="vision.camera", allowed=allowed)


def _process(
    config: VisionConfig,
    site: VisionSite,
    use: VisionUse,
    name: str,
    detectors: DetectorChoice | None,
) -> ProcessVision:
    given = {"exposure_ms": config.exposure_ms, "gain_db": config.gain_db}
    return ProcessVision(
        f"{site.name}.{name}",
        config.camera_address,
        site.flange,
        camera=site.camera(),
        latency=use.latency,
        timeout=use.timeout,
        fault_source=site.fault_source,
        shot={key: value for key, value in given.items() if value is not None},
        obstacles=use.points,
        detectors=detectors,
    )
