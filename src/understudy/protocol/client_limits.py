"""Counts the clients of one endpoint: in all, and of each address."""

import ipaddress
from collections import Counter
from typing import Generic, TypeVar

Client = TypeVar("Client")


class ClientLimits(Generic[Client]):
    """Admits clients up to a number in all and from one address.

    Loopback is not counted by address: all programs of this machine share it.
    """

    def __init__(self, in_all: int, per_address: int) -> None:
        self.in_all = in_all
        self.per_address = per_address
        self._addresses: dict[Client, str] = {}
        self._numbers: Counter[str] = Counter()
        self._waiting: dict[Client, None] = {}

    def is_full(self) -> bool:
        return len(self._addresses) >= self.in_all

    def enter(self, client: Client, address: str) -> str:
        """Counts a client; returns the reason why it is refused instead, or nothing."""
        if self.is_full():
            return f"at most {self.in_all} connections at a time"
        if self._numbers[address] >= self.per_address and not _is_loopback(address):
            return f"at most {self.per_address} connections at a time from one address"
        self._addresses[client] = address
        self._numbers[address] += 1
        return ""

    def waits(self, client: Client, waiting: bool) -> None:
        """Notes whether a client has asked for nothing, or for nothing more, so that it may yield
        to a new one."""
        if not waiting:
            self._waiting.pop(client, None)
        elif client in self._addresses:
            self._waiting.setdefault(client)

    def first_waiting(self) -> Client | None:
        """The client that has waited for the longest time."""
        return next(iter(self._waiting), None)

    def leave(self, client: Client) -> None:
        self._waiting.pop(client, None)
        address = self._addresses.pop(client, None)
        if address is not None:
            self._numbers[address] -= 1
            if not self._numbers[address]:
                del self._numbers[address]


def _is_loopback(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback
