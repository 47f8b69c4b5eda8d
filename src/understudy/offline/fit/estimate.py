"""Estimates of parameters from reported positions, with intervals.

For every report the planned motion gives the time at which it passes the reported position. The
difference from the recorded time is the residual, in seconds:

    position │        ╱ planned, begun at an unknown time
             │   ×   ╱
             │      ╱·×·┤ residual: the time of the report less the time of passing
             │    ╱
             └──────────────▶ time

Its error is the jitter of the reports, and their rounding divided by the speed. The begin of each
motion is unknown and eliminated. Gauss-Newton on the logarithms of the parameters, with numeric
derivatives and weights that drop outliers (Tukey's), finds the values. Their covariance is that of
the linearised model, or that of the motions taken as clusters if it is larger.
"""

import math
from dataclasses import dataclass, replace
from itertools import product
from statistics import NormalDist, fmean, stdev
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.motion.path import Floats
from understudy.offline.fit import Keys, Measured, Motion, Motions, Parameter, Recorded

CONFIDENCE = 0.99
"""Probability that all intervals of a fit hold together."""
MODEL_SHARE = 1e-3
"""Half of the narrowest interval, as a share: the planner's own distance from the firmware."""
VISIBLE_SHARE = 0.1
"""Half of the widest interval, as a share, of a parameter that counts as visible."""
GRID = 5e-3
"""Seconds between the samples of a planned motion."""
NEAR = 0.1
"""Seconds around the expected time in which a reported position is looked for."""
ASIDE = 0.5
"""Distance from a motion, in steps between its samples, at which a report still lies on it."""
BACKWARDS = 0.2
"""Share of the time between two reports by which the second may be passed before the first."""
MISSED = 4.0
"""Cost of a report that lies on no motion."""
ROUGH = 10e-3
"""Jitter (s) that is assumed until the search has nearly settled; nothing is an outlier then."""
SETTLED_ROUGHLY = 5e-3
SLOWEST_S = 3e-3
"""Seconds that the rounding of a report may stand for; slower motion tells nothing."""
SLOW_SHARE = 0.05
"""Share of the usual speed of a motion below which the time of a place is too uncertain."""
STEP = 1e-4
"""Step of the numeric derivatives, in the logarithm."""
LONGEST_STEP = 0.7
MOST_ROUNDS = 30
SETTLED = 2e-5
PRIOR = 1.5
"""Standard deviation of the logarithms before the recording: a factor of 4.5."""
SCALES = (0.35, 0.6, 1.0, 1.7, 2.9)
MOST_STARTS = 5
LARGE_JITTER = 5e-3
MANY_OUTLIERS = 0.1
"""Jitter (s) and share of outliers from which on the search begins again elsewhere."""
TUKEY, HUBER = 4.7, 1.5
"""Standard deviations from which on a report is an outlier, or counts less."""
LEAST_JITTER = 1e-5
FEWEST = 3
"""Measurements that an interval needs."""
MORE_MEASURED = 8
"""Measurements after the fit, at most, among which the confidence is divided."""
Flags = NDArray[np.bool_]


class Estimate(NamedTuple):
    """A figure and its interval. `visible`: the recording shows it. `at_least`: the lower bound of
    a limit that no motion reached."""

    keys: Keys
    meaning: str
    unit: str
    value: float
    low: float
    high: float
    visible: bool
    seen_from: str
    at_least: float | None = None

    @property
    def key(self) -> str:
        return ".".join(map(str, self.keys))

    @property
    def width(self) -> float:
        """Width of the interval, as a share of the value."""
        return (self.high - self.low) / abs(self.value) if self.value else math.inf


@dataclass(frozen=True)
class Fit:
    """All estimates from a recording. `jitter_s`: standard deviation of the times of reports."""

    estimates: tuple[Estimate, ...]
    reports: int = 0
    motions: int = 0
    jitter_s: float = 0.0
    left_out: int = 0
    notes: tuple[str, ...] = ()

    @property
    def visible(self) -> tuple[Estimate, ...]:
        return tuple(each for each in self.estimates if each.visible)


def fit(recorded: Recorded) -> Fit:
    """The estimates of everything that the recording of a robot shows."""
    known = tuple(
        Estimate(p.keys, p.meaning, p.unit, value, value, value, True, "its value in the recording")
        for p, value in recorded.known
    )
    motions, measured = recorded.motions, recorded.measured
    shaping = len(motions.parameters) if motions else 0
    factor = _factor(shaping + len(measured) + MORE_MEASURED)
    found = Fit(())
    if motions is not None and len(motions.reports.time):
        search = _Search(motions)
        found = search.result(factor)
        if recorded.simpler and not any(e.keys in recorded.doubtful for e in found.visible):
            return fit(recorded.simpler)
        measured += recorded.after_fit(search.begins, search.ends)
    elif motions is not None:
        found = Fit(tuple(map(_not_seen, motions.parameters)))
    direct = tuple(measured_estimate(each, factor) for each in measured)
    absent = tuple(map(_not_seen, recorded.absent))
    return replace(
        found, estimates=(*known, *found.estimates, *direct, *absent), notes=recorded.notes
    )


def _factor(count: int) -> float:
    """Half-width of an interval in standard deviations, so that ``count`` intervals hold together
    with the confidence."""
    return NormalDist().inv_cdf(1.0 - (1.0 - CONFIDENCE) / (2.0 * max(count, 1)))


def _student(factor: float, freedom: int) -> float:
    """The factor of Student's distribution for one of the normal distribution, by the first terms
    of Cornish and Fisher; few measurements make it large."""
    n, z = max(freedom, 1), factor
    terms = (
        (z**3 + z) / 4.0,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96.0,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384.0,
    )
    return float(z + sum(term / n ** (k + 1) for k, term in enumerate(terms)))


def measured_estimate(measured: Measured, factor: float) -> Estimate:
    """The mean of measurements without outliers; a single one is not enough for an interval."""
    about, values = measured[:3], sorted(measured.values)
    if not values:
        return Estimate(*about, 0.0, 0.0, math.inf, False, NOT_VISIBLE)
    middle = values[len(values) // 2]
    spread = sorted(abs(value - middle) for value in values)[len(values) // 2] * 1.4826
    kept = [v for v in values if abs(v - middle) <= TUKEY * spread] or values
    mean = fmean(kept)
    seen = f"{len(values)} {measured.seen_from}"
    if len(kept) < FEWEST:
        return Estimate(*about, mean, 0.0, math.inf, False, f"only {seen}: too few")
    half = _student(factor, len(kept) - 1) * stdev(kept) / math.sqrt(len(kept))
    step = measured.step
    if step and half < 0.5 * step:
        # The robot waits for whole steps: the figure lies in the step that ends there.
        top = round(mean / step) * step
        return Estimate(*about, top, max(top - step, 0.0), top, True, seen)
    half = max(half, MODEL_SHARE * abs(mean))
    if measured.whole:
        # The mean may lie between two numbers; then both of them stay in the interval.
        value = float(round(mean))
        half += abs(value - mean)
        low, high = math.ceil(value - half), math.floor(value + half)
        return Estimate(*about, value, low, high, True, seen)
    return Estimate(*about, mean, mean - half, mean + half, True, seen)


def _not_seen(parameter: Parameter) -> Estimate:
    found = (parameter.keys, parameter.meaning, parameter.unit, parameter.start)
    return Estimate(*found, 0.0, math.inf, False, NOT_VISIBLE)


NOT_VISIBLE = "not visible in this recording"


# ── search ──────────────────────────────────────────────────────────────────────────────────────


class _Match(NamedTuple):
    """For each report: the time of passing since the begin of its motion, the velocity there, the
    residual (s) and its standard deviation without jitter; `used`: it tells something."""

    passing: Floats
    velocity: Floats
    residual: Floats
    rounding: Floats
    used: Flags


class _Search:
    """Gauss-Newton over the parameters of the motions of a recording."""

    def __init__(self, motions: Motions) -> None:
        self._motions = motions
        self._axes = np.ptp(motions.reports.position, axis=0) > 0.0
        self._reports = replace(
            motions.reports,
            position=motions.reports.position[:, self._axes],
            quantum=motions.reports.quantum[self._axes],
        )
        self._of: list[NDArray[np.int64]] = [
            np.flatnonzero(self._reports.motion == k) for k in range(len(motions.begins))
        ]
        self.begins = motions.begins.copy()
        self._parameters = motions.parameters
        self._jitter: float = ROUGH
        self._rough = True
        self._share = np.full(len(self._reports.time), np.nan)
        self._low = np.log([each.least for each in self._parameters])
        self._high = np.log([each.most for each in self._parameters])
        self._start = np.log([each.start for each in self._parameters])
        self.ends = self.begins.copy()

    def result(self, factor: float) -> Fit:
        x = self._best_descent()
        match = self._matched(x)
        planned = self._motions.planned(np.exp(x).tolist())
        self.ends = self.begins + [motion.duration for motion in planned]
        weights = self._weights(match)
        jacobian = self._jacobian(x, match)
        rows, residual = self._rows(match, jacobian, weights)
        covariance = self._covariance(rows, residual)
        freedom = max(int(weights.astype(bool).sum()) - len(x) - len(self._of), 1)
        factor = _student(factor, freedom)
        estimates = [
            self._estimate(k, x, jacobian, covariance, factor, match)
            for k, each in enumerate(self._parameters)
            if each.meaning
        ]
        used = int((weights > 0.0).sum())
        moving = len({int(k) for k in self._reports.motion[weights > 0.0]})
        left = int(match.used.sum()) - used
        return Fit(tuple(estimates), used, moving, self._jitter, left)

    def _estimate(
        self,
        k: int,
        x: Floats,
        jacobian: Floats,
        covariance: Floats,
        factor: float,
        match: _Match,
    ) -> Estimate:
        parameter, value = self._parameters[k], float(np.exp(x[k]))
        half = max(factor * math.sqrt(covariance[k, k]), MODEL_SHARE)
        about = (parameter.keys, parameter.meaning, parameter.unit)
        at_end = x[k] + half >= self._high[k] or x[k] - half <= self._low[k]
        if half > VISIBLE_SHARE or at_end:
            floor = value if parameter.limit else None
            return Estimate(*about, parameter.start, 0.0, math.inf, False, NOT_VISIBLE, floor)
        acts = np.abs(jacobian[:, k]) > 0.05 * np.abs(jacobian[:, k]).max()
        acts &= match.used
        motions = len(set(self._reports.motion[acts].tolist()))
        seen = f"{int(acts.sum())} reports in {motions} motion{'s' * (motions != 1)}"
        return Estimate(*about, value, value * math.exp(-half), value * math.exp(half), True, seen)

    def _best_descent(self) -> Floats:
        """The values with the least residuals. If they or many of them stay large, the search began
        too far away, and begins again at the next best start."""
        found = []
        for number, (x, shares) in enumerate(self._starts()[:MOST_STARTS]):
            self._share, self.begins = shares, self._motions.begins.copy()
            self._jitter, self._rough = ROUGH, True
            x = self._descended(x)
            match = self._matched(x)
            outliers = int(match.used.sum()) - np.count_nonzero(self._weights(match))
            error = float(np.abs(match.residual[match.used]).mean()) if match.used.any() else 0.0
            found.append((error, number, x, shares, self.begins, self._jitter))
            if self._jitter < LARGE_JITTER and outliers <= MANY_OUTLIERS * match.used.sum():
                break
        best = min(found, key=lambda each: each[:2])
        *_, x, self._share, self.begins, self._jitter = best
        return x

    def _starts(self) -> list[tuple[Floats, Floats]]:
        """Start values with common factors of the scaled parameters, and where on their way the
        reports were taken then; the best alignment first."""
        orders = sorted({p.order for p in self._parameters if p.scaled})
        found = []
        for number, scales in enumerate(product(SCALES, repeat=len(orders))):
            factor = dict(zip(orders, scales, strict=True))
            of_each = [factor[p.order] if p.scaled else 1.0 for p in self._parameters]
            x = np.clip(self._start + np.log(of_each), self._low, self._high)
            cost, shares = 0.0, np.full(len(self._reports.time), np.nan)
            for k, motion in enumerate(self._motions.planned(np.exp(x).tolist())):
                own, shares[self._of[k]] = self._way(k, motion)
                cost += own
            found.append((cost, number, x, shares))
        return [(x, shares) for _, _, x, shares in sorted(found, key=lambda each: each[:2])]

    def _way(self, number: int, motion: Motion) -> tuple[float, Floats]:
        """The cost of the best alignment of the reports of a motion, and the share of its way at
        which each was taken; nan for a report that is not on it."""
        rows = self._of[number]
        if not len(rows) or motion.duration <= 0.0:
            return 0.0, np.full(len(rows), np.nan)
        grid, points = self._sampled(motion)
        cost, when = aligned(
            grid,
            points,
            self._reports.position[rows],
            self._reports.time[rows],
            self._reports.quantum,
        )
        return cost, np.interp(when, grid, _way_of(points))

    def _sampled(self, motion: Motion) -> tuple[Floats, Floats]:
        grid = np.linspace(0.0, motion.duration, max(int(motion.duration / GRID), 2) + 1)
        return grid, motion.positions(grid)[:, self._axes]

    def _descended(self, x: Floats) -> Floats:
        """The values with the least weighted residuals."""
        for _ in range(MOST_ROUNDS):
            match = self._matched(x)
            rows, residual = self._rows(match, self._jacobian(x, match), self._weights(match))
            information = rows.T @ rows + np.eye(len(x)) / PRIOR**2
            step = np.linalg.solve(information, rows.T @ residual + (self._start - x) / PRIOR**2)
            x, moved = self._shortened(x, np.clip(step, -LONGEST_STEP, LONGEST_STEP), match)
            if self._rough and moved < SETTLED_ROUGHLY:
                self._rough = False
            elif moved < SETTLED and not self._rough:
                break
        return x

    def _shortened(self, x: Floats, step: Floats, match: _Match) -> tuple[Floats, float]:
        """The next values: as much of a step as lowers the cost."""
        before, begins = self._cost(match, x), self.begins.copy()
        for _ in range(6):
            trial = np.clip(x + step, self._low, self._high)
            found = self._matched(trial)
            if self._cost(found, trial) <= before * (1.0 + 1e-9):
                return trial, float(np.abs(trial - x).max(initial=0.0))
            step = 0.4 * step
            self.begins = begins.copy()
        return x, 0.0

    # ── residuals ──

    def _matched(self, x: Floats) -> _Match:
        """Finds each report on the planned motion, and the begins of the motions."""
        reports = self._reports
        planned = self._motions.planned(np.exp(x).tolist())
        passing, rounding = np.zeros(len(reports.time)), np.full(len(reports.time), np.inf)
        velocity = np.zeros_like(reports.position)
        for k, of in enumerate(self._of):
            rows = of[np.isfinite(self._share[of])]
            if not len(rows) or planned[k].duration <= 0.0:
                continue
            grid, points = self._sampled(planned[k])
            expected = np.interp(self._share[rows], _way_of(points), grid)
            passing[rows], velocity[rows] = _passing_times(
                grid, points, reports.position[rows], reports.quantum, expected
            )
            speed = np.linalg.norm(velocity[rows], axis=1)
            rounding[rows] = np.where(
                speed > SLOW_SHARE * np.median(speed),
                _rounding(velocity[rows], reports.quantum),
                np.inf,
            )
            late = reports.time[rows] - passing[rows]
            usable = rounding[rows] < SLOWEST_S
            if usable.any():
                weight = 1.0 / (self._jitter**2 + rounding[rows][usable] ** 2)
                self.begins[k] = _centre(late[usable], weight)
        residual = reports.time - passing - self.begins[reports.motion]
        return _Match(passing, velocity, residual, rounding, rounding < SLOWEST_S)

    def _weights(self, match: _Match) -> Floats:
        """Inverse variances, 0 for outliers; estimates the jitter of the reports."""
        sharp = match.used & (match.rounding <= np.median(match.rounding[match.used]))
        late = np.abs(match.residual[sharp])
        if len(late) >= FEWEST:
            usual = float(np.median(late)) * 1.4826
            own = float(np.median(match.rounding[sharp]))
            least: float = ROUGH if self._rough else LEAST_JITTER
            self._jitter = max(math.sqrt(max(usual**2 - own**2, 0.0)), least)
        sigma = np.hypot(self._jitter, match.rounding)
        size = np.abs(match.residual) / sigma
        if self._rough:
            robust = HUBER / np.maximum(size, HUBER)
        else:
            robust = np.maximum(1.0 - (size / TUKEY) ** 2, 0.0) ** 2
        return np.asarray(np.where(match.used, robust / sigma**2, 0.0))

    def _cost(self, match: _Match, x: Floats) -> float:
        """The loss that belongs to the weights, with the present jitter, and the prior."""
        size = (np.abs(match.residual) / np.hypot(self._jitter, match.rounding))[match.used]
        if self._rough:
            loss = np.where(size < HUBER, 0.5 * size**2, HUBER * (size - 0.5 * HUBER))
        else:
            share = np.minimum(size / TUKEY, 1.0)
            loss = TUKEY**2 / 6.0 * (1.0 - (1.0 - share**2) ** 3) + np.log1p(size * 1e-3)
        return float(loss.sum()) + 0.5 * float(((x - self._start) ** 2).sum()) / PRIOR**2

    def _jacobian(self, x: Floats, match: _Match) -> Floats:
        """(reports, parameters): how much later a report is passed, for the logarithms."""
        found = np.zeros((len(match.passing), len(x)))
        base = self._positions(x, match.passing)
        square = np.maximum((match.velocity**2).sum(axis=1), 1e-300)
        for k in range(len(x)):
            there = x.copy()
            there[k] += STEP
            ahead = self._positions(there, match.passing) - base
            found[:, k] = -(ahead * match.velocity).sum(axis=1) / square / STEP
        found[~match.used] = 0.0
        return found

    def _positions(self, x: Floats, times: Floats) -> Floats:
        found = np.zeros_like(self._reports.position)
        for rows, motion in zip(self._of, self._motions.planned(np.exp(x).tolist()), strict=True):
            if len(rows):
                found[rows] = motion.positions(times[rows])[:, self._axes]
        return found

    def _rows(self, match: _Match, jacobian: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Whitened rows and residuals, without what the begins of the motions explain."""
        root = np.sqrt(weights)
        rows, residual = jacobian * root[:, None], match.residual * root
        for of in self._of:
            unit = root[of]
            square = float(unit @ unit)
            if square > 0.0:
                rows[of] -= np.outer(unit, unit @ rows[of]) / square
                residual[of] -= unit * float(unit @ residual[of]) / square
        return rows, residual

    def _covariance(self, rows: Floats, residual: Floats) -> Floats:
        """Of the logarithms: the larger of that of independent reports and that of motions as
        clusters, for each parameter."""
        information = rows.T @ rows + np.eye(rows.shape[1]) / PRIOR**2
        inverse = np.linalg.inv(information)
        used = int((np.abs(rows).sum(axis=1) + np.abs(residual) > 0.0).sum())
        scale = float(residual @ residual) / max(used - rows.shape[1] - len(self._of), 1)
        plain = inverse * max(scale, 1.0)
        scores = np.array([rows[of].T @ residual[of] for of in self._of if len(of)])
        if len(scores) <= rows.shape[1]:
            return np.asarray(plain)
        clustered = inverse @ (scores.T @ scores) @ inverse
        clustered *= len(scores) / (len(scores) - 1.0)
        larger = np.maximum(np.diag(plain), np.diag(clustered))
        np.fill_diagonal(plain, larger)
        return np.asarray(plain)


def _rounding(velocity: Floats, quantum: Floats) -> Floats:
    """Standard deviation in seconds that the rounding of the positions stands for."""
    square = np.maximum((velocity**2).sum(axis=1), 1e-300)
    along = np.linalg.norm(velocity * quantum, axis=1)
    return np.asarray(along / math.sqrt(12.0) / square)


def _way_of(points: Floats) -> Floats:
    """The share of the whole way at each sample; increases strictly."""
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1) + 1e-9
    way = np.concatenate([[0.0], np.cumsum(steps)])
    return np.asarray(way / way[-1])


def _passing_times(
    grid: Floats, points: Floats, seen: Floats, quantum: Floats, expected: Floats
) -> tuple[Floats, Floats]:
    """When a sampled motion passes reported positions, near the expected times, and its velocity
    there."""
    begin, way = points[:-1], np.diff(points, axis=0)
    step = grid[1] - grid[0]
    square = np.maximum((way**2).sum(axis=1), 1e-300)
    reach = int(NEAR / step) + 1
    window = min(2 * reach + 1, len(way))
    middle = np.clip((expected / step).astype(int), 0, len(way) - 1)
    at = np.clip(middle - reach, 0, len(way) - window)[:, None] + np.arange(window)[None, :]
    from_begin = seen[:, None, :] - begin[at]
    share = np.clip((from_begin * way[at]).sum(axis=2) / square[at], 0.0, 1.0)
    aside = (from_begin - share[:, :, None] * way[at]) / (3.0 * quantum)
    when = grid[at] + share * step
    cost = (aside**2).sum(axis=2) + ((when - expected[:, None]) / NEAR) ** 2
    rows, best = np.arange(len(seen)), np.argmin(cost, axis=1)
    return when[rows, best], way[at[rows, best]] / step


def _centre(values: Floats, weights: Floats) -> float:
    """Weighted mean of what is near the weighted median."""
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    middle = float(values[order][np.searchsorted(total, 0.5 * total[-1])])
    near = np.abs(values - middle) <= TUKEY / np.sqrt(weights)
    return float(np.average(values[near], weights=weights[near])) if near.any() else middle


def aligned(
    grid: Floats, points: Floats, seen: Floats, time: Floats, quantum: Floats
) -> tuple[float, Floats]:
    """The cost and the times of the best alignment of reported positions with a sampled motion.

    A motion may pass a position often. The order of the reports, and the times between them, tell
    which passing is meant, also where the motion is planned with wrong limits: dynamic programming
    over all passings. nan for a position that is never passed.
    """
    begin, way = points[:-1], np.diff(points, axis=0)
    step, square = grid[1] - grid[0], np.maximum((way**2).sum(axis=1), 1e-300)
    finest = 0.1 * float(quantum.min())
    tolerance = float(quantum.max()) + ASIDE * math.sqrt(float(square.max()))
    usual = float(np.median(np.diff(time))) if len(time) > 1 else float(grid[-1])
    when = np.full(len(seen), np.nan)
    chain: list[tuple[int, Floats, NDArray[np.int64]]] = []
    cost, before, last = np.zeros(1), np.zeros(1), 0.0
    for row, place in enumerate(seen):
        from_begin = place - begin
        share = np.clip((from_begin * way).sum(axis=1) / square, 0.0, 1.0)
        off = np.linalg.norm(from_begin - share[:, None] * way, axis=1)
        off = np.round(off / finest)
        least = (off < np.append(np.inf, off[:-1])) & (off <= np.append(off[1:], np.inf))
        best = np.flatnonzero(least & (off * finest < tolerance))
        if not len(best):
            continue
        passing = grid[best] + share[best] * step
        took = time[row] - last if chain else usual
        change = (passing[None, :] - before[:, None]) / max(took, 1e-3)
        total = cost[:, None] + np.where(
            change < -BACKWARDS, np.inf, (change - 1.0) ** 2 if chain else 0.25 * change**2
        )
        source = np.argmin(total, axis=0)
        least = total[source, np.arange(len(best))]
        if not np.isfinite(least).any():
            continue
        cost, before, last = least, passing, time[row]
        chain.append((row, passing, source))
    if not chain:
        return math.inf, when
    cost = cost + 0.25 * ((grid[-1] - before) / usual) ** 2
    choice = int(np.argmin(cost))
    found = float(cost[choice]) + MISSED * (len(seen) - len(chain))
    for row, passing, source in reversed(chain):
        when[row] = passing[choice]
        choice = int(source[choice])
    return found, when
