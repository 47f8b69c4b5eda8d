"""Doors, the ways into a running cell: control endpoint, state socket, HMI link.

They are faces beside the cell, which command its clock and are in no snapshot. A door may be
locked: its clients show the secret of the run, or the token, with their first request.
"""

import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from understudy.agenda import earliest
from understudy.errors import Refused
from understudy.ports import AnyFace, CommandTable, FaultSource, MessageSession, Session, Snapshot
from understudy.ports.access import is_key
from understudy.ports.hmi import NOT_ALLOWED, Watch
from understudy.protocol.sessions import Outbox, ReadyPeers, SessionFace
from understudy.units import NS_PER_SECOND

log = logging.getLogger(__name__)


# ── locks ───────────────────────────────────────────────────────────────────────────────────────

FIRST_REQUEST_SECONDS = 10
FIRST_REQUEST_TIME = FIRST_REQUEST_SECONDS * NS_PER_SECOND
"""Wall time in which a client must have given the secret."""
WHERE = (
    'send "secret": "…" in the request; the secret is in the ready file under `secret` '
    "(`understudy run --ready-file FILE`), and `understudy ctl` finds it by itself; from another "
    "machine send the token of the cell"
)
MISSING = Refused(f"the first request must carry the secret of this run: {WHERE}", NOT_ALLOWED)
WRONG = Refused(f"this is not the secret of this run: {WHERE}", NOT_ALLOWED)


@dataclass(frozen=True, slots=True)
class Lock:
    """What opens a door. Each of `keys` fits: the secret of the run and the token. If one is
    `required`, nothing is answered without it."""

    keys: tuple[str, ...] = ()
    required: bool = False

    def check(self, given: object) -> bool | Refused:
        """True: it is a key; False: there is none, and none is required here."""
        if given is None:
            return MISSING if self.required else False
        return is_key(given, self.keys) or WRONG


OPEN = Lock()


class Admission:
    """What one client has shown so far. The requests of an `admitted` client are answered; a
    `trusted` one has the secret or the token."""

    def __init__(self, lock: Lock) -> None:
        self._lock = lock
        self.admitted = not lock.required
        self.trusted = False

    def check(self, given: object) -> Refused | None:
        """Checks what a request carries; one after the first needs to carry nothing."""
        if given is None and self.admitted:
            return None
        fits = self._lock.check(given)
        if isinstance(fits, Refused):
            return fits
        self.admitted = True
        self.trusted |= fits
        return None


def real_refusal(command: str) -> Refused:
    return Refused(
        f"{command} commands a REAL robot and needs the secret of this run: {WHERE}", NOT_ALLOWED
    )


# ── doors ───────────────────────────────────────────────────────────────────────────────────────

AnyS = TypeVar("AnyS", bound=Session | MessageSession)
S = TypeVar("S", bound="LockedSession")
Open = Callable[[Outbox, Callable[[], None]], S]
"""Makes a session from its outbox and a function to call when it is closed."""


@dataclass(frozen=True, slots=True)
class DoorContext:
    """What a door needs: the commands, the view of the cell, and two functions.

    `wall` returns the wall time in seconds, for timestamps. `late` is called when an answer is
    ready that the peer has not just asked for. `lock` is the lock of this door.
    """

    commands: CommandTable
    watch: Watch
    wall: Callable[[], float]
    late: Callable[[], object] = lambda: None
    lock: Lock = OPEN


class Doors:
    """`TimedCell` of the doors of a cell: their time is the wall clock's.

    A wake that is late happens once, at the present time.
    """

    def __init__(self, faces: Mapping[str, AnyFace]) -> None:
        self.faces = faces
        self.disturbed: Mapping[str, FaultSource] = {}
        self.now = 0
        self._timed = dict(faces)

    def next_wake(self) -> int | None:
        return earliest(self._timed.values())

    def advance(self, to: int, settled: Callable[[int], None]) -> None:
        self.now = max(self.now, to)
        for endpoint, face in list(self._timed.items()):
            if self._is_due(face):
                face.wake(self.now)
                settled(self.now)
                if self._is_due(face):
                    log.error("%s is due again after its wake; it is woken no more", endpoint)
                    del self._timed[endpoint]

    def _is_due(self, face: AnyFace) -> bool:
        at = face.next_wake()
        return at is not None and at <= self.now

    def interrupted(self) -> bool:
        return False

    def busy(self) -> bool:
        return False

    def snapshot(self) -> Snapshot:
        return Snapshot(0, "", "", 0, {})

    def restore(self, snapshot: Snapshot) -> None:
        return None


class DoorSession(Protocol):
    """The methods of a `Session` that are the same for all doors."""

    _outbox: Outbox
    _leave: Callable[[], None]

    def take(self, room: int) -> bytes:
        return self._outbox.take(room)

    def eof(self, now: int) -> None:
        return None

    def closed(self, now: int) -> None:
        self._leave()

    def owed(self) -> bool:
        return False


class LockedSession(Session, Protocol):
    """`Session` of a client that must give the secret with its first request."""

    admission: Admission

    def hang_up(self) -> None:
        """Ends the session; its wire closes the connection."""
        ...


class UnsavedFace(SessionFace[AnyS], Protocol[AnyS]):
    """`SessionFace` that is in no snapshot; it forgets a session when that is closed."""

    def _forget(self, peer: str) -> None:
        self._sessions.pop(peer, None)


class Door(UnsavedFace[S]):
    """`Face` that opens a session for each client, and ends those that give no secret in time."""

    def __init__(self, session: Open[S]) -> None:
        self._session = session
        self.ready = ReadyPeers()
        self._sessions: dict[str, S] = {}
        self._deadlines: deque[tuple[int, str, S]] = deque()

    def open(self, peer: str, now: int) -> S:
        outbox = Outbox(lambda: self.ready.add(peer))
        session = self._session(outbox, lambda: self._forget(peer))
        self._sessions[peer] = session
        if not session.admission.admitted:
            self._deadlines.append((now + FIRST_REQUEST_TIME, peer, session))
        return session

    def next_wake(self) -> int | None:
        """The first deadline of a client that is not admitted yet; they are in order of time."""
        while self._deadlines:
            deadline, peer, session = self._deadlines[0]
            if self._sessions.get(peer) is session and not session.admission.admitted:
                return deadline
            self._deadlines.popleft()
        return None

    def wake(self, now: int) -> None:
        while (deadline := self.next_wake()) is not None and deadline <= now:
            self._deadlines.popleft()[2].hang_up()
