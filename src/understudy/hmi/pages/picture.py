"""The picture: what every browser is shown, asked of the cell once for all of them."""

import asyncio
import contextlib
import logging
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from understudy.hmi.link import LinkError, Role
from understudy.hmi.pages.standing import Alarm, alarms

log = logging.getLogger(__name__)

ROUND_SECONDS = 0.25
"""What this browser orders is seen at once; this is for what others do."""
LATE_SECONDS = 3.0
SELDOM = 5
"""Rounds between two looks at what is long and hardly ever changes."""
EVENTS_KEPT = 500
PINS = "pins of "


class Caller(Protocol):
    """The link, as far as pages use it."""

    @property
    def status(self) -> Mapping[str, Any]: ...

    async def call(
        self, command: str, parameters: dict[str, Any] | None = None, *, role: Role
    ) -> Any: ...


class Picture:
    """Status, robots, pins and events of one moment, a moment ago; fresh while somebody looks.

    All of it is exchanged at once: who reads two things of it reads them of the same round."""

    def __init__(self, link: Caller) -> None:
        self._link = link
        self._watchers: Counter[str] = Counter()
        self._listeners: list[Callable[[], object]] = []
        self._task: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._hurry = asyncio.Event()
        self._round = 0
        self._drawn = -math.inf
        self._views: Mapping[str, Any] = {}
        self.robots: dict[str, Mapping[str, Any]] = {}
        self.status: Mapping[str, Any] = {}
        self.metrics: Mapping[str, Any] = {}
        self.faults: Mapping[str, Any] = {}
        self.pins: dict[str, Mapping[str, Any]] = {}
        self.environment: Mapping[str, Any] = {}
        self.events: deque[Mapping[str, Any]] = deque(maxlen=EVENTS_KEPT)
        self._since = 0

    @property
    def alive(self) -> bool:
        """It is what the cell said a moment ago."""
        return time.monotonic() - self._drawn < LATE_SECONDS

    def view(self, robot: str) -> Mapping[str, Any]:
        """What the link told of it last, by itself."""
        seen: Mapping[str, Any] = self._views.get(robot, {})
        return seen

    def surroundings(self) -> str:
        """What stands around, what is held, where tools end and work begins, in words that differ
        when it does."""
        parts = self.status.get("parts", {})
        held = {name: part["held"] for name, part in parts.items() if name.endswith(".collision")}
        tips = [
            (each.get("tools"), each.get("work_offsets_mm_deg")) for each in self.robots.values()
        ]
        return f"{self.environment} {held} {tips}"

    def alarms(self) -> list[Alarm]:
        return alarms(self.robots, self.status.get("parts", {}), self.events)

    # ── who looks ──

    def watch(self, robot: str) -> None:
        """A browser looks at this robot from now on."""
        self._watchers[robot] += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._keep_fresh())
        self.hurry()

    def leave(self, robot: str) -> None:
        self._watchers[robot] -= 1
        self._watchers += Counter()  # drops what fell to zero

    def on_change(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Told when there is something new to see; call what is returned to be told no more."""
        self._listeners.append(listener)

        def leave() -> None:
            with contextlib.suppress(ValueError):
                self._listeners.remove(listener)

        return leave

    # ── how it stays fresh ──

    def hurry(self) -> None:
        """The next round comes at once: somebody has changed something."""
        self._hurry.set()

    async def refresh(self) -> None:
        """One round of questions, all of them asked after this was called; what cannot be asked is
        left as it was, and told as not alive."""
        async with self._turn:
            before, lived = self._shown(), self.alive
            try:
                async with asyncio.timeout(LATE_SECONDS):
                    await self._ask()
                self._drawn = time.monotonic()
                self._round += 1
            except (LinkError, TimeoutError):
                self._drawn = -math.inf
                self._round = 0
            if self._shown() != before or self.alive != lived:
                self._tell()

    def _shown(self) -> tuple[object, ...]:
        return (
            self._since, self._views, self.robots, self.status, self.metrics, self.environment,
            dict(self.pins),
        )  # fmt: skip

    def _tell(self) -> None:
        for listener in list(self._listeners):
            try:
                listener()
            except Exception:  # one page that fails leaves the others fresh
                log.exception("a page could not show the picture")

    async def _keep_fresh(self) -> None:
        while self._watchers:
            self._hurry.clear()
            await self.refresh()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), ROUND_SECONDS)

    async def _ask(self) -> None:
        """All at one moment of the cell, and exchanged at once."""
        questions = self._questions()
        asked = [{"command": name, "parameters": given} for name, given in questions.values()]
        answers = await self._link.call("glance", {"questions": asked}, role="viewer")
        told = {
            key: answer
            for key, answer in zip(questions, answers, strict=True)
            if answer is not None
        }
        if "robots" in told:
            self.robots = {each["name"]: each for each in told["robots"]["robots"]}
        self.faults = told.get("faults", self.faults)
        self.environment = told.get("environment", self.environment)
        self.status = told.get("status", self.status)
        self.metrics = told.get("metrics", self.metrics)
        pins = {key.removeprefix(PINS): told[key] for key in told if key.startswith(PINS)}
        self.pins = {**self.pins, **pins}
        self._views = self._link.status.get("robots", {})
        if "events" in told:
            self._hear(told["events"])

    def _questions(self) -> dict[str, tuple[str, dict[str, Any]]]:
        asked: dict[str, tuple[str, dict[str, Any]]] = {
            name: (name, {}) for name in ("robots", "status", "metrics")
        }
        asked["events"] = "events", {"since": self._since}
        if not self.faults:
            asked["faults"] = "faults", {}
        if self._round % SELDOM == 0:
            asked["environment"] = "environment", {}
        for robot in self._watchers:
            if "io" in self.robots.get(robot, {}).get("capabilities", ()):
                asked[f"{PINS}{robot}"] = "io", {"robot": robot}
        return asked

    def _hear(self, heard: Mapping[str, Any]) -> None:
        """The events since the last round; where the numbers begin anew it is another cell, of
        which the next round tells all."""
        if heard["last"] < self._since:
            self.events.clear()
            self._since = 0
            self.hurry()
        else:
            self.events.extend(heard["events"])
            self._since = heard["last"]
