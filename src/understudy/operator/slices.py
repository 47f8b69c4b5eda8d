"""Slices: long work on the event loop, a few milliseconds at a time."""

import asyncio
import time
from collections.abc import Generator
from typing import TypeVar

from understudy.errors import Refused
from understudy.ports.hmi import Later

SLICE_SECONDS = 0.01
MOST_AT_ONCE = 4
Outcome = TypeVar("Outcome")
Work = Generator[None, None, Outcome]
"""Long work: it yields wherever it may be interrupted, and returns the answer of the command."""
ENDED = Refused("the cell has ended")
TOO_MUCH = Refused(f"{MOST_AT_ONCE} long commands are under way: try again when one has ended")


class Slices:
    """Runs long commands in slices on the event loop, so that a stop never waits behind one."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._under_way = 0
        self._stopped = False

    def do(self, work: Work[Outcome]) -> Outcome | Later | Refused:
        """The answer if the first slice gives it, else a `Later`."""
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
    """Whether the work is over, and its answer."""
    deadline = time.monotonic() + SLICE_SECONDS
    try:
        while time.monotonic() < deadline:
            next(work)
    except StopIteration as end:
        return True, end.value
    return False, None
