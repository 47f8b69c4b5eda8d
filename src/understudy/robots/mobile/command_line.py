"""`understudy fleet`: commands and tasks for mobile robots on NATS, a live table, schemas.

The server is that of a running cell, or the one that `--server` names. Exit codes: 0 the robot has
done it, 1 it has not (rejected, failed, canceled, no answer), 2 usage.
"""

import json
import math
import re
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TextIO

import msgspec
from msgspec import Struct
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from understudy import __version__
from understudy.app.ready_file import printable
from understudy.cli.ctl import parameter
from understudy.cli.options import (
    JsonOption,
    ReadyFileOption,
    RunningOption,
    discard_output,
    json_lines,
    put_json,
    robot_argument,
)
from understudy.cli.parameters import Argument, Exit, Group, Option
from understudy.cli.status import chosen_cells
from understudy.config.files import read_program
from understudy.errors import ConfigError, Refused, unknown
from understudy.robots.mobile.client import (
    ENDS,
    FleetClient,
    FleetMessage,
    Inbox,
    NoAnswerError,
    last_statuses,
)
from understudy.robots.mobile.mission import message_values, mission_tasks, read_mission
from understudy.robots.mobile.runtime.messages import (
    COMMANDS,
    MoveToPoint,
    command_kind,
    read_parameters,
)

NO_ANSWER_HINT = (
    "is its cell paused or still starting (its output says when time starts), or the robot off?"
)
ANSWER_S = 5.0
"""Seconds in which the server, and a robot, must answer at all."""
ENDPOINT = "nats"
GOOD = ("ACKED", "RUNNING", "DONE")
"""The last status of a command with the exit code 0."""
TASK_ENDS = {"task.done": 0, "task.failed": 1}
ACCEPTED = "task.accepted"
"""The event of a task that may have to wait for others."""
HELD = "TRAFFIC_HOLD"
Filter = Callable[[FleetMessage], bool]

RobotName = Annotated[str, robot_argument("robotId, e.g. robot-1")]
CommandName = Annotated[str, Argument(metavar="COMMAND", help=f"one of {', '.join(COMMANDS)}")]
Parameters = Annotated[
    list[str] | None,
    Argument(metavar="KEY=VALUE...", help="parameters; yaw_deg=90 is yaw in degrees"),
]
Place = Annotated[
    list[str], Argument(metavar="x=M y=M [yaw_deg=D]", help="where the robot shall go")
]
ServerOption = Annotated[
    str, Option("--server", metavar="URL", help="NATS server, nats://[TOKEN@]HOST:PORT")
]
CredsOption = Annotated[
    Path | None, Option("--creds", metavar="FILE", help="credentials for --server")
]
WaitOption = Annotated[bool, Option("--wait/--no-wait", help="wait until the command has ended")]
TimeoutOption = Annotated[
    float, Option("--timeout", metavar="SECONDS", min=0.1, help="wait at most this long")
]

fleet = Group(
    help="Send commands and tasks to mobile robots, watch them, write their message schemas.",
)


def example(words: str) -> str:
    return f"Example: understudy fleet {words}"


# ── commands ──


@fleet.command(epilog=example("send robot-1 MOVE_TO_POSE x=2 y=1 yaw_deg=90"))
def send(
    robot: RobotName,
    command: CommandName,
    parameters: Parameters = None,
    wait: WaitOption = True,
    timeout_s: TimeoutOption = 120.0,
    as_json: JsonOption = None,
    running: RunningOption = "",
    ready_file: ReadyFileOption = None,
    server: ServerOption = "",
    creds: CredsOption = None,
) -> None:
    """Send a command to a robot and print its answers as they come."""
    payload = {
        "commandType": command,
        "parameters": _command_parameters(command, parameters or []),
        "requestedBy": "understudy fleet",
    }
    with _client(running, ready_file, server, creds) as client:
        _check_robot(client, robot)
        inbox = client.listen("command.ack", robot=robot)
        cause = client.send(robot, "command.request", payload)
        acks = _answers(inbox, robot, lambda each: each.correlation_id == cause, timeout_s)
        code = _follow_command(acks, payload, wait, json_lines(as_json))
    raise Exit(code)


@fleet.command(epilog=example("task robot-1 x=4 y=2 yaw_deg=90"))
def task(
    robot: RobotName,
    place: Place,
    timeout_s: TimeoutOption = 600.0,
    as_json: JsonOption = None,
    running: RunningOption = "",
    ready_file: ReadyFileOption = None,
    server: ServerOption = "",
    creds: CredsOption = None,
) -> None:
    """Give a robot the task to go to a place, by a route around the obstacles, and wait for the
    end of the task."""
    name = f"task-{uuid.uuid4()}"
    where = message_values(
        map(parameter, place), [field.encode_name for field in msgspec.structs.fields(MoveToPoint)]
    )
    try:
        msgspec.convert(where, MoveToPoint)
    except msgspec.ValidationError as problem:
        raise ConfigError(str(problem), allowed="x=2 y=1 yaw_deg=90") from None
    payload = {"taskId": name, "taskType": "MOVE_TO_POINT", "moveToPoint": where}
    with _client(running, ready_file, server, creds) as client:
        _check_robot(client, robot)
        inbox = client.listen("events", "task.progress", *TASK_ENDS, robot=robot)
        client.send(robot, "task.assign", payload)
        answers = _answers(inbox, robot, lambda each: _is_about(name, each), timeout_s)
        raise Exit(_follow_task(answers, json_lines(as_json)))


@fleet.command(epilog=example("run robot-1 tour.mission"))
def run(
    robot: RobotName,
    mission: Annotated[str, Argument(metavar="MISSION", help="a file, or a shipped program")],
    timeout_s: TimeoutOption = 600.0,
    as_json: JsonOption = None,
    running: RunningOption = "",
    ready_file: ReadyFileOption = None,
    server: ServerOption = "",
    creds: CredsOption = None,
) -> None:
    """Give a robot the tasks of a mission file, and wait for the end of each of them."""
    lines = read_mission(read_program(Path(mission)))
    for line in lines:
        if line.problem is not None:
            raise line.problem.within("", file=mission, line=line.number)
    if not lines:
        raise ConfigError("no step is in this file", file=mission, allowed="MOVE x=2 y=1")
    tasks = mission_tasks(lines, f"mission-{uuid.uuid4()}")
    with _client(running, ready_file, server, creds) as client:
        _check_robot(client, robot)
        inbox = client.listen("events", "task.progress", *TASK_ENDS, robot=robot)
        for each in tasks:
            client.send(robot, "task.assign", each.payload)
        names = [each.payload["taskId"] for each in tasks]
        answers = _answers(
            inbox, robot, lambda each: any(_is_about(name, each) for name in names), timeout_s
        )
        codes = (_follow_task(answers, json_lines(as_json)) for _ in tasks)
        raise Exit(next(filter(None, codes), 0))


@fleet.command(epilog=example("hold robot-1"))
def hold(
    robot: RobotName,
    as_json: JsonOption = None,
    running: RunningOption = "",
    ready_file: ReadyFileOption = None,
    server: ServerOption = "",
    creds: CredsOption = None,
) -> None:
    """Stop a robot by traffic control (a speed of 0); it goes on after `release`."""
    with _client(running, ready_file, server, creds) as client:
        _control(client, robot, {"maxSpeedMps": 0}, as_json, hold=True)


@fleet.command(epilog=example("release robot-1"))
def release(
    robot: RobotName,
    as_json: JsonOption = None,
    running: RunningOption = "",
    ready_file: ReadyFileOption = None,
    server: ServerOption = "",
    creds: CredsOption = None,
) -> None:
    """Let a robot go on that traffic control has stopped; its speed is not limited any more."""
    free = {"releaseHold": True, "maxSpeedMps": None, "targetSpeedMps": None}
    with _client(running, ready_file, server, creds) as client:
        _control(client, robot, free, as_json, hold=False)


@fleet.command(epilog=example("watch --once"))
def watch(
    once: Annotated[bool, Option("--once", help="print the table once")] = False,
    as_json: JsonOption = None,
    running: RunningOption = "",
    ready_file: ReadyFileOption = None,
    server: ServerOption = "",
    creds: CredsOption = None,
) -> None:
    """Show the robots of a server: status, pose, speed, battery, command or task, why it stands.

    Into a file or a pipe it writes lines with tabs, one for each change of a robot."""
    with suppress(KeyboardInterrupt), _client(running, ready_file, server, creds) as client:
        lines = json_lines(as_json)
        try:
            with redirect_stdout(lines) if lines else nullcontext():
                watch_robots(client, once=once, as_json=lines is not None)
        except BrokenPipeError:
            discard_output()


@fleet.command(epilog=example("schema schemas"))
def schema(
    folder: Annotated[Path, Argument(metavar="DIR", help="folder for the files")],
    as_json: JsonOption = None,
) -> None:
    """Write a JSON Schema file for each message, an AsyncAPI document and a page that lists all."""
    from understudy.robots.mobile.runtime.message_schema import asyncapi, catalogue, schema_files

    files = {name: _document(each) for name, each in schema_files().items()}
    files["asyncapi.json"] = _document(asyncapi(__version__))
    files["messages.md"] = catalogue()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as problem:
        raise ConfigError(
            f"the schemas cannot be written: {problem.strerror}", file=str(folder)
        ) from None
    if not put_json(as_json, {"files": [str(folder / name) for name in files]}):
        print(f"wrote {len(files)} files to {folder}: *.schema.json, asyncapi.json, messages.md")


def _document(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


# ── parameters ──


def _command_parameters(command: str, words: Sequence[str]) -> dict[str, Any]:
    kind = command_kind(command)
    if kind is None:
        raise unknown("command", command, COMMANDS)
    fields = msgspec.structs.fields(kind.parameters)
    found = message_values(map(parameter, words), [field.encode_name for field in fields])
    problem = read_parameters(kind, found)
    if isinstance(problem, Refused):
        needed = [f"{field.encode_name}=…" for field in fields if field.required]
        raise ConfigError(f"{command}: {problem.reason}", allowed=" ".join(needed))
    return found


# ── the connection ──


@contextmanager
def _client(
    running: str, ready_file: Path | None, server: str, creds: Path | None
) -> Iterator[FleetClient]:
    """Connected to the server; no answer ends the command with exit code 1."""
    address = server or _server_of(running, ready_file)
    try:
        with FleetClient(address, creds=creds, timeout_s=ANSWER_S) as client:
            yield client
    except NoAnswerError as problem:
        print(printable(str(problem), 4000), file=sys.stderr)
        raise Exit(1) from None


def _server_of(name: str, ready_file: Path | None) -> str:
    """The address of the NATS server of the running cell that has one."""
    running = chosen_cells([name] if name else [], ready_file)
    able = [ready for ready in running if ENDPOINT in ready.endpoints]
    names = ", ".join(ready.title for ready in able or running)
    if not able:
        cure = "a cell with mobile robots (understudy run fleet), or --server URL"
        raise ConfigError(f"no NATS server in {names}", allowed=cure)
    if len(able) > 1:
        allowed = "--running NAME, --ready-file FILE or --server URL"
        raise ConfigError(f"several cells are running: {names}", allowed=allowed)
    return able[0].endpoints[ENDPOINT]


def _check_robot(client: FleetClient, robot: str) -> None:
    known = client.robots()
    if known and robot not in known:
        raise unknown("robot", robot, known)


# ── answers ──


def _answers(
    inbox: Inbox, robot: str, is_mine: Filter, timeout_s: float, awaited: str = "end of it"
) -> Iterator[FleetMessage]:
    """The messages that are mine until the caller has enough or time is over. ``awaited``: what is
    missing if it is over after the first answer."""
    begin = time.monotonic()
    answered = False
    while True:
        limit = timeout_s if answered else min(ANSWER_S, timeout_s)
        message = inbox.take(begin + limit - time.monotonic())
        if message is None:
            missing, hint = (awaited, "") if answered else ("answer", f": {NO_ANSWER_HINT}")
            raise NoAnswerError(f"{robot}: no {missing} in {limit:g} s{hint}")
        if is_mine(message):
            answered = True
            yield message


def _is_about(task: str, message: FleetMessage) -> bool:
    is_event = message.kind == "events" and message.payload.get("type") != ACCEPTED
    return not is_event and message.payload.get("taskId") == task


def _follow_command(
    acks: Iterator[FleetMessage], asked: dict[str, Any], wait: bool, lines: TextIO | None
) -> int:
    """Prints the acks and returns the exit code."""
    ends = last_statuses(asked["commandType"], asked["parameters"])
    for ack in acks:
        status = str(ack.payload.get("status"))
        _show(ack, f"{status} {ack.payload.get('reason', '')}".rstrip(), lines)
        if status in ends or not wait:
            return 0 if status in GOOD else 1
    raise AssertionError("answers end by an exception")


def _follow_task(messages: Iterator[FleetMessage], lines: TextIO | None) -> int:
    for message in messages:
        payload = message.payload
        ahead = payload.get("ahead")
        said = {
            "events": f"accepted, {ahead} before it" if ahead else "accepted",
            "task.progress": f"step {payload.get('step')} of {payload.get('steps')}",
            "task.done": "done",
            "task.failed": f"failed: {payload.get('errorCode')} {payload.get('errorMessage', '')}",
        }
        _show(message, said[message.kind].rstrip(), lines)
        if message.kind in TASK_ENDS:
            return TASK_ENDS[message.kind]
    raise AssertionError("messages end by an exception")


def _control(
    client: FleetClient, robot: str, control: dict[str, Any], as_json: str | None, *, hold: bool
) -> None:
    """Sends a traffic.control and waits until the state of the robot shows it. A robot that is
    stopped for another reason shows that reason, and is held when it is over."""
    _check_robot(client, robot)
    inbox = client.listen("state", robot=robot)
    client.send(robot, "traffic.control", control)
    awaited = "hold" if hold else "end of its hold"
    for state in _answers(inbox, robot, lambda _: True, ANSWER_S, awaited):
        reason = state.payload.get("safetyStopReason")
        if (reason not in (None, "MANUAL_HOLD")) if hold else (reason != HELD):
            status = state.payload.get("status")
            if not put_json(as_json, {"robot": robot, "status": status, "reason": reason}):
                print(f"{robot}: {status} {reason or ''}".rstrip())
            return


def _show(message: FleetMessage, text: str, lines: TextIO | None) -> None:
    """JSON has only ASCII characters: a message cannot change the terminal."""
    if lines is not None:
        print(json.dumps(json.loads(message.text)), file=lines, flush=True)
    if lines is not sys.stdout:
        print(f"{printable(message.robot)}: {printable(text)}", flush=True)


# ── the table of robots ─────────────────────────────────────────────────────────────────────────

WORK = ("command.ack", "task.progress", "task.done", "task.failed")
KINDS = ("state", *WORK)
REFRESH_S = 0.25
ONCE_S = 2.5
"""Seconds in which `--once` waits for the robots that are known."""
SILENT_S = 3.0
"""Seconds after which a robot that sends no state is shown as silent."""
ROWS_S = 1.0
HEADS = ("robot", "status", "x m", "y m", "yaw °", "m/s", "battery", "work", "stop")
STYLES = {"RUNNING": "green", "WARNING": "yellow", "PAUSED": "yellow", "ERROR": "red"}


class RobotRow(Struct):
    """What is known of a robot. ``work``: its command or task."""

    state: Mapping[str, Any] = {}
    seen: float = -math.inf
    work: str = ""

    def update(self, message: FleetMessage, now: float) -> None:
        payload = message.payload
        if message.kind == "state":
            self.state, self.seen = payload, now
        elif message.kind == "command.ack":
            name, status = payload.get("commandType"), payload.get("status")
            reason = payload.get("reason", "") if status in ENDS else ""
            self.work = f"{name} {status} {reason}".rstrip()
        else:
            step = f"{payload.get('step')}/{payload.get('steps')}"
            said = payload.get("errorCode") or (step if message.kind == "task.progress" else "")
            self.work = f"{message.kind} {said}".rstrip()

    def as_json(self, robot: str, now: float) -> dict[str, Any]:
        silent = now - self.seen > SILENT_S
        return {"robotId": robot, "silent": silent, "work": self.work, "state": self.state}


class RobotRows:
    """The robots by name, from the messages that have come."""

    def __init__(self, known: list[str]) -> None:
        self.rows = {name: RobotRow() for name in known}

    def add(self, messages: Iterable[FleetMessage]) -> None:
        for message in messages:
            self.rows.setdefault(message.robot, RobotRow()).update(message, time.monotonic())

    def read(self, inbox: Inbox, seconds: float) -> list[str]:
        """Takes what comes in this time; the robots of which something came."""
        end = time.monotonic() + seconds
        changed: dict[str, None] = {}
        while (message := inbox.take(end - time.monotonic())) is not None:
            self.add([message])
            changed[message.robot] = None
            if time.monotonic() >= end:
                break
        return list(changed)

    def complete(self) -> bool:
        return bool(self.rows) and all(row.state for row in self.rows.values())

    def names(self) -> list[str]:
        """Names of the robots; robot-2 comes before robot-10."""
        return sorted(self.rows, key=_by_number)

    def table(self) -> Table:
        table = Table(*HEADS)
        now = time.monotonic()
        for name in self.names():
            row = self.rows[name]
            texts = (escape(printable(text)) for text in _texts(name, row, now))
            table.add_row(*texts, style=STYLES.get(str(row.state.get("status")), "dim"))
        return table


def watch_robots(client: FleetClient, *, once: bool, as_json: bool) -> None:
    """Prints the robots: once, or until the user ends it."""
    inbox = client.listen(*KINDS)
    rows = RobotRows(client.robots())
    rows.add(client.recent(*WORK))
    console = Console()
    if once:
        end = time.monotonic() + ONCE_S
        while not rows.complete() and time.monotonic() < end:
            rows.read(inbox, REFRESH_S)
        if as_json:
            _print_json(rows, rows.names())
        else:
            console.print(rows.table())
    elif as_json:
        while True:
            _print_json(rows, rows.read(inbox, REFRESH_S))
    elif not sys.stdout.isatty():
        _print_rows(rows, inbox)
    else:
        with Live(rows.table(), console=console, auto_refresh=False) as live:
            while True:
                rows.read(inbox, REFRESH_S)
                live.update(rows.table(), refresh=True)


def _print_rows(rows: RobotRows, inbox: Inbox) -> None:
    """Prints for a file or a program: lines of texts with tabs between them, a heading first. A
    robot has a new line when one of its texts is another one, at most once in `ROWS_S`."""
    print("time", *HEADS, sep="\t", flush=True)
    printed: dict[str, tuple[str, ...]] = {}
    while True:
        rows.read(inbox, ROWS_S)
        now = time.monotonic()
        for name in rows.names():
            texts = tuple(printable(text) for text in _texts(name, rows.rows[name], now))
            if texts != printed.get(name):
                printed[name] = texts
                at = datetime.now(UTC).isoformat(timespec="seconds")
                print(at, *texts, sep="\t", flush=True)


def _by_number(name: str) -> list[tuple[int, str]]:
    """Digits are compared as numbers."""
    parts = re.findall(r"\d+|\D+", name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _print_json(rows: RobotRows, names: list[str]) -> None:
    for name in names:
        print(json.dumps(rows.rows[name].as_json(name, time.monotonic())), flush=True)


def _texts(name: str, row: RobotRow, now: float) -> tuple[str, ...]:
    state = row.state
    if not state:
        return name, "no state yet", "", "", "", "", "", row.work, ""
    pose, velocity = state.get("pose", {}), state.get("velocity", {})
    silent = now - row.seen
    status = str(state.get("status"))
    return (
        name,
        status if silent <= SILENT_S else f"silent for {silent:.0f} s",
        _number(pose.get("x"), 2),
        _number(pose.get("y"), 2),
        _number(pose.get("yaw"), 0, math.degrees(1.0)),
        _number(velocity.get("linear"), 2),
        _number(state.get("batteryPercent"), 0) + " %",
        row.work,
        str(state.get("safetyStopReason") or ""),
    )


def _number(value: Any, digits: int, factor: float = 1.0) -> str:
    return f"{value * factor:.{digits}f}" if isinstance(value, int | float) else "?"
