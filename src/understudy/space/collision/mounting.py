"""Decides whether a part on the flange that overlaps a link in every configuration belongs there.

Shapes of links are coarse, so that a tool often overlaps the wrist a little where it is mounted. A
tool with a wrong sign or a wrong unit overlaps the arm in every configuration, too, but not like
that: it lies behind the flange, or it contains a link.
"""

import numpy as np

from understudy.space.collision.assembly import assembled
from understudy.space.collision.distance import distance, scratch
from understudy.space.collision.solids import Part
from understudy.space.collision.world import Placement, placement
from understudy.space.kinematics.chain import Chain
from understudy.space.model.robot import Sphere
from understudy.space.transform import Array, translation

POINT = Sphere(1e-6)


def misplaced(chain: Chain, at: Placement, i: int, j: int, carried: Part) -> bool:
    """Whether part j on the flange overlaps link shape i where no tool belongs; ``at``: any
    configuration."""
    flange = _matrix(at.frames[-1]) @ chain.tip
    link, part = (at.ends[k].reshape(2, 3).mean(axis=0) for k in (i, j))
    behind = float((part - flange[:3, 3]) @ (link - flange[:3, 3])) > 0.0
    return behind or _contains(carried, _matrix(at.placed[j]), link)


def _contains(part: Part, place: Array, point: Array) -> bool:
    both = [Part("point", POINT, translation(*point)), Part(part.name, part.shape, place)]
    world = assembled(None, (), both)
    there = placement(world)
    d, _ = distance(
        world.solids, there.placed, there.ends, 0, 1, np.inf, np.inf, -1, True, scratch()
    )
    return bool(d <= 0.0)


def _matrix(row: Array) -> Array:
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = row[:9].reshape(3, 3), row[9:]
    return out
