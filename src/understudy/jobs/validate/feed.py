"""Whether the joints can follow the programmed feed: speed, acceleration, singular poses.

The planner slows down where they cannot, so nothing breaks; but the weld, the glue or the cut that
the feed was meant for is another one. Rapids ask for no speed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.jobs.validate.report import Finding, Kind
from understudy.jobs.validate.stretch import Stretch
from understudy.jobs.validate.subject import Arm
from understudy.motion.cartesian import greatest_bends
from understudy.motion.path import TOOL, Floats, Ints, Path
from understudy.space.singular import distances, kinds
from understudy.space.sweep import greatest_slopes
from understudy.units import DEG

NEAR = 0.1
"""Share below which a pose is near a singular one (6° of joint 5) and to blame for a speed."""
INSIDE = 0.02
"""A line that begins or ends nearer than this begins or ends in the singular pose (1° of J5)."""
ROUNDING = 1.0 + 1e-6


def feed_findings(stretch: Stretch, arm: Arm) -> Iterator[Finding]:
    """One per line that asks for more than the joints have, each at its worst place."""
    path = stretch.path
    asked = ~path.rapid & np.isfinite(path.feed) & (path.dwell == 0.0)
    if not asked.any():
        return
    slope = greatest_slopes(path.shape, path.length)
    speed = np.where(asked, path.feed, 0.0)[:, None] * slope / arm.limits.velocity
    turn = np.zeros_like(speed)
    if path.shape.shape[1] == 4:
        bend = greatest_bends(path.shape, path.length[:, None])
        along = asked & (path.measure == TOOL)
        turn = np.where(along, path.feed, 0.0)[:, None] ** 2 * bend / arm.limits.acceleration
    over = np.flatnonzero((speed.max(axis=1) > ROUNDING) | (turn.max(axis=1) > ROUNDING))
    for line in np.unique(path.line[over]).tolist():
        first, last = np.searchsorted(path.line, [line, line + 1])
        found = _worst(_Need(path, speed, turn, arm), np.arange(first, last))
        if found is not None:
            yield _told(found, stretch, arm, line)


@dataclass(frozen=True, slots=True, eq=False)
class _Need:
    """Shares of what each joint has, per piece and joint."""

    path: Path
    speed: Floats
    turn: Floats
    arm: Arm


@dataclass(frozen=True, slots=True)
class _Excess:
    kind: Kind
    piece: int
    joint: int
    share: float
    near: str = ""


def _worst(need: _Need, pieces: Ints) -> _Excess | None:
    """What is said of a line; None where only its singular ends are to blame."""
    near, blamed = _nearness(need, pieces)
    counted = pieces[~_at_the_ends(near.min(axis=1))] if len(near) else pieces
    for kind, share in (("velocity", need.speed), ("acceleration", need.turn)):
        if not len(counted) or share[counted].max() <= ROUNDING:
            continue
        row = int(np.argmax(share[counted].max(axis=1)))
        piece = int(counted[row])
        joint = int(np.argmax(share[piece]))
        here = int(np.flatnonzero(pieces == piece)[0])
        singular = len(near) and near[here].min() < NEAR
        name = blamed[int(np.argmin(near[here]))] if singular else ""
        return _Excess(
            "singularity" if singular else ("velocity" if kind == "velocity" else "acceleration"),
            piece, joint, float(share[piece, joint]), name,
        )  # fmt: skip
    return None


def _nearness(need: _Need, pieces: Ints) -> tuple[Floats, tuple[str, ...]]:
    """How near each piece of a line of the tool comes to each kind of singular pose."""
    path, chain = need.path, need.arm.chain
    if path.measure[pieces[0]] != TOOL:
        return np.zeros((0, 1)), ()
    begins = path.shape[pieces, 0]
    middle = 0.5 * path.length[pieces, None]
    powers = (middle**k for k in range(path.shape.shape[1]))
    halfway = sum(path.shape[pieces, k] * power for k, power in enumerate(powers))
    found = [distances(chain, q) for q in (begins, np.asarray(halfway), path.end[pieces])]
    return np.minimum.reduce(found), kinds(chain)


def _at_the_ends(near: Floats) -> NDArray[np.bool_]:
    """The pieces next to a singular pose in which the line begins or ends."""
    out = np.zeros(len(near), dtype=np.bool_)
    far = np.flatnonzero(near >= NEAR)
    if near[0] < INSIDE:
        out[: far[0] if len(far) else len(near)] = True
    if near[-1] < INSIDE:
        out[far[-1] + 1 if len(far) else 0 :] = True
    return out


def _told(found: _Excess, stretch: Stretch, arm: Arm, line: int) -> Finding:
    name = arm.chain.names[found.joint]
    turns = arm.chain.slides[found.joint] == 0.0
    unit, sign = (DEG, "deg/s") if turns else (1e-3, "mm/s")
    limits = arm.limits.velocity
    if found.kind == "acceleration":
        limits, sign = arm.limits.acceleration, sign + "2"
    has = float(limits[found.joint]) / unit
    needs = f"{name} would need {found.share * has:.0f} {sign} at this feed, {has:.0f} are allowed"
    if found.kind == "singularity":
        needs = f"close to the {found.near} singularity: {needs}"
    when = stretch.time_at(found.piece, 0.0)
    return Finding(line, found.kind, f"line {line}: {needs}", when, joint=name)
