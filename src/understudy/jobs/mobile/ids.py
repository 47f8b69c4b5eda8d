"""Ids and time stamps of messages: functions of the run, the robot, a number and the time."""

from datetime import UTC, datetime, timedelta
from hashlib import sha1

from understudy.units import NS_PER_MS

_VARIANTS = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)


def uuid_text(run_id: str, robot_id: str, number: int | str) -> str:
    """The same UUID (in the form of version 5) for the same three values."""
    name = f"{run_id}/{robot_id}/{number}"
    digest = sha1(name.encode(), usedforsecurity=False).hexdigest()
    variant = _VARIANTS[digest[16]]
    return f"{digest[:8]}-{digest[8:12]}-5{digest[13:16]}-{variant}{digest[17:20]}-{digest[20:32]}"


def timestamp(epoch: int, now: int) -> str:
    """ISO-8601 in UTC with milliseconds; ``epoch``: nanoseconds since 1970 at the time 0."""
    since = timedelta(milliseconds=(epoch + now) // NS_PER_MS)
    return (_BEGIN + since).isoformat(timespec="milliseconds").replace("+00:00", "Z")
