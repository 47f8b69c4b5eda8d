"""Scenario rules as the cell file writes them, and what is wrong with one."""

from collections.abc import Collection, Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct

from understudy.errors import ConfigError, unknown
from understudy.ports import Injectable
from understudy.simulation.faults import FAULTS, NOISES, WIRE_FAULTS, figures_of
from understudy.units import nanoseconds

Seconds = Annotated[float, Meta(ge=0, le=1e9)]
Period = Annotated[float, Meta(ge=1e-3, le=1e9)]
Probability = Annotated[float, Meta(ge=0, le=1)]


class When(Struct, frozen=True, forbid_unknown_fields=True):
    """What sets a rule off: a command on a face, an edge of a pin, the tool coming near a point,
    or a contact.

    `of`: the face, the pins (`g60.io`) or the robot that is watched. `collision`: what is touched,
    by the name of either side; `any`: whatever it is.
    """

    of: str
    command: str | None = None
    pin: str | None = None
    edge: Literal["rise", "fall"] = "rise"
    near_mm: tuple[float, float, float] | None = None
    within_mm: Annotated[float, Meta(gt=0)] = 10.0
    collision: str | None = None
    after_s: Seconds = 0.0


class Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that goes wrong: `fault` befalls `on`."""

    fault: str
    on: str
    probability: Probability = 1.0
    when: When | None = None
    times: Annotated[int, Meta(ge=1)] | None = None
    at_s: Seconds | None = None
    every_s: Period | None = None
    from_s: Seconds = 0.0
    until_s: Seconds | None = None
    parameters: dict[str, float] = {}

    def covers(self, now: int) -> bool:
        if now < nanoseconds(self.from_s):
            return False
        return self.until_s is None or now < nanoseconds(self.until_s)

    def due(self, occurrence: int) -> int | None:
        """When a scripted rule acts for the n-th time."""
        if self.at_s is None or (occurrence > 0 and self.every_s is None):
            return None
        at = nanoseconds(self.at_s) + occurrence * nanoseconds(self.every_s or 0.0)
        return None if self.until_s is not None and at >= nanoseconds(self.until_s) else at


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The `scenario` section of a cell file."""

    rules: dict[str, Rule] = {}


def misplaced(
    fault: str, on: str, places: Mapping[str, Injectable], endpoints: Collection[str] = ()
) -> ConfigError | None:
    """Why this fault cannot act there, if so; ``endpoints``: the places that are faces."""
    if fault not in FAULTS:
        return unknown("fault", fault, FAULTS, key="fault")
    if on not in places:
        return unknown("robot or face", on, places, key="on")
    known = places[on].faults() + (WIRE_FAULTS if on in endpoints else ())
    if fault not in known:
        able = ", ".join(known) or "no fault at all"
        return ConfigError(f"{fault} cannot act there", key="on", value=on, allowed=able)
    return None


def check(rule: Rule) -> None:
    """What can be said of a rule before the cell is there."""
    fault = FAULTS.get(rule.fault)
    if fault is None:
        raise unknown("fault", rule.fault, FAULTS, key="fault")
    if fault.how == "brought" and (rule.at_s is None) == (rule.when is None):
        raise ConfigError(
            f"{rule.fault} is brought about and needs either a time or `when`", key="at_s"
        )
    if fault.how == "asked" and (rule.at_s, rule.when) != (None, None):
        raise ConfigError(
            f"{rule.fault} acts whenever it is asked about: use from_s and until_s",
            key="at_s",
            value=rule.at_s,
        )
    _check_times(rule)
    _check_when(rule.when)
    figures_of(rule.fault, rule.parameters)


THINGS = ("command", "pin", "near_mm", "collision")


def _check_when(when: When | None) -> None:
    if when is None:
        return
    given = [key for key in THINGS if getattr(when, key) is not None]
    if len(given) != 1:
        raise ConfigError(
            "one thing sets a rule off",
            key="when",
            value=given or None,
            allowed=f"one of {', '.join(THINGS)}",
        )


def _check_times(rule: Rule) -> None:
    counted = FAULTS[rule.fault].how == "asked" and rule.fault not in NOISES
    if rule.times is not None and rule.when is None and not counted:
        problem = "times goes with `when`, or with a fault that befalls commands or answers"
        raise ConfigError(problem, key="times", value=rule.times)
    if rule.every_s is not None and rule.at_s is None:
        raise ConfigError("every_s goes with at_s", key="every_s", value=rule.every_s)
    if rule.at_s is not None and rule.from_s > 0.0:
        raise ConfigError(f"{rule.fault} begins at at_s", key="from_s", value=rule.from_s)
    begins = rule.from_s if rule.at_s is None else rule.at_s
    if rule.until_s is not None and rule.until_s <= begins:
        raise ConfigError(
            "the rule ends before it begins",
            key="until_s",
            value=rule.until_s,
            allowed=f"more than {begins:g}",
        )
