"""Collision checks of single configurations, called from Python, compared with other libraries.

The dense cell of ``cells`` (or the one of `--scene`): each library answers for the same
configurations and the same pairs of shapes. Two mixes: drawn from the whole range of the joints,
and those of them without a contact, which a check of a program mostly sees. Rounds alternate;
medians of CPU time. VAMP is missing: it needs code that is generated for each robot.
"""

from statistics import median
from time import process_time

import numpy as np

from benchmarks import Case, Row
from benchmarks.cells import scene_of
from benchmarks.peers import PEERS
from understudy.space.collision.detector import CollisionDetector
from understudy.space.transform import Array

CHECKS = 1500
ROUNDS = 7


def rows(case: Case) -> list[Row]:
    detector, rng = scene_of(case)
    arm = detector.chain
    assert arm is not None
    Q = rng.uniform(arm.lower, arm.upper, (CHECKS, arm.dof))
    hits = detector.collides(Q)
    mixes = {"one check, any configuration": Q, "one check, no contact": Q[~hits]}
    return [row for what, chosen in mixes.items() for row in compared(detector, what, chosen)]


def compared(detector: CollisionDetector, what: str, Q: Array) -> list[Row]:
    """One row for each library that is installed, from rounds in which all take turns."""
    expected = detector.collides(Q)
    cells = {peer: peer.cell(detector) for peer in PEERS if peer.installed}
    same = {p: np.mean([c.collides(q) for q in Q] == expected) for p, c in cells.items()}
    works = {None: detector.has_contact} | {p: c.collides for p, c in cells.items()}
    seconds: dict[object, list[float]] = {who: [] for who in works}
    for _ in range(ROUNDS):
        for who, collides in works.items():
            begun = process_time()
            for q in Q:
                collides(q)
            seconds[who].append(process_time() - begun)
    rates = {who: len(Q) / median(times) for who, times in seconds.items()}
    ours = rates.pop(None)
    found = []
    for peer in PEERS:
        if peer not in cells:
            found.append(Row(f"{what}, {peer.name}", "", "not installed", "–", ""))
            continue
        differs = "" if same[peer] == 1 else f"{same[peer]:.1%} of the answers are equal"
        theirs, caveat = rates[peer], "; ".join(filter(None, (peer.caveat, differs)))
        found.append(
            Row(
                f"{what}, {peer.name}", f"{ours / 1e3:.0f} k/s", f"{theirs / 1e3:.0f} k/s",
                f"{ours / theirs:.1f}×", "≥ 3× the best", caveat,
            )
        )  # fmt: skip
    return found
