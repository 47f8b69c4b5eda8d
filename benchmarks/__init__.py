"""Figures, always beside a peer in the same run. `make bench` prints them all."""

from typing import NamedTuple


class Row(NamedTuple):
    """One figure: what was done, by us and by the peer, and what is to be reached."""

    what: str
    ours: str
    peer: str
    ratio: str
    aim: str


def quantiles(samples: list[float]) -> tuple[float, float]:
    """p50 and p99."""
    ordered = sorted(samples)
    return ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
