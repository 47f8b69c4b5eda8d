"""`understudy run`: a live cell."""

import asyncio
import gc
import logging
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from understudy.app.live import Live, Options
from understudy.app.ready_file import ReadyFile, registry_file
from understudy.cli import hmi
from understudy.cli.kernels import announce, is_warm
from understudy.cli.run_program import Errand
from understudy.cli.told_once import log_to_stderr
from understudy.cli.transcript import Transcript
from understudy.config import CellConfig, load_config
from understudy.errors import ConfigError
from understudy.wire.chat import ChatWriter, Event, write_facts
from understudy.wire.clock import Rate, parse_rate

log = logging.getLogger(__name__)

BETWEEN_S = 0.02
"""Seconds between two pieces of what is prepared while the cell runs already."""

UNHEARD_S = 1.0
"""Seconds that a signal waits for the loop."""


def add_to(app: typer.Typer) -> None:
    app.command(name="run", epilog="Example: understudy run text_robot --rate 10 --ephemeral")(run)


CellName = Annotated[str, typer.Argument(help="a YAML file, or the name of a shipped cell")]
RateText = Annotated[
    str | None, typer.Option(help="1 = real time, 10 = ten times, 0 = paused, `max`, `step`")
]
Seed = Annotated[int | None, typer.Option(min=0, help="instead of the cell's seed")]
Ephemeral = Annotated[bool, typer.Option("--ephemeral", help="every port a free one")]
Ports = Annotated[
    list[str] | None, typer.Option(help="[ROBOT.FACE=]N, e.g. 8000 or bench.text_tcp=8000")
]
ReadyPath = Annotated[Path | None, typer.Option(help="JSON, written when everything listens")]
ForSeconds = Annotated[
    float | None,
    typer.Option("--for", min=0.0, max=1e9, help="end after so many simulated seconds"),
]
LogPath = Annotated[
    Path | None, typer.Option("--log", help="transcript of all that is said on the wires (.chat)")
]
Program = Annotated[
    Path | None, typer.Option(help="a program that is run at once, without the page")
]
Leave = Annotated[bool, typer.Option("--exit", help="end with the program: 0 done, 1 failed")]
Robot = Annotated[str, typer.Option(help="who runs it; default: the first that can")]
Real = Annotated[bool, typer.Option("--real", help="allow a REAL controller")]
NoHmi = Annotated[bool, typer.Option("--no-hmi", help="without the page")]


def run(
    cell: CellName = "default",
    rate: RateText = None,
    seed: Seed = None,
    ephemeral: Ephemeral = False,
    port: Ports = None,
    ready_file: ReadyPath = None,
    for_: ForSeconds = None,
    log_file: LogPath = None,
    program: Program = None,
    exit_: Leave = False,
    robot: Robot = "",
    real: Real = False,
    no_hmi: NoHmi = False,
) -> None:
    """Run a live cell until Ctrl-C, `understudy stop` or the end of --for."""
    log_to_stderr()
    config = load_config(cell, seed=seed)
    chat = _Log(log_file, _facts(cell, config)) if log_file else None
    announce()
    options = Options(
        rate=_rate(rate) if rate else config.simulation.simulation.default_time_scale,
        ephemeral=ephemeral,
        ports=_ports(port or [], config),
        for_seconds=for_,
        hmi=not no_hmi,
        real=real,
        note=chat.note if chat else lambda event: None,
    )
    if exit_ and program is None:
        raise ConfigError("--exit ends the cell with its program", allowed="--program FILE --exit")
    errand = Errand(program, robot, leave=exit_) if program else None
    files = [ReadyFile(file) for file in (registry_file(), ready_file) if file is not None]
    try:
        interrupted = asyncio.run(_live(config, options, files, chat, errand))
    except KeyboardInterrupt:
        interrupted = True
    if errand is not None and errand.failed and not interrupted:
        raise typer.Exit(1)


async def _live(
    config: CellConfig,
    options: Options,
    files: list[ReadyFile],
    chat: "_Log | None",
    errand: Errand | None,
) -> bool:
    """Until it is finished; was it interrupted?"""
    async with AsyncExitStack() as ends:
        if page := _page(config, options):
            ends.callback(page.close)
        live = Live(config, options)
        signals = _end_on_signals(live)
        await live.listen()
        if chat:
            ends.callback(chat.close)  # after the wires: that they close is written down as well
        ends.push_async_callback(_stop, live, page)
        if errand:
            errand.start(live)
            ends.push_async_callback(errand.stop)
        live.go()
        if chat:
            chat.transcript.open()
        for file in files:
            ends.callback(file.remove)
            file.write(config.name, live.rate, live.endpoints, [hmi.ENDPOINT] if page else [])
        _show(config, live.endpoints)
        if page:
            page.start(live.endpoints, lambda address: _page_is_up(live, files, address))
        ends.callback(asyncio.create_task(_prepare(live)).cancel)
        await live.finished.wait()
    return bool(signals)


async def _prepare(live: Live) -> None:
    """So that no first motion waits; whoever says something meanwhile gets his turn in between.

    Only what is compiled already: nobody wants to wait for a compiler before he asks for a motion.
    What has been loaded stays: to look through it for garbage (0.1 s) would keep everybody waiting.
    """
    gc.freeze()
    if "numba" in sys.modules and is_warm():
        for _ in live.prepare():
            await asyncio.sleep(BETWEEN_S)
        gc.freeze()


async def _stop(live: Live, page: hmi.PageProcess | None) -> None:
    """At the same time: each waits for the other's sockets to close."""
    await asyncio.gather(live.stop(), *([page.stop()] if page else []))


def _end_on_signals(live: Live) -> list[int]:
    """Those that have come. One that the loop does not hear for a while, since it waits for a
    compiler, interrupts what it is at."""
    came: list[int] = []

    def end(number: int) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        came.append(number)
        live.finished.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end, number)
        signal.signal(number, _wait_a_while)  # the loop is told all the same
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    return came


def _wait_a_while(number: int, frame: object) -> None:
    signal.setitimer(signal.ITIMER_REAL, UNHEARD_S)


def _page(config: CellConfig, options: Options) -> hmi.PageProcess | None:
    """With its port taken, if there is to be a page; what it lacks is told in a line."""
    if config.head.hmi is None or not options.hmi:
        return None
    if lack := hmi.missing_extra():
        log.warning(lack)
        return None
    own = 0 if options.ephemeral else config.head.hmi.port
    return hmi.PageProcess(config.head.hmi, options.ports.pop(hmi.ENDPOINT, own))


def _page_is_up(live: Live, files: list[ReadyFile], address: str) -> None:
    live.endpoints[hmi.ENDPOINT] = address
    Console().print(f"The page: {address}")
    for file in files:
        try:
            file.write(live.config.name, live.rate, live.endpoints)
        except ConfigError as problem:
            log.warning("%s", problem)


def _show(config: CellConfig, endpoints: dict[str, str]) -> None:
    table = Table(title=f"{config.name}: {config.head.description}", title_justify="left")
    table.add_column("endpoint", style="bold", no_wrap=True)
    table.add_column("listens on", no_wrap=True)
    for endpoint, address in endpoints.items():
        table.add_row(endpoint, address)
    console = Console()
    console.print(table)
    console.print("Ctrl-C ends it.")


def _rate(text: str) -> Rate:
    try:
        return parse_rate(text)
    except ValueError:
        raise ConfigError(
            "--rate", value=text, allowed="a number from 0 to 1000000, max or step"
        ) from None


def _ports(given: list[str], config: CellConfig) -> dict[str, int]:
    faces = list(config.endpoints())
    ports = {}
    for text in given:
        endpoint, equals, number = text.rpartition("=")
        if not number.isdecimal() or int(number) > 65535:
            raise ConfigError("--port", value=text, allowed="[ROBOT.FACE=]N with N from 0 to 65535")
        if not equals and len(faces) != 1:
            raise ConfigError(
                "--port: the cell has several endpoints, name one of them",
                value=text,
                allowed=", ".join(f"{face}={number}" for face in faces),
            )
        ports[endpoint if equals else faces[0]] = int(number)
    return ports


def _facts(cell: str, config: CellConfig) -> dict[str, str]:
    """What `replay` needs to put the same cell together."""
    return {"cell": cell, "seed": str(config.head.seed)}


class _Log:
    """What is said on the wires, with the facts at its head."""

    def __init__(self, path: Path, facts: dict[str, str]) -> None:
        self.transcript = Transcript(path, "--log")
        self.transcript.write(write_facts(facts))
        self._writer = ChatWriter()

    def note(self, event: Event) -> None:
        for line in self._writer.lines(event):
            self.transcript.write(line)

    def close(self) -> None:
        for line in self._writer.rest():
            self.transcript.write(line)
        self.transcript.close()
