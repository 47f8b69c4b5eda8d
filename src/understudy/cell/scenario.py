"""Scenario rules: what goes wrong, when, and how often. Deterministic by seed.

A rule with `at_s` is brought about at that time (and every `every_s` after it); a rule without is
asked about by the thing it befalls. Each draws from a random stream of its own, keyed by its name.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from understudy.cell.faults import FAULTS, figures_of
from understudy.chance import draw, spread
from understudy.errors import ConfigError, Refused, unknown
from understudy.ports import Injectable, Strike
from understudy.units import NS_PER_MS, nanoseconds

HAZE_GRAIN = 10 * NS_PER_MS
"""How long a haze stays the same."""

Seconds = Annotated[float, Meta(ge=0, le=1e9)]
Period = Annotated[float, Meta(ge=1e-3, le=1e9)]
Probability = Annotated[float, Meta(ge=0, le=1)]


class Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that goes wrong: `fault` befalls `on`."""

    fault: str
    on: str
    probability: Probability = 1.0
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


class Count(Struct):
    """How often a rule was asked or brought about, and how often it struck."""

    tries: int = 0
    strikes: int = 0


class Scenario:
    """`Luck` for those who ask, and a `Part` for what is brought about."""

    def __init__(self, rules: Mapping[str, Rule], seed: int) -> None:
        self._rules = rules
        self._seed = seed
        self._counts = {name: Count() for name in rules}
        self._figures = {name: figures_of(r.fault, r.parameters) for name, r in rules.items()}
        self._places: Mapping[str, Injectable] = {}

    def act_on(self, places: Mapping[str, Injectable]) -> None:
        """Told once, when the cell is put together, whom the rules can befall."""
        self._places = places
        for name, rule in self._rules.items():
            problem = misplaced(rule.fault, rule.on, places)
            if problem is not None:
                raise problem.within(f"scenario.rules.{name}")

    # ── asked ──

    def strike(self, fault: str, place: str, now: int) -> Strike | None:
        """Every rule that fits is tried, so that none shifts another's luck; the first acts."""
        acts: Strike | None = None
        for name, rule in self._rules.items():
            if (rule.fault, rule.on) == (fault, place) and rule.covers(now):
                index = self._counts[name].tries
                if self._try(name) and acts is None:
                    acts = Strike(name, index, self._figures[name])
        return acts

    def haze(self, fault: str, place: str, now: int) -> Strike | None:
        for name, rule in self._rules.items():
            if (rule.fault, rule.on) == (fault, place) and rule.covers(now):
                return Strike(name, now // HAZE_GRAIN, self._figures[name])
        return None

    def deviations(self, strike: Strike, count: int) -> tuple[float, ...]:
        name = f"{strike.rule}.deviation"
        return spread(self._seed, name, strike.index, count=count, amplitude=1.0)

    # ── brought about ──

    def next_wake(self) -> int | None:
        dues = (rule.due(self._counts[name].tries) for name, rule in self._rules.items())
        return min((due for due in dues if due is not None), default=None)

    def wake(self, now: int) -> None:
        for name, rule in self._rules.items():
            due = rule.due(self._counts[name].tries)
            if due is not None and due <= now and self._try(name):
                self._places[rule.on].inject(rule.fault, self._figures[name], now)

    def bring(
        self, fault: str, on: str, parameters: Mapping[str, float], now: int
    ) -> Refused | None:
        """Bring a fault about now, as a person does."""
        problem = misplaced(fault, on, self._places)
        if problem is not None:
            return Refused(str(problem))
        if FAULTS[fault].how == "asked":
            return Refused(f"{fault} acts only by a scenario rule: it is asked about, not brought")
        try:
            figures = figures_of(fault, parameters)
        except ConfigError as problem:
            return Refused(str(problem))
        return self._places[on].inject(fault, figures, now)

    # ── part ──

    def busy(self) -> bool:
        return False

    def status(self, now: int) -> Mapping[str, Count]:
        return {name: msgspec.structs.replace(count) for name, count in self._counts.items()}

    def save(self) -> Mapping[str, Count]:
        return self.status(0)

    def load(self, state: Any) -> None:
        counts = msgspec.convert(state, dict[str, Count])
        if counts.keys() != self._rules.keys():
            raise msgspec.ValidationError(f"counts of other rules: {', '.join(counts) or 'none'}")
        self._counts = counts

    def _try(self, name: str) -> bool:
        count = self._counts[name]
        hit = draw(self._seed, name, count.tries) < self._rules[name].probability
        count.tries += 1
        count.strikes += hit
        return hit


def misplaced(fault: str, on: str, places: Mapping[str, Injectable]) -> ConfigError | None:
    """Why this fault cannot act there, if so."""
    if fault not in FAULTS:
        return unknown("fault", fault, FAULTS, key="fault")
    if on not in places:
        return unknown("robot or face", on, places, key="on")
    known = places[on].faults()
    if fault not in known:
        able = ", ".join(known) or "no fault at all"
        return ConfigError(f"{fault} cannot act there", key="on", value=on, allowed=able)
    return None


def check(rule: Rule) -> None:
    """What can be said of a rule before the cell is there."""
    fault = FAULTS.get(rule.fault)
    if fault is None:
        raise unknown("fault", rule.fault, FAULTS, key="fault")
    if fault.how == "brought" and rule.at_s is None:
        raise ConfigError(f"{rule.fault} is brought about and needs a time", key="at_s")
    if fault.how == "asked" and rule.at_s is not None:
        raise ConfigError(
            f"{rule.fault} acts whenever it is asked about: use from_s and until_s",
            key="at_s",
            value=rule.at_s,
        )
    _check_times(rule)
    figures_of(rule.fault, rule.parameters)


def _check_times(rule: Rule) -> None:
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


def build(config: Config, seed: int) -> Scenario:
    for name, rule in config.rules.items():
        try:
            check(rule)
        except ConfigError as problem:
            raise problem.within(f"scenario.rules.{name}") from None
    return Scenario(config.rules, seed)
