"""The messages of mobile robots as JSON Schema, as an AsyncAPI document and as a page in Markdown.

Everything is made from the types in `messages`, so it is what the robots read and send.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from understudy.robots.mobile.runtime.messages import (
    COMMANDS,
    EVENTS,
    FROM_ROBOT,
    NEWEST_COUNTS,
    REASONS,
    TO_ROBOT,
    CommandRequest,
    Event,
    Incoming,
    Sent,
    subject,
)
from understudy.robots.mobile.runtime.tasks import ERRORS

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


# ── a page in Markdown ───────────────────────────────────────────────────────────────────────────

UNLIMITED = 1e9
"""A limit that only keeps out absurd figures; it is not shown."""
ENVELOPES = {"sent by a robot": Sent, "for a robot": Incoming}
HEAD = """\
# Messages of mobile robots

Written by `understudy fleet schema DIR` from the types of the messages, with a JSON Schema of each
message and an AsyncAPI document beside it.

Lengths are metres, angles radians, speeds m/s and rad/s. Receivers ignore unknown keys.
"""


def catalogue() -> str:
    """The whole page."""
    found = definitions("")
    parts = [HEAD, _subjects(), _envelopes(found)]
    parts += [_section(f"## {kind}", found[each.__name__]) for kind, each in kinds().items()]
    parts += ["## Commands\n\n`parameters` of a command.request, by `commandType`.\n"]
    parts += [
        _section(f"### {name}", found[command.parameters.__name__])
        for name, command in COMMANDS.items()
    ]
    parts += [
        _meanings("Types of events", "type", EVENTS),
        _meanings("Reasons of command.ack", "reason", REASONS),
        _meanings("Codes of task.failed", "errorCode", ERRORS),
        "## Parts\n\nObjects inside of payloads.\n",
    ]
    parts += [_section(f"### {name}", found[name]) for name in _parts(found)]
    return "\n".join(parts)


def _parts(found: dict[str, Schema]) -> list[str]:
    whole = {payload.__name__ for payload in kinds().values()}
    whole |= {command.parameters.__name__ for command in COMMANDS.values()}
    whole |= {message_title(kind) for kind in kinds()}
    return sorted(set(found) - whole)


def _subjects() -> str:
    lines = ["## Subjects", "", "| subject | stream | delivery | |", "|---|---|---|---|"]
    for kind in (*FROM_ROBOT, *TO_ROBOT):
        stream = STREAM_IN if kind in FROM_ROBOT else STREAM_OUT
        delivery = "the newest counts" if kind in NEWEST_COUNTS else "until it is confirmed"
        if kind in TO_ROBOT:
            delivery = "acknowledged when it is handled"
        link = f"[`{subject('{robotId}', kind)}`](#{kind.replace('.', '')})"
        lines.append(f"| {link} | {stream} | {delivery} | {meaning(kind)} |")
    return "\n".join(lines) + "\n"


def _envelopes(found: dict[str, Schema]) -> str:
    """The keys around the payload; they are the same for all messages of one direction."""
    parts = ["## Envelope\n"]
    for title, some in zip(ENVELOPES, (FROM_ROBOT, TO_ROBOT), strict=True):
        schema = found[message_title(next(iter(some)))]
        keys = {
            key: value if key != "payload" else {"type": "the payload"}
            for key, value in schema["properties"].items()
        }
        table = _table(schema | {"properties": keys})
        parts.append(f"Of a message {title}: {schema['description']}\n\n{table}")
    return "\n".join(parts)


def _section(heading: str, schema: Schema) -> str:
    said = " ".join(schema.get("description", "").split())
    table = _table(schema) if schema["properties"] else "No keys.\n"
    return "\n\n".join(part for part in (heading, said, table) if part)


def _table(schema: Schema) -> str:
    lines = ["| key | type | |", "|---|---|---|"]
    for key, value in schema["properties"].items():
        need = "" if key in schema["required"] else _default(value)
        lines.append(f"| `{key}` | {_type(value)} | {need} |")
    return "\n".join(lines) + "\n"


def _default(value: Schema) -> str:
    default = value.get("default")
    return "optional" if default in (None, {}, []) else f"default {_shown(default)}"


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"


def _type(value: Schema) -> str:
    """A type in words."""
    if "$ref" in value:
        return f"[{value['$ref']}](#{value['$ref'].lower()})"
    if "anyOf" in value:
        return " or ".join(_type(each) for each in value["anyOf"])
    if "enum" in value:
        return ", ".join(f"`{each}`" for each in value["enum"])
    if "items" in value:
        return f"list of {_type(value['items'])}"
    if isinstance(value.get("additionalProperties"), dict):
        return f"{_type(value['additionalProperties'])} by name"
    return " ".join([value.get("type", "any"), *_limits(value)])


def _limits(value: Schema) -> Iterator[str]:
    if "const" in value:
        yield f"{value['const']}"
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤"}
    for key, sign in signs.items():
        if key in value and abs(value[key]) < UNLIMITED:
            yield f"{sign} {value[key]:g}"


def _meanings(title: str, key: str, meanings: Mapping[str, str]) -> str:
    rows = [f"| `{name}` | {said} |" for name, said in meanings.items()]
    return "\n".join([f"## {title}", "", f"| {key} | |", "|---|---|", *rows]) + "\n"
