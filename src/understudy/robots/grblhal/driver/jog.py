"""Jogging a real grblHAL: small increments, sent just ahead of the motion.

    $J=G91G21X1.5F1800\\n     one at a time, the next when it is answered

If the connection is cut, or the operator's heartbeat stops, the axes stop after the increments
that were sent: at most `LEAD` and the braking time later.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from understudy.errors import Refused
from understudy.ports import Joints
from understudy.robots.grblhal.driver.exchange import LineExchange, SentLine
from understudy.robots.grblhal.driver.messages import decimal
from understudy.robots.grblhal.driver.state import AT_REST, AXES, ControllerInfo, ControllerState
from understudy.robots.grblhal.numbers import AXIS_LETTERS, Realtime
from understudy.units import MINUTE, NS_PER_MS, nanoseconds, seconds

STEP = 40 * NS_PER_MS
"""Duration of one increment."""
LEAD = 120 * NS_PER_MS
"""Time by which the increments are ahead of the motion, in addition to the braking time."""
LONGEST_BRAKING = 1.0
"""Seconds, regardless of the settings."""
SMALLEST = 1e-4
"""Degrees; a smaller increment is not sent."""

JogLimits = tuple[Joints, Joints]
"""Lower and upper joint limits in rad."""


@dataclass
class Jog:
    """One jog. Velocities are in rad/s; ``target`` is the end of the increments so far, in rad.

    ``cancelled``: the axes brake. ``requested_at``: when the operator last requested the jog.
    """

    target: list[float]
    info: ControllerInfo
    limits: JogLimits | None = None
    velocity: list[float] = field(default_factory=lambda: list(AT_REST))
    requested_at: int = 0
    cancelled: bool = False
    _ahead: int = 0

    def set_velocity(self, axis: int, velocity: float, now: int) -> bool:
        """Set the velocity of an axis; return whether it has changed."""
        top = self.info.top_speed(axis)
        velocity = max(-top, min(top, velocity))
        changed = velocity != self.velocity[axis]
        self.velocity[axis] = velocity
        self.requested_at = now
        return changed

    def begin(self, position: Joints, now: int) -> None:
        """Start from rest at this position."""
        self.target, self.cancelled = list(position), False
        self._ahead = now

    def stop(self) -> None:
        """Set all velocities to zero."""
        self.velocity = list(AT_REST)

    def idle(self) -> bool:
        return not any(self.velocity)

    def due(self) -> int:
        """When the next increment must be sent."""
        return self._ahead - self._lead()

    def increment(self, now: int) -> str | None:
        """The next line, if it is due and the axes can move."""
        if self.cancelled or now < self.due():
            return None
        start = max(self._ahead, now - STEP)
        target = [self._within(axis, self.velocity[axis]) for axis in range(AXES)]
        ways = zip(self.target, target, self.info.units, strict=True)
        step = [round((b - a) / unit, 4) for a, b, unit in ways]
        self._ahead = start + STEP
        if max(map(abs, step)) < SMALLEST:
            return None
        steps = zip(self.target, step, self.info.units, strict=True)
        self.target = [a + part * unit for a, part, unit in steps]
        return f"$J=G91G21{_words(step)}F{decimal(self._feed(step))}"

    def still(self) -> bool:
        """Whether no axis should move, or none can."""
        return all(
            abs(self._within(axis, v) - self.target[axis]) < SMALLEST * self.info.units[axis]
            for axis, v in enumerate(self.velocity)
        )

    def _within(self, axis: int, velocity: float) -> float:
        target = self.target[axis] + velocity * seconds(STEP)
        if self.limits is None:
            return target
        low, high = self.limits[0][axis], self.limits[1][axis]
        return max(min(low, self.target[axis]), min(max(high, self.target[axis]), target))

    def _feed(self, step: Sequence[float]) -> float:
        """Feed per minute; an increment that a limit shortens keeps its speed."""
        speeds = zip(self.velocity, step, self.info.units, strict=True)
        asked = [v / unit if part else 0.0 for v, part, unit in speeds]
        return math.hypot(*asked) * MINUTE

    def _lead(self) -> int:
        """Lead that lets the planner keep the speed, since it always plans to stop at the end."""
        times = (
            abs(velocity) / (2.0 * self.info.acceleration(axis))
            for axis, velocity in enumerate(self.velocity)
        )
        return LEAD + nanoseconds(min(max(times), LONGEST_BRAKING))


class JogControl:
    """Starts, continues and cancels the jog in progress; ``heartbeat`` is its timeout."""

    def __init__(self, state: ControllerState, limits: JogLimits | None, heartbeat: int) -> None:
        self._state = state
        self._limits = limits
        self._heartbeat = heartbeat
        self._jog: Jog | None = None

    @property
    def over(self) -> bool:
        return self._jog is None

    def jog(self, axis: int, velocity: float, exchange: LineExchange | None, now: int) -> None:
        """Jog an axis; a change of velocity cancels the jog and starts it again from rest."""
        position = self._state.position
        if self._jog is None:
            self._jog = Jog(list(position), self._state.info, self._limits)
            self._jog.set_velocity(axis, velocity, now)
            self._jog.begin(position, now)
        elif self._jog.set_velocity(axis, velocity, now):
            self._cancel(exchange)

    def stop(self, exchange: LineExchange | None) -> None:
        """Brake all axes."""
        if self._jog is not None:
            self._jog.stop()
            self._cancel(exchange)

    def forget(self) -> None:
        """End the jog; something else has stopped the axes."""
        self._jog = None

    def refused(self, exchange: LineExchange | None) -> None:
        """End the jog after a refused increment; it is not known which increments will still be
        answered."""
        self._cancel(exchange)
        self._jog = None

    def next_wake(self, exchange: LineExchange) -> int | None:
        if self._jog is None or self._jog.cancelled:
            return None
        late = self._jog.requested_at + self._heartbeat
        sends = exchange.ready and not exchange.in_flight
        return min(late, self._jog.due()) if sends else late

    def check_heartbeat(self, exchange: LineExchange, now: int) -> None:
        """Stop the jog if the operator has not repeated the request in time."""
        if self._jog is not None and now >= self._jog.requested_at + self._heartbeat:
            self.stop(exchange)

    def advance(self, exchange: LineExchange, *, settled: bool, now: int) -> None:
        """Send the next increment, or end the jog once the axes are at rest."""
        jog = self._jog
        if jog is None or exchange.in_flight:
            return
        if settled and (jog.cancelled or jog.still()):
            if jog.idle() or not jog.cancelled:
                self._jog = None
                return
            jog.begin(self._state.position, now)
        if line := jog.increment(now):
            exchange.send(SentLine(line, "jog"))

    def _cancel(self, exchange: LineExchange | None) -> None:
        if self._jog is not None and exchange is not None and not self._jog.cancelled:
            self._jog.cancelled = True
            exchange.send_realtime(Realtime.JOG_CANCEL)
            exchange.resynchronize()


def no_axis(axis: int) -> Refused | None:
    if isinstance(axis, int) and 0 <= axis < AXES:
        return None
    return Refused(f"there is no axis {axis}; there are 0…{AXES - 1}")


def _words(step: Sequence[float]) -> str:
    return "".join(
        f"{letter}{decimal(v)}" for letter, v in zip(AXIS_LETTERS, step, strict=True) if v
    )
