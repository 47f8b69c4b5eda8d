"""Checks of sections of pickplace.yaml that must fit together."""

from collections.abc import Mapping
from typing import Any

from understudy.config.job_sections import PickPlaceSections
from understudy.devices.camera import LARGEST_SIDE
from understudy.devices.camera import Config as CameraConfig
from understudy.errors import ConfigError, located_at
from understudy.jobs.pick_place.config import CycleConfig
from understudy.jobs.pick_place.safety_config import SafetyConfig
from understudy.vision.config import VisionConfig
from understudy.vision.detector_config import FindFile, check_detectors, check_files


def check_sections(cycle: CycleConfig, safety: SafetyConfig) -> list[str]:
    """Warnings about zones that are not given; raises ConfigError for values that do not fit."""
    for name, zone in (("pick_zone", safety.pick_zone), ("place_zone", safety.place_zone)):
        if zone is not None and any(a >= b for a, b in zip(zone.min, zone.max, strict=True)):
            allowed = "each number of `min` below that of `max`"
            raise ConfigError(
                "the zone is empty", key=f"safety.{name}", value=zone, allowed=allowed
            )
    _check_source(cycle)
    _check_speeds(cycle, safety)
    enabled = {"pick_zone": safety.enable_pick_zone, "place_zone": safety.enable_place_zone}
    return [
        f"safety.{name} is not given: positions are not checked"
        for name, wanted in enabled.items()
        if wanted and getattr(safety, name) is None
    ]


def _check_source(cycle: CycleConfig) -> None:
    """Raises ConfigError if the source of the parts lacks its keys."""
    if cycle.source == "fixed" and cycle.pick_position is None:
        raise ConfigError("source: fixed needs a position", key="pickplace.pick_position")
    if cycle.source != "pallet":
        return
    if cycle.source_pallet is None:
        raise ConfigError("source: pallet needs a pallet", key="pickplace.source_pallet")
    if not cycle.source_pallet.depalletise:
        raise ConfigError(
            "parts are taken off in reverse order",
            key="pickplace.source_pallet.depalletise",
            value=False,
            allowed="true",
        )


def _check_speeds(cycle: CycleConfig, safety: SafetyConfig) -> None:
    most = safety.max_approach_speed_mm_s
    speeds = {"approach_speed_mm_s": cycle.approach_speed_mm_s}
    if cycle.insert is not None:
        speeds["insert.speed_mm_s"] = cycle.insert.speed_mm_s
    for key, speed in speeds.items():
        if speed > most:
            raise ConfigError(
                "faster than safety.max_approach_speed_mm_s",
                key=f"pickplace.{key}",
                value=speed,
                allowed=f"up to {most:g}",
            )


def check_seeing(
    sections: PickPlaceSections, given: Mapping[str, Any], find: FindFile | None = None
) -> None:
    """Raises ConfigError for a camera, detectors or a target with which nothing can be seen.
    ``given``: the sections as the file has them; ``find``: finds the files of detectors."""
    vision, hand_eye = sections.vision or VisionConfig(), sections.hand_eye
    by_process = vision.source == "process"
    with located_at("vision"):
        if by_process or hand_eye is not None:  # a calibration always asks the process
            vision.check_address()
            vision.check_camera()
        # Without the key a calibration needs none, and `understudy vision` has its own.
        if by_process and "detectors" in (given.get("vision") or {}):
            check_detectors(vision.detectors)
            check_files(vision.detectors, find or (lambda name: None))
    if hand_eye is not None:
        with located_at("hand_eye.target"):
            hand_eye.target.check()


def check_rendered_size(vision: VisionConfig, devices: Mapping[str, Any]) -> None:
    """Raises ConfigError if the virtual camera of a robot takes a size from the section `vision`
    that it may not have itself; real cameras may be larger. ``devices``: of the robot, by kind."""
    for camera in devices.values():
        if not isinstance(camera, CameraConfig):
            continue
        for key in ("width_px", "height_px"):
            side = getattr(vision, key)
            if getattr(camera, key) is None and side > LARGEST_SIDE:
                raise ConfigError(
                    "too large for the virtual camera, which takes its size from here",
                    key=key,
                    value=side,
                    allowed=f"16 … {LARGEST_SIDE}, or another `{key}` in the key `camera`",
                )
