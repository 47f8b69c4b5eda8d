"""`/api/docs`: the commands of the cell as a page to read and to try; it needs no network.

The page is made of the same rows as `/api/openapi.json`. A command is sent by rest_page.js.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from json import dumps
from typing import Any, Protocol

from understudy.hmi.page import STATIC

Schema = Mapping[str, Any]
EXAMPLES: Mapping[str, Any] = {
    "string": "",
    "number": 0,
    "integer": 0,
    "boolean": False,
    "array": [],
    "object": {},
}


class Row(Protocol):
    """A row of the command table."""

    @property
    def name(self) -> str: ...
    @property
    def doc(self) -> str: ...
    @property
    def role(self) -> str: ...


def rest_page(rows: Sequence[tuple[Row, Schema, Sequence[str]]]) -> str:
    """``rows``: a command, its parameters, and the names of those that are required."""
    body = "".join(_row(*row) for row in rows)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>Understudy REST</title><link rel="stylesheet" href="{STATIC}/frame/rest_page.css">'
        f'<script type="module" src="{STATIC}/frame/rest_page.js"></script></head><body>'
        f"<h1>Commands and queries</h1><p>{len(rows)} addresses under <code>/api</code>. A query "
        "is GET or POST, a command is POST, with parameters as a JSON object. As a document: "
        '<a href="openapi.json">openapi.json</a>.</p>'
        '<input id="search" type="search" placeholder="Search" aria-label="Search">'
        f"<main>{body}</main></body></html>\n"
    )


def _row(row: Row, parameters: Schema, required: Sequence[str]) -> str:
    name, kind = escape(row.name), "query" if row.role == "viewer" else "command"
    example = {key: _example(parameters[key]) for key in required if key in parameters}
    fields = "".join(_field(key, of, key in required) for key, of in parameters.items())
    table = f"<table>{fields}</table>" if fields else "<p>No parameters.</p>"
    return (
        f'<details id="{name}" data-kind="{kind}"><summary><b>{name}</b> <i>{kind}</i> '
        f"{escape(row.doc)}</summary>{table}"
        f'<form data-command="{name}"><textarea aria-label="parameters of {name}" rows="3" '
        f'spellcheck="false">{escape(dumps(example))}</textarea>'
        "<button>Send</button><output></output></form></details>"
    )


def _field(name: str, given: Schema | bool, required: bool) -> str:
    schema: Schema = {} if isinstance(given, bool) else given
    default = "" if "default" not in schema else f"default {dumps(schema['default'])}"
    notes = "required" if required else default
    cells = (name, " or ".join(_types(schema)), notes, str(schema.get("description", "")))
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def _types(schema: Schema | bool) -> Iterator[str]:
    """The types of a parameter in words: `number 0 … 1`, `"max"`, `list of string`. A JSON schema
    may also be true: anything."""
    if isinstance(schema, bool):
        return
    for part in schema.get("anyOf", ()):
        yield from _types(part)
    if "enum" in schema:
        yield from (dumps(value) for value in schema["enum"])
    elif "$ref" in schema:
        yield str(schema["$ref"]).rpartition("/")[2]
    elif schema.get("type") == "array":
        yield f"list of {' or '.join(_types(schema.get('items', {}))) or 'anything'}"
    elif "type" in schema:
        bounds = [str(schema[key]) for key in ("minimum", "maximum") if key in schema]
        yield " ".join([str(schema["type"]), " … ".join(bounds)]).strip()


def _example(schema: Schema | bool) -> Any:
    if isinstance(schema, bool):
        return None
    first = next(iter(schema.get("anyOf", ())), schema)
    if "enum" in first:
        return first["enum"][0]
    return EXAMPLES.get(str(first.get("type", "object")), None)
