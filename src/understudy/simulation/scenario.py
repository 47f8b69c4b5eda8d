"""Scenario rules: what goes wrong, when, and how often. Deterministic by seed.

A rule with `at_s` is brought about at that time (and every `every_s` after it); a rule without is
asked about by the thing it befalls. Each draws from a random stream of its own, keyed by its name.
"""

from collections.abc import Collection, Mapping
from math import dist
from typing import Any

import msgspec
from msgspec import Struct

from understudy.chance import draw, symmetric_draws
from understudy.errors import ConfigError, Refused, unknown
from understudy.ports import ActiveFault, Injectable
from understudy.simulation.faults import FAULTS, WIRE_FAULTS, figures_of
from understudy.simulation.rules import Config, Rule, When, check, misplaced
from understudy.units import MM, NS_PER_MS, nanoseconds

HAZE_GRAIN = 10 * NS_PER_MS
"""How long a ambient stays the same."""
WATCH = 10 * NS_PER_MS
"""How often the tool is looked at, while its robot moves and a rule waits for it."""


class Count(Struct):
    """How often a rule was asked or brought about, and how often it struck."""

    tries: int = 0
    strikes: int = 0


class Pending(Struct, frozen=True, order=True):
    """A rule that was set off and acts a little later."""

    due: int
    rule: str


class State(Struct):
    """All that the rules remember. `near`: the rules whose point the tool is near already."""

    counts: dict[str, Count]
    pending: list[Pending] = []
    near: list[str] = []
    seen: int = 0


class Scenario:
    """`FaultSource` for those who ask, and a `Part` for what is brought about."""

    def __init__(self, rules: Mapping[str, Rule], seed: int) -> None:
        self._rules = rules
        self._points: Mapping[str, When] = {
            name: r.when for name, r in rules.items() if r.when and r.when.near_mm is not None
        }
        self._timed = {name: rule for name, rule in rules.items() if rule.at_s is not None}
        self._seed = seed
        self._state = State({name: Count() for name in rules})
        self._figures = {name: figures_of(r.fault, r.parameters) for name, r in rules.items()}
        self._places: Mapping[str, Injectable] = {}
        self._endpoints: Collection[str] = ()

    def act_on(self, places: Mapping[str, Injectable], endpoints: Collection[str] = ()) -> None:
        """Told once, when the cell is put together, whom the rules can befall."""
        self._places = places
        self._endpoints = endpoints
        for name, rule in self._rules.items():
            problem = misplaced(rule.fault, rule.on, places, endpoints)
            if problem is not None:
                raise problem.within(f"scenario.rules.{name}")
            if rule.when is not None:
                self._watch(name, rule.when)

    def _watch(self, name: str, when: When) -> None:
        key = f"scenario.rules.{name}.when"
        if when.of not in self._places:
            raise unknown("thing to watch", when.of, self._places, key=f"{key}.of")
        if when.command is not None and when.of not in self._endpoints:
            raise unknown("endpoint to listen to", when.of, self._endpoints, key=f"{key}.of")
        watched: Any = self._places[when.of]
        if when.near_mm is not None and not hasattr(watched, "tcp"):
            raise ConfigError("has no tool to watch", key=f"{key}.of", value=when.of)
        if when.collision is not None:
            self._watch_contacts(name, when)
        if when.pin is None:
            return
        if not hasattr(watched, "on_edge"):
            raise ConfigError("has no pins", key=f"{key}.of", value=when.of)
        refused = watched.on_edge(when.pin, when.edge, lambda now: self._set_off(name, now))
        if refused:
            raise ConfigError(refused.reason, key=f"{key}.pin")

    def _watch_contacts(self, name: str, when: When) -> None:
        key, watch = (
            f"scenario.rules.{name}.when",
            getattr(self._places[when.of], "collision", None),
        )
        if watch is None:
            raise ConfigError("is not watched for contacts", key=f"{key}.of", value=when.of)

        def touched(contact: Any) -> None:
            if when.collision == "any" or when.collision in contact.names:
                self._set_off(name, contact.at)

        watch.on_collision(touched)

    # ── set off ──

    def received(self, place: str, command: str, now: int) -> None:
        """A command was read on a face."""
        for name, rule in self._rules.items():
            when = rule.when
            if when and when.of == place and (when.command or "").upper() == command.upper():
                self._set_off(name, now)

    def _set_off(self, name: str, now: int) -> None:
        rule = self._rules[name]
        if rule.when is None or self._spent(name) or not rule.covers(now) or not self._try(name):
            return
        due = now + nanoseconds(rule.when.after_s)
        self._state.pending = sorted([*self._state.pending, Pending(due, name)])

    def _look(self, now: int) -> None:
        """Has a tool come near the point that a rule waits for?"""
        state = self._state
        state.seen = now
        for name, when in self._points.items():
            robot: Any = self._places[when.of]
            point = tuple(value * MM for value in when.near_mm or ())
            near = dist(robot.tcp(now)[:3], point) <= when.within_mm * MM
            if near and name not in state.near:
                state.near = [*state.near, name]
                self._set_off(name, now)
            elif not near and name in state.near:
                state.near = [other for other in state.near if other != name]

    def rule(self, name: str) -> Rule:
        return self._rules[name]

    def disturbs(self) -> set[str]:
        """The endpoints whose answers a rule may lose, delay, repeat or garble."""
        return {rule.on for rule in self._rules.values() if rule.fault in WIRE_FAULTS}

    # ── asked ──

    def draw_fault(self, fault: str, place: str, now: int) -> ActiveFault | None:
        """Every rule that fits is tried, so that none shifts another's draws; the first acts."""
        acts: ActiveFault | None = None
        for name, rule in self._rules.items():
            fits = (rule.fault, rule.on) == (fault, place) and rule.covers(now)
            if fits and not self._spent(name):
                index = self._state.counts[name].tries
                if self._try(name) and acts is None:
                    acts = ActiveFault(name, index, self._figures[name])
        return acts

    def ambient(self, fault: str, place: str, now: int) -> ActiveFault | None:
        for name, rule in self._rules.items():
            if (rule.fault, rule.on) == (fault, place) and rule.covers(now):
                return ActiveFault(name, now // HAZE_GRAIN, self._figures[name])
        return None

    def deviations(self, fault: ActiveFault, count: int) -> tuple[float, ...]:
        name = f"{fault.rule}.deviation"
        return symmetric_draws(self._seed, name, fault.index, count=count, amplitude=1.0)

    # ── brought about ──

    def next_wake(self) -> int | None:
        if not (self._timed or self._points or self._state.pending):
            return None
        dues = [rule.due(self._state.counts[name].tries) for name, rule in self._timed.items()]
        dues += [pending.due for pending in self._state.pending[:1]]
        moving: list[Any] = [self._places[when.of] for when in self._points.values()]
        if any(robot.busy() for robot in moving):
            dues.append((self._state.seen // WATCH + 1) * WATCH)
        return min((due for due in dues if due is not None), default=None)

    def wake(self, now: int) -> None:
        for name, rule in self._timed.items():
            due = rule.due(self._state.counts[name].tries)
            if due is not None and due <= now and self._try(name):
                self._act(name, now)
        if self._points and now >= (self._state.seen // WATCH + 1) * WATCH:
            self._look(now)
        while self._state.pending and self._state.pending[0].due <= now:
            self._act(self._state.pending.pop(0).rule, now)

    def _act(self, name: str, now: int) -> None:
        rule = self._rules[name]
        self._places[rule.on].inject(rule.fault, self._figures[name], now)

    def bring(
        self, fault: str, on: str, parameters: Mapping[str, float], now: int
    ) -> Refused | None:
        """Bring a fault about now, as a person does."""
        problem = misplaced(fault, on, self._places, self._endpoints)
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
        return {name: msgspec.structs.replace(count) for name, count in self._state.counts.items()}

    def save(self) -> State:
        return self._state

    def load(self, state: Any) -> None:
        saved = msgspec.convert(state, State)
        if saved.counts.keys() != self._rules.keys():
            names = ", ".join(saved.counts) or "none"
            raise msgspec.ValidationError(f"counts of other rules: {names}")
        self._state = saved

    def _spent(self, name: str) -> bool:
        times = self._rules[name].times
        return times is not None and self._state.counts[name].strikes >= times

    def _try(self, name: str) -> bool:
        count = self._state.counts[name]
        hit = draw(self._seed, name, count.tries) < self._rules[name].probability
        count.tries += 1
        count.strikes += hit
        return hit


def build(config: Config, seed: int) -> Scenario:
    for name, rule in config.rules.items():
        try:
            check(rule)
        except ConfigError as problem:
            raise problem.within(f"scenario.rules.{name}") from None
    return Scenario(config.rules, seed)
