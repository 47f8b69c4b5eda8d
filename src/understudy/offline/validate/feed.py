"""Whether the joints can follow the programmed feed: speed, acceleration, singular poses.

The planner slows down where they cannot, so nothing breaks; but the weld, the glue or the cut that
the feed was meant for is another one. Rapids ask for no speed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.motion.cartesian import greatest_bends
from understudy.motion.path import TOOL, Floats, Ints, Path
from understudy.offline.validate.report import Finding, Kind
from understudy.offline.validate.stretch import Stretch
from understudy.offline.validate.subject import Arm, Machine
from understudy.space.collision.sweep import greatest_slopes
from understudy.space.kinematics.singular import distances, kinds
from understudy.units import digits_apart

NEAR, INSIDE = 0.1, 0.02
"""Shares below which a pose is near a singular one (6° of joint 5) and to blame for a speed, or in
it (1°): see singular.distances."""
NEAR_RATIO = 0.2
"""Of an arm of no known kind the share is a ratio that is small anyway: so much of the others."""
ROUNDING = 1.0 + 1e-6


def feed_findings(stretch: Stretch, arm: Arm | Machine) -> Iterator[Finding]:
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
    arm: Arm | Machine


@dataclass(frozen=True, slots=True)
class _Excess:
    """Where a line asks for most, of which joint, and which singular pose is to blame if one is."""

    kind: Kind
    piece: int
    joint: int
    share: float
    blamed: str = ""


def _worst(need: _Need, pieces: Ints) -> _Excess | None:
    """What is said of a line; None where only its singular ends are to blame."""
    near = _nearness(need.path, pieces, need.arm)
    counted = np.flatnonzero(~near.at_ends)
    if not len(counted):
        return None
    shares: tuple[tuple[Kind, Floats], ...] = (
        ("velocity", need.speed[pieces[counted]]),
        ("acceleration", need.turn[pieces[counted]]),
    )
    for kind, share in shares:
        row, joint = divmod(int(np.argmax(share)), share.shape[1])
        if share[row, joint] > ROUNDING:
            blamed = near.blamed[counted[row]] if kind == "velocity" else ""
            named: Kind = "singularity" if blamed else kind
            return _Excess(
                named, int(pieces[counted[row]]), joint, float(share[row, joint]), blamed
            )
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Near:
    """Per piece of a line: which singular pose it is near, if any; and whether it is next to one in
    which the line begins or ends."""

    blamed: list[str]
    at_ends: NDArray[np.bool_]


def _nearness(path: Path, pieces: Ints, arm: Arm | Machine) -> _Near:
    """Only a way of the tool has to mind singular poses."""
    if isinstance(arm, Machine) or path.measure[pieces[0]] != TOOL:
        return _Near([""] * len(pieces), np.zeros(len(pieces), dtype=np.bool_))
    names = kinds(arm.chain)
    scale = NEAR_RATIO if names == ("arm",) else 1.0
    corners = np.vstack([path.shape[pieces[:1], 0], path.end[pieces]])
    middle = [path.position(piece, 0.5 * float(path.length[piece])) for piece in pieces.tolist()]
    at_corners, at_middle = (distances(arm.chain, q) / scale for q in (corners, np.array(middle)))
    share = np.minimum.reduce([at_corners[:-1], at_middle, at_corners[1:]])
    near = share.min(axis=1) < NEAR
    which = share.argmin(axis=1).tolist()
    begins, ends = (bool(at_corners[k].min() < INSIDE) for k in (0, -1))
    blamed = [names[k] if close else "" for k, close in zip(which, near.tolist(), strict=True)]
    return _Near(blamed, _at_ends(near, begins, ends))


def _at_ends(near: NDArray[np.bool_], begins: bool, ends: bool) -> NDArray[np.bool_]:
    """The pieces that are near all the way from a singular beginning, or up to a singular end."""
    from_start = np.logical_and.accumulate(near) & begins
    to_end = np.logical_and.accumulate(near[::-1])[::-1] & ends
    return np.asarray(from_start | to_end)


def _told(found: _Excess, stretch: Stretch, arm: Arm | Machine, line: int) -> Finding:
    name, told = arm.names[found.joint], arm.told(found.joint)
    limits, time, sign = arm.limits.velocity, told.seconds, f"{told.name}/{told.per}"
    if found.kind == "acceleration":
        limits, time, sign = arm.limits.acceleration, told.seconds**2, sign + "2"
    has = float(limits[found.joint]) / told.unit * time
    need = digits_apart(found.share * has, has, digits=0)
    needs = f"{name} would need {need} {sign} at this feed, {has:.0f} are allowed"
    if found.blamed:
        needs = f"close to the {found.blamed} singularity: {needs}"
    when = stretch.time_at(found.piece, 0.0)
    return Finding(line, found.kind, f"line {line}: {needs}", when, joint=name)
