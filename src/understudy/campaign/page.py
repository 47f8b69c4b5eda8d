"""The report of a campaign as one HTML page, with a histogram for each figure of each point."""

from collections.abc import Iterable, Sequence
from html import escape

from understudy.campaign.one_run import Outcome
from understudy.campaign.plan import Plan
from understudy.campaign.report import PointReport, Report, by_point, numbers
from understudy.html_page import STYLE, Html, bars, html_page, marked, table

BARS = 24
WIDTH, HEIGHT = 260, 90
OWN_STYLE = "text{font-size:10px;fill:#555}"


def page(plan: Plan, report: Report, outcomes: Sequence[Outcome]) -> str:
    """The HTML text."""
    by_points = zip(report.points, by_point(plan, outcomes), strict=True)
    low, high = report.between
    body = [
        f"<h1>Campaign of {escape(report.cell)}</h1>",
        f"<p>{report.passed:,} of {report.runs:,} runs passed: <b>{report.pass_rate:.2%}</b> "
        f"(95 %: {low:.2%} … {high:.2%}). {_rest(report)}Digest <code>{report.digest}</code>. "
        f"{report.robot_hours_per_core_day:,.0f} robot-hours for each core and day.</p>",
        _points(report.points),
        _failures(report),
        *(_plots(point, of_it) for point, (_, of_it) in by_points),
    ]
    return html_page(f"Campaign of {report.cell}", body, style=STYLE + OWN_STYLE)


def _rest(report: Report) -> str:
    left = report.planned - report.runs
    return f"{left:,} runs are still to do. " if left else ""


def named(point: PointReport) -> str:
    return ", ".join(f"{key} = {value}" for key, value in point.point.items()) or "all runs"


def _points(points: Iterable[PointReport]) -> str:
    rows = [
        (
            named(each),
            f"{each.runs:,}",
            marked(f"{each.pass_rate:.2%}", good=each.passed == each.runs),
            f"{each.between[0]:.2%} … {each.between[1]:.2%}",
            _problems(each),
        )
        for each in points
    ]
    return table(rows, ("point", "runs", "passed", "95 %", "problems"), figures=(1, 2, 3))


def _problems(point: PointReport) -> Html:
    counted = (f"{count:,} × {escape(text)}" for text, count in point.problems.items())
    return Html("<br>".join(counted))


def _failures(report: Report) -> str:
    if not report.failures:
        return ""
    rows = [
        (
            str(each.seed),
            each.problem,
            ", ".join(each.needed) or "none",
            Html(f"<code>{escape(each.command)}</code>"),
        )
        for each in report.failures
    ]
    found = table(rows, ("seed", "problem", "rules needed", "replay"), figures=(0,))
    return f"<h2>Smallest failures</h2>{found}"


def _plots(point: PointReport, outcomes: Sequence[Outcome]) -> str:
    plots = "".join(_plot(name, numbers(name, outcomes)) for name in point.figures)
    return f'<h2>{escape(named(point))}</h2><div class="figures">{plots}</div>'


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
    return (
        f"<figure><figcaption>{escape(name)}</figcaption>"
        f'<svg width="{WIDTH}" height="{HEIGHT + 16}" role="img" aria-label="{escape(name)}">'
        f"{bars(counts, height=HEIGHT, step=WIDTH / len(counts), gap=1.0)}"
        f'<text x="0" y="{HEIGHT + 12}">{low:g}</text>'
        f'<text x="{WIDTH}" y="{HEIGHT + 12}" text-anchor="end">{high:g}</text></svg></figure>'
    )
