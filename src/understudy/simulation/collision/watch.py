"""CollisionWatch: reports the contacts of a moving arm when they begin.

The path is swept ahead of the motion, a stretch at a time: the first wake of a motion sweeps all of
the path that is known then, the next wake comes at the end of the swept stretch. A contact is a
place on the path and its time is read from the plan, so hold, override and braking change only the
time. A change of the path itself (stop, jog, tool, environment) starts a new sweep.

Its `Tracker` finds the places of a path where pairs of shapes begin to touch, and where they part.
Pairs that touch are left out of the sweep until they are apart again, so that one contact does not
hide another. A place is the number of a path piece and the distance along it.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np
from msgspec import Struct, structs

from understudy.errors import Refused
from understudy.motion.path import Floats, Path
from understudy.motion.plan import Plan, TimeLaw, passing_time
from understudy.motion.stream import ending_at
from understudy.simulation.collision.body import Body, Scene
from understudy.simulation.collision.contact import (
    WIRE_LINES,
    CollisionListener,
    Contact,
    ContactKind,
    ContactReport,
    Names,
    Pair,
    report,
)
from understudy.simulation.environment import SavedObject
from understudy.space.model.environment import CollisionReaction, Environment
from understudy.space.model.robot import Sphere
from understudy.space.model.shapes import CollisionObject, as_object
from understudy.space.transform import Array, translation
from understudy.units import DEG, MM, seconds, whole_ns

if TYPE_CHECKING:
    from understudy.space.collision.arm_pair import PlacedArm
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


class PathPlace(Struct, frozen=True, order=True):
    """A place on a path: piece number and distance along the piece."""

    piece: int
    s: float = 0.0


class PathEvent(Struct, frozen=True):
    """Two shapes begin to touch at a place of the path, or part there (without a contact)."""

    place: PathPlace
    pair: Pair
    contact: Contact | None = None


@dataclass(frozen=True)
class SweptStretch:
    """The events of a stretch of path, its end, and the pairs that touch there."""

    events: list[PathEvent]
    end: PathPlace
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
            found.append(PathEvent(PathPlace(0), spot.pair, self._contact(spot, line, [q])))
        return found

    def follow(self, path: Path, start: PathPlace, touching: tuple[Pair, ...]) -> SweptStretch:
        """The events from a place to the end of the path, or to the last of `MOST_EVENTS`."""
        here, events, end = start, list[PathEvent](), PathPlace(len(path))
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
        self, path: Path, start: PathPlace, until: PathPlace, touching: tuple[Pair, ...]
    ) -> PathEvent | None:
        found = (self._parting(path, start, until, pair) for pair in touching)
        return min((e for e in found if e is not None), key=lambda e: e.place, default=None)

    def _parting(
        self, path: Path, start: PathPlace, until: PathPlace, pair: Pair
    ) -> PathEvent | None:
        """The place where a touching pair parts; None if it does not."""
        last = start
        for place in sample_places(path, start, until):
            if self._apart(path, place, pair):
                return PathEvent(self._edge(path, last, place, pair), pair)
            last = place
        return None

    def _apart(self, path: Path, place: PathPlace, pair: Pair) -> bool:
        q = path.position(place.piece, place.s)
        return self._scene.detector.distance_between(q, *pair) > APART

    def _edge(self, path: Path, before: PathPlace, after: PathPlace, pair: Pair) -> PathPlace:
        if before.piece != after.piece:
            before = PathPlace(after.piece)
        low, high = before.s, after.s
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            parted = self._apart(path, PathPlace(after.piece, middle), pair)
            low, high = (low, middle) if parted else (middle, high)
        return PathPlace(after.piece, high)


def beginning_at(path: Path, place: PathPlace) -> Path:
    """The rest of a path from a place on, where its first piece begins."""
    rest = path.rows(place.piece, len(path))
    if place.s == 0.0:
        return rest
    shape, length = rest.shape.copy(), rest.length.copy()
    shape[0] = _shifted(shape[0], place.s)
    length[0] = max(length[0] - place.s, 0.0)
    return replace(rest, shape=shape, length=length)


def next_stretch(path: Path, start: PathPlace, most: float = math.inf) -> tuple[Path, PathPlace]:
    """The part of a path for one sweep, and its end; a jog can be very long. ``most``: the longest
    joint motion in all."""
    for piece in range(start.piece, min(start.piece + MOST_PIECES, len(path))):
        begins, ends = start.s if piece == start.piece else 0.0, float(path.length[piece])
        turned = np.abs(path.position(piece, ends) - path.position(piece, begins)).max()
        allowed = min(FARTHEST, most)
        if turned > allowed:
            cut = begins + (ends - begins) * allowed / float(turned)
            return ending_at(path, (piece, cut)), PathPlace(piece, cut)
        most -= float(turned)
    end = min(start.piece + MOST_PIECES, len(path))
    return path.rows(0, end), PathPlace(end)


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


def _place(spot: "ContactSpot", start: PathPlace) -> PathPlace:
    """The place of a spot on the whole path; the spot is given on the rest from ``start``."""
    along = start.s if spot.piece == 0 else 0.0
    return PathPlace(start.piece + spot.piece, along + spot.s)


def sample_places(path: Path, start: PathPlace, until: PathPlace) -> list[PathPlace]:
    """Places in steps of half a degree and all piece ends; the last one is ``until``."""
    found: list[PathPlace] = []
    for piece in range(start.piece, min(until.piece + 1, len(path))):
        begins = start.s if piece == start.piece else 0.0
        ends = until.s if piece == until.piece else float(path.length[piece])
        turned = np.abs(path.position(piece, ends) - path.position(piece, begins)).max()
        steps = min(max(int(np.ceil(turned / STEP)), 1), LOOKS)
        found += (PathPlace(piece, float(s)) for s in np.linspace(begins, ends, steps + 1)[1:])
    return found


def _rest_of_line(path: Path, place: PathPlace) -> list[Floats]:
    """Configurations from a place to the end of its line."""
    line = np.flatnonzero(path.line[place.piece :] != path.line[place.piece])
    end = place.piece + int(line[0]) if len(line) else len(path)
    places = sample_places(path, place, PathPlace(end))
    chosen = places[:: max(len(places) // LOOKS, 1)]
    return [path.position(each.piece, each.s) for each in (place, *chosen)]


MOST_UNCLEARED = 100


class Mover(Protocol):
    """The motion that is watched."""

    @property
    def plan(self) -> Plan: ...

    @property
    def first(self) -> int:
        """The number of the plan's first piece; pieces keep their numbers when the plan changes."""
        ...

    @property
    def held(self) -> bool:
        """The motion is held: the path continues where the plan ends."""
        ...

    @property
    def tool(self) -> int: ...

    def collided(self, contact: Contact, now: int) -> None:
        """Stops the motion at once."""
        ...


class TouchingPair(Struct, frozen=True):
    """Two shapes that touch now; `shown`: the operator has not cleared it."""

    pair: Pair
    contact: Contact
    shown: bool = True


class State(Struct):
    """The state in a snapshot.

    `swept`: the end of the swept stretch; `beyond`: the pairs that touch there. `ahead`: events
    before that end. `replanned_at`: when the path was changed. `met`: contacts with other arms.
    `uncleared`: contacts since the operator cleared them, ended ones too. `held`: only in
    snapshots. `reaction`: chosen by the operator; None: that of the cell file.
    """

    fresh: bool = True
    swept: PathPlace = PathPlace(0)
    beyond: list[Pair] = []
    ahead: list[PathEvent] = []
    touching: list[TouchingPair] = []
    replanned_at: int | None = None
    seen: int = 0
    tool: int = 0
    held: list[SavedObject] = []
    met: list[Contact] = []
    detected: int = 0
    stopped: bool = False
    uncleared: list[Contact] = []
    reaction: CollisionReaction | None = None


class Status(Struct, frozen=True):
    """Present contacts, the count of all contacts, and the reaction to a contact."""

    on_collision: CollisionReaction
    collisions_detected: int
    stopped: bool
    held: tuple[str, ...]
    contacts: tuple[ContactReport, ...]


class CollisionWatch:
    """A component beside its arm."""

    def __init__(self, name: str, body: Body, mover: Mover, log: Callable[[str], None]) -> None:
        self._name = name
        self.body = body
        self._mover = mover
        self._log = log
        self._listeners: list[CollisionListener] = []
        self._scene = Scene(body)
        self._tracker = Tracker(self._scene)
        self._state = State(tool=mover.tool)
        self._held: tuple[CollisionObject, ...] = ()
        self._scene.carry(mover.tool, ())
        self._law: TimeLaw | None = None
        self._due: int | None = None

    def prepare(self) -> Iterator[None]:
        """Does the slow work of the first motion and of the first held object in advance, step by
        step: finds the pairs that can touch and loads compiled code. The state does not change."""
        from understudy.space.collision.sweep import straight

        scene, here = self._scene, np.zeros(self.body.chain.dof)
        assert scene.detector.self_collision_pairs is not None
        yield
        shape, length = straight(here, here + 1e-9)
        # A line of the tool is a cubic, whose bounds are compiled code.
        scene.sweeper.sweep(np.pad(shape, ((0, 0), (0, 2), (0, 0))), length)
        yield
        ball = as_object("ball", Sphere(0.01), translation(0.0, 0.0, 0.1))
        assert self.body.detector(Environment(), self._state.tool, (ball,)).world is not None

    def contact_on(self, path: Path) -> Names | None:
        """The first two things that would touch on a path that the arm has not been sent; those
        that touch now do not count."""
        touching = [each.pair for each in self._state.touching]
        spot = self._scene.sweeper.first_contact(path.shape, path.length, touching)
        return None if spot is None else (spot.object1_name, spot.object2_name)

    # ── changes ──

    def surround(self, environment: Environment, now: int | None) -> None:
        """Replaces the environment at ``now``; None: before the start."""
        self._scene.surround(environment)
        if now is not None:
            self.restart(now)

    def restart(self, now: int) -> None:
        """Discards the swept stretch; the next wake sweeps anew, even at rest."""
        self._state.replanned_at = now

    def cut(self, now: int) -> None:
        """Discards the swept stretch after a change of the path, unless nothing has moved yet."""
        if not self._state.fresh:
            self.restart(now)

    def attach(self, thing: CollisionObject, now: int) -> Refused | None:
        """Takes an object, placed from the flange; objects that it touches now are not reported."""
        if any(held.name == thing.name for held in self._held):
            return Refused(f"{thing.name} is held already")
        self._carry((*self._held, thing))
        self._start_anew(now, quiet=thing.name)
        return None

    def detach(self, name: str, now: int) -> CollisionObject | Refused:
        """Releases a held object and returns it, placed in the frame of the flange."""
        found = [thing for thing in self._held if thing.name == name]
        if not found:
            held = ", ".join(thing.name for thing in self._held) or "nothing"
            return Refused(f"{name} is not held; held: {held}")
        self._carry(tuple(thing for thing in self._held if thing.name != name))
        self.restart(now)
        return found[0]

    def clear(self) -> None:
        """Hides the present contacts; each is reported again after the shapes have parted."""
        self._state.touching = [structs.replace(t, shown=False) for t in self._state.touching]
        self._state.met, self._state.uncleared = [], []

    def meet(self, contact: Contact, now: int) -> None:
        """Adds a contact with another arm."""
        self._state.met = [*self._state.met, contact]
        self._announce(contact, now)

    def leave(self, names: Names) -> None:
        """Removes a contact with another arm."""
        self._state.met = [contact for contact in self._state.met if contact.names != names]

    def stop_for(self, contact: Contact, now: int) -> None:
        """Stops the arm if its reaction to a contact is `stop`."""
        if self.reaction == "stop" and not self._state.stopped:
            self._state.stopped = True
            self._mover.collided(contact, now)

    def react(self, reaction: CollisionReaction) -> None:
        """Sets the reaction to the next contact, in place of that in the cell file."""
        self._state.reaction = reaction

    def release(self) -> None:
        """Allows the stopped arm to move again."""
        self._state.stopped = False

    # ── readings ──

    def on_collision(self, listener: CollisionListener) -> None:
        self._listeners.append(listener)

    @property
    def environment(self) -> Environment:
        return self._scene.environment

    @property
    def reaction(self) -> CollisionReaction:
        return self._state.reaction or self.body.rules.on_collision

    @property
    def detected(self) -> int:
        return self._state.detected

    @property
    def stopped(self) -> bool:
        """Whether the watch has stopped its arm and the arm was not released yet."""
        return self._state.stopped

    def contacts(self) -> tuple[Contact, ...]:
        """The present contacts."""
        by_name = {t.contact.names: t.contact for t in self._state.touching if t.shown}
        return (*by_name.values(), *self._state.met)

    def uncleared(self) -> tuple[Contact, ...]:
        """The contacts since the operator cleared them, the first of each pair of names."""
        return tuple(self._state.uncleared)

    def held(self) -> tuple[CollisionObject, ...]:
        """The held objects, in the frame of the flange."""
        return self._held

    def status(self, now: int) -> Status:
        state = self._state
        return Status(
            on_collision=self.reaction,
            collisions_detected=state.detected,
            stopped=state.stopped,
            held=tuple(thing.name for thing in self._held),
            contacts=tuple(report(contact) for contact in self.contacts()),
        )

    @property
    def plan(self) -> Plan:
        return self._mover.plan

    @property
    def tool_and_held(self) -> tuple[int, tuple[tuple[str, bytes], ...]]:
        """The number of the tool, and the names and places of the held objects."""
        held = tuple((thing.name, thing.place.tobytes()) for thing in self._held)
        return self._mover.tool, held

    def figure(self) -> "PlacedArm":
        """The arm with its present tool and held objects."""
        return self.body.figure(self._mover.tool, self.held())

    def flange(self, now: int) -> Array:
        """The pose of the flange in the cell, 4×4."""
        q = self._mover.plan.at(seconds(now)).position
        return np.asarray(self.body.foot @ self.body.chain.flange(q))

    # ── time ──

    def next_wake(self) -> int | None:
        if self._state.replanned_at is not None:
            return self._state.replanned_at
        plan = self._mover.plan
        if plan.law is not self._law:
            self._law, self._due = plan.law, self._when(plan)
        return self._due

    def wake(self, now: int) -> None:
        state = self._state
        if state.fresh or state.replanned_at is not None or state.tool != self._mover.tool:
            self._start_anew(now)
        else:
            self._reach_events(now)
            if state.replanned_at is None and self._reached(state.swept, now):
                self._look_ahead()
        state.seen, self._law = now, None

    def busy(self) -> bool:
        return False

    def save(self) -> State:
        return structs.replace(self._state, held=[SavedObject.of(thing) for thing in self._held])

    def load(self, state: Any) -> None:
        self._state = msgspec.convert(state, State)
        self._held = tuple(thing.built() for thing in self._state.held)
        self._state.held = []
        self._scene.carry(self._state.tool, self._held)
        self._law = None

    # ── inside ──

    def _when(self, plan: Plan) -> int | None:
        first = self._mover.first
        swept = PathPlace(first) if self._state.fresh else self._state.swept
        places = [event.place for event in self._state.ahead[:1]] + [swept]
        moments = [passing_time(plan, place.piece - first, place.s) for place in places]
        due = min((whole_ns(moment) for moment in moments if moment is not None), default=None)
        return None if due is None else max(due, self._state.seen)

    def _reached(self, place: PathPlace, now: int) -> bool:
        moment = passing_time(self._mover.plan, place.piece - self._mover.first, place.s)
        return moment is not None and whole_ns(moment) <= now

    def _reach_events(self, now: int) -> None:
        state = self._state
        while (
            state.ahead and state.replanned_at is None and self._reached(state.ahead[0].place, now)
        ):
            event, *state.ahead = state.ahead
            if event.contact is None:
                state.touching = [t for t in state.touching if t.pair != event.pair]
            else:
                self._touch(event.pair, event.contact, now)

    def _touch(self, pair: Pair, contact: Contact, now: int, *, quiet: bool = False) -> None:
        """A pair begins to touch; shapes of one name are reported once."""
        state, before = self._state, self._touched_by_name().get(contact.names)
        contact = structs.replace(contact, at=now, line=contact.line % WIRE_LINES)
        shown = not quiet and (before is None or before.shown)
        state.touching = [*state.touching, TouchingPair(pair, contact, shown)]
        if not quiet and before is None:
            self._announce(contact, now)

    def _announce(self, contact: Contact, now: int) -> None:
        state = self._state
        state.detected += 1
        known = any(each.names == contact.names for each in state.uncleared)
        if not known:
            state.uncleared = [*state.uncleared[1 - MOST_UNCLEARED :], contact]
        self._log(f"{self._name}: {contact.text()}")
        for listener in self._listeners:
            listener(contact)
        self.stop_for(contact, now)

    def _start_anew(self, now: int, quiet: str = "") -> None:
        """Finds the present contacts and sweeps the path ahead anew."""
        state, plan = self._state, self._mover.plan
        state.fresh, state.replanned_at, state.ahead = False, None, []
        if state.tool != self._mover.tool:
            state.tool = self._mover.tool
            self._carry(self._held)
        t = seconds(now)
        line = plan.line_at(t) or 0
        found = self._tracker.at_rest(plan.at(t).position, line)
        before, state.touching = self._touched_by_name(), []
        for event in found:
            assert event.contact is not None
            known = before.get(event.contact.names)
            if known is not None:
                state.touching = [*state.touching, structs.replace(known, pair=event.pair)]
            else:
                self._touch(event.pair, event.contact, now, quiet=quiet in event.contact.names)
        state.beyond = [event.pair for event in found]
        state.swept = self._here(plan, now)
        if state.replanned_at is None:
            self._look_ahead()

    def _touched_by_name(self) -> dict[Names, TouchingPair]:
        return {t.contact.names: t for t in self._state.touching}

    def _here(self, plan: Plan, now: int) -> PathPlace:
        """The place of the arm on the path; the end of the path when the motion is over."""
        first, pieces = self._mover.first, len(plan.path)
        if not pieces or (whole_ns(plan.ends) <= now and not self._mover.held):
            return PathPlace(first + pieces)
        here = plan.place(seconds(now))
        if here.s >= plan.path.length[here.piece]:
            return PathPlace(first + here.piece + 1)
        return PathPlace(first + here.piece, here.s)

    def _look_ahead(self) -> None:
        """Sweeps the next stretch of the path."""
        state, plan, first = self._state, self._mover.plan, self._mover.first
        start = PathPlace(state.swept.piece - first, state.swept.s)
        most = HEAVY_FARTHEST if self._scene.is_heavy else math.inf
        whole = plan.path if self._mover.held else to_be_run(plan)
        path, end = next_stretch(whole, start, most)
        stretch = self._tracker.follow(path, start, tuple(state.beyond))
        moved = (structs.replace(e, place=_later(e.place, first)) for e in stretch.events)
        state.ahead = [*state.ahead, *moved]
        swept = min(stretch.end, end) if start < end else start
        state.swept, state.beyond = _later(swept, first), list(stretch.touching)

    def _carry(self, held: tuple[CollisionObject, ...]) -> None:
        self._held = held
        self._scene.carry(self._state.tool, held)


def _later(place: PathPlace, pieces: int) -> PathPlace:
    return PathPlace(place.piece + pieces, place.s)
