"""File descriptors of this process, shared between its endpoints.

Each connection takes one. If clients could take all of them, neither `understudy stop` nor a file
or worker process would get one. So the sum of all endpoints' limits stays below the limit of the
process, and some descriptors are kept for everything that is not a client.
"""

import resource
from typing import Protocol, runtime_checkable

HIGHEST = 65_536
"""The limit of the process is raised up to this, as far as the system allows."""
RESERVED = 256
"""Descriptors that no client gets; half of all if there are fewer than 512."""


@runtime_checkable
class ServesClients(Protocol):
    """A server whose number of clients can be limited."""

    def limit_clients(self, most: int) -> None: ...


def raise_limit() -> None:
    """Raises the limit of this process; many systems begin with 1024 and allow more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = HIGHEST if hard == resource.RLIM_INFINITY else min(hard, HIGHEST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def share(endpoints: int) -> int:
    """The number of clients that each of these endpoints may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    all_ = HIGHEST if soft == resource.RLIM_INFINITY else soft
    return max(1, (all_ - min(RESERVED, all_ // 2)) // max(1, endpoints))
