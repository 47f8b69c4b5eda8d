"""Changes: commands that change the cell and may take wall time, one after the other."""

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from understudy.errors import Refused
from understudy.operator.table import safely
from understudy.ports.hmi import Later

MOST_WAITING = 64
TOO_MANY = Refused(f"{MOST_WAITING} changes wait for one that takes time: try again later")


class OwedWork(Protocol):
    """In lock-step the cell's time waits while work is owed: the pump."""

    def owe(self) -> None: ...

    def paid(self) -> None: ...


class Changes:
    """Begins each change when the one before has ended, so that the order of requests is the order
    of their effects, however long a file takes to read. Snapshots are in that order, too: they hold
    everything that was asked for before."""

    def __init__(self, owed: OwedWork) -> None:
        self._owed = owed
        self._under_way = False
        self._waiting: deque[tuple[Callable[[], Any], Later]] = deque()

    def do(self, change: Callable[[], Any]) -> Any:
        """The answer of a change that is not delayed and answers at once, else a `Later`."""
        if not self._under_way:
            return self._begin(change)
        if len(self._waiting) >= MOST_WAITING:
            return TOO_MANY
        later = Later()
        self._waiting.append((change, later))
        return later

    def _begin(self, change: Callable[[], Any]) -> Any:
        answer = safely(change, "a change")()
        if isinstance(answer, Later):
            self._under_way = True
            self._owed.owe()
            answer.then(lambda _: self._ended())
        return answer

    def _ended(self) -> None:
        self._under_way = False
        self._owed.paid()
        while self._waiting and not self._under_way:
            change, later = self._waiting.popleft()
            answer = self._begin(change)
            if isinstance(answer, Later):
                answer.then(later.settle)
            else:
                later.settle(answer)
