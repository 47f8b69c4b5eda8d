"""Expected reactions to the faults of VDA 5050, and a conversation of a master control."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from understudy.ports import WireMessage
from understudy.ports.fault_reactions import (
    Data,
    NotPossibleError,
    Reaction,
    Reactions,
    Seen,
    Talk,
    Trial,
    robot_stands,
)

AWAY_M = 2.0
"""Metres to the goal of the order: the robot is on its way for some seconds."""


def _message(trial: Trial, topic: str, **content: Any) -> WireMessage:
    """A message of the master control with a header."""
    face: Any = trial.components[trial.place]
    _, version, manufacturer, serial, _ = face.prefix.split("/")
    head = {
        "headerId": 1,
        "timestamp": "2026-01-01T00:00:00.00Z",
        "version": {"v2": "2.1.0", "v3": "3.0.0"}.get(version, "2.1.0"),
        "manufacturer": manufacturer,
        "serialNumber": serial,
    }
    return WireMessage(f"{face.prefix}{topic}", msgspec.json.encode({**head, **content}))


def _request(trial: Trial, number: int) -> Data:
    """Asks for the factsheet."""
    action = {"actionId": f"ask-{number}", "actionType": "factsheetRequest", "blockingType": "NONE"}
    return _message(trial, "instantActions", actions=[action])


def _node(sequence: int, x: float, y: float) -> Mapping[str, Any]:
    place = {"x": x, "y": y, "mapId": "hall"}
    return {
        "nodeId": f"n{sequence}",
        "sequenceId": sequence,
        "released": True,
        "nodePosition": place,
        "actions": [],
    }


def driving(trial: Trial) -> None:
    """the robot drives by an order"""
    trial.client("fleet")  # without a backend the robot does not move
    trial.endpoint_client()
    trial.advance(0.5)
    x, y, _ = trial.components[trial.robot].status(trial.now).pose
    edge = {
        "edgeId": "e1",
        "sequenceId": 1,
        "released": True,
        "startNodeId": "n0",
        "endNodeId": "n2",
        "actions": [],
    }
    nodes = [_node(0, x, y), _node(2, x + AWAY_M, y)]
    trial.notes["order"] = _message(
        trial, "order", orderId="o1", orderUpdateId=0, nodes=nodes, edges=[edge]
    )
    trial.endpoint_client().say(trial.notes["order"])
    trial.advance(1.0)
    if robot_stands(trial):
        raise NotPossibleError(f"{trial.robot} does not drive")
    trial.notes["moves"] = trial.part.control.state.moves


def order_again(trial: Trial) -> None:
    """the master control sends the order once more"""
    trial.advance(0.1)
    trial.endpoint_client().say(trial.notes["order"])


def _sent(trial: Trial, topic: str) -> Sequence[Any]:
    """The messages on a topic since the injection."""
    address = f"{trial.part.prefix}{topic}"
    return [
        msgspec.json.decode(data.payload)
        for at, data in trial.endpoint_client().heard
        if at >= trial.injected_at and isinstance(data, WireMessage) and data.address == address
    ]


def _goes_on_once(trial: Trial) -> bool:
    """The order reaches its goal by the move that was under way, without an error."""
    last = [each for each in _sent(trial, "state") if each["lastNodeId"] == "n2"]
    moves = trial.part.control.state.moves == trial.notes["moves"]
    return moves and any(each["orderId"] == "o1" and not each["errors"] for each in last)


REACTIONS: Reactions = {
    "session_forgotten": Reaction(
        driving,
        (
            Seen(
                "connection ONLINE again",
                lambda t: any(
                    each["connectionState"] == "ONLINE" for each in _sent(t, "connection")
                ),
            ),
            Seen("the factsheet again", lambda t: bool(_sent(t, "factsheet"))),
            Seen("the whole state again", lambda t: bool(_sent(t, "state"))),
            Seen("the order is carried out once", _goes_on_once),
        ),
        within_s=15.0,
        then=order_again,
    ),
}
TALKS = {"": Talk(_request)}
