"""Explorations: cells are played with what a seed draws, and what must hold is checked.

The seed of a run draws its faults, what its clients say, what operators do and when. A run lasts an
hour of simulated time; a cell at rest costs nothing. Kinds of robots, devices, faces and jobs say
what can be done with them and what must hold (`ports.exploration`).
"""

import dataclasses
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import count
from random import Random
from typing import Any, NamedTuple, cast

from msgspec import Struct, field
from msgspec.structs import replace

from understudy.app.build import build_cell
from understudy.campaign.fault_atlas import (
    HearingClient,
    Planned,
    face_module,
    group_behind,
    module_at,
    planned_trials,
)
from understudy.campaign.one_run import Outcome
from understudy.campaign.plan import RunSpec
from understudy.campaign.report import left_out
from understudy.config import CellConfig, load_config, shipped_cells
from understudy.errors import Refused
from understudy.ports import WireMessage
from understudy.ports.exploration import (
    EVERY_FACE,
    EVERY_ROBOT,
    NOTHING,
    REFUSALS,
    Act,
    Category,
    Data,
    Exploration,
    Look,
    Say,
)
from understudy.ports.operation import Jog, OperatorActions, RobotModel
from understudy.registry import module_of
from understudy.simulation.cell import write_snapshot
from understudy.simulation.engine import SimulationEngine
from understudy.simulation.scenario import Config as Scenario
from understudy.simulation.scenario import Rule
from understudy.simulation.scenario import Scenario as Rules
from understudy.units import nanoseconds, seconds
from understudy.wire.chat import parse
from understudy.wire.connection import Event
from understudy.wire.exchange import InProcessCell, garbled

RUN_S = 3600.0
"""Simulated time of a run."""
STEPS = 40
LONGEST_PAUSE_S = 300.0
MOST_FAULTS = 3
FAULT_S = 20.0
"""An ambient disturbance lasts so long."""
FIRST_LOOK_S = 0.05
"""Simulated time between the first looks at a cell that moves; later ones are less often."""
REHEARSED_S = 5.0
SETTLES_S = 45.0
"""At the end of a run, before what is owed is counted."""
MOST_EVENTS = 200_000
"""Messages of a run; after them nothing more is done."""
Reach = dict[str, list[str]]
"""What was reached by kind and category, `pick_place state`."""


class Explored(Outcome, frozen=True):
    """What came of a run. `broken`: the words of the invariant; `moved_s`: simulated time in which
    something was under way; `reached`, `reach`: by kind and category what was reached, and what
    there is; `script`: what was done."""

    broken: str = ""
    moved_s: float = 0.0
    reached: Reach = field(default_factory=dict)
    reach: Reach = field(default_factory=dict)
    script: tuple[str, ...] = ()


class Step(NamedTuple):
    """Something that is done, `pause_s` after the step before. `words`: for the report."""

    name: str
    pause_s: float
    words: str
    do: Callable[["Exploring"], None]


Do = Callable[["Exploring"], None]


# ── what can be drawn ───────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Part:
    """A place of a cell that has a kind."""

    place: str
    kind: str
    explored: Exploration


@cache
def faults_of(cell: str) -> tuple[Planned, ...]:
    """The faults of a cell that have a row of the atlas."""
    return tuple(each for each in planned_trials(load_config(cell)) if each.row is not None)


def parts_of(config: CellConfig, places: Iterable[str], faces: Iterable[str]) -> list[Part]:
    """The robots, devices and jobs of a cell, and its faces."""
    found = []
    for place in places:
        module = module_at(config, place)
        if module is not None and place not in faces:
            kind = module.__name__.removeprefix("understudy.")
            found.append(Part(place, kind, getattr(module, "EXPLORED", NOTHING)))
    for endpoint in faces:
        module = face_module(config, endpoint)
        kind = module.__name__.removeprefix("understudy.")
        found.append(Part(endpoint, kind, getattr(module, "EXPLORED", NOTHING)))
    return found


def _robot_acts(actions: OperatorActions, draw: Random) -> dict[str, Act]:
    """What an operator does with a robot, as far as it can: (actions, now)."""
    percent = draw.choice((10.0, 50.0, 100.0, 150.0))
    frame = draw.choice(actions.frames) if actions.frames else "joint"
    way = draw.choice((0.01, 0.1, 0.5))
    jog = Jog(frame, draw.randrange(6), draw.choice((-0.3, 0.1, 0.5)), draw.choice((way, None)))
    known: dict[str, Act] = {
        "enable": lambda a, now: a.enable(now),
        "disable": lambda a, now: a.disable(now),
        "home": lambda a, now: a.home(-1, now),
        "stop": lambda a, now: a.stop(now),
        "emergency_stop": lambda a, now: a.emergency_stop(now),
        "reset": lambda a, now: a.reset(now),
        "hold": lambda a, now: a.hold(now),
        "cycle_start": lambda a, now: a.cycle_start(now),
        "jog": lambda a, now: a.jog(jog, now),
        "stop_jog": lambda a, now: a.stop_jog(now),
        "override_feed": lambda a, now: a.override_feed(percent, now),
    }
    return {name: act for name, act in known.items() if hasattr(actions, name)}


STOPS = ("stop", "emergency_stop")
ENGINE_ACTS = ("start", "stop", "emergency_stop", "reset", "clear_collisions")


# ── one run ─────────────────────────────────────────────────────────────────────────────────────


class BrokenError(Exception):
    """An invariant does not hold."""

    def __init__(self, words: str, how: str) -> None:
        super().__init__(f"{words}: {how}")
        self.words = words


def explore_one(chats: Sequence[str], spec: RunSpec) -> Explored:
    """One run; `spec.point` names the cell. ``chats``: texts of recorded sessions."""
    began = time.process_time()
    run = Exploring(spec.point["cell"], spec.seed, spec.without, chats)
    problem = broken = ""
    try:
        run.play()
    except BrokenError as found:
        problem, broken = str(found), found.words
    except Exception as found:  # noqa: BLE001 - whatever it is, it is a finding of this run
        problem, broken = f"{type(found).__name__}: {found}", type(found).__name__
    digest = sha256(write_snapshot(run.inside.exchange.snapshot())).hexdigest()[:16]
    figures = {"simulated_s": round(seconds(run.now), 9), "messages": len(run.passed)}
    return Explored(
        spec.number,
        spec.seed,
        spec.point,
        problem,
        dict(figures),
        digest,
        len(run.config.robots),
        time.process_time() - began,
        broken,
        round(run.moved_s, 3),
        {key: sorted(names) for key, names in run.reached.items()},
        run.reach(),
        tuple(run.done),
    )


class Exploring:
    """`ports.exploration.Explored`: one run of one cell."""

    def __init__(
        self, cell: str, seed: int, without: Sequence[str] = (), chats: Sequence[str] = ()
    ) -> None:
        self._draw = Random(f"{cell}/{seed}")
        self._chats = chats
        base = load_config(cell).with_seed(seed)
        self.drawn = {n: r for n, r in self._rules(cell) if n not in without}
        rules = {**base.head.scenario.rules, **self.drawn}
        rules = {name: rule for name, rule in rules.items() if name not in without}
        self.config = base.with_rules(Scenario(rules))
        self.cell = build_cell(self.config)
        self.inside = InProcessCell(self.cell)
        self.components, self.faces = self.cell.components, self.cell.faces
        self.rehearses = False
        self.moved_s = 0.0
        self.reached: dict[str, set[str]] = {}
        self.done: list[str] = []
        self._clients: dict[str, HearingClient] = {}
        self._deaf: HearingClient | None = None
        self._numbers = count(1)
        self._stopped: dict[str, int] = {}
        self._acted: dict[str, int] = {}
        self._actions = {robot: self._find_actions(robot) for robot in self.config.robots}
        self.parts = parts_of(self.config, self.components, self.faces)
        self.steps = [each for each in self._script() if each.name not in without]
        self._looks = list(self._watches())

    def names(self) -> list[str]:
        """The names of the faults and steps that were drawn."""
        return [*self.drawn, *(step.name for step in self.steps)]

    # ── what invariants see ──

    @property
    def now(self) -> int:
        return self.cell.now

    @property
    def passed(self) -> list[Event]:
        return self.inside.transcript

    def actions(self, robot: str) -> OperatorActions | None:
        return self._actions.get(robot)

    def model(self, robot: str) -> RobotModel | None:
        kind = module_of("robots", self.config.robots[robot].kind)
        if not hasattr(kind, "robot_model"):
            return None
        found: RobotModel = kind.robot_model(
            self.config.robots[robot].config, self.components[robot]
        )
        return found

    def stopped_at(self, robot: str) -> int | None:
        return self._stopped.get(robot)

    def disturbed(self, endpoint: str) -> bool:
        return any(rule.on == endpoint for rule in self.config.head.scenario.rules.values())

    def interventions(self, endpoint: str) -> int:
        return self._acted.get(self._robot_of(endpoint), 0)

    def is_owed(self, endpoint: str, peer: str) -> bool:
        connection = self.inside.exchange.connection(endpoint, peer)
        if connection is None:
            return True
        state = connection.state
        return connection.owed() or bool(state.unread or state.unheard or state.held)

    def own(self, place: str, name: str) -> Any:
        return self.components.get(f"{place.partition('.')[0]}.{name}")

    # ── the script ──

    def _rules(self, cell: str) -> Iterator[tuple[str, Rule]]:
        """Faults that are drawn, as rules of the cell."""
        known, draw = faults_of(cell), self._draw
        for number in range(max(draw.randint(-2, MOST_FAULTS), 0)):
            each = draw.choice(known)
            assert each.row is not None
            at = round(draw.uniform(0.5, 60.0), 3)
            parameters = dict(each.row.parameters)
            rule = Rule(each.fault, each.on, at_s=at, parameters=parameters)
            if each.declared.how == "asked":
                until = at + FAULT_S if each.declared.ambient else None
                times = None if each.declared.ambient else 1
                rule = Rule(
                    each.fault,
                    each.on,
                    times=times,
                    from_s=at,
                    until_s=until,
                    parameters=parameters,
                )
            yield f"fault-{number + 1}", rule

    def _script(self) -> Iterator[Step]:
        draw = self._draw
        kinds: list[Callable[[], tuple[str, Do]]] = []
        weights: list[float] = []
        for weight, make in self._makers():
            weights.append(weight)
            kinds.append(make)
        for number in range(1, draw.randint(STEPS // 2, STEPS) + 1):
            longest = LONGEST_PAUSE_S if draw.random() < 0.05 else 8.0
            pause = round(0.02 * (longest / 0.02) ** draw.random(), 4)
            words, do = draw.choices(kinds, weights)[0]()
            yield Step(f"step-{number}", pause, words, do)

    def _makers(
        self,
    ) -> Iterator[tuple[float, Callable[[], tuple[str, Do]]]]:
        robots = [robot for robot, actions in self._actions.items() if actions is not None]
        acting = [part for part in self.parts if part.explored.acts]
        if robots:
            yield 6.0, lambda: self._draw_robot_act(robots)
        if acting:
            yield 12.0, lambda: self._draw_part_act(acting)
        if self.faces:
            yield 8.0, lambda: self._draw_words(self._draw.choice(list(self.faces)))
            yield 1.0, self._draw_reconnect
        programs = [robot for robot, each in self.config.robots.items() if each.program is not None]
        if programs:
            yield 3.0, lambda: self._draw_program(programs)
        yield 1.0, self._draw_engine
        yield 6.0, self._draw_recovery
        yield 1.5, self._draw_rehearsal

    def _draw_robot_act(self, robots: Sequence[str]) -> tuple[str, Do]:
        robot = self._draw.choice(robots)
        actions = self._actions[robot]
        assert actions is not None
        name, act = self._draw.choice(list(_robot_acts(actions, self._draw).items()))
        return f"{robot}: {name}", lambda run: run.operate(robot, name, act)

    def _draw_part_act(self, parts: Sequence[Part]) -> tuple[str, Do]:
        (part,) = self._draw.choices(parts, [len(each.explored.acts) for each in parts])
        name, act = self._draw.choice(list(part.explored.acts.items()))
        return f"{part.place}: {name}", lambda run: run.act_on(part, act)

    def _draw_program(self, robots: Sequence[str]) -> tuple[str, Do]:
        robot = self._draw.choice(robots)
        what = self._draw.choice(("run", "run", "pause", "resume", "stop"))
        return f"{robot}: program {what}", lambda run: run.program(robot, what)

    def _draw_engine(self) -> tuple[str, Do]:
        name = self._draw.choice(ENGINE_ACTS)
        return f"the cell: {name}", lambda run: run.engine(name)

    def _draw_recovery(self) -> tuple[str, Do]:
        if self._draw.random() < 0.3:
            return "everything is reset", lambda run: run.recover()
        return "everything is reset and started", lambda run: run.begin()

    def _draw_rehearsal(self) -> tuple[str, Do]:
        duration = round(self._draw.uniform(0.1, REHEARSED_S), 3)
        return f"a snapshot, {duration:g} s twice", lambda run: run.rehearse(duration)

    def _draw_reconnect(self) -> tuple[str, Do]:
        endpoint = self._draw.choice(list(self.faces))
        deaf, away = self._draw.choice((0.0, 1.0, 3.0)), self._draw.choice((0.0, 0.2, 3.0))
        words, say = self._draw_words(endpoint)
        words = f"{words}, then deaf for {deaf:g} s, away for {away:g} s"
        return words, lambda run: run.reconnect(endpoint, say, deaf, away)

    def _draw_words(self, endpoint: str) -> tuple[str, Do]:
        """Up to five requests at once; some as a broken client sends them."""
        draw = self._draw
        robot = draw.choice(self._robots_of(endpoint))
        part = next(each for each in self.parts if each.place == endpoint)
        says: list[Say] = [*part.explored.says, *self._said(endpoint)[: draw.randrange(9)]]
        said: list[Data] = []
        for _ in range(draw.choice((1, 1, 2, 5)) if says else 0):
            data = draw.choice(says)(robot, next(self._numbers))
            if isinstance(data, bytes) and draw.random() < 0.1:
                data = _mutated(data, draw)
            said.append(data)
        shown = (each if isinstance(each, bytes) else each.payload for each in said)
        text = " ".join(repr(each[:90].decode("latin-1"))[1:-1] for each in shown)

        def say(run: Exploring) -> None:
            for data in said:
                run.say(endpoint, data)

        return f"{endpoint}: says {text}", say

    def _said(self, endpoint: str) -> list[Say]:
        """What clients said in recorded sessions at the same place, in any order."""
        events = (event for text in self._chats for event in parse(text, "a session").events)
        found: list[Data] = [
            event.data if event.address is None else WireMessage(event.address[0], event.data)
            for event in events
            if event.kind == ">" and event.endpoint == endpoint
        ]
        self._draw.shuffle(found)
        return [_repeat(data) for data in found]

    # ── playing ──

    def play(self) -> None:
        for endpoint in self.faces:
            self._client(endpoint)
        for actions in self._actions.values():
            if hasattr(actions, "enable"):
                cast(Any, actions).enable(self.now)
        for step in self.steps:
            self._pass(step.pause_s)
            if len(self.passed) > MOST_EVENTS:
                break
            self.done.append(f"{seconds(self.now):.3f} s  {step.name}  {step.words}")
            step.do(self)
            self.inside.exchange.deliver()
            self._look()
        self._end()

    def _end(self) -> None:
        """Everything is reset; then what is owed must be answered, and nothing moves any more."""
        self.recover()
        for robot in self.config.robots:
            self._ask("cycle_start", robot)
        self._pass(SETTLES_S)
        if self.inside.exchange.owed() and self.inside.exchange.next_wake() is None:
            self.engine("reset")
            self._pass(1.0)
        if self.inside.exchange.owed() and self.inside.exchange.next_wake() is None:
            raise BrokenError(
                "no deadlock", "a client waits for an answer, and nothing will happen"
            )
        for client in self._clients.values():
            client.leave()
        self.engine("stop")
        left = RUN_S - seconds(self.now)
        if left > 0:
            self._pass(left)

    def _pass(self, duration_s: float) -> None:
        """Time passes; while something moves it is looked at, less and less often."""
        began, end = self.now, self.now + nanoseconds(duration_s)
        while self.now < end:
            step = end - self.now
            if busy := self.cell.busy():
                elapsed = seconds(self.now - began)
                step = min(step, nanoseconds(max(FIRST_LOOK_S, elapsed / 20)))
            self._run_to(self.now + step)
            self.moved_s += seconds(step) if busy else 0.0
            self._look()

    def _run_to(self, end: int) -> None:
        hearing = (each for each in self._clients.values() if each is not self._deaf)
        brokers = [each for each in hearing if each.is_broker and each.connected]
        self.inside.advance_with_brokers(end, brokers)

    def _client(self, endpoint: str) -> HearingClient:
        client = self._clients.get(endpoint)
        if client is None or not client.connected:
            client = self._clients[endpoint] = HearingClient(self.inside, endpoint)
        return client

    # ── steps ──

    def operate(self, robot: str, name: str, act: Act) -> None:
        refused = act(self._actions[robot], self.now)
        self._note_refusal(refused)
        self._intervened(robot)
        if name in STOPS and not isinstance(refused, Refused):
            self._stopped[robot] = self.now
        elif name not in ("disable", "override_feed", "hold"):
            self._stopped.pop(robot, None)

    def act_on(self, part: Part, act: Act) -> None:
        self._intervened(self._robot_of(part.place))
        self._note_refusal(act(self.components[part.place], self.now))

    def program(self, robot: str, what: str) -> None:
        control: Any = self.components[f"{robot}.program"]
        program = self.config.robots[robot].program
        assert program is not None
        if what == "run" and not control.under_way():
            for _ in control.prepare(program.text):
                pass
            self._note_refusal(control.load_prepared(program.name))
        self._intervened(robot)
        self._note_refusal(getattr(control, what)(self.now))

    def engine(self, name: str) -> None:
        engine = self.components["engine"]
        assert isinstance(engine, SimulationEngine)
        getattr(engine, name)(self.now)
        for robot in self.config.robots:
            self._intervened(robot)
            if name in STOPS:
                self._stopped[robot] = self.now

    def recover(self) -> None:
        self.engine("reset")
        self.engine("start")
        for robot, actions in self._actions.items():
            self._ask("reset", robot)
            if hasattr(actions, "enable"):
                self._ask("enable", robot)
        for part in self.parts:
            if "reset" in part.explored.acts:
                self.act_on(part, part.explored.acts["reset"])

    def begin(self) -> None:
        """Everything that works by itself is started: jobs and programs."""
        self.recover()
        for robot, each in self.config.robots.items():
            if each.program is not None:
                self.program(robot, "run")
        for part in self.parts:
            if "start" in part.explored.acts:
                self.act_on(part, part.explored.acts["start"])

    def _ask(self, name: str, robot: str) -> None:
        action = getattr(self._actions[robot], name, None)
        if action is not None:
            self._note_refusal(action(self.now))
            self._intervened(robot)

    def say(self, endpoint: str, data: Data) -> None:
        for robot in self._robots_of(endpoint):
            self._stopped.pop(robot, None)
        self._client(endpoint).say(data)

    def reconnect(self, endpoint: str, say: Do, deaf_s: float, away_s: float) -> None:
        """The client says something, the connection hangs, so that a broker confirms nothing any
        more, and is lost; then there is a new one."""
        client = self._client(endpoint)
        self._deaf = client
        say(self)
        self._pass(deaf_s)
        self._deaf = None
        client.leave()
        if away_s:
            self._pass(away_s)
        self._client(endpoint)

    def rehearse(self, duration_s: float) -> None:
        """Snapshot, run, restore, run again: the same bytes and the same state."""
        exchange = self.inside.exchange
        before, since, end = exchange.snapshot(), len(self.passed), self.now
        end += nanoseconds(duration_s)
        heard = {endpoint: len(client.heard) for endpoint, client in self._clients.items()}
        self.rehearses = True
        self._run_to(end)
        first, said = write_snapshot(exchange.snapshot()), self.passed[since:]
        for endpoint, client in self._clients.items():
            client.forget(heard[endpoint])
        del self.passed[since:]
        exchange.restore(before)
        self.rehearses = False
        self._run_to(end)
        second = write_snapshot(exchange.snapshot())
        if said != self.passed[since:]:
            pairs = zip(said, self.passed[since:], strict=False)
            other = next((pair for pair in pairs if pair[0] != pair[1]), ("more", "fewer"))
            raise BrokenError("a snapshot is transparent", f"other messages after it: {other}")
        if first != second:
            raise BrokenError("a snapshot is transparent", _difference(first, second))

    def _intervened(self, robot: str) -> None:
        self._acted[robot] = self._acted.get(robot, 0) + 1
        self._stopped.pop(robot, None)

    def _note_refusal(self, refused: Any) -> None:
        if isinstance(refused, Refused) and refused.reason in REFUSALS:
            self._note("every robot", "refusal", refused.reason)

    # ── looking ──

    def _watches(self) -> Iterator[tuple[str, Look]]:
        for part in self.parts:
            of_robot = part.place in self.config.robots
            every = EVERY_ROBOT if of_robot else EVERY_FACE if part.place in self.faces else NOTHING
            for watch in (*every.invariants, *part.explored.invariants):
                words = (watch.__doc__ or watch.__name__).strip().partition("\n")[0]
                if (look := watch(self, part.place)) is not None:
                    yield words, look

    def _look(self) -> None:
        for words, look in self._looks:
            if found := look():
                raise BrokenError(words, found)
        for part in self.parts:
            if part.place in self._actions and self._actions[part.place] is not None:
                for category, name in EVERY_ROBOT.reached(self._actions[part.place], self.now):
                    self._note(part.kind, category, name)
            component: Any = self.components.get(part.place) or self.faces.get(part.place)
            for category, name in part.explored.reached(component, self.now):
                self._note(part.kind, category, name)
        rules = self.components["scenario"]
        assert isinstance(rules, Rules)
        for name, counted in rules.status(self.now).items():
            if counted.strikes and name in self.drawn:
                self._note("every part", "fault", self.drawn[name].fault)

    def _note(self, kind: str, category: Category, name: str) -> None:
        self.reached.setdefault(f"{kind} {category}", set()).add(name)

    def reach(self) -> Reach:
        """What there is to reach in this cell."""
        found: dict[str, set[str]] = {"every robot refusal": set(REFUSALS)}
        for part in self.parts:
            for category, names in part.explored.reach.items():
                found.setdefault(f"{part.kind} {category}", set()).update(names)
        known = {each.fault for each in faults_of(self.config.name)}
        found["every part fault"] = known
        return {key: sorted(names) for key, names in found.items()}

    def _find_actions(self, robot: str) -> OperatorActions | None:
        kind = module_of("robots", self.config.robots[robot].kind)
        if not hasattr(kind, "operator_actions"):
            return None
        found: OperatorActions = kind.operator_actions(self.components[robot])
        return found

    def _robots_of(self, endpoint: str) -> list[str]:
        """The robots behind an endpoint: one, or the group of robots that has it."""
        if "." in endpoint:
            return [self._robot_of(endpoint)]
        return group_behind(self.config, endpoint)

    def _robot_of(self, place: str) -> str:
        return place.partition(".")[0]


def _repeat(data: Data) -> Say:
    return lambda robot, number: data


def _mutated(data: bytes, draw: Random) -> bytes:
    """Bytes of a client as a broken one sends them: one changed, cut off, or twice."""
    how = draw.randrange(3)
    if how == 0 and data:
        return garbled(data, draw.uniform(-1, 1), draw.uniform(-1, 1))
    return data[: draw.randrange(len(data) + 1)] if how == 1 else data * 2


def _difference(first: bytes, second: bytes) -> str:
    at = next((n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), 0)
    return f"…{first[max(at - 60, 0) : at + 40].decode()}… or …{second[at : at + 40].decode()}…"


# ── many runs ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Plan:
    """What is explored. `cells`: all that are shipped unless others are named. `hours`:
    robot-hours; `within_s`: seconds of this computer; whichever is reached first. `chats`: texts of
    recorded sessions, whose clients are played, too."""

    cells: tuple[str, ...] = dataclasses.field(default_factory=lambda: tuple(shipped_cells()))
    seed: int = 0
    hours: float | None = None
    within_s: float | None = None
    chats: tuple[str, ...] = ()

    def specs(self, clock: Callable[[], float] = time.monotonic) -> Iterator[RunSpec]:
        """The cells in turn, each turn with the next seed."""
        robots = {cell: len(load_config(cell).robots) for cell in self.cells}
        began, hours = clock(), 0.0
        for number in count():
            over = self.within_s is not None and clock() - began >= self.within_s
            if over or (self.hours is not None and hours >= self.hours):
                return
            turn, place = divmod(number, len(self.cells))
            cell = self.cells[place]
            hours += robots[cell] * RUN_S / 3600.0
            yield RunSpec(number, self.seed + turn, {"cell": cell})


class Finding(Struct, frozen=True):
    """What was broken, in its smallest form: the steps and faults that are needed for it.
    `command`: plays it again."""

    cell: str
    seed: int
    problem: str
    script: tuple[str, ...]
    runs: int
    command: str


class Summary(Struct, frozen=True):
    """What an exploration has done. `moved_hours`: robot-hours in which something was under way;
    `reached`, `missed`: by kind and category."""

    runs: int
    seeds: tuple[int, int]
    robot_hours: float
    moved_hours: float
    cpu_s: float
    reached: Reach
    missed: Reach
    findings: tuple[Finding, ...]
    digest: str


def summary_of(outcomes: Iterable[Explored], chats: Sequence[str] = ()) -> Summary:
    """``outcomes``: in any order. Failures are made smaller here, one of each kind in each cell."""
    ordered = sorted(outcomes, key=lambda each: each.number)
    reached, reach = _together(o.reached for o in ordered), _together(o.reach for o in ordered)
    first: dict[tuple[str, str], list[Explored]] = {}
    for each in ordered:
        if each.problem:
            first.setdefault((each.point["cell"], each.broken), []).append(each)
    return Summary(
        len(ordered),
        (min((o.seed for o in ordered), default=0), max((o.seed for o in ordered), default=0)),
        round(sum(_hours(each, float(each.figures["simulated_s"] or 0)) for each in ordered), 3),
        round(sum(_hours(each, each.moved_s) for each in ordered), 3),
        round(sum(each.cpu_s for each in ordered), 3),
        reached,
        {key: left for key in reach if (left := sorted({*reach[key]} - {*reached.get(key, ())}))},
        tuple(smallest(each[0], len(each), chats) for each in first.values()),
        sha256("".join(each.digest for each in ordered).encode()).hexdigest()[:16],
    )


def lacking(found: Summary, must_reach: Collection[Category]) -> list[str]:
    """What was not reached of these categories: `pick_place state PLACING`."""
    missed = ((key, name) for key, names in found.missed.items() for name in names)
    return [f"{key} {name}" for key, name in missed if key.rpartition(" ")[2] in must_reach]


def _hours(outcome: Explored, duration_s: float) -> float:
    return outcome.robots * duration_s / 3600.0


def _together(found: Iterable[Reach]) -> Reach:
    together: dict[str, set[str]] = {}
    for each in found:
        for key, names in each.items():
            together.setdefault(key, set()).update(names)
    return {key: sorted(names) for key, names in sorted(together.items())}


def smallest(failed: Explored, runs: int, chats: Sequence[str]) -> Finding:
    """The same invariant broken in the same cell with as few faults and steps as possible."""
    spec = RunSpec(failed.number, failed.seed, failed.point)
    best = failed

    def fails(without: tuple[str, ...]) -> bool:
        nonlocal best
        tried = explore_one(chats, replace(spec, without=without))
        if tried.broken == failed.broken:
            best = tried
            return True
        return False

    cell = failed.point["cell"]
    run = Exploring(cell, failed.seed, (), chats)
    names = run.names()
    without = left_out(names, fails)
    command = f"understudy campaign --explore --cells {cell} --only {failed.seed}"
    command += "".join(f" --keep {name}" for name in names if name not in without)
    drawn = run.drawn.items()
    faults = (f"{rule.fault} on {rule.on} ({name})" for name, rule in drawn if name not in without)
    script = (*faults, *best.script)
    return Finding(cell, failed.seed, best.problem, script, runs, command)
