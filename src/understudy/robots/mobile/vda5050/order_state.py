"""The order of a robot: what was accepted, how far it is, and why another one is not accepted.

Nodes have even sequence ids and edges odd ones. The released part is the base, the rest the
horizon. An update begins with the last node of the base and replaces the horizon.
"""

import math
from collections.abc import Collection
from hashlib import blake2b

import msgspec
from msgspec import UNSET, Struct, field

from understudy.robots.mobile.runtime.messages import Pose
from understudy.robots.mobile.vda5050.messages import (
    MOST_ELEMENTS,
    Action,
    ActionState,
    ActionStatus,
    Edge,
    Error,
    Node,
    Order,
    Reference,
)
from understudy.robots.mobile.vda5050.versions import ErrorKind, Version

NEAR = 0.2
"""Metres within which a robot is at the first node of an order that names no deviation."""
ENDED = ("FINISHED", "FAILED")


class Able(Struct, frozen=True):
    """What decides whether an order can be accepted: the version, the known maps, the actions that
    the robot offers, its height in metres."""

    version: Version
    maps: Collection[str]
    actions: Collection[str]
    height: float


class Progress(Struct):
    """Everything about the present order; a snapshot has it as it is.

    `nodes` and `edges`: those that are ahead. `end`: id and sequence id of the last node of the
    base. `canceled`: the order was ended before its end. `digest`: of the last update. `actions`:
    of this order, in the order in which they came.
    """

    order_id: str = ""
    update_id: int = 0
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    last_node: str = ""
    last_sequence: int = 0
    end: tuple[str, int] | None = None
    canceled: bool = False
    digest: str = ""
    actions: dict[str, ActionState] = field(default_factory=dict)

    def base(self) -> list[Node]:
        return [node for node in self.nodes if node.released]

    def is_over(self) -> bool:
        """Whether another order may follow."""
        unfinished = any(s.action_status not in ENDED for s in self.actions.values())
        return not self.nodes and not unfinished

    def wants_base(self) -> bool:
        """Whether the base ends soon although the order goes on."""
        return len(self.base()) <= 1 and len(self.nodes) > len(self.base())

    def edge_to(self, node: Node) -> Edge | None:
        """The edge that leads to a node; sequence ids may have gaps."""
        before = [edge for edge in self.edges if edge.sequence_id < node.sequence_id]
        return before[-1] if before else None

    def set_action(self, action: Action, status: ActionStatus, result: str = "") -> None:
        self.actions[action.action_id] = ActionState(
            action.action_id, status, action.action_type, result or UNSET
        )


def refusal(order: Order, progress: Progress, pose: Pose, able: Able) -> Error | None:
    """Why an order or an update is not accepted."""
    wrong = _wrong(order)
    if wrong:
        return error_of("malformed", order, wrong)
    if order.zone_set_id is not UNSET and order.zone_set_id:
        return _unsupported(order, "zoneSetId")
    for edge in order.edges:
        if key := edge.unsupported(able.height):
            return _unsupported(order, key, Reference("edgeId", edge.edge_id))
    unknown = [a.action_type for a in actions_of(order) if a.action_type not in able.actions]
    if unknown:
        known = ", ".join(able.actions)
        return error_of("unknown action", order, f"no such action: {unknown[0]}; known: {known}")
    for node in order.nodes:
        position = node.node_position
        if position is not UNSET and position.map_id not in able.maps:
            known = ", ".join(able.maps)
            text = f"{node.node_id}: no such mapId: {position.map_id}; known: {known}"
            return error_of("unknown map", order, text)
    if order.order_id == progress.order_id:
        return _update_refusal(order, progress, able.version) or _too_long(order, progress)
    if not progress.is_over():
        return error_of("other order", order, f"the order {progress.order_id} is not over")
    if not _is_at(order.nodes[0], progress, pose):
        return error_of("start node", order, "the robot is not at the first node")
    return _too_long(order, progress)


def _unsupported(order: Order, key: str, *references: Reference) -> Error:
    text = f"this robot does not support the field {key}"
    return error_of("unsupported", order, text, Reference("field", key), *references)


def is_repeated(order: Order, progress: Progress, version: Version) -> bool:
    """An update that was accepted already: it is dropped without a word."""
    same = (order.order_id, order.order_update_id) == (progress.order_id, progress.update_id)
    changed = version == "3.0.0" and digest_of(order) != progress.digest
    return same and progress.order_id != "" and not changed


def digest_of(order: Order) -> str:
    """The digest of what an order asks for; two messages with the same content have the same
    digest."""
    content = msgspec.json.encode((order.nodes, order.edges))
    return blake2b(content, digest_size=16).hexdigest()


def accept(order: Order, progress: Progress) -> None:
    """Takes over an order that `refusal` accepts."""
    if order.order_id != progress.order_id:
        progress.nodes, progress.edges, progress.actions = list(order.nodes), list(order.edges), {}
    else:
        first = order.nodes[0].sequence_id
        left = [node for node in progress.nodes if node.sequence_id <= first]
        progress.nodes = left + list(order.nodes[1:])
        kept = [edge for edge in progress.edges if edge.sequence_id < first]
        progress.edges = kept + list(order.edges)
    progress.order_id, progress.update_id = order.order_id, order.order_update_id
    end = next(node for node in reversed(order.nodes) if node.released)
    progress.end = end.node_id, end.sequence_id
    progress.canceled, progress.digest = False, digest_of(order)
    for action in actions_of(order):
        if action.action_id not in progress.actions:
            progress.set_action(action, "WAITING")
    ended = [each for each in progress.actions.values() if each.action_status in ENDED]
    for action_state in ended[: max(len(progress.actions) - MOST_ELEMENTS, 0)]:
        del progress.actions[action_state.action_id]


def actions_of(order: Order) -> list[Action]:
    elements: list[Node | Edge] = [*order.nodes, *order.edges]
    return [action for element in elements for action in element.actions]


def error_of(kind: ErrorKind, order: Order, text: str, *references: Reference) -> Error:
    about = [
        Reference("orderId", order.order_id),
        Reference("orderUpdateId", str(order.order_update_id)),
        *references,
    ]
    return Error(kind, "WARNING", about, text)


def _update_refusal(order: Order, progress: Progress, version: Version) -> Error | None:
    number, newest = order.order_update_id, progress.update_id
    if number < newest:
        text = f"orderUpdateId {number} is older than {newest}"
        return error_of("outdated update", order, text)
    if number == newest:
        return error_of("same update", order, f"orderUpdateId {number} has other content already")
    if progress.canceled and version == "3.0.0":
        return error_of("update after cancel", order, f"{order.order_id} was canceled")
    first = order.nodes[0].node_id, order.nodes[0].sequence_id
    if first != progress.end:
        name = "{} ({})".format(*progress.end) if progress.end else "nothing"
        text = "it begins with {} ({}); the base ends with ".format(*first) + name
        return error_of("update elsewhere", order, text)
    return None


def _too_long(order: Order, progress: Progress) -> Error | None:
    """Why an order does not become longer: its nodes ahead, and its actions that have not ended."""
    nodes = len(progress.base()) + len(order.nodes) - 1
    ahead = sum(state.action_status not in ENDED for state in progress.actions.values())
    actions = ahead + len(actions_of(order))
    for count, what in ((nodes, "nodes"), (actions, "actions")):
        if count > MOST_ELEMENTS:
            text = f"the order would have {count} {what} ahead; allowed: {MOST_ELEMENTS}"
            return error_of("malformed", order, text)
    return None


def _wrong(order: Order) -> str:
    """What does not fit together in an order; empty if nothing."""
    nodes, edges = order.nodes, order.edges
    if len(edges) != len(nodes) - 1:
        return f"{len(nodes)} nodes need {len(nodes) - 1} edges, not {len(edges)}"
    if not nodes[0].released:
        return "the first node is not released"
    for before, edge, after in zip(nodes, edges, nodes[1:], strict=False):
        if not before.sequence_id < edge.sequence_id < after.sequence_id:
            return f"sequenceId of {edge.edge_id} does not lie between those of its nodes"
        if (edge.start_node_id, edge.end_node_id) != (before.node_id, after.node_id):
            return f"{edge.edge_id} does not lead from {before.node_id} to {after.node_id}"
        if edge.released != after.released or (after.released and not before.released):
            return f"{edge.edge_id} and {after.node_id} must be released together, without a gap"
    lacking = next((node.node_id for node in nodes if node.node_position is UNSET), None)
    if lacking is not None:
        return f"{lacking} has no nodePosition: this robot drives freely and needs one"
    ids = [action.action_id for action in actions_of(order)]
    return "two actions have the same actionId" if len(set(ids)) < len(ids) else ""


def _is_at(node: Node, progress: Progress, pose: Pose) -> bool:
    if progress.last_node == node.node_id:
        return True
    position = node.node_position
    assert position is not UNSET
    allowed = position.allowed_deviation_x_y
    reach = max(NEAR, allowed if isinstance(allowed, float) else 0.0)
    return math.hypot(position.x - pose.x, position.y - pose.y) <= reach
