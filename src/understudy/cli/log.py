"""Logging to stderr with a limit on repeated lines."""

import logging
import re
from dataclasses import dataclass

BURST = 5
"""Lines of one kind that pass in a row."""
WINDOW_S = 10.0
"""Seconds until the next burst passes, with the number of suppressed lines."""
MOST_KINDS = 256
"""Kinds that are remembered; the oldest one is dropped."""
NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|\b(?:nan|inf)\b)", re.IGNORECASE)


@dataclass
class Kind:
    """Count of log lines that differ in their numbers only."""

    since: float
    passed: int = 0
    suppressed: int = 0


class RepeatFilter(logging.Filter):
    """Passes new lines, and a burst of repeated ones."""

    def __init__(self) -> None:
        super().__init__()
        self._kinds: dict[str, Kind] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        kind = self._kind(NUMBER.sub("#", message), record.created)
        if kind.passed >= BURST:
            kind.suppressed += 1
            return False
        kind.passed += 1
        if kind.suppressed:
            record.msg, record.args = f"{message} (and {kind.suppressed} more like it before)", ()
            kind.suppressed = 0
        return True

    def _kind(self, name: str, at: float) -> Kind:
        kind = self._kinds.get(name)
        if kind is None or at - kind.since >= WINDOW_S:
            suppressed = self._kinds.pop(name).suppressed if kind else 0
            self._kinds[name] = kind = Kind(at, suppressed=suppressed)
            if len(self._kinds) > MOST_KINDS:
                del self._kinds[next(iter(self._kinds))]
        return kind


def log_to_stderr() -> None:
    """Sends all logging to stderr through the filter."""
    handler = logging.StreamHandler()
    handler.addFilter(RepeatFilter())
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[handler])
