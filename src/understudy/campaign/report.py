"""What came of a campaign: pass rates with their uncertainty, distributions, and the failures."""

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from understudy.campaign.one_run import Outcome
from understudy.campaign.plan import Plan
from understudy.campaign.shrink import SmallestFailure

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
    """By linear interpolation between the neighbours."""
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
    """Of all outcomes in the order of their numbers, without what they have cost."""
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
