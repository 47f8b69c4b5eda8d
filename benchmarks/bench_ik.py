"""Kinematics compared with EAIK and pinocchio: rates per core, in alternating rounds."""

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import pinocchio
from eaik.IK_HP import HPRobot

from benchmarks import Row
from understudy.space.kinematics.chain import Chain, chain
from understudy.space.kinematics.follow import follow
from understudy.space.kinematics.ik import (
    BRANCHES,
    all_branches,
    closed_form,
    limited_branches,
)
from understudy.space.model.urdf import read
from understudy.space.transform import line, translation

ROBOTS = Path(__file__).parents[1] / "src" / "understudy" / "catalog" / "robots"
ROUNDS = 7


def rate(work: Callable[[], object], count: int) -> float:
    """Items per second of CPU time, of ``count`` items."""
    start = time.process_time()
    work()
    return count / (time.process_time() - start)


def versus(
    name: str,
    own: tuple[Callable[[], object], int],
    other: tuple[str, Callable[[], object], int],
) -> Row:
    """Medians of alternating rounds of both."""
    own[0]()
    other[1]()
    mine, theirs = [], []
    for _ in range(ROUNDS):
        mine.append(rate(*own))
        theirs.append(rate(*other[1:]))
    a, b = median(mine) / 1e6, median(theirs) / 1e6
    return Row(name, f"{a:.2f} M/s", f"{b:.2f} M/s {other[0]}", f"{a / b:.1f}×", "")


def eaik_of(arm: Chain) -> HPRobot:
    axes = arm.axes_of(np.zeros((1, 6)))[0, 1:]
    points = np.vstack([np.zeros(3), axes[:, :3, 3], arm.flange(np.zeros(6))[:3, 3]])
    return HPRobot(axes[:, :3, 2], np.diff(points, axis=0))


def rows() -> list[Row]:
    text = (ROBOTS / "g60.urdf").read_text()
    arm = chain(read(text))
    Q = np.random.default_rng(0).uniform(arm.lower, arm.upper, (200_000, 6))
    targets = arm.flanges(Q)
    few = list(targets[:4_000])
    form = closed_form(arm)
    assert form is not None
    left, right = form.ends()
    out, near = np.empty((len(Q), BRANCHES, 6)), np.zeros(6)
    robot = eaik_of(arm)
    model = pinocchio.buildModelFromXML(text)
    data, tip = model.createData(), model.getFrameId("flange")
    start = arm.flange(near)
    path = line(start, translation(-0.2, 0.0, -0.2) @ start, np.linspace(0.0, 1.0, 50_001))

    def within_limits() -> None:
        limited_branches(targets, left, right, form.geometry, near, arm.lower, arm.upper, out)

    def eaik() -> None:
        robot.IK_batched(few, 1)

    def pin() -> None:
        for q in Q[:20_000]:
            pinocchio.forwardKinematics(model, data, q)
            pinocchio.updateFramePlacement(model, data, tip)

    peer = ("EAIK, all branches", eaik, len(few))
    return [
        versus(
            "IK, all branches",
            (lambda: all_branches(targets, left, right, form.geometry, near, out), len(Q)),
            peer,
        ),
        versus("IK, branches inside the limits", (within_limits, len(Q)), peer),
        versus("IK along a line", (lambda: follow(arm, near, path), len(path)), peer),
        versus("FK", (lambda: arm.flanges(Q), len(Q)), ("pinocchio, from Python", pin, 20_000)),
    ]
