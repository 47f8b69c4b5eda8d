"""Jerk-limited speed profiles: the acceleration ramps up and down.

The acceleration is zero between blocks, and each block is run with the lowest limits of its pieces.
A block is a line, or a part of one whose pieces are much slower than those beside them.
Look-ahead covers everything that is queued. The limits hold for the distance along the path,
therefore on a line of the axes for every axis. From the start of a block the profile is in closed
form; from the middle of a ramp ruckig computes it.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np
from ruckig import ControlInterface, InputParameter, Result, Ruckig, RuckigError, Trajectory

from understudy.motion.path import Floats, Path
from understudy.motion.plan import PathPosition, Plan, TimeLaw, empty_law
from understudy.motion.profile import Stop


class Phase(NamedTuple):
    """A time of constant jerk: duration and initial state."""

    seconds: float
    s: float
    v: float
    a: float
    j: float

    def moved(self, x: float) -> float:
        """Position after x seconds."""
        return self.s + x * (self.v + x * (0.5 * self.a + x * self.j / 6.0))

    @property
    def end(self) -> float:
        return self.moved(self.seconds)


class Bounds(NamedTuple):
    """Limits of one motion."""

    speed: float
    a: float
    j: float


class State(NamedTuple):
    s: float
    v: float
    a: float


def fastest_phases(
    state: State, bounds: Bounds, *, speed: float, position: float | None = None
) -> list[Phase] | None:
    """Fastest motion to a speed with zero acceleration, optionally at a position; None if none."""
    task, found = InputParameter(1), Trajectory(1)
    task.current_position, task.current_velocity = [state.s], [state.v]
    task.current_acceleration = [state.a]
    task.target_velocity, task.target_acceleration = [speed], [0.0]
    task.max_velocity = [max(bounds.speed, abs(speed), 1e-12)]
    task.max_acceleration, task.max_jerk = [max(bounds.a, abs(state.a))], [bounds.j]
    if position is None:
        task.control_interface = ControlInterface.Velocity
    else:
        task.target_position = [position]
    try:
        result = Ruckig(1).calculate(task, found)
    except RuckigError:
        return None
    if result not in (Result.Working, Result.Finished):
        return None
    profile = found.profiles[0][0]
    return [
        Phase(*row)
        for part in (profile.brake, profile)
        for row in zip(part.t, part.p, part.v, part.a, part.j, strict=False)
        if row[0] > 0.0
    ]


# ── profiles over blocks ──────────────────────────────────────────────────────────────────────────


BACKWARDS = -1e-9
"""A speed below this is backward motion along the path."""
HALVINGS = 60
CRAWL = 8.0
"""Pieces of a block whose neighbours are this many times faster are a block of their own."""


def change_distance(v0: float, v1: float, bounds: Bounds) -> float:
    """Distance needed from one speed to another, with zero acceleration at both ends."""
    ramp, steady = _change_times(abs(v1 - v0), bounds)
    return 0.5 * (v0 + v1) * (2.0 * ramp + steady)


def _change_times(step: float, bounds: Bounds) -> tuple[float, float]:
    """Seconds of each ramp of the acceleration, and of constant acceleration between them."""
    if step * bounds.j >= bounds.a**2:
        return bounds.a / bounds.j, step / bounds.a - bounds.a / bounds.j
    return math.sqrt(step / bounds.j), 0.0


def nearest_to(wanted: float, v: float, length: float, bounds: Bounds) -> float:
    """Speed nearest to the wanted one that can be reached from ``v`` within a length."""
    if change_distance(v, wanted, bounds) <= length:
        return wanted
    good, bad = v, wanted
    for _ in range(HALVINGS):
        middle = 0.5 * (good + bad)
        fits = change_distance(v, middle, bounds) <= length
        good, bad = (middle, bad) if fits else (good, middle)
    return good


def change(v0: float, v1: float, s: float, bounds: Bounds) -> list[Phase]:
    """Phases from one speed to another: ramp up, hold and ramp down the acceleration."""
    ramp, steady = _change_times(abs(v1 - v0), bounds)
    j = math.copysign(bounds.j, v1 - v0)
    v, a = v0, 0.0
    phases = []
    for seconds, jerk in ((ramp, j), (steady, 0.0), (ramp, -j)):
        phase = Phase(seconds, s, v, a, jerk)
        phases.append(phase)
        s, v, a = phase.moved(seconds), v + seconds * (a + 0.5 * seconds * jerk), a + seconds * jerk
    return phases


def over_block(length: float, v0: float, v1: float, bounds: Bounds) -> list[Phase]:
    """Phases of a block from entry to exit speed: change to the cruise speed, cruise, change."""

    def spent(peak: float) -> float:
        return change_distance(v0, peak, bounds) + change_distance(peak, v1, bounds)

    good, peak = max(v0, v1), bounds.speed
    if spent(peak) > length:
        for _ in range(HALVINGS):
            middle = 0.5 * (good + peak)
            good, peak = (middle, peak) if spent(middle) <= length else (good, middle)
        peak = good
    up = change(v0, peak, 0.0, bounds)
    down_at = length - change_distance(peak, v1, bounds)
    cruise_at = change_distance(v0, peak, bounds)
    cruise = max(down_at - cruise_at, 0.0) / peak if peak > 0.0 else 0.0
    return [*up, Phase(cruise, cruise_at, peak, 0.0, 0.0), *change(peak, v1, down_at, bounds)]


def from_state(place: PathPosition, bounds: Bounds, *, length: float, speed: float) -> list[Phase]:
    """Phases from any state over a length to a speed; empty if that needs backward motion."""
    state = State(0.0, place.v, place.a)
    phases = fastest_phases(state, bounds, speed=speed, position=length) or []
    return phases if all(_forwards(phase) for phase in phases) else []


def _forwards(phase: Phase) -> bool:
    """Whether the speed is never negative; it is lowest at an end or at zero acceleration."""
    turns = [0.0, phase.seconds]
    if phase.j != 0.0 and 0.0 < -phase.a / phase.j < phase.seconds:
        turns.append(-phase.a / phase.j)
    return all(phase.v + x * (phase.a + 0.5 * x * phase.j) > BACKWARDS for x in turns)


class Block(NamedTuple):
    """Pieces of one block, from the distance ``run`` along the first of them. ``inner``: it begins
    inside a line."""

    first: int
    last: int
    run: float
    length: float
    bounds: Bounds
    corner: float
    dwell: float
    inner: bool


def blocks_of(path: Path, nominal: Floats, *, first: int, run: float) -> list[Block]:
    """Blocks from a place on, with the lowest limits of their pieces. Pieces that are much slower
    than their neighbours are a block of their own: a line that begins in a singular pose crawls
    there only. It depends on neighbours alone, so that a later place gives the same blocks."""
    speeds = path.fastest[first:]
    slower = np.minimum(speeds[1:], speeds[:-1]) * CRAWL < np.maximum(speeds[1:], speeds[:-1])
    edges = np.flatnonzero(np.diff(path.block[first:]) | slower) + first + 1
    blocks = []
    for i, k in itertools.pairwise([first, *edges.tolist(), len(path)]):
        behind = run if i == first else 0.0
        dwell = float(path.dwell[i])
        columns = (nominal, path.acceleration, path.jerk)
        bounds = Bounds(*(float(column[i:k].min()) for column in columns))
        length = float(path.length[i:k].sum()) - (0.0 if dwell else behind)
        corner = 0.0 if dwell else math.sqrt(path.junction[i])
        inner = i > first and bool(path.block[i] == path.block[i - 1])
        blocks.append(Block(i, k, behind, length, bounds, corner, dwell, inner))
    return blocks


def entry_speeds(blocks: list[Block]) -> list[float]:
    """Entry speed of each block, and 0 at the end of the last."""
    speeds = [0.0] * (len(blocks) + 1)
    for b in range(len(blocks) - 1, 0, -1):
        here = blocks[b]
        top = highest_entry(blocks[b - 1], here)
        if top > speeds[b + 1]:
            top = nearest_to(top, speeds[b + 1], here.length, here.bounds)
        speeds[b] = top
    return speeds


def highest_entry(before: Block, here: Block) -> float:
    """The entry speed that a block's corner and the speeds of both neighbours allow."""
    return min(here.corner, here.bounds.speed, before.bounds.speed)


def last_free_block(blocks: list[Block]) -> int:
    """The last begin of a line whose entry speed does not depend on what follows; 0 if there is
    none.

    It need not brake even if a rest follows: it has the highest speed that its corner and feed
    allow, and leaves with no less.
    """
    speeds = entry_speeds(blocks)
    for b in range(len(blocks) - 1, 0, -1):
        if not blocks[b].inner and highest_entry(blocks[b - 1], blocks[b]) <= speeds[b + 1]:
            return b
    return 0


def jerk_limited_law(
    path: Path, nominal: Floats, place: PathPosition, *, at: float, window: int
) -> TimeLaw | None:
    """Time law of a path from a place on its first piece; None if that block cannot be changed."""
    del window
    blocks = blocks_of(path, nominal, first=0, run=place.s)
    return law_of_blocks(path, blocks, place, at=at, count=len(blocks))[0]


def law_of_blocks(
    path: Path, blocks: list[Block], place: PathPosition, *, at: float, count: int
) -> tuple[TimeLaw | None, float]:
    """Time law of the first ``count`` blocks, and the speed at their end; None if the first block
    cannot be changed."""
    wanted = entry_speeds(blocks)
    laws, here = [empty_law(at)], place
    for block, exit_ in zip(blocks[:count], wanted[1:], strict=False):
        begins = float(laws[-1].begins[-1])
        if block.dwell > 0.0:
            laws.append(_dwell(block, begins))
            here = PathPosition(block.last)
            continue
        if here.a == 0.0:
            speed = nearest_to(exit_, here.v, block.length, block.bounds)
            phases = over_block(block.length, here.v, speed, block.bounds)
        else:
            speed = exit_
            phases = from_state(here, block.bounds, length=block.length, speed=speed)
            if not phases:
                return None, 0.0
        laws.append(over_pieces(path, block, phases, begins))
        here = PathPosition(block.last, 0.0, speed, 0.0)
    return chained(laws), here.v


def brake(plan: Plan, at: float) -> Stop:
    """The plan up to a time, then braking to rest: in this block, or over the following ones."""
    path, place = plan.path, plan.place(at)
    free = np.full(len(path), np.inf)
    blocks = blocks_of(path, free, first=place.piece, run=place.s)
    running = blocks[0]
    phases = fastest_phases(State(0.0, place.v, place.a), running.bounds, speed=0.0) or []
    laws = [plan.law.until(at)]
    if _distance(phases) > running.length:
        # Too short to stop in: it is run as planned, braking begins with the next one.
        segment = int(np.searchsorted(plan.law.piece, running.last))
        if segment == len(plan.law):
            return Stop(plan.law, len(path) - 1, float(path.length[-1]))
        laws, speed = [plan.law.until(plan.law.begins[segment])], float(plan.law.v[segment])
        for running in blocks[1:]:
            slower = nearest_to(0.0, speed, running.length, running.bounds)
            if slower == 0.0 or running is blocks[-1]:
                phases = change(speed, 0.0, 0.0, running.bounds)
                break
            phases = over_block(running.length, speed, slower, running.bounds)
            laws.append(over_pieces(path, running, phases, float(laws[-1].begins[-1])))
            speed = slower
    laws.append(over_pieces(path, running, phases, float(laws[-1].begins[-1])))
    return _stopped(path, running, _distance(phases), chained(laws))


def _distance(phases: list[Phase]) -> float:
    return phases[-1].end if phases else 0.0


def _stopped(path: Path, block: Block, distance: float, law: TimeLaw) -> Stop:
    piece, s = block.first, block.run + distance
    while piece < block.last - 1 and s > path.length[piece]:
        s -= float(path.length[piece])
        piece += 1
    return Stop(law, piece, min(s, float(path.length[piece])) if not block.dwell else s)


def chained(laws: list[TimeLaw]) -> TimeLaw:
    """Concatenates time laws."""
    columns = (np.concatenate(rows) for rows in zip(*(law.columns() for law in laws), strict=True))
    begins = np.concatenate([*(law.begins[:-1] for law in laws), laws[-1].begins[-1:]])
    return TimeLaw(begins, np.concatenate([law.piece for law in laws]), *columns)


def _dwell(block: Block, begins: float) -> TimeLaw:
    ends = begins + max(block.dwell - block.run, 0.0)
    rows = np.array([[block.run], [0.0], [0.0], [0.0]])
    return TimeLaw(np.array([begins, ends]), np.array([block.first]), *rows)


def over_pieces(path: Path, block: Block, phases: list[Phase], at: float) -> TimeLaw:
    """Splits the phases of a block into segments, each on one piece."""
    piece, behind = block.first, -block.run
    begins, pieces, rows = [at], [], []
    for phase in phases:
        x = 0.0
        while x < phase.seconds:
            edge = behind + float(path.length[piece])
            until = phase.seconds
            if piece < block.last - 1 and phase.moved(until) > edge:
                until = _crossing(phase, edge, x)
            v = phase.v + x * (phase.a + 0.5 * x * phase.j)
            if until > x:
                rows.append((phase.moved(x) - behind, v, phase.a + x * phase.j, phase.j))
                pieces.append(piece)
                begins.append(begins[-1] + until - x)
            if until < phase.seconds:
                behind, piece = edge, piece + 1
            x = until
    columns = np.array(rows).reshape(-1, 4).T.copy()
    return TimeLaw(np.array(begins), np.array(pieces, dtype=np.int64), *columns)


def _crossing(phase: Phase, edge: float, after: float) -> float:
    """Time, later than ``after``, at which a phase passes a distance."""
    low, high = after, phase.seconds
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if phase.moved(middle) < edge else (low, middle)
    return high
