"""The tip of the tool as a probe that touches the objects around the arm."""

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from understudy.motion.path import Floats, Path
from understudy.robots.arm.mover import ArmMover
from understudy.simulation.collision.body import Body
from understudy.simulation.collision.track import Place, beginning_at, sample_places
from understudy.space.model.environment import Environment
from understudy.space.model.shapes import CollisionObject, ObjectType

if TYPE_CHECKING:
    from understudy.space.collision.detector import CollisionDetector
    from understudy.space.collision.sweep import Sweeper

TIP = "tip"
RADIUS = 1e-6
"""Radius of the tip in metres; so small that it counts as a point."""
HALVINGS = 40


class Surroundings(Protocol):
    """The body of the arm, and the objects around it now."""

    @property
    def body(self) -> Body: ...

    @property
    def environment(self) -> Environment: ...


class ToolMover(Protocol):
    """Has the mover of the present tool."""

    @property
    def mover(self) -> Any: ...


class ContactProbe:
    """`Probe` of an arm: the tip of its tool. Zones cannot be touched."""

    def __init__(self, around: Surroundings, tool: ToolMover) -> None:
        self._around = around
        self._tool = tool
        self._known: tuple[Environment, ArmMover] | None = None
        self._sweeper: Sweeper
        self._detector: CollisionDetector

    def touches(self, q: Floats) -> bool:
        self._update()
        return any(self._detector.distance_between(q, *pair) <= 0.0 for pair in self._pairs())

    def trigger_place(self, path: Path, *, toward: bool) -> tuple[int, float] | None:
        self._update()
        found = self._first_touch(path) if toward else self._last_touch(path)
        return None if found is None else (found.piece, found.s)

    def rest_place(self, path: Path, place: tuple[int, float]) -> tuple[int, float]:
        """The touch itself: the move ends there, without overrun."""
        return place

    def _first_touch(self, path: Path) -> Place | None:
        mine = set(self._pairs())
        others = [pair for pair in self._sweeper.pairs() if pair not in mine]
        rest = beginning_at(path, Place(0))
        spot = self._sweeper.first_contact(rest.shape, rest.length, others)
        return None if spot is None else Place(spot.piece, spot.s)

    def _last_touch(self, path: Path) -> Place | None:
        last = Place(0)
        for place in sample_places(path, last, Place(len(path))):
            if not self._touches_at(path, place):
                return self._edge(path, last, place)
            last = place
        return None

    def _edge(self, path: Path, before: Place, after: Place) -> Place:
        low, high = before.s if before.piece == after.piece else 0.0, after.s
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            inside = self._touches_at(path, Place(after.piece, middle))
            low, high = (middle, high) if inside else (low, middle)
        return Place(after.piece, high)

    def _touches_at(self, path: Path, place: Place) -> bool:
        return self.touches(path.position(place.piece, place.s))

    def _pairs(self) -> list[tuple[int, int]]:
        """Pairs of the tip with every object."""
        names, moving = self._detector.names, self._detector.world.moving
        tip = names.index(TIP)
        return [(tip, other) for other in range(moving, len(names))]

    def _update(self) -> None:
        """Takes over the present tool and the present objects."""
        from understudy.space.collision.detector import CollisionDetector
        from understudy.space.collision.sweep import Sweeper

        mover, environment = self._tool.mover, self._around.environment
        assert isinstance(mover, ArmMover)
        if self._known is not None and self._known == (environment, mover):
            return
        body = self._around.body
        self._detector = CollisionDetector(
            body.chain,
            environment.objects,
            meshes=body.meshes,
            foot=body.foot,
            check_self_collision=False,
        )
        tip = np.eye(4)
        tip[:3, 3] = mover.frames.tool[:3, 3]
        point = CollisionObject(type=ObjectType.SPHERE, name=TIP, radius=RADIUS, transform=tip)
        self._detector.attach(point)
        self._sweeper = Sweeper(self._detector)
        self._known = environment, mover
