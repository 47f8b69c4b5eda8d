"""An independent check of joint limits, speeds and torques: pinocchio, densely sampled.

It shares nothing with the validation but the executed motion (the plan of each line). The place of
the tool, the joint speeds that a feed needs (Jacobian) and the torques (RNEA of a base that is
turned in the world) are pinocchio's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from understudy.app.validate import validate_text
from understudy.config import CellConfig
from understudy.motion.plan import Plan
from understudy.offline.validate.report import Finding, Report
from understudy.offline.walk import PlannedMotion, walk
from understudy.robots.arm.offline import arm_setup
from understudy.units import DEG, MM

Array = NDArray[np.float64]

CELL = """
robots:
  g60:
    kind: arm
    model: g60
    base_mm_deg: [{mount}]
    tool: 1
    tools: {{1: {{tcp_mm_deg: [0, 0, 150, 0, 30, 0], mass_kg: {mass}, com_mm: [{com}]}}}}
    collision: {{enable: false}}
"""
TOOL = pin.SE3(pin.rpy.rpyToMatrix(0.0, 30 * DEG, 0.0), np.array([0.0, 0.0, 0.15]))
FLANGE = "flange"
SINGULAR = 1e-3
"""J5 (rad), or ratio of singular values, below which a pose is singular."""
HOPELESS = 20.0
"""Share of a limit above which its exact size is not compared."""


@dataclass(frozen=True, slots=True)
class Case:
    """A random cell and a random program on it."""

    cell: str
    program: str
    mount: tuple[float, ...]
    mass: float
    com: tuple[float, ...]


def random_case(rng: np.random.Generator) -> Case:
    """A mounting, a load, and lines of the tool close to singular poses and joint limits."""
    mount = (0.0, 0.0, 0.0, *rng.choice([0.0, 90.0, 180.0, -60.0, 35.0], 3).tolist())
    mass, com = float(rng.uniform(0.0, 40.0)), tuple(rng.uniform(-150.0, 150.0, 3).tolist())
    text = CELL.format(mount=_listed(mount), mass=mass, com=_listed(com))
    bare = Oracle(Case(text, "", mount, mass, com))
    lines = ["G21 G90 G94"]
    for _ in range(6):
        lines += _two_lines(bare, rng)
    return Case(text, "\n".join(lines) + "\n", mount, mass, com)


def _two_lines(oracle: "Oracle", rng: np.random.Generator) -> Iterator[str]:
    """A rapid to a configuration that is often nearly singular, and a tool line from there."""
    low, high = oracle.model.lowerPositionLimit, oracle.model.upperPositionLimit
    first = rng.uniform(0.7 * low, 0.7 * high)
    step = rng.uniform(-15.0, 15.0, 6) * DEG
    if rng.random() < 0.7:  # the wrist, from a singular pose to 10° beside it
        side = rng.choice([-1.0, 1.0])
        first[4] = side * 10.0 ** rng.uniform(-4.0, 1.0) * DEG * float(rng.random() > 0.1)
        step[4] = side * abs(step[4])
    if rng.random() < 0.3:  # a joint close to its limit
        joint = int(rng.integers(6))
        first[joint] = (high if rng.random() < 0.5 else low)[joint] * 0.99999
        step[joint] *= 0.05
    second = np.clip(first + step, low, high)
    feed = 10.0 ** rng.uniform(2.0, 4.6)
    yield "G0 " + _words("ABCUVW", first / DEG)
    yield f"G1 {_words('XYZABC', oracle.pose(second))} F{feed:.0f}"


def _words(letters: str, values: Array) -> str:
    return " ".join(f"{letter}{value:.4f}" for letter, value in zip(letters, values, strict=True))


def _listed(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value!r}" for value in values)


class Oracle:
    """pinocchio's model of a case."""

    def __init__(self, case: Case) -> None:
        text = (files("understudy") / "catalog" / "robots" / "g60.urdf").read_text()
        self.model = model = pin.buildModelFromXML(text)
        turn = pin.rpy.rpyToMatrix(*np.array(case.mount[3:]) * DEG)
        model.jointPlacements[1] = pin.SE3(turn, np.zeros(3)) * model.jointPlacements[1]
        self._flange = model.frames[model.getFrameId(FLANGE)].placement
        held = pin.Inertia(case.mass, np.array(case.com) * MM, np.zeros((3, 3)))
        model.inertias[6] += self._flange.act(held)
        self._data = model.createData()

    def tool(self, q: Array) -> pin.SE3:
        """The tool in the cell."""
        pin.forwardKinematics(self.model, self._data, q)
        return self._data.oMi[6] * self._flange * TOOL

    def pose(self, q: Array) -> Array:
        """The tool in mm and degrees."""
        tool = self.tool(q)
        return np.concatenate([tool.translation / MM, pin.rpy.matrixToRpy(tool.rotation) / DEG])

    def speeds(self, q: Array, twist: Array) -> Array:
        """Joint speeds for a twist of the tool (m/s and rad/s in the axes of the cell)."""
        jacobian = pin.computeJointJacobian(self.model, self._data, q, 6)
        own = (self._flange * TOOL).toActionMatrixInverse() @ jacobian
        turn = self.tool(q).rotation
        world = np.vstack([turn @ own[:3], turn @ own[3:]])
        return np.asarray(np.linalg.solve(world, twist))

    def regularity(self, q: Array) -> float:
        """Smallest singular value of the Jacobian over the largest; 0 in a singular pose."""
        values = np.linalg.svd(
            pin.computeJointJacobian(self.model, self._data, q, 6), compute_uv=False
        )
        return float(values[-1] / values[0])

    def torques(self, q: Array, v: Array, a: Array) -> Array:
        return np.asarray(pin.rnea(self.model, self._data, q, v, a))


@dataclass(slots=True)
class LineTruth:
    """What a line really needs: the largest shares of the joints' speeds at its feed and of their
    torques, and how far a joint is beyond its range (rad)."""

    speed: float = 0.0
    torque: float = 0.0
    beyond: float = 0.0
    executed: float = 0.0
    off_path: float = 0.0
    singular_end: bool = False


def truths(case: Case, config: CellConfig) -> dict[int, LineTruth]:
    """The truth about every line that moves."""
    oracle = Oracle(case)
    found: dict[int, LineTruth] = {}
    for event in walk(case.program, arm_setup(config, "g60")):
        if isinstance(event, PlannedMotion):
            for line in np.unique(event.plan.path.line).tolist():
                found[line] = _truth(event.plan, line, oracle, rests=not event.goes_on)
    return found


def _truth(plan: Plan, line: int, oracle: Oracle, *, rests: bool) -> LineTruth:
    times = _times(plan, line, rests=rests)
    motion = plan.sample(times)
    model, truth = oracle.model, LineTruth()
    low, high = model.lowerPositionLimit, model.upperPositionLimit
    truth.beyond = float(np.maximum(low - motion.position, motion.position - high).max())
    truth.executed = float((np.abs(motion.velocity) / model.velocityLimit).max())
    rows = zip(*motion, strict=True)
    torques = np.array([oracle.torques(*row) for row in rows])
    truth.torque = float((np.abs(torques) / model.effortLimit).max())
    pieces = np.flatnonzero(plan.path.line == line)
    if not plan.path.rapid[pieces[0]]:
        _feed_truth(plan, pieces, oracle, truth)
    return truth


def _times(plan: Plan, line: int, *, rests: bool) -> Array:
    """1 kHz, and just inside both ends of every part of the plan, where accelerations jump.

    ``rests``: the arm stands at the end of the plan; to hold it there can take more torque than to
    brake into it."""
    law = plan.law
    segments = np.flatnonzero(plan.path.line[law.piece] == line)
    begins, ends = law.begins[segments], law.begins[segments + 1]
    grid = np.arange(begins[0], ends[-1], 1e-3)
    at_rest = law.begins[len(law) :] if rests and segments[-1] == len(law) - 1 else begins[:0]
    return np.unique(np.concatenate([grid, begins + 1e-9, ends - 1e-9, at_rest]))


def _feed_truth(plan: Plan, pieces: NDArray[np.int64], oracle: Oracle, truth: LineTruth) -> None:
    """Joint speeds for the feed on the programmed line, at close places of the executed path."""
    path = plan.path
    start, end = oracle.tool(path.shape[pieces[0], 0]), oracle.tool(path.end[pieces[-1]])
    way = end.translation - start.translation
    length = float(np.linalg.norm(way))
    turning = start.rotation @ pin.log3(start.rotation.T @ end.rotation)
    twist = np.concatenate([way, turning]) / length * float(path.feed[pieces[0]])
    ends = (path.shape[pieces[0], 0], path.end[pieces[-1]])
    truth.singular_end = min(oracle.regularity(q) for q in ends) < SINGULAR
    gone = 0.0
    for piece in pieces.tolist():
        for s in np.linspace(0.0, path.length[piece], 40):
            q = path.position(piece, float(s))
            share = (gone + s) / length
            truth.off_path = max(truth.off_path, _off(oracle.tool(q), start, end, share))
            if abs(q[4]) > SINGULAR:
                speeds = np.abs(oracle.speeds(q, twist)) / oracle.model.velocityLimit
                truth.speed = max(truth.speed, float(speeds.max()))
        truth.speed = max(truth.speed, _measured(plan, piece, oracle))
        gone += float(path.length[piece])


def _measured(plan: Plan, piece: int, oracle: Oracle) -> float:
    """Joint speeds at the feed by differences along a piece. Next to a singular pose they are the
    truth: there the Jacobian asks for any speed within a micrometre of the line."""
    path = plan.path
    h = float(path.length[piece])
    q = np.array([path.position(piece, s) for s in np.linspace(0.0, h, 81)])
    speeds = np.abs(np.diff(q, axis=0)) * (80.0 / h) * float(path.feed[piece])
    return float((speeds / oracle.model.velocityLimit).max())


def _off(tool: pin.SE3, start: pin.SE3, end: pin.SE3, share: float) -> float:
    """Distance of the tool from the programmed line; the larger of metres and radians."""
    wanted = start.translation + share * (end.translation - start.translation)
    turn = start.rotation @ pin.exp3(share * pin.log3(start.rotation.T @ end.rotation))
    turned = float(np.linalg.norm(pin.log3(turn.T @ tool.rotation)))
    return max(float(np.linalg.norm(tool.translation - wanted)), turned)


def flaws(case: Case, config: CellConfig) -> Iterator[str]:
    """Every verdict of the validation that the oracle contradicts."""
    report: Report = validate_text(case.program, config)
    speed, torque = ("velocity", "singularity"), ("torque",)
    for line, truth in truths(case, config).items():
        said = [each for each in (*report.violations, *report.warnings) if each.line == line]
        if truth.beyond > 2e-6:
            yield f"line {line}: {truth.beyond / DEG:.5f} deg beyond a joint limit"
        if truth.executed > 1.0 + 1e-6:
            yield f"line {line}: a joint runs at {truth.executed:.4f} of its speed"
        if truth.off_path > 5e-6:
            yield f"line {line}: the tool is {truth.off_path:.1e} off its path"
        yield from _compared(line, "speed", truth.speed, [f for f in said if f.kind in speed])
        yield from _compared(line, "torque", truth.torque, [f for f in said if f.kind in torque])
        slowed = [each for each in report.warnings if each.line == line and each.kind in speed]
        if slowed and not truth.singular_end:
            yield f"line {line}: only a warning, but it neither begins nor ends in a singular pose"


def _compared(line: int, what: str, share: float, said: list[Finding]) -> Iterator[str]:
    factor = max((each.factor for each in said), default=0.0)
    if share > 1.02 and not said:
        yield f"line {line}: {what} {share:.3f} of the limit, and nothing is said"
    elif said and min(factor, share) < HOPELESS and abs(factor / share - 1.0) > 0.05:
        yield f"line {line}: {what} {share:.3f} of the limit, but {factor:.3f} is said"
