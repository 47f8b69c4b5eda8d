"""Delay and lock-out of addresses that send wrong tokens.

A right token is never delayed, whatever its address sent before: an attacker behind the same
address (a router, a shared machine) cannot keep the operator from the emergency stop. So the delay
keeps wrong answers cheap for the server and makes an attack visible in the log; the length of the
token (`check_token`) makes it hopeless.
"""

import ipaddress
from collections import Counter, OrderedDict
from dataclasses import dataclass
from hashlib import sha256

FREE_ATTEMPTS = 3
"""Wrong tokens without a delay: typing errors."""
FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 8.0
LOCKED_AFTER = 10
"""Different wrong tokens of an address, each within `WINDOW_S` of the one before."""
WINDOW_S = 300.0
"""Duration of a lock-out, too; each further wrong token starts it again."""
MOST_ADDRESSES = 2048
"""The address whose last wrong token is oldest is forgotten first."""
MOST_WAITING = 4
"""Answers of one address that are delayed at a time; further ones are sent at once."""
MOST_WAITING_IN_ALL = 64
IPV6_SITE_BITS = 64
"""The addresses of one IPv6 network count as one: its user can choose among all of them."""


@dataclass(frozen=True, slots=True)
class Penalty:
    """Answer to a wrong token: sent after ``delay_s``; ``locked_s``: time until the lock-out ends,
    0 if there is none."""

    delay_s: float
    locked_s: float
    newly_locked: bool


@dataclass(slots=True)
class _Attempts:
    """Wrong tokens of one address; the digest of the last one, not the token, is kept."""

    count: int = 0
    last: float = 0.0
    digest: bytes = b""


class WrongTokens:
    """Wrong tokens of each address. ``now`` is in seconds, of a clock that never goes back."""

    def __init__(self) -> None:
        self._attempts: OrderedDict[str, _Attempts] = OrderedDict()
        self._waiting: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._attempts)

    def add(self, address: str, token: str, now: float) -> Penalty:
        """Counts a wrong token. The same one again (an old cookie) is no further guess."""
        attempts = self._of(site(address))
        if now - attempts.last > WINDOW_S:
            attempts.count, attempts.digest = 0, b""
        digest = sha256(token.encode("utf-8", "replace")).digest()
        is_new = digest != attempts.digest
        if is_new:
            attempts.count, attempts.last, attempts.digest = attempts.count + 1, now, digest
        locked = attempts.count >= LOCKED_AFTER
        return Penalty(
            delay_s=_delay(attempts.count),
            locked_s=attempts.last + WINDOW_S - now if locked else 0.0,
            newly_locked=is_new and attempts.count == LOCKED_AFTER,
        )

    def begin_wait(self, address: str) -> bool:
        """Whether one more answer to this address may be delayed; then call `end_wait`."""
        place = site(address)
        if self._waiting[place] >= MOST_WAITING or self._waiting.total() >= MOST_WAITING_IN_ALL:
            return False
        self._waiting[place] += 1
        return True

    def end_wait(self, address: str) -> None:
        place = site(address)
        self._waiting[place] -= 1
        self._waiting += Counter()  # drops the addresses that have none

    def _of(self, place: str) -> _Attempts:
        attempts = self._attempts.setdefault(place, _Attempts())
        self._attempts.move_to_end(place)
        if len(self._attempts) > MOST_ADDRESSES:
            self._attempts.popitem(last=False)
        return attempts


def site(address: str) -> str:
    """The address, or its network for IPv6."""
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv4Address):
        return str(known)
    if known.ipv4_mapped:
        return str(known.ipv4_mapped)
    return str(ipaddress.ip_network((known, IPV6_SITE_BITS), strict=False))


def _delay(count: int) -> float:
    if count <= FREE_ATTEMPTS:
        return 0.0
    return min(FIRST_DELAY_S * 2.0 ** min(count - FREE_ATTEMPTS - 1, 10), LONGEST_DELAY_S)
