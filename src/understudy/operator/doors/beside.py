"""Faces that stand beside the cell: doors to its desk, no part of what its clock drives."""

from collections.abc import Callable
from typing import Any, TypeVar

from understudy.ports import Session
from understudy.protocol.sessions import Outbox, ReadyPeers, SessionFace

S = TypeVar("S", bound=Session)
Open = Callable[[Outbox, Callable[[], None]], S]
"""A session from its way out and a word for when it is closed."""


class FaceBeside(SessionFace[S]):
    """`Face` without a state and a will of its own: it opens sessions, and forgets them."""

    def __init__(self, session: Open[S]) -> None:
        self._session = session
        self.ready = ReadyPeers()
        self._sessions: dict[str, S] = {}

    def open(self, peer: str, now: int) -> S:
        outbox = Outbox(lambda: self.ready.add(peer))
        self._sessions[peer] = self._session(outbox, lambda: self._forget(peer))
        return self._sessions[peer]

    def save(self) -> None:
        return None

    def load(self, state: Any) -> None:
        return None

    def _forget(self, peer: str) -> None:
        self._sessions.pop(peer, None)
