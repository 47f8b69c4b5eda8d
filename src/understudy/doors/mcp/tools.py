"""The tools of an agent: cells, programs and faults of simulated robots.

Each is a method, as the commands of a running cell are. The cells that an agent starts are
processes of their own, which end with it. No tool commands a REAL robot.
"""

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, to_builtins

from understudy.agenda import Rate
from understudy.app.connection import Connection
from understudy.app.control_client import newest_messages
from understudy.app.ready_file import (
    NoCellRunsError,
    Ready,
    one_cell,
    read_ready,
    running_cells,
)
from understudy.app.validate import Options, validate_text
from understudy.config import load_config, shipped_cells
from understudy.errors import ConfigError, Refused, unknown
from understudy.offline.validate.report import Finding, Report
from understudy.operator.table import Command, command, commands_of, query
from understudy.wire.chat import escape

STARTING_SECONDS = 180.0
"""A process that compiles kernels first takes long."""
ENDING_SECONDS = 30.0
QUIET_SECONDS = 0.3
"""An answer is whole when nothing more has come for so long."""
POLL_SECONDS = 0.05
MOST_FINDINGS = 50
MOST_CELLS = 4
MOST_SNAPSHOTS = 20
LONGEST_ANSWER = 64 * 1024
MOST_LINES = 200
ENDED = ("idle", "done", "failed", "stopped", "paused")

Text = Annotated[str, Meta(max_length=1_000_000)]
Wait = Annotated[float, Meta(ge=0.0, le=600.0)]


class Tools:
    """``running`` or ``ready_file``: the cell that the tools use when none is named and none was
    started."""

    def __init__(self, running: str = "", ready_file: Path | None = None) -> None:
        self._running = running
        self._ready_file = ready_file
        self._started: dict[str, _Process] = {}
        self._snapshots: dict[str, dict[str, Any]] = {}

    def close(self) -> None:
        """Ends the cells that were started."""
        for process in self._started.values():
            process.end()
        self._started.clear()

    # ── cells ──

    @query()
    def cells(self) -> Any:
        """The cells that can be started, and those that run."""
        return {
            "can_be_started": [
                {"cell": name, "robots": list(config.robots), "what": config.head.description}
                for name in shipped_cells()
                for config in (load_config(name),)
            ],
            "running": [
                {"cell": ready.cell, "process": ready.pid, "endpoints": ready.endpoints}
                for ready in running_cells()
            ],
        }

    @command()
    def start(self, cell: str, rate: Rate = 1.0, real: bool = False) -> Any:
        """Start a cell; it ends with this session.

        `cell`: a name of `cells`, or the path of a cell file. `rate`: times real time, "max" (as
        fast as it goes) or "step" (time stands until something is asked). `real` is refused.
        """
        if real:
            return Refused("agents command simulated robots only: REAL is not possible here")
        if len(self._started) >= MOST_CELLS:
            return Refused(f"{MOST_CELLS} cells run: no more can be started here")
        load_config(cell)  # a mistake is said before a process starts
        process = _Process(cell, rate)
        self._started[str(process.ready.pid)] = process
        return {
            "cell": cell,
            "process": process.ready.pid,
            "endpoints": process.ready.endpoints,
            "robots": list(Connection(process.ready).robots()),
        }

    @query()
    def status(self, cell: str = "") -> Any:
        """Time, robots and last alarms of a running cell, in short.

        `cell`: name or process of a running cell; default: the one that was started last.
        """
        running = self._connection(cell)
        events = running.events()
        return {
            **to_builtins(running.time()),
            "robots": [to_builtins(robot) for robot in running.robots().values()],
            "last_alarms": [
                to_builtins(each) for each in events if each.kind in ("alarm", "collision")
            ][-5:],
        }

    # ── programs ──

    @query()
    def validate(
        self, program: Text, cell: str = "default", robot: str = "", strict: bool = False
    ) -> Any:
        """Check a program without running it: findings by line.

        `program`: the text of the program. `cell`: a name of `cells` or the path of a cell file.
        `robot`: default is the first one that can run it. `strict`: every warning is a violation.
        """
        report = validate_text(program, cell, options=Options(robot=robot, strict=strict))
        lines = program.splitlines()
        return {
            "verdict": "pass" if report.passed else "fail",
            "robot": report.robot,
            "cycle_time_s": round(report.cycle_time["total_s"], 3),
            "violations": _findings(report.violations, lines),
            "warnings": _findings(report.warnings, lines),
            "not_shown": _not_shown(report),
            "notes": list(report.notes),
        }

    @command()
    def run_program(
        self, program: Text, robot: str = "", cell: str = "", within_s: Wait = 120.0
    ) -> Any:
        """Load a program into a robot, switch its drives on, run it and wait for its end.

        `robot`: default is the first one of the cell. `cell`: as in status. `within_s`: seconds of
        real time to wait; the program goes on after them.
        """
        running = self._simulated(cell)
        chosen = robot or next(iter(running.robots()))
        running.do("start")
        running.do("enable", robot=chosen)
        running.do("load_program", robot=chosen, text=program, name="agent")
        running.do("run_program", robot=chosen)
        return _end_of(running, chosen, time.monotonic() + within_s)

    # ── the wire ──

    @command()
    def send(self, data: Text, endpoint: str, cell: str = "", within_s: Wait = 5.0) -> Any:
        """Send bytes to a face of a robot, as a client would, and return its answer.

        `data`: text with escapes: \\n is a line feed, \\x18 the byte 24. `endpoint`: a name of
        status, such as g60.grblhal, on TCP. `within_s`: seconds of real time for the answer.
        """
        running = self._simulated(cell)
        try:
            raw = data.encode("latin-1").decode("unicode_escape").encode("latin-1")
        except UnicodeError as problem:
            return Refused(f"data is no text of bytes with escapes: {problem}")
        if not running.endpoints.get(endpoint, "").startswith("tcp://"):
            there = [n for n, at in running.endpoints.items() if at.startswith("tcp://")]
            return Refused(f"there is no TCP endpoint {endpoint!r}; there are: {there}")
        answer = _exchanged(running.address(endpoint), raw, within_s)
        return {"sent": escape(raw), "answer": escape(answer)}

    @query()
    def journal(
        self,
        endpoint: str = "",
        last: Annotated[int, Meta(ge=1, le=MOST_LINES)] = 40,
        cell: str = "",
    ) -> Any:
        """The last messages on the wires of a running cell, with their simulated time.

        `endpoint`: only of this one. `last`: how many. `cell`: as in status.
        """
        ask = self._connection(cell).do
        pages = lambda since: ask("journal", endpoint=endpoint, since=since)  # noqa: E731
        return {"messages": newest_messages(pages, last)}

    # ── faults and states ──

    @command()
    def inject(
        self, fault: str, on: str = "", parameters: Mapping[str, float | str] = {}, cell: str = ""
    ) -> Any:
        """Inject a fault into a part of a running cell.

        `fault`: its name; a wrong one is answered with those that there are. `on`: the part, such
        as g60 or g60.welder; default is the first robot. `cell`: as in status.
        """
        running = self._simulated(cell)
        place = on or next(iter(running.robots()))
        faults = running.do("faults")
        if fault not in faults:
            return Refused(str(unknown("fault", fault, faults)))
        return running.do("inject", fault=fault, on=place, parameters=parameters)

    @command()
    def snapshot(self, do: Literal["save", "restore"], name: str = "", cell: str = "") -> Any:
        """Save the state of a running cell, or restore a saved one.

        `do`: save or restore. `name`: of the state, in this session. `cell`: as in status.
        """
        running = self._simulated(cell)
        if do == "save":
            if name not in self._snapshots and len(self._snapshots) >= MOST_SNAPSHOTS:
                return Refused(f"{MOST_SNAPSHOTS} states are saved: use one of their names")
            self._snapshots[name] = running.snapshot()
        elif name not in self._snapshots:
            return Refused(str(unknown("state", name, self._snapshots)))
        else:
            running.restore(self._snapshots[name])
        return {"now_s": running.now, "saved": list(self._snapshots)}

    # ── which cell ──

    def _connection(self, cell: str) -> Connection:
        """The named cell, else the one started last, else the one of the command line."""
        if not cell and self._started:
            return Connection(next(reversed(self._started.values())).ready)
        if cell in self._started:
            return Connection(self._started[cell].ready)
        try:
            return Connection(one_cell(cell or self._running, None if cell else self._ready_file))
        except NoCellRunsError:
            raise ConfigError(
                "no cell is running", allowed="start one with the tool start"
            ) from None

    def _simulated(self, cell: str) -> Connection:
        """A cell that may be commanded: none of its robots is REAL."""
        running = self._connection(cell)
        real = [robot.name for robot in running.robots().values() if robot.mode == "REAL"]
        if real:
            raise ConfigError(f"{', '.join(real)} is REAL: agents command simulated robots only")
        return running


def tools_of(tools: Tools) -> list[Command]:
    """The table of tools; what goes wrong in one is an answer with the reason."""
    return [replace(row, run=_refusing(row.run)) for row in commands_of(tools)]


def _refusing(action: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def run(given: Any) -> Any:
        try:
            return action(given)
        except (ConfigError, RuntimeError, OSError) as problem:
            return Refused(str(problem))

    return run


class _Process:
    """A cell in a process of its own, on free ports."""

    def __init__(self, cell: str, rate: Rate) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="understudy-")
        file = Path(self._folder.name, "ready.json")
        words = ["run", cell, "--ephemeral", "--rate", str(rate), "--ready-file", str(file)]
        # A file, since a pipe that is not read stops the cell when it is full.
        self._log = Path(self._folder.name, "stderr.txt")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "understudy", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        try:
            self.ready = self._started(file)
        except ConfigError:
            self.end()
            raise

    def _started(self, file: Path) -> Ready:
        until = time.monotonic() + STARTING_SECONDS
        while time.monotonic() < until and self._process.poll() is None:
            if file.exists() and not (ready := read_ready(file)).starting:
                return ready
            time.sleep(POLL_SECONDS)
        self._process.kill()
        last = self._log.read_text(errors="replace").strip().splitlines()[-3:]
        raise ConfigError(f"the cell did not start: {' '.join(last)}")

    def end(self) -> None:
        """Ends the process; one that does not end when it is asked to is killed."""
        self._process.terminate()
        try:
            self._process.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()


def _findings(found: Sequence[Finding], lines: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            "line": each.line,
            "kind": each.kind,
            "message": each.message,
            "text": lines[each.line - 1] if 0 < each.line <= len(lines) else "",
        }
        for each in found[:MOST_FINDINGS]
    ]


def _not_shown(report: Report) -> int:
    more = (len(found) - MOST_FINDINGS for found in (report.violations, report.warnings))
    return report.omitted + sum(max(0, each) for each in more)


def _end_of(running: Connection, robot: str, deadline: float) -> dict[str, Any]:
    """The state of the program when it has ended, or at the deadline."""
    while True:
        found: dict[str, Any] = running.do("program", robot=robot)
        ended = found["state"] in ENDED
        if ended or time.monotonic() > deadline:
            keys = ("state", "line", "lines", "error", "elapsed_s", "collisions", "warning")
            return {"ended": ended} | {key: found[key] for key in keys}
        time.sleep(POLL_SECONDS)


def _exchanged(address: tuple[str, int], data: bytes, within_s: float) -> bytes:
    """What comes back: until it is quiet after the first bytes, or the time is over."""
    answer = b""
    until = time.monotonic() + within_s
    with socket.create_connection(address, within_s) as connection:
        connection.sendall(data)
        while len(answer) < LONGEST_ANSWER and (left := until - time.monotonic()) > 0.0:
            connection.settimeout(min(left, QUIET_SECONDS) if answer else left)
            try:
                part = connection.recv(4096)
            except TimeoutError:
                break
            if not part:
                break
            answer += part
    return answer
