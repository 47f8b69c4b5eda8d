"""Addresses for programs: REST under /api, made from the command table, and monitoring.

GET for the queries of viewers, POST for all commands. An error is `{"code", "message"}` with a
status of 4xx, or 503 and 504 if the cell does not answer. `/api/docs` shows the same rows as a page
to read and to try, which needs no network; rest_page.js sends its commands.

`/health`, `/ready` and `/metrics` are for supervisors, load balancers and Prometheus. They need the
token that the page needs; a viewer's is enough. `/metrics` asks the cell at every request, so that
what is read is of one cell time.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from json import dumps
from typing import Any, NamedTuple

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from msgspec import Struct
from starlette.exceptions import HTTPException

from understudy.errors import UNREADABLE
from understudy.hmi.access import MONITORING, Role, role_of
from understudy.hmi.link import CellLink, LinkError
from understudy.hmi.page import STATIC
from understudy.ports.hmi import (
    BAD_PARAMETERS,
    BROKEN,
    NO_ANSWER,
    NOT_A_REQUEST,
    NOT_ALLOWED,
    NOT_CONNECTED,
    TOO_MUCH_AT_ONCE,
    UNKNOWN_COMMAND,
)

TIMEOUT_SECONDS = 60.0
MONITORING_SECONDS = 5.0
REFUSED_STATUS = 409
STATUS_OF = {
    BAD_PARAMETERS: 422,
    NOT_A_REQUEST: 400,
    TOO_MUCH_AT_ONCE: 429,
    BROKEN: 500,
    NO_ANSWER: 504,
    NOT_CONNECTED: 503,
}
PROBLEM = {
    "type": "object",
    "required": ["code", "message"],
    "properties": {"code": {"type": "integer"}, "message": {"type": "string"}},
}

Endpoint = Callable[[Request], Awaitable[Response]]
Schema = dict[str, Any]


class CommandRow(Struct, frozen=True):
    """A row of the command table; ``parameters`` is a JSON schema."""

    name: str
    doc: str
    role: Role
    parameters: Schema


class RestError(Exception):
    """An error answer."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def rest(link: CellLink, table: list[Any]) -> FastAPI:
    """The REST application; ``table``: the answer to the query `commands`."""
    rows = msgspec.convert(table, list[CommandRow])
    api = FastAPI(title="Understudy", openapi_url=None, docs_url=None, redoc_url=None)
    document = msgspec.json.encode(openapi(rows))

    async def describe(request: Request) -> Response:
        return Response(document, media_type="application/json")

    page = rest_page([(row, *_properties(row.parameters)) for row in rows])

    async def show(request: Request) -> Response:
        return Response(page, media_type="text/html")

    api.add_api_route("/openapi.json", describe)
    api.add_api_route("/docs", show)
    for row in rows:
        api.add_api_route(f"/{row.name}", _endpoint(link, row), methods=list(_methods(row)))
    api.add_exception_handler(RestError, _rest_error)
    api.add_exception_handler(HTTPException, _http_error)
    return api


def _methods(row: CommandRow) -> tuple[str, ...]:
    return ("get", "post") if row.role == "viewer" else ("post",)


def _endpoint(link: CellLink, row: CommandRow) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        role = role_of(request)
        if row.role == "operator" and role != "operator":
            raise RestError(403, NOT_ALLOWED, f"{row.name} needs role operator, not {role}")
        parameters = await _body(request) if request.method == "POST" else _query(request, row)
        try:
            result = await link.call(row.name, parameters, role=role, timeout_s=TIMEOUT_SECONDS)
        except LinkError as problem:
            status = STATUS_OF.get(problem.code, REFUSED_STATUS)
            raise RestError(status, problem.code, problem.message) from None
        return _json(result)

    return endpoint


# ── requests ──


async def _body(request: Request) -> dict[str, Any]:
    """A JSON body. It must be declared as JSON, which a form of another site cannot do."""
    data = await request.body()
    if not data:
        return {}
    if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        raise RestError(415, NOT_A_REQUEST, "Content-Type: application/json is needed")
    try:
        body = msgspec.json.decode(data)
    except UNREADABLE as problem:
        raise RestError(400, NOT_A_REQUEST, f"not JSON: {problem}") from None
    if not isinstance(body, dict):
        raise RestError(400, NOT_A_REQUEST, "the parameters are an object")
    return body


def _query(request: Request, row: CommandRow) -> dict[str, Any]:
    properties, _ = _properties(row.parameters)
    given = request.query_params.items()
    return {key: _value(text, properties.get(key, {})) for key, text in given if key != "token"}


def _value(text: str, schema: Schema) -> Any:
    """A string parameter as it is; any other as JSON, or as text if it is not JSON."""
    if schema.get("type") == "string":
        return text
    try:
        return msgspec.json.decode(text)
    except (*UNREADABLE, UnicodeEncodeError):
        return text


# ── OpenAPI document ──


def openapi(rows: list[CommandRow]) -> Schema:
    components: Schema = {"Problem": PROBLEM}
    paths: Schema = {}
    for row in rows:
        local = {
            f"#/$defs/{name}": f"{row.name}.{name}" for name in row.parameters.get("$defs", {})
        }
        for name, schema in row.parameters.get("$defs", {}).items():
            components[f"{row.name}.{name}"] = _relinked(schema, local)
        paths[f"/{row.name}"] = {method: _operation(row, method, local) for method in _methods(row)}
    whole = get_openapi(title="Understudy", version="1", routes=[])
    servers = [{"url": "/api"}]
    return {**whole, "servers": servers, "paths": paths, "components": {"schemas": components}}


def _operation(row: CommandRow, method: str, local: Mapping[str, str]) -> Schema:
    problem = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    operation: Schema = {
        "operationId": f"{method}_{row.name}",
        "summary": row.doc,
        "tags": [row.role],
        "responses": {
            "200": {"description": "the result", "content": {"application/json": {}}},
            "4XX": {"description": "why not", "content": problem},
            "503": {"description": "there is no cell", "content": problem},
            "504": {"description": "the cell did not answer in time", "content": problem},
        },
    }
    properties, required = _properties(row.parameters)
    if method == "get":
        operation["parameters"] = [
            _parameter(name, _relinked(schema, local), name in required)
            for name, schema in properties.items()
        ]
    else:
        schema = _relinked({k: v for k, v in row.parameters.items() if k != "$defs"}, local)
        content = {"application/json": {"schema": schema}}
        operation["requestBody"] = {"required": bool(required), "content": content}
    return operation


def _parameter(name: str, schema: Schema, required: bool) -> Schema:
    """A query parameter: text is given as it is, any other value as JSON."""
    place: Schema = {"name": name, "in": "query", "required": required}
    if schema.get("type") == "string":
        return {**place, "schema": schema}
    return {**place, "content": {"application/json": {"schema": schema}}}


def _properties(schema: Schema) -> tuple[Schema, list[str]]:
    """The fields of the parameters, and the names of the required ones."""
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    whole = schema.get("$defs", {}).get(name, schema)
    return whole.get("properties", {}), whole.get("required", [])


def _relinked(schema: Any, local: Mapping[str, str]) -> Any:
    """The schema with its references changed to those of the whole document."""
    if isinstance(schema, dict):
        return {
            key: f"#/components/schemas/{local[value]}"
            if key == "$ref" and value in local
            else _relinked(value, local)
            for key, value in schema.items()
            if key != "discriminator"
        }
    if isinstance(schema, list):
        return [_relinked(each, local) for each in schema]
    return schema


# ── errors ──


def _error(status: int, code: int, message: str) -> Response:
    return _json({"code": code, "message": message}, status)


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


async def _rest_error(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, RestError)
    return _error(problem.status, problem.code, problem.message)


async def _http_error(request: Request, problem: Exception) -> Response:
    """An unknown address or method."""
    assert isinstance(problem, HTTPException)
    code = UNKNOWN_COMMAND if problem.status_code == 404 else NOT_A_REQUEST
    answer = _error(
        problem.status_code, code, f"{request.method} {request.url.path}: {problem.detail}"
    )
    answer.headers.update(problem.headers or {})
    return answer


# ── the page ──

EXAMPLES: Mapping[str, Any] = {
    "string": "",
    "number": 0,
    "integer": 0,
    "boolean": False,
    "array": [],
    "object": {},
}


def rest_page(rows: Sequence[tuple[CommandRow, Schema, Sequence[str]]]) -> str:
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


def _row(row: CommandRow, parameters: Schema, required: Sequence[str]) -> str:
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


# ── monitoring ──

TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
QUERIES = ("robots", "status", "metrics", "devices", "message_counts")

Labels = Mapping[str, str]


def add_monitoring(app: FastAPI, link: CellLink, pages: Callable[[], int]) -> None:
    """Adds the three addresses. ``pages``: number of pages that browsers have open."""

    async def health(request: Request) -> Response:
        """The process of the page answers."""
        return _json({"status": "ok"})

    async def ready(request: Request) -> Response:
        """The cell answers, and its time can go on."""
        try:
            status = await link.call("status", role="viewer", timeout_s=MONITORING_SECONDS)
        except LinkError as problem:
            return _json({"status": "not ready", "reason": problem.message}, 503)
        if reason := status.get("problem"):
            return _json({"status": "not ready", "reason": reason}, 503)
        return _json({"status": "ready", "cell": status["cell"], "now_s": status["now_s"]})

    async def metrics(request: Request) -> Response:
        questions = [{"command": name} for name in QUERIES]
        try:
            given = {"questions": questions}
            answers = await link.call("glance", given, role="viewer", timeout_s=MONITORING_SECONDS)
        except LinkError:
            answers = [None] * len(QUERIES)
        found = metrics_text(dict(zip(QUERIES, answers, strict=True)), pages())
        return Response(found, media_type=TEXT_FORMAT)

    for address, answer in zip(MONITORING, (health, ready, metrics), strict=True):
        app.add_api_route(address, answer, include_in_schema=False)


class Family(NamedTuple):
    """A metric with its values, by their labels."""

    name: str
    kind: str
    doc: str
    values: Sequence[tuple[Labels, float]]


def metrics_text(answers: Mapping[str, Any], pages: int) -> str:
    """The text format of Prometheus. ``answers``: to `QUERIES`, None where there is none."""
    return "".join(_written(each) for each in _families(answers, pages) if each.values)


def _families(answers: Mapping[str, Any], pages: int) -> Iterator[Family]:
    status = answers["status"]
    gauge = "gauge"
    yield Family("up", gauge, "1: the cell answers.", [({}, float(status is not None))])
    yield Family("pages", gauge, "Pages that browsers have open.", [({}, pages)])
    if status is None:
        return
    runs = float(not status.get("problem"))
    yield Family("time_can_run", gauge, "0: a fault has stopped the cell's time.", [({}, runs)])
    yield from _time(status, answers["metrics"] or {})
    robots = (answers["robots"] or {}).get("robots", [])
    states = Counter((each["kind"], each["mode"], each["state"]) for each in robots)
    labels = ("kind", "mode", "state")
    named = [(dict(zip(labels, each, strict=True)), n) for each, n in sorted(states.items())]
    yield Family("robots", gauge, "Robots by kind, mode and state.", named)
    errors = sum(bool(each["error"]) for each in robots)
    yield Family("robots_with_error", gauge, "Robots with an error.", [({}, errors)])
    faults = [({"device": d["name"]}, len(d["faults"])) for d in _devices(answers["devices"])]
    yield Family("device_faults", gauge, "Active faults of a device.", faults)
    yield from _wires(status["parts"], answers["message_counts"] or {})


def _time(status: Mapping[str, Any], metrics: Mapping[str, Any]) -> Iterator[Family]:
    gauge, counter = "gauge", "counter"
    rate = status["rate"]
    if not isinstance(rate, str):  # "max" and "step" have none
        yield Family("rate", gauge, "Simulated seconds per second, as it is set.", [({}, rate)])
    rows = (
        ("simulation_seconds_total", counter, "Simulated time.", status["now_s"]),
        ("real_seconds_total", counter, "Time since the cell started.", status["real_s"]),
        ("lateness_seconds", gauge, "Time by which the cell is late now.", metrics.get("late_s")),
        (
            "lost_seconds_total",
            counter,
            "Time that the cell has not simulated: it could not keep up with its rate.",
            metrics.get("lost_s"),
        ),
        ("gcodes", gauge, "G-codes since the last reset.", metrics.get("gcode_executed")),
        (
            "collisions",
            gauge,
            "Collisions since the last reset.",
            metrics.get("collisions_detected"),
        ),
    )
    for name, kind, doc, value in rows:
        if value is not None:
            yield Family(name, kind, doc, [({}, value)])


def _devices(devices: Iterable[Mapping[str, Any]] | None) -> list[Mapping[str, Any]]:
    """Each device once: one that is shown with two robots is listed twice."""
    return list({each["name"]: each for each in devices or ()}.values())


def _wires(parts: Mapping[str, Any], counts: Mapping[str, Any]) -> Iterator[Family]:
    clients = [
        ({"endpoint": name}, part["clients"])
        for name, part in parts.items()
        if isinstance(part, Mapping) and "clients" in part
    ]
    yield Family("clients", "gauge", "Clients that are connected to an endpoint.", clients)
    messages = [
        ({"endpoint": endpoint, "direction": direction}, number)
        for endpoint, directions in counts.items()
        for direction, number in directions.items()
    ]
    doc = "Messages of an endpoint: received by the robot, or sent."
    yield Family("messages_total", "counter", doc, messages)


def _written(family: Family) -> str:
    name = f"understudy_{family.name}"
    rows = [f"# HELP {name} {family.doc}", f"# TYPE {name} {family.kind}"]
    rows += [f"{name}{_labels(labels)} {value:.15g}" for labels, value in family.values]
    return "\n".join(rows) + "\n"


def _labels(labels: Labels) -> str:
    pairs = [f'{name}="{_escaped(value)}"' for name, value in labels.items()]
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
