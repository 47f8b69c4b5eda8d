"""A live cell: its faces on wires, its time against the wall clock, and a table of commands."""

import asyncio
import logging
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from understudy.agenda import Rate
from understudy.app.build import build_cell, build_live_cell, end_run, repeatable_run
from understudy.app.self_pairs import unknown_bodies
from understudy.config import CellConfig, Wire, endpoint_name, read_wire
from understudy.config.cell import grouped
from understudy.config.files import SHIPPED, name_of_cell
from understudy.config.outside_files import FilesFolder
from understudy.errors import ConfigError, NotInstalledError, Refused, unknown
from understudy.operator.background import KINDS, OVER, BackgroundRuns
from understudy.operator.cell import OperatedCell
from understudy.operator.doors import DoorContext, Doors, Lock
from understudy.operator.doors.control import control_face
from understudy.operator.doors.hmi_link import HmiLinkFace, LinkNotes
from understudy.operator.doors.state import state_face
from understudy.operator.journal import JournalQueries
from understudy.operator.table import Commands, commands_of
from understudy.ports import (
    AnyFace,
    CallsPlace,
    EndsRun,
    Epoch,
    HasCallers,
    Injectable,
    Run,
    WireMessage,
)
from understudy.ports.access import TOKEN_VARIABLE, check_reachable, check_token, is_loopback
from understudy.ports.decoder import decoder_of
from understudy.ports.device import SeesCell
from understudy.ports.hmi import Later
from understudy.registry import module_of
from understudy.simulation.cell import Cell
from understudy.simulation.scenario import Scenario
from understudy.space.collision.pair_store import SelfPairs, keep
from understudy.units import duration_ns, nanoseconds, seconds
from understudy.wire import descriptors
from understudy.wire.can import device_place
from understudy.wire.chat import ENDING, INJECT
from understudy.wire.connection import Connection, Event, Note, NoteSent
from understudy.wire.dial import Dial
from understudy.wire.exchange import Exchange
from understudy.wire.interface import AsksPassword, DetachedSink, KeepsFiles, PeerEvents, Server
from understudy.wire.journal import Finding, WireJournal
from understudy.wire.pump import Pump
from understudy.wire.zmq_request import AskedProcess, QuestionWire

log = logging.getLogger(__name__)

REPORT_SECONDS = 0.05
"""Seconds between two reports of progress."""
LOOK_SECONDS = 0.01
LAST_MESSAGES_SECONDS = 2.0
MOST_REPORTED = 100
"""Kinds of unexpected requests that a strict cell logs."""
"""Wall time in which brokers take the last messages of a cell that ends."""
TOKEN_KEYS = f"`token` at the top level of the cell file, or {TOKEN_VARIABLE}"
PAGE_LINK = "hmi_link"
"""Kind of face through which the page commands a cell; also the endpoint, if no robot has one."""


@dataclass(frozen=True)
class Options:
    """How a cell is run, as opposed to what it is. `hmi`: open the doors of the page. `secret`:
    what the clients of its doors must know. `files`: the folder for the files that clients name;
    None: that of the cell file, or the working directory for a shipped cell. `wires`: endpoints
    that have another wire than in the cell file. `run`: None: a new one. `answers_inside`:
    questions to other processes are answered in this process. `watching`: the journal finds what is
    refused or unknown."""

    rate: Rate = 1.0
    ephemeral: bool = False
    ports: dict[str, int] = field(default_factory=dict)
    wires: dict[str, Wire] = field(default_factory=dict)
    for_seconds: float | None = None
    hmi: bool = False
    real: bool = False
    project: Path | None = None
    files: Path | None = None
    note: Callable[[Event], None] | None = None
    watching: bool = False
    run: Run | None = None
    answers_inside: bool = False
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)


class Live:
    """Runs a cell on the event loop it is made on, until `finished`.

    `with_password`: endpoints whose wire asks for the secret as a password.
    """

    def __init__(
        self, config: CellConfig, options: Options, finished: asyncio.Event | None = None
    ) -> None:
        """``finished``: set when the cell is to end; None: a new one."""
        self.config = config
        self.endpoints: dict[str, str] = {}
        self.with_password: set[str] = set()
        self.finished = finished or asyncio.Event()
        self.secret = options.secret
        self._token = os.environ.get(TOKEN_VARIABLE) or config.head.token or ""
        check_token(self._token, TOKEN_KEYS)
        self.files = files_folder(config, options.files)
        self._project = options.project
        self.ephemeral = options.ephemeral
        run = options.run or run_of(config, options.rate)
        # Then the epoch stays: in lock-step, as the cell file says, or as written for a replay.
        is_dated = isinstance(options.rate, str) or "epoch" in config.sections or options.note
        self._run = run
        build = build_cell if options.answers_inside else build_live_cell
        self._cell = build(config, run)
        self._cell.clock_state.set_rate(options.rate)
        self._cell.interruptible = True
        callers = self._callers(options)
        decoders = {name: decoder_of(face) for name, face in self._cell.faces.items()}
        report = self._report_unexpected if config.head.strict else None
        self.journal = WireJournal(decoders, watching=options.watching, on_finding=report)
        self._reported: list[str] = []
        given = [] if options.note is None else [options.note]
        notes_sent: dict[Note, NoteSent] = {self.journal.note: self.journal.note_sent}
        self._exchange = Exchange(self._cell, [self.journal.note, *given], notes_sent)
        self.notes = self._exchange.notes
        self._pump = Pump(
            self._exchange,
            self._cell.clock_state,
            poll_step=nanoseconds(config.head.poll_step_ms / 1000.0),
            until=None if options.for_seconds is None else nanoseconds(options.for_seconds),
            finished=self.finished.set,
            held=True,
            epoch=None if is_dated else run.epoch,
            real=bool(callers),
        )
        self._cell.on_stuck = self._pump.stop_time
        self._runs = BackgroundRuns(KINDS, {"cell": self._name()})
        self.operator = OperatedCell(
            config,
            self._cell,
            self._pump,
            self._runs,
            self.files,
            facts=self._facts,
            quit_=self.finished.set,
            fix_run=lambda: self.run,
            notes=self.notes,
            real=options.real,
        )
        own = commands_of(self._runs) + commands_of(JournalQueries(self.journal, self._strict))
        real = self.operator.robots.real if options.real else None
        self.commands = Commands([*self.operator.commands(), *own], real)
        self.commands.on_change.append(self._note_command)
        self.operator.table = self.commands
        for listener in self.operator.on_table:
            listener(self.commands)
        self.watch = self.operator.watch
        self._said: dict[str, Connection] = {}
        self._servers = self._make_servers(options)
        self._dials = [Dial(each, device_place(each.where), self._pump) for each in callers]
        self._asking = self._make_asking(options)

    @property
    def run(self) -> Run:
        """What a replay needs beside the configuration; its epoch does not change any more."""
        self._pump.epoch = None
        return self._run

    @property
    def rate(self) -> Rate:
        return self._cell.clock_state.running_rate

    @property
    def now(self) -> float:
        return seconds(self._pump.now())

    @property
    def problem(self) -> str:
        """Why time cannot go on, a fault in a part; empty if it can."""
        return self._pump.problem

    async def start(self) -> None:
        """Opens all wires, then starts time."""
        await self.listen()
        self.load()
        self.go()

    async def listen(self) -> None:
        """Opens all wires; clients can connect, time does not run yet."""
        self._pump.set_epoch(self._cell.now)
        self.watch.look()  # loads compiled code now, and not while a client waits
        for camera in self._cameras():
            camera.starting = True
        try:
            for server in self._servers:
                await self._open(server)
            for dial in self._dials:
                dial.start()
            for asking in self._asking.values():
                asking.start()
            await self.operator.modes.begin()
        except ConfigError:
            await self.stop()
            raise

    async def _open(self, server: Server) -> None:
        try:
            self.endpoints[server.endpoint] = await server.start()
        except NotInstalledError as problem:
            log.warning("%s is not opened: it %s", server.endpoint, problem)

    async def find_self_pairs(self, report: Callable[[str, float], None]) -> None:
        """Finds in a worker process which links of mesh arms can touch, where it is not known.

        ``report``: called with the name of the robot and the share that is done. After a failure
        the first motion of the robot finds them.
        """
        for name, key in unknown_bodies(self._cell.components).items():
            run = self._runs.start_run("self_pairs", {"part": name})
            while not isinstance(run, Refused) and run.state not in OVER:
                report(name.partition(".")[0], run.progress)
                await asyncio.sleep(REPORT_SECONDS)
            found = None if isinstance(run, Refused) else self._runs.result(run.id)
            if found is None:
                reason = run.reason if isinstance(run, Refused) else run.error or run.state
                log.warning("%s: its links that can touch were not found: %s", name, reason)
            else:
                keep(key, msgspec.json.decode(found, type=SelfPairs))

    def load(self) -> None:
        """Loads the programs that the cell file names, and the project."""
        self.operator.all_programs.load_named_programs()
        if self._project is not None:
            self.operator.project.open(self._project)

    def go(self) -> None:
        """Starts time, and answers requests for pictures that have waited."""
        self._pump.start()
        for camera in self._cameras():
            camera.starting = False
            self._pump.act(lambda now: None)

    def _cameras(self) -> list[SeesCell]:
        return [
            component
            for component in self._cell.components.values()
            if isinstance(component, SeesCell)
        ]

    def prepare(self) -> Iterator[None]:
        """Compiles and computes in steps what the first motion and the first picture would have to
        wait for."""
        from understudy.app.kernels import needed

        if kernels := needed(self.config):
            yield from self._prepare_motions("motion" in kernels)
        for robot in self.operator.robots:
            robot.axis_reading()
        for kind in grouped(self.config.robots):
            yield
            module_of("robots", kind).prepare()
        for component in self._cell.components.values():
            if isinstance(component, SeesCell):
                yield
                yield from component.prepare()

    def _prepare_motions(self, lines: bool) -> Iterator[None]:
        """The kernels of robots with a body. A cell without one does not load the compiler."""
        from understudy.motion.warm import warm, warm_tool_paths
        from understudy.simulation.collision.encounters import RobotEncounters
        from understudy.simulation.collision.watch import CollisionWatch
        from understudy.space.warm import warm_kinematics

        if lines:
            warm()
        for component in self._cell.components.values():
            if isinstance(component, CollisionWatch):
                yield
                warm_kinematics(component.body.chain)
                yield
                warm_tool_paths(component.body.chain)
            if isinstance(component, CollisionWatch | RobotEncounters):
                yield
                yield from component.prepare()

    async def stop(self) -> None:
        await self.operator.stop()
        await self._send_last_messages()
        self._pump.stop()
        self._door_pump.stop()
        ends = [server.stop() for server in self._servers] + [dial.stop() for dial in self._dials]
        ends += [asking.stop() for asking in self._asking.values()]
        await asyncio.gather(self._runs.stop(), *ends)

    async def _send_last_messages(self) -> None:
        """Parts say goodbye; brokers have some time to take it."""
        if not any(isinstance(component, EndsRun) for component in self._cell.components.values()):
            return
        for note in self.notes:
            note(Event(self._pump.now(), "cell", "end", "!", ENDING))
        self._pump.act(partial(end_run, self._cell.components))
        for _ in range(round(LAST_MESSAGES_SECONDS / LOOK_SECONDS)):
            if not self._exchange.behind():
                break
            await asyncio.sleep(LOOK_SECONDS)

    def ask(self, component: str, process: AskedProcess) -> None:
        """Questions of this part go to this process."""
        self._asking[component].ask(process)
        self.operator.modes.ask(component.partition(".")[0], process)

    def on_component(self, name: str, action: Callable[[Any, int], Any]) -> Any:
        """Calls ``action(part, now)`` with a part of the cell at its present time."""
        return self._pump.act(lambda now: action(self._cell.components[name], now))

    def on_cell(self, action: Callable[[Cell], Any]) -> Any:
        """Calls ``action(cell)`` at the present time of the cell."""
        return self._pump.act(lambda now: action(self._cell))

    def say(self, endpoint: str, data: bytes | WireMessage) -> None:
        """Sends bytes or a message to an endpoint, as a client that reads no answers."""
        if endpoint not in self._said:
            self._said[endpoint] = self._pump.open(endpoint, DetachedSink())
        self._pump.receive(self._said[endpoint], data)

    def advance(self, duration: float) -> Later | None:
        """Runs ahead; a `Later` if time must wait for another process on the way."""
        return self._pump.advance(duration_ns(duration))

    def _note_command(self, name: str, parameters: Mapping[str, Any]) -> None:
        """Writes an injected fault into the transcript, so that a replay injects it, too."""
        if name != "inject":
            return
        data = INJECT + msgspec.json.encode(parameters)
        for note in self.notes:
            note(Event(self._pump.now(), "cell", "operator", "!", data))

    def _report_unexpected(self, finding: Finding) -> None:
        """Logs each kind of unexpected request of a strict cell once, also in the log of events."""
        text = str(finding)
        if not finding.unexpected or text in self._reported:
            return
        if len(self._reported) >= MOST_REPORTED:
            return
        self._reported.append(text)
        more = "; further ones are only counted" if len(self._reported) == MOST_REPORTED else ""
        log.warning("strict: %s%s", text, more)
        robot = finding.entry.endpoint.partition(".")[0]
        self.operator.log.note("message", robot, finding.problem, self._cell.now)

    def _strict(self) -> dict[str, Any]:
        """What the cell has received although no robot knows or emulates it."""
        return {
            "strict": self.config.head.strict,
            "count": self.journal.unexpected,
            "requests": self._reported,
        }

    def _facts(self) -> dict[str, Any]:
        config = self.config
        facts = {
            "cell": config.name,
            "digest": config.digest,
            "endpoints": self.endpoints,
            "files": str(self.files.path),
        }
        return facts | ({"unexpected": self._strict()} if config.head.strict else {})

    def _name(self) -> dict[str, Any]:
        """What another process needs to build the same cell."""
        config = self.config
        seed, digest = config.head.seed, config.digest
        return {"file": name_of_cell(config.document.file), "seed": seed, "digest": digest}

    # ── wires ──

    def _make_servers(self, options: Options) -> list[Server]:
        """A server for each endpoint: the cell's own doors, then the faces of the robots."""
        head = self.config.head
        wires: dict[str, Wire] = {
            "control": head.control,
            **({"state": head.state} if options.hmi else {}),
        }
        wires |= self.config.endpoints()
        doors = self._doors(wires, page=options.hmi)
        for name, door in doors.items():
            if isinstance(door, HmiLinkFace):
                self.journal.add(name, door.decoder)
        links = LinkNotes(self.journal.note, lambda: self._cell.now, self.commands.is_query)
        self._door_pump = Pump(Exchange(Doors(doors), [links]), skip_missed=True)
        for endpoint in options.ports:
            if endpoint not in wires:
                raise unknown("endpoint", endpoint, wires)
        if both := options.ports.keys() & options.wires.keys():
            raise ConfigError(f"--port or --pty: {min(both)} has one address")
        servers = []
        for endpoint, wire in wires.items():
            placed = options.wires.get(endpoint) or wire.placed(
                options.ports.get(endpoint), ephemeral=options.ephemeral
            )
            if isinstance(placed, KeepsFiles) and options.rate in ("max", "step"):
                placed = placed.without_files()
            events: PeerEvents = self._door_pump if endpoint in doors else self._pump
            server = placed.server(endpoint, events)
            if endpoint in doors and isinstance(server, AsksPassword) and not _is_local(wire):
                server.passwords = self._keys()
                self.with_password.add(endpoint)
            servers.append(server)
            if isinstance(server, Injectable):
                scenario = self._cell.components["scenario"]
                assert isinstance(scenario, Scenario)
                scenario.attach_wire(endpoint, server)
        share = descriptors.share(len(servers))
        for server in servers:
            if isinstance(server, descriptors.ServesClients):
                server.limit_clients(share)
        return servers

    def _callers(self, options: Options) -> list[Any]:
        """What calls the devices of REAL robots that are parts of this cell."""
        components = self._cell.components.values()
        callers: list[Any] = [
            component for component in components if isinstance(component, CallsPlace)
        ]
        callers += [
            each
            for component in components
            if isinstance(component, HasCallers)
            for each in component.callers()
        ]
        if callers and not options.real:
            raise ConfigError(
                f"a robot of this cell is REAL ({callers[0].where}): it moves only with --real"
            )
        if callers and options.rate != 1.0:
            raise ConfigError("REAL robots run in real time", value=options.rate, allowed="1")
        return callers

    def _make_asking(self, options: Options) -> dict[str, QuestionWire]:
        """The connections to the processes that parts of this cell ask, by part."""
        asking = {} if options.answers_inside else self._cell.asking()
        return {name: QuestionWire(component, self._pump) for name, component in asking.items()}

    def _doors(self, wires: dict[str, Wire], *, page: bool) -> dict[str, AnyFace]:
        """The faces beside the cell; a page without a link of a robot gets one of its own, whose
        wires are added."""
        context, head = self._door_context(), self.config.head
        control = self.lock("control", head.control, required=head.control.auth == "secret")
        doors: dict[str, AnyFace] = {
            "control": control_face(self.commands, context.late, lock=control)
        }
        if "state" in wires:
            state = self.lock("state", head.state, required=head.state.auth == "secret")
            doors["state"] = state_face(self.watch, lock=state)
        linked = False
        for robot_name, robot in self.config.robots.items():
            for face_name, face in robot.faces.items():
                module = module_of("faces", face.kind)
                untimed = {
                    suffix: endpoint_name(robot_name, face_name, suffix)
                    for suffix in face.wires
                    if not module.ENDPOINTS[suffix].timed
                }
                if untimed:
                    linked |= face.kind == PAGE_LINK
                    locks = [self.lock(name, wires[name]) for name in untimed.values()]
                    strictest = max(locks, key=lambda lock: lock.required)
                    locked = replace(context, lock=strictest)
                    built = module.build_doors(robot_name, face.config, locked)
                    doors |= {name: built[suffix] for suffix, name in untimed.items()}
        if page and not linked:
            module = module_of("faces", PAGE_LINK)
            built = module.build_doors("", module.Config(), context)
            for suffix, endpoint in module.ENDPOINTS.items():
                name = endpoint_name(PAGE_LINK, "", suffix)
                doors[name] = built[suffix]
                wires[name] = read_wire(endpoint, {"port": 0})
        return doors

    def _door_context(self) -> DoorContext:
        """Of a door on loopback: open, but for orders to REAL robots."""
        loop = asyncio.get_running_loop()
        late: Callable[[], object] = lambda: loop.call_soon(self._door_pump.act, _nothing)  # noqa: E731
        lock = Lock(self._keys())
        return DoorContext(self.commands, self.watch, time.time, late, lock)

    # ── access ──

    def _keys(self) -> tuple[str, ...]:
        return (self.secret, self._token) if self._token else (self.secret,)

    def lock(self, endpoint: str, wire: Wire, *, required: bool = False) -> Lock:
        """The lock of a door; on an address that other machines can reach it needs a token."""
        return self.lock_at(endpoint, (wire.listens_on() or ("localhost", 0))[0], required=required)

    def lock_at(self, endpoint: str, host: str, *, required: bool = False) -> Lock:
        """The lock of a door that listens on this address."""
        check_reachable(endpoint, host, self._token, set_by=TOKEN_KEYS)
        return Lock(self._keys(), required=required or not is_loopback(host))


def replay_facts(cell: str, config: CellConfig, this_run: Run) -> dict[str, str]:
    """The first lines of a transcript: facts that `replay` needs to build the same cell."""
    facts = {"cell": cell, "seed": str(config.head.seed)}
    own = {"run": this_run.id, "epoch_ns": str(this_run.epoch.ns)}
    own |= {"seed_given": "yes"} if this_run.seed_given else {}
    return facts | (own if config.group_wires else {})


def run_of(config: CellConfig, rate: Rate) -> Run:
    """A live run has an id and an epoch of its own, so that brokers do not take its messages for
    those of the run before; in lock-step a run can be repeated."""
    run = repeatable_run(config)
    if isinstance(rate, str):
        return run
    epoch = Epoch(config.sections.get("epoch", time.time_ns()))
    return replace(run, id=secrets.token_hex(16), epoch=epoch)


def _is_local(wire: Wire) -> bool:
    place = wire.listens_on()
    return place is None or is_loopback(place[0])


def files_folder(config: CellConfig, chosen: Path | None) -> FilesFolder:
    """The folder for the files that clients name."""
    file = config.document.file
    beside = Path.cwd() if file.endswith(SHIPPED) else Path(file).absolute().parent
    return FilesFolder((chosen or beside).resolve())


def _nothing(now: int) -> None:
    """An action that changes nothing: the pump delivers what is ready."""
