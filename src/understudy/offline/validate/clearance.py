"""The certified collision sweep of a program: one verdict per line, contacts put into words."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from understudy.motion.path import Floats, Ints, Path, dwell_path, joined
from understudy.motion.plan import Plan
from understudy.motion.stream import ending_at
from understudy.offline.robot import Arm, Machine
from understudy.offline.validate.report import (
    CLEARANCE,
    Finding,
    FindingKind,
    JudgeOptions,
    PartContact,
)
from understudy.simulation.collision.watch import PathPlace, beginning_at
from understudy.space.collision.pair_store import Pair
from understudy.space.collision.sweep import (
    ContactSpot,
    LineResult,
    Sweeper,
    SweptLines,
    Verdict,
)
from understudy.space.model.environment import Environment
from understudy.units import MM

LINES_AT_ONCE = 400
SAMPLES_AT_ONCE = 8192
MOST_SAMPLES = 500_000
"""Most samples of one stretch (83 minutes)."""
STEP_S = 0.01
"""Seconds between two samples of a motion."""


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """Pieces ``first`` up to ``last`` of a plan, whole lines of the program. Times in seconds."""

    plan: Plan
    first: int
    last: int
    begins: float
    ends: float
    number: Ints
    starts: Floats

    @property
    def path(self) -> Path:
        return self.plan.path.rows(self.first, self.last)

    def grids(self) -> Iterator[Floats]:
        """Sample times in arrays of some thousand, 10 ms apart (more if the stretch lasts
        hours); each array begins where the last one ended."""
        count = int(np.ceil(min((self.ends - self.begins) / STEP_S, MOST_SAMPLES))) + 1
        for first in range(0, max(count - 1, 1), SAMPLES_AT_ONCE - 1):
            share = np.arange(first, min(first + SAMPLES_AT_ONCE, count)) / max(count - 1, 1)
            yield self.begins + share * (self.ends - self.begins)

    def lines_at(self, times: Floats) -> NDArray[np.int64]:
        """The program line that runs at each time."""
        found = np.searchsorted(self.starts, times, side="right") - 1
        return np.asarray(self.number[np.maximum(found, 0)])

    def time_at(self, piece: int, s: float) -> float:
        """The time at which the plan is at distance s along a piece of this stretch."""
        law = self.plan.law
        low_, high_ = np.searchsorted(law.piece, [self.first + piece, self.first + piece + 1])
        if low_ == high_:
            return self.begins
        segments = slice(int(low_), int(high_))
        k = int(low_) + max(int(np.searchsorted(law.s[segments], s, side="right")) - 1, 0)
        low, high = 0.0, float(law.begins[k + 1] - law.begins[k])
        for _ in range(50):
            x = 0.5 * (low + high)
            run = law.s[k] + x * (law.v[k] + x * (0.5 * law.a[k] + x * law.j[k] / 6.0))
            low, high = (x, high) if run < s else (low, x)
        return float(law.begins[k]) + high


def stretches(plan: Plan, *, goes_on: bool = False) -> Iterator[Stretch]:
    """The stretches of a plan, in order; ``goes_on``: it is still moving where it ends."""
    number, starts = plan.lines()
    if not len(number):
        return
    line = plan.path.line
    edges = np.flatnonzero(np.diff(line, prepend=line[0] - 1))[::LINES_AT_ONCE].tolist()
    law = plan.law
    for first, last in zip(edges, [*edges[1:], len(line)], strict=True):
        k = int(np.searchsorted(law.piece, first))
        m = int(np.searchsorted(law.piece, last))
        ends = float(law.begins[m])
        if goes_on and m == len(law):
            ends = float(np.nextafter(ends, -np.inf))  # at its end a plan rests
        yield Stretch(plan, first, last, float(law.begins[k]), ends, number, starts)


PIECES_AT_ONCE = 1000
"""Path pieces of one sweep, which share their certificates."""
AT_THE_START = 1e-9
MOST_PAIRS = 12
"""Most touching pairs of a line that are reported; a note says how many there are."""
MOST_COUNTED = 200
"""Most touching pairs that are searched for on a line."""
MOST_SEARCHED = 1000
"""Most lines that are searched for further pairs; other lines report their first pair only."""

Thing = tuple[str, ...]
"""Key of a contact: its kind, and the touched object unless the arm touches itself."""
NAMED = 3
"""Most further parts that a message names; the report has all of them."""
When = Callable[[int, float], float]
"""Returns the time at which the arm is at a distance along a piece of a path."""
Seen = tuple[ContactSpot, float]
"""A place on the path, and the time at which the arm is there."""


class Proof(Struct, frozen=True, gc=False):
    """The verdict on a line: proven clearance and smallest distance seen, in metres; violations,
    or a warning."""

    line: int
    clearance: float
    seen: float
    proven: bool
    violations: tuple[Finding, ...] = ()
    warning: Finding | None = None


class ProvenLines(NamedTuple):
    """Lines that are proven, in columns: their numbers, proven clearances and smallest distances
    seen."""

    lines: Ints
    clearance: Floats
    seen: Floats


ALONE = 2
"""Batches of pieces that are swept by the calling thread: a short program needs no others."""
AHEAD = 8
"""Most batches that are swept, or being swept, while their verdicts wait."""


class Swept(NamedTuple):
    """A path that was swept, and what was found."""

    path: Path
    when: When
    found: SweptLines


class SweepQueue:
    """Sweeps paths in their order, on several threads if there are many.

    Paths are handed in and results are taken at the same moments whatever the number of threads is,
    so that it changes nothing in a report.
    """

    def __init__(self, threads: int, clearance: float) -> None:
        self._threads, self._clearance = threads, clearance
        self._put = 0
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: deque[Callable[[], Swept]] = deque()
        self._idle: list[Sweeper] = []
        """Twins of the sweeper that no thread uses now."""

    def put(self, sweeper: Sweeper, path: Path, when: When) -> None:
        """Hands in a path; all of them are taken before another sweeper comes."""
        self._put += 1
        if self._threads == 1 or self._put <= ALONE:
            done = self._swept(sweeper, path, when)
            self._waiting.append(lambda: done)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, "sweep")
        self._waiting.append(self._pool.submit(self._on_thread, sweeper, path, when).result)

    def take(self, ahead: int = AHEAD) -> Iterator[Swept]:
        """The results of all but the last ``ahead`` paths."""
        while len(self._waiting) > ahead:
            yield self._waiting.popleft()()
        if not ahead:
            self._idle.clear()

    def close(self) -> None:
        """Ends the threads."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def _on_thread(self, sweeper: Sweeper, path: Path, when: When) -> Swept:
        own = self._idle.pop() if self._idle else sweeper.twin()
        swept = self._swept(own, path, when)
        self._idle.append(own)
        return swept

    def _swept(self, sweeper: Sweeper, path: Path, when: When) -> Swept:
        least = self._clearance
        found = sweeper.swept(path.shape, path.length, lines=path.line, clearance=least)
        if found.proven.all():  # only the columns wait, not the path and its plans
            return Swept(path.rows(0, 0), _forgotten, found._replace(line=_forgotten))
        return Swept(path, when, found)


def _forgotten(*place: float) -> Any:
    raise AssertionError("a proven line is asked for what touches it")


class Clearance:
    """Collects the stretches of a program and sweeps them with the tool that was mounted."""

    def __init__(self, environment: Environment, options: JudgeOptions, threads: int = 1) -> None:
        self.contacts = Contacts(environment)
        self._asked = options.clearance
        self._least = max(self._asked or CLEARANCE, CLEARANCE)
        self._queue = SweepQueue(threads, self._least)
        self._batch: list[Stretch] = []
        self._pieces = 0
        self._arm: Arm | None = None
        self._touching: set[Thing] = set()
        self._searched = 0
        self._cut: dict[int, int] = {}
        self._environment = environment
        self._meant: MeantContacts | None = None
        self._ignoring: frozenset[Pair] = frozenset()

    @property
    def notes(self) -> tuple[str, ...]:
        """A note if further pairs were not searched for on all lines."""
        notes = []
        if self._cut:
            lines = ", ".join(f"line {line}: {count}" for line, count in self._cut.items())
            notes.append(
                f"more than {MOST_PAIRS} pairs of parts touch on a line, the first {MOST_PAIRS} "
                f"are reported ({lines})"
            )
        if self._searched > MOST_SEARCHED:
            notes.append(
                f"{self._searched} lines have contacts: beyond the first {MOST_SEARCHED} only "
                "the first contact of each line is reported"
            )
        return tuple(notes)

    def add(self, stretch: Stretch, arm: Arm | Machine) -> Iterator[Proof | ProvenLines]:
        """Adds the next stretch; yields verdicts when enough stretches are collected."""
        if arm.sweeper is None:
            return
        if arm is not self._arm:
            yield from self.flush()
            self._arm, self._meant = arm, None
        if self._meant is not None:
            yield from self._retract(stretch.path, stretch.time_at, self._meant)
            return
        self._batch.append(stretch)
        self._pieces += stretch.last - stretch.first
        if self._pieces >= PIECES_AT_ONCE:
            self._hand_in(arm.sweeper)
            for swept in self._queue.take():
                yield from self._verdicts(swept)

    def close(self) -> None:
        """Ends the threads."""
        self._queue.close()

    def probe(self, stretch: Stretch, arm: Arm | Machine) -> Iterator[Proof | ProvenLines]:
        """Sweeps a probing move; the touch at its end, and the retract from it, are meant."""
        if not isinstance(arm, Arm) or arm.sweeper is None:
            return
        yield from self.flush()
        self._arm, path = arm, stretch.path
        if self._meant is not None:
            yield from self._retract(path, stretch.time_at, self._meant)
            return
        end = path.position(len(path) - 1, float(path.length[-1]))
        meant = MeantContacts(arm, end, self._environment, 1.1 * self._least)
        if not meant.pairs:
            yield from self._swept(path, stretch.time_at)
            return
        self._meant = meant
        place = meant.touch_begins(path)
        yield from self._in_two(path, stretch.time_at, place, (frozenset(), meant.pairs))

    def _retract(
        self, path: Path, when: When, meant: "MeantContacts"
    ) -> Iterator[Proof | ProvenLines]:
        """Sweeps a path that begins in a meant contact."""
        if meant.deeper_on(path):
            self._meant = None
            yield from self._swept(path, when)
            return
        place, left = meant.touch_ends(path)
        self._meant = None if left else meant
        yield from self._in_two(path, when, place, (meant.pairs, frozenset()), rest=left)

    def _in_two(
        self,
        path: Path,
        when: When,
        place: PathPlace,
        ignoring: tuple[frozenset[Pair], frozenset[Pair]],
        *,
        rest: bool = True,
    ) -> Iterator[Proof | ProvenLines]:
        """Sweeps a path up to a place and from it on, each without its pairs; ``rest``: there is
        more of the path after the place."""
        self._ignoring, ignored = ignoring
        yield from self._swept(ending_at(path, (place.piece, place.s)), when)
        self._ignoring = ignored
        if rest:
            yield from self._swept(
                beginning_at(path, place),
                lambda piece, s: when(place.piece + piece, s + (0.0 if piece else place.s)),
            )
        self._ignoring = frozenset()

    def stand(
        self, q: Floats, line: int, when: float, arm: Arm | Machine
    ) -> Iterator[Proof | ProvenLines]:
        """Checks the standing arm after a tool change; yields a verdict only if the new tool
        touches."""
        if arm.sweeper is None:
            return
        yield from self.flush()
        self._arm = arm
        for proof in self._swept(dwell_path(q, 0.0, line=line), lambda piece, s: when):
            if isinstance(proof, Proof):
                yield proof

    def flush(self) -> Iterator[Proof | ProvenLines]:
        """Sweeps the stretches that are collected."""
        if self._arm is not None and self._arm.sweeper is not None:
            self._hand_in(self._arm.sweeper)
        for swept in self._queue.take(0):
            yield from self._verdicts(swept)

    def _hand_in(self, sweeper: Sweeper) -> None:
        batch, self._batch, self._pieces = self._batch, [], 0
        if not batch:
            return
        first = np.cumsum([0, *(stretch.last - stretch.first for stretch in batch)])

        def when(piece: int, s: float) -> float:
            k = int(np.searchsorted(first, piece, side="right")) - 1
            return batch[k].time_at(piece - int(first[k]), s)

        self._queue.put(sweeper, joined([stretch.path for stretch in batch]), when)

    def _swept(self, path: Path, when: When) -> Iterator[Proof | ProvenLines]:
        if self._arm is None or self._arm.sweeper is None:
            return
        found = self._arm.sweeper.swept(
            path.shape,
            path.length,
            lines=path.line,
            clearance=self._least,
            ignoring=self._ignoring,
        )
        yield from self._verdicts(Swept(path, when, found))

    def _verdicts(self, swept: Swept) -> Iterator[Proof | ProvenLines]:
        path, when, found = swept
        begins = 0
        for k in [*np.flatnonzero(~found.proven).tolist(), len(found.lines)]:
            if begins < k:
                some = slice(begins, k)
                self._touching = set()
                yield ProvenLines(found.lines[some], found.clearance[some], found.seen[some])
            if k < len(found.lines):
                yield self._unproven(found.line(k), path, when)
            begins = k + 1

    def _unproven(self, swept: LineResult, path: Path, when: When) -> Proof:
        """The verdict on a line that touches something, or comes too close."""
        before, self._touching = self._touching, set()
        spot = swept.spot
        if spot is None:
            return Proof(swept.line, swept.clearance, swept.seen, swept.proven)
        if swept.verdict is Verdict.CONTACT:
            return self._contact(swept, spot, path, when, before)
        seen = (spot, when(spot.piece, spot.s))
        close = self.contacts.closeness(swept.line, seen, self._least)
        proof = Proof(swept.line, swept.clearance, swept.seen, proven=False, warning=close)
        if self._asked is not None:
            proof = structs.replace(proof, violations=(close,), warning=None)
        return proof

    def _contact(
        self,
        swept: LineResult,
        spot: ContactSpot,
        path: Path,
        when: When,
        before: set[Thing],
    ) -> Proof:
        """The verdict on a line with contacts. A contact at the very start of the line continues
        one of the line before."""
        begins, ends = np.searchsorted(path.line, [swept.line, swept.line + 1]).tolist()
        spots = self._all(spot, path.rows(begins, ends), begins)
        seen: list[Seen] = [(each, when(each.piece, each.s)) for each in spots]
        at_once = {
            thing(self.contacts.kind(each), (each.object1_name, each.object2_name))
            for each in spots
            if each.piece == begins and each.s <= AT_THE_START
        }
        found = self.contacts.touches(swept.line, seen)
        self._touching = things(found)
        still = before & at_once
        findings = (
            replace(each, last=swept.line) if things([each]) <= still else each for each in found
        )
        return Proof(swept.line, 0.0, swept.seen, False, tuple(findings))

    def _all(self, first: ContactSpot, line: Path, begins: int) -> list[ContactSpot]:
        """The first contact of a line and those of other parts, in order of time."""
        self._searched += 1
        if self._searched > MOST_SEARCHED or self._arm is None or self._arm.sweeper is None:
            return [first]
        known = replace(first, piece=first.piece - begins)
        found = self._arm.sweeper.contacts(
            line.shape, line.length, most=MOST_COUNTED, known=known, meant=self._ignoring
        )
        if len(found) > MOST_PAIRS:
            self._cut[int(line.line[0])] = len(found)
        return [replace(each, piece=each.piece + begins) for each in found[:MOST_PAIRS]]


# ── contacts in words ──────────────────────────────────────────────────────────────────────────


class Contacts:
    """Makes findings of contacts in this environment."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def kind(self, spot: ContactSpot) -> FindingKind:
        if spot.self_collision:
            return "self_collision"
        names = (spot.object1_name, spot.object2_name)
        return "zone" if any(map(self._environment.is_zone, names)) else "collision"

    def touches(self, line: int, seen: Sequence[Seen]) -> list[Finding]:
        """One finding per touched object of a line, in order of time."""
        groups: dict[Thing, list[Seen]] = {}
        for spot, when in seen:
            key = thing(self.kind(spot), (spot.object1_name, spot.object2_name))
            groups.setdefault(key, []).append((spot, when))
        return [self._touched(line, group) for group in groups.values()]

    def closeness(self, line: int, seen: Seen, least: float) -> Finding:
        """Parts come closer than is allowed, or than can be distinguished from a contact."""
        spot, when = seen
        said = f"comes closer than {least / MM:g} mm to {spot.object2_name} {_where(spot, when)}"
        return self._finding(line, seen, f"{spot.object1_name} {said}")

    def crash(self, line: int, seen: Seen) -> Finding:
        """A contact that a stop off the path would cause."""
        spot, _ = seen
        does = "would enter the zone" if self.kind(spot) == "zone" else "would touch"
        return self._finding(
            line, seen, f"in a stop with independent joints {_pair(spot, does)} {_where(*seen)}"
        )

    def _touched(self, line: int, group: Sequence[Seen]) -> Finding:
        first, when = group[0]
        does = "enters the zone" if self.kind(first) == "zone" else "touches"
        said = f"{_pair(first, does)} {_where(first, when)}, up to {first.depth / MM:.1f} mm deep"
        also = tuple(_contact(spot, at) for spot, at in group[1:])
        if also:
            said += f"; so {'does' if len(also) == 1 else 'do'} {_parts(also, first)}"
        return self._finding(line, group[0], said, also)

    def _finding(
        self, line: int, seen: Seen, said: str, also: tuple[PartContact, ...] = ()
    ) -> Finding:
        return Finding(
            line,
            self.kind(seen[0]),
            f"line {line}: {said}",
            seen[1],
            contact=_contact(*seen),
            also=also,
        )


def thing(kind: FindingKind, objects: tuple[str, str]) -> Thing:
    """The key under which contacts count as one."""
    return (kind,) if kind == "self_collision" else (kind, objects[1])


def things(found: Iterable[Finding]) -> set[Thing]:
    return {thing(each.kind, each.contact.objects) for each in found if each.contact}


def _contact(spot: ContactSpot, when: float) -> PartContact:
    return PartContact((spot.object1_name, spot.object2_name), spot.point, spot.depth, when)


def _pair(spot: ContactSpot, does: str) -> str:
    return f"{spot.object1_name} {does} {spot.object2_name}"


def _where(spot: ContactSpot, when: float) -> str:
    x, y, z = (value / MM for value in spot.point)
    return f"at ({x:.1f}, {y:.1f}, {z:.1f}) mm, {when:.3f} s"


def _parts(also: Sequence[PartContact], first: ContactSpot) -> str:
    """The further parts that touch the same object; both parts where the arm touches itself."""
    same = first.object2_name
    parts = [
        each.objects[0] if each.objects[1] == same else " with ".join(each.objects) for each in also
    ]
    more = [f"{len(parts) - NAMED} more"] if len(parts) > NAMED else []
    return ", ".join(parts[:NAMED] + more)


# ── contacts that a probing move means ────────────────────────────────────────────────────────────
#
# A probing move means the contact of the tool with the object that stops it. The contact counts as
# meant from just before the touch until the tool has left the object again, as long as the tool
# does not move deeper into it.


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

    def touch_begins(self, path: Path) -> PathPlace:
        """The last place of a probing move at which the tool is still apart from the object."""
        last = PathPlace(0)
        for place in _places(path):
            if self._apart(path, place):
                last = place
        return last

    def touch_ends(self, path: Path) -> tuple[PathPlace, bool]:
        """The first place at which the tool has left the object, and True; else the end of the
        path, and False."""
        for place in _places(path):
            if self._apart(path, place):
                return place, True
        return PathPlace(len(path) - 1, float(path.length[-1])), False

    def deeper_on(self, path: Path) -> bool:
        """Whether the tool moves deeper into the object before it has left it."""
        for place in _places(path):
            if self._apart(path, place):
                return False
            if self._deeper(path, place):
                return True
        return False

    def _apart(self, path: Path, place: PathPlace) -> bool:
        q = path.position(place.piece, place.s)
        distance = self.arm.detector.distance_between
        return all(distance(q, *pair) > self._release for pair in self._depths)

    def _deeper(self, path: Path, place: PathPlace) -> bool:
        q = path.position(place.piece, place.s)
        distance = self.arm.detector.distance_between
        return any(-distance(q, *pair) > depth + DEEPER for pair, depth in self._depths.items())


def _places(path: Path) -> Iterator[PathPlace]:
    starts = np.concatenate([[0.0], np.cumsum(path.length)])
    for whole in np.linspace(0.0, starts[-1], LOOKS).tolist():
        piece = min(int(np.searchsorted(starts, whole, side="right")) - 1, len(path) - 1)
        yield PathPlace(piece, whole - float(starts[piece]))
