"""RobotEncounters: contacts between the arms of one cell.

The distance of two arms, divided by the highest speed of both, is a time in which they cannot
touch. The next comparison is at the end of this time; while both arms are at rest there is none.
Each comparison takes both positions from the plans at the same instant.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from understudy.motion.plan import TimeLaw
from understudy.simulation.collision.contact import WIRE_LINES, Contact
from understudy.units import NS_PER_MS, nanoseconds, seconds, whole_ns

if TYPE_CHECKING:
    from understudy.simulation.collision.watch import CollisionWatch
    from understudy.space.collision.arm_pair import ArmPair

SHORTEST = 2 * NS_PER_MS
"""The shortest time between two comparisons: a contact is reported at most this much late."""
TOUCHING = 10 * NS_PER_MS
LONGEST = 3_600_000 * NS_PER_MS


class State(Struct):
    """The state in a snapshot.

    `due`: the next comparison. `touching`: both robots and both shapes, in the order of the
    cell file, while they touch.
    """

    due: int | None = None
    touching: list[tuple[str, str, str, str]] = []


class Status(Struct, frozen=True):
    """The compared robots, and the shapes that touch."""

    robots: tuple[str, ...]
    touching: tuple[tuple[str, str, str, str], ...]


class RobotEncounters:
    """A component of a cell with several arms whose bases differ."""

    def __init__(self, watches: "Mapping[str, CollisionWatch]") -> None:
        self._watches = {n: w for n, w in watches.items() if w.body.rules.check_environment}
        self._pairs = [pair for pair in combinations(self._watches, 2) if self._apart(*pair)]
        self.state = State()
        self._laws = self._laws_now()
        self._between: dict[tuple[Any, ...], ArmPair] = {}

    def any(self) -> bool:
        """Whether there is a pair of arms to compare."""
        return bool(self._pairs)

    def prepare(self) -> Iterator[None]:
        """Loads the compiled code of the first comparison; the state does not change."""
        for one, other in self._pairs:
            a, b = self._watches[one].plan.at(0.0), self._watches[other].plan.at(0.0)
            self._between_now(one, other).distance(a.position, b.position)
            yield

    # ── component ──

    def next_wake(self) -> int | None:
        """The next comparison. A plan that has changed since the last one is compared now: it may
        begin long ago, because a plan holds the rest before a motion too."""
        if self.state.due is not None:
            return self.state.due
        plans = [watch.plan for watch in self._watches.values()]
        begun = [p.begins for p, law in zip(plans, self._laws, strict=True) if p.law is not law]
        return whole_ns(min(begun)) if begun else None

    def wake(self, now: int) -> None:
        state, watches = self.state, self._watches.values()
        self._laws = self._laws_now()
        nexts = [self._look(one, other, now) for one, other in self._pairs]
        moves = any(whole_ns(watch.plan.ends) > now for watch in watches)
        state.due = min(nexts) if moves else None

    def busy(self) -> bool:
        return False

    def status(self, now: int) -> Status:
        return Status(tuple(self._watches), tuple(self.state.touching))

    def restored(self) -> None:
        """The arms are restored before, so their present plans are not new."""
        self._laws = self._laws_now()

    # ── inside ──

    def _laws_now(self) -> list[TimeLaw]:
        return [watch.plan.law for watch in self._watches.values()]

    def _apart(self, one: str, other: str) -> bool:
        """Whether the bases differ: robots without a configured base are all at the origin."""
        a, b = self._watches[one].body.foot, self._watches[other].body.foot
        return not np.array_equal(a[:3, 3], b[:3, 3])

    def _look(self, one: str, other: str, now: int) -> int:
        """Compares two arms, reports new contacts, and returns the time of the next comparison."""
        a, b, t = self._watches[one], self._watches[other], seconds(now)
        q, r = a.plan.at(t).position, b.plan.at(t).position
        between = self._between_now(one, other)
        apart = between.distance(q, r)
        if apart > 0.0:
            self._parted(one, other, set())
            return now + max(SHORTEST, nanoseconds(min(between.safe_time(apart), seconds(LONGEST))))
        touching = between.contacts(q, r)
        self._parted(one, other, {(i, j) for i, j, _ in touching})
        line = (a.plan.line_at(t) or 0) % WIRE_LINES
        for i, j, how in touching:
            if (one, other, i, j) not in self.state.touching:
                self.state.touching.append((one, other, i, j))
                x, y, z = how.point.tolist()
                contact = Contact(i, f"{other}.{j}", "collision", (x, y, z), how.depth, line, now)
                a.meet(contact, now)
                b.stop_for(contact, now)
        return now + TOUCHING

    def _parted(self, one: str, other: str, still: set[tuple[str, str]]) -> None:
        for a, b, i, j in list(self.state.touching):
            if (a, b) == (one, other) and (i, j) not in still:
                self.state.touching.remove((a, b, i, j))
                self._watches[one].leave((i, f"{other}.{j}"))

    def _between_now(self, one: str, other: str) -> "ArmPair":
        """The pair of arms with their present tools and held objects."""
        from understudy.space.collision.arm_pair import ArmPair  # loads compiled code

        a, b = self._watches[one], self._watches[other]
        key = (one, other, a.tool_and_held, b.tool_and_held)
        if key not in self._between:
            self._between = {k: v for k, v in self._between.items() if k[:2] != key[:2]}
            self._between[key] = ArmPair(a.figure(), b.figure())
        return self._between[key]
