"""RobotEncounters: contacts of the arms of one cell with each other and with mobile robots.

The distance of two robots, divided by the highest speed of both, is a time in which they cannot
touch. The next comparison is at the end of this time; while all are at rest there is none. Each
comparison takes both positions at the same instant: of an arm from its plan, of a mobile robot
those of its last tick. Mobile robots are not compared with each other.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from understudy.motion.plan import TimeLaw
from understudy.ports.operation import HasVehicles
from understudy.simulation.collision.contact import WIRE_LINES, Contact
from understudy.space.transform import Array
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

    `due`: the next comparison; None while all are at rest. `each`: that of each pair. `touching`:
    both robots and both shapes, in the order of the cell file, while they touch.
    """

    due: int | None = None
    each: list[int] = []
    touching: list[tuple[str, str, str, str]] = []


class Status(Struct, frozen=True):
    """The compared robots, and the shapes that touch."""

    robots: tuple[str, ...]
    touching: tuple[tuple[str, str, str, str], ...]


class RobotEncounters:
    """A component of a cell with several arms whose bases differ, or with arms and vehicles."""

    def __init__(
        self, watches: "Mapping[str, CollisionWatch]", driving: Sequence[HasVehicles]
    ) -> None:
        self._watches = {n: w for n, w in watches.items() if w.body.rules.check_environment}
        self._driving = driving
        self._vehicles = {
            name: (owner, each) for owner in driving for name, each in owner.vehicles().items()
        }
        self._pairs = [pair for pair in combinations(self._watches, 2) if self._apart(*pair)]
        self._pairs += product(self._watches, self._vehicles)
        self.state = State()
        self._laws = self._laws_now()
        self._between: dict[tuple[Any, ...], ArmPair] = {}

    def any(self) -> bool:
        """Whether there is a pair of robots to compare."""
        return bool(self._pairs)

    def prepare(self) -> Iterator[None]:
        """Loads the compiled code of the first comparison; the state does not change."""
        for one, other in self._pairs:
            between = self._between_now(one, other)
            between.distance(self._position(one, 0.0), self._position(other, 0.0))
            yield

    # ── component ──

    def next_wake(self) -> int | None:
        """The next comparison. A plan that has changed since the last one is compared now: it may
        begin long ago, because a plan holds the rest before a motion too. A vehicle that begins to
        drive is compared after its tick."""
        if self.state.due is not None:
            return self.state.due
        plans = [watch.plan for watch in self._watches.values()]
        begun = [p.begins for p, law in zip(plans, self._laws, strict=True) if p.law is not law]
        return min([*map(whole_ns, begun), *self._driven_at()], default=None)

    def wake(self, now: int) -> None:
        state, watches = self.state, self._watches.values()
        self._laws = self._laws_now()
        if state.due is None or len(state.each) != len(self._pairs):  # from rest: all pairs
            state.each = [now] * len(self._pairs)
        for k, (one, other) in enumerate(self._pairs):
            if state.each[k] <= now:
                state.each[k] = self._look(one, other, now)
        moves = self._driven_at() or any(whole_ns(watch.plan.ends) > now for watch in watches)
        state.due = min(state.each) if moves else None

    def busy(self) -> bool:
        return False

    def status(self, now: int) -> Status:
        return Status((*self._watches, *self._vehicles), tuple(self.state.touching))

    def restored(self) -> None:
        """The arms are restored before, so their present plans are not new."""
        self._laws = self._laws_now()

    # ── inside ──

    def _driven_at(self) -> list[int]:
        return [at for each in self._driving if (at := each.driven_at()) is not None]

    def _laws_now(self) -> list[TimeLaw]:
        return [watch.plan.law for watch in self._watches.values()]

    def _apart(self, one: str, other: str) -> bool:
        """Whether the bases differ: robots without a configured base are all at the origin."""
        a, b = self._watches[one].body.foot, self._watches[other].body.foot
        return not np.array_equal(a[:3, 3], b[:3, 3])

    def _look(self, one: str, other: str, now: int) -> int:
        """Compares two robots, reports new contacts, and returns the time of the next
        comparison."""
        a, t = self._watches[one], seconds(now)
        q, r = self._position(one, t), self._position(other, t)
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
                if other in self._watches:
                    self._watches[other].stop_for(contact, now)
        return now + TOUCHING

    def _position(self, robot: str, t: float) -> Array:
        """The joints of an arm, or the pose of a vehicle."""
        if robot in self._watches:
            return self._watches[robot].plan.at(t).position
        owner, _ = self._vehicles[robot]
        return np.array(owner.place(robot))

    def _parted(self, one: str, other: str, still: set[tuple[str, str]]) -> None:
        for a, b, i, j in list(self.state.touching):
            if (a, b) == (one, other) and (i, j) not in still:
                self.state.touching.remove((a, b, i, j))
                self._watches[one].leave((i, f"{other}.{j}"))

    def _between_now(self, one: str, other: str) -> "ArmPair":
        """The pair of robots with their present tools and held objects."""
        from understudy.space.collision.arm_pair import ArmPair  # loads compiled code
        from understudy.space.collision.vehicle import placed_vehicle

        a, b = self._watches[one], self._watches.get(other)
        key = (one, other, a.tool_and_held, b.tool_and_held if b else ())
        if key not in self._between:
            for old in [k for k in self._between if k[:2] == key[:2]]:
                del self._between[old]
            figure = b.figure() if b else placed_vehicle(*self._vehicles[other][1])
            self._between[key] = ArmPair(a.figure(), figure)
        return self._between[key]
