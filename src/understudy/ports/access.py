"""Access to the doors of a cell: loopback addresses, secrets, tokens.

The secret of a run is made when the cell starts and stands in its ready file. A token is chosen by
the user, for doors that other machines can reach.
"""

import hmac
import ipaddress
from collections.abc import Iterable

from understudy.errors import ConfigError

SHORTEST_TOKEN = 16
"""Characters. A right token is never delayed (hmi/access.py), so its length alone makes
guessing hopeless."""


def check_token(token: str | None, key: str) -> None:
    """Raises a ConfigError for a token that is too short; the message does not contain it."""
    if token and len(token) < SHORTEST_TOKEN:
        raise ConfigError(
            f"the token has {len(token)} characters",
            key=key,
            allowed=f"{SHORTEST_TOKEN} or more, for example from: openssl rand -hex 16",
        )


SECRET_VARIABLE = "UNDERSTUDY_SECRET"
"""Environment variable by which a cell gives its secret to the process of its page."""
TOKEN_VARIABLE = "UNDERSTUDY_TOKEN"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address.

    A name other than `localhost` is not: what it resolves to may change. An empty host is every
    address of the machine.
    """
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def same_secret(given: object, wanted: str | None) -> bool:
    """Compares in a time that does not depend on the place of the first difference."""
    if not isinstance(given, str) or not given or not wanted:
        return False
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode("utf-8", "replace"))


def is_key(given: object, keys: Iterable[str]) -> bool:
    """Whether it is one of the keys; every one is compared."""
    fits = False
    for key in keys:
        fits |= same_secret(given, key)
    return fits


def check_reachable(door: str, host: str, token: str | None, *, set_by: str) -> None:
    """Raises ConfigError if other machines can reach the door and its token is missing or short.

    ``set_by``: the cell key and the environment variable that set the token.
    """
    if is_loopback(host):
        return
    if not token:
        raise ConfigError(
            f"{door} on {host or 'every address'} can be reached from other machines and has no "
            f"token; set {set_by} ({SHORTEST_TOKEN} characters or more), or serve it on 127.0.0.1"
        )
    check_token(token, set_by)
