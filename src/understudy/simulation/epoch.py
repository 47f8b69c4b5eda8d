"""Key `epoch` of a cell file: the time of day at which simulated time begins."""

from datetime import UTC, datetime, timedelta

from understudy.errors import ConfigError

FIRST_DAY = datetime(1970, 1, 1, tzinfo=UTC)
Config = str


def parsed(text: str) -> int:
    """Nanoseconds since 1970."""
    try:
        since = datetime.fromisoformat(text) - FIRST_DAY
    except (ValueError, TypeError):
        allowed = "a time with a time zone, as in 2026-01-01T00:00:00Z"
        raise ConfigError("this does not fit", value=text, allowed=allowed) from None
    return since // timedelta(microseconds=1) * 1000
