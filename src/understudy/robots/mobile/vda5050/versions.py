"""VDA 5050 by version: topics, keys, words and errors of 2.0, 2.1 and 3.0.

Inside, messages are as 2.1 has them. A received message is put into these words before it is read,
a sent one into those of the version after it was made.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from understudy.robots.mobile.vda5050.messages import FROM_MASTER, ErrorLevel

Version = Literal["2.0.0", "2.1.0", "3.0.0"]
ErrorKind = Literal[
    "malformed",
    "unsupported",
    "unknown action",
    "other order",
    "order ended",
    "outdated update",
    "same update",
    "update after cancel",
    "update elsewhere",
    "start node",
    "unknown map",
    "no order to cancel",
    "instant action",
    "action failed",
]


class ErrorWords(NamedTuple):
    """`errorType` until 2.1, `errorType` and `errorLevel` from 3.0 on."""

    before: str
    type: str
    level: ErrorLevel = "WARNING"


ERRORS: Mapping[ErrorKind, ErrorWords] = {
    "malformed": ErrorWords("validationError", "VALIDATION_FAILURE"),
    "unsupported": ErrorWords("orderError", "UNSUPPORTED_PARAMETER", "CRITICAL"),
    "unknown action": ErrorWords("orderError", "INVALID_ORDER_ACTION"),
    "other order": ErrorWords("orderError", "OTHER_ORDER_ACTIVE"),
    "order ended": ErrorWords("orderError", "NODE_UNREACHABLE", "CRITICAL"),
    "outdated update": ErrorWords("orderUpdateError", "OUTDATED_ORDER_UPDATE"),
    "same update": ErrorWords("orderUpdateError", "SAME_ORDER_UPDATE_ID"),
    "update after cancel": ErrorWords("orderUpdateError", "ORDER_UPDATE_FOLLOWING_CANCEL"),
    "update elsewhere": ErrorWords("orderUpdateError", "INVALID_ORDER"),
    "start node": ErrorWords("noRouteError", "START_NODE_OUT_OF_RANGE"),
    "unknown map": ErrorWords("orderError", "UNKNOWN_MAP_ID"),
    "no order to cancel": ErrorWords("noOrderToCancel", "NO_ORDER_TO_CANCEL"),
    "instant action": ErrorWords("instantActionError", "INVALID_INSTANT_ACTION"),
    "action failed": ErrorWords("actionError", "ACTION_FAILED"),
}
_KINDS: Mapping[str, ErrorWords] = {str(kind): words for kind, words in ERRORS.items()}

# ── keys ────────────────────────────────────────────────────────────────────────────────────────

ORDER_3: Mapping[str, str] = {
    "actionDescriptor": "actionDescription",
    "nodeDescriptor": "nodeDescription",
    "edgeDescriptor": "edgeDescription",
    "maximumSpeed": "maxSpeed",
    "maximumMobileRobotHeight": "maxHeight",
    "minimumLoadHandlingDeviceHeight": "minHeight",
}
"""Key in 3.0 → key in 2.1, of what a master control sends."""
STATE_3: Mapping[str, str] = {
    "agvPosition": "mobileRobotPosition",
    "positionInitialized": "localized",
    "batteryState": "powerSupply",
    "batteryCharge": "stateOfCharge",
    "eStop": "activeEmergencyStop",
    "resultDescription": "actionResult",
}
"""Key in 2.1 → key in 3.0, of what a robot sends."""
FACTSHEET_3: Mapping[str, str] = {
    "agvClass": "mobileRobotClass",
    "agvKinematic": "mobileRobotKinematics",
    "maxLoadMass": "maximumLoadMass",
    "speedMin": "minimumSpeed",
    "speedMax": "maximumSpeed",
    "accelerationMax": "maximumAcceleration",
    "decelerationMax": "maximumDeceleration",
    "heightMax": "maximumHeight",
    "maxStringLens": "maximumStringLengths",
    "maxArrayLens": "maximumArrayLengths",
    "minOrderInterval": "minimumOrderInterval",
    "minStateInterval": "minimumStateInterval",
    "agvActions": "mobileRobotActions",
    "agvGeometry": "mobileRobotGeometry",
    "set": "envelope2dId",
    "polygonPoints": "vertices",
}
KINEMATICS_3: Mapping[str, str] = {
    "DIFF": "DIFFERENTIAL",
    "OMNI": "OMNIDIRECTIONAL",
    "THREEWHEEL": "THREE_WHEEL",
}
INSTANT_3: Mapping[str, str] = {"initializePosition": "initPosition"}
ONLY_3 = ("clearInstantActions",)
"""Instant actions that 2.1 does not have."""
UNTIL_2 = (("allowedDeviationXy", "allowedDeviationXY"), ("actionName", "actionType"))
"""Keys of the schemas of 2.0 that its document and later versions write in another way."""


def _renamed(value: Any, keys: Mapping[str, str]) -> Any:
    """The value with other keys, and without those that are null."""
    if isinstance(value, dict):
        return {
            keys.get(key, key): _renamed(each, keys)
            for key, each in value.items()
            if each is not None
        }
    return [_renamed(each, keys) for each in value] if isinstance(value, list) else value


def prefix(version: Version, interface: str, manufacturer: str, serial: str) -> str:
    """What stands before the last word of every topic."""
    return f"{interface}/v{version[0]}/{manufacturer}/{serial}/"


# ── from the master control ─────────────────────────────────────────────────────────────────────


def read(version: Version, topic: str, data: bytes) -> Any:
    """A message of the master control; raises one of `UNREADABLE`."""
    message = msgspec.json.decode(data)
    if isinstance(message, dict):
        message = _renamed(message, ORDER_3 if version == "3.0.0" else dict(UNTIL_2))
        change = _order_of_3 if version == "3.0.0" else _order_of_2
        if topic == "order":
            change(message)
        elif topic == "instantActions":
            if "actions" not in message and "instantActions" in message:
                message["actions"] = message["instantActions"]  # as vda-5050-lib writes it
            if version == "3.0.0":
                _rename_instant(message, INSTANT_3)
    return msgspec.convert(message, FROM_MASTER[topic])


def _order_of_2(order: dict[str, Any]) -> None:
    for action in _actions_of(order):
        if action.get("blockingType") == "SINGLE":
            raise msgspec.ValidationError("blockingType SINGLE; allowed: NONE, SOFT, HARD")


def _order_of_3(order: dict[str, Any]) -> None:
    """Edges of 3.0 name no nodes: an edge leads from the node before it to the one behind it."""
    nodes, edges = _dicts(order.get("nodes")), _dicts(order.get("edges"))
    for edge, start, end in zip(edges, nodes, nodes[1:], strict=False):
        edge["startNodeId"], edge["endNodeId"] = start.get("nodeId"), end.get("nodeId")
    for edge in edges[max(len(nodes) - 1, 0) :]:
        edge["startNodeId"] = edge["endNodeId"] = edge.get("edgeId")  # there are too many
    for node in nodes:
        position = node.get("nodePosition")
        if isinstance(position, dict) and isinstance(position.get("allowedDeviationXY"), dict):
            ellipse = position["allowedDeviationXY"]
            axes = [ellipse.get(axis) for axis in ("a", "b")]
            numbers = [axis for axis in axes if isinstance(axis, int | float)]
            position["allowedDeviationXY"] = min(numbers) if len(numbers) == len(axes) else ellipse


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _actions_of(order: dict[str, Any]) -> list[dict[str, Any]]:
    elements = [*_dicts(order.get("nodes")), *_dicts(order.get("edges"))]
    return [action for each in elements for action in _dicts(each.get("actions"))]


def _rename_instant(message: dict[str, Any], names: Mapping[str, str]) -> None:
    for action in _dicts(message.get("actions")):
        kind = action.get("actionType")
        if isinstance(kind, str):
            action["actionType"] = names.get(kind, kind)


# ── from the robot ──────────────────────────────────────────────────────────────────────────────


def written(version: Version, topic: str, message: Any) -> bytes:
    """A message of the robot; ``message``: a struct or a dictionary, as 2.1 has it."""
    whole = msgspec.to_builtins(message)
    if topic == "state":
        _write_errors(whole["errors"], version)
    change = CHANGES.get((version, topic))
    return msgspec.json.encode(change(whole) if change else whole)


def _write_errors(errors: list[dict[str, Any]], version: Version) -> None:
    for error in errors:
        words = _KINDS.get(error["errorType"])
        if words is None:
            continue  # a fault of the robot
        error["errorType"] = words.type if version == "3.0.0" else words.before
        if version == "3.0.0":
            error["errorLevel"] = words.level


def _state_of_2_0(state: dict[str, Any]) -> dict[str, Any]:
    del state["maps"]
    for node in state["nodeStates"]:
        node.get("nodePosition", {}).setdefault("theta", 0.0)
    return state


def _state_of_3(state: dict[str, Any]) -> dict[str, Any]:
    state = _renamed(state, STATE_3)
    names = {after: before for before, after in INSTANT_3.items()}
    for action in state["instantActionStates"]:
        kind = action.get("actionType", "")
        action["actionType"] = names.get(kind, kind)
    path = [state["mobileRobotPosition"]] + [
        node["nodePosition"]
        for node in state["nodeStates"]
        if node["released"] and "nodePosition" in node
    ]
    if len(path) > 1:
        state["plannedPath"] = {"trajectory": _straight(path)}
    return state


def _straight(places: list[dict[str, Any]]) -> dict[str, Any]:
    """The straight lines from place to place, as a NURBS of degree 1."""
    last = len(places) - 1
    inner = [number / last for number in range(1, last)]
    return {
        "degree": 1,
        "knotVector": [0.0, 0.0, *inner, 1.0, 1.0],
        "controlPoints": [{"x": place["x"], "y": place["y"]} for place in places],
    }


def _state_of_2_1(state: dict[str, Any]) -> dict[str, Any]:
    state["actionStates"] += state.pop("instantActionStates")
    return state


def _connection_of_3(message: dict[str, Any]) -> dict[str, Any]:
    if message["connectionState"] == "CONNECTIONBROKEN":
        message["connectionState"] = "CONNECTION_BROKEN"
    return message


def _visualization_of_2(message: dict[str, Any]) -> dict[str, Any]:
    del message["referenceStateHeaderId"]
    return message


def _without_3(sheet: dict[str, Any]) -> dict[str, Any]:
    features = sheet["protocolFeatures"]
    features["agvActions"] = [
        each for each in features["agvActions"] if each["actionType"] not in ONLY_3
    ]
    return sheet


def _factsheet_of_3(sheet: dict[str, Any]) -> dict[str, Any]:
    sheet = _renamed(sheet, FACTSHEET_3)
    kind = sheet["typeSpecification"]
    drive = KINEMATICS_3[kind["mobileRobotKinematics"]]
    # the schema describes the one key and requires the other
    kind["mobileRobotKinematics"] = kind["mobileRobotKinematic"] = drive
    kind["navigationTypes"] = ["FREELY_NAVIGATING"]
    parameters = sheet["physicalParameters"]
    parameters["minimumHeight"] = parameters["maximumHeight"]
    names = {after: before for before, after in INSTANT_3.items()}
    for action in sheet["protocolFeatures"]["mobileRobotActions"]:
        action["actionType"] = names.get(action["actionType"], action["actionType"])
        action |= {"pauseAllowed": "false", "cancelAllowed": "true"}
    return sheet


CHANGES: Mapping[tuple[Version, str], Callable[[dict[str, Any]], dict[str, Any]]] = {
    ("2.0.0", "state"): lambda state: _state_of_2_0(_state_of_2_1(state)),
    ("2.1.0", "state"): _state_of_2_1,
    ("3.0.0", "state"): _state_of_3,
    ("2.0.0", "factsheet"): _without_3,
    ("2.1.0", "factsheet"): _without_3,
    ("3.0.0", "factsheet"): _factsheet_of_3,
    ("2.0.0", "visualization"): _visualization_of_2,
    ("2.1.0", "visualization"): _visualization_of_2,
    ("3.0.0", "connection"): _connection_of_3,
    ("3.0.0", "visualization"): lambda message: _renamed(message, STATE_3),
}
"""How a message is put into the words of a version; others are the same in all."""
