"""How a robot carries out tasks: the modules TaskComm, RouteComm and TrafficComm.

TaskComm carries out tasks one after the other, those with a higher priority first.

    queued ─▶ waits for a route ─▶ carries out steps ─▶ done
       └──────────────┴────────────────────┴─────────▶ failed   (with one of ERRORS)

A task begins when the robot is RUNNING or in WARNING; until then it stays in the queue. The running
task is not interrupted by one with a higher priority.

RouteComm asks the backend for a route, and waits for the answer. The request is repeated once; then
the wait is over. If the cell has a planner and no backend answers within its grace time, the
planner answers; as soon as a backend has answered once, the planner is silent until the next start.

TrafficComm: the backend keeps robots apart by holding them at nodes and by limiting their speed. A
hold is for a node of the route: the robot stops when it has reached that node, or at once if that
is the node that it reached last. A hold for a node that is not on the route stays until the robot
reaches that node or the hold is released. A speed of 0 holds the robot where it is, until another
speed is allowed.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Protocol

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field
from msgspec.structs import replace

from understudy.errors import Refused
from understudy.robots.mobile.config.profile import CommandType
from understudy.robots.mobile.fleet_interface import TaskReading
from understudy.robots.mobile.runtime.messages import (
    COMMANDS,
    INTERRUPTED,
    MoveToPoint,
    NotNegative,
    Pose,
    Received,
    RouteRequest,
    RouteResponse,
    RouteStep,
    TaskAssign,
    TaskCancel,
    TaskDone,
    TaskFailed,
    TaskProgress,
    TrafficControl,
    read_parameters,
)
from understudy.robots.mobile.runtime.modules import (
    CANCELED,
    Occurrence,
    RobotContext,
)
from understudy.robots.mobile.runtime.outgoing import Time
from understudy.units import NS_PER_SECOND, nanoseconds, seconds

# ── traffic ───────────────────────────────────────────────────────────────────────────────────────


class HoldState(Struct, forbid_unknown_fields=True):
    """Snapshot. ``node_id``: where the robot shall be held; ``active``: it is held there.
    ``standing``: the speed that it may have is 0."""

    node_id: str | None = None
    active: bool = False
    standing: bool = False


class NodeHold:
    """The node at which a robot is held."""

    def __init__(self, context: RobotContext) -> None:
        self._context = context
        self.state = HoldState()

    @property
    def holds(self) -> bool:
        """Whether the robot is held, from this tick on."""
        return self.state.active or self.state.standing

    def ask(self, node_id: str, current: str | None, now: int) -> None:
        """Holds the robot at a node; ``current``: the node that it reached last."""
        if self.state.active and self.state.node_id == node_id:
            return
        self.release(now)
        self.state.node_id = node_id
        if node_id == current:
            self.reached(node_id, now)
        else:
            self._context.event("traffic.hold.pending", {"nodeId": node_id}, now)

    def reached(self, node_id: str, now: int) -> None:
        if node_id == self.state.node_id and not self.state.active:
            self._set(active=True, standing=self.state.standing, now=now)
            self._context.event("traffic.hold.active", {"nodeId": node_id}, now)

    def release(self, now: int) -> None:
        """Releases a node; a robot whose speed is 0 stays."""
        node_id = self.state.node_id
        if node_id is None:
            return
        self.state.node_id = None
        self._set(active=False, standing=self.state.standing, now=now)
        self._context.event("traffic.hold.released", {"nodeId": node_id}, now)

    def stand(self, standing: bool, now: int) -> None:
        """Holds the robot where it is, or not any more."""
        if standing != self.state.standing:
            self._set(active=self.state.active, standing=standing, now=now)
            self._context.event(f"traffic.hold.{'active' if standing else 'released'}", {}, now)

    def _set(self, *, active: bool, standing: bool, now: int) -> None:
        before = self.holds
        self.state.active, self.state.standing = active, standing
        if before != (active or standing):
            self._context.set_hold("TRAFFIC_HOLD", not before, now)


class TrafficState(Struct, forbid_unknown_fields=True):
    """The limits of the speed, m/s, and the hold."""

    max_speed: NotNegative | None = None
    target_speed: NotNegative | None = None
    hold: HoldState = field(default_factory=HoldState)


class TrafficComm:
    """The module of one robot. The speed of the robot is limited by maxSpeedMps and by
    targetSpeedMps; both stay until a message changes them."""

    def __init__(self, context: RobotContext, hold: NodeHold, progress: "Steps") -> None:
        self._context = context
        self._hold = hold
        self._progress = progress
        self.state = TrafficState(hold=hold.state)

    def restored(self) -> None:
        self._hold.state = self.state.hold

    def kinds(self) -> tuple[str, ...]:
        return ("traffic.control",)

    def handle(self, message: Received, now: int) -> None:
        control: TrafficControl = message.payload
        if control.release_hold:
            self._hold.release(now)
        if control.hold_at_node_id is not None:
            self._hold.ask(control.hold_at_node_id, self._progress.node_id, now)
        self._set_speeds(control, now)

    def advance(self, now: int) -> None:
        """Nothing: a hold begins when a node is reached."""

    def next_wake(self) -> int | None:
        return None

    def ended(self, tag: str, outcome: Refused | None, now: int) -> None:
        """It has no commands."""

    def occurred(self, what: Occurrence, now: int) -> None:
        """A hold and a limit stay, whatever happens to the connection and to commands."""

    # ── inside ──

    def _set_speeds(self, control: TrafficControl, now: int) -> None:
        state = self.state
        before = state.max_speed, state.target_speed
        state.max_speed = _changed(state.max_speed, control.max_speed_mps)
        state.target_speed = _changed(state.target_speed, control.target_speed_mps)
        limits = state.max_speed, state.target_speed
        if limits != before:
            given = [limit for limit in limits if limit is not None]
            fastest = min(given, default=None)
            self._context.limit_speed("traffic", fastest, now)
            self._hold.stand(fastest == 0, now)


def _changed(before: float | None, asked: float | UnsetType | None) -> float | None:
    return before if isinstance(asked, UnsetType) else asked


# ── steps ────────────────────────────────────────────────────────────────────────────────────────

STEPS_AT_ONCE = 10
"""Steps that end at one tick; those that take no time go on at the next tick."""
Count = Annotated[int, Meta(ge=0, lt=1 << 62)]
HOLDS = ("TRAFFIC_HOLD", "MANUAL_HOLD")
NEEDED: Mapping[str, tuple[str, ...]] = {
    "MOVE": ("x", "y"),
    "TURN": ("yaw",),
    "WAIT": ("seconds",),
    "ARRIVE_ACTIONS": ("actions",),
}
"""The keys that each type of step must have."""


class StepCommand(NamedTuple):
    command_type: CommandType
    parameters: dict[str, Any]


def check_steps(steps: Sequence[RouteStep]) -> Refused | None:
    """The first thing that is wrong with some steps."""
    for number, step in enumerate(steps):
        for key in NEEDED[step.type]:
            if getattr(step, key) is None:
                return Refused(f"steps.{number} ({step.type}): {key} is missing")
        for each in step.actions or ():
            problem = read_parameters(COMMANDS["EXECUTE_ACTION"], each)
            if isinstance(problem, Refused):
                return Refused(f"steps.{number} ({step.type}): {problem.reason}")
    return None


def orders_of(step: RouteStep, pose: Pose) -> list[StepCommand]:
    """The commands of a step; ``pose``: of the robot, which TURN keeps."""
    if step.type == "ARRIVE_ACTIONS":
        return [StepCommand("EXECUTE_ACTION", each) for each in step.actions or ()]
    if step.type == "WAIT":
        return []
    x = pose.x if step.x is None else step.x
    y = pose.y if step.y is None else step.y
    yaw = {} if step.yaw is None else {"yaw": step.yaw}
    return [StepCommand("MOVE_TO_POSE", {"x": x, "y": y} | yaw)]


class StepsState(Struct, forbid_unknown_fields=True):
    """Snapshot. ``done``: steps that are done. ``order``: commands of the step that are done.
    ``tag``: of the command under way; ``over``: it has ended, with ``problem``."""

    steps: list[RouteStep] = field(default_factory=list)
    route_id: str | None = None
    eta_seconds: NotNegative | None = None
    began: Time = 0
    done: Count = 0
    order: Count = 0
    tag: str = ""
    over: bool = False
    problem: str | None = None
    until: Time | None = None
    """When the WAIT ends that has begun."""
    node_id: str | None = None
    serial: Count = 0

    def __post_init__(self) -> None:
        wrong = check_steps(self.steps)
        if wrong is not None or self.done > len(self.steps):
            raise ValueError(wrong.reason if wrong else f"done: {self.done} of {len(self.steps)}")


class Steps:
    """Carries out the steps of a mission or of a route, one after the other. ``step_done`` is
    called after each of them.

    MOVE and TURN are MOVE_TO_POSE commands, each action of ARRIVE_ACTIONS is an EXECUTE_ACTION
    command, and WAIT needs no command. While the robot is held (TRAFFIC_HOLD, MANUAL_HOLD) no
    command begins; another safety stop refuses the next command and so ends the work.
    """

    def __init__(
        self, context: RobotContext, hold: NodeHold, step_done: Callable[[int], None]
    ) -> None:
        self._context = context
        self._hold = hold
        self._step_done = step_done
        self._state = StepsState()

    @property
    def route_id(self) -> str | None:
        return self._state.route_id

    @property
    def node_id(self) -> str | None:
        return self._state.node_id

    @property
    def counted(self) -> tuple[int, int]:
        """Steps that are done, and all of them."""
        return self._state.done, len(self._state.steps)

    def way_left(self) -> list[tuple[float, float]]:
        """The places that are still to be reached."""
        left = self._state.steps[self._state.done :]
        return [(step.x, step.y) for step in left if step.x is not None and step.y is not None]

    def eta_seconds(self, now: int) -> float | None:
        """What is left of the time that the route takes, as its planner estimated it."""
        total = self._state.eta_seconds
        return None if total is None else max(0.0, total - seconds(now - self._state.began))

    def begin(
        self,
        steps: Sequence[RouteStep],
        now: int,
        *,
        route_id: str | None = None,
        eta_seconds: float | None = None,
    ) -> None:
        node = None if route_id else self._state.node_id
        self._state = StepsState(
            list(steps), route_id, eta_seconds, began=now, node_id=node, serial=self._state.serial
        )

    def end(self) -> None:
        """Forgets the steps; the node stays the one that was reached last."""
        self._state = StepsState(node_id=self._state.node_id, serial=self._state.serial)

    def ended(self, tag: str, outcome: Refused | None) -> None:
        if tag == self._state.tag:
            self._state.over = True
            self._state.problem = outcome.reason if outcome else None

    def next_wake(self) -> int | None:
        if self._state.tag:
            return 0 if self._state.over else None
        return self._state.until or 0

    def advance(self, now: int) -> Refused | bool:
        """Goes on as far as possible; returns whether all steps are done, or why one failed."""
        state = self._state
        if state.tag:
            if not state.over:
                return False
            if state.problem is not None:
                return Refused(state.problem)
            state.tag, state.over = "", False
            state.order += 1
        for _ in range(STEPS_AT_ONCE):
            if state.done == len(state.steps):
                return True
            step = state.steps[state.done]
            orders = orders_of(step, self._context.pose)
            if state.order < len(orders):
                return self._give(orders[state.order], now) or False
            if not self._has_waited(step, now):
                return False
            self._count(step, now)
        return False

    # ── snapshot ──

    def save(self) -> StepsState:
        return replace(self._state)

    def load(self, saved: Any) -> None:
        self._state = msgspec.convert(saved, StepsState)

    # ── inside ──

    def _give(self, order: StepCommand, now: int) -> Refused | None:
        if self._hold.holds or self._context.stop_reason in HOLDS:
            return None
        self._state.serial += 1
        self._state.tag = f"step:{self._state.serial}"
        refused = self._context.command(*order, self._state.tag, now)
        if refused is not None:
            self._state.tag = ""
        return refused

    def _has_waited(self, step: RouteStep, now: int) -> bool:
        if step.type != "WAIT" or step.seconds is None:
            return True
        if self._state.until is None:
            self._state.until = now + nanoseconds(step.seconds)
        return now >= self._state.until

    def _count(self, step: RouteStep, now: int) -> None:
        state = self._state
        state.done, state.order, state.until = state.done + 1, 0, None
        if step.node_id is not None:
            state.node_id = step.node_id
            self._hold.reached(step.node_id, now)
        self._step_done(now)


# ── routes ───────────────────────────────────────────────────────────────────────────────────────

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


class PendingRoute(Struct, forbid_unknown_fields=True):
    """A request that waits for an answer. ``asked``: when it was sent last. ``references``: what a
    response may have as its correlationId."""

    task_id: str
    start: Pose
    destination: MoveToPoint
    asked: Time
    references: Annotated[list[str], Meta(min_length=1, max_length=REQUESTS + 1)]
    requests: Annotated[int, Meta(ge=1, le=REQUESTS)] = 1


class RoutesState(Struct, forbid_unknown_fields=True):
    """The request under way, and its answer: a route, or why there is none."""

    pending: PendingRoute | None = None
    route: RouteResponse | None = None
    problem: str | None = None


class RouteComm:
    """The module of one robot; TaskComm asks it for routes, one at a time."""

    def __init__(self, context: RobotContext, planner: Planner | None) -> None:
        self._context = context
        self._planner = planner
        self.state = RoutesState()

    # ── for TaskComm ──

    def ask(self, task_id: str, destination: MoveToPoint, reference: str, now: int) -> None:
        """Requests a route from where the robot is; the answer is there later."""
        pending = PendingRoute(task_id, self._context.pose, destination, now, [reference])
        self.state = RoutesState(pending)
        self._request(pending, now)

    def withdraw(self) -> None:
        """The route is not needed any more."""
        self.state = RoutesState()

    @property
    def answered(self) -> bool:
        return self.state.route is not None or self.state.problem is not None

    def take_answer(self) -> RouteResponse | Refused | None:
        state, self.state = self.state, RoutesState(self.state.pending)
        return state.route if state.problem is None else Refused(state.problem)

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
        pending = self.state.pending
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
        if self.state.pending is None:
            return None
        planner = self._planner
        waits = DEADLINE_NS if planner is None or planner.silent else planner.grace_ns
        return self.state.pending.asked + waits

    def ended(self, tag: str, outcome: Refused | None, now: int) -> None:
        """It has no commands."""

    def occurred(self, what: Occurrence, now: int) -> None:
        """Requests wait in the outbox while NATS is away; TaskComm withdraws after a STOP."""

    # ── inside ──

    def _request(self, pending: PendingRoute, now: int) -> None:
        pending.asked = now
        asked = RouteRequest(pending.start, pending.destination, pending.task_id)
        sent = self._context.publish("route.request", asked, now, pending.references[0])
        pending.references.append(sent)

    def _problem(self, message: Received) -> str | None:
        """Why a response is not the answer to the request."""
        pending, response = self.state.pending, message.payload
        if pending is None:
            return "NOT_REQUESTED"
        if response.task_id is not None:
            return None if response.task_id == pending.task_id else "OTHER_TASK"
        known = message.correlation_id is None or message.correlation_id in pending.references
        return None if known else "OTHER_REQUEST"

    def _settle(self, answer: RouteResponse | Refused) -> None:
        if isinstance(answer, Refused):
            self.state = RoutesState(problem=answer.reason)
        else:
            self.state = RoutesState(route=answer)

    def _plan(self, planner: Planner, pending: PendingRoute, now: int) -> None:
        """Takes the answer of the planner, unless it answers at a later tick."""
        robot_id = self._context.file.identity.robot_id
        found = planner.plan(robot_id, pending.start, pending.destination, now)
        if isinstance(found, RouteResponse):
            found = replace(found, task_id=pending.task_id)
            about = msgspec.to_builtins(found)
            self._context.event("route.planned", about, now, pending.references[0])
        if found is not None:
            self._settle(found)


# ── tasks ────────────────────────────────────────────────────────────────────────────────────────

QUEUE = 100
"""Tasks that may wait; another one fails at once."""
REMEMBERED = 1000
"""Ids of ended tasks that are kept, to carry out each task once."""
NEAR = 0.05
"""Metres within which a robot is at its destination, so that an empty route is right."""
ERRORS: Mapping[str, str] = {
    "INVALID_TASK": "the task lacks what its type needs, or a step is wrong or off the map; it was "
    "not begun",
    "TASK_TYPE_NOT_SUPPORTED": "a CUSTOM task without `mission.steps`",
    "QUEUE_FULL": f"{QUEUE} tasks (or 100 commands) wait already",
    "CANCELED": "task.cancel",
    "STOPPED": "a STOP command or an operator ended the task; queued tasks end with it",
    "ROUTE_UNAVAILABLE": "MOVE_TO_POINT for a robot whose `supportedModules` has no RouteComm",
    "ROUTE_TIMEOUT": "no route.response to two route.requests",
    "ROUTE_NOT_FOUND": "the built-in planner knows no way",
    "ROUTE_EMPTY": "a route without steps, and the robot is not at the destination",
    "INVALID_ROUTE": "a step of the route is wrong or off the map; the robot has not moved",
    "CAPABILITY_NOT_SUPPORTED": "the robot cannot carry out the command of a step",
    "ROBOT_NOT_READY": "the robot is in ERROR or OFFLINE",
    "REQUIRED_MOTOR_UNAVAILABLE": "a motor that the step needs is faulty or not connected",
    "INVALID_PARAMETERS": "the command of a step refused its parameters",
    "SAFETY_STOP_ACTIVE": "a step should begin while the robot is stopped for safety",
    "SAFETY_STOP": "the robot was stopped for safety during a step",
    "TIMEOUT": "a step took too long",
    INTERRUPTED: "the cell ended during the task, and has started again",
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
            list(self._queue),
            self._active,
            self._phase,
            list(self._ended.items()),
            self.steps.save(),
        )

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
                self._context.handled(message.message_id, message.kind)
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
            if why := self._context.off_map(asked.move_to_point.x, asked.move_to_point.y):
                return Refused(f"INVALID_TASK: moveToPoint: {why}")
            return (asked.move_to_point, []) if self._routes else Refused("ROUTE_UNAVAILABLE")
        if asked.mission is None:
            return Refused(
                "TASK_TYPE_NOT_SUPPORTED: CUSTOM needs mission.steps"
                if asked.task_type == "CUSTOM"
                else "INVALID_TASK: MISSION needs mission"
            )
        wrong = check_steps(asked.mission.steps) or self._off_map(asked.mission.steps)
        return Refused(f"INVALID_TASK: {wrong.reason}") if wrong else (None, asked.mission.steps)

    def _off_map(self, steps: Sequence[RouteStep]) -> Refused | None:
        """The first step that leads off the map."""
        for number, step in enumerate(steps):
            if step.x is None or step.y is None:
                continue
            if why := self._context.off_map(step.x, step.y):
                return Refused(f"steps.{number} ({step.type}): {why}")
        return None

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
        if not self._context.claim(self._queue[0].message_id, now):
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
        wrong = check_steps(route.steps) or self._off_map(route.steps)
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
            task.task_id,
            done,
            steps,
            done / steps if steps else 1.0,
            UNSET if route is None else route,
            UNSET if eta is None else eta,
        )
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
        self.remember(task.task_id, task.message_id)
        kind = "task.done"
        payload: TaskDone | TaskFailed = TaskDone(task.task_id)
        if outcome is not None:
            code, message = error_of(outcome)
            kind, payload = "task.failed", TaskFailed(task.task_id, code, message or UNSET)
        self._context.answer(task.message_id, kind, payload, now, task.reference)

    def remember(self, task_id: str, message_id: str) -> None:
        """A task has ended, in this run or in the last one."""
        self._ended[task_id] = message_id
        if len(self._ended) > REMEMBERED:
            self._ended.popitem(last=False)


def error_of(outcome: Refused) -> tuple[str, str]:
    """The errorCode and the errorMessage of a reason, which is `CODE` or `CODE: message`."""
    code, _, message = outcome.reason.partition(": ")
    if code == CANCELED and not message:
        return "STOPPED", "a command of the task was canceled"
    return (code, message) if code in ERRORS else ("STEP_FAILED", outcome.reason)
