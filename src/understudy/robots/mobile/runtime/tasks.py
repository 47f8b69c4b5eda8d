"""TaskComm: tasks of a robot, one after the other, those with a higher priority first.

    queued ─▶ waits for a route ─▶ carries out steps ─▶ done
       └──────────────┴────────────────────┴─────────▶ failed   (with one of ERRORS)

A task begins when the robot is RUNNING or in WARNING; until then it stays in the queue. The running
task is not interrupted by one with a higher priority.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, field

from understudy.errors import Refused
from understudy.robots.mobile.fleet_interface import TaskReading
from understudy.robots.mobile.runtime.messages import (
    MoveToPoint,
    Received,
    RouteResponse,
    RouteStep,
    TaskAssign,
    TaskCancel,
    TaskDone,
    TaskFailed,
    TaskProgress,
)
from understudy.robots.mobile.runtime.modules import CANCELED, Occurrence, RobotContext
from understudy.robots.mobile.runtime.routes import RouteComm
from understudy.robots.mobile.runtime.steps import Steps, StepsState, check_steps
from understudy.robots.mobile.runtime.traffic import NodeHold

QUEUE = 100
"""Tasks that may wait; another one fails at once."""
REMEMBERED = 1000
"""Ids of ended tasks that are kept, to carry out each task once."""
NEAR = 0.05
"""Metres within which a robot is at its destination, so that an empty route is right."""
ERRORS: Mapping[str, str] = {
    "INVALID_TASK": "the task lacks what its type needs, or a step is wrong; it was not begun",
    "TASK_TYPE_NOT_SUPPORTED": "a CUSTOM task without `mission.steps`",
    "QUEUE_FULL": f"{QUEUE} tasks (or 100 commands) wait already",
    "CANCELED": "task.cancel",
    "STOPPED": "a STOP command or an operator ended the task; queued tasks end with it",
    "ROUTE_UNAVAILABLE": "MOVE_TO_POINT for a robot whose `supportedModules` has no RouteComm",
    "ROUTE_TIMEOUT": "no route.response to two route.requests",
    "ROUTE_NOT_FOUND": "the built-in planner knows no way",
    "ROUTE_EMPTY": "a route without steps, and the robot is not at the destination",
    "INVALID_ROUTE": "a step of the route is wrong; the robot has not moved",
    "CAPABILITY_NOT_SUPPORTED": "the robot cannot carry out the command of a step",
    "ROBOT_NOT_READY": "the robot is in ERROR or OFFLINE",
    "REQUIRED_MOTOR_UNAVAILABLE": "a motor that the step needs is faulty or not connected",
    "INVALID_PARAMETERS": "the command of a step refused its parameters",
    "SAFETY_STOP_ACTIVE": "a step should begin while the robot is stopped for safety",
    "SAFETY_STOP": "the robot was stopped for safety during a step",
    "TIMEOUT": "a step took too long",
    "STEP_FAILED": "a step failed for another reason, which errorMessage has",
}
"""`errorCode` of task.failed, and what it means."""


class Task(Struct, frozen=True, forbid_unknown_fields=True):
    """A task that was accepted: it goes to a destination, or it has steps."""

    task_id: str
    message_id: str
    reference: str
    priority: int
    destination: MoveToPoint | None
    steps: Sequence[RouteStep]

    def __post_init__(self) -> None:
        wrong = check_steps(self.steps)
        if wrong is not None:
            raise ValueError(wrong.reason)


class TasksSaved(Struct, forbid_unknown_fields=True):
    """Snapshot."""

    queue: Annotated[list[Task], Meta(max_length=QUEUE)] = field(default_factory=list)
    active: Task | None = None
    phase: Literal["route", "steps"] = "steps"
    ended: Annotated[list[tuple[str, str]], Meta(max_length=REMEMBERED)] = field(
        default_factory=list
    )
    steps: StepsState = field(default_factory=StepsState)


class TaskComm:
    """The module of one robot."""

    def __init__(self, context: RobotContext, hold: NodeHold, routes: RouteComm | None) -> None:
        self._context = context
        self._routes = routes
        self.steps = Steps(context, hold, self._report)
        self._queue: list[Task] = []
        self._active: Task | None = None
        self._phase: Literal["route", "steps"] = "steps"
        self._ended: OrderedDict[str, str] = OrderedDict()
        """Message ids of ended tasks by task."""

    # ── Module ──

    def kinds(self) -> tuple[str, ...]:
        return ("task.assign", "task.cancel")

    def handle(self, message: Received, now: int) -> None:
        if isinstance(message.payload, TaskCancel):
            self._cancel(message, now)
        else:
            self._assign(message, now)

    def problem(self, message: Received) -> Refused | None:
        """`ChecksMessages`: why a task would fail at once, or a cancellation have no effect."""
        asked = message.payload
        known = self._message_of(asked.task_id) is not None
        if isinstance(asked, TaskCancel):
            ends = known and asked.task_id not in self._ended
            return None if ends else Refused(f"task {asked.task_id} is not under way")
        if known:
            return Refused(f"task {asked.task_id} is known already")
        found = self._examined(asked)
        return found if isinstance(found, Refused) else None

    def advance(self, now: int) -> None:
        for _ in range(QUEUE):
            if self._active is None and not self._begin_next(now):
                return
            if not self._go_on(now):
                return

    def next_wake(self) -> int | None:
        if self._active is None:
            return 0 if self._queue else None
        if self._phase == "route":
            return 0 if self._routes is not None and self._routes.answered else None
        return self.steps.next_wake()

    def ended(self, tag: str, outcome: Refused | None, now: int) -> None:
        self.steps.ended(tag, outcome)

    def occurred(self, what: Occurrence, now: int) -> None:
        if what != "stopped":
            return
        stopped = Refused("STOPPED")
        self._end_active(stopped, now)
        while self._queue:
            self._end(self._queue.pop(0), stopped, now)

    # ── for operators ──

    @property
    def is_active(self) -> bool:
        return self._active is not None

    def readings(self) -> list[TaskReading]:
        """The running task and those that wait, in their order."""
        tasks = [*([self._active] if self._active else []), *self._queue]
        return [self._reading(task) for task in tasks]

    def _reading(self, task: Task) -> TaskReading:
        running, to = task is self._active, task.destination
        done, steps = self.steps.counted if running else (0, len(task.steps))
        x, y = (to.x, to.y) if to else (None, None)
        return TaskReading(task.task_id, task.priority, running, done, steps, x, y)

    # ── snapshot ──

    def save(self) -> TasksSaved:
        return TasksSaved(
            list(self._queue), self._active, self._phase, list(self._ended.items()),
            self.steps.save(),
        )  # fmt: skip

    def load(self, state: Any) -> None:
        saved = msgspec.convert(state, TasksSaved)
        self._queue, self._active, self._phase = saved.queue, saved.active, saved.phase
        self._ended = OrderedDict(saved.ended)
        self.steps.load(saved.steps)

    # ── messages ──

    def _assign(self, message: Received, now: int) -> None:
        asked: TaskAssign = message.payload
        known = self._message_of(asked.task_id)
        if known is not None:
            if known != message.message_id:
                self._ignore(message, "KNOWN_TASK", now)
            return
        found = self._examined(asked)
        destination, steps = (None, []) if isinstance(found, Refused) else found
        task = Task(
            asked.task_id, message.message_id, message.cause, asked.priority, destination, steps
        )
        if isinstance(found, Refused):
            self._end(task, found, now)
            return
        place = sum(each.priority >= task.priority for each in self._queue)
        self._queue.insert(place, task)
        about = {"taskId": task.task_id, "ahead": place + (self._active is not None)}
        self._context.event("task.accepted", about, now, message.cause)

    def _examined(
        self, asked: TaskAssign
    ) -> tuple[MoveToPoint | None, Sequence[RouteStep]] | Refused:
        """The destination and the steps of a task."""
        if len(self._queue) >= QUEUE:
            return Refused("QUEUE_FULL")
        if asked.task_type == "MOVE_TO_POINT":
            if asked.move_to_point is None:
                return Refused("INVALID_TASK: MOVE_TO_POINT needs moveToPoint")
            return (asked.move_to_point, []) if self._routes else Refused("ROUTE_UNAVAILABLE")
        if asked.mission is None:
            return Refused(
                "TASK_TYPE_NOT_SUPPORTED: CUSTOM needs mission.steps"
                if asked.task_type == "CUSTOM"
                else "INVALID_TASK: MISSION needs mission"
            )
        wrong = check_steps(asked.mission.steps)
        return Refused(f"INVALID_TASK: {wrong.reason}") if wrong else (None, asked.mission.steps)

    def _cancel(self, message: Received, now: int) -> None:
        task_id = message.payload.task_id
        canceled = Refused("CANCELED: by task.cancel")
        if self._active is not None and self._active.task_id == task_id:
            self._end_active(canceled, now)
            return
        for place, task in enumerate(self._queue):
            if task.task_id == task_id:
                self._end(self._queue.pop(place), canceled, now)
                return
        why = "ENDED_TASK" if task_id in self._ended else "UNKNOWN_TASK"
        self._ignore(message, why, now)

    def _ignore(self, message: Received, reason: str, now: int) -> None:
        about = {"kind": message.kind, "taskId": message.payload.task_id, "reason": reason}
        self._context.event("task.ignored", about, now, message.cause)

    def _message_of(self, task_id: str) -> str | None:
        """The message that assigned a task; None if the task is not known."""
        tasks = [*self._queue, *([self._active] if self._active else [])]
        found = (task.message_id for task in tasks if task.task_id == task_id)
        return next(found, self._ended.get(task_id))

    # ── work ──

    def _begin_next(self, now: int) -> bool:
        ready = self._context.status in ("RUNNING", "WARNING")
        if not self._queue or not ready or self._context.stop_reason is not None:
            return False
        task = self._active = self._queue.pop(0)
        if task.destination is not None and self._routes is not None:
            self._phase = "route"
            self._routes.ask(task.task_id, task.destination, task.reference, now)
        else:
            self._begin_steps(task.steps, now)
        return True

    def _begin_steps(
        self, steps: Sequence[RouteStep], now: int, route: RouteResponse | None = None
    ) -> None:
        self._phase = "steps"
        if route is None:
            self.steps.begin(steps, now)
        else:
            eta = route.eta_seconds_total
            self.steps.begin(steps, now, route_id=route.route_id, eta_seconds=eta)
        self._report(now)

    def _go_on(self, now: int) -> bool:
        """Carries on with the running task; returns whether it has ended."""
        outcome = self._route_outcome(now) if self._phase == "route" else None
        if outcome is None and self._phase == "steps":
            found = self.steps.advance(now)
            if found is False:
                return False
            outcome = found
        if outcome is None:
            return False
        self._end_active(outcome if isinstance(outcome, Refused) else None, now)
        return True

    def _route_outcome(self, now: int) -> Refused | bool | None:
        """Begins the steps of a route that has come; the outcome of the task if it has none."""
        if self._routes is None or self._active is None:
            return Refused("ROUTE_UNAVAILABLE")
        route = self._routes.take_answer()
        if route is None or isinstance(route, Refused):
            return route
        wrong = check_steps(route.steps)
        if wrong is not None:
            return Refused(f"INVALID_ROUTE: {wrong.reason}")
        if not route.steps and not self._is_there(self._active.destination):
            return Refused("ROUTE_EMPTY")
        self._begin_steps(route.steps, now, route)
        return None

    def _is_there(self, destination: MoveToPoint | None) -> bool:
        pose = self._context.pose
        return destination is not None and (
            (destination.x - pose.x) ** 2 + (destination.y - pose.y) ** 2 <= NEAR**2
        )

    def _report(self, now: int) -> None:
        task = self._active
        assert task is not None
        done, steps = self.steps.counted
        route, eta = self.steps.route_id, self.steps.eta_seconds(now)
        progress = TaskProgress(
            task.task_id, done, steps, done / steps if steps else 1.0,
            UNSET if route is None else route, UNSET if eta is None else eta,
        )  # fmt: skip
        self._context.publish("task.progress", progress, now, task.reference)

    def _end_active(self, outcome: Refused | None, now: int) -> None:
        task, self._active = self._active, None
        if task is None:
            return
        if self._routes is not None:
            self._routes.withdraw()
        self.steps.end()
        if outcome is not None:
            self._context.cancel_own(now)
        self._end(task, outcome, now)

    def _end(self, task: Task, outcome: Refused | None, now: int) -> None:
        """Reports the end of a task, and remembers it."""
        self._ended[task.task_id] = task.message_id
        if len(self._ended) > REMEMBERED:
            self._ended.popitem(last=False)
        if outcome is None:
            self._context.publish("task.done", TaskDone(task.task_id), now, task.reference)
            return
        code, message = error_of(outcome)
        failed = TaskFailed(task.task_id, code, message or UNSET)
        self._context.publish("task.failed", failed, now, task.reference)


def error_of(outcome: Refused) -> tuple[str, str]:
    """The errorCode and the errorMessage of a reason, which is `CODE` or `CODE: message`."""
    code, _, message = outcome.reason.partition(": ")
    if code == CANCELED and not message:
        return "STOPPED", "a command of the task was canceled"
    return (code, message) if code in ERRORS else ("STEP_FAILED", outcome.reason)
