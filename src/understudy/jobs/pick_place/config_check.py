"""Checks of sections of pickplace.yaml that must fit together."""

from understudy.errors import ConfigError
from understudy.jobs.pick_place.config import CycleConfig
from understudy.jobs.pick_place.safety_config import SafetyConfig


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
