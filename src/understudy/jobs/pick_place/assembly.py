"""Builds the pick & place job of a robot from its sections of pickplace.yaml, and checks them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from understudy.errors import ConfigError, located_at
from understudy.jobs.arm_motion import ControllerMotion
from understudy.jobs.pick_place import CYCLE, PALLET, SAFETY
from understudy.jobs.pick_place.choice import TargetChoice
from understudy.jobs.pick_place.config import (
    ClassName,
    CycleConfig,
    Handshake,
    PalletConfig,
    PinName,
    SafetyConfig,
    check_sections,
)
from understudy.jobs.pick_place.manager import PickPlaceManager
from understudy.jobs.pick_place.obstacles import ObstacleCheck
from understudy.jobs.pick_place.pallet import PalletPattern, unreachable, unreachable_message
from understudy.jobs.pick_place.safety import PickPlaceSafety
from understudy.jobs.pick_place.steps import Equipment, JobPins, SetOutput, WaitInput, handshake
from understudy.ports import Component
from understudy.ports.hand import Hand
from understudy.ports.io import PollsInputs
from understudy.ports.jobs import JobSite
from understudy.ports.object_finder import FINDER, FinderUse, ObjectFinder
from understudy.registry import modules
from understudy.space.pose import Pose
from understudy.units import MM


def pick_place_components(site: JobSite) -> dict[str, Component]:
    cycle: CycleConfig | None = site.sections.get(CYCLE)
    pallet_config: PalletConfig | None = site.sections.get(PALLET)
    own: dict[str, Any] = {}
    pallet = source = None
    place = cycle.place_position if cycle is not None else None
    if pallet_config is not None:
        with located_at(PALLET):
            own["pallet"] = pallet = PalletPattern(pallet_config, place)
    if cycle is None:
        return own
    safety = site.sections.get(SAFETY) or SafetyConfig()
    for warning in check_sections(cycle, safety):
        site.warn(f"{site.name}: {warning}")
    hand, arm = site.find(Hand), site.arm
    if hand is None:
        raise ConfigError("pick & place needs a hand", allowed=_hands())
    if cycle.source == "pallet" and cycle.source_pallet is not None:
        with located_at("pickplace.source_pallet"):
            own["source_pallet"] = source = PalletPattern(cycle.source_pallet, cycle.pick_position)
    _check_pins(cycle, site.pins)
    read_since = _follow_inputs(cycle, site.pins)
    own["motion"] = motion = ControllerMotion(arm.controller, arm.move_to, arm.flange, read_since)
    limits = PickPlaceSafety(safety, cycle)
    finder = _finder(cycle, site, limits)
    if finder is not None:
        own[FINDER] = finder
    _check_positions(cycle, limits, site, pallet, source)
    choice = TargetChoice(
        cycle,
        limits,
        arm=motion,
        reach=arm.reach,
        finder=finder,
        pallet=pallet,
        source=source,
        obstacles=_obstacle_check(safety, finder, site, pallet),
    )
    equipment = Equipment(motion, hand, finder, site.pins)
    own["pick_place"] = PickPlaceManager(cycle, limits, choice, equipment, arm.reach)
    return own


def _finder(cycle: CycleConfig, site: JobSite, limits: PickPlaceSafety) -> ObjectFinder | None:
    if not cycle.looks:
        return None
    need = FinderUse(
        f"{site.name}.{FINDER}",
        latency=cycle.look_latency,
        timeout=limits.picture_timeout,
        points=limits.config.obstacle_check,
    )
    return site.provide(ObjectFinder, need)


def _obstacle_check(
    safety: SafetyConfig,
    finder: ObjectFinder | None,
    site: JobSite,
    pallet: PalletPattern | None,
) -> ObstacleCheck | None:
    """None unless `safety.obstacle_check` is on; raises ConfigError where it cannot work. Without
    pictures, as in offline checks, it writes a warning to the log and checks nothing."""
    if not safety.obstacle_check:
        return None
    if finder is not None and not finder.takes_pictures:
        said = "safety.obstacle_check: without pictures unknown objects are not looked for"
        site.warn(f"{site.name}: {said}")
        return None
    with located_at("safety.obstacle_check"):
        if finder is None:
            raise ConfigError(
                "the check of obstacles needs the depth image of a vision process",
                allowed="vision: {source: process} and pickplace: {source: vision}",
            )
        if site.arm.body is None:
            raise ConfigError(
                "the check of obstacles needs the body of the robot",
                allowed="collision: {enable: true}",
            )
    return ObstacleCheck(
        site.arm.body,
        site.environment(),
        lambda now: {} if site.workpieces is None else _sizes(site.workpieces, now),
        margin=safety.obstacle_margin_mm * MM,
        filled=lambda: (
            []
            if pallet is None
            else [pallet.layout.pose(n) for n in range(pallet.get_current_index())]
        ),
    )


def _sizes(parts: Any, now: int) -> dict[str, tuple[float, float, float]]:
    """The sizes of the parts of the cell, by class."""
    readings = (parts.reading(name, now) for name in parts.names())
    return {each.class_name: each.size for each in readings}


def _hands() -> str:
    """The devices that take hold of parts, as keys of a robot."""
    able = (kind for _, kind, each in modules("devices") if getattr(each, "USES_WORKPIECES", False))
    return " or ".join(f"{kind}: {{}}" for kind in able)


# ── checks ──────────────────────────────────────────────────────────────────────────────────────


def _check_pins(cycle: CycleConfig, pins: JobPins | None) -> None:
    """Raises ConfigError for a pin of handshake or insert that the robot does not have."""
    for key, pin, bank in _used_pins(cycle):
        if pins is None:
            raise ConfigError("the robot has no pins", key=key)
        try:
            _READ_PIN[bank](pins, pin)
        except LookupError as problem:
            raise ConfigError(str(problem.args[0]), key=key) from None


def _follow_inputs(cycle: CycleConfig, pins: Any) -> Callable[[int], bool]:
    """Has a REAL controller read the inputs of the cycle; whether all were read since a time."""
    if not isinstance(pins, PollsInputs):
        return lambda since: True
    if cycle.insert is not None and (cycle.insert.contact or cycle.insert.force_input) is not None:
        raise ConfigError(
            "a REAL controller reports no input during a motion: a contact cannot end the insert",
            key="pickplace.insert",
            allowed="insert: {required: false} without contact and force_input",
        )
    pins.follow([pin for _, pin, bank in _used_pins(cycle) if bank == "DI"])
    return pins.read_since


def _used_pins(cycle: CycleConfig) -> Iterator[tuple[str, PinName, str]]:
    """Key, pin and bank (DI, DO, AI) of each pin that the section `pickplace` names."""
    for name in Handshake.__struct_fields__:
        key = f"pickplace.handshake.{name}"
        for step in handshake(getattr(cycle.handshake, name)):
            if isinstance(step, WaitInput):
                yield key, step.pin, "DI"
            elif isinstance(step, SetOutput):
                yield key, step.pin, "DO"
    if (insert := cycle.insert) is not None:
        if insert.contact is not None:
            yield "pickplace.insert.contact", insert.contact, "DI"
        if insert.force_input is not None:
            yield "pickplace.insert.force_input", insert.force_input, "AI"


_READ_PIN: Mapping[str, Callable[[JobPins, PinName], object]] = {
    "DI": lambda pins, pin: pins.digital_input(pin),
    "DO": lambda pins, pin: pins.digital_output(pin),
    "AI": lambda pins, pin: pins.analog_input(pin, 0),
}


def _check_positions(
    cycle: CycleConfig,
    limits: PickPlaceSafety,
    site: JobSite,
    *pallets: PalletPattern | None,
) -> None:
    """Raises ConfigError for a place outside the place zone; warns of places in the pick zone and
    of cells of pallets out of reach. The first pallet has the places."""
    for key, at in _places(cycle, pallets[0]):
        if refused := limits.validate_place_position(at):
            raise ConfigError(refused.reason, key=key)
    if again := _picked_again(cycle, limits, pallets[0]):
        site.warn(f"{site.name}: {again}")
    for each in pallets:
        _check_reach(each, cycle, site)


def _picked_again(cycle: CycleConfig, limits: PickPlaceSafety, pallet: PalletPattern | None) -> str:
    """A warning about places inside the pick zone: vision would find what was placed there."""
    zone = limits.config.pick_zone
    if not cycle.looks or zone is None or not limits.config.enable_pick_zone:
        return ""
    inside = [key for key, at in _places(cycle, pallet) if not limits.validate_pick_position(at)]
    if not inside:
        return ""
    more = f" and {len(inside) - 1} more" if len(inside) > 1 else ""
    return f"{inside[0]}{more} in safety.pick_zone: parts that were placed there are picked again"


def _places(cycle: CycleConfig, pallet: PalletPattern | None) -> Iterator[tuple[str, Pose]]:
    names: list[ClassName] = list(cycle.places)
    yield from ((f"pickplace.places.{name}", cycle.places[name].pose()) for name in names)
    if pallet is None:
        yield "pickplace.place_position", cycle.place_position.pose()
    else:
        layout = pallet.layout
        yield from ((f"pallet, cell {index}", layout.pose(index)) for index in range(layout.total))


def _check_reach(pallet: PalletPattern | None, cycle: CycleConfig, site: JobSite) -> None:
    """Names the cells of a pallet that the arm cannot reach, when the cell is loaded."""
    if pallet is None:
        return
    tool = site.tool
    pallet.unreachable = unreachable(
        pallet.layout,
        lambda poses: site.arm.reaches(poses, tool),
        approach=cycle.approach_distance_mm * MM,
    )
    if pallet.unreachable:
        site.warn(f"{site.name}: {unreachable_message(pallet.layout, pallet.unreachable)}")
