"""A robot under a VDA 5050 master control: carries out orders, answers instant actions, reports.

A node of the base is reached by MOVE_TO_POSE. While the robot is stopped for safety or not ready
the order waits; the move begins anew when the way is free.

Actions begin in the order of their list, beside driving and each other as blockingType allows:

| blockingType | the robot may drive | other actions may be carried out |
|---|---|---|
| NONE | yes | yes |
| SINGLE (3.0) | yes | no |
| SOFT | no | yes |
| HARD | no | no |
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Struct, field

from understudy.errors import UNREADABLE, Refused
from understudy.ports import Epoch
from understudy.robots.mobile.config.robot_file import RobotFile
from understudy.robots.mobile.runtime import messages as own
from understudy.robots.mobile.runtime.fleet import Fleet
from understudy.robots.mobile.runtime.messages import LONGEST_WAIT_S, Received
from understudy.robots.mobile.runtime.modules import Occurrence, RobotContext
from understudy.robots.mobile.runtime.outgoing import timestamp
from understudy.robots.mobile.vda5050.face import Config
from understudy.robots.mobile.vda5050.messages import (
    INSTANT_ACTIONS,
    Action,
    ActionState,
    ActionStatus,
    AgvPosition,
    Angle,
    BatteryState,
    Connection,
    ConnectionState,
    EdgeState,
    Error,
    Finite,
    Header,
    InstantActions,
    Load,
    Map,
    Message,
    Node,
    NodeState,
    Order,
    Reference,
    SafetyState,
    State,
    StatePosition,
    Text,
    Velocity,
    Visualization,
    factsheet,
    load_handlers,
    node_actions,
)
from understudy.robots.mobile.vda5050.order_state import (
    ENDED,
    Able,
    Progress,
    accept,
    error_of,
    is_repeated,
    refusal,
)
from understudy.robots.mobile.vda5050.versions import ONLY_3, ErrorKind, Version, read, written
from understudy.units import MM, NS_PER_SECOND, nanoseconds

MOST_WAITING = 256
"""Messages that wait to be sent; the oldest are dropped."""
SCORES: dict[own.Localization, float] = {"OK": 1.0, "DEGRADED": 0.5, "LOST": 0.0}


class Identity(Struct, frozen=True):
    """Who the robot is, on which map."""

    manufacturer: str
    serial_number: str
    map_id: str
    epoch: Epoch
    version: Version = "2.1.0"
    map_version: str = "1"


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
    driving: bool
    errors: Sequence[Error]
    actions: Sequence[ActionState]
    loads: Sequence[Load]


class MasterMessages:
    """Messages to the master control, with their numbers."""

    def __init__(self, identity: Identity, file: RobotFile, facts: Callable[[], own.State]) -> None:
        self.identity = identity
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
        identity = self.identity
        will = Connection(
            0,
            timestamp(identity.epoch.ns, 0),
            identity.version,
            identity.manufacturer,
            identity.serial_number,
            connection_state="CONNECTIONBROKEN",
        )
        return written(identity.version, "connection", will)

    def factsheet(self, now: int) -> None:
        head = msgspec.to_builtins(Header(**self._head("factsheet", now)))
        self._put("factsheet", head | factsheet(self._file), retained=True)

    def visualization(self, now: int) -> None:
        facts = self._facts()
        message = Visualization(
            **self._head("visualization", now),
            reference_state_header_id=max(self.state.headers.get("state", 0) - 1, 0),
            agv_position=self._position(facts),
            velocity=Velocity(facts.velocity.linear, facts.velocity.angular),
        )
        self._put("visualization", message)

    def report(self, progress: Progress, conditions: Conditions, now: int) -> None:
        facts, identity = self._facts(), self.identity
        message = State(
            **self._head("state", now),
            order_id=progress.order_id,
            order_update_id=progress.update_id,
            last_node_id=progress.last_node,
            last_node_sequence_id=progress.last_sequence,
            driving=conditions.driving,
            paused=conditions.paused,
            new_base_request=progress.wants_base(),
            operating_mode="AUTOMATIC",
            node_states=[_node_state(node) for node in progress.nodes],
            edge_states=[
                EdgeState(edge.edge_id, edge.sequence_id, edge.released) for edge in progress.edges
            ],
            maps=[Map(identity.map_id, identity.map_version, "ENABLED")],
            loads=list(conditions.loads),
            agv_position=self._position(facts),
            velocity=Velocity(facts.velocity.linear, facts.velocity.angular),
            action_states=list(progress.actions.values()),
            instant_action_states=list(conditions.actions),
            battery_state=BatteryState(facts.battery_percent, charging=False),
            errors=[*conditions.errors, *_faults(facts)],
            safety_state=SafetyState(
                "MANUAL" if facts.estop_pressed else "NONE", facts.safety_stop_reason == "OBSTACLE"
            ),
        )
        self._put("state", message)

    # ── inside ──

    def _head(self, topic: str, now: int) -> dict[str, Any]:
        return {
            "header_id": self._number(topic),
            "timestamp": timestamp(self.identity.epoch.ns, now),
            "version": self.identity.version,
            "manufacturer": self.identity.manufacturer,
            "serial_number": self.identity.serial_number,
        }

    def _number(self, topic: str) -> int:
        number = self.state.headers.get(topic, 0)
        self.state.headers[topic] = number + 1
        return number

    def _put(self, topic: str, message: Any, *, retained: bool = False) -> None:
        waiting = self.state.waiting
        data = written(self.identity.version, topic, message)
        waiting.append(Outgoing(topic, data, retained))
        del waiting[:-MOST_WAITING]

    def _position(self, facts: own.State) -> AgvPosition:
        pose = facts.pose
        score = SCORES[facts.localization_status]
        return AgvPosition(pose.x, pose.y, pose.yaw, self.identity.map_id, True, score)


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
LATER = (
    "SAFETY_STOP_ACTIVE",
    "ROBOT_NOT_READY",
    "REQUIRED_MOTOR_UNAVAILABLE",
    "QUEUE_FULL",
    "MOTOR_BUSY",
)
"""Refusals after which a command is tried again."""
STANDING = ("SOFT", "HARD")
"""Blocking types of actions during which the robot stands."""
ALONE = ("SINGLE", "HARD")
"""Those during which no other action is carried out."""
LOADING = ("pick", "drop")
NO_ORDER = Refused("there is no order to cancel, or it has another orderId")
InstantOutcome = Refused | Literal["closes"] | None
"""Of an instant action: refused, over, or under way until the robot stands or goes on."""
LONGEST_SHOWN = 200
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


class InitialPlace(Message, frozen=True):
    """Parameters of `initPosition`."""

    x: Finite
    y: Finite
    theta: Angle
    map_id: Text
    last_node_id: Text = ""


class Kept(Struct, frozen=True):
    """What is kept of an order for the next start of the cell, which does not repeat it."""

    order_id: str
    update_id: int
    last_node: str
    last_sequence: int
    digest: str


class ControlState(Struct, forbid_unknown_fields=True):
    """The snapshot. `post`: messages to the master control. `inbox`: topics and messages that wait
    for the next tick. `moving`: tag of the move under way; `moves`: number of moves. `acting`:
    actions under way by their tags. `waits`: `wait` actions under way, and when they end. `late`:
    actions that have not begun yet, in their order. `instant`: instant actions whose state is
    reported. `closing`: those that end when the robot stands or goes on, and when they came.
    `changed`: the order, an action or an error is not as the last state said. `seen`: what that
    state said. `stranger`: the robot that was named by the last message for another robot."""

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
    closing: dict[str, tuple[str, Time]] = field(default_factory=dict)
    loads: list[Load] = field(default_factory=list)
    stranger: str = ""
    errors: list[Error] = field(default_factory=list)
    changed: bool = False
    seen: Seen = ("", None, False)
    due: Due = Due()


class MasterControl:
    """`Module` of one robot, as the face of its master control uses it.

    ``state_s``: the longest time between two states; ``picture_hz``: visualization messages per
    second, 0: none; ``woken``: called when something has come; ``log``: gets warnings.
    """

    def __init__(
        self,
        context: RobotContext,
        outgoing: MasterMessages,
        *,
        state_s: float,
        picture_hz: float,
        woken: Callable[[int], None] = lambda now: None,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._context = context
        self._log = log
        self._dropped_retained = False
        identity, file = outgoing.identity, context.file
        self._identity = identity
        height = file.dimensions.height_mm * MM
        self._able = Able(identity.version, (identity.map_id,), node_actions(file), height)
        self._handlers = load_handlers(file)
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

    def drop_retained(self, topic: str) -> None:
        """The broker has kept a message, of any age: it would come again at each connection."""
        if not self._dropped_retained:
            self._log(f"vda5050: a retained message to {topic} is dropped: send it without retain")
        self._dropped_retained = True

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
        self._begin_actions(now)
        self._work(now)
        self._close(now)
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
            self._error("order ended", "a STOP command has ended the order")
            self._drop_order(now)

    def recall(self, note: bytes) -> None:
        """What was kept of the last order, at a new start of the cell."""
        progress = self.state.progress
        if progress.order_id:
            return
        try:
            kept = msgspec.json.decode(note, type=Kept)
        except UNREADABLE:
            return
        progress.order_id, progress.update_id = kept.order_id, kept.update_id
        progress.last_node, progress.last_sequence = kept.last_node, kept.last_sequence
        progress.end, progress.canceled = (kept.last_node, kept.last_sequence), True
        progress.digest = kept.digest
        self.state.changed = True

    def _keep(self) -> None:
        order = self.state.progress
        kept = Kept(
            order.order_id, order.update_id, order.last_node, order.last_sequence, order.digest
        )
        self._context.note(msgspec.json.encode(kept))

    # ── messages ──

    def _hear(self, topic: str, data: bytes, now: int) -> None:
        try:
            message: Header = read(self._identity.version, topic, data)
        except UNREADABLE as problem:
            self.state.changed = True
            self._error("malformed", f"{topic}: {problem}", Reference("topic", topic))
            return
        own = self._identity.manufacturer, self._identity.serial_number
        if (message.manufacturer, message.serial_number) != own:
            stranger = f"{message.manufacturer}/{message.serial_number}"
            if stranger != self.state.stranger:
                self.state.stranger = stranger
                name, ours = stranger[:LONGEST_SHOWN], "/".join(own)
                self._log(f"vda5050: {topic} for {name} came to {ours}; it is dropped")
            return
        self.state.changed = True
        if isinstance(message, Order):
            self._take_order(message)
        elif isinstance(message, InstantActions):
            for action in message.actions:
                self._act_at_once(action, now)
        elif topic == "zoneSet":
            self._error("unsupported", "the robot uses no zone sets", Reference("topic", topic))

    def _take_order(self, order: Order) -> None:
        progress, version = self.state.progress, self._identity.version
        if is_repeated(order, progress, version):
            return
        if self._is_canceling():
            text = f"the order {progress.order_id} is being canceled"
            self._add_error(error_of("other order", order, text))
            return
        problem = refusal(order, progress, self._context.pose, self._able)
        if problem is not None:
            self._add_error(problem)
            return
        self.state.errors.clear()
        accept(order, progress)
        self._keep()

    def _act_at_once(self, action: Action, now: int) -> None:
        name = action.action_type
        known = None if name in ONLY_3 and self._identity.version != "3.0.0" else INSTANT.get(name)
        self._set_instant(action, "RUNNING")
        outcome = (
            Refused(f"no such instant action; known: {', '.join(INSTANT_ACTIONS)}")
            if known is None
            else known(self, action, now)
        )
        if isinstance(outcome, Refused):
            self._set_instant(action, "FAILED", outcome.reason)
            none_there = outcome is NO_ORDER
            kind: ErrorKind = "no order to cancel" if none_there else "instant action"
            self._error(kind, outcome.reason, Reference("actionId", action.action_id))
        elif outcome == "closes":
            self.state.closing[action.action_id] = name, now
        elif name != "clearInstantActions":
            self._set_instant(action, "FINISHED")

    def _set_instant(self, action: Action, status: ActionStatus, result: str = "") -> None:
        others = [each for each in self.state.instant if each.action_id != action.action_id]
        state = ActionState(action.action_id, status, action.action_type, result or UNSET)
        self.state.instant = [*others, state][-MOST_INSTANT:]

    def _close(self, now: int) -> None:
        """Instant actions that end when the robot stands, or goes on."""
        state, stands = self.state, not (self._context.is_moving or self.state.moving)
        for action_id, (name, came) in list(state.closing.items()):
            if name == "stopPause":
                done = self._context.stop_reason != "MANUAL_HOLD" or state.paused
            elif name == "startPause":
                done = not self._context.is_moving
            else:
                done = stands and not state.acting
            if done and now > came:
                del state.closing[action_id]
                if name == "cancelOrder":
                    self._forget_way()
                self._set_instant(Action(name, action_id, "NONE"), "FINISHED")
                state.changed = True

    def _pause(self, action: Action, now: int) -> InstantOutcome:
        self.state.paused = True
        self._context.set_hold("MANUAL_HOLD", True, now)
        return "closes"

    def _go_on(self, action: Action, now: int) -> InstantOutcome:
        self.state.paused = False
        self._context.set_hold("MANUAL_HOLD", False, now)
        return "closes"

    def _cancel(self, action: Action, now: int) -> InstantOutcome:
        order = action.parameters().get("orderId", self.state.progress.order_id)
        over = self.state.progress.is_over() or self._is_canceling()
        if over or order != self.state.progress.order_id:
            return NO_ORDER
        self._end_work(now)
        return "closes"

    def _send_state(self, action: Action, now: int) -> InstantOutcome:
        self.state.due = self.state.due._replace(state=now)
        return None

    def _send_factsheet(self, action: Action, now: int) -> InstantOutcome:
        self.outgoing.factsheet(now)
        return None

    def _locate(self, action: Action, now: int) -> InstantOutcome:
        if self._context.is_moving or not self.state.progress.is_over():
            return Refused("the robot must stand, and its order must be over")
        given = action.parameters()
        try:
            place = msgspec.convert(given, InitialPlace)
        except msgspec.ValidationError as problem:
            return Refused(str(problem))
        if place.map_id != self._identity.map_id:
            return Refused(f"no such mapId: {place.map_id}; known: {self._identity.map_id}")
        self._context.locate(own.Pose(place.x, place.y, place.theta), now)
        progress = self.state.progress
        progress.last_node, progress.last_sequence = place.last_node_id, 0
        return None

    def _clear_instant(self, action: Action, now: int) -> InstantOutcome:
        self.state.instant = [s for s in self.state.instant if s.action_id in self.state.closing]
        return None

    # ── the order ──

    def _works(self) -> bool:
        """Whether something must be looked at in every tick."""
        if self.state.waits or self.state.late or self.state.closing:
            return True
        return not self.state.moving and bool(self.state.progress.base())

    def _work(self, now: int) -> None:
        """Goes towards the next node of the base, unless something keeps the robot."""
        for _ in range(len(self.state.progress.nodes)):
            base = self.state.progress.base()
            if not base or self.state.moving or self.state.paused or self._is_kept():
                return
            if self._is_canceling():
                return
            node = base[0]
            if self._starts_here(node):
                self._arrive(now)
            elif not self._drive(node, now):
                return

    def _is_canceling(self) -> bool:
        return any(name == "cancelOrder" for name, _ in self.state.closing.values())

    def _is_kept(self) -> bool:
        """Whether an action is under way or to begin during which the robot must not drive."""
        actions = [*self._under_way(), *self.state.late]
        return any(action.blocking_type in STANDING for action in actions)

    def _under_way(self) -> list[Action]:
        waits = (action for _, action in self.state.waits.values())
        return [*self.state.acting.values(), *waits]

    def _starts_here(self, node: Node) -> bool:
        """The first node of an order: the robot is there already."""
        return self.state.progress.edge_to(node) is None

    def _drive(self, node: Node, now: int) -> bool:
        """Starts the actions of the edge, then the move; whether to look at the next node."""
        edge, position = self.state.progress.edge_to(node), node.node_position
        assert edge is not None
        assert position is not UNSET
        self.state.late += self._waiting(edge.actions)
        self._begin_actions(now)
        if self._is_kept():
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
            self._error("order ended", problem.reason, Reference("nodeId", node.node_id))
            self._drop_order(now)
        return False

    def _arrive(self, now: int) -> None:
        self.state.changed = True
        progress = self.state.progress
        node = progress.nodes.pop(0)
        progress.edges = [e for e in progress.edges if e.sequence_id > node.sequence_id]
        progress.last_node, progress.last_sequence = node.node_id, node.sequence_id
        self.state.late += node.actions
        self._begin_actions(now)
        self._keep()
        if not progress.nodes:
            self._context.limit_speed("order", None, now)

    def _drop_order(self, now: int) -> None:
        self._end_work(now)
        self._forget_way()

    def _forget_way(self) -> None:
        self.state.progress.nodes, self.state.progress.edges = [], []

    def _end_work(self, now: int) -> None:
        """Ends move and actions; the way ahead stays in the state until it is forgotten."""
        self.state.changed = True
        progress = self.state.progress
        self.state.moving = ""
        self.state.acting.clear()
        self._context.cancel_own(now)
        self._context.limit_speed("order", None, now)
        for action_id, state in progress.actions.items():
            if state.action_status not in ENDED:
                progress.actions[action_id] = msgspec.structs.replace(
                    state, action_status="FAILED", result_description="the order was ended"
                )
        progress.end, progress.canceled = (progress.last_node, progress.last_sequence), True
        self.state.waits.clear()
        self.state.late.clear()

    # ── actions ──

    def _waiting(self, actions: list[Action]) -> list[Action]:
        """The actions that have not begun and are not about to."""
        states, late = self.state.progress.actions, self.state.late
        waiting = [a for a in actions if states[a.action_id].action_status == "WAITING"]
        return [action for action in waiting if action not in late]

    def _begin_actions(self, now: int) -> None:
        """Begins actions in their order, as far as those under way and driving allow it."""
        late = self.state.late
        while late and self._may_begin(late[0]) and self._start(late[0], now):
            del late[0]

    def _may_begin(self, action: Action) -> bool:
        under_way, kind = self._under_way(), action.blocking_type
        if kind in ALONE and under_way:
            return False
        if any(other.blocking_type in ALONE for other in under_way):
            return False
        return kind not in STANDING or not (self.state.moving or self._context.is_moving)

    def _start(self, action: Action, now: int) -> bool:
        """Begins an action of a node or an edge; False if it has to be tried again."""
        given = action.parameters()
        if action.action_type == "wait":
            length = given.get("seconds")
            if not isinstance(length, int | float) or not 0 <= length <= LONGEST_WAIT_S:
                self._finish(
                    action, Refused(f"seconds must be a number from 0 to {LONGEST_WAIT_S:.0f}")
                )
                return True
            self.state.waits[action.action_id] = now + nanoseconds(float(length)), action
        else:
            if action.action_type in LOADING:
                found = self._loading(action)
                if isinstance(found, Refused):
                    self._finish(action, found)
                    return True
                given = found
            tag = f"vda5050:action:{action.action_id}"
            problem = self._context.act(given, tag, now)
            if problem is not None:
                if not (later := _is_for_later(problem)):
                    self._finish(action, problem)
                return not later
            self.state.acting[tag] = action
        self.state.changed = True
        self.state.progress.set_action(action, "RUNNING")
        return True

    def _loading(self, action: Action) -> dict[str, Any] | Refused:
        """The motion of `pick` and `drop`. `lhd` names the motor, if there are several."""
        name = action.parameters().get("lhd")
        for each in self._handlers:
            if name in (None, each.motor.motor_id, each.motor.function_key):
                target = each.picks_at if action.action_type == "pick" else each.drops_at
                return {"motorId": each.motor.motor_id, "targetPosition": target}
        known = ", ".join(each.motor.motor_id for each in self._handlers)
        return Refused(f"no such lhd: {name}; known: {known}")

    def _note_load(self, action: Action) -> None:
        """A load is on the robot after `pick`, and not any more after `drop`."""
        given = action.parameters()
        motor = self._loading(action)
        if isinstance(motor, Refused):
            return
        place = motor["motorId"]
        self.state.loads = [load for load in self.state.loads if load.load_position != place]
        if action.action_type == "pick":
            texts = (given.get(key) for key in ("loadId", "loadType"))
            load_id, load_type = (text if isinstance(text, str) else UNSET for text in texts)
            self.state.loads.append(Load(load_id, load_type, place))

    def _end_waits(self, now: int) -> None:
        for action_id in [key for key, (end, _) in self.state.waits.items() if end <= now]:
            _, action = self.state.waits.pop(action_id)
            self._finish(action, None)

    def _finish(self, action: Action, outcome: Refused | None) -> None:
        self.state.changed = True
        if outcome is None:
            self.state.progress.set_action(action, "FINISHED")
            if action.action_type in LOADING:
                self._note_load(action)
            return
        self.state.progress.set_action(action, "FAILED", outcome.reason)
        self._error("action failed", outcome.reason, Reference("actionId", action.action_id))

    # ── reports ──

    def _report(self, now: int) -> None:
        state = self.state
        if not state.connected:
            return
        _, state_due, picture_due = state.due
        facts = self._context
        seen = facts.status, facts.stop_reason, facts.is_moving
        if state.changed or seen != state.seen or now >= state_due:
            state.changed, state.seen = False, seen
            state_due = now + self._state_period
            conditions = Conditions(
                state.paused, facts.is_moving, state.errors, state.instant, state.loads
            )
            self.outgoing.report(state.progress, conditions, now)
        if self._picture_period and now >= picture_due:
            picture_due = now + self._picture_period
            self.outgoing.visualization(now)
        state.due = Due(now + LOOK_PERIOD, state_due, picture_due)

    def _error(self, kind: ErrorKind, text: str, *references: Reference) -> None:
        self._add_error(Error(kind, "WARNING", list(references), text))

    def _add_error(self, error: Error) -> None:
        self.state.errors = [*self.state.errors, error][-MOST_ERRORS:]


def _is_for_later(problem: Refused) -> bool:
    return problem.reason.partition(":")[0] in LATER


INSTANT: Mapping[str, Callable[[MasterControl, Action, int], InstantOutcome]] = {
    "startPause": MasterControl._pause,
    "stopPause": MasterControl._go_on,
    "cancelOrder": MasterControl._cancel,
    "stateRequest": MasterControl._send_state,
    "factsheetRequest": MasterControl._send_factsheet,
    "initPosition": MasterControl._locate,
    "clearInstantActions": MasterControl._clear_instant,
}
"""What each instant action does."""


def control_of(
    fleet: Fleet,
    row: int,
    config: Config,
    serial: str,
    epoch: Epoch,
    log: Callable[[str], None] = lambda line: None,
) -> MasterControl:
    """Puts a robot under a master control. ``row``: of the robot in the layout."""
    robot = fleet.robot(row)
    identity = Identity(
        config.manufacturer, serial, config.map_id, epoch, config.version, config.map_version
    )
    control = MasterControl(
        robot,
        MasterMessages(identity, robot.file, robot.reports.state),
        state_s=config.state_s,
        picture_hz=config.visualization_hz,
        woken=lambda now: fleet.wake_modules(row, now),
        log=log,
    )
    robot.recall_note = control.recall
    robot.add_module(control)
    return control
