"""The fault atlas: tries every declared fault of a cell, each in a cell of its own on virtual time.

A trial builds the cell anew, brings it into the situation of the fault's row, injects the fault and
looks for the expected reaction (`ports/fault_reactions.py`). The cell has its own triggered rules
(a sensor that answers a tool, say), but none that acts by chance.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, Literal, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from msgspec import Struct

from understudy.app.build import build_cell, wire_faults
from understudy.app.stand_in import StandIn
from understudy.config import CellConfig, shipped_cells
from understudy.errors import Refused
from understudy.html_page import Html, Origin, html_page, marked, table
from understudy.ports import CONFIRMED, AwaitsConfirmations, Component, Figures, Injectable
from understudy.ports.fault_reactions import (
    FACE_REACTIONS,
    Data,
    Found,
    LiveReaction,
    NotPossibleError,
    Reaction,
    Reactions,
    Seen,
    Talk,
    words_of,
)
from understudy.ports.faults import FACE_FAULTS, Fault, Faults
from understudy.ports.operation import OperatorActions
from understudy.registry import kinds, module_of, modules
from understudy.simulation.cell import Cell
from understudy.simulation.engine import SimulationEngine
from understudy.simulation.scenario import Config as Scenario
from understudy.simulation.scenario import Rule, find_fault
from understudy.simulation.scenario import Scenario as Rules
from understudy.units import nanoseconds, seconds
from understudy.wire.exchange import Client, InProcessCell
from understudy.wire.nats.server import find_binary

RULE = "atlas"
"""The rule that brings about an `asked` fault."""
NOT_YET_S = 1e8
LOOK_S = 0.02
"""Simulated time between two looks whether the reaction is there."""
LAST_ANSWERS_S = 3.0
"""Simulated time after the last request of a conversation."""
REQUESTS = 3
BROKER = "nats"
"""The peer name of everybody behind a broker."""

WAIT_S, WALL_LOOK_S = 60.0, 0.05
"""Longest wait for a server, and time between two looks, on the wall."""
EVENTS = ".events "
"""In the address of what a robot says of its emergency stop."""
WIRE_LOG = logging.getLogger("understudy.wire")

Verdict = Literal["seen", "missing", "not possible"]


# ── what there is to try ────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Planned:
    """A fault at a place of a cell, with its row; None: it has no row."""

    fault: str
    on: str
    declared: Fault
    row: Reaction | None
    talk: Talk | None = None
    live: LiveReaction | None = None
    """The row of a fault of a server; then there is no other one."""


class DeclaredRow(NamedTuple):
    """A fault as it is declared, and its row; None: it has none. `acts_on`: as in `understudy
    faults`; with `during`: a further row, of what works on the robot."""

    acts_on: str
    fault: str
    declared: Fault
    row: Reaction | LiveReaction | None
    during: str = ""


def live_rows(module: ModuleType) -> Mapping[str, LiveReaction]:
    """The rows of a wire's faults."""
    name = getattr(module, "LIVE_REACTIONS", "")
    rows: Mapping[str, LiveReaction] = import_module(name).REACTIONS if name else {}
    return rows


def declared_rows() -> Iterator[DeclaredRow]:
    """Every declared fault of every kind of robot, device, face and job."""
    for name, fault in FACE_FAULTS.items():
        yield DeclaredRow("any face", name, fault, FACE_REACTIONS.get(name))
    for group, kind, module in modules("robots", "devices", "jobs", "faces"):
        faults: Faults = getattr(module, "FAULTS", {})
        rows: Reactions = getattr(module, "REACTIONS", {})
        acts_on = f"{group.removesuffix('s')} {kind}"
        for name, fault in faults.items() if isinstance(faults, Mapping) else ():
            yield DeclaredRow(acts_on, name, fault, rows.get(name))
        during: Reactions = getattr(module, "DURING", {})
        for name, row in during.items():
            yield DeclaredRow(acts_on, name, find_fault(name), row, kind)
    for _, kind, module in modules("wires"):
        of_server = live_rows(module)
        for name, fault in getattr(module, "FAULTS", {}).items():
            yield DeclaredRow(f"wire {kind}", name, fault, of_server.get(name))


def planned_trials(config: CellConfig, faults: Collection[str] = ()) -> list[Planned]:
    """Every fault at every place of the cell; ``faults``: only these."""
    for name in faults:
        find_fault(name)
    cell = build_cell(_quiet(config))
    found = [
        *_of_components(config, cell),
        *(each for endpoint in cell.faces for each in _of_endpoint(config, endpoint)),
    ]
    for endpoint, of_wire in wire_faults(config).items():
        rows = live_rows(import_module(type(config.endpoints()[endpoint]).__module__))
        found += [Planned(n, endpoint, f, None, live=rows.get(n)) for n, f in of_wire.items()]
    return [each for each in found if not faults or each.fault in faults]


def _of_components(config: CellConfig, cell: Cell) -> Iterator[Planned]:
    for place, component in cell.components.items():
        is_face = component in cell.faces.values()
        if isinstance(component, Injectable) and not is_face:
            rows = rows_of(config, place)
            for name, fault in component.faults().items():
                yield Planned(name, place, fault, rows.get(name))
                for more in _rows_during(config, cell, place):
                    if name in more:
                        yield Planned(name, place, fault, more[name])


def _of_endpoint(config: CellConfig, endpoint: str) -> Iterator[Planned]:
    module = face_module(config, endpoint)
    own: Faults = getattr(module, "FAULTS", {})
    rows: Reactions = {**FACE_REACTIONS, **getattr(module, "REACTIONS", {})}
    talks: Mapping[str, Talk] = getattr(module, "TALKS", {})
    talk = talks.get(endpoint.rpartition(".")[2]) or talks.get("")
    for name, fault in {**FACE_FAULTS, **own}.items():
        of_request = name.startswith("request_")
        if not (of_request and talk is not None and talk.request is None):
            yield Planned(name, endpoint, fault, rows.get(name), talk)


def face_module(config: CellConfig, endpoint: str) -> Any:
    """The module of the face that has this endpoint."""
    robot, _, rest = endpoint.partition(".")
    if robot in config.robots and rest:
        faces = config.robots[robot].faces
        return module_of("faces", faces[rest.partition(".")[0]].kind)
    groups = (module_of("robots", robot.kind) for robot in config.robots.values())
    of_groups = (getattr(module, "GROUP_FACES", {}) for module in groups)
    return module_of("faces", next(faces[endpoint] for faces in of_groups if endpoint in faces))


def rows_of(config: CellConfig, place: str) -> Reactions:
    """The rows of the kind of robot, device or job at a place; empty if it has none."""
    rows: Reactions = getattr(module_at(config, place), "REACTIONS", {})
    return rows


def module_at(config: CellConfig, place: str) -> ModuleType | None:
    robot, _, own = place.partition(".")
    if not own and robot in config.robots:
        return module_of("robots", config.robots[robot].kind)
    if not own and robot in config.devices:
        return module_of("devices", config.devices[robot].kind)
    table = next((each for each in ("devices", "jobs") if own in kinds(each)), None)
    return module_of(table, own) if table else None


def _rows_during(config: CellConfig, cell: Cell, place: str) -> Iterator[Reactions]:
    """The rows of what works on a robot, for faults of the robot and of its other devices."""
    robot = place.partition(".")[0]
    for other in cell.components:
        if other.startswith(f"{robot}.") and (module := module_at(config, other)) is not None:
            yield getattr(module, "DURING", {})


def _quiet(config: CellConfig, *more: tuple[str, Rule]) -> CellConfig:
    """The cell with its triggered rules only, and with more rules."""
    rules = config.head.scenario.rules.items()
    kept = {name: rule for name, rule in rules if rule.when is not None}
    return config.with_rules(Scenario({**kept, **dict(more)}))


# ── one trial ───────────────────────────────────────────────────────────────────────────────────


class HearingClient(Client):
    """A client that keeps what it hears with its time; one behind a broker confirms it."""

    def __init__(self, cell: InProcessCell, endpoint: str) -> None:
        self.heard: list[tuple[int, Data]] = []
        self._inside = cell
        self.is_broker = isinstance(cell.timed_cell.faces[endpoint], AwaitsConfirmations)
        super().__init__(cell, endpoint, BROKER if self.is_broker else "")

    def send(self, data: Data) -> None:
        self.heard.append((self._inside.timed_cell.now, data))
        super().send(data)

    def forget(self, count: int) -> None:
        """Drops what was heard after the first ``count`` pieces."""
        del self.heard[count:]
        self.messages()
        self.received()

    def text(self, since: int = 0) -> str:
        received = (data for at, data in self.heard if at >= since)
        return b"".join(
            data if isinstance(data, bytes) else data.payload for data in received
        ).decode("utf-8", "replace")


def group_behind(config: CellConfig, endpoint: str) -> list[str]:
    """The robots that have an endpoint together; empty if it is none of a group."""
    kinds = {name: module_of("robots", each.kind) for name, each in config.robots.items()}
    return [name for name, kind in kinds.items() if endpoint in getattr(kind, "GROUP_FACES", {})]


def _first_behind(config: CellConfig, endpoint: str) -> str:
    """The first robot of the group that has an endpoint, else the first of the cell."""
    return next(iter(group_behind(config, endpoint) or config.robots))


class CellTrial:
    """`Trial` of the rows: one cell, one fault. ``disturbed``: the fault can act."""

    def __init__(
        self,
        config: CellConfig,
        planned: Planned,
        undisturbed: Callable[[], Sequence[tuple[int, Data]]] = tuple,
        *,
        disturbed: bool = True,
    ) -> None:
        self.config = config
        self._undisturbed = undisturbed
        self.planned = planned
        self.place = planned.on
        first, _, _ = planned.on.partition(".")
        self.robot = first if first in config.robots else _first_behind(config, planned.on)
        self.parameters: Figures = planned.row.parameters if planned.row else {}
        self.injected_at = 0
        self.notes: dict[str, Any] = {"talk": planned.talk}
        self._asked = disturbed and planned.declared.how == "asked"
        built = self._built()
        self.cell = InProcessCell(built)
        self.components: Mapping[str, Component] = built.components
        self._clients: dict[str, HearingClient] = {}
        self._own = f"{self.robot}."
        self._found: dict[type, Any] = {}

    def _built(self) -> Cell:
        if not self._asked:
            return build_cell(_quiet(self.config))
        times = None if self.planned.declared.ambient else 1
        rule = Rule(
            self.planned.fault,
            self.place,
            times=times,
            from_s=NOT_YET_S,
            parameters=dict(self.parameters),
        )
        return build_cell(_quiet(self.config, (RULE, rule)))

    # ── what rows see ──

    @property
    def now(self) -> int:
        return self.cell.timed_cell.now

    @property
    def part(self) -> Any:
        return self.components[self.place]

    def own(self, name: str) -> Any:
        found = self.components.get(f"{self.robot}.{name}")
        if found is None:
            raise NotPossibleError(f"{self.robot} has no {name}")
        return found

    def find(self, kind: type[Found]) -> Found:
        if kind not in self._found:
            own = (part for name, part in self.components.items() if name.startswith(self._own))
            self._found[kind] = next((each for each in own if isinstance(each, kind)), None)
        if (found := self._found[kind]) is None:
            raise NotPossibleError(f"{self.robot} has no {kind.__name__}")
        part: Found = found
        return part

    def actions(self) -> OperatorActions:
        kind = module_of("robots", self.config.robots[self.robot].kind)
        if not hasattr(kind, "operator_actions"):
            raise NotPossibleError(f"{self.robot} has no actions of an operator")
        found: OperatorActions = kind.operator_actions(self.components[self.robot])
        return found

    def engine_state(self) -> str:
        engine = self.components["engine"]
        assert isinstance(engine, SimulationEngine)
        return engine.state(self.now)

    def client(self, kind: str) -> HearingClient:
        for endpoint in self.cell.timed_cell.faces:
            of_robot = endpoint.startswith(f"{self.robot}.") or "." not in endpoint
            if of_robot and face_module(self.config, endpoint) is module_of("faces", kind):
                return self._client_of(endpoint)
        raise NotPossibleError(f"{self.robot} has no face {kind}")

    def endpoint_client(self) -> HearingClient:
        return self._client_of(self.place)

    def _client_of(self, endpoint: str) -> HearingClient:
        if endpoint not in self._clients:
            self._clients[endpoint] = HearingClient(self.cell, endpoint)
        return self._clients[endpoint]

    @property
    def undisturbed(self) -> Sequence[tuple[int, Data]]:
        since = self.injected_at
        return [each for each in self._undisturbed() if each[0] >= since]

    # ── what rows do ──

    def converse(self) -> None:
        talk = self.planned.talk
        if talk is None:
            raise NotPossibleError("the face declares no TALKS")
        client = self.endpoint_client()
        for number in range(1, REQUESTS + 1) if talk.request is not None else ():
            assert talk.request is not None
            self.notes["last_request"] = self.now
            client.say(talk.request(self, number))
            self.advance(talk.pause_s)
        self.advance(LAST_ANSWERS_S)

    def advance(self, duration_s: float) -> None:
        self._run_to(self.now + nanoseconds(duration_s))

    def _run_to(self, end: int) -> None:
        brokers = [client for client in self._clients.values() if client.is_broker]
        self.cell.advance_with_brokers(end, brokers)

    def run_until(self, condition: Callable[[], bool], within_s: float, what: str) -> None:
        end = self.now + nanoseconds(within_s)
        while not condition():
            if self.now >= end:
                raise NotPossibleError(f"{what}: not within {within_s:g} s")
            self._run_to(min(self.now + nanoseconds(LOOK_S), end))

    # ── the trial ──

    def inject(self) -> None:
        """Brings the fault about: now, or at the next occasion."""
        self.injected_at = self.now
        rules = self.components["scenario"]
        assert isinstance(rules, Rules)
        if self._asked:
            rules.begin(RULE, self.now)
            return
        refused = rules.inject(self.planned.fault, self.place, self.parameters, self.now)
        if isinstance(refused, Refused):
            raise NotPossibleError(refused.reason)
        self.cell.exchange.deliver()

    def observe(self, expected: Sequence[Seen], within_s: float) -> dict[str, float]:
        """When each of these was seen, in seconds after the injection: first, or since when it
        holds if it must last. ``within_s``: from now on."""
        end = self.now + nanoseconds(within_s)
        found: dict[str, float] = {}
        lasts = any(each.lasts for each in expected)
        while True:
            for each in expected:
                if each.words in found and not each.lasts:
                    continue
                if not each.holds(self):
                    found.pop(each.words, None)
                elif each.words not in found:
                    found[each.words] = seconds(self.now - self.injected_at)
            if self.now >= end or (len(found) == len(expected) and not lasts):
                break
            self._run_to(min(self.now + nanoseconds(LOOK_S), end))
        return found


class Outcome(Struct, frozen=True):
    """What came of a trial. `rule`: the fault as a scenario rule; `seen`: each expectation with the
    simulated seconds after the injection; `note`: why it was not possible."""

    fault: str
    on: str
    verdict: Verdict
    situation: str
    seed: int
    rule: dict[str, Any] = {}
    within_s: float = 0.0
    seen: dict[str, float] = {}
    missing: tuple[str, ...] = ()
    note: str = ""


class ServerTrial:
    """`LiveTrial`: a live cell whose own server has a store for this trial alone."""

    def __init__(self, config: CellConfig, planned: Planned) -> None:
        self.place = planned.on
        self.injected_at_s = 0.0
        self._planned = planned
        self._robot = _first_behind(config, self.place)
        file = config.name if config.name in shipped_cells() else config.document.file
        self._cell = StandIn(file, seed=config.head.seed, rate=1.0)
        self._lines: list[str] = []
        self._handler = _Lines(self._lines)
        self._since = 0

    def __enter__(self) -> "ServerTrial":
        WIRE_LOG.addHandler(self._handler)
        try:
            self._cell.__enter__()
            self._wait(lambda: self.heard(CONFIRMED) > 0, WAIT_S)
        except BaseException:
            WIRE_LOG.removeHandler(self._handler)
            raise
        return self

    def __exit__(self, *problem: object) -> None:
        WIRE_LOG.removeHandler(self._handler)
        self._cell.__exit__(*problem)

    def begin(self) -> None:
        """What comes from now on counts."""
        self._lines.clear()
        self._since = self._cell.last_message
        self.injected_at_s = self._cell.now

    def inject(self, fault: str) -> None:
        self._cell.inject(fault, self.place)

    def said(self, text: str) -> bool:
        return any(text in line for line in self._lines)

    def heard(self, address: str) -> int:
        entries = self._cell.journal(self.place, self._since)
        return sum(each.kind == ">" and each.text.startswith(address) for each in entries)

    def press_and_release(self) -> None:
        for fault in ("emergency_stop", "emergency_release"):
            since = self._cell.last_message
            self._cell.inject(fault, self._robot)
            self._wait(lambda n=since: self._is_stored(n), WAIT_S)  # type: ignore[misc]

    def _is_stored(self, since: int) -> bool:
        """Whether a robot has sent an event after this message, and something was confirmed after
        the event: a confirmation of older messages is no sign that the robot has noticed."""
        entries = iter(self._cell.journal(self.place, since))
        sent = any(each.kind == "<" and EVENTS in each.text for each in entries)
        return sent and any(each.text.startswith(CONFIRMED) for each in entries)

    def observe(self, row: LiveReaction) -> dict[str, float]:
        """When each was seen first, in seconds of the cell after the injection."""
        found: dict[str, float] = {}

        def all_seen() -> bool:
            for each in row.seen:
                if each.words not in found and each.holds(self):
                    found[each.words] = round(self._cell.now - self.injected_at_s, 3)
            return len(found) == len(row.seen)

        self._wait(all_seen, row.within_s)
        return found

    def _wait(self, condition: Callable[[], bool], within_s: float) -> None:
        until = time.monotonic() + within_s
        while not condition() and time.monotonic() < until:
            time.sleep(WALL_LOOK_S)


class _Lines(logging.Handler):
    """Keeps the lines of a log."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._kept = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._kept.append(record.getMessage())


class Atlas:
    """The trials of one cell. What clients hear without a fault is found once per endpoint."""

    def __init__(self, config: CellConfig, faults: Collection[str] = ()) -> None:
        self.config = config
        self.planned = planned_trials(config, faults)
        self._undisturbed: dict[str, Sequence[tuple[int, Data]]] = {}

    def outcomes(self) -> Iterator[Outcome]:
        for planned in self.planned:
            yield self.carry_out(planned)

    def carry_out(self, planned: Planned) -> Outcome:
        row, seed = planned.row, self.config.head.seed
        if planned.live is not None:
            return self._carry_out_live(planned, planned.live)
        if row is None:
            note = "no row says what is expected"
            return Outcome(planned.fault, planned.on, "missing", "", seed, note=note)
        situation = words_of(row.situation)
        words = tuple(each.words for each in row.seen)
        try:
            trial = CellTrial(self.config, planned, lambda: self._heard_without(planned))
            row.situation(trial)
            trial.inject()
            if row.then is not None:
                row.then(trial)
                situation = f"{situation}; then {words_of(row.then)}"
            seen = trial.observe(row.seen, row.within_s)
        except NotPossibleError as problem:
            return Outcome(
                planned.fault, planned.on, "not possible", situation, seed, note=str(problem)
            )
        missing = tuple(each for each in words if each not in seen)
        return Outcome(
            planned.fault,
            planned.on,
            "missing" if missing else "seen",
            situation,
            seed,
            rule_of(planned, trial),
            row.within_s,
            {name: round(at, 6) for name, at in seen.items()},
            missing,
        )

    def _carry_out_live(self, planned: Planned, row: LiveReaction) -> Outcome:
        """In a live cell with a real server of its own."""
        situation = words_of(row.situation)
        if row.then is not None:
            situation = f"{situation}; then {words_of(row.then)}"
        at = planned.fault, planned.on
        seed = self.config.head.seed
        if not find_binary():
            note = "there is no nats-server: see understudy doctor"
            return Outcome(*at, "not possible", situation, seed, note=note)
        with ServerTrial(self.config, planned) as trial:
            row.situation(trial)
            trial.begin()
            trial.inject(planned.fault)
            if row.then is not None:
                row.then(trial)
            seen = trial.observe(row)
        missing = tuple(each.words for each in row.seen if each.words not in seen)
        rule = {"fault": planned.fault, "on": planned.on, "at_s": round(trial.injected_at_s, 6)}
        verdict: Verdict = "missing" if missing else "seen"
        return Outcome(*at, verdict, situation, seed, rule, row.within_s, seen, missing)

    def _heard_without(self, planned: Planned) -> Sequence[tuple[int, Data]]:
        """What a client of the endpoint hears without the fault."""
        if planned.on not in self._undisturbed:
            assert planned.row is not None
            trial = CellTrial(self.config, planned, disturbed=False)
            planned.row.situation(trial)
            if planned.row.then is not None:
                planned.row.then(trial)
            self._undisturbed[planned.on] = trial.endpoint_client().heard
        return self._undisturbed[planned.on]


def rule_of(planned: Planned, trial: CellTrial) -> dict[str, Any]:
    """The fault as a rule of a cell file."""
    at = "from_s" if planned.declared.how == "asked" else "at_s"
    parameters = {"parameters": dict(trial.parameters)} if trial.parameters else {}
    times = {"times": 1} if planned.declared.how == "asked" and not planned.declared.ambient else {}
    when = {at: round(seconds(trial.injected_at), 9)}
    return {"fault": planned.fault, "on": planned.on, **when, **times, **parameters}


# ── reports ─────────────────────────────────────────────────────────────────────────────────────

HEAD = ("reaction", "fault", "on", "situation", "expected, and seen after", "as a rule")


def as_junit(cell: str, outcomes: Sequence[Outcome]) -> str:
    """JUnit XML: a case per fault and place."""
    missing = sum(each.verdict == "missing" for each in outcomes)
    skipped = sum(each.verdict == "not possible" for each in outcomes)
    head = f'tests="{len(outcomes)}" failures="{missing}" skipped="{skipped}" errors="0"'
    cases = "".join(map(_case, outcomes))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n'
        f"<testsuite name={quoteattr(f'faults of {cell}')} {head}>\n{cases}</testsuite>\n"
        "</testsuites>\n"
    )


def _case(outcome: Outcome) -> str:
    name = f"{outcome.fault}: {outcome.situation}"
    inside = ""
    if outcome.verdict == "missing":
        text = "; ".join(outcome.missing) or outcome.note
        inside = f"<failure message={quoteattr(text)}>{escape(str(outcome.rule))}</failure>"
    elif outcome.verdict == "not possible":
        inside = f"<skipped message={quoteattr(outcome.note)}/>"
    return (
        f"<testcase classname={quoteattr(outcome.on)} name={quoteattr(name)}>{inside}</testcase>\n"
    )


def as_html(cell: str, outcomes: Sequence[Outcome], origin: Origin) -> str:
    """The report for the browser: what is missing comes first."""
    counts = Counter(each.verdict for each in outcomes)
    summary = (
        f"<p>{len(outcomes)} faults: {counts['seen']} reactions seen, "
        f"{counts['missing']} missing, {counts['not possible']} not possible in this cell.</p>"
    )
    order: Sequence[Verdict] = ("missing", "not possible", "seen")
    rows = [_html_row(each) for each in sorted(outcomes, key=lambda o: order.index(o.verdict))]
    return html_page(f"Fault atlas of {cell}", [summary, table(rows, HEAD)], origin=origin)


def _html_row(outcome: Outcome) -> list[str]:
    seen = [f"{words}: {at:g}\N{NO-BREAK SPACE}s" for words, at in outcome.seen.items()]
    lines = [*(f"{words}: missing" for words in outcome.missing), *seen]
    if outcome.note:
        lines.append(outcome.note)
    rule = ", ".join(f"{key}: {value}" for key, value in outcome.rule.items())
    return [
        marked(outcome.verdict, good=outcome.verdict == "seen"),
        outcome.fault,
        outcome.on,
        outcome.situation,
        Html("<br>".join(map(escape, lines))),
        Html(f"<code>{escape('{' + rule + '}')}</code>") if rule else "",
    ]
