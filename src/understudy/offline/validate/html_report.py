"""The report as one HTML page: a 3D view of the path that can be turned, and lines to click on.

The page is one file without references to other files, so that it can be mailed and archived.
"""

from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any

import msgspec
import numpy as np

from understudy.motion.path import Floats
from understudy.offline.validate.report import Report, finding_document, line_document
from understudy.page_policy import policy_meta
from understudy.space.model.environment import Environment
from understudy.space.model.shapes import CollisionObject, ObjectType

ROUND = 24
"""Corners of the polygon that is drawn for a circle."""
CUBE = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
EDGES = [(a, b) for a in range(8) for b in range(a) if (CUBE[a] != CUBE[b]).sum() == 1]

MOST_ROWS = 5000
"""Rows of the table of lines; the JSON report has all lines."""
MOST_FINDINGS = 2000
"""Violations, and warnings, on the page; the JSON report has all of them."""


Figures = Callable[[str, int], dict[str, Any] | None]
"""Bodies of a robot with a tool (see `bodies.figure`); None for a robot without a body."""


def page(reports: Sequence[Report], environment: Environment, figures: Figures) -> str:
    """The HTML text; several programs are in one list to choose from."""
    things = [
        {"name": thing.name, "zone": environment.is_zone(thing.name), "lines": wireframe(thing)}
        for thing in environment.everything()
    ]
    used = {(each.robot, tool) for each in reports for tool in each.course.tools}
    drawn = {f"{robot}/{tool}": figures(robot, tool) for robot, tool in sorted(used)}
    data = {
        "reports": [_report(report) for report in reports],
        "things": things,
        "figures": {name: found for name, found in drawn.items() if found is not None},
    }
    # A "</script>" inside a program's comment must not end the data.
    text = msgspec.json.encode(data).decode().replace("<", "\\u003c")
    style, script = _file("report_page.css"), _file("report_page.js")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"{policy_meta(scripts=[script], styles=[style])}"
        '<meta name="viewport" content="width=device-width">'
        f"<title>understudy validate</title><style>{style}</style></head>\n"
        '<body><header><select id="program" aria-label="program"></select>'
        '<b id="verdict"></b><span id="facts"></span></header>\n'
        '<main><section id="view"><canvas id="canvas" tabindex="0" aria-label="the path">'
        '</canvas><footer><button id="play" aria-label="play">▶</button>'
        '<input id="time" type="range" min="0" value="0" aria-label="time">'
        '<output id="clock"></output></footer></section>'
        '<section id="side"><ul id="findings"></ul><table><thead><tr><th>line</th><th>from s</th>'
        "<th>proven mm</th><th>seen mm</th><th>text</th></tr></thead>"
        '<tbody id="lines"></tbody></table></section></main>\n'
        f'<script id="data" type="application/json">{text}</script>\n'
        f"<script>{script}</script></body></html>\n"
    )


def _report(report: Report) -> dict[str, Any]:
    """Data of one program for the page; rounded to 0.01 mm."""
    shown = {"program", "cell", "robot", "verdict", "cycle_time"}
    document = {key: value for key, value in report.listed_document().items() if key in shown}
    course = report.course
    findings = [
        {**finding_document(each), "level": level}
        for level, found in (("violation", report.violations), ("warning", report.warnings))
        for each in found[:MOST_FINDINGS]
    ]
    omitted = len(report.violations) + len(report.warnings) - len(findings)
    points = [[round(v, 5) for v in row[-1]] for row in course.points]
    joints = [[round(v, 5) for v in row] for row in course.joints]
    return {
        **document,
        "lines": [line_document(row) for row in report.lines[:MOST_ROWS]],
        "omitted": max(len(report.lines) - MOST_ROWS, 0),
        "findings": findings,
        "notes": [
            *([f"{omitted} more findings are not shown: --json has them all"] if omitted else []),
            *report.notes,
            *(f"not compared, {each}" for each in report.left_out_notes()),
        ],
        "tips": points,
        "joints": joints,
        "tools": list(course.tools),
        "at": list(course.lines),
        "times": [round(time, 3) for time in course.times],
    }


def _file(name: str) -> str:
    return files("understudy.offline.validate").joinpath(name).read_text(encoding="utf-8")


# ── objects of the environment as lines ─────────────────────────────────────────────────────────


def wireframe(thing: CollisionObject) -> list[list[list[float]]]:
    """Polylines in metres, in the cell's frame; a mesh is drawn as its bounding box."""
    lines = _lines(thing)
    turn, shift = thing.transform[:3, :3], thing.transform[:3, 3]
    return [(line @ turn.T + shift).tolist() for line in lines]


def _lines(thing: CollisionObject) -> list[Floats]:
    if thing.type is ObjectType.BOX:
        return _box(np.zeros(3), np.array(thing.dimensions))
    if thing.type is ObjectType.SPHERE:
        return [_circle(thing.radius, axis, 0.0) for axis in range(3)]
    if thing.type in (ObjectType.CYLINDER, ObjectType.CAPSULE):
        return _barrel(thing.radius, 0.5 * thing.height)
    points = np.asarray(thing.vertices, dtype=np.float64).reshape(-1, 3)
    low, high = points.min(axis=0), points.max(axis=0)
    return _box(0.5 * (low + high), high - low)


def _box(centre: Floats, size: Floats) -> list[Floats]:
    corners = centre + CUBE * size
    return [corners[[a, b]] for a, b in EDGES]


def _barrel(radius: float, half: float) -> list[Floats]:
    ends = [_circle(radius, 2, z) for z in (-half, half)]
    stride = ROUND // 4
    return [*ends, *(np.stack([ends[0][k], ends[1][k]]) for k in range(0, ROUND, stride))]


def _circle(radius: float, axis: int, along: float) -> Floats:
    angles = np.linspace(0.0, 2.0 * np.pi, ROUND + 1)
    out = np.full((ROUND + 1, 3), along)
    first, second = (k for k in range(3) if k != axis)
    out[:, first], out[:, second] = radius * np.cos(angles), radius * np.sin(angles)
    return out
