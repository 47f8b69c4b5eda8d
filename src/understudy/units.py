"""Units at the door. Inside: metres, radians, seconds; on the time axis whole nanoseconds."""

import math

MM = 1e-3
DEG = math.pi / 180.0
MINUTE = 60.0
NS_PER_SECOND = 1_000_000_000
NS_PER_MS = 1_000_000
MAX_DIGITS = 9


def nanoseconds(seconds: float) -> int:
    """Seconds on the time axis, rounded to the nearest nanosecond."""
    return round(seconds * NS_PER_SECOND)


def duration_ns(seconds: float) -> int:
    """A time that somebody wants to pass."""
    if not 0.0 <= seconds < math.inf:
        raise ValueError(f"{seconds} seconds cannot pass; 0 or more can")
    return nanoseconds(seconds)


def whole_ns(seconds: float) -> int:
    """The first whole nanosecond that is not before it, as far as that can be told."""
    return math.ceil(seconds * NS_PER_SECOND - 1e-3)


def seconds(ns: int) -> float:
    return ns / NS_PER_SECOND


def digits_apart(value: float, limit: float, digits: int) -> str:
    """A figure with so many digits, and with more where it would look like the limit it breaks."""
    while digits < MAX_DIGITS and f"{value:.{digits}f}" == f"{limit:.{digits}f}":
        digits += 1
    return f"{value:.{digits}f}"
