"""The report of a hand-eye calibration: one HTML file with its pictures, for the browser."""

from collections.abc import Sequence
from html import escape
from typing import Any

from understudy.html_page import STYLE, UNKNOWN, Origin, bars, folded, html_page, table

OWN_STYLE = """
.pictures{display:grid;gap:.7rem;grid-template-columns:repeat(auto-fill,minmax(200px,1fr))}
img{width:100%}
"""


def report(
    status: dict[str, Any],
    *,
    title: str,
    text: str,
    pictures: Sequence[str],
    origin: Origin = UNKNOWN,
) -> str:
    """The page; ``status`` as the query `hand_eye_status` gives it, ``text``: the file."""
    parts = [
        _verdict(status),
        _result(status["result"]),
        _checks(status),
        _plot(status["poses"]),
        _coverage(status["coverage"]),
        _poses(status["poses"]),
        _pictures(pictures),
        folded("message", status["messages"]),
        f"<h2>Calibration file</h2><pre>{escape(text)}</pre>" if text else "",
    ]
    style, heading = STYLE + OWN_STYLE, f"Hand-eye calibration: {title}"
    return html_page(heading, filter(None, parts), origin=origin, style=style, pictures=True)


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
    titles = [f"pose {n}: {value:.4f} mm" for n, value in enumerate(known, 1)]
    drawn = bars(known, height=120.0, step=width, gap=6.0, left=60.0, top=20.0, titles=titles)
    numbers = "".join(
        f'<text x="{60 + n * width + (width - 6) / 2}" y="156" text-anchor="middle">{n + 1}</text>'
        for n in range(len(known))
    )
    full = 60 + len(known) * width
    return (
        f'<h2>Residual of each pose</h2><svg viewBox="0 0 {full} 165" width="{full}" '
        f'font-size="12" fill="#51606e" role="img">'
        f'<line x1="54" y1="20" x2="54" y2="140" stroke="#cfd8e0"/>'
        f'<line x1="54" y1="140" x2="{full}" y2="140" stroke="#cfd8e0"/>'
        f'<text x="48" y="25" text-anchor="end">{top:.3f}</text>'
        f'<text x="48" y="144" text-anchor="end">0 mm</text>{drawn}{numbers}</svg>'
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


def _table(rows: Sequence[Sequence[str]], head: Sequence[str] = ()) -> str:
    """A table of figures, with words in its first column."""
    return table(rows, head, figures=range(1, 10))


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.1f}" for value in values)


def _or_none(value: float | None, unit: str = "") -> str:
    return "—" if value is None else f"{value:.4f} {unit}".strip()
