"""The report as one page: a view of the path that can be turned, and lines to click on.

One file that asks for nothing else, so that it can be mailed, archived, opened in ten years.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from understudy.offline.validate.page_parts import SCRIPT, STYLE
from understudy.offline.validate.report import Report, finding_document
from understudy.offline.validate.wireframe import wireframe
from understudy.space.model.environment import Environment

MOST_ROWS = 5000
"""Lines in the table; the JSON report has them all."""


def page(reports: Sequence[Report], environment: Environment) -> str:
    """HTML; several programs stand one after the other in a list to choose from."""
    things = [
        {"name": thing.name, "zone": environment.is_zone(thing.name), "lines": wireframe(thing)}
        for thing in environment.everything()
    ]
    data = {"reports": [_report(report) for report in reports], "things": things}
    # A "</script>" inside a program's comment must not end the data.
    text = msgspec.json.encode(data).decode().replace("<", "\\u003c")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>understudy validate</title><style>{STYLE}</style></head>\n"
        '<body><header><select id="program" aria-label="program"></select>'
        '<b id="verdict"></b><span id="facts"></span></header>\n'
        '<main><section id="view"><canvas id="canvas" tabindex="0" aria-label="the path">'
        '</canvas><input id="time" type="range" min="0" value="0" aria-label="time"></section>'
        '<section id="side"><ul id="findings"></ul><table><thead><tr><th>line</th><th>from s</th>'
        '<th>clearance mm</th><th>text</th></tr></thead><tbody id="lines"></tbody></table>'
        "</section></main>\n"
        f'<script id="data" type="application/json">{text}</script>\n'
        f"<script>{SCRIPT}</script></body></html>\n"
    )


def _report(report: Report) -> dict[str, Any]:
    """What the page shows; a hundredth of a millimetre is enough for a picture."""
    document = report.document()
    course = report.course
    points = [[round(v, 5) for point in row for v in point] for row in course.points]
    return {
        **{key: document[key] for key in ("program", "cell", "robot", "verdict", "cycle_time")},
        "lines": document["lines"][:MOST_ROWS],
        "left_off": max(len(document["lines"]) - MOST_ROWS, 0),
        "findings": [
            {**finding_document(each), "level": level}
            for level, found in (("violation", report.violations), ("warning", report.warnings))
            for each in found
        ],
        "notes": list(report.notes),
        "points": points,
        "at": list(course.lines),
        "times": [round(time, 3) for time in course.times],
    }
