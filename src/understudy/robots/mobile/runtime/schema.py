"""The messages of mobile robots as JSON Schema and as an AsyncAPI document.

Everything is made from the types in `messages` and `commands`, so it is what the robots read and
send.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from understudy.robots.mobile.runtime.commands import COMMANDS
from understudy.robots.mobile.runtime.messages import (
    EVENTS,
    FROM_ROBOT,
    NEWEST_COUNTS,
    TO_ROBOT,
    CommandRequest,
    Event,
    Incoming,
    Sent,
    subject,
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ROBOT_ID = "{robotId}"
STREAM_IN = "ROBOT_IN"
STREAM_OUT = "ROBOT_OUT"
"""Names of the streams unless `nats.jetStream` gives others."""

Schema = dict[str, Any]


def kinds() -> Mapping[str, type[Struct]]:
    """The payloads of all kinds of messages, those of the robots first."""
    return {**FROM_ROBOT, **TO_ROBOT}


def message_title(kind: str) -> str:
    """`command.request` is CommandRequestMessage."""
    return "".join(word.capitalize() for word in kind.split(".")) + "Message"


def definitions(place: str) -> dict[str, Schema]:
    """Schemas of all messages, payloads and their parts by name; ``place``: where they refer to
    each other, such as `#/$defs/`."""
    parameters = [command.parameters for command in COMMANDS.values()]
    types = [*kinds().values(), *parameters]
    _, found = msgspec.json.schema_components(types, ref_template=place + "{name}")
    found[Event.__name__] = _event_schema()
    found[CommandRequest.__name__]["allOf"] = [
        _parameters_of(name, found[type_.__name__], f"{place}{type_.__name__}")
        for name, type_ in zip(COMMANDS, parameters, strict=True)
    ]
    for kind, payload in kinds().items():
        found[message_title(kind)] = _message(kind, f"{place}{payload.__name__}")
    return found


def _message(kind: str, payload: str) -> Schema:
    """The envelope with a payload."""
    envelope = Sent if kind in FROM_ROBOT else Incoming
    schema: Schema = msgspec.json.schema(envelope)["$defs"][envelope.__name__]
    schema["title"] = message_title(kind)
    schema["properties"]["payload"] = {"$ref": payload}
    schema["properties"]["payloadVersion"]["const"] = 1
    return schema


def _event_schema() -> Schema:
    types = [name for name in EVENTS if "<" not in name]
    return {
        "title": Event.__name__,
        "description": "`type` says what happened; the other keys depend on it.",
        "type": "object",
        "properties": {"type": {"type": "string", "examples": types}},
        "required": ["type"],
        "additionalProperties": True,
    }


def _parameters_of(command: str, parameters: Schema, place: str) -> Schema:
    """The parameters of one command, as a condition."""
    then: Schema = {"properties": {"parameters": {"$ref": place}}}
    if parameters["required"]:
        then["required"] = ["parameters"]
    return {"if": {"properties": {"commandType": {"const": command}}}, "then": then}


def schema_files() -> dict[str, Schema]:
    """A schema for each kind of message, by its file name; each contains all that it needs."""
    everything = definitions("#/$defs/")
    files = {}
    for kind in kinds():
        whole = everything[message_title(kind)]
        head = {"$schema": DIALECT, "$id": f"{kind}.schema.json"}
        files[f"{kind}.schema.json"] = head | whole | {"$defs": _needed(whole, everything)}
    return files


def _needed(schema: Any, everything: Mapping[str, Schema]) -> dict[str, Schema]:
    """The definitions that a schema refers to, directly or by others, in their order."""
    found: set[str] = set()
    waiting = [schema]
    while waiting:
        new = set(_references(waiting.pop())) - found
        found |= new
        waiting += [everything[name] for name in new]
    return {name: each for name, each in everything.items() if name in found}


def _references(schema: Any) -> list[str]:
    if isinstance(schema, dict):
        own = [schema["$ref"].rpartition("/")[2]] if "$ref" in schema else []
        return own + [name for value in schema.values() for name in _references(value)]
    if isinstance(schema, list):
        return [name for value in schema for name in _references(value)]
    return []


# ── AsyncAPI ────────────────────────────────────────────────────────────────────────────────────


def asyncapi(version: str) -> dict[str, Any]:
    """An AsyncAPI 3.0 document, from the robot's point of view: it sends and receives."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Mobile robots on NATS JetStream",
            "version": version,
            "description": f"Streams {STREAM_IN} (robot to backend) and {STREAM_OUT} (backend to "
            "robot). Every message has an envelope; its messageId is also the header Nats-Msg-Id "
            "of messages that are sent until they are confirmed.",
        },
        "defaultContentType": "application/json",
        "channels": {_channel_id(kind): _channel(kind) for kind in kinds()},
        "operations": dict(_operation(kind) for kind in kinds()),
        "components": {
            "messages": {message_title(kind): _asyncapi_message(kind) for kind in kinds()},
            "schemas": definitions("#/components/schemas/"),
        },
    }


def _channel_id(kind: str) -> str:
    return message_title(kind).removesuffix("Message")


def _channel(kind: str) -> dict[str, Any]:
    title = message_title(kind)
    stream = STREAM_IN if kind in FROM_ROBOT else STREAM_OUT
    return {
        "address": subject(ROBOT_ID, kind),
        "description": f"JetStream stream {stream}.",
        "messages": {title: {"$ref": f"#/components/messages/{title}"}},
        "parameters": {"robotId": {"description": "`identity.robotId` of the robot."}},
    }


def _operation(kind: str) -> tuple[str, dict[str, Any]]:
    action = "send" if kind in FROM_ROBOT else "receive"
    channel = f"#/channels/{_channel_id(kind)}"
    operation: dict[str, Any] = {
        "action": action,
        "channel": {"$ref": channel},
        "summary": meaning(kind),
        "messages": [{"$ref": f"{channel}/messages/{message_title(kind)}"}],
    }
    if kind == "command.request":
        operation["reply"] = {"channel": {"$ref": f"#/channels/{_channel_id('command.ack')}"}}
    return f"{action}{_channel_id(kind)}", operation


def _asyncapi_message(kind: str) -> dict[str, Any]:
    message: dict[str, Any] = {
        "name": kind,
        "title": message_title(kind),
        "summary": meaning(kind),
        "payload": {"$ref": f"#/components/schemas/{message_title(kind)}"},
    }
    if kind not in NEWEST_COUNTS:
        message["headers"] = {
            "type": "object",
            "properties": {"Nats-Msg-Id": {"type": "string", "description": "The messageId."}},
        }
    return message


def meaning(kind: str) -> str:
    """What a kind of message says, in a sentence or two."""
    return " ".join((kinds()[kind].__doc__ or "").split())
