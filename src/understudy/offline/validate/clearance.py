"""The certified sweep of a program: some hundred lines at a time, one verdict per line."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from msgspec import Struct

from understudy.motion.path import Floats, Path, dwell_path, joined
from understudy.offline.validate.contacts import Contacts, Seen, Thing, thing, things
from understudy.offline.validate.report import CLEARANCE, Finding, Options
from understudy.offline.validate.stretch import Stretch
from understudy.offline.validate.subject import Arm, Machine
from understudy.space.collision.sweep import ContactSpot, LineResult, Verdict
from understudy.space.model.environment import Environment

PIECES_AT_ONCE = 1000
"""A sweep of so many pieces shares its certificates."""
AT_THE_START = 1e-9
MOST_PAIRS = 12
"""So many pairs of parts that touch are looked for on a line."""
MOST_SEARCHED = 1000
"""On so many lines; beyond them only the first pair of each line is told."""


class Proof(Struct, frozen=True, gc=False):
    """The verdict on a line: metres that are proven, and what is to be said about it."""

    line: int
    clearance: float
    proven: bool
    violations: tuple[Finding, ...] = ()
    warning: Finding | None = None


class Clearance:
    """Collects the stretches of a program, sweeps them with the tool they were run with."""

    def __init__(self, environment: Environment, options: Options) -> None:
        self.contacts = Contacts(environment)
        self._asked = options.clearance
        self._least = max(self._asked or CLEARANCE, CLEARANCE)
        self._batch: list[Stretch] = []
        self._pieces = 0
        self._arm: Arm | None = None
        self._touching: set[Thing] = set()
        self._searched = 0

    @property
    def notes(self) -> tuple[str, ...]:
        """What was not looked for."""
        if self._searched <= MOST_SEARCHED:
            return ()
        return (
            f"{self._searched} lines touch something: beyond the first {MOST_SEARCHED} only what "
            "is touched first is told of each",
        )

    def add(self, stretch: Stretch, arm: Arm | Machine) -> Iterator[Proof]:
        """Give the stretches in their order; verdicts come when there are enough."""
        if arm.sweeper is None:
            return
        if arm is not self._arm:
            yield from self.flush()
            self._arm = arm
        self._batch.append(stretch)
        self._pieces += stretch.last - stretch.first
        if self._pieces >= PIECES_AT_ONCE:
            yield from self.flush()

    def stand(self, q: Floats, line: int, when: float, arm: Arm | Machine) -> Iterator[Proof]:
        """The arm has another tool in hand where it stands; told only if that touches."""
        if arm.sweeper is None:
            return
        yield from self.flush()
        self._arm = arm
        for proof in self._swept(dwell_path(q, 0.0, line=line), lambda piece, s: when):
            if not proof.proven:
                yield proof

    def flush(self) -> Iterator[Proof]:
        """What was added since."""
        batch, self._batch, self._pieces = self._batch, [], 0
        if not batch:
            return
        first = np.cumsum([0, *(stretch.last - stretch.first for stretch in batch)])

        def when(piece: int, s: float) -> float:
            k = int(np.searchsorted(first, piece, side="right")) - 1
            return batch[k].time_at(piece - int(first[k]), s)

        yield from self._swept(joined([stretch.path for stretch in batch]), when)

    def _swept(self, path: Path, when: Callable[[int, float], float]) -> Iterator[Proof]:
        if self._arm is None or self._arm.sweeper is None:
            return
        found = self._arm.sweeper.sweep(
            path.shape, path.length, lines=path.line, clearance=self._least
        )
        for swept in found:
            before, self._touching = self._touching, set()
            spot = swept.spot
            if swept.verdict is Verdict.PROVEN or spot is None:
                yield Proof(swept.line, swept.clearance, swept.proven)
            elif swept.verdict is Verdict.CONTACT:
                yield self._contact(swept, spot, path, when, before)
            else:
                seen = (spot, when(spot.piece, spot.s))
                close = self.contacts.closeness(swept.line, seen, self._least)
                if self._asked is None:
                    yield Proof(swept.line, swept.clearance, False, warning=close)
                else:
                    yield Proof(swept.line, swept.clearance, False, (close,))

    def _contact(
        self,
        swept: LineResult,
        spot: ContactSpot,
        path: Path,
        when: Callable[[int, float], float],
        before: set[Thing],
    ) -> Proof:
        """What touches where a line begins has touched already where the one before ended."""
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
        told = (
            replace(each, last=swept.line) if things([each]) <= still else each for each in found
        )
        return Proof(swept.line, 0.0, False, tuple(told))

    def _all(self, first: ContactSpot, line: Path, begins: int) -> list[ContactSpot]:
        """The first contact of a line and those of other parts, in their order."""
        self._searched += 1
        if self._searched > MOST_SEARCHED or self._arm is None or self._arm.sweeper is None:
            return [first]
        known = replace(first, piece=first.piece - begins)
        found = self._arm.sweeper.contacts(
            line.shape, line.length, most=MOST_PAIRS, known=known
        )  # fmt: skip
        return [replace(each, piece=each.piece + begins) for each in found]
