"""Benchmarks, always compared with a peer in the same run. `make bench` prints them all."""

from typing import NamedTuple


class Case(NamedTuple):
    """What a benchmark is measured on, if its `rows` take one: a seed, and a cell file or name."""

    seed: int | None = None
    scene: str = ""


class Row(NamedTuple):
    """One result: the task, our figure, the peer's figure, their ratio, the target, and what the
    comparison leaves out.

    A ratio with × says how many times better we are than the peer; one without says how many
    times the peer's figure ours is, as a cost.
    """

    what: str
    ours: str
    peer: str
    ratio: str
    aim: str
    caveat: str = ""


def quantiles(samples: list[float]) -> tuple[float, float]:
    """The p50 and p99 of the samples."""
    ordered = sorted(samples)
    return ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
