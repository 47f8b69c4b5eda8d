"""Jogging a real grblHAL: small increments just ahead of the motion, for as long as somebody cares.

    $J=G91G21X1.5F1800\\n     one at a time, the next when it is answered

If the line is cut, or the operator's heartbeat stays away, the axes stop after what they were told
already: never more than `LEAD` and the time they need to brake.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from understudy.errors import Refused
from understudy.ports import Joints
from understudy.robots.grblhal.driver.picture import AT_REST, AXES, Machine, Picture
from understudy.robots.grblhal.driver.talk import Said, Talk
from understudy.robots.grblhal.driver.words import AXIS_LETTERS, JOG_CANCEL, decimal
from understudy.units import DEG, MINUTE, NS_PER_MS, nanoseconds, seconds

STEP = 40 * NS_PER_MS
"""How long one increment lasts."""
LEAD = 120 * NS_PER_MS
"""How far the increments are ahead of the motion, besides the time for braking."""
LONGEST_BRAKING = 1.0
"""Seconds, whatever the settings say."""
SMALLEST = 1e-4
"""Degrees: an increment that is smaller is none."""

Limits = tuple[Joints, Joints]


@dataclass
class Jog:
    """Velocities in rad/s; ``target`` is where the increments said so far lead, in rad."""

    target: list[float]
    machine: Machine
    limits: Limits | None = None
    velocity: list[float] = field(default_factory=lambda: list(AT_REST))
    heard_at: int = 0
    ends: bool = False
    """It was cancelled: the axes brake."""
    _ahead: int = 0

    def turn(self, axis: int, velocity: float, now: int) -> bool:
        """What the operator wants of an axis from now on; is that something else?"""
        most = self.machine.fastest(axis)
        velocity = max(-most, min(most, velocity))
        changed = velocity != self.velocity[axis]
        self.velocity[axis] = velocity
        self.heard_at = now
        return changed

    def begin(self, position: Joints, now: int) -> None:
        """From rest, here."""
        self.target, self.ends = list(position), False
        self._ahead = now

    def let_go(self) -> None:
        """Nobody wants anything to move any more."""
        self.velocity = list(AT_REST)

    def idle(self) -> bool:
        return not any(self.velocity)

    def due(self) -> int:
        """When the next increment must be said."""
        return self._ahead - self._lead()

    def increment(self, now: int) -> str | None:
        """The next line, if it is time for it and there is a way to go."""
        if self.ends or now < self.due():
            return None
        start = max(self._ahead, now - STEP)
        target = [self._within(axis, self.velocity[axis]) for axis in range(AXES)]
        way = [round((b - a) / DEG, 4) for a, b in zip(self.target, target, strict=True)]
        self._ahead = start + STEP
        if max(map(abs, way)) < SMALLEST:
            return None
        self.target = [a + step * DEG for a, step in zip(self.target, way, strict=True)]
        return f"$J=G91G21{_words(way)}F{decimal(self._feed(way))}"

    def still(self) -> bool:
        """Nothing is to move, or nothing can."""
        ways = (self._within(axis, v) - self.target[axis] for axis, v in enumerate(self.velocity))
        return max(abs(way) for way in ways) < SMALLEST * DEG

    def _within(self, axis: int, velocity: float) -> float:
        target = self.target[axis] + velocity * seconds(STEP)
        if self.limits is None:
            return target
        low, high = self.limits[0][axis], self.limits[1][axis]
        return max(min(low, self.target[axis]), min(max(high, self.target[axis]), target))

    def _feed(self, way: Sequence[float]) -> float:
        """deg/min along the way: an increment at a limit is shorter, not slower."""
        asked = [v / DEG if step else 0.0 for v, step in zip(self.velocity, way, strict=True)]
        return math.hypot(*asked) * MINUTE

    def _lead(self) -> int:
        """Enough for the planner to keep the speed, since it always plans to stop at the end."""
        times = (
            abs(velocity) / (2.0 * self.machine.acceleration(axis))
            for axis, velocity in enumerate(self.velocity)
        )
        return LEAD + nanoseconds(min(max(times), LONGEST_BRAKING))


class Jogging:
    """The jog that is under way, if there is one."""

    def __init__(self, picture: Picture, limits: Limits | None, heartbeat: int) -> None:
        self._picture = picture
        self._limits = limits
        self._heartbeat = heartbeat
        self._jog: Jog | None = None

    @property
    def over(self) -> bool:
        return self._jog is None

    def turn(self, axis: int, velocity: float, talk: Talk | None, now: int) -> None:
        """What changes an axis that is jogged already is begun anew, from rest."""
        position = self._picture.position
        if self._jog is None:
            self._jog = Jog(list(position), self._picture.machine, self._limits)
            self._jog.turn(axis, velocity, now)
            self._jog.begin(position, now)
        elif self._jog.turn(axis, velocity, now):
            self._cancel(talk)

    def stop(self, talk: Talk | None) -> None:
        """Brake all axes."""
        if self._jog is not None:
            self._jog.let_go()
            self._cancel(talk)

    def forget(self) -> None:
        """Something else has stopped the axes."""
        self._jog = None

    def refused(self, talk: Talk | None) -> None:
        """The controller ended it; nobody knows which increments it still answers."""
        self._cancel(talk)
        self._jog = None

    def next_wake(self, talk: Talk) -> int | None:
        if self._jog is None or self._jog.ends:
            return None
        late = self._jog.heard_at + self._heartbeat
        return min(late, self._jog.due()) if talk.ready and not talk.in_flight else late

    def watch(self, talk: Talk, now: int) -> None:
        """Whether somebody still cares."""
        if self._jog is not None and now >= self._jog.heard_at + self._heartbeat:
            self.stop(talk)

    def go_on(self, talk: Talk, *, settled: bool, now: int) -> None:
        """Say the next increment, or see that it is over."""
        jog = self._jog
        if jog is None or talk.in_flight:
            return
        if settled and (jog.ends or jog.still()):
            if jog.idle() or not jog.ends:
                self._jog = None
                return
            jog.begin(self._picture.position, now)
        if line := jog.increment(now):
            talk.say(Said(line, "jog"))

    def _cancel(self, talk: Talk | None) -> None:
        if self._jog is not None and talk is not None and not self._jog.ends:
            self._jog.ends = True
            talk.byte(JOG_CANCEL)
            talk.find_out()


def no_axis(axis: int) -> Refused | None:
    if isinstance(axis, int) and 0 <= axis < AXES:
        return None
    return Refused(f"there is no axis {axis}; there are 0…{AXES - 1}")


def _words(way: Sequence[float]) -> str:
    return "".join(
        f"{letter}{decimal(v)}" for letter, v in zip(AXIS_LETTERS, way, strict=True) if v
    )
