"""Locks of the doors: who has the secret of the run or the token, and what needs it."""

from collections.abc import Callable
from dataclasses import dataclass

from understudy.errors import Refused
from understudy.ports.access import is_key
from understudy.ports.hmi import NOT_ALLOWED
from understudy.units import NS_PER_SECOND

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
    """What opens a door. `keys`: the secret of the run and the token. `required`: nothing is
    answered without one of them."""

    keys: tuple[str, ...] = ()
    required: bool = False

    def check(self, given: object) -> bool | Refused:
        """True: it is a key; False: there is none, and none is required here."""
        if given is None:
            return MISSING if self.required else False
        return is_key(given, self.keys) or WRONG


OPEN = Lock()


class Admission:
    """What one client has shown so far. `admitted`: its requests are answered. `trusted`: it has
    the secret or the token."""

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


NeedsSecret = Callable[[str], bool]
"""Whether a command needs the secret now, even at a door that is open without it."""


def real_refusal(command: str) -> Refused:
    return Refused(
        f"{command} commands a REAL robot and needs the secret of this run: {WHERE}", NOT_ALLOWED
    )
