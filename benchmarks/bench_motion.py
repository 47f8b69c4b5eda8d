"""Speed of motion planning and sampling compared with peers.

Rounds of kernel and peer alternate; the medians of CPU time are compared, so that a noisy machine
affects both. A sample is the position of six axes at one time. The peers do no more work than the
kernels: the plain passes have no window, and numpy samples positions only.
"""

from collections.abc import Callable
from pathlib import Path as FilePath
from statistics import median
from time import process_time

import numpy as np
import pinocchio as pin
from tests.motion.plain_motion import plain_blocks, plain_trapezoid

from benchmarks import Row
from understudy.motion.dynamics import dynamics
from understudy.motion.lines import lines
from understudy.motion.path import Limits, Path
from understudy.motion.plan import Motion, Plan
from understudy.motion.profile import entries
from understudy.motion.stream import planned
from understudy.motion.warm import warm
from understudy.space.kinematics.chain import chain
from understudy.space.model.urdf import read

ROOT = FilePath(__file__).parents[1]

ROUNDS = 7
LIMITS = Limits.of([100.0] * 6, [500.0] * 6)


def program(count: int) -> np.ndarray:
    return np.cumsum(np.random.default_rng(1).normal(size=(count, 6)), axis=0)


def measured(targets: np.ndarray) -> Path:
    return lines(np.zeros(6), targets, LIMITS, feed=50.0, deviation=0.01, steps=250.0)


def plain_passes(path: Path) -> list[float]:
    """Backward and forward pass over all blocks, in plain Python."""
    nominal = path.nominal().tolist()
    gain = (2.0 * path.acceleration * path.length).tolist()
    corner = path.junction.tolist()
    speeds = [0.0] * (len(gain) + 1)
    for k in range(len(gain) - 1, 0, -1):
        top = min(corner[k], nominal[k - 1] ** 2, nominal[k] ** 2)
        speeds[k] = min(top, speeds[k + 1] + gain[k])
    for k, added in enumerate(gain):
        speeds[k + 1] = min(speeds[k + 1], speeds[k] + added)
    return speeds


def plain_measured(points: list[list[float]]) -> object:
    limits = (LIMITS.velocity.tolist(), LIMITS.acceleration.tolist())
    return plain_blocks([0.0] * 6, points, *limits, deviation=0.01, steps=[250.0] * 6)


def plain_plan(points: list[list[float]], path: Path) -> object:
    """Targets to segments in plain Python; ``path`` only replaces reading the columns."""
    plain_measured(points)
    return plain_trapezoid(path, path.nominal().tolist(), plain_passes(path))


def numpy_positions(plan: Plan, times: np.ndarray) -> np.ndarray:
    law = plan.law
    k = np.clip(np.searchsorted(law.begins, times, side="right") - 1, 0, len(law) - 1)
    x = times - law.begins[k]
    s = law.s[k] + x * (law.v[k] + 0.5 * x * law.a[k])
    rows = plan.path.shape[law.piece[k]]
    return np.asarray(rows[:, 0] + rows[:, 1] * s[:, None])


def seconds(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return process_time() - start


def compare(
    name: str, work: Callable[[], object], count: int, peer: Callable[[], object], peer_count: int
) -> Row:
    """Millions per CPU second of both, and the ratio; ``name`` is `what (peer)`."""
    work(), peer()
    rounds = [(count / seconds(work), peer_count / seconds(peer)) for _ in range(ROUNDS)]
    own, other = (median(column) / 1e6 for column in zip(*rounds, strict=True))
    ratio = median(a / b for a, b in rounds)
    what, _, rival = name.removesuffix(")").partition(" (")
    return Row(what, f"{own:.2f} M/s", f"{other:.2f} M/s {rival}", f"{ratio:.1f}×", "")


def rows() -> list[Row]:
    warm()
    targets, few = program(200_000), program(20_000)
    path, short = measured(targets), measured(few)
    nominal = path.nominal()
    plan = planned(short)
    times = np.arange(0.0, plan.ends, 1e-3)
    out = np.empty((len(times), 6))
    points = few[:4000].tolist()
    return [
        compare(
            "look-ahead, window 100, blocks (plain Python)",
            lambda: entries(path, nominal, window=100), len(path),
            lambda: plain_passes(short), len(short),
        ),
        compare(
            "measuring blocks, six axes (plain Python)",
            lambda: measured(targets), len(targets),
            lambda: plain_measured(points), len(points),
        ),
        compare(
            "targets to plan, all of it (plain Python)",
            lambda: planned(measured(targets)), len(targets),
            lambda: plain_plan(points, measured(few[:4000])), len(points),
        ),
        compare(
            "sampling positions at 1 kHz (numpy)",
            lambda: plan.positions(times), len(times),
            lambda: numpy_positions(plan, times), len(times),
        ),
        compare(
            "the same into an existing array (numpy)",
            lambda: plan.positions(times, out=out), len(times),
            lambda: numpy_positions(plan, times), len(times),
        ),
        compare(
            "sampling position, velocity, acceleration (numpy, positions)",
            lambda: plan.sample(times), len(times),
            lambda: numpy_positions(plan, times), len(times),
        ),
        *torques(),
    ]  # fmt: skip


def torques() -> list[Row]:
    text = (ROOT / "src/understudy/catalog/robots/g60.urdf").read_text()
    arm, model = dynamics(chain(read(text))), pin.buildModelFromXML(text)
    data = model.createData()
    motion = Motion(*np.random.default_rng(1).normal(size=(3, 20_000, 6)))
    return [
        compare(
            "torques, six axes (pinocchio, one by one)",
            lambda: arm.torques(motion), 20_000,
            lambda: [pin.rnea(model, data, *row) for row in zip(*motion, strict=True)], 20_000,
        ),
    ]  # fmt: skip
