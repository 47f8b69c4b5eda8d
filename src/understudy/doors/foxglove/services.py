"""The commands and queries of a cell as services: a request and an answer are JSON objects.

A request has the parameters of its command; with `secret`, the secret of the run, a client may
command REAL robots. An answer that is no object has the key `result`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from understudy.app.live import Live
from understudy.doors.websocket import Client, object_of
from understudy.errors import Refused

ANSWER = {"type": "object", "properties": {}}
PLAIN = ("boolean", "string", "number", "integer")
"""Types that viewers know beside objects and arrays."""


@dataclass(frozen=True)
class Service:
    name: str
    request: Mapping[str, Any]

    def advertised(self, number: int) -> dict[str, Any]:
        return {
            "id": number,
            "name": f"/{self.name}",
            "type": f"understudy.{self.name}",
            "request": _described(f"understudy.{self.name}.request", self.request),
            "response": _described(f"understudy.{self.name}.response", ANSWER),
        }

    async def call(self, client: Client, payload: bytes) -> bytes | Refused:
        """The answer to a request, as JSON."""
        given = object_of(payload or b"{}", "{}, with the parameters of the command")
        if isinstance(given, Refused):
            return given
        if refused := client.admission.check(given.pop("secret", None)):
            return refused
        answer = await client.call(self.name, given)
        if isinstance(answer, Refused):
            return answer
        written = msgspec.json.encode(answer)
        return written if written.startswith(b"{") else b'{"result":%s}' % written


def services_of(live: Live) -> Mapping[int, Service]:
    """The services of a cell, by number."""
    return {
        number: Service(each.name, viewable(msgspec.json.schema(each.parameters)))
        for number, each in enumerate(live.commands, start=1)
    }


def _described(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "encoding": "json",
        "schemaName": name,
        "schemaEncoding": "jsonschema",
        "schema": msgspec.json.encode(schema).decode(),
    }


def viewable(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON schema as viewers read it: without references, and without what has several types."""
    found = _viewable(schema, schema.get("$defs", {}))
    return ANSWER if found is None else found


def _viewable(schema: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any] | None:
    """None: viewers know no such type."""
    if reference := schema.get("$ref"):
        return _viewable(named[reference.rpartition("/")[2]], named)
    shown = {key: schema[key] for key in ("title", "description", "default") if key in schema}
    kind = schema.get("type")
    if kind == "object":
        inner = {
            name: _viewable(each, named) for name, each in schema.get("properties", {}).items()
        }
        known = {name: each for name, each in inner.items() if each is not None}
        return {**shown, "type": "object", "properties": known}
    if kind == "array":
        items = _viewable(schema.get("items") or {}, named)
        return None if items is None else {**shown, "type": "array", "items": items}
    return {**shown, "type": kind} if kind in PLAIN else None
