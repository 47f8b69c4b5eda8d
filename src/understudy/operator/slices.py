"""Slices: long work on the event loop, a few milliseconds at a time."""

import asyncio
import time
from collections.abc import Generator
from typing import Protocol, TypeVar

from understudy.errors import Refused
from understudy.operator.background import CANCELLED, ENDED, BackgroundRun
from understudy.ports.hmi import Later

SLICE_SECONDS = 0.01
MOST_AT_ONCE = 4
Outcome = TypeVar("Outcome")
Work = Generator[None, None, Outcome]
"""Long work: it yields wherever it may be interrupted, and returns the answer of the command."""
TOO_MUCH = Refused(f"{MOST_AT_ONCE} long commands are under way: try again when one has ended")


class ListsWork(Protocol):
    def list_slices(self, kind: str) -> BackgroundRun: ...

    def unlist(self, run: BackgroundRun) -> None: ...


class Slices:
    """Runs long commands in slices on the event loop, so that a stop never waits behind one."""

    def __init__(self, listed: ListsWork | None = None) -> None:
        """``listed``: where work is shown while it is under way."""
        self._listed = listed
        self._loop = asyncio.get_running_loop()
        self._under_way = 0
        self._stopped = False

    def do(self, work: Work[Outcome], kind: str = "") -> Outcome | Later | Refused:
        """The answer if the first slice gives it, else a `Later`. ``kind``: its name in the list of
        work; none: it is not listed."""
        if self._under_way >= MOST_AT_ONCE:
            return TOO_MUCH
        over, answer = _one_slice(work)
        if over:
            assert answer is not None
            return answer
        self._under_way += 1
        later = Later()
        run = self._listed.list_slices(kind) if self._listed and kind else None
        self._loop.call_soon(self._go_on, work, later, run)
        return later

    def stop(self) -> None:
        self._stopped = True

    def _go_on(self, work: Work[Outcome], later: Later, run: BackgroundRun | None) -> None:
        cancelled = run is not None and run.state == "cancelled"
        over, answer = (False, None) if cancelled else _one_slice(work)
        if not (over or cancelled or self._stopped):
            self._loop.call_soon(self._go_on, work, later, run)
            return
        self._under_way -= 1
        if self._listed is not None and run is not None:
            self._listed.unlist(run)
        later.settle(answer if over else CANCELLED if cancelled else ENDED)


def _one_slice(work: Work[Outcome]) -> tuple[bool, Outcome | None]:
    """Whether the work is over, and its answer."""
    deadline = time.monotonic() + SLICE_SECONDS
    try:
        while time.monotonic() < deadline:
            next(work)
    except StopIteration as end:
        return True, end.value
    return False, None
