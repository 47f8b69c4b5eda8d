"""Benchmarks, always compared with a peer in the same run. `make bench` prints them all."""

from typing import NamedTuple


class Row(NamedTuple):
    """One result: the task, our figure, the peer's figure, their ratio, and the target."""

    what: str
    ours: str
    peer: str
    ratio: str
    aim: str


def quantiles(samples: list[float]) -> tuple[float, float]:
    """The p50 and p99 of the samples."""
    ordered = sorted(samples)
    return ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
