"""Distance and contacts of two arms, and the time for which they cannot touch.

Every shape of one arm is paired with every shape of the other, except the two feet, which do not
move.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from understudy.space.collision.distance import scratch
from understudy.space.collision.solids import Part, solids
from understudy.space.collision.world import (
    Placement,
    ShapeContact,
    World,
    carry,
    furthest,
    joint_rows,
    least_distance,
    placement,
    shape_contact,
)
from understudy.space.kinematics.chain import Chain, frame_row
from understudy.space.transform import Array


@dataclass(frozen=True, eq=False)
class PlacedArm:
    """An arm and what it carries; ``foot``: 4×4 in the world; ``fastest``: joint speeds, rad/s."""

    chain: Chain
    foot: Array
    parts: tuple[Part, ...]
    fastest: Array

    def max_speed(self) -> float:
        """Upper bound of the speed of any of its points, m/s."""
        reach = furthest(self.chain, solids(self.parts), len(self.parts))
        reach[:, self.chain.slides > 0] = 1.0  # a point moves as far as the joint slides
        return float((reach @ self.fastest).max(initial=0.0))


class ArmPair:
    """Two arms; shapes are numbered consecutively, those of the first arm first."""

    def __init__(self, one: PlacedArm, other: PlacedArm) -> None:
        self._one, self._other = one, other
        self._split = one.chain.dof + 1
        moved = (replace(part, body=part.body + self._split) for part in other.parts)
        self._parts = (*one.parts, *moved)
        self._world = _world(self._parts, len(one.parts), self._split)
        at = placement(self._world)
        frames = np.zeros((self._split + other.chain.dof + 1, 12))
        frames[0], frames[self._split] = frame_row(one.foot), frame_row(other.foot)
        self._at = Placement(frames, at.placed, at.ends)
        self._scratch = scratch()
        self._closing_speed = one.max_speed() + other.max_speed()

    def distance(self, q: Array, r: Array) -> float:
        """Smallest distance in metres in configurations q and r; 0 or less if they touch."""
        self._pose(q, r)
        least, _, _ = least_distance(self._world, self._at, np.inf, 0.0, self._scratch)
        return float(least)

    def safe_time(self, distance: float) -> float:
        """Seconds for which two arms at this distance cannot touch, however they move."""
        return distance / self._closing_speed if self._closing_speed > 0.0 else np.inf

    def contacts(self, q: Array, r: Array) -> list[tuple[str, str, ShapeContact]]:
        """All pairs of shapes that touch: name in the first arm, name in the second, contact."""
        self._pose(q, r)
        found = []
        for i, j in self._world.partners.tolist():
            how = shape_contact(self._world.solids, self._at, i, j, self._scratch)
            if how.distance <= 0.0:
                found.append((self._parts[i].name, self._parts[j].name, how))
        return found

    def _pose(self, q: Array, r: Array) -> None:
        shapes, frames = self._world.solids, self._at.frames
        one, other = self._one.chain, self._other.chain
        joint_rows(q, one.rest, one.slides, frames[: self._split])
        joint_rows(r, other.rest, other.slides, frames[self._split :])
        carry(
            shapes.traits,
            shapes.local,
            shapes.axes,
            len(self._parts),
            frames,
            self._at.placed,
            self._at.ends,
        )


def _world(parts: Sequence[Part], count: int, split: int) -> World:
    pairs = [
        (i, j)
        for i in range(count)
        for j in range(count, len(parts))
        if parts[i].body > 0 or parts[j].body > split
    ]
    partners = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return World(
        solids(parts), np.zeros((0, 12)), np.zeros(0), len(parts), 0, np.zeros((0, 6)), partners
    )
