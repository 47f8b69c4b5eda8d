"""Work that takes long, in slices: a stop is never stuck behind it."""

import asyncio
import time
from collections.abc import Generator
from typing import TypeVar

from understudy.errors import Refused
from understudy.ports.hmi import Later

Outcome = TypeVar("Outcome")
Work = Generator[None, None, Outcome]
"""Pauses wherever somebody else may have a turn; what it returns is the answer."""

SLICE_SECONDS = 0.01
MOST_AT_ONCE = 4
ENDED = Refused("the cell has ended")
TOO_MUCH = Refused(f"{MOST_AT_ONCE} long commands are being worked on already: ask again")


class Slices:
    """The long commands of a desk, on the event loop it is made on."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._under_way = 0
        self._stopped = False

    def do(self, work: Work[Outcome]) -> Outcome | Later | Refused:
        """The answer if it is there within a slice, else the promise of it."""
        if self._under_way >= MOST_AT_ONCE:
            return TOO_MUCH
        over, answer = _one_slice(work)
        if over:
            assert answer is not None
            return answer
        self._under_way += 1
        later = Later()
        self._loop.call_soon(self._go_on, work, later)
        return later

    def stop(self) -> None:
        self._stopped = True

    def _go_on(self, work: Work[Outcome], later: Later) -> None:
        over, answer = _one_slice(work)
        if over or self._stopped:
            self._under_way -= 1
            later.settle(answer if over else ENDED)
        else:
            self._loop.call_soon(self._go_on, work, later)


def _one_slice(work: Work[Outcome]) -> tuple[bool, Outcome | None]:
    """Whether it is over, and its answer."""
    deadline = time.monotonic() + SLICE_SECONDS
    try:
        while time.monotonic() < deadline:
            next(work)
    except StopIteration as end:
        return True, end.value
    return False, None
