"""A robot under a VDA 5050 master control: carries out orders, answers instant actions, reports.

A node of the base is reached by MOVE_TO_POSE. While the robot is stopped for safety or not ready
the order waits; the move begins anew when the way is free.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Struct, field

from understudy.errors import UNREADABLE, Refused
from understudy.robots.mobile.config.robot_file import RobotFile
from understudy.robots.mobile.runtime import messages as own
from understudy.robots.mobile.runtime.fleet import Fleet
from understudy.robots.mobile.runtime.messages import Received
from understudy.robots.mobile.runtime.modules import Occurrence, RobotContext
from understudy.robots.mobile.runtime.outgoing import timestamp
from understudy.robots.mobile.vda5050.face import Config
from understudy.robots.mobile.vda5050.messages import (
    VERSION,
    Action,
    ActionState,
    AgvPosition,
    BatteryState,
    Connection,
    ConnectionState,
    EdgeState,
    Error,
    InstantActions,
    Node,
    NodeState,
    Order,
    Reference,
    SafetyState,
    State,
    StatePosition,
    Velocity,
    Visualization,
    decoded,
    factsheet,
)
from understudy.robots.mobile.vda5050.order_state import (
    Progress,
    accept,
    blocking,
    is_repeated,
    refusal,
)
from understudy.units import NS_PER_SECOND, nanoseconds

MOST_WAITING = 256
"""Messages that wait to be sent; the oldest are dropped."""
MOVING = 1e-3
"""m/s or rad/s above which the robot is driving."""
SCORES: dict[own.Localization, float] = {"OK": 1.0, "DEGRADED": 0.5, "LOST": 0.0}


class Identity(Struct, frozen=True):
    """Who the robot is. ``epoch``: nanoseconds since 1970 at the time 0."""

    manufacturer: str
    serial_number: str
    map_id: str
    epoch: int


class Outgoing(Struct, frozen=True):
    """A message for a topic; ``retained``: the broker keeps it."""

    topic: str
    payload: bytes
    retained: bool = False


class MessagesState(Struct, forbid_unknown_fields=True):
    """Number of the next message of each topic, and what waits to be sent."""

    headers: dict[str, Annotated[int, Meta(ge=0, lt=1 << 62)]] = field(default_factory=dict)
    waiting: Annotated[list[Outgoing], Meta(max_length=MOST_WAITING)] = field(default_factory=list)


class Conditions(Struct, frozen=True):
    """What the order knows, beside its progress."""

    paused: bool
    errors: Sequence[Error]
    actions: Sequence[ActionState]


class MasterMessages:
    """Messages to the master control, with their numbers."""

    def __init__(self, identity: Identity, file: RobotFile, facts: Callable[[], own.State]) -> None:
        self._identity = identity
        self._file = file
        self._facts = facts
        self.state = MessagesState()

    def take(self) -> Outgoing | None:
        return self.state.waiting.pop(0) if self.state.waiting else None

    def drop_all(self) -> None:
        self.state.waiting.clear()

    # ── messages ──

    def connection(self, state: ConnectionState, now: int) -> None:
        message = Connection(**self._head("connection", now), connection_state=state)
        self._put("connection", message, retained=True)

    def last_will(self) -> bytes:
        """What the broker publishes when the robot is gone. Its time is that of the start."""
        identity = self._identity
        return msgspec.json.encode(
            Connection(
                0,
                timestamp(identity.epoch, 0),
                VERSION,
                identity.manufacturer,
                identity.serial_number,
                connection_state="CONNECTIONBROKEN",
            )
        )

    def factsheet(self, now: int) -> None:
        head = {
            "headerId": self._number("factsheet"),
            "timestamp": timestamp(self._identity.epoch, now),
            "version": VERSION,
            "manufacturer": self._identity.manufacturer,
            "serialNumber": self._identity.serial_number,
        }
        self._put("factsheet", head | factsheet(self._file), retained=True)

    def visualization(self, now: int) -> None:
        facts = self._facts()
        message = Visualization(
            **self._head("visualization", now),
            agv_position=self._position(facts),
            velocity=Velocity(facts.velocity.linear, facts.velocity.angular),
        )
        self._put("visualization", message)

    def report(self, progress: Progress, conditions: Conditions, now: int) -> None:
        facts = self._facts()
        moving = max(abs(facts.velocity.linear), abs(facts.velocity.angular)) > MOVING
        message = State(
            **self._head("state", now),
            order_id=progress.order_id,
            order_update_id=progress.update_id,
            last_node_id=progress.last_node,
            last_node_sequence_id=progress.last_sequence,
            driving=moving,
            paused=conditions.paused,
            new_base_request=progress.wants_base(),
            operating_mode="AUTOMATIC",
            node_states=[_node_state(node) for node in progress.nodes],
            edge_states=[
                EdgeState(edge.edge_id, edge.sequence_id, edge.released) for edge in progress.edges
            ],
            agv_position=self._position(facts),
            velocity=Velocity(facts.velocity.linear, facts.velocity.angular),
            action_states=[*progress.actions.values(), *conditions.actions],
            battery_state=BatteryState(facts.battery_percent, charging=False),
            errors=[*conditions.errors, *_faults(facts)],
            safety_state=SafetyState(
                "MANUAL" if facts.estop_pressed else "NONE",
                facts.safety_stop_reason == "OBSTACLE",
            ),
        )
        self._put("state", message)

    # ── inside ──

    def _head(self, topic: str, now: int) -> dict[str, Any]:
        return {
            "header_id": self._number(topic),
            "timestamp": timestamp(self._identity.epoch, now),
            "version": VERSION,
            "manufacturer": self._identity.manufacturer,
            "serial_number": self._identity.serial_number,
        }

    def _number(self, topic: str) -> int:
        number = self.state.headers.get(topic, 0)
        self.state.headers[topic] = number + 1
        return number

    def _put(self, topic: str, message: Any, *, retained: bool = False) -> None:
        waiting = self.state.waiting
        waiting.append(Outgoing(topic, msgspec.json.encode(message), retained))
        del waiting[:-MOST_WAITING]

    def _position(self, facts: own.State) -> AgvPosition:
        pose = facts.pose
        score = SCORES[facts.localization_status]
        return AgvPosition(pose.x, pose.y, pose.yaw, self._identity.map_id, True, score)


def _node_state(node: Node) -> NodeState:
    position = node.node_position
    if position is UNSET:
        return NodeState(node.node_id, node.sequence_id, node.released)
    place = StatePosition(position.x, position.y, position.map_id, position.theta)
    return NodeState(node.node_id, node.sequence_id, node.released, place)


def _faults(facts: own.State) -> list[Error]:
    return [
        Error(fault.code, "WARNING" if fault.severity == "WARN" else "FATAL", [], fault.message)
        for fault in facts.faults
    ]


# ── the robot under a master control ──────────────────────────────────────────────────────────────

INBOX = 64
"""Messages that wait for the next tick."""
MOST_INSTANT = 100
"""Instant actions whose state is reported; the oldest are forgotten."""
MOST_ERRORS = 20
TIGHTEST, LOOSEST = 0.02, 10.0
"""Metres: bounds of the tolerance of a move."""
LATER = ("SAFETY_STOP_ACTIVE", "ROBOT_NOT_READY", "REQUIRED_MOTOR_UNAVAILABLE", "QUEUE_FULL")
"""Refusals after which a command is tried again."""
LONGEST_WAIT_S = 86_400.0
LOOK_PERIOD = NS_PER_SECOND // 10
"""How often the robot's status is compared with what the last state said."""
Time = Annotated[int, Meta(ge=0, lt=1 << 62)]


Seen = tuple[str, str | None, bool]
"""Status, reason of a stop, and whether the robot drives, in the last state."""


class Due(NamedTuple):
    """When the status is looked at, and when the next state and visualization are sent."""

    look: Time = 0
    state: Time = 0
    picture: Time = 0


class ControlState(Struct, forbid_unknown_fields=True):
    """`post`: messages to the master control. `inbox`: topics and messages that wait for the next
    tick. `moving`: tag of the move under way; `moves`: number of moves. `acting`: actions under way
    by their tags. `waits`: `wait` actions under way, and when they end. `late`: actions of the last
    node that could not begin yet. `instant`: instant actions whose state is reported. `changed`:
    the order, an action or an error is not as the last state said. `seen`: what that state said.
    """

    progress: Progress = field(default_factory=Progress)
    post: MessagesState = field(default_factory=MessagesState)
    connected: bool = False
    paused: bool = False
    inbox: list[tuple[str, bytes]] = field(default_factory=list)
    moving: str = ""
    moves: Time = 0
    acting: dict[str, Action] = field(default_factory=dict)
    waits: dict[str, tuple[Time, Action]] = field(default_factory=dict)
    late: list[Action] = field(default_factory=list)
    instant: list[ActionState] = field(default_factory=list)
    errors: list[Error] = field(default_factory=list)
    changed: bool = False
    seen: Seen = ("", None, False)
    due: Due = Due()


class MasterControl:
    """`Module` of one robot, as the face of its master control uses it.

    ``state_s``: the longest time between two states; ``picture_hz``: visualization messages per
    second, 0: none; ``woken``: called when something has come.
    """

    def __init__(
        self,
        context: RobotContext,
        outgoing: MasterMessages,
        *,
        state_s: float,
        picture_hz: float,
        woken: Callable[[int], None] = lambda now: None,
    ) -> None:
        self._context = context
        self.outgoing = outgoing
        self._state_period = nanoseconds(state_s)
        self._picture_period = nanoseconds(1.0 / picture_hz) if picture_hz else 0
        self._woken = woken
        self.state = ControlState(post=outgoing.state)

    def restored(self) -> None:
        self.outgoing.state = self.state.post

    # ── the broker ──

    def set_connected(self, connected: bool, now: int) -> None:
        self.state.connected = connected
        if connected:
            self.outgoing.connection("ONLINE", now)
            self.outgoing.factsheet(now)
            self.state.due = Due(now, now, now)
        else:
            self.outgoing.drop_all()
        self._woken(now)

    def receive(self, topic: str, data: bytes, now: int) -> None:
        """A message of the master control, handled at the next tick."""
        self.state.inbox.append((topic, data))
        self._woken(now)

    def credit(self) -> int:
        return max(INBOX - len(self.state.inbox), 0)

    # ── Module ──

    def kinds(self) -> tuple[str, ...]:
        return ()

    def handle(self, message: Received, now: int) -> None:
        """It has no messages on NATS."""

    def next_wake(self) -> int | None:
        if self.state.inbox or self._works():
            return 0
        if not self.state.connected:
            return None
        return 0 if self.state.changed else self.state.due.look

    def advance(self, now: int) -> None:
        while self.state.inbox:
            self._hear(*self.state.inbox.pop(0), now)
        self._end_waits(now)
        self.state.late = [action for action in self.state.late if not self._start(action, now)]
        self._work(now)
        self._report(now)

    def ended(self, tag: str, outcome: Refused | None, now: int) -> None:
        self.state.changed = True
        if tag == self.state.moving:
            self.state.moving = ""
            if outcome is None:
                self._arrive(now)
        elif tag in self.state.acting:
            self._finish(self.state.acting.pop(tag), outcome)

    def occurred(self, what: Occurrence, now: int) -> None:
        if what == "ending" and self.state.connected:
            self.outgoing.connection("OFFLINE", now)
        if what == "stopped" and not self.state.progress.is_over():
            self._error("orderError", "a STOP command has ended the order")
            self._drop_order(now)

    # ── messages ──

    def _hear(self, topic: str, data: bytes, now: int) -> None:
        self.state.changed = True
        try:
            message = decoded(topic, data)
        except UNREADABLE as problem:
            self._error("validationError", f"{topic}: {problem}", Reference("topic", topic))
            return
        if isinstance(message, Order):
            self._take_order(message)
        elif isinstance(message, InstantActions):
            for action in message.actions:
                self._act_at_once(action, now)

    def _take_order(self, order: Order) -> None:
        progress = self.state.progress
        if is_repeated(order, progress):
            return
        problem = refusal(order, progress, self._context.pose)
        if problem is not None:
            self._add_error(problem)
            return
        self.state.errors.clear()
        accept(order, progress)

    def _act_at_once(self, action: Action, now: int) -> None:
        known = INSTANT.get(action.action_type)
        problem = (
            f"no such instant action; known: {', '.join(INSTANT)}"
            if known is None
            else known(self, now)
        )
        status: Any = "FAILED" if problem else "FINISHED"
        state = ActionState(action.action_id, status, action.action_type, problem or UNSET)
        self.state.instant = [*self.state.instant, state][-MOST_INSTANT:]
        if problem:
            self._error("instantActionError", problem, Reference("actionId", action.action_id))

    def _pause(self, now: int) -> str:
        self.state.paused = True
        self._context.set_hold("MANUAL_HOLD", True, now)
        return ""

    def _go_on(self, now: int) -> str:
        self.state.paused = False
        self._context.set_hold("MANUAL_HOLD", False, now)
        return ""

    def _cancel(self, now: int) -> str:
        if self.state.progress.is_over():
            return "noOrderToCancel: there is no order"
        self._drop_order(now)
        return ""

    def _send_state(self, now: int) -> str:
        self.state.due = self.state.due._replace(state=now)
        return ""

    def _send_factsheet(self, now: int) -> str:
        self.outgoing.factsheet(now)
        return ""

    # ── the order ──

    def _works(self) -> bool:
        """Whether something must be looked at in every tick."""
        if self.state.waits or self.state.late:
            return True
        return not self.state.moving and bool(self.state.progress.base())

    def _work(self, now: int) -> None:
        """Goes towards the next node of the base, unless something keeps the robot."""
        for _ in range(len(self.state.progress.nodes)):
            base = self.state.progress.base()
            if not base or self.state.moving or self.state.paused or self._is_kept():
                return
            node = base[0]
            if self._starts_here(node):
                self._arrive(now)
            elif not self._drive(node, now):
                return

    def _is_kept(self) -> bool:
        """Whether an action is under way or to begin during which the robot must not drive."""
        waits = (action for _, action in self.state.waits.values())
        actions = [*self.state.acting.values(), *waits, *self.state.late]
        return any(action.blocking_type != "NONE" for action in actions)

    def _starts_here(self, node: Node) -> bool:
        """The first node of an order: the robot is there already."""
        return self.state.progress.edge_to(node) is None

    def _drive(self, node: Node, now: int) -> bool:
        """Starts the actions of the edge, then the move; whether to look at the next node."""
        edge, position = self.state.progress.edge_to(node), node.node_position
        assert edge is not None
        assert position is not UNSET
        if any(not self._start(action, now) for action in self._waiting(edge.actions)):
            return False
        if blocking(edge.actions, self.state.progress):
            return False
        speed = edge.max_speed
        self._context.limit_speed("order", speed if isinstance(speed, float) else None, now)
        allowed = position.allowed_deviation_x_y
        tolerance = min(max(allowed if isinstance(allowed, float) else 0.0, TIGHTEST), LOOSEST)
        parameters = {"x": position.x, "y": position.y, "tolerance": tolerance}
        if isinstance(position.theta, float):
            parameters["yaw"] = position.theta
        tag = f"vda5050:move:{self.state.moves}"
        problem = self._context.command("MOVE_TO_POSE", parameters, tag, now)
        if problem is None:
            self.state.moves += 1
            self.state.moving = tag
        elif not _is_for_later(problem):
            self._error("orderError", problem.reason, Reference("nodeId", node.node_id))
            self._drop_order(now)
        return False

    def _arrive(self, now: int) -> None:
        self.state.changed = True
        progress = self.state.progress
        node = progress.nodes.pop(0)
        progress.edges = [e for e in progress.edges if e.sequence_id > node.sequence_id]
        progress.last_node, progress.last_sequence = node.node_id, node.sequence_id
        self.state.late += [action for action in node.actions if not self._start(action, now)]
        if not progress.nodes:
            self._context.limit_speed("order", None, now)

    def _drop_order(self, now: int) -> None:
        self.state.changed = True
        progress = self.state.progress
        self._context.cancel_own(now)
        self._context.limit_speed("order", None, now)
        self.state.moving = ""
        for action_id, state in progress.actions.items():
            if state.action_status not in ("FINISHED", "FAILED"):
                progress.actions[action_id] = msgspec.structs.replace(
                    state, action_status="FAILED", result_description="the order was ended"
                )
        progress.nodes, progress.edges = [], []
        self.state.acting.clear()
        self.state.waits.clear()
        self.state.late.clear()

    # ── actions ──

    def _waiting(self, actions: list[Action]) -> list[Action]:
        states = self.state.progress.actions
        return [a for a in actions if states[a.action_id].action_status == "WAITING"]

    def _start(self, action: Action, now: int) -> bool:
        """Begins an action of a node or an edge; False if it has to be tried again."""
        given = action.parameters()
        if action.action_type == "wait":
            length = given.get("seconds")
            if not isinstance(length, int | float) or not 0 <= length <= LONGEST_WAIT_S:
                self._finish(action, Refused("seconds must be a number from 0 to 86400"))
                return True
            self.state.waits[action.action_id] = now + nanoseconds(float(length)), action
        else:
            tag = f"vda5050:action:{action.action_id}"
            problem = self._context.command("EXECUTE_ACTION", given, tag, now)
            if problem is not None:
                if not (later := _is_for_later(problem)):
                    self._finish(action, problem)
                return not later
            self.state.acting[tag] = action
        self.state.changed = True
        self.state.progress.set_action(action, "RUNNING")
        return True

    def _end_waits(self, now: int) -> None:
        for action_id in [key for key, (end, _) in self.state.waits.items() if end <= now]:
            _, action = self.state.waits.pop(action_id)
            self._finish(action, None)

    def _finish(self, action: Action, outcome: Refused | None) -> None:
        self.state.changed = True
        if outcome is None:
            self.state.progress.set_action(action, "FINISHED")
            return
        self.state.progress.set_action(action, "FAILED", outcome.reason)
        self._error("actionError", outcome.reason, Reference("actionId", action.action_id))

    # ── reports ──

    def _report(self, now: int) -> None:
        state = self.state
        if not state.connected:
            return
        _, state_due, picture_due = state.due
        facts = self._context
        seen = facts.status, facts.stop_reason, abs(facts.speed) > MOVING
        if state.changed or seen != state.seen or now >= state_due:
            state.changed, state.seen = False, seen
            state_due = now + self._state_period
            conditions = Conditions(state.paused, state.errors, state.instant)
            self.outgoing.report(state.progress, conditions, now)
        if self._picture_period and now >= picture_due:
            picture_due = now + self._picture_period
            self.outgoing.visualization(now)
        state.due = Due(now + LOOK_PERIOD, state_due, picture_due)

    def _error(self, kind: str, text: str, *references: Reference) -> None:
        self._add_error(Error(kind, "WARNING", list(references), text))

    def _add_error(self, error: Error) -> None:
        self.state.errors = [*self.state.errors, error][-MOST_ERRORS:]


def _is_for_later(problem: Refused) -> bool:
    return problem.reason.partition(":")[0] in LATER


INSTANT: Mapping[str, Callable[[MasterControl, int], str]] = {
    "startPause": MasterControl._pause,
    "stopPause": MasterControl._go_on,
    "cancelOrder": MasterControl._cancel,
    "stateRequest": MasterControl._send_state,
    "factsheetRequest": MasterControl._send_factsheet,
}
"""What each instant action does; it returns a problem, empty if there is none."""


def control_of(fleet: Fleet, row: int, config: Config, serial: str, epoch: int) -> MasterControl:
    """Puts a robot under a master control. ``row``: of the robot in the layout."""
    robot = fleet.robot(row)
    identity = Identity(config.manufacturer, serial, config.map_id, epoch)
    control = MasterControl(
        robot,
        MasterMessages(identity, robot.file, robot.reports.state),
        state_s=config.state_s,
        picture_hz=config.visualization_hz,
        woken=lambda now: fleet.wake_modules(row, now),
    )
    robot.add_module(control)
    return control
