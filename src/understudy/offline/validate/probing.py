"""Contacts that a probing move means: those of the tool with the object that stopped it.

They count as meant from just before the touch until the tool has left the object again, as long as
the tool does not move deeper into it.
"""

from collections.abc import Iterator

import numpy as np

from understudy.motion.path import Floats, Path
from understudy.offline.validate.subject import Arm
from understudy.simulation.collision.track import Place
from understudy.space.collision.pair_store import Pair
from understudy.space.model.environment import Environment

RELEASE = 1e-3
"""Distance (m) at which the tool has left the object."""
DEEPEST = 5e-3
"""Depth (m) up to which a shape that reaches beyond the tip may enter the object at the touch."""
DEEPER = 2e-4
"""Depth (m) by which rounding and the path of the joints may exceed that of the touch."""
LOOKS = 400
"""Places of a path at which the distance is computed."""


class MeantContacts:
    """Pairs of shapes (tool, object) whose contact is meant, and their depth at the touch."""

    def __init__(self, arm: Arm, q: Floats, environment: Environment, release: float) -> None:
        self.arm, self._release = arm, max(release, RELEASE)
        world, names = arm.detector.world, arm.detector.names
        tool = {thing.name for thing in arm.detector.carried}
        pairs = [
            (i, j)
            for i in range(world.foot, world.moving)
            for j in range(world.moving, len(names))
            if names[i] in tool and not environment.is_zone(names[j])
        ]
        depths = {pair: -arm.detector.distance_between(q, *pair) for pair in pairs}
        self._depths: dict[Pair, float] = {
            pair: depth for pair, depth in depths.items() if -RELEASE <= depth <= DEEPEST
        }

    @property
    def pairs(self) -> frozenset[Pair]:
        return frozenset(self._depths)

    def touch_begins(self, path: Path) -> Place:
        """The last place of a probing move at which the tool is still apart from the object."""
        last = Place(0)
        for place in _places(path):
            if self._apart(path, place):
                last = place
        return last

    def touch_ends(self, path: Path) -> tuple[Place, bool]:
        """The first place at which the tool has left the object, and True; else the end of the
        path, and False."""
        for place in _places(path):
            if self._apart(path, place):
                return place, True
        return Place(len(path) - 1, float(path.length[-1])), False

    def deeper_on(self, path: Path) -> bool:
        """Whether the tool moves deeper into the object before it has left it."""
        for place in _places(path):
            if self._apart(path, place):
                return False
            if self._deeper(path, place):
                return True
        return False

    def _apart(self, path: Path, place: Place) -> bool:
        q = path.position(place.piece, place.s)
        distance = self.arm.detector.distance_between
        return all(distance(q, *pair) > self._release for pair in self._depths)

    def _deeper(self, path: Path, place: Place) -> bool:
        q = path.position(place.piece, place.s)
        distance = self.arm.detector.distance_between
        return any(-distance(q, *pair) > depth + DEEPER for pair, depth in self._depths.items())


def _places(path: Path) -> Iterator[Place]:
    starts = np.concatenate([[0.0], np.cumsum(path.length)])
    for whole in np.linspace(0.0, starts[-1], LOOKS).tolist():
        piece = min(int(np.searchsorted(starts, whole, side="right")) - 1, len(path) - 1)
        yield Place(piece, whole - float(starts[piece]))
