"""`understudy send`: stream a program to a robot, virtual or real.

The kinds of robots declare how: a `Sender` reads the program and gives a `ProgramStream`. Here are
the connection, the progress bar and, if the robot has one, the connection for its telemetry.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from understudy.app.ready_file import running_cells
from understudy.cli.options import (
    JsonOption,
    ReadyFileOption,
    RunningOption,
    cell_option,
    is_quiet,
    put_json,
    robot_argument,
)
from understudy.cli.parameters import Argument, Exit, Option
from understudy.cli.status import chosen_cells
from understudy.config.files import read_program
from understudy.errors import ConfigError, Refused, unknown
from understudy.ports.operation import ProgramStream, Sender, SendOptions, WatchesTelemetry
from understudy.registry import kinds, module_of, present_name
from understudy.simulation.cell import Cell
from understudy.wire.dial import Destination, Dial, DialTarget, parse_place
from understudy.wire.exchange import Exchange
from understudy.wire.interface import words_of
from understudy.wire.pump import Pump
from understudy.wire.record import on_signals
from understudy.wire.tcp import stop_accepting

LOOK_SECONDS = 0.05
"""Period in which the state of the driver is looked at."""
CLOSING_SECONDS = 5.0
"""Time that a driver has to stop the robot after its program failed."""
READ_SIZE = 4096
TELEMETRY_FORMS = "HOST:PORT, or listen:[HOST:]PORT where the robot calls"
TELEMETRY_TIMEOUT_SECONDS = 5.0
"""Time until the first reading of telemetry that `--telemetry` asks for."""
OFFERED_TIMEOUT_SECONDS = 1.0
"""The same, of telemetry that a running cell offers and no option asks for."""
UNSEEN = "whether the robot went where it was sent is not known"


def send(
    robot: Annotated[
        str, robot_argument("robot of a running cell; with --to: grblhal, kuka or text")
    ],
    file: Annotated[Path, Argument(help="the program")],
    to: Annotated[
        str | None, Option(help="HOST:PORT or /dev/NAME[@BAUD], also of a REAL robot")
    ] = None,
    dialect: Annotated[
        str, Option(help="of a program for grblhal; arm: in an arm's own words")
    ] = "grblhal",
    cell: Annotated[
        str | None, cell_option("the cell of the arm, for dialect arm; default: default")
    ] = None,
    running: RunningOption = "",
    ready_file: ReadyFileOption = None,
    telemetry: Annotated[
        str | None, Option(help=f"of a kuka, to see that it moves: {TELEMETRY_FORMS}")
    ] = None,
    json: JsonOption = None,
) -> None:
    """Stream a program to a robot and wait for its end."""
    declared, dialect = _declared(), present_name("dialect", dialect)
    known = dict.fromkeys(name for sender in declared for name in sender.dialects)
    if known and dialect not in known:  # without one, no robot here has dialects
        raise unknown("dialect", dialect, known, key="--dialect")
    able = [sender for sender in declared if dialect in sender.dialects or not sender.dialects]
    found = _find(able, robot, to, running, ready_file)
    source = Telemetry.of(telemetry) if telemetry is not None else found.telemetry
    text = read_program(file).decode("utf-8", "replace")
    stream = found.sender.read(text, SendOptions(dialect, cell or ""))
    outcome = stream
    if stream is not None and not isinstance(stream, Refused):
        outcome = asyncio.run(_send(stream, found.sender.unit, found.place, source))
    refused = outcome.reason if isinstance(outcome, Refused) else ""
    is_shown = put_json(
        json, {"file": str(file), "robot": robot, "done": not refused, "error": refused}
    )
    if refused:
        print(f"{file}: {refused}", file=sys.stderr)
        raise Exit(1)
    if not is_shown:
        print(f"{file}: done")


# ── which robot ──


class Found(NamedTuple):
    """A robot to send to; `telemetry` is what a running cell offers beside its endpoint."""

    sender: Sender
    place: DialTarget
    telemetry: "Telemetry | None" = None


def _declared() -> list[Sender]:
    """The senders of all kinds of robots; several kinds may have one of the same name."""
    modules = [module_of("robots", kind) for kind in kinds("robots")]
    return [module.sender() for module in modules if hasattr(module, "sender")]


def _find(
    senders: list[Sender], robot: str, to: str | None, running: str, ready_file: Path | None
) -> Found:
    """Finds the sender: by its name if an address is given, else by the endpoints of running
    cells."""
    named = {sender.name: sender for sender in reversed(senders)}
    if to is not None:
        if robot not in named:
            raise unknown("robot to send to", robot, sorted(named))
        return Found(named[robot], parse_place(to))
    named_cell = bool(running or ready_file)
    cells = (
        chosen_cells([running] if running else [], ready_file) if named_cell else running_cells()
    )
    there = {name: address for cell in cells for name, address in cell.endpoints.items()}
    for sender in named.values():
        if f"{robot}.{sender.endpoint}" in there:
            return _running(robot, sender, there)
    able = {
        name.removesuffix(f".{sender.endpoint}"): sender
        for sender in named.values()
        for name in there
        if name.endswith(f".{sender.endpoint}")
    }
    if robot not in named:
        problem = "robot (no running cell has it; --to ADDR names another)"
        raise unknown(problem, robot, able)
    of_kind = [name for name, sender in able.items() if sender.name == robot]
    if len(of_kind) != 1:
        problem = "which of them is meant?" if of_kind else "no running cell has such a robot"
        raise ConfigError(problem, value=robot, allowed=", ".join(of_kind) or "--to ADDR")
    return _running(of_kind[0], named[robot], there)


def _running(robot: str, sender: Sender, there: dict[str, str]) -> Found:
    """A robot of a running cell."""
    beside = there.get(f"{robot}.{sender.telemetry}")
    place = parse_place(beside) if beside else None
    telemetry = Telemetry(place) if isinstance(place, Destination) else None
    return Found(sender, parse_place(there[f"{robot}.{sender.endpoint}"]), telemetry)


# ── sending ──


async def _send(
    stream: ProgramStream, unit: str, place: DialTarget, source: "Telemetry | None"
) -> Refused | None:
    async with _connection(stream, place) as pump:
        if not isinstance(stream, WatchesTelemetry):
            return await _run(stream, unit, pump)
        if source is None:
            outcome, blind = await _run(stream, unit, pump), "--telemetry would show it"
        else:
            async with telemetry_read(source, stream, pump) as blind:
                if blind and source.wanted:
                    return Refused(blind)
                outcome = await _run(stream, unit, pump)
    if outcome is None and not stream.confirmed():
        print(f"{UNSEEN}: {blind or 'the telemetry fell silent'}", file=sys.stderr)
    return outcome


@contextlib.asynccontextmanager
async def _connection(stream: ProgramStream, place: DialTarget) -> AsyncIterator[Pump]:
    """Connects the driver and lets wall time run for it."""
    cell = Cell("send", digest="", components={"robot": stream.driver}, faces={})
    pump = Pump(Exchange(cell), real=True)
    dial = Dial(stream.driver, place, pump)
    pump.start()
    dial.start()
    try:
        yield pump
    finally:
        await dial.stop()
        pump.stop()


async def _run(stream: ProgramStream, unit: str, pump: Pump) -> Refused | None:
    """Starts the program as soon as the robot answers, and shows a progress bar until it ends."""
    ended: asyncio.Future[Refused | None] = asyncio.get_running_loop().create_future()

    def end(outcome: Refused | None) -> None:
        if not ended.done():
            ended.set_result(outcome)

    while not (started := pump.act(lambda now: stream.start(now, end))):  # noqa: ASYNC110
        await asyncio.sleep(LOOK_SECONDS)
    if isinstance(started, Refused):
        return started
    on_signals(lambda: pump.act(stream.give_up))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeElapsedColumn(), console=Console(stderr=True, quiet=is_quiet())
    ) as bar:
        task = bar.add_task(unit, total=stream.total)
        while not ended.done():
            if (completed := stream.progress()) is not None:
                bar.update(task, completed=completed)
            await asyncio.wait([ended], timeout=LOOK_SECONDS)
        if ended.result() is None:
            bar.update(task, completed=stream.total)
    if ended.result() is not None:
        await _close(stream, pump)
    return ended.result()


async def _close(stream: ProgramStream, pump: Pump) -> None:
    for _ in range(round(CLOSING_SECONDS / LOOK_SECONDS)):
        if not pump.act(stream.closing):
            return
        await asyncio.sleep(LOOK_SECONDS)


# ── telemetry ──


class Telemetry(NamedTuple):
    """A source of telemetry. `calls` says that the robot connects to `place`; `wanted`, that the
    user asked for it and nothing is sent without it."""

    place: Destination
    calls: bool = False
    wanted: bool = False

    @staticmethod
    def of(text: str) -> "Telemetry":
        """Reads the value of `--telemetry`."""
        where = text.removeprefix("listen:")
        calls = where != text
        try:
            place = parse_place(where if ":" in where or not calls else f":{where}")
        except ConfigError:
            place = None
        if not isinstance(place, Destination):
            raise ConfigError("no place for telemetry", value=text, allowed=TELEMETRY_FORMS)
        return Telemetry(place, calls, wanted=True)


@contextlib.asynccontextmanager
async def telemetry_read(
    source: Telemetry, stream: WatchesTelemetry, pump: Pump
) -> AsyncIterator[str]:
    """Feeds telemetry to the stream; yields why no reading came in time, or an empty text."""
    first = asyncio.Event()
    timeout = TELEMETRY_TIMEOUT_SECONDS if source.wanted else OFFERED_TIMEOUT_SECONDS

    async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        take: Callable[[bytes, int], bool] = stream.telemetry_reader()
        with contextlib.closing(writer), contextlib.suppress(OSError):
            while data := await reader.read(READ_SIZE):
                if pump.act(lambda now, data=data: take(data, now)):  # type: ignore[misc]
                    first.set()

    async with asyncio.TaskGroup() as tasks, contextlib.AsyncExitStack() as stack:

        def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            stack.callback(tasks.create_task(read(reader, writer)).cancel)

        host, port = source.place.host, source.place.port
        try:
            if source.calls:
                server = await asyncio.start_server(begin, host, port)
                stack.push_async_callback(stop_accepting, server)
            else:
                begin(*await asyncio.open_connection(host, port))
            await asyncio.wait_for(first.wait(), timeout)
        except (OSError, UnicodeError, TimeoutError) as problem:
            why = words_of(problem) or f"none in {timeout:g} s"
            yield f"no telemetry from {source.place}: {why}"
        else:
            yield ""
