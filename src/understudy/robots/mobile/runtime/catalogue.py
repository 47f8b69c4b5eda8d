"""The catalogue of messages as a page in Markdown, made from their types."""

from collections.abc import Iterator, Mapping
from typing import Any

from understudy.robots.mobile.runtime.commands import COMMANDS, REASONS
from understudy.robots.mobile.runtime.messages import (
    EVENTS,
    FROM_ROBOT,
    NEWEST_COUNTS,
    TO_ROBOT,
    Incoming,
    Sent,
    subject,
)
from understudy.robots.mobile.runtime.schema import (
    STREAM_IN,
    STREAM_OUT,
    Schema,
    definitions,
    kinds,
    meaning,
    message_title,
)
from understudy.robots.mobile.runtime.tasks import ERRORS

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
    parts += [_message(kind, found) for kind in kinds()]
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


def _message(kind: str, found: dict[str, Schema]) -> str:
    return _section(f"## {kind}", found[kinds()[kind].__name__])


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
