"""The report of a campaign as one HTML page, with a histogram for each figure of each point.

The page is one file without references to other files and without scripts.
"""

from collections.abc import Iterable, Sequence
from html import escape

from understudy.campaign.one_run import Outcome
from understudy.campaign.plan import Plan
from understudy.campaign.report import PointReport, Report, by_point, numbers
from understudy.page_policy import policy_meta

BARS = 24
WIDTH, HEIGHT = 260, 90
STYLE = """
body { font: 15px/1.4 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem;
  color: #1b1f24; background: #fff; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; } td, th { padding: .2rem .7rem; text-align: left;
  border-bottom: 1px solid #ddd; vertical-align: top; } td.n, th.n { text-align: right; }
code { background: #f1f3f5; padding: .1rem .3rem; overflow-wrap: anywhere; }
.bar { fill: #2f6fb0; } .plots { display: flex; flex-wrap: wrap; gap: 1.2rem; }
figure { margin: 0; } figcaption { font-size: .85rem; } text { font-size: 10px; fill: #555; }
.good { color: #1a7f37; } .bad { color: #b42318; }
"""


def page(plan: Plan, report: Report, outcomes: Sequence[Outcome]) -> str:
    """The HTML text."""
    by_points = zip(report.points, by_point(plan, outcomes), strict=True)
    low, high = report.between
    body = [
        f"<h1>Campaign of {escape(report.cell)}</h1>",
        f"<p>{report.passed:,} of {report.runs:,} runs passed: <b>{report.pass_rate:.2%}</b> "
        f"(95 %: {low:.2%} … {high:.2%}). {_rest(report)}Digest <code>{report.digest}</code>. "
        f"{report.robot_hours_per_core_day:,.0f} robot-hours for each core and day.</p>",
        _table(report.points),
        _failures(report),
        *(_plots(point, of_it) for point, (_, of_it) in by_points),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"{policy_meta(scripts=[], styles=[STYLE])}"
        '<meta name="viewport" content="width=device-width">'
        f"<title>Campaign of {escape(report.cell)}</title><style>{STYLE}</style></head>\n"
        f"<body>{''.join(body)}</body></html>\n"
    )


def _rest(report: Report) -> str:
    left = report.planned - report.runs
    return f"{left:,} runs are still to do. " if left else ""


def named(point: PointReport) -> str:
    return ", ".join(f"{key} = {value}" for key, value in point.point.items()) or "all runs"


def _table(points: Iterable[PointReport]) -> str:
    rows = "".join(
        f"<tr><td>{escape(named(each))}</td><td class=n>{each.runs:,}</td>"
        f'<td class="n {"good" if each.passed == each.runs else "bad"}">{each.pass_rate:.2%}</td>'
        f"<td class=n>{each.between[0]:.2%} … {each.between[1]:.2%}</td>"
        f"<td>{_problems(each)}</td></tr>"
        for each in points
    )
    return (
        "<table><thead><tr><th>point</th><th class=n>runs</th><th class=n>passed</th>"
        f"<th class=n>95 %</th><th>problems</th></tr></thead><tbody>{rows}</tbody></table>"
    )


def _problems(point: PointReport) -> str:
    return "<br>".join(f"{count:,} × {escape(text)}" for text, count in point.problems.items())


def _failures(report: Report) -> str:
    if not report.failures:
        return ""
    rows = "".join(
        f"<tr><td class=n>{each.seed}</td><td>{escape(each.problem)}</td>"
        f"<td>{escape(', '.join(each.needed) or 'none')}</td>"
        f"<td><code>{escape(each.command)}</code></td></tr>"
        for each in report.failures
    )
    return (
        "<h2>Smallest failures</h2><table><thead><tr><th class=n>seed</th><th>problem</th>"
        f"<th>rules needed</th><th>replay</th></tr></thead><tbody>{rows}</tbody></table>"
    )


def _plots(point: PointReport, outcomes: Sequence[Outcome]) -> str:
    plots = "".join(_plot(name, numbers(name, outcomes)) for name in point.figures)
    return f'<h2>{escape(named(point))}</h2><div class="plots">{plots}</div>'


def histogram(values: Sequence[float], bars: int = BARS) -> tuple[float, float, list[int]]:
    """Lowest and highest value, and how many lie in each of the equal parts between them."""
    low, high = min(values), max(values)
    counts = [0] * (bars if high > low else 1)
    for value in values:
        place = int((value - low) / (high - low) * bars) if high > low else 0
        counts[min(place, len(counts) - 1)] += 1
    return low, high, counts


def _plot(name: str, values: Sequence[float]) -> str:
    low, high, counts = histogram(values)
    wide, tallest = WIDTH / len(counts), max(counts)
    bars = "".join(
        f'<rect class="bar" x="{n * wide:.1f}" y="{HEIGHT * (1 - count / tallest):.1f}" '
        f'width="{max(wide - 1, 1):.1f}" height="{HEIGHT * count / tallest:.1f}"/>'
        for n, count in enumerate(counts)
        if count
    )
    return (
        f"<figure><figcaption>{escape(name)}</figcaption>"
        f'<svg width="{WIDTH}" height="{HEIGHT + 16}" role="img" aria-label="{escape(name)}">'
        f'{bars}<text x="0" y="{HEIGHT + 12}">{low:g}</text>'
        f'<text x="{WIDTH}" y="{HEIGHT + 12}" text-anchor="end">{high:g}</text></svg></figure>'
    )
