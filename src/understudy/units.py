"""Unit conversions. The package computes in metres, radians and seconds; times are integer ns."""

import math

MM = 1e-3
DEG = math.pi / 180.0
MINUTE = 60.0
NS_PER_SECOND = 1_000_000_000
NS_PER_MS = 1_000_000
LATEST = 1 << 62
"""Nanoseconds, 146 years: a plan may last longer, but no cell does."""
MAX_DIGITS = 9


def nanoseconds(seconds: float) -> int:
    """Converts seconds to nanoseconds, rounded to the nearest."""
    return round(seconds * NS_PER_SECOND)


def ms_to_ns(milliseconds: float) -> int:
    """Converts milliseconds to nanoseconds, rounded to the nearest."""
    return round(milliseconds * NS_PER_MS)


def duration_ns(seconds: float) -> int:
    """Converts a waiting time to nanoseconds; raises ValueError if it is negative or infinite."""
    if not 0.0 <= seconds < math.inf:
        raise ValueError(f"cannot wait {seconds} seconds; allowed: 0 or more, finite")
    return nanoseconds(seconds)


def whole_ns(seconds: float) -> int:
    """Converts seconds to nanoseconds, rounded up; a picosecond of rounding error is ignored.

    At most `LATEST`.
    """
    return math.ceil(min(seconds * NS_PER_SECOND, LATEST) - 1e-3)


def seconds(ns: int) -> float:
    return ns / NS_PER_SECOND


def digits_apart(value: float, limit: float, digits: int) -> str:
    """Formats a value with ``digits`` decimals, or with more until it differs from ``limit``.

    So a message never says that 158.0 exceeds 158.0.
    """
    while digits < MAX_DIGITS and f"{value:.{digits}f}" == f"{limit:.{digits}f}":
        digits += 1
    return f"{value:.{digits}f}"
