"""The cell of a log built again at an instant: the snapshot before it, and what came in since.

What clients sent and what operators commanded is carried out at the same simulated times, so that
the cell answers with the same bytes; the answers are compared with those of the log.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from understudy.app.live import Live
from understudy.config import CellConfig, load_config
from understudy.doors.log.file import LogFile, event_of
from understudy.doors.log.recording import SNAPSHOT, Facts
from understudy.errors import ConfigError, Refused
from understudy.ports import Epoch, Run, Snapshot, WireMessage
from understudy.ports.hmi import Later
from understudy.simulation.cell import read_snapshot
from understudy.units import seconds
from understudy.wire.chat import ENDING
from understudy.wire.connection import Event
from understudy.wire.interface import DetachedSink

NOT_REPEATED = frozenset(
    ("advance", "rate", "pause", "resume", "snapshot", "restore", "quit", "set_mode", "heartbeat")
)
"""Commands that change time or the process, not the cell."""
NOT_REPEATED_KINDS = ("save_", "record", "fork_", "delete_recording", "start_run", "cancel_run")
WRITES_A_FILE = "_save"
"""End of the names of commands that write what a job has found."""


@dataclass
class Piece:
    """A log from a snapshot to an instant. `inputs`: events of clients, and commands as name and
    parameters, with their times. `expected`: all events of the wires."""

    snapshot: Snapshot
    until: int
    inputs: list[tuple[int, Event | tuple[str, dict[str, Any]]]]
    expected: list[Event]


@dataclass
class Comparison:
    """Events of a repetition beside those of the log, before the last instant: a log may end in the
    middle of it."""

    until: int
    expected: Sequence[Event]
    got: list[Event] = field(default_factory=list)

    @property
    def difference(self) -> str:
        """The first event that differs; empty: there is none."""
        got, expected = self._before(self.got), self._before(self.expected)
        for mine, theirs in zip(got, expected, strict=False):
            if mine != theirs:
                return (
                    f"at {seconds(theirs.at):.6f} s {theirs.endpoint} {theirs.peer} {theirs.kind} "
                    f"{theirs.data[:80]!r}: this time {mine.kind} {mine.data[:80]!r} at "
                    f"{seconds(mine.at):.6f} s"
                )
        if len(got) != len(expected):
            return f"{len(got)} events passed, not {len(expected)}"
        return ""

    def _before(self, events: Iterable[Event]) -> list[Event]:
        return [each for each in _by_peer(events) if each.at < self.until]

    @property
    def count(self) -> int:
        return len(self._before(self.got))

    def words(self) -> str:
        found = self.difference
        end = f"{seconds(self.until):.3f} s"
        if found:
            return f"this cell does not repeat the log: {found}"
        return f"the same bytes as the log up to {end}, {self.count} events; hash {self.hash}"

    def document(self) -> dict[str, Any]:
        """The comparison for `--json`."""
        found = {"same": not self.difference, "difference": self.difference}
        return found | {"to_s": seconds(self.until), "events": self.count, "hash": self.hash}

    @property
    def hash(self) -> str:
        return hash_of(self._before(self.got))


def _by_peer(events: Iterable[Event]) -> list[Event]:
    """Answers to different peers at one time may have another order."""
    return sorted(events, key=lambda each: (each.at, each.endpoint, each.peer))


def hash_of(events: Iterable[Event]) -> str:
    """Of everything that passed at the wires, with its times."""
    whole = sha256()
    for each in _by_peer(events):
        whole.update(repr((each.at, each.endpoint, each.peer, each.kind, each.address)).encode())
        whole.update(each.data)
    return whole.hexdigest()[:16]


def piece_of(log: LogFile, until: int, *, whole: bool = False) -> Piece:
    """``whole``: from the first snapshot on, not from the last one before the instant."""
    snapshots = [each for each in log.messages([SNAPSHOT.topic]) if each.at <= until]
    if not snapshots:
        begin = seconds(log.span[0])
        raise ConfigError(
            "the log has no snapshot so early", value=seconds(until), allowed=f"from {begin:g} s on"
        )
    at_start = [each for each in snapshots if each.at == snapshots[0].at]
    chosen = at_start[-1] if whole else snapshots[-1]
    wires = [topic for topic in log.schemas if topic.startswith("/journal/")]
    inputs: list[tuple[int, Any]] = []
    expected = []
    found = log.messages([*wires, "/commands"])
    for each in sorted(found, key=lambda each: each.sequence):
        if each.sequence <= chosen.sequence or each.at > until:
            continue
        if each.topic == "/commands":
            value = each.value
            inputs.append((each.at, (value["name"], value["parameters"])))
        else:
            event = event_of(each)
            expected.append(event)
            if event.kind != "<" and event.data != ENDING:
                inputs.append((each.at, event))
    return Piece(read_snapshot(chosen.data, file=str(log.path)), until, inputs, expected)


def run_of_facts(facts: Facts) -> Run:
    return Run(facts.run, Epoch(facts.epoch_ns), facts.seed, facts.seed_given)


@contextmanager
def config_of(log: LogFile) -> Iterator[CellConfig]:
    """The configuration of the cell of a log, with the files that the log has."""
    facts = log.facts
    with TemporaryDirectory(prefix="understudy-log-") as folder:
        for name, data in log.files.items():
            place = Path(folder, name)
            if not place.resolve().is_relative_to(Path(folder).resolve()):
                raise ConfigError("a file of the log is outside its folder", value=name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        cell = str(Path(folder, facts.cell)) if log.files else facts.cell
        config = load_config(cell, seed=facts.seed if facts.seed_given else None)
        if config.digest != facts.digest:
            raise ConfigError(
                f"the cell {facts.name} here is not the one of the log, which was written by "
                f"understudy {facts.version}: use that version, and the options of that run",
                file=str(log.path),
                value=config.digest,
                allowed=facts.digest,
            )
        yield config


# ── in a live cell ──────────────────────────────────────────────────────────────────────────────


async def repeat(live: Live, piece: Piece) -> None:
    """Brings a live cell whose time does not run yet to the end of a piece."""
    pump = live.operator.pump
    pump.restore(piece.snapshot)
    for at, given in piece.inputs:
        await _advance(live, at)
        if isinstance(given, Event):
            _feed(live, given)
        else:
            await _command(live, *given)
    await _advance(live, piece.until)


async def _advance(live: Live, to: int) -> None:
    now = live.operator.cell.now
    if to > now and (later := live.operator.pump.advance(to - now)) is not None:
        await _settled(later)


async def _settled(later: Later) -> Any:
    ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    later.then(ended.set_result)
    return await ended


def _feed(live: Live, event: Event) -> None:
    pump = live.operator.pump
    if event.data == b"open" and event.kind == "!":
        pump.open(event.endpoint, DetachedSink(), event.peer)
        return
    connection = pump.connection(event.endpoint, event.peer)
    if connection is None:
        return  # the robot has closed it
    if event.kind == ">":
        address = event.address
        message = WireMessage(address[0], event.data, address[1]) if address else event.data
        pump.receive(connection, message)
    elif event.data == b"eof":
        pump.eof(connection)
    else:
        pump.closed(connection)


def is_repeated(command: str) -> bool:
    return not (
        command in NOT_REPEATED
        or command.startswith(NOT_REPEATED_KINDS)
        or command.endswith(WRITES_A_FILE)
    )


async def _command(live: Live, name: str, parameters: dict[str, Any]) -> None:
    if not is_repeated(name):
        return
    clock = live.operator.cell.clock_state
    rate, paused = clock.rate, clock.paused
    answer = live.commands.call(name, parameters, "operator")
    if isinstance(answer, Later):
        answer = await _settled(answer)
    if isinstance(answer, Refused):
        raise ConfigError(f"the command {name} of the log is refused here: {answer.reason}")
    if not paused and clock.rate != rate:
        clock.set_rate(rate)


class Repetition:
    """Repeats a piece of a log in a live cell: a door of `run_on_page`."""

    def __init__(self, piece: Piece) -> None:
        self.piece = piece
        self.comparison = Comparison(piece.until, piece.expected)
        self._under_way = False

    def note(self, event: Event) -> None:
        if self._under_way:
            self.comparison.got.append(event)

    def doors(self, live: Live) -> list[AbstractAsyncContextManager[dict[str, str]]]:
        return [self._open(live)]

    @asynccontextmanager
    async def _open(self, live: Live) -> Any:
        self._under_way = True
        await repeat(live, self.piece)
        self._under_way = False
        yield {}


async def repeated(config: CellConfig, run: Run, piece: Piece) -> Comparison:
    """Repeats a piece in a cell without sockets."""
    from understudy.app.live import Options

    repetition = Repetition(piece)
    options = Options(rate=1.0, run=run, note=repetition.note, answers_inside=True, ephemeral=True)
    live = Live(config, options)
    try:
        async with repetition.doors(live)[0]:
            return repetition.comparison
    finally:
        await live.stop()
