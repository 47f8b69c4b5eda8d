"""The published schemas of VDA 5050, and orders that are written from them alone."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft7Validator, Draft202012Validator, FormatChecker

SCHEMAS = Path(__file__).parents[3] / "golden/vda5050"


@cache
def validator(topic: str, version: str = "2.1.0") -> Draft7Validator | Draft202012Validator:
    folder = SCHEMAS if version == "2.1.0" else SCHEMAS / version
    schema = json.loads((folder / f"{topic}.schema.json").read_text())
    kind = Draft202012Validator if version == "3.0.0" else Draft7Validator
    return kind(schema, format_checker=FormatChecker())


def check(topic: str, payload: bytes, version: str = "2.1.0") -> Any:
    """The message, if the schema accepts it."""
    message = json.loads(payload)
    validator(topic, version).validate(message)
    assert message["version"] == version
    return message


def head(number: int = 0) -> dict[str, Any]:
    return {
        "headerId": number,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "version": "2.1.0",
        "manufacturer": "maker",
        "serialNumber": "1",
    }


def node(
    sequence: int, x: float, y: float, *, released: bool = True, actions: Any = (), **more: Any
) -> dict[str, Any]:
    position = {"x": x, "y": y, "mapId": "hall", **more}
    return {
        "nodeId": f"n{sequence}",
        "sequenceId": sequence,
        "released": released,
        "nodePosition": position,
        "actions": list(actions),
    }


def edge(sequence: int, *, released: bool = True, actions: Any = (), **more: Any) -> dict[str, Any]:
    return {
        "edgeId": f"e{sequence}",
        "sequenceId": sequence,
        "released": released,
        "startNodeId": f"n{sequence - 1}",
        "endNodeId": f"n{sequence + 1}",
        "actions": list(actions),
        **more,
    }


def action(kind: str, name: str, blocking: str = "HARD", **parameters: Any) -> dict[str, Any]:
    given = [{"key": key, "value": value} for key, value in parameters.items()]
    return {
        "actionType": kind,
        "actionId": name,
        "blockingType": blocking,
        "actionParameters": given,
    }


def order(
    nodes: list[dict[str, Any]], edges: list[dict[str, Any]], *, name: str = "o1", update: int = 0
) -> dict[str, Any]:
    message = head() | {"orderId": name, "orderUpdateId": update, "nodes": nodes, "edges": edges}
    validator("order").validate(message)
    return message


def instant(*actions: dict[str, Any]) -> dict[str, Any]:
    message = head() | {"actions": list(actions)}
    validator("instantActions").validate(message)
    return message
