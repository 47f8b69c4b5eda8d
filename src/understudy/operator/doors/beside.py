"""Faces that stand beside the cell: doors to its desk, no part of what its clock drives."""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from understudy.ports import Session
from understudy.protocol.outbox import Outbox, ReadyPeers

S = TypeVar("S", bound=Session)
Open = Callable[[Outbox, Callable[[], None]], S]
"""A session from its way out and a word for when it is closed."""


class FaceBeside(Generic[S]):
    """`Face` without a state and a will of its own: it opens sessions, and forgets them."""

    def __init__(self, session: Open[S]) -> None:
        self._session = session
        self._stir = ReadyPeers()
        self._sessions: dict[str, S] = {}

    def open(self, peer: str, now: int) -> S:
        outbox = Outbox(lambda: self._stir.add(peer))
        self._sessions[peer] = self._session(outbox, lambda: self._forget(peer))
        return self._sessions[peer]

    def sessions(self) -> Mapping[str, S]:
        return self._sessions

    def ready_peers(self) -> list[str]:
        return self._stir.drain()

    def next_wake(self) -> int | None:
        return None

    def wake(self, now: int) -> None:
        return None

    def busy(self) -> bool:
        return False

    def status(self, now: int) -> dict[str, int]:
        return {"clients": len(self._sessions)}

    def save(self) -> None:
        return None

    def load(self, state: Any) -> None:
        return None

    def _forget(self, peer: str) -> None:
        self._sessions.pop(peer, None)
