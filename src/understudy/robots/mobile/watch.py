"""The table of `understudy fleet watch`."""

import json
import math
import re
import sys
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from understudy.app.ready_file import printable
from understudy.robots.mobile.client import ENDS, FleetClient, FleetMessage, Inbox

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
            table.add_row(
                *(escape(printable(text)) for text in _texts(name, row, now)), style=_style(row)
            )
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


def _style(row: RobotRow) -> str:
    return STYLES.get(str(row.state.get("status")), "dim")
