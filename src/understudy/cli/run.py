"""`understudy run`: a live cell."""

import asyncio
import contextlib
import gc
import logging
import os
import re
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack
from dataclasses import dataclass
from functools import cache, partial
from json import dumps
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TextIO

from understudy.agenda import Rate, parse_rate
from understudy.app.build import with_options
from understudy.app.live import Live, Options, files_folder, replay_facts, run_of
from understudy.app.ready_file import ReadyFile, registry_file
from understudy.cli.door_options import log_kind, open_doors
from understudy.cli.end_signals import EndOnSignals
from understudy.cli.job_options import job_options, takes_job_options
from understudy.cli.options import (
    PAGE,
    JsonOption,
    cell_argument,
    is_quiet,
    is_verbose,
    json_beside_text,
    log_level,
    robot_option,
)
from understudy.cli.parameters import Exit, Option
from understudy.cli.shards import ShardProcesses, ShardSpec, number_of_shards
from understudy.cli.transcript import Transcript
from understudy.config import Hmi, load_config
from understudy.config.cell import CellConfig, endpoint_name, read_wire
from understudy.config.files import read_program
from understudy.config.shards import Shard, parse_shard, with_robots, with_shard
from understudy.errors import ConfigError, Refused, unknown
from understudy.operator.robots import Robot
from understudy.ports import Endpoint, Run
from understudy.ports.hmi import Later
from understudy.ports.jobs import ChildProcesses
from understudy.registry import kinds, module_of, modules
from understudy.wire import descriptors
from understudy.wire.chat import ChatWriter, write_facts
from understudy.wire.connection import Event
from understudy.wire.interface import Wire
from understudy.wire.terminal_link import link_path

if TYPE_CHECKING:
    from understudy.cli.hmi import PageProcess

log = logging.getLogger(__name__)

OpenDoors = Callable[[Live], Iterable[AbstractAsyncContextManager[dict[str, str]]]]
TERMINAL = "pty"
"""The wire of a pseudo-terminal, and the key that selects it."""
SWITCH_SECONDS = 0.0005
"""How long a thread with long work may keep the event loop from running, instead of 5 ms."""

Terminals = Annotated[
    list[str] | None,
    Option(
        "--pty",
        metavar="[[ROBOT.FACE=]PATH]",
        help="a serial port instead of TCP: a pseudo-terminal behind a link at PATH, such as "
        "./ttyGRBL (a path has a /); without PATH: for every robot with a serial port, at a path "
        "that the table of addresses shows",
    ),
]
CellName = Annotated[str, cell_argument("path of a cell file, or name of a shipped cell")]
RateText = Annotated[
    str | None, Option(help="1 = real time, 10 = ten times, 0 = paused, `max`, `step`")
]
Seed = Annotated[int | None, Option(min=0, help="random seed; default: the cell's own")]
Ephemeral = Annotated[bool, Option("--ephemeral", help="listen on free ports everywhere")]
Ports = Annotated[list[str] | None, Option(help="[ROBOT.FACE=]N, e.g. 8000 or bench.text_tcp=8000")]
ReadyPath = Annotated[
    Path | None, Option(help="JSON file with all addresses, written when everything listens")
]
ForSeconds = Annotated[
    float | None,
    Option("--for", min=0.0, max=1e9, help="end after SECONDS of simulated time"),
]
LogPath = Annotated[
    Path | None,
    Option(
        "--log",
        help="write a transcript of all wires (.chat), or by its ending a log of everything: "
        + ", ".join(f".{kind}" for kind in kinds("logs")),
    ),
]
Program = Annotated[Path | None, Option(help="run this program at once, without the page")]
Leave = Annotated[
    bool, Option("--exit", help="end when the program ends; exit code 0 done, 1 failed")
]
RobotName = Annotated[
    str, robot_option("robot that runs the program; default: the first one with a body")
]
ProjectFolder = Annotated[
    Path | None,
    Option("--project", help="project folder: loaded at the start if it is saved already"),
]
FilesFolder = Annotated[
    Path | None,
    Option(
        "--files",
        help="the one folder in which clients can read and write files (snapshots, environments, "
        "meshes, projects); default: that of the cell file, the working directory for a shipped "
        "cell",
    ),
]
Real = Annotated[bool, Option("--real", help="allow a REAL controller")]
RobotCount = Annotated[
    int | None,
    Option(
        "--robots",
        min=1,
        help="mobile robots: copies of those in the file, spread over the free floor",
    ),
]
ShardText = Annotated[
    str | None,
    Option("--shard", help="K/N: only the mobile robots of part K of N, each in a process"),
]
ShardCount = Annotated[
    str | None,
    Option(
        "--shards",
        metavar="N|auto",
        help="divide the mobile robots among N processes that start and end together; auto: one "
        "for each processor, if there are enough robots",
    ),
]
WithPage = Annotated[
    bool | None,
    Option(
        "--hmi/--no-hmi",
        help="start the page, or do not; default: if the cell file has the key hmi, without --exit",
    ),
]


OpenPage = Annotated[bool, Option("--open", help="open the page in the browser")]


@takes_job_options
def run(
    cell: CellName = "default",
    rate: RateText = None,
    seed: Seed = None,
    ephemeral: Ephemeral = False,
    port: Ports = None,
    pty: Terminals = None,
    ready_file: ReadyPath = None,
    for_: ForSeconds = None,
    log_file: LogPath = None,
    program: Program = None,
    exit_: Leave = False,
    robot: RobotName = "",
    project: ProjectFolder = None,
    files: FilesFolder = None,
    real: Real = False,
    robots: RobotCount = None,
    shard: ShardText = None,
    shards: ShardCount = None,
    hmi: WithPage = None,
    open_: OpenPage = False,
    json: JsonOption = None,
) -> None:
    """Run a live cell until Ctrl-C, `understudy stop` or the end of --for.

    `--json` gives its addresses, one JSON line when it listens and one more for each that follows.
    """
    log_to_stderr()
    config = load_config(cell, seed=seed)
    part = _part(shard, shards, config, robots, log_file)
    config = with_options(_divided(config, robots, part), job_options())
    pace = _rate(rate) if rate else config.simulation.simulation.default_time_scale
    others = None
    if shards is not None and part is not None:
        if pace == "step":
            raise ConfigError("--shards: every shard has its own time", allowed="another --rate")
        others = ShardSpec(
            cell, seed, robots, part, pace, {}, "", real, str(files_folder(config, files).path)
        )
    this_run = run_of(config, pace)
    chat = None
    if log_file and not log_kind(log_file):
        chat = _Log(log_file, replay_facts(cell, config, this_run))
    if open_ and not (hmi := True if hmi is None else hmi):
        raise ConfigError("--open shows the page, and --no-hmi starts none", allowed="one of them")
    options = Options(
        rate=pace,
        run=this_run,
        ephemeral=ephemeral,
        ports=_ports(port or [], config),
        wires=terminals(pty or [], config, ephemeral=ephemeral),
        for_seconds=for_,
        hmi=_with_page(hmi, config, exit_),
        real=real,
        project=project,
        files=_existing(files),
        note=_notes(chat),
    )
    on_start = _on_start(program, robot, leave=exit_)
    doors = partial(open_doors, log_file=log_file)
    with json_beside_text(json) as lines:
        live = _live(
            config,
            options,
            ready_file,
            chat,
            on_start,
            doors,
            open_page=open_,
            lines=lines,
            shards=others,
        )
        interrupted = _until_interrupted(live)
    if on_start is not None and on_start.failed and not interrupted:
        raise Exit(1)


def _part(
    shard: str | None,
    shards: str | None,
    config: CellConfig,
    robots: int | None,
    log_file: Path | None,
) -> Shard | None:
    """The shard that this process is; None: it has the whole cell."""
    if shards is None:
        return None if shard is None else parse_shard(shard)
    if shard is not None:
        raise ConfigError("--shard is one of several processes", allowed="--shard or --shards")
    count = number_of_shards(shards, config, robots)
    if count > 1 and log_file is not None:
        raise ConfigError(
            "--log: a log has the messages of one process",
            value=str(log_file),
            allowed=f"--shard K/{count} with a log for each of them",
        )
    return Shard(1, count) if count > 1 else None


def _divided(config: CellConfig, robots: int | None, part: Shard | None) -> CellConfig:
    """The cell with another number of mobile robots, or with a part of them."""
    if robots is not None:
        config = with_robots(config, robots, part.of if part else 1)
    return with_shard(config, part) if part else config


def run_shard(config: CellConfig, options: Options, lines: TextIO) -> None:
    """Runs a shard that another process has started and keeps the list of: its addresses go to
    ``lines``."""
    _until_interrupted(_live(config, options, None, None, None, lines=lines, listed=False))


def run_on_page(
    config: CellConfig,
    on_start: "OnStart | None",
    files: Path,
    *,
    run: Run | None = None,
    note: Callable[[Event], None] | None = None,
    doors: OpenDoors = lambda live: (),
    page: bool = True,
    open_page: bool = True,
    page_port: int | None = None,
    ready_file: Path | None = None,
    lines: TextIO | None = None,
) -> None:
    """Runs a live cell on free ports, with its page in the browser, until Ctrl-C. ``run``: that of
    a cell that is built again; ``note``: is called for everything that passes; ``page_port``: of
    the page; ``lines``: of `--json`."""
    log_to_stderr()
    pace = config.simulation.simulation.default_time_scale
    options = Options(
        rate=pace,
        run=run or run_of(config, pace),
        ephemeral=True,
        ports={} if page_port is None else {PAGE: page_port},
        hmi=_with_page(page, config, False),
        files=files,
        note=note or _notes(None),
    )
    open_page = open_page and options.hmi
    live = _live(
        config, options, ready_file, None, on_start, doors, open_page=open_page, lines=lines
    )
    _until_interrupted(live)


def _until_interrupted(live: Coroutine[Any, Any, bool]) -> bool:
    """Runs the cell; True if a signal ended it."""
    try:
        return asyncio.run(live)
    except KeyboardInterrupt:
        return True


def _ready_files(path: Path | None, options: Options, config: CellConfig) -> list[ReadyFile]:
    places = [file for file in (registry_file(), path) if file is not None]
    folder = str(files_folder(config, options.files).path)
    files = [ReadyFile(file, options.secret, folder) for file in places]
    for file in files:
        file.check_free()
    return files


def _existing(folder: Path | None) -> Path | None:
    if folder is not None and not folder.is_dir():
        problem = "this is not a folder" if folder.exists() else "there is no such folder"
        raise ConfigError(f"--files: {problem}", value=str(folder), allowed="a folder")
    return folder


def _on_start(program: Path | None, robot: str, *, leave: bool) -> "ProgramOnStart | None":
    if leave and program is None:
        raise ConfigError("--exit needs a program to wait for", allowed="--program FILE --exit")
    return ProgramOnStart(program, robot, leave=leave) if program else None


class _ReadyLines:
    """The addresses of a cell as JSON lines, without its secret."""

    def __init__(self, lines: TextIO) -> None:
        self._lines = lines

    def write(
        self, cell: str, rate: Rate, endpoints: dict[str, str], starting: Sequence[str]
    ) -> None:
        ready = {"cell": cell, "pid": os.getpid(), "rate": rate}
        ready |= {"endpoints": endpoints, "starting": list(starting)}
        print(dumps(ready), file=self._lines, flush=True)


Written = ReadyFile | _ReadyLines


def _set_up_process() -> None:
    descriptors.raise_limit()
    sys.setswitchinterval(SWITCH_SECONDS)


async def _live(
    config: CellConfig,
    options: Options,
    ready_file: Path | None,
    chat: "_Log | None",
    on_start: "OnStart | None",
    doors: OpenDoors = lambda live: (),
    *,
    open_page: bool = False,
    lines: TextIO | None = None,
    shards: ShardSpec | None = None,
    listed: bool = True,
) -> bool:
    """Runs the cell until it is finished; True if a signal ended it. ``shards``: the first of the
    shards that this command runs; ``listed``: `understudy status` shows this process."""
    files = _ready_files(ready_file, options, config) if listed else []
    written: list[Written] = [*files, *([_ReadyLines(lines)] if lines else [])]
    _set_up_process()
    async with AsyncExitStack() as ends:
        if page := _page(config, options):
            ends.callback(page.close)
        finished = asyncio.Event()
        signals = EndOnSignals([file.path for file in files])
        ends.callback(signals.install(finished.set))
        await _until(finished, _compile_kernels(config, page))
        if finished.is_set():
            return True
        live = Live(config, options, finished)
        await live.listen()
        if chat:  # after the wires, so that the transcript has their closing too
            ends.callback(chat.close)
        ends.push_async_callback(_stop, live, page)
        live.load()
        for door in doors(live):
            live.endpoints |= await ends.enter_async_context(door)
        starting: list[str] = []

        def is_up(endpoint: str, words: str, address: str) -> None:
            _is_up(live, written, starting, endpoint, address, f"{words}: {address}")

        fleet = ShardProcesses(shards, live, is_up) if shards else None
        others = [*child_processes(live, is_up), *([fleet] if fleet else [])]
        starting += [endpoint for each in others for endpoint in each.endpoints()]
        starting += [PAGE] if page else []
        for each in others:
            ends.push_async_callback(each.stop)
        if chat:
            chat.transcript.open()
        for file in files:
            ends.callback(file.remove)
        for place in written:
            place.write(config.name, live.rate, live.endpoints, starting)
        await asyncio.to_thread(_show, config, dict(live.endpoints))  # clients are served
        if page:
            page_is_up = partial(_page_is_up, live, written, starting, page, open_page=open_page)
            page.start(live.endpoints, page_is_up, live.with_password)
        await _prepare(live, others)
        if on_start and not live.finished.is_set():
            on_start.start(live)
            ends.push_async_callback(on_start.stop)
        live.go()
        await live.finished.wait()
    if (live.problem and options.for_seconds is not None) or (fleet and fleet.problem):
        raise Exit(1)
    return bool(signals.came)


async def _find_self_pairs(live: Live) -> None:
    """Waits until the links of mesh arms that can touch are known, or the cell is to end.

    Wires and page are open, time does not run yet: no arm moves without its self-collision checks.
    """
    with _progress_bars() as show:
        known: set[str] = set()

        def report(robot: str, share: float) -> None:
            text = f"finding which links of {robot} can touch (once for each arm)"
            if robot not in known:
                known.add(robot)
                log.info(text)
            show(text, share)

        await _until(live.finished, live.find_self_pairs(report))


@contextlib.contextmanager
def _progress_bars() -> Iterator[Callable[[str, float], None]]:
    """Shows bars on the terminal while the context lasts: a text, and the share that is done."""
    with ExitStack() as ends:

        @cache
        def bars() -> Any:
            from rich.console import Console
            from rich.progress import Progress

            return ends.enter_context(Progress(console=Console(stderr=True), transient=True))

        @cache
        def bar(text: str) -> Any:
            return bars().add_task(text, total=1.0)

        yield lambda text, share: bars().update(bar(text), completed=share)


def child_processes(live: Live, is_up: Callable[[str, str, str], None]) -> list[ChildProcesses]:
    """The processes that jobs of the cell ask. ``is_up``: called with endpoint, words, address."""
    made = (getattr(module, "child_processes", None) for _, _, module in modules("jobs"))
    robots = live.config.robots.values()
    wanted = any(robot.sections for robot in robots)
    return [make(live, is_up) for make in made if make is not None] if wanted else []


async def _prepare(live: Live, others: Sequence[ChildProcesses]) -> None:
    """Starts the processes that jobs ask, and loads what a first motion needs before time runs."""
    for each in others:
        each.start()
    await _find_self_pairs(live)
    await _prepare_motion(live)
    for each in others:
        await _until(live.finished, each.wait())
        each.check()


async def _prepare_motion(live: Live) -> None:
    """Loads what a first motion needs: no motion has to wait for it.

    Loaded objects stay, so they are taken out of garbage collection (a collection over them would
    stop the loop for 0.1 s).
    """
    gc.freeze()
    if live.finished.is_set():
        return
    for _ in live.prepare():
        await asyncio.sleep(0)  # clients are served in between, and a signal may end the cell
    gc.freeze()


async def _compile_kernels(config: CellConfig, page: "PageProcess | None") -> None:
    """Compiles what the cell needs and the cache does not have, in other processes; visitors of the
    page see how far it is."""
    from understudy.app.kernels import FILL, missing, needed

    if not (cold := missing(needed(config))):
        return
    log.info("compiling kernels, once; the cell starts afterwards")
    process = await asyncio.create_subprocess_exec(
        *FILL, *cold, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    try:
        async with AsyncExitStack() as ends:
            if page:
                print(f"Page: {page.visit}", flush=True)
                notice = await ends.enter_async_context(page.notice())
            async for line in process.stdout:
                if page:
                    compiled, total = line.split()
                    notice(f"compiling {int(compiled)} of {int(total)} kernels")
        await process.wait()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)


async def _until(finished: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Waits for the work, or until the cell is to end; then the work is cancelled."""
    tasks = {asyncio.create_task(work), asyncio.create_task(finished.wait())}
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _stop(live: Live, page: "PageProcess | None") -> None:
    """Stops both at the same time: each waits for the other's sockets to close."""
    await asyncio.gather(live.stop(), *([page.stop()] if page else []))


def _with_page(wanted: bool | None, config: CellConfig, leaves: bool) -> bool:
    """Whether the page is started; logs what is not installed."""
    if wanted is None:
        wanted = config.head.hmi is not None and not leaves
    if wanted:
        from understudy.cli.hmi import missing_extra

        if lack := missing_extra():
            log.warning(lack)
            return False
    return wanted


def _page(config: CellConfig, options: Options) -> "PageProcess | None":
    """The page's process with its port reserved, or None."""
    if not options.hmi:
        return None
    from understudy.cli.hmi import Keys, PageProcess

    own = config.head.hmi or Hmi()
    asked = options.ports.pop(PAGE, None)
    keys = Keys(options.secret, config.head.token, real=options.real)
    if asked is not None:
        return PageProcess(own, asked, keys)
    port = 0 if options.ephemeral else own.port
    return PageProcess(own, port, keys, or_free=True)


def _page_is_up(
    live: Live,
    written: "list[Written]",
    starting: list[str],
    page: "PageProcess",
    *,
    open_page: bool,
) -> None:
    _is_up(live, written, starting, PAGE, page.address, f"Page: {page.visit}")
    if open_page:  # some browsers are waited for until they are closed
        Thread(target=_open_page, args=(page.visit,), daemon=True).start()


def _open_page(address: str) -> None:
    import webbrowser

    if not webbrowser.open(address):
        log.warning("no browser was found here; open %s in one", address)


def _is_up(
    live: Live,
    written: "list[Written]",
    starting: list[str],
    endpoint: str,
    address: str,
    said: str,
) -> None:
    """An endpoint of another process listens: its address, and the ready files again."""
    from rich.console import Console

    live.endpoints[endpoint] = address
    Console(soft_wrap=True, quiet=is_quiet()).print(said)
    if endpoint in starting:
        starting.remove(endpoint)
    for each in written:
        try:
            each.write(live.config.name, live.rate, live.endpoints, starting)
        except ConfigError as problem:
            log.warning("%s", problem)


def _show(config: CellConfig, endpoints: dict[str, str]) -> None:
    if is_quiet():
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{config.name}: {config.head.description}", title_justify="left")
    table.add_column("endpoint", style="bold", no_wrap=True)
    table.add_column("listens on", no_wrap=True)
    for endpoint, address in endpoints.items():
        table.add_row(endpoint, address)
    console = Console()
    console.print(table)
    for endpoint, address in endpoints.items():
        if (path := address.removeprefix("pty:")) != address:  # whole, however narrow the table is
            console.print(f"Serial port of {endpoint}: {path}", soft_wrap=True, markup=False)
    console.print("Press Ctrl-C to stop.")


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


def _notes(chat: "_Log | None") -> Callable[[Event], None] | None:
    """Where the events of all wires go: into the transcript and, with -v, to stderr."""
    if not is_verbose():
        return chat.note if chat else None
    writer = ChatWriter()

    def note(event: Event) -> None:
        if chat:
            chat.note(event)
        sys.stderr.writelines(writer.lines(event))

    return note


class _Log:
    """Transcript of all wires, with the facts in its first lines."""

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


# ── a program that runs at the start ────────────────────────────────────────────────────────────


STEP_SECONDS = 0.01
LOOK_SECONDS = 0.5
"""Seconds between two looks at the rate and the drives."""


class OnStart(Protocol):
    """What begins with the cell."""

    @property
    def failed(self) -> bool:
        """The command has to say that it did not succeed."""

    def start(self, live: Live) -> None:
        """Called when everything listens, before time runs."""

    async def stop(self) -> None: ...


class ProgramOnStart:
    """A program that runs once everything listens. `outcome`: None until it has ended."""

    def __init__(self, file: Path, robot: str, *, leave: bool) -> None:
        self._file = file
        self._robot = robot
        self._leave = leave
        self._text = read_program(file).decode("utf-8", "replace")
        self._task: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        self.outcome: bool | None = None

    @property
    def failed(self) -> bool:
        """The command waits for the program (--exit), and the program was not done."""
        return self._leave and not self.outcome

    def start(self, live: Live) -> None:
        robot = _runner(live, self._robot)
        self._task = asyncio.get_running_loop().create_task(self._run(live, robot))

    async def stop(self) -> None:
        if self._task is not None:
            if not self._ended.is_set():  # a program that has ended is still reported
                self._task.cancel()
            (ended,) = await asyncio.gather(self._task, return_exceptions=True)
            if isinstance(ended, Exception):
                raise ended

    async def _run(self, live: Live, robot: Robot) -> None:
        try:
            refused = await self._begin(live, robot)
            if refused is None:
                await self._follow(live, robot)
            problem, seconds = (refused.reason, 0.0) if refused else _outcome(robot)
            self.outcome = not problem
            if problem:
                print(f"{self._file}: {problem}", file=sys.stderr)
            else:
                print(f"{self._file}: done in {seconds:.3f} s")
        finally:
            if self._leave:
                live.finished.set()

    async def _begin(self, live: Live, robot: Robot) -> Refused | None:
        """Loads and starts the program; enables simulated drives, waits for real ones."""
        target = {"robot": robot.name}
        load = {**target, "text": self._text, "name": self._file.name}
        refused = await _call(live, "load_program", load)
        if robot.real is None and "drives" in robot.skills():
            refused = refused or await _call(live, "enable", target)
        elif not robot.condition().enabled:
            print(f"{self._file}: waiting for the drives of {robot.name} to be enabled")
        while robot.real is not None and not robot.condition().enabled:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)
        return refused or await _call(live, "run_program", target)

    async def _follow(self, live: Live, robot: Robot) -> None:
        """Waits for the end; advances time in lock step, where no client waits for an answer."""
        program = robot.side.program
        assert program is not None
        program.on_end(lambda text, now: self._ended.set())
        paused = False
        while program.under_way():
            before, paused = paused, _paused(robot)
            if paused and not before:
                print(f"{self._file}: waiting for cycle_start", flush=True)
            if live.rate == "step":
                if (later := live.advance(STEP_SECONDS)) is not None:
                    await _settled(later)
                await asyncio.sleep(0)
                continue
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), LOOK_SECONDS)


async def _call(live: Live, name: str, parameters: dict[str, Any]) -> Refused | None:
    """Calls a command, waits for a late answer, returns the refusal if there is one."""
    answer = live.commands.call(name, parameters, "operator")
    if isinstance(answer, Later):
        answer = await _settled(answer)
    return answer if isinstance(answer, Refused) else None


async def _settled(later: Later) -> Any:
    ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    later.then(ended.set_result)
    return await ended


def _runner(live: Live, name: str) -> Robot:
    able = {r.name: r for r in live.operator.robots if r.side.program is not None}
    if not able:
        raise ConfigError(f"no robot of the cell {live.config.name} runs programs")
    if name and name not in able:
        raise unknown("robot that runs programs", name, able)
    bodies = [each for each in able if able[each].model.chain is not None]
    return able[name or (bodies or list(able))[0]]


def _paused(robot: Robot) -> bool:
    """The program stands at M0, in a feed hold or between two single steps."""
    assert robot.side.program is not None
    return robot.side.program.reading(robot.side.time.now()).state == "paused"


def _outcome(robot: Robot) -> tuple[str, float]:
    """The problem (empty if the program is done) and the elapsed seconds."""
    assert robot.side.program is not None
    reading = robot.side.program.reading(robot.side.time.now())
    problem = "" if reading.state == "done" else reading.error or f"stopped at line {reading.line}"
    if not problem and reading.collisions:
        problem = f"done in {reading.elapsed_s:.3f} s with {reading.collisions} collisions"
    return problem, reading.elapsed_s


# ── the log ─────────────────────────────────────────────────────────────────────────────────────


BURST = 5
"""Lines of one kind that pass in a row."""
WINDOW_S = 10.0
"""Seconds until the next burst passes, with the number of suppressed lines."""
MOST_KINDS = 256
"""Kinds that are remembered; the oldest one is dropped."""
NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|\b(?:nan|inf)\b)", re.IGNORECASE)


@dataclass
class Kind:
    """Count of log lines that differ in their numbers only."""

    since: float
    passed: int = 0
    suppressed: int = 0


class RepeatFilter(logging.Filter):
    """Passes new lines, and a burst of repeated ones."""

    def __init__(self) -> None:
        super().__init__()
        self._kinds: dict[str, Kind] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        kind = self._kind(NUMBER.sub("#", message), record.created)
        if kind.passed >= BURST:
            kind.suppressed += 1
            return False
        kind.passed += 1
        if kind.suppressed:
            record.msg, record.args = f"{message} (and {kind.suppressed} more like it before)", ()
            kind.suppressed = 0
        return True

    def _kind(self, name: str, at: float) -> Kind:
        kind = self._kinds.get(name)
        if kind is None or at - kind.since >= WINDOW_S:
            suppressed = self._kinds.pop(name).suppressed if kind else 0
            self._kinds[name] = kind = Kind(at, suppressed=suppressed)
            if len(self._kinds) > MOST_KINDS:
                del self._kinds[next(iter(self._kinds))]
        return kind


def log_to_stderr() -> None:
    """Sends all logging to stderr through the filter."""
    handler = logging.StreamHandler()
    handler.addFilter(RepeatFilter())
    logging.basicConfig(level=log_level(), format="%(message)s", handlers=[handler])


def terminals(given: Sequence[str], config: CellConfig, *, ephemeral: bool) -> dict[str, Wire]:
    """The wires of the endpoints that become terminals; with ``ephemeral``, those without a path
    on the command line have no link."""
    possible = dict(_possible_terminals(config))
    serial = [name for name, endpoint in possible.items() if endpoint.serial]
    wires: dict[str, Wire] = {}
    for text in given:
        endpoint, equals, path = text.rpartition("=")
        if equals and endpoint not in possible:
            raise unknown("endpoint that can be a terminal", endpoint, possible)
        names = [endpoint] if equals else serial
        if not names or (path and len(names) != 1):
            raise ConfigError(
                "--pty: name the endpoint, the cell has "
                + ("several with a serial port" if names else "none with a serial port"),
                value=text,
                allowed=", ".join(f"{each}={path or 'PATH'}" for each in serial or possible)
                or "a cell with a robot that can have a serial port",
            )
        link = str(link_path(str(Path(path).expanduser().absolute()))) if path else ""
        for name in names:
            wire = read_wire(possible[name], {TERMINAL: link})
            wires[name] = wire if path else wire.placed(None, ephemeral=ephemeral)
    return wires


def _possible_terminals(config: CellConfig) -> Iterator[tuple[str, Endpoint]]:
    """The endpoints that a pseudo-terminal can carry, by their full names."""
    for robot_name, robot in config.robots.items():
        for face_name, face in robot.faces.items():
            for suffix in face.wires:
                endpoint = module_of("faces", face.kind).ENDPOINTS[suffix]
                if TERMINAL in endpoint.wires:
                    yield endpoint_name(robot_name, face_name, suffix), endpoint
