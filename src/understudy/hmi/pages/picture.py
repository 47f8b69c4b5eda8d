"""The picture: what every browser is shown, asked of the cell once for all of them."""

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import Mapping
from typing import Any, Protocol

from understudy.hmi.link import LinkError, Role
from understudy.hmi.pages.standing import Alarm, alarms

ROUND_SECONDS = 0.2
LATE_SECONDS = 3.0
SELDOM = 5
"""Rounds between two looks at what is long and hardly ever changes."""
EVENTS_KEPT = 500


class Caller(Protocol):
    """The link, as far as pages use it."""

    @property
    def status(self) -> Mapping[str, Any]: ...

    async def call(
        self, command: str, parameters: dict[str, Any] | None = None, *, role: Role
    ) -> Any: ...


class Picture:
    """Status, robots, pins and events as they were a moment ago; fresh while somebody looks."""

    def __init__(self, link: Caller) -> None:
        self._link = link
        self._watchers: Counter[str] = Counter()
        self._task: asyncio.Task[None] | None = None
        self._round = 0
        self._drawn = -math.inf
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
        seen: Mapping[str, Any] = self._link.status.get("robots", {}).get(robot, {})
        return seen

    def surroundings(self) -> str:
        """What stands around and what is held, in words that differ when it does."""
        parts = self.status.get("parts", {})
        held = {name: part["held"] for name, part in parts.items() if name.endswith(".collision")}
        return f"{self.environment} {held}"

    def alarms(self) -> list[Alarm]:
        return alarms(self.robots, self.status.get("parts", {}), self.events)

    def watch(self, robot: str) -> None:
        """A browser looks at this robot from now on."""
        self._watchers[robot] += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._keep_fresh())

    def leave(self, robot: str) -> None:
        self._watchers[robot] -= 1
        self._watchers += Counter()  # drops what fell to zero

    async def refresh(self) -> None:
        """One round of questions; what cannot be asked is left as it was, and told as not alive."""
        try:
            await self._ask()
            self._drawn = time.monotonic()
            self._round += 1
        except LinkError:
            self._drawn = -math.inf
            self._round = 0

    async def _keep_fresh(self) -> None:
        while self._watchers:
            await self.refresh()
            await asyncio.sleep(ROUND_SECONDS)

    async def _ask(self) -> None:
        robots = await self._look("robots")
        self.robots = {each["name"]: each for each in robots["robots"]}
        if not self.faults:
            self.faults = await self._look("faults")
        if self._round % SELDOM == 0:
            self.environment = await self._look("environment")
        self.status = await self._look("status")
        self.metrics = await self._look("metrics")
        for robot in list(self._watchers):
            skills = self.robots.get(robot, {}).get("capabilities", ())
            if "io" in skills:
                self.pins[robot] = await self._look("io", robot=robot)
        await self._hear()

    async def _hear(self) -> None:
        """The events since the last round; where the numbers begin anew it is another cell."""
        heard = await self._look("events", since=self._since)
        if heard["last"] < self._since:
            self.events.clear()
            heard = await self._look("events", since=0)
        self.events.extend(heard["events"])
        self._since = heard["last"]

    async def _look(self, query: str, **parameters: Any) -> Any:
        return await self._link.call(query, parameters, role="viewer")
