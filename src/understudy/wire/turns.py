"""Turns of lock step: how a stream of bytes is cut, and how long time runs after a query.

At rate `step` each piece of a stream is received when it is its turn, see `exchange.py`.
"""

import re
from collections.abc import Callable, Hashable
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

C = TypeVar("C", bound=Hashable)

EACH_BYTE = re.compile(rb"(?s:.)")


@runtime_checkable
class SilentBytes(Protocol):
    """A session that says which bytes it never answers: `silent` matches a run of them, and every
    other byte alone."""

    silent: re.Pattern[bytes]


def pieces_of(session: Any) -> re.Pattern[bytes]:
    """Cuts a stream into bytes that may be answered, and runs of bytes that never are.

    Where a run is cut once more by a packet boundary makes no difference to the session.
    """
    return session.silent if isinstance(session, SilentBytes) else EACH_BYTE


class Turns(Generic[C]):
    """The connections whose next byte waits, and until when.

    ``poll_step()``: nanoseconds that pass after a query while something moves; None: bytes do not
    wait for turns.
    """

    def __init__(self, poll_step: Callable[[], int | None] = lambda: None) -> None:
        self.poll_step = poll_step
        self._waiting: dict[C, None] = {}
        self._resumes_at: dict[C, int] = {}

    @property
    def active(self) -> bool:
        return self.poll_step() is not None

    def wait(self, connection: C) -> None:
        """The connection has something that waits for its turn."""
        self._waiting[connection] = None

    def waiting(self) -> list[C]:
        return list(self._waiting)

    def done(self, connection: C) -> None:
        """Nothing of the connection waits any more."""
        self._waiting.pop(connection, None)

    def drop(self, connection: C) -> None:
        self.done(connection)
        self._resumes_at.pop(connection, None)

    def clear(self) -> None:
        self._waiting.clear()
        self._resumes_at.clear()

    # ── time after a query ──

    def queried(self, connection: C, now: int) -> None:
        """A query was answered while something moves."""
        if step := self.poll_step():
            self._resumes_at[connection] = now + step

    def resume(self, connection: C, at: int, now: int) -> None:
        if at > now:
            self._resumes_at[connection] = at

    def resumes_at(self, connection: C) -> int:
        return self._resumes_at.get(connection, 0)

    def next_moment(self) -> int | None:
        """The first time at which a connection resumes; until then time runs."""
        return min(self._resumes_at.values(), default=None)

    def passed(self, now: int) -> None:
        """Time has reached ``now``."""
        if self._resumes_at:
            self._resumes_at = {c: at for c, at in self._resumes_at.items() if at > now}
