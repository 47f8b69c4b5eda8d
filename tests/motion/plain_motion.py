"""The kernels of `motion` in plain Python, as in the contract: slow and readable."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.motion.path import Path

Vector = Sequence[float] | NDArray[np.float64]


class Measured(Protocol):
    """The columns of a path from which speeds are computed, piece by piece."""

    @property
    def length(self) -> Vector: ...

    @property
    def acceleration(self) -> Vector: ...

    @property
    def junction(self) -> Vector: ...

    @property
    def dwell(self) -> Vector: ...

    @property
    def block(self) -> Sequence[int] | NDArray[Any]: ...

    def __len__(self) -> int: ...


@dataclass
class Block:
    start: list[float]
    end: list[float]
    direction: list[float]
    length: float
    acceleration: float
    fastest: float
    junction: float


def whole_steps(value: float, steps: float) -> float:
    """Half away from zero."""
    if not steps:
        return value
    return math.copysign(math.floor(abs(value * steps) + 0.5), value) / steps


def plain_corner(before: Vector, after: Vector, acceleration: Vector, deviation: float) -> float:
    """The oracle of corner_speed: the contract's junction formula, word by word."""
    c = -sum(float(b * a) for b, a in zip(before, after, strict=True))
    if c > 0.999999:
        return 0.0
    if c < -0.999999:
        return math.inf
    change = [a - b for a, b in zip(after, before, strict=True)]
    norm = math.sqrt(sum(x * x for x in change))
    a_j = min(float(a / abs(x / norm)) for a, x in zip(acceleration, change, strict=True) if x)
    s = math.sqrt((1 - c) / 2)
    return a_j * deviation * s / (1 - s)


def plain_blocks(
    start: Vector,
    targets: Sequence[Vector],
    velocity: Vector,
    acceleration: Vector,
    *,
    deviation: float,
    steps: Vector,
) -> list[Block]:
    """The oracle of measure."""
    blocks: list[Block] = []
    here = [whole_steps(x, n) for x, n in zip(start, steps, strict=True)]
    for target in targets:
        end = [whole_steps(x, n) for x, n in zip(target, steps, strict=True)]
        d = [e - h for e, h in zip(end, here, strict=True)]
        length = math.sqrt(sum(x * x for x in d))
        if length == 0:
            continue
        u = [x / length for x in d]
        a = min(limit / abs(x) for limit, x in zip(acceleration, u, strict=True) if x)
        v = min(limit / abs(x) for limit, x in zip(velocity, u, strict=True) if x)
        junction = 0.0
        if blocks:
            junction = plain_corner(blocks[-1].direction, u, acceleration, deviation)
        blocks.append(Block(here, end, u, length, a, v, junction))
        here = end
    return blocks


def plain_entries(path: Measured, nominal: Vector, window: int, entry: float = 0.0) -> list[float]:
    """The oracle of windows and the oracle of forward: one backward pass per executing block."""
    count = len(path)
    ceiling = [
        0.0
        if path.dwell[k] > 0
        else min(path.junction[k], nominal[k - 1] ** 2 if k else math.inf, nominal[k] ** 2)
        for k in range(count)
    ]
    gain = [2 * a * s for a, s in zip(path.acceleration, path.length, strict=True)]
    speeds = [entry] + [0.0] * count
    for k in range(count):
        last = count - 1
        while path.block[last] >= path.block[k] + window:
            last -= 1
        allowed = 0.0
        for n in range(last, k, -1):
            allowed = min(ceiling[n], allowed + gain[n])
        speeds[k + 1] = min(allowed, speeds[k] + gain[k])
        if speeds[k] - gain[k] > speeds[k + 1] + 1e-9 * gain[k]:
            speeds[k + 1] = speeds[k] - gain[k]
    return speeds


Segment = tuple[float, float, int, float, float, float]
"""Begin, end, piece, s, v, a."""


def plain_trapezoid(path: Measured, nominal: Vector, entries: Vector) -> list[Segment]:
    """The oracle of trapezoids: accelerate, cruise, brake, each block from its own speeds."""
    segments: list[Segment] = []
    now = 0.0

    def add(piece: int, s: float, way: float, v0: float, v1: float, a: float) -> None:
        nonlocal now
        if way > 0 and v0 + v1 > 0:
            ends = now + 2 * way / (v0 + v1)
            segments.append((now, ends, piece, s, v0, a))
            now = ends

    for k in range(len(path)):
        if path.dwell[k] > 0:
            segments.append((now, now + path.dwell[k], k, 0.0, 0.0, 0.0))
            now += path.dwell[k]
            continue
        a, length = path.acceleration[k], path.length[k]
        v0, v1 = math.sqrt(entries[k]), math.sqrt(entries[k + 1])
        top = min(nominal[k], math.sqrt((entries[k] + entries[k + 1]) / 2 + a * length))
        top = max(top, v0, v1)
        up, down = (top**2 - v0**2) / (2 * a), (top**2 - v1**2) / (2 * a)
        add(k, 0.0, up, v0, top, a)
        add(k, up, length - up - down, top, top, 0.0)
        add(k, length - down, down, top, v1, -a)
    return segments


def plain_motion(
    path: Path, segments: Sequence[Segment], t: float
) -> tuple[list[float], list[float], list[float]]:
    """The oracle of positions_at and the oracle of motions_at, for lines of the axes."""
    if t >= segments[-1][1]:
        still = [0.0] * path.axes
        return list(path.end[-1]), still, still
    begin, _, piece, s0, v0, a = next(part for part in segments if t < part[1])
    x = t - begin
    s, v = s0 + v0 * x + a * x * x / 2, v0 + a * x
    start, u = path.shape[piece][0], path.shape[piece][1]
    position = [p + d * s for p, d in zip(start, u, strict=True)]
    return position, [d * v for d in u], [d * a for d in u]


def plain_braking(path: Path, piece: int, s: float, v: float) -> tuple[float, int, float]:
    """The oracle of braking: seconds until rest, and the place; work over path, piece by piece."""
    seconds = 0.0
    while True:
        a, rest = path.acceleration[piece], path.length[piece] - s
        if v * v <= 2 * a * rest or piece == len(path) - 1:
            return seconds + v / a, piece, min(s + v * v / (2 * a), path.length[piece])
        after = math.sqrt(v * v - 2 * a * rest)
        seconds += (v - after) / a
        piece, s, v = piece + 1, 0.0, after


def plain_stream(path: Path, arrivals: Vector, window: int) -> list[float]:
    """When each block ends if block k arrives at arrivals[k]: the firmware, event by event.

    At every arrival and at the end of every block the speeds are planned anew from the state then.
    """
    count, nominal = len(path), path.nominal()
    junction = list(path.junction)
    now, k, s, v = 0.0, 0, 0.0, 0.0
    ends: list[float] = []
    while k < count:
        if arrivals[k] > now:
            now, v, junction[k] = arrivals[k], 0.0, 0.0
        known = [n for n in range(k, min(k + window, count)) if arrivals[n] <= now]
        allowed = 0.0
        for n in reversed(known[1:]):
            top = min(junction[n], nominal[n - 1] ** 2, nominal[n] ** 2)
            allowed = min(top, allowed + 2 * path.acceleration[n] * path.length[n])
        a, rest = path.acceleration[k], path.length[k] - s
        after = math.sqrt(min(allowed, v * v + 2 * a * rest))
        following = min((t for t in arrivals if t > now), default=math.inf)
        seconds, way, speed = _run_block(rest, a, (v, after, nominal[k]), following - now)
        now += seconds
        if now < following:
            ends.append(now)
            k, s, v = k + 1, 0.0, after
        else:
            now, s, v = following, s + way, speed
    return ends


def _run_block(
    rest: float, a: float, speeds: tuple[float, float, float], seconds: float
) -> tuple[float, float, float]:
    """Time used, distance and speed after at most ``seconds`` on the rest of a block."""
    v0, v1, nominal = speeds
    top = max(min(nominal, math.sqrt((v0**2 + v1**2) / 2 + a * rest)), v0, v1)
    up, down = (top - v0) / a, (top - v1) / a
    cruise = (rest - (top**2 - v0**2) / (2 * a) - (top**2 - v1**2) / (2 * a)) / top
    spent, way, v = 0.0, 0.0, v0
    for length, rate in ((up, a), (max(cruise, 0.0), 0.0), (down, -a)):
        x = min(length, seconds - spent)
        way, v, spent = way + v * x + rate * x * x / 2, v + rate * x, spent + x
    return spent, way, v
