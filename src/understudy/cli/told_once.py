"""A log that nobody can flood: what is said again and again is told a few times, then counted."""

import logging
import re
from dataclasses import dataclass

FEW = 5
"""So many lines of one kind are told in a row."""
AGAIN_S = 10.0
"""Seconds until the next few, with how many were left out meanwhile."""
MOST_KINDS = 256
"""So many kinds are remembered; the oldest is forgotten."""
NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|\b(?:nan|inf)\b)", re.IGNORECASE)


@dataclass
class Kind:
    """Lines that differ in their numbers only, since one of them was told as the first."""

    since: float
    told: int = 0
    left_out: int = 0


class ToldOnce(logging.Filter):
    """Lets through what is new, and a few of what is not."""

    def __init__(self) -> None:
        super().__init__()
        self._kinds: dict[str, Kind] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        kind = self._kind(NUMBER.sub("#", message), record.created)
        if kind.told >= FEW:
            kind.left_out += 1
            return False
        kind.told += 1
        if kind.left_out:
            record.msg, record.args = f"{message} (and {kind.left_out} more like it before)", ()
            kind.left_out = 0
        return True

    def _kind(self, name: str, at: float) -> Kind:
        kind = self._kinds.get(name)
        if kind is None or at - kind.since >= AGAIN_S:
            left_out = self._kinds.pop(name).left_out if kind else 0
            self._kinds[name] = kind = Kind(at, left_out=left_out)
            if len(self._kinds) > MOST_KINDS:
                del self._kinds[next(iter(self._kinds))]
        return kind


def log_to_stderr() -> None:
    """From now on what rooms log is told, and never in floods."""
    handler = logging.StreamHandler()
    handler.addFilter(ToldOnce())
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[handler])
