"""The report of a hand-eye calibration: one HTML file with its pictures, for the browser."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from understudy.page_policy import policy_meta

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:1100px;padding:0 1rem;
color:#1d2733}h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}
table{border-collapse:collapse;margin:.5rem 0}td,th{border:1px solid #cfd8e0;padding:.25rem .6rem;
text-align:right}th{background:#eef2f5}td:first-child,th:first-child{text-align:left}
.good{color:#11703c}.bad{color:#b3261e}.pictures{display:grid;gap:.7rem;
grid-template-columns:repeat(auto-fill,minmax(200px,1fr))}figure{margin:0}img{width:100%}svg{max-width:100%}
figcaption{font-size:.85rem;color:#51606e}pre{background:#eef2f5;padding:.7rem;overflow:auto}
"""


def report(status: dict[str, Any], *, title: str, text: str, pictures: Sequence[str]) -> str:
    """The page; ``status`` as the query `hand_eye_status` gives it, ``text``: the file."""
    parts = [
        f"<h1>Hand-eye calibration: {escape(title)}</h1>",
        _verdict(status),
        _result(status["result"]),
        _checks(status),
        _plot(status["poses"]),
        _coverage(status["coverage"]),
        _poses(status["poses"]),
        _pictures(pictures),
        _messages(status["messages"]),
        f"<h2>Calibration file</h2><pre>{escape(text)}</pre>" if text else "",
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"{policy_meta(styles=[STYLE], pictures=True)}"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body>"
        + "\n".join(filter(None, parts))
        + "</body></html>\n"
    )


def _verdict(status: dict[str, Any]) -> str:
    good = status["state"] == "DONE"
    kind, text = ("good", "done") if good else ("bad", status["error"] or status["state"])
    poses = f"{status['captured']} poses, {status['left_out']} left out"
    return f'<p class="{kind}"><b>{escape(text)}</b> · {poses}</p>'


def _result(result: dict[str, Any] | None) -> str:
    if result is None:
        return ""
    frame = "T_flange_camera" if result["mount"] == "eye_in_hand" else "T_base_camera"
    rows = [[f"{value:.6f}" for value in row] for row in result["matrix"]]
    axes = ("x", "y", "z", "rx", "ry", "rz")
    units = ("mm",) * 3 + ("°",) * 3
    spread = [*result["deviations_mm"], *result["deviations_deg"]]
    places = [
        [f"{axis} ({unit})", f"{value:.4f}", f"{deviation:.4f}"]
        for axis, unit, value, deviation in zip(
            axes, units, result["camera_mm_deg"], spread, strict=True
        )
    ]
    refined = ", refined by the bundle" if result["refined"] else ""
    figures = [
        ["method", f"{result['method']}{refined}"],
        ["mount", result["mount"]],
        ["residual", f"{result['reprojection_error_mm']:.4f} mm rms"],
        ["residual of the corners", _or_none(result["reprojection_error_px"], "px rms")],
        ["poses predicted from the others", _or_none(result["held_out_mm"], "mm rms")],
        ["the worst of them", _or_none(result["held_out_largest_mm"], "mm")],
    ]
    return (
        f"<h2>{frame}, mm</h2>{_table(rows)}"
        f"<h2>The camera</h2>{_table(places, ['axis', 'value', 'standard deviation'])}"
        f"{_table(figures)}"
    )


def _checks(status: dict[str, Any]) -> str:
    if not status["checked"]:
        return ""
    rows = [
        [
            str(number),
            f"{each['distance_mm']:.4f}",
            f"{each['angle_deg']:.4f}",
            "good" if each["passed"] else "too far",
        ]
        for number, each in enumerate(status["checked"], 1)
    ]
    head = ["pose", "mm", "°", f"at most {status['tolerance_mm']:g} mm"]
    return f"<h2>Poses that were not used</h2>{_table(rows, head)}"


def _plot(poses: Sequence[dict[str, Any]]) -> str:
    """Residuals of the poses as bars."""
    known = [each["residual_mm"] for each in poses if each["residual_mm"] is not None]
    if not known:
        return ""
    top, width = max(known) or 1.0, max(24, 760 // len(known))
    bars = []
    for number, value in enumerate(known, 1):
        height = 120.0 * value / top
        x, y = 60 + (number - 1) * width, 140.0 - height
        bars.append(
            f'<rect x="{x}" y="{y:.1f}" width="{width - 6}" height="{height:.1f}" fill="#2a78b8">'
            f"<title>pose {number}: {value:.4f} mm</title></rect>"
            f'<text x="{x + (width - 6) / 2}" y="156" text-anchor="middle">{number}</text>'
        )
    full = 60 + len(known) * width
    return (
        f'<h2>Residual of each pose</h2><svg viewBox="0 0 {full} 165" width="{full}" '
        f'font-size="12" fill="#51606e" role="img">'
        f'<line x1="54" y1="20" x2="54" y2="140" stroke="#cfd8e0"/>'
        f'<line x1="54" y1="140" x2="{full}" y2="140" stroke="#cfd8e0"/>'
        f'<text x="48" y="25" text-anchor="end">{top:.3f}</text>'
        f'<text x="48" y="144" text-anchor="end">0 mm</text>{"".join(bars)}</svg>'
    )


def _coverage(rows: Sequence[dict[str, Any]]) -> str:
    cells = [
        [
            each["direction"],
            f"{each['turned_deg']:.1f}",
            "too little" if each["missing"] else "good",
        ]
        for each in rows
    ]
    return f"<h2>Turns of the flange</h2>{_table(cells, ['direction', 'largest, °', ''])}"


def _poses(poses: Sequence[dict[str, Any]]) -> str:
    head = ["pose", "flange, mm and °", "joints, °", "corners", "mm", "°", "px"]
    rows = [
        [
            str(each["number"]),
            _numbers(each["flange_mm_deg"]),
            _numbers(each["joints_deg"]),
            str(each["corners"]),
            _or_none(each["residual_mm"]),
            _or_none(each["residual_deg"]),
            _or_none(each["residual_px"]),
        ]
        for each in poses
    ]
    return f"<h2>Poses</h2>{_table(rows, head)}"


def _pictures(pictures: Sequence[str]) -> str:
    shown = [
        f'<figure><img alt="pose {number}" src="data:image/jpeg;base64,{escape(each)}">'
        f"<figcaption>pose {number}</figcaption></figure>"
        for number, each in enumerate(pictures, 1)
        if each
    ]
    return f'<h2>Pictures</h2><div class="pictures">{"".join(shown)}</div>' if shown else ""


def _messages(messages: Sequence[str]) -> str:
    rows = "".join(f"<li>{escape(each)}</li>" for each in messages)
    return f"<h2>Messages</h2><ul>{rows}</ul>" if rows else ""


def _table(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    top = "".join(f"<th>{escape(each)}</th>" for each in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(each)}</td>" for each in row) + "</tr>" for row in rows
    )
    return f"<table>{f'<tr>{top}</tr>' if top else ''}{body}</table>"


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.1f}" for value in values)


def _or_none(value: float | None, unit: str = "") -> str:
    return "—" if value is None else f"{value:.4f} {unit}".strip()
