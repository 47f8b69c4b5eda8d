"""Reach map compared with EAIK on the same poses: 50 mm grid, 14 directions, limits checked."""

from statistics import median
from time import process_time

import numpy as np

from benchmarks import Row
from benchmarks.bench_ik import eaik_of
from benchmarks.cells import g60
from understudy.space.reach.reach_map import ReachabilityAnalyzer, directions

ROUNDS = 5
PEER_POINTS = 300


def rows() -> list[Row]:
    arm = g60()
    analyzer, robot, turns = ReachabilityAnalyzer(arm), eaik_of(arm), directions(14)
    whole = analyzer.generate_map(0.05, extent=1.2)
    within = whole.reachable_points
    found = []
    for name, points in (("cube around the arm", whole.points), ("reachable points only", within)):
        rng = np.random.default_rng(0)
        poses = np.repeat(turns[None], PEER_POINTS, axis=0)
        poses[:, :, :3, 3] = rng.choice(points, PEER_POINTS)[:, None]
        listed = list(poses.reshape(-1, 4, 4))
        ours, theirs = [], []
        for _ in range(ROUNDS):
            begun = process_time()
            analyzer._tried(points, turns)
            ours.append(len(points) * len(turns) / (process_time() - begun))
            begun = process_time()
            robot.IK_batched(listed, 1)
            theirs.append(len(listed) / (process_time() - begun))
        a, b = median(ours) / 1e6, median(theirs) / 1e6
        found.append(
            Row(
                f"reach map, {name}",
                f"{a:.1f} M poses/s",
                f"{b:.2f} M/s EAIK",
                f"{a / b:.0f}×",
                "≥ 10×",
            )
        )
    return found
