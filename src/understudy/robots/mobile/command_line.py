"""`understudy fleet`: commands and tasks for mobile robots on NATS, a live table, schemas.

The server is that of a running cell, or the one that `--server` names. Exit codes: 0 the robot has
done it, 1 it has not (rejected, failed, canceled, no answer), 2 usage.
"""

import json
import math
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from pathlib import Path
from typing import Annotated, Any, TextIO

import msgspec
import typer

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
from understudy.cli.status import chosen_cells
from understudy.errors import ConfigError, Refused, unknown
from understudy.robots.mobile.client import (
    FleetClient,
    FleetMessage,
    Inbox,
    NoAnswerError,
    last_statuses,
)
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
CommandName = Annotated[
    str, typer.Argument(metavar="COMMAND", help=f"one of {', '.join(COMMANDS)}")
]
Parameters = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE...", help="parameters; yaw_deg=90 is yaw in degrees"),
]
Place = Annotated[
    list[str], typer.Argument(metavar="x=M y=M [yaw_deg=D]", help="where the robot shall go")
]
ServerOption = Annotated[
    str, typer.Option("--server", metavar="URL", help="NATS server, nats://[TOKEN@]HOST:PORT")
]
CredsOption = Annotated[
    Path | None, typer.Option("--creds", metavar="FILE", help="credentials for --server")
]
WaitOption = Annotated[
    bool, typer.Option("--wait/--no-wait", help="wait until the command has ended")
]
TimeoutOption = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="wait at most this long")
]

fleet = typer.Typer(
    help="Send commands and tasks to mobile robots, watch them, write their message schemas.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
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
    raise typer.Exit(code)


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
    where = _values(place, [field.encode_name for field in msgspec.structs.fields(MoveToPoint)])
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
        raise typer.Exit(_follow_task(answers, json_lines(as_json)))


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
    once: Annotated[bool, typer.Option("--once", help="print the table once")] = False,
    as_json: JsonOption = None,
    running: RunningOption = "",
    ready_file: ReadyFileOption = None,
    server: ServerOption = "",
    creds: CredsOption = None,
) -> None:
    """Show the robots of a server: status, pose, speed, battery, command or task, why it stands.

    Into a file or a pipe it writes lines with tabs, one for each change of a robot."""
    from understudy.robots.mobile.watch import watch_robots

    with suppress(KeyboardInterrupt), _client(running, ready_file, server, creds) as client:
        lines = json_lines(as_json)
        try:
            with redirect_stdout(lines) if lines else nullcontext():
                watch_robots(client, once=once, as_json=lines is not None)
        except BrokenPipeError:
            discard_output()


@fleet.command(epilog=example("schema schemas"))
def schema(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="folder for the files")],
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
    found = _values(words, [field.encode_name for field in fields])
    problem = read_parameters(kind, found)
    if isinstance(problem, Refused):
        needed = [f"{field.encode_name}=…" for field in fields if field.required]
        raise ConfigError(f"{command}: {problem.reason}", allowed=" ".join(needed))
    return found


def _values(words: Sequence[str], known: Sequence[str]) -> dict[str, Any]:
    """Parameters as the messages have them; snake_case and yaw_deg are understood, too."""
    found = {}
    for word in words:
        key, value = parameter(word)
        name = _camel(key)
        if name == "yawDeg" and "yaw" in known:
            if not isinstance(value, int | float):
                raise ConfigError(key, value=value, allowed="degrees")
            name, value = "yaw", math.radians(value)
        if name not in known:
            raise unknown("parameter", key, known)
        found[name] = value
    return found


def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)


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
        raise typer.Exit(1) from None


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
    client: FleetClient,
    robot: str,
    control: dict[str, Any],
    as_json: str | None,
    *,
    hold: bool,
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
