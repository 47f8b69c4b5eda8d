"""State of the cell as all browsers show it: requested from the cell once for all of them."""

import asyncio
import contextlib
import logging
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from understudy.hmi.link import AT_WORK, CellLink, LinkError
from understudy.ports.refusals import ESTOP

log = logging.getLogger(__name__)

REFRESH_SECONDS = 0.25
"""A browser's own command triggers a refresh at once; this period is for changes by others."""
PAUSE_PER_WORK = 5.0
"""A refresh of a large cell takes long: the next one waits this many times as long."""
TIMEOUT_SECONDS = 3.0
SLOW_REFRESH = 5
"""Queries whose answers are long and rarely change are sent in every fifth refresh."""
EVENTS_KEPT = 500
PINS = "pins of "

Facts = Mapping[str, Any]


class CellState:
    """Answers to the queries `robots`, `status`, `devices`, … of one cell time.

    They are requested four times a second while a browser watches, in one `glance`, and replaced
    all at once: two values read together are of the same refresh."""

    def __init__(self, link: CellLink, commands: Collection[str] = ()) -> None:
        """``commands``: names of the commands and queries of the cell."""
        self.commands = commands
        self._link = link
        self._watchers: Counter[str] = Counter()
        self._listeners: list[Callable[[], object]] = []
        self._task: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._soon = asyncio.Event()
        self._refreshes = 0
        self._updated = -math.inf
        self._views: Mapping[str, Any] = {}
        self._last_event = 0
        self.robots: dict[str, Facts] = {}
        self.status: Facts = {}
        self.metrics: Facts = {}
        self.faults: Facts = {}
        self.devices: list[Facts] = []
        self.contacts: list[Facts] = []
        self.pins: dict[str, Facts] = {}
        self.environment: Facts = {}
        self.work: list[Facts] = []
        """Runs of the cell that commands wait for."""
        self.events: deque[Facts] = deque(maxlen=EVENTS_KEPT)

    @property
    def alive(self) -> bool:
        """Whether the cell answered within the timeout."""
        return time.monotonic() - self._updated < TIMEOUT_SECONDS

    def view(self, robot: str) -> Facts:
        """The robot in the last status message of the link."""
        seen: Facts = self._views.get(robot, {})
        return seen

    def any_can(self, capability: str) -> bool:
        """Whether a robot of the cell has this capability."""
        return any(capability in facts.get("capabilities", ()) for facts in self.robots.values())

    def devices_of(self, robot: str) -> list[Facts]:
        return [device for device in self.devices if _is_part_of(robot, device["name"])]

    def faults_of(self, robot: str) -> list[tuple[str, str]]:
        """(fault, place) for each fault that can be injected into the robot or its devices."""
        return [
            (name, place)
            for name, fault in self.faults.items()
            for place in fault["places"]
            if _is_part_of(robot, place)
        ]

    def scene_key(self) -> str:
        """A text that differs when the environment, held objects, tools or work frames differ."""
        parts = self.status.get("parts", {})
        held = {name: part["held"] for name, part in parts.items() if name.endswith(".collision")}
        tools = [
            (each.get("tools"), each.get("work_offsets_mm_deg")) for each in self.robots.values()
        ]
        return f"{self.environment} {held} {tools}"

    def alarms(self) -> list["ActiveAlarm"]:
        found = alarms(self.robots, self.devices, self.events, self.contacts)
        return found + of_parts(self.status.get("parts", {}))

    def notices(self) -> list[str]:
        return notices(self.status.get("parts", {}))

    def waiting_for_time(self) -> tuple[str, int]:
        """What waits because time is paused, and its line: the program that runs, or the robot that
        moves; empty if time runs or nothing waits for it."""
        if self.status.get("rate") != 0.0:
            return "", 0
        for name, part in self.status.get("parts", {}).items():
            if name.endswith(".program") and part.get("state") == "running":
                return part["name"] or name.partition(".")[0], int(part["line"])
        return next((name for name, facts in self.robots.items() if facts.get("moving")), ""), 0

    # ── watching browsers ──

    def watch(self, robot: str) -> None:
        """A browser shows this robot from now on."""
        self._watchers[robot] += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._refresh_while_watched())
        self.refresh_soon()

    def unwatch(self, robot: str) -> None:
        self._watchers[robot] -= 1
        self._watchers += Counter()  # drops counts of zero

    def on_change(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Calls ``listener`` after every change; the returned function unsubscribes it."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            with contextlib.suppress(ValueError):
                self._listeners.remove(listener)

        return unsubscribe

    # ── refreshing ──

    def refresh_soon(self) -> None:
        """Starts the next refresh at once."""
        self._soon.set()

    async def refresh(self) -> None:
        """Sends all queries after this call began. Values whose query fails stay as they were; if
        the cell does not answer, `alive` becomes False."""
        async with self._turn:
            before, was_alive = self._shown(), self.alive
            try:
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    await self._request()
                self._updated = time.monotonic()
                self._refreshes += 1
            except (LinkError, TimeoutError):
                self._updated = -math.inf
                self._refreshes = 0
            if self._shown() != before or self.alive != was_alive:
                self._notify()

    def _shown(self) -> tuple[object, ...]:
        around = self.devices, self.contacts, self.environment, dict(self.pins)
        robots = self._views, self.robots, self.status, self.metrics
        return self._last_event, self.work, *robots, *around

    def _notify(self) -> None:
        for listener in list(self._listeners):
            try:
                listener()
            except Exception:  # a page that fails must not stop the updates of the others
                log.exception("a page could not show the cell state")

    async def _refresh_while_watched(self) -> None:
        while self._watchers:
            self._soon.clear()
            begun = time.monotonic()
            await self.refresh()
            pause = min(PAUSE_PER_WORK * (time.monotonic() - begun), TIMEOUT_SECONDS / 2)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._soon.wait(), max(REFRESH_SECONDS, pause))

    async def _request(self) -> None:
        """All queries in one `glance`: they are answered at the same cell time."""
        queries = self._queries()
        questions = [{"command": name, "parameters": given} for name, given in queries.values()]
        answers = await self._link.call("glance", {"questions": questions}, role="viewer")
        got = {
            key: answer for key, answer in zip(queries, answers, strict=True) if answer is not None
        }
        if "robots" in got:
            self.robots = {each["name"]: each for each in got["robots"]["robots"]}
        self.faults = got.get("faults", self.faults)
        self.devices = got.get("devices", self.devices)
        self.contacts = got.get("contacts", self.contacts)
        self.environment = got.get("environment", self.environment)
        self.work = [run for run in got.get("runs", ()) if is_work_of_command(run)]
        self.status = got.get("status", self.status)
        self.metrics = got.get("metrics", self.metrics)
        pins = {key.removeprefix(PINS): got[key] for key in got if key.startswith(PINS)}
        self.pins = {**self.pins, **pins}
        self._views = self._link.status.get("robots", {})
        if "events" in got:
            self._add_events(got["events"])

    def _queries(self) -> dict[str, tuple[str, dict[str, Any]]]:
        queries: dict[str, tuple[str, dict[str, Any]]] = {
            name: (name, {})
            for name in ("robots", "status", "metrics", "devices", "contacts", "runs")
        }
        queries["events"] = "events", {"since": self._last_event}
        if not self.faults:
            queries["faults"] = "faults", {}
        if self._refreshes % SLOW_REFRESH == 0:
            queries["environment"] = "environment", {}
        for robot in self._watchers:
            if "io" in self.robots.get(robot, {}).get("capabilities", ()):
                queries[f"{PINS}{robot}"] = "io", {"robot": robot}
        return queries

    def _add_events(self, answer: Facts) -> None:
        """The events since the last refresh. Lower numbers than before mean another cell: the next
        refresh then requests its events from the first one on."""
        if answer["last"] < self._last_event:
            self.events.clear()
            self._last_event = 0
            self.refresh_soon()
        else:
            self.events.extend(answer["events"])
            self._last_event = answer["last"]


def is_work_of_command(run: Facts) -> bool:
    """Whether a command waits for this run of the cell."""
    return bool(run["for_command"]) and run["state"] in AT_WORK


def _is_part_of(robot: str, place: str) -> bool:
    return place.split(".")[0] == robot


# ── state of one robot ──

Severity = Literal["calm", "busy", "held", "alarm", "off"]

SEVERITIES: Mapping[str, Severity] = {
    "Idle": "calm",
    "Hold": "held",
    "Door": "held",
    "Tool": "held",
    "Check": "held",
    "Sleep": "off",
    "Stopped": "held",
    "Error": "alarm",
    "ActiveAlarm": "alarm",
    "EmergencyStopped": "alarm",
    "RUNNING": "calm",
    "PAUSED": "held",
    "ESTOP": "alarm",
    "WARNING": "held",
    "ERROR": "alarm",
    "OFFLINE": "off",
}
"""Any other state is `busy`."""


@dataclass(frozen=True, slots=True)
class DisplayState:
    """State of a robot in its own word, its severity (a colour), and its program line."""

    word: str
    severity: Severity
    line: int = 0


def robot_state(facts: Facts, view: Facts) -> DisplayState:
    """The state of a robot, from the query `robots` and the link's last status message, which is
    more recent."""
    reported = str(view.get("state") or facts.get("state") or "")
    word = reported.partition(":")[0] or "Unknown"
    if word == "RUNNING" and facts.get("moving"):
        word = "Moving"  # a mobile robot reports RUNNING at rest, too
    if word == "PAUSED" and facts.get("code") == ESTOP:
        word = "ESTOP"  # a mobile robot reports PAUSED for obstacles and holds, too
    severity = SEVERITIES.get(word, "busy") if word != "Unknown" else "off"
    if facts.get("error"):
        severity = "alarm"
    return DisplayState(word, severity, int(view.get("line") or 0))


@dataclass(frozen=True, slots=True)
class ActiveAlarm:
    """An error or fault of a robot that is active now, or a collision that was not cleared, and the
    advice on it. `clears`: the command that ends it; of a job with the robot."""

    robot: str
    text: str
    what_to_do: str = ""
    clears: str = "reset"

    @property
    def of_job(self) -> bool:
        """Whether `clears` is a command of a job, which names the robot."""
        return self.clears not in ("reset", "clear_collisions")


def of_parts(parts: Mapping[str, Any]) -> list[ActiveAlarm]:
    """Alarms that jobs have in their status, with advice and the command that ends them."""
    return [
        ActiveAlarm(name.partition(".")[0], alarm, part["advice"], part["clears"])
        for name, part in parts.items()
        if (alarm := _field(part, "alarm"))
    ]


def notices(parts: Mapping[str, Any]) -> list[str]:
    """What jobs report that is no alarm, such as an empty source."""
    rows = ((name.partition(".")[0], _field(part, "notice")) for name, part in parts.items())
    return [f"{robot}: {notice}" for robot, notice in rows if notice]


def _field(part: Any, key: str) -> str:
    return str(part.get(key) or "") if isinstance(part, dict) else ""


def alarms(
    robots: Mapping[str, Facts],
    devices: Iterable[Facts],
    events: Iterable[Facts],
    contacts: Iterable[Facts] = (),
) -> list[ActiveAlarm]:
    """For every robot the error of its controller, then the faults of its devices that the error
    does not name already, with the advice of the alarm event; then the collisions."""
    advice = {(e["robot"], e["text"]): e["what_to_do"] for e in events if e["kind"] == "alarm"}
    of_devices = [(device["name"], fault) for device in devices for fault in device["faults"]]
    found = []
    for robot, facts in robots.items():
        error = facts.get("error") or ""
        texts = [error] if error else []
        texts += [t for name, t in of_devices if _is_part_of(robot, name) and t not in error]
        found += [ActiveAlarm(robot, text, advice.get((robot, text), "")) for text in texts]
    return found + [
        ActiveAlarm(each["robot"], each["text"], each["what_to_do"], "clear_collisions")
        for each in contacts
    ]
