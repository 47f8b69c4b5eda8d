"""When to call a real thing: at once, and after every failure with a longer rest before it.

resting ──due──▶ calling ──connected──▶ talking
   ▲                │                      │
   └────failed──────┴────────failed────────┘
"""

from collections.abc import Mapping, Sequence
from typing import Literal

Phase = Literal["resting", "calling", "talking"]

TRANSITIONS: Mapping[tuple[Phase, str], Phase] = {
    ("resting", "due"): "calling",
    ("calling", "connected"): "talking",
    ("calling", "failed"): "resting",
    ("talking", "failed"): "resting",
}


class Redial:
    """Calls are numbered. The last of the rests is repeated until somebody answers."""

    def __init__(self, *, patience: int, rests: Sequence[int]) -> None:
        self.phase: Phase = "resting"
        self.due = 0
        """When the rest ends, or the patience with a call that does not come about."""
        self._patience = patience
        self._rests = rests
        self._number = 0
        self._failures = 0

    def wanted(self) -> int | None:
        return None if self.phase == "resting" else self._number

    def call(self, now: int) -> None:
        self.phase = TRANSITIONS[self.phase, "due"]
        self.due = now + self._patience
        self._number += 1

    def connected(self) -> None:
        self.phase = TRANSITIONS[self.phase, "connected"]

    def answered(self) -> None:
        self._failures = 0

    def failed(self, now: int) -> None:
        self.phase = TRANSITIONS[self.phase, "failed"]
        self.due = now + self._rests[min(self._failures, len(self._rests) - 1)]
        self._failures += 1

    def begin_anew(self, at: int) -> None:
        """As if nobody had been called yet."""
        self.phase = "resting"
        self.due = at
        self._failures = 0
