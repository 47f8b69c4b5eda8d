"""RouteComm: asks the backend for a route, and waits for the answer.

The request is repeated once; then the wait is over. If the cell has a planner and no backend
answers within its grace time, the planner answers; as soon as a backend has answered once, the
planner is silent until the next start.
"""

from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from understudy.errors import Refused
from understudy.robots.mobile.runtime.messages import (
    MoveToPoint,
    Pose,
    Received,
    RouteRequest,
    RouteResponse,
)
from understudy.robots.mobile.runtime.modules import Occurrence, RobotContext
from understudy.robots.mobile.runtime.outbox import Time
from understudy.units import NS_PER_SECOND

DEADLINE_NS = 10 * NS_PER_SECOND
"""The time for an answer to each request."""
REQUESTS = 2
ROUTE_TIMEOUT = Refused("ROUTE_TIMEOUT")


class Planner(Protocol):
    """Finds routes in the place of a backend; one for all robots."""

    @property
    def grace_ns(self) -> int:
        """How long a backend may take."""
        ...

    @property
    def silent(self) -> bool: ...

    def silence(self) -> None:
        """A backend has answered."""
        ...

    def plan(
        self, robot_id: str, start: Pose, destination: MoveToPoint, now: int
    ) -> RouteResponse | Refused | None:
        """A route; `Refused`: there is none. None: not at this tick, other robots had routes."""
        ...


class Pending(Struct, forbid_unknown_fields=True):
    """A request that waits for an answer. ``asked``: when it was sent last. ``references``: what a
    response may have as its correlationId."""

    task_id: str
    start: Pose
    destination: MoveToPoint
    asked: Time
    references: Annotated[list[str], Meta(min_length=1, max_length=REQUESTS + 1)]
    requests: Annotated[int, Meta(ge=1, le=REQUESTS)] = 1


class RoutesSaved(Struct, forbid_unknown_fields=True):
    """Snapshot."""

    pending: Pending | None = None
    route: RouteResponse | None = None
    problem: str | None = None


class RouteComm:
    """The module of one robot; TaskComm asks it for routes, one at a time."""

    def __init__(self, context: RobotContext, planner: Planner | None) -> None:
        self._context = context
        self._planner = planner
        self._pending: Pending | None = None
        self._answer: RouteResponse | Refused | None = None

    # ── for TaskComm ──

    def ask(self, task_id: str, destination: MoveToPoint, reference: str, now: int) -> None:
        """Requests a route from where the robot is; the answer is there later."""
        self._answer = None
        self._pending = Pending(task_id, self._context.pose, destination, now, [reference])
        self._request(self._pending, now)

    def withdraw(self) -> None:
        """The route is not needed any more."""
        self._pending = self._answer = None

    @property
    def answered(self) -> bool:
        return self._answer is not None

    def take_answer(self) -> RouteResponse | Refused | None:
        answer, self._answer = self._answer, None
        return answer

    # ── Module ──

    def kinds(self) -> tuple[str, ...]:
        return ("route.response",)

    def handle(self, message: Received, now: int) -> None:
        if self._planner is not None:
            self._planner.silence()
        response: RouteResponse = message.payload
        problem = self._problem(message)
        if problem is None:
            self._settle(response)
            return
        about = {"routeId": response.route_id, "reason": problem}
        if response.task_id is not None:
            about["taskId"] = response.task_id
        self._context.event("route.ignored", about, now, message.cause)

    def advance(self, now: int) -> None:
        pending = self._pending
        if pending is None:
            return
        planner = self._planner
        if planner is not None and not planner.silent:
            if now >= pending.asked + planner.grace_ns:
                self._plan(planner, pending, now)
            return
        if now < pending.asked + DEADLINE_NS:
            return
        if pending.requests < REQUESTS:
            pending.requests += 1
            self._request(pending, now)
        else:
            self._settle(ROUTE_TIMEOUT)

    def next_wake(self) -> int | None:
        if self._pending is None:
            return None
        planner = self._planner
        waits = DEADLINE_NS if planner is None or planner.silent else planner.grace_ns
        return self._pending.asked + waits

    def ended(self, tag: str, outcome: Refused | None, now: int) -> None:
        """It has no commands."""

    def occurred(self, what: Occurrence, now: int) -> None:
        """Requests wait in the outbox while NATS is away; TaskComm withdraws after a STOP."""

    # ── snapshot ──

    def save(self) -> RoutesSaved:
        pending, answer = self._pending, self._answer
        return RoutesSaved(
            None if pending is None else replace(pending, references=list(pending.references)),
            answer if isinstance(answer, RouteResponse) else None,
            answer.reason if isinstance(answer, Refused) else None,
        )

    def load(self, state: Any) -> None:
        saved = msgspec.convert(state, RoutesSaved)
        self._pending = saved.pending
        self._answer = Refused(saved.problem) if saved.problem is not None else saved.route

    # ── inside ──

    def _request(self, pending: Pending, now: int) -> None:
        pending.asked = now
        asked = RouteRequest(pending.start, pending.destination, pending.task_id)
        sent = self._context.publish("route.request", asked, now, pending.references[0])
        pending.references.append(sent)

    def _problem(self, message: Received) -> str | None:
        """Why a response is not the answer to the request."""
        pending, response = self._pending, message.payload
        if pending is None:
            return "NOT_REQUESTED"
        if response.task_id is not None:
            return None if response.task_id == pending.task_id else "OTHER_TASK"
        known = message.correlation_id is None or message.correlation_id in pending.references
        return None if known else "OTHER_REQUEST"

    def _settle(self, answer: RouteResponse | Refused) -> None:
        self._pending, self._answer = None, answer

    def _plan(self, planner: Planner, pending: Pending, now: int) -> None:
        """Takes the answer of the planner, unless it answers at a later tick."""
        robot_id = self._context.file.identity.robot_id
        found = planner.plan(robot_id, pending.start, pending.destination, now)
        if isinstance(found, RouteResponse):
            found = replace(found, task_id=pending.task_id)
            about = msgspec.to_builtins(found)
            self._context.event("route.planned", about, now, pending.references[0])
        if found is not None:
            self._settle(found)
