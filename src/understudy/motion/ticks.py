"""Motion in ticks, for drives and axes that get a new speed at every tick."""

import math

from understudy.space.compiled import compiled


@compiled
def fastest_within(
    distance: float, approach: float, braking: float, highest: float, seconds: float
) -> float:
    """The speed after this tick from which a stop is still possible within the distance.

    ``approach``: the present speed, positive towards the end of the distance; ``braking``: the
    deceleration; ``seconds``: length of a tick. It leaves room for half a tick more than the ideal,
    since braking ends with a whole tick.
    """
    ahead = distance - approach * seconds / 2.0
    if ahead <= 0.0:
        return 0.0
    fastest = braking * (math.sqrt(seconds * seconds + 2.0 * ahead / braking) - seconds)
    return min(fastest, highest)


@compiled
def wrapped(angle: float) -> float:
    """The angle in (-π, π]."""
    return math.pi - (math.pi - angle) % (2.0 * math.pi)


def ideal_seconds(distance: float, speed: float, acceleration: float, deceleration: float) -> float:
    """The shortest time from rest to rest."""
    ramps = speed * speed / 2.0 * (1.0 / acceleration + 1.0 / deceleration)
    if ramps <= distance:
        return speed / acceleration + speed / deceleration + (distance - ramps) / speed
    peak = math.sqrt(2.0 * distance / (1.0 / acceleration + 1.0 / deceleration))
    return peak / acceleration + peak / deceleration
