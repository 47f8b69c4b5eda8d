"""Tracker: the places of a path where pairs of shapes begin to touch, and where they part.

Pairs that touch are left out of the sweep until they are apart again, so that one contact does not
hide another. A place is the number of a path piece and the distance along it.
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from understudy.motion.path import Floats, Path
from understudy.motion.plan import Plan
from understudy.motion.stream import ending_at
from understudy.simulation.collision.contact import Contact, ContactKind, Pair
from understudy.units import DEG, MM

if TYPE_CHECKING:
    from understudy.simulation.collision.body import Scene
    from understudy.space.collision.sweep import ContactSpot

MOST_EVENTS = 32
"""The highest number of events of one call; the rest of the path is swept later."""
APART = 0.1 * MM
"""Distance in metres at which a touching pair counts as parted."""
MOST_PIECES = 512
"""The highest number of path pieces in one sweep."""
FARTHEST = 720.0 * DEG
"""The longest joint motion on one piece in one sweep."""
HEAVY_FARTHEST = 0.1 * DEG
"""The longest joint motion in one sweep with a held mesh of many triangles: beside another mesh
each step takes long, and an emergency stop waits for the whole sweep."""
STEP = 0.5 * DEG
LOOKS = 64
HALVINGS = 24


class Place(Struct, frozen=True, order=True):
    """A place on a path: piece number and distance along the piece."""

    piece: int
    s: float = 0.0


class PathEvent(Struct, frozen=True):
    """Two shapes begin to touch at a place of the path, or part there (without a contact)."""

    place: Place
    pair: Pair
    contact: Contact | None = None


@dataclass(frozen=True)
class SweptStretch:
    """The events of a stretch of path, its end, and the pairs that touch there."""

    events: list[PathEvent]
    end: Place
    touching: tuple[Pair, ...]


class Tracker:
    """Finds the events of a path; piece numbers are those of the given path."""

    def __init__(self, scene: "Scene") -> None:
        self._scene = scene

    def at_rest(self, q: Floats, line: int) -> list[PathEvent]:
        """All pairs that touch in a configuration."""
        shape, length = np.stack([q, np.zeros_like(q)])[None], np.zeros(1)
        found: list[PathEvent] = []
        while len(found) < MOST_EVENTS:
            known = [event.pair for event in found]
            spot = self._scene.sweeper.first_contact(shape, length, known)
            if spot is None:
                break
            found.append(PathEvent(Place(0), spot.pair, self._contact(spot, line, [q])))
        return found

    def follow(self, path: Path, start: Place, touching: tuple[Pair, ...]) -> SweptStretch:
        """The events from a place to the end of the path, or to the last of `MOST_EVENTS`."""
        here, events, end = start, list[PathEvent](), Place(len(path))
        while here < end and len(events) < MOST_EVENTS:
            rest = beginning_at(path, here)
            spot = self._scene.sweeper.first_contact(rest.shape, rest.length, touching)
            until = end if spot is None else _place(spot, here)
            parted = self._first_parting(path, here, until, touching)
            if parted is not None:
                events.append(parted)
                here = parted.place
                touching = tuple(pair for pair in touching if pair != parted.pair)
            elif spot is not None:
                rest_of_line = _rest_of_line(path, until)
                contact = self._contact(spot, int(path.line[until.piece]), rest_of_line)
                events.append(PathEvent(until, spot.pair, contact))
                here, touching = until, (*touching, spot.pair)
            else:
                here = end
        return SweptStretch(events, here, touching)

    def _contact(self, spot: "ContactSpot", line: int, looked_at: list[Floats]) -> Contact:
        between = self._scene.detector.distance_between
        depth = max(0.0, *(-between(q, *spot.pair) for q in looked_at), -spot.distance)
        kind: ContactKind = "self_collision" if spot.self_collision else "collision"
        if self._scene.is_zone(spot.object2_name):
            kind = "zone"
        return Contact(spot.object1_name, spot.object2_name, kind, spot.point, depth, line)

    def _first_parting(
        self, path: Path, start: Place, until: Place, touching: tuple[Pair, ...]
    ) -> PathEvent | None:
        found = (self._parting(path, start, until, pair) for pair in touching)
        return min((e for e in found if e is not None), key=lambda e: e.place, default=None)

    def _parting(self, path: Path, start: Place, until: Place, pair: Pair) -> PathEvent | None:
        """The place where a touching pair parts; None if it does not."""
        last = start
        for place in sample_places(path, start, until):
            if self._apart(path, place, pair):
                return PathEvent(self._edge(path, last, place, pair), pair)
            last = place
        return None

    def _apart(self, path: Path, place: Place, pair: Pair) -> bool:
        q = path.position(place.piece, place.s)
        return self._scene.detector.distance_between(q, *pair) > APART

    def _edge(self, path: Path, before: Place, after: Place, pair: Pair) -> Place:
        if before.piece != after.piece:
            before = Place(after.piece)
        low, high = before.s, after.s
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            parted = self._apart(path, Place(after.piece, middle), pair)
            low, high = (low, middle) if parted else (middle, high)
        return Place(after.piece, high)


def beginning_at(path: Path, place: Place) -> Path:
    """The rest of a path from a place on, where its first piece begins."""
    rest = path.rows(place.piece, len(path))
    if place.s == 0.0:
        return rest
    shape, length = rest.shape.copy(), rest.length.copy()
    shape[0] = _shifted(shape[0], place.s)
    length[0] = max(length[0] - place.s, 0.0)
    return replace(rest, shape=shape, length=length)


def next_stretch(path: Path, start: Place, most: float = math.inf) -> tuple[Path, Place]:
    """The part of a path for one sweep, and its end; a jog can be very long. ``most``: the longest
    joint motion in all."""
    for piece in range(start.piece, min(start.piece + MOST_PIECES, len(path))):
        begins, ends = start.s if piece == start.piece else 0.0, float(path.length[piece])
        turned = np.abs(path.position(piece, ends) - path.position(piece, begins)).max()
        allowed = min(FARTHEST, most)
        if turned > allowed:
            cut = begins + (ends - begins) * allowed / float(turned)
            return ending_at(path, (piece, cut)), Place(piece, cut)
        most -= float(turned)
    end = min(start.piece + MOST_PIECES, len(path))
    return path.rows(0, end), Place(end)


def to_be_run(plan: Plan) -> Path:
    """The path of a plan up to its end: a stop cuts off the rest of the last piece."""
    path, last = plan.path, len(plan.path) - 1
    if last < 0 or path.dwell[last] > 0.0 or not len(plan.law):
        return path
    end = plan.place(plan.ends)
    if end.piece != last or end.s >= path.length[last]:
        return path
    length, ends = path.length.copy(), path.end.copy()
    length[last], ends[last] = end.s, plan.target
    return replace(path, length=length, end=ends)


def _shifted(rows: Floats, s: float) -> Floats:
    """The polynomial q(s + x), by powers of x (repeated Horner scheme)."""
    found = rows.copy()
    for k in range(len(rows)):
        for d in range(len(rows) - 2, k - 1, -1):
            found[d] += s * found[d + 1]
    return found


def _place(spot: "ContactSpot", start: Place) -> Place:
    """The place of a spot on the whole path; the spot is given on the rest from ``start``."""
    along = start.s if spot.piece == 0 else 0.0
    return Place(start.piece + spot.piece, along + spot.s)


def sample_places(path: Path, start: Place, until: Place) -> list[Place]:
    """Places in steps of half a degree and all piece ends; the last one is ``until``."""
    found: list[Place] = []
    for piece in range(start.piece, min(until.piece + 1, len(path))):
        begins = start.s if piece == start.piece else 0.0
        ends = until.s if piece == until.piece else float(path.length[piece])
        turned = np.abs(path.position(piece, ends) - path.position(piece, begins)).max()
        steps = min(max(int(np.ceil(turned / STEP)), 1), LOOKS)
        found += (Place(piece, float(s)) for s in np.linspace(begins, ends, steps + 1)[1:])
    return found


def _rest_of_line(path: Path, place: Place) -> list[Floats]:
    """Configurations from a place to the end of its line."""
    line = np.flatnonzero(path.line[place.piece :] != path.line[place.piece])
    end = place.piece + int(line[0]) if len(line) else len(path)
    places = sample_places(path, place, Place(end))
    chosen = places[:: max(len(places) // LOOKS, 1)]
    return [path.position(each.piece, each.s) for each in (place, *chosen)]
