"""Ports for servers that a test starts later, or stops and starts again."""

import os
import socket
from itertools import count
from pathlib import Path

EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
LOWEST, USUAL_EPHEMERAL = 12_000, 32_768
WORKERS = 8
_taken = count()


def free_port() -> int:
    """A port outside the range from which the system chooses ports for others: nobody who binds
    port 0 or connects gets it meanwhile. Each worker of pytest-xdist has ports of its own."""
    first = int(EPHEMERAL.read_text().split()[0]) if EPHEMERAL.exists() else USUAL_EPHEMERAL
    size = (max(first, LOWEST + 1000 * WORKERS) - LOWEST) // WORKERS
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % WORKERS
    for _ in range(size):
        port = LOWEST + worker * size + (os.getpid() * 37 + next(_taken)) % size
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError(f"no free port among {size}")
