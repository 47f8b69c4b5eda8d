"""Ids and time stamps of messages: functions of the run, the robot, a number and the time."""

from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import NamedTuple

from understudy.units import NS_PER_MS

_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
MASK = (1 << 64) - 1
STEPS = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03
"""Odd numbers by which the two halves of an id go on from message to message."""
FACTORS = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
"""Of the finalizer of splitmix64, which changes half of the bits if one bit changes."""
BOOT = 0
"""Number of the id of a start of a robot; messages are numbered from 1 on."""


class RobotKey(NamedTuple):
    """A robot in a run: the ids of its messages follow from it."""

    high: int
    low: int


def robot_key(run_id: str, robot_id: str) -> RobotKey:
    digest = blake2b(f"{run_id}/{robot_id}".encode(), digest_size=16).digest()
    return RobotKey(int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big"))


def uuid_text(key: RobotKey, number: int) -> str:
    """The same UUID (version 8: bits of the application's choice) for the same key and number."""
    high, low = (_mixed(part + step * number) for part, step in zip(key, STEPS, strict=True))
    high = high & ~0xF000 | 0x8000
    low = low & (MASK >> 2) | 1 << 63
    text = f"{high:016x}{low:016x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _mixed(value: int) -> int:
    value &= MASK
    value = (value ^ value >> 30) * FACTORS[0] & MASK
    value = (value ^ value >> 27) * FACTORS[1] & MASK
    return value ^ value >> 31


def timestamp(epoch: int, now: int) -> str:
    """ISO-8601 in UTC with milliseconds; ``epoch``: nanoseconds since 1970 at the time 0."""
    since = timedelta(milliseconds=(epoch + now) // NS_PER_MS)
    return (_BEGIN + since).isoformat(timespec="milliseconds").replace("+00:00", "Z")
