"""`/health`, `/ready` and `/metrics`: for supervisors, load balancers and Prometheus.

They need the token that the page needs; a viewer's is enough. `/metrics` asks the cell at every
request, so that what is read is of one cell time.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from fastapi import FastAPI, Request, Response

from understudy.hmi.access import MONITORING
from understudy.hmi.link import CellLink, LinkError

TIMEOUT_SECONDS = 5.0
TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
QUERIES = ("robots", "status", "metrics", "devices", "message_counts")

Labels = Mapping[str, str]


def add_monitoring(app: FastAPI, link: CellLink, pages: Callable[[], int]) -> None:
    """Adds the three addresses. ``pages``: number of pages that browsers have open."""

    async def health(request: Request) -> Response:
        """The process of the page answers."""
        return _json(200, {"status": "ok"})

    async def ready(request: Request) -> Response:
        """The cell answers, and its time can go on."""
        try:
            status = await link.call("status", role="viewer", timeout_s=TIMEOUT_SECONDS)
        except LinkError as problem:
            return _json(503, {"status": "not ready", "reason": problem.message})
        if reason := status.get("problem"):
            return _json(503, {"status": "not ready", "reason": reason})
        return _json(200, {"status": "ready", "cell": status["cell"], "now_s": status["now_s"]})

    async def metrics(request: Request) -> Response:
        questions = [{"command": name} for name in QUERIES]
        try:
            given = {"questions": questions}
            answers = await link.call("glance", given, role="viewer", timeout_s=TIMEOUT_SECONDS)
        except LinkError:
            answers = [None] * len(QUERIES)
        found = metrics_text(dict(zip(QUERIES, answers, strict=True)), pages())
        return Response(found, media_type=TEXT_FORMAT)

    for address, answer in zip(MONITORING, (health, ready, metrics), strict=True):
        app.add_api_route(address, answer, include_in_schema=False)


def _json(status: int, value: Mapping[str, Any]) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


# ── Prometheus text ──


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
