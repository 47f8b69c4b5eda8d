"""Scenario: rules for which fault acts where, when and how often. Deterministic by seed.

A rule with `at_s` or `when` injects its fault; a rule without them acts when the part that has the
fault queries it. Each rule draws from its own random stream, whose key is the name of the rule.

Faults are declared by the modules of robots, faces, devices and jobs; `declared_faults` lists them.
"""

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from math import dist
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, structs

from understudy.chance import draw, symmetric_draws
from understudy.errors import ConfigError, Refused, located_at, unknown
from understudy.ports import (
    NAMED,
    ActiveFault,
    Figures,
    Injectable,
    NamesPins,
    ReportsCommands,
)
from understudy.ports.faults import BROKER_FAULTS, FACE_FAULTS, Fault, Faults
from understudy.registry import loaded_modules, modules
from understudy.units import MM, NS_PER_MS, NS_PER_SECOND, nanoseconds

AMBIENT_PERIOD = 10 * NS_PER_MS
"""An ambient disturbance keeps its value for this long."""
WATCH_PERIOD = 10 * NS_PER_MS
"""The position of a tool is compared with the points of `near_mm` once per period."""

Seconds = Annotated[float, Meta(ge=0, le=1e9)]
Period = Annotated[float, Meta(ge=1e-3, le=1e9)]
Probability = Annotated[float, Meta(ge=0, le=1)]


# ── declared faults ──

WITH_FAULTS = ("devices", "robots", "faces", "wires")


def _declarations() -> Iterator[tuple[str, Faults]]:
    """Yields what faults act on, and those faults; imports each module when it is needed."""
    yield "any face", FACE_FAULTS
    for _, kind, module in modules("jobs"):
        if faults := getattr(module, "FAULTS", None):
            yield f"{kind} of a robot", faults
    for table, kind, module in modules(*WITH_FAULTS):
        yield f"{table.removesuffix('s')} {kind}", getattr(module, "FAULTS", {})


def _loaded_declarations() -> Iterator[Faults]:
    """Yields the faults of the modules that the cell has loaded already."""
    yield FACE_FAULTS
    for module in loaded_modules(*WITH_FAULTS):
        yield getattr(module, "FAULTS", {})


def declared_faults() -> dict[str, tuple[Fault, list[str]]]:
    """Every fault with what it acts on, through the registry."""
    found: dict[str, tuple[Fault, list[str]]] = {}
    for acts_on, faults in _declarations():
        for name, fault in faults.items():
            found.setdefault(name, (fault, []))[1].append(acts_on)
    return found


def find_fault(name: str) -> Fault:
    """First in what the cell has loaded: other robots may need the compiler of the kernels. Faults
    of one name differ in their texts at most."""
    for faults in chain(_loaded_declarations(), (faults for _, faults in _declarations())):
        if name in faults:
            return faults[name]
    raise unknown("fault", name, declared_faults(), key="fault")


# ── rules ──


class When(Struct, frozen=True, forbid_unknown_fields=True):
    """The trigger of a rule: a command on a face or of a robot, an edge of a pin, the tool near a
    point, or a contact.

    `of`: the face, the pins (`g60.io`) or the robot that is watched. `collision`: the name of
    either side of the contact; `any`: every contact.
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
    """One rule: `fault` acts on the robot, face or device `on`."""

    fault: str
    on: str
    probability: Probability = 1.0
    when: When | None = None
    times: Annotated[int, Meta(ge=1)] | None = None
    at_s: Seconds | None = None
    every_s: Period | None = None
    from_s: Seconds = 0.0
    until_s: Seconds | None = None
    parameters: dict[str, float | str] = {}

    def covers(self, now: int) -> bool:
        if self.from_s > 0.0 and now < nanoseconds(self.from_s):
            return False
        return self.until_s is None or now < nanoseconds(self.until_s)

    def due(self, occurrence: int) -> int | None:
        """When a timed rule acts for the n-th time."""
        if self.at_s is None or (occurrence > 0 and self.every_s is None):
            return None
        at = nanoseconds(self.at_s) + occurrence * nanoseconds(self.every_s or 0.0)
        return None if self.until_s is not None and at >= nanoseconds(self.until_s) else at


MOST_RULES = 1000


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The `scenario` section of a cell file."""

    rules: Annotated[dict[str, Rule], Meta(max_length=MOST_RULES)] = {}


TRIGGERS = ("command", "pin", "near_mm", "collision")


def check(rule: Rule) -> None:
    """Raises a ConfigError for a rule that is invalid in every cell."""
    fault = find_fault(rule.fault)
    if fault.how == "brought" and (rule.at_s is None) == (rule.when is None):
        raise ConfigError(f"{rule.fault} is injected and needs either at_s or `when`", key="at_s")
    if fault.how == "asked" and (rule.at_s, rule.when) != (None, None):
        raise ConfigError(
            f"{rule.fault} acts whenever the robot or face queries it: use from_s and until_s",
            key="at_s",
            value=rule.at_s,
        )
    _check_times(rule, fault)
    _check_when(rule.when)
    fault.parameters(rule.fault, _numbers(rule.parameters))


def _numbers(given: Figures) -> dict[str, float]:
    """The parameters that are numbers: names are known only where the fault acts."""
    return {key: value for key, value in given.items() if not isinstance(value, str)}


def _check_when(when: When | None) -> None:
    if when is None:
        return
    given = [key for key in TRIGGERS if getattr(when, key) is not None]
    if len(given) != 1:
        raise ConfigError(
            "a rule has one trigger",
            key="when",
            value=given or None,
            allowed=f"one of {', '.join(TRIGGERS)}",
        )


def _check_times(rule: Rule, fault: Fault) -> None:
    counted = fault.how == "asked" and not fault.ambient
    if rule.times is not None and rule.when is None and not counted:
        problem = "times needs `when`, or a fault of commands or answers"
        raise ConfigError(problem, key="times", value=rule.times)
    if rule.every_s is not None and rule.at_s is None:
        raise ConfigError("every_s needs at_s", key="every_s", value=rule.every_s)
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


# ── the scenario of a cell ──


class Count(Struct):
    """How often a rule was tried, and how often it acted."""

    tries: int = 0
    strikes: int = 0


class Pending(Struct, frozen=True, order=True):
    """A rule that was triggered and acts at `due`."""

    due: int
    rule: str


class State(Struct):
    """The state of the rules in a snapshot. `near`: rules whose tool is at their point now; `seen`:
    the time of the last check."""

    counts: dict[str, Count]
    pending: list[Pending] = []
    near: list[str] = []
    seen: int = 0


class Scenario:
    """`FaultSource` of the parts that query faults; as a `Component` it injects the others."""

    def __init__(self, rules: Mapping[str, Rule], seed: int) -> None:
        self._rules = rules
        self._points: Mapping[str, When] = {
            name: r.when for name, r in rules.items() if r.when and r.when.near_mm is not None
        }
        self._timed = {name: rule for name, rule in rules.items() if rule.at_s is not None}
        self._seed = seed
        self._state = State({name: Count() for name in rules})
        self._figures = {
            name: find_fault(rule.fault).parameters(rule.fault, _numbers(rule.parameters))
            for name, rule in rules.items()
        }
        self._places: Mapping[str, Injectable] = {}
        self._endpoints: Collection[str] = ()
        self._wire_faults: Mapping[str, Faults] = {}
        self._wires: dict[str, Injectable] = {}

    def act_on(
        self,
        places: Mapping[str, Injectable],
        endpoints: Collection[str] = (),
        wire_faults: Mapping[str, Faults] | None = None,
    ) -> None:
        """Connects the rules with what they act on; ``endpoints``: the places that are faces;
        ``wire_faults``: of the wires of some endpoints, which act in a live cell."""
        self._wire_faults = wire_faults or {}
        self._places = places
        self._endpoints = endpoints
        for name, rule in self._rules.items():
            with located_at(f"scenario.rules.{name}"):
                fault = self._fault_at(rule.fault, rule.on)
                self._figures[name] = self._figures_at(fault, rule.fault, rule.on, rule.parameters)
            if rule.when is not None:
                with located_at(f"scenario.rules.{name}.when"):
                    self._watch(name, rule.when)

    def _fault_at(self, fault: str, on: str) -> Fault:
        """The declaration of a fault at a place; a ConfigError if it cannot act there."""
        if on not in self._places:
            find_fault(fault)
            raise unknown("robot or face", on, self._places, key="on")
        known = {
            **self._places[on].faults(),
            **(FACE_FAULTS if on in self._endpoints else {}),
            **self._wire_faults.get(on, {}),
        }
        if fault not in known:
            find_fault(fault)
            able = ", ".join(known) or "no fault at all"
            raise ConfigError(f"{fault} cannot act there", key="on", value=on, allowed=able)
        return known[fault]

    def _figures_at(self, fault: Fault, name: str, on: str, given: Figures) -> Mapping[str, float]:
        """The parameters with numbers for the names of pins."""
        place, numbers = self._places[on], _numbers(given)
        for key, value in given.items():
            if not isinstance(value, str):
                continue
            number: int | Refused = Refused("is not a number")
            if key in NAMED and isinstance(place, NamesPins):
                number = place.fault_pin(name, value)
            if isinstance(number, Refused):
                raise ConfigError(number.reason, key=f"parameters.{key}", value=value)
            numbers[key] = number
        return fault.parameters(name, numbers)

    def _watch(self, name: str, when: When) -> None:
        if when.of not in self._places:
            raise unknown("part to watch", when.of, self._places, key="of")
        watched: Any = self._places[when.of]
        if when.command is not None and when.of not in self._endpoints:
            self._watch_commands(name, when.of, when.command.upper())
        if when.near_mm is not None and not hasattr(watched, "tcp"):
            raise ConfigError("has no tool to watch", key="of", value=when.of)
        if when.collision is not None:
            self._watch_contacts(name, when)
        if when.pin is None:
            return
        if not hasattr(watched, "on_edge"):
            raise ConfigError("has no pins", key="of", value=when.of)
        refused = watched.on_edge(when.pin, when.edge, lambda now: self._trigger(name, now))
        if refused:
            raise ConfigError(refused.reason, key="pin")

    def _watch_commands(self, name: str, of: str, command: str) -> None:
        robot = self._places[of]
        if not isinstance(robot, ReportsCommands):
            robots = [each for each, p in self._places.items() if isinstance(p, ReportsCommands)]
            able = [*self._endpoints, *robots]
            raise unknown("robot or endpoint to listen to", of, able, key="of")

        def taken_up(taken: str, now: int) -> None:
            if taken.upper() == command:
                self._trigger(name, now)

        robot.on_command(taken_up)

    def _watch_contacts(self, name: str, when: When) -> None:
        watch = getattr(self._places[when.of], "collision", None)
        if watch is None:
            raise ConfigError("is not watched for contacts", key="of", value=when.of)

        def touched(contact: Any) -> None:
            if when.collision == "any" or when.collision in contact.names:
                self._trigger(name, contact.at)

        watch.on_collision(touched)

    # ── triggers ──

    def received(self, place: str, command: str, now: int) -> None:
        """Triggers the rules for a command that was read on a face."""
        for name, rule in self._rules.items():
            when = rule.when
            if when and when.of == place and (when.command or "").upper() == command.upper():
                self._trigger(name, now)

    def _trigger(self, name: str, now: int) -> None:
        rule = self._rules[name]
        if rule.when is None or self._spent(name) or not rule.covers(now) or not self._try(name):
            return
        due = now + nanoseconds(rule.when.after_s)
        self._state.pending = sorted([*self._state.pending, Pending(due, name)])

    def _look(self, now: int) -> None:
        """Triggers the rules whose tool has come near their point."""
        state = self._state
        state.seen = now
        for name, when in self._points.items():
            robot: Any = self._places[when.of]
            point = tuple(value * MM for value in when.near_mm or ())
            near = dist(robot.tcp(now)[:3], point) <= when.within_mm * MM
            if near and name not in state.near:
                state.near = [*state.near, name]
                self._trigger(name, now)
            elif not near and name in state.near:
                state.near = [other for other in state.near if other != name]

    def rule(self, name: str) -> Rule:
        return self._rules[name]

    def declared(self, name: str) -> Fault:
        """The declaration of a rule's fault."""
        return self._fault_at(self._rules[name].fault, self._rules[name].on)

    def disturbs(self) -> set[str]:
        """The endpoints whose requests or answers a rule may lose, delay, repeat or garble."""
        passing = {**FACE_FAULTS, **BROKER_FAULTS}
        return {rule.on for rule in self._rules.values() if rule.fault in passing}

    # ── faults that parts query ──

    def draw_fault(self, fault: str, place: str, now: int) -> ActiveFault | None:
        """Draws for every matching rule, so that no rule changes the draws of another; the first
        hit acts."""
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
                return ActiveFault(name, now // AMBIENT_PERIOD, self._figures[name])
        return None

    def deviations(self, fault: ActiveFault, count: int) -> tuple[float, ...]:
        name = f"{fault.rule}.deviation"
        return symmetric_draws(self._seed, name, fault.index, count=count, amplitude=1.0)

    # ── injection ──

    def next_wake(self) -> int | None:
        if not (self._timed or self._points or self._state.pending):
            return None
        dues = [rule.due(self._state.counts[name].tries) for name, rule in self._timed.items()]
        dues += [pending.due for pending in self._state.pending[:1]]
        moving: list[Any] = [self._places[when.of] for when in self._points.values()]
        if any(robot.busy() for robot in moving):
            dues.append((self._state.seen // WATCH_PERIOD + 1) * WATCH_PERIOD)
        return min((due for due in dues if due is not None), default=None)

    def wake(self, now: int) -> None:
        for name, rule in self._timed.items():
            due = rule.due(self._state.counts[name].tries)
            if due is not None and due <= now and self._try(name):
                self._act(name, now)
        if self._points and now >= (self._state.seen // WATCH_PERIOD + 1) * WATCH_PERIOD:
            self._look(now)
        while self._state.pending and self._state.pending[0].due <= now:
            self._act(self._state.pending.pop(0).rule, now)

    def _act(self, name: str, now: int) -> None:
        rule = self._rules[name]
        self._bring(rule.fault, rule.on, self._figures[name], now)

    def _bring(self, fault: str, on: str, figures: Mapping[str, float], now: int) -> Refused | None:
        if fault not in self._wire_faults.get(on, {}):
            return self._places[on].inject(fault, figures, now)
        if on not in self._wires:
            return Refused(f"{fault} acts on the wire of {on}: it needs a cell that runs live")
        return self._wires[on].inject(fault, figures, now)

    def attach_wire(self, endpoint: str, wire: Injectable) -> None:
        """The wire of an endpoint is open: its faults can be injected."""
        self._wires[endpoint] = wire

    def inject(self, fault: str, on: str, parameters: Figures, now: int) -> Refused | None:
        """Injects a fault now, as an operator does."""
        try:
            declared = self._fault_at(fault, on)
            if declared.how == "asked":
                return Refused(f"{fault} cannot be injected: it acts only by a scenario rule")
            figures = self._figures_at(declared, fault, on, parameters)
            return self._bring(fault, on, figures, now)
        except ConfigError as problem:
            return Refused(str(problem))

    def begin(self, name: str, now: int) -> None:
        """Lets the rule of an `asked` fault act from now on, whatever its `from_s` says."""
        rule = structs.replace(self._rules[name], from_s=now / NS_PER_SECOND)
        self._rules = {**self._rules, name: rule}

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
            raise msgspec.ValidationError(f"the snapshot has counts of other rules: {names}")
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
        with located_at(f"scenario.rules.{name}"):
            check(rule)
    return Scenario(config.rules, seed)
