"""TrafficComm: the backend keeps robots apart by holding them at nodes and by limiting their speed.

A hold is for a node of the route: the robot stops when it has reached that node, or at once if that
is the node that it reached last. A hold for a node that is not on the route stays until the robot
reaches that node or the hold is released. A speed of 0 holds the robot where it is, until another
speed is allowed.
"""

from typing import Any

import msgspec
from msgspec import Struct, UnsetType, field
from msgspec.structs import replace

from understudy.errors import Refused
from understudy.robots.mobile.runtime.messages import NotNegative, Received, TrafficControl
from understudy.robots.mobile.runtime.modules import Occurrence, RobotContext, RouteProgress


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
        """Of a node; a robot whose speed is 0 stays."""
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


class TrafficSaved(Struct, forbid_unknown_fields=True):
    """Snapshot."""

    max_speed: NotNegative | None = None
    target_speed: NotNegative | None = None
    hold: HoldState = field(default_factory=HoldState)


class TrafficComm:
    """The module of one robot. The speed of the robot is limited by maxSpeedMps and by
    targetSpeedMps; both stay until a message changes them."""

    def __init__(self, context: RobotContext, hold: NodeHold, progress: RouteProgress) -> None:
        self._context = context
        self._hold = hold
        self._progress = progress
        self._max_speed: float | None = None
        self._target_speed: float | None = None

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

    # ── snapshot ──

    def save(self) -> TrafficSaved:
        return TrafficSaved(self._max_speed, self._target_speed, replace(self._hold.state))

    def load(self, state: Any) -> None:
        saved = msgspec.convert(state, TrafficSaved)
        self._max_speed, self._target_speed = saved.max_speed, saved.target_speed
        self._hold.state = saved.hold

    # ── inside ──

    def _set_speeds(self, control: TrafficControl, now: int) -> None:
        before = self._max_speed, self._target_speed
        self._max_speed = _changed(self._max_speed, control.max_speed_mps)
        self._target_speed = _changed(self._target_speed, control.target_speed_mps)
        limits = self._max_speed, self._target_speed
        if limits != before:
            given = [limit for limit in limits if limit is not None]
            fastest = min(given, default=None)
            self._context.limit_speed("traffic", fastest, now)
            self._hold.stand(fastest == 0, now)


def _changed(before: float | None, asked: float | UnsetType | None) -> float | None:
    return before if isinstance(asked, UnsetType) else asked
