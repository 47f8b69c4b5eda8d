"""What came of a campaign: pass rates with their uncertainty, distributions, and the failures."""

import csv
import io
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from html import escape
from shlex import quote
from typing import Any

import msgspec
from msgspec import Struct

from understudy.campaign.one_run import Outcome
from understudy.campaign.plan import Plan, PlanFile, RunSpec
from understudy.html_page import STYLE, UNKNOWN, Html, Origin, bars, html_page, marked, table

CONFIDENCE_Z = 1.959963984540054
"""Standard deviations of an interval of 95 %."""
HOUR, DAY = 3600.0, 86_400.0


class Spread(Struct, frozen=True):
    """The distribution of a figure over the runs of a point."""

    least: float
    median: float
    mean: float
    p95: float
    most: float


class PointReport(Struct, frozen=True):
    """The runs of one point of the grid. `between`: the true pass rate lies there with 95 %."""

    point: dict[str, Any]
    runs: int
    passed: int
    pass_rate: float
    between: tuple[float, float]
    problems: dict[str, int]
    figures: dict[str, Spread]


class SmallestFailure(Struct, frozen=True):
    """The failing run with the smallest seed of a point. `without`: rules that are not needed for
    it. `command`: replays it; `page`: shows it on the page."""

    seed: int
    point: dict[str, Any]
    problem: str
    without: tuple[str, ...]
    needed: tuple[str, ...]
    command: str
    page: str


class Report(Struct, frozen=True):
    """The whole campaign. `digest`: the same for the same outcomes, wherever they were computed.
    `robot_hours_per_core_day`: simulated hours of all robots, for a day of one core."""

    cell: str
    runs: int
    planned: int
    passed: int
    pass_rate: float
    between: tuple[float, float]
    digest: str
    robot_hours_per_core_day: float
    points: list[PointReport]
    failures: list[SmallestFailure]


def report_of(
    plan: Plan, outcomes: Iterable[Outcome], failures: Sequence[SmallestFailure]
) -> Report:
    ordered = sorted(outcomes, key=lambda each: each.number)
    points = [point_report(point, of_it) for point, of_it in by_point(plan, ordered)]
    passed = sum(outcome.passed for outcome in ordered)
    return Report(
        cell=plan.cell,
        runs=len(ordered),
        planned=plan.runs * len(points),
        passed=passed,
        pass_rate=passed / len(ordered) if ordered else 0.0,
        between=interval(passed, len(ordered)),
        digest=digest_of(ordered),
        robot_hours_per_core_day=throughput(ordered),
        points=points,
        failures=list(failures),
    )


def by_point(plan: Plan, outcomes: Iterable[Outcome]) -> list[tuple[dict[str, Any], list[Outcome]]]:
    """The points of the plan, each with its outcomes."""
    found: list[tuple[dict[str, Any], list[Outcome]]] = [(point, []) for point in plan.points()]
    for outcome in outcomes:
        found[outcome.number // plan.runs][1].append(outcome)
    return found


def point_report(point: dict[str, Any], outcomes: Sequence[Outcome]) -> PointReport:
    passed = sum(outcome.passed for outcome in outcomes)
    names = dict.fromkeys(name for outcome in outcomes for name in outcome.figures)
    columns = {name: numbers(name, outcomes) for name in names}
    return PointReport(
        point=point,
        runs=len(outcomes),
        passed=passed,
        pass_rate=passed / len(outcomes) if outcomes else 0.0,
        between=interval(passed, len(outcomes)),
        problems=dict(Counter(each.problem for each in outcomes if each.problem).most_common()),
        figures={name: spread(values) for name, values in columns.items() if values},
    )


def numbers(figure: str, outcomes: Iterable[Outcome]) -> list[float]:
    """The values of a figure that are numbers, in the order of the runs."""
    values = (outcome.figures.get(figure) for outcome in outcomes)
    return [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]


def spread(values: Sequence[float]) -> Spread:
    ordered = sorted(values)
    mean = math.fsum(ordered) / len(ordered)
    return Spread(ordered[0], quantile(ordered, 0.5), mean, quantile(ordered, 0.95), ordered[-1])


def quantile(ordered: Sequence[float], share: float) -> float:
    """A quantile, by linear interpolation between the neighbours."""
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def interval(passed: int, runs: int) -> tuple[float, float]:
    """Wilson's interval of 95 % for the pass rate; it holds for few runs and rare failures, too."""
    if runs == 0:
        return 0.0, 1.0
    share, z2 = passed / runs, CONFIDENCE_Z**2
    middle = share + z2 / (2 * runs)
    width = CONFIDENCE_Z * math.sqrt(share * (1 - share) / runs + z2 / (4 * runs * runs))
    scale = 1 + z2 / runs
    return max((middle - width) / scale, 0.0), min((middle + width) / scale, 1.0)


def digest_of(outcomes: Iterable[Outcome]) -> str:
    """The digest of all outcomes in the order of their numbers, without what they have cost."""
    whole = sha256()
    for outcome in sorted(outcomes, key=lambda each: each.number):
        whole.update(msgspec.json.encode(outcome.without_cost(), order="deterministic"))
    return whole.hexdigest()[:16]


def throughput(outcomes: Iterable[Outcome]) -> float:
    hours = cost = 0.0
    for outcome in outcomes:
        simulated = outcome.figures["simulated_s"]
        hours += (simulated if isinstance(simulated, float) else 0.0) * outcome.robots / HOUR
        cost += outcome.cpu_s
    return hours / cost * DAY if cost else 0.0


# ── files ───────────────────────────────────────────────────────────────────────────────────────


def as_json(report: Report) -> bytes:
    return msgspec.json.format(msgspec.json.encode(report)) + b"\n"


def as_csv(plan: Plan, outcomes: Iterable[Outcome]) -> str:
    """A row for each run: number, seed, the values of the grid, the outcome and its figures."""
    ordered = sorted(outcomes, key=lambda each: each.number)
    names = list(dict.fromkeys(name for outcome in ordered for name in outcome.figures))
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["run", "seed", *plan.grid, "passed", "problem", *names])
    for each in ordered:
        values = [each.point.get(key) for key in plan.grid]
        figures = [each.figures.get(name) for name in names]
        rows.writerow([each.number, each.seed, *values, each.passed, each.problem, *figures])
    return text.getvalue()


# ── the smallest way to a failure ─────────────────────────────────────────────────────────────────
#
# The smallest seed at each point of the grid, with as few rules as possible.


Carry = Callable[[RunSpec], Outcome]


def smallest_failures(
    planned: PlanFile, outcomes: Iterable[Outcome], carry_out: Carry
) -> list[SmallestFailure]:
    """One for each point of the grid that has failures; rules are removed one by one."""
    first: dict[bytes, Outcome] = {}
    for outcome in sorted(outcomes, key=lambda each: each.number):
        if not outcome.passed:
            first.setdefault(msgspec.json.encode(outcome.point), outcome)
    return [_smallest(planned, outcome, carry_out) for outcome in first.values()]


def left_out(names: Sequence[str], fails: Callable[[tuple[str, ...]], bool]) -> tuple[str, ...]:
    """Names without which a run still fails: tried in halves first, then one by one."""
    without: tuple[str, ...] = ()
    size = max(len(names) // 2, 1)
    while names:
        for at in range(0, len(names), size):
            tried = (*without, *(name for name in names[at : at + size] if name not in without))
            if len(tried) > len(without) and fails(tried):
                without = tried
        if size == 1:
            break
        size = -(-size // 2)
    return without


def _smallest(planned: PlanFile, failed: Outcome, carry_out: Carry) -> SmallestFailure:
    spec = RunSpec(failed.number, failed.seed, failed.point)
    rules = tuple(planned.config(spec).head.scenario.rules)
    problem = failed.problem

    def fails(tried: tuple[str, ...]) -> bool:
        nonlocal problem
        outcome = carry_out(msgspec.structs.replace(spec, without=tried))
        if not outcome.passed:
            problem = outcome.problem
        return not outcome.passed

    without = left_out(rules, fails)
    needed = tuple(name for name in rules if name not in without)
    command = replay_command(planned.file, failed.seed, failed.point, without)
    return SmallestFailure(
        failed.seed, failed.point, problem, without, needed, command, on_page(command)
    )


def replay_command(file: str, seed: int, point: dict[str, Any], without: Iterable[str] = ()) -> str:
    """The command line that carries out one run again and prints what comes of it."""
    words = ["understudy", "campaign", quote(file), "--only", str(seed)]
    for key, value in point.items():
        words += ["--point", quote(f"{key}={msgspec.json.encode(value).decode()}")]
    for name in without:
        words += ["--without", quote(name)]
    return " ".join(words)


def on_page(command: str) -> str:
    """The command line that shows the same run in a live cell."""
    return f"{command} --open"


# ── the report as an HTML page, with a histogram for each figure of each point ────────────────────


BARS = 24
MOST_FAILURES = 2000
"""Failing runs in the table; the CSV has all of them."""
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 300, 130, 46, 8, 40
"""Size of a histogram, and what is around it for the axes."""
OWN_STYLE = """text{font-size:11px;fill:#51606e}.axis{stroke:#94a3b8}.grid{stroke:#e2e8f0}
.commands{min-width:36rem}.commands code{display:block;margin:.15rem 0;font-size:.85em;
user-select:all}details{overflow-x:auto}
"""
UNITS = {"s": "s", "ms": "ms", "mm": "mm", "m": "m", "deg": "°", "rad": "rad", "percent": "%"}
UNITS |= {"mps": "m/s", "nm": "Nm", "n": "N", "a": "A", "v": "V"}
"""The last part of a figure's name → the unit on its axis."""
MARKS = [factor * 10.0**power for power in range(-9, 13) for factor in (1.0, 2.0, 5.0)]


def page(
    planned: PlanFile, report: Report, outcomes: Sequence[Outcome], origin: Origin = UNKNOWN
) -> str:
    """The HTML text."""
    by_points = zip(report.points, by_point(planned.plan, outcomes), strict=True)
    low, high = report.between
    left = report.planned - report.runs
    rest = f"{left:,} runs are still to do. " if left else ""
    body = [
        f"<p>{report.passed:,} of {report.runs:,} runs passed: <b>{report.pass_rate:.2%}</b> "
        f"(95 %: {low:.2%} … {high:.2%}). {rest}Digest <code>{report.digest}</code>. "
        f"{report.robot_hours_per_core_day:,.0f} robot-hours for each core and day.</p>",
        _points(report.points),
        _smallest_failures(report),
        _failing_runs(planned.file, outcomes),
        *(_plots(point, of_it) for point, (_, of_it) in by_points),
    ]
    title = f"Campaign of {report.cell}"
    return html_page(title, body, origin=origin, style=STYLE + OWN_STYLE)


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


def _smallest_failures(report: Report) -> str:
    if not report.failures:
        return ""
    rows = [
        (str(each.seed), each.problem, ", ".join(each.needed) or "none", _commands(each.command))
        for each in report.failures
    ]
    head = ("seed", "problem", "rules needed", COMMANDS_HEAD)
    return f"<h2>Smallest failures</h2>{table(rows, head, figures=(0,))}"


COMMANDS_HEAD = "again headless; on the page"


def _commands(command: str) -> Html:
    codes = "".join(f"<code>{escape(each)}</code>" for each in (command, on_page(command)))
    return Html(f'<div class="commands">{codes}</div>')


def _failing_runs(file: str, outcomes: Iterable[Outcome]) -> str:
    """Every run that failed, folded where they are many."""
    failed = sorted((each for each in outcomes if not each.passed), key=lambda each: each.number)
    if not failed:
        return ""
    rows = [
        (
            str(each.seed),
            each.problem,
            _commands(replay_command(file, each.seed, each.point)),
        )
        for each in failed[:MOST_FAILURES]
    ]
    left = len(failed) - len(rows)
    more = f"<p>{left:,} more are in the CSV file.</p>" if left else ""
    shown = table(rows, ("seed", "problem", COMMANDS_HEAD), figures=(0,))
    is_open = " open" if len(failed) <= 10 else ""
    return (
        f"<details{is_open}><summary>{len(failed):,} failing runs</summary>{shown}{more}</details>"
    )


def _plots(point: PointReport, outcomes: Sequence[Outcome]) -> str:
    """A histogram for each figure that differs between the runs, and the others in a table."""
    columns = {name: numbers(name, outcomes) for name in point.figures}
    same = {name: values for name, values in columns.items() if min(values) == max(values)}
    plots = "".join(_plot(name, values) for name, values in columns.items() if name not in same)
    rows = [(name, f"{values[0]:g} {unit_of(name)}".strip()) for name, values in same.items()]
    constant = f"{table(rows, ('the same in all runs', ''), figures=(1,))}" if rows else ""
    return f'<h2>{escape(named(point))}</h2><div class="figures">{plots}</div>{constant}'


def unit_of(name: str) -> str:
    """The unit in the name of a figure, `distance_mm`; empty for a count."""
    return UNITS.get(name.rpartition("_")[2], "") if "_" in name else ""


def histogram(values: Sequence[float], bars: int = BARS) -> tuple[float, float, list[int]]:
    """Lowest and highest value, and how many lie in each of the equal parts between them."""
    low, high = min(values), max(values)
    counts = [0] * (bars if high > low else 1)
    for value in values:
        place = int((value - low) / (high - low) * bars) if high > low else 0
        counts[min(place, len(counts) - 1)] += 1
    return low, high, counts


def round_marks(low: float, high: float, most: int) -> list[float]:
    """At most this many round values in a range, equally far from each other."""
    step = next((step for step in MARKS if (high - low) / step <= most - 1), high - low)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [n * step for n in range(first, last + 1)]


def _plot(name: str, values: Sequence[float]) -> str:
    """Axes with round figures: the values with their unit across, the number of runs up."""
    low, high, counts = histogram(values)
    most, unit = max(counts), unit_of(name)
    foot, right = TOP + HEIGHT, LEFT + WIDTH
    parts = []
    for count in (round(each) for each in round_marks(0, most, 4) if each == round(each)):
        y = foot - HEIGHT * count / most
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>')
        parts.append(f'<text x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{count:,}</text>')
    for value in round_marks(low, high, 6):
        x = LEFT + WIDTH * (value - low) / (high - low)
        parts.append(f'<path class="axis" d="M{x:.1f} {foot}v4"/>')
        parts.append(f'<text x="{x:.1f}" y="{foot + 16}" text-anchor="middle">{value:.10g}</text>')
    label = f"{name} in {unit}" if unit else name
    step = (high - low) / len(counts)
    titles = [
        f"{low + n * step:.5g} … {low + (n + 1) * step:.5g} {unit}: {count:,} runs"
        for n, count in enumerate(counts)
    ]
    drawn = bars(
        counts, height=HEIGHT, step=WIDTH / len(counts), gap=1.0, left=LEFT, top=TOP, titles=titles
    )
    return (
        f'<figure><svg width="{right + 24}" height="{foot + BOTTOM}" role="img" '
        f'aria-label="{escape(label)}">{"".join(parts)}{drawn}'
        f'<path class="axis" fill="none" d="M{LEFT} {TOP}V{foot}H{right}"/>'
        f'<text x="{LEFT + WIDTH / 2:g}" y="{foot + 33}" text-anchor="middle">{escape(label)}'
        "</text>"
        f'<text x="12" y="{TOP + HEIGHT / 2:g}" text-anchor="middle" '
        f'transform="rotate(-90 12 {TOP + HEIGHT / 2:g})">runs</text></svg></figure>'
    )
