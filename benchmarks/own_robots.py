"""Public arms, tried from their own repositories: the table of docs/config/own_robot.md.

    python -m benchmarks.own_robots FOLDER [NAME…]

FOLDER contains a checkout of each repository, in a folder of the repository's name. Nothing of them
is part of this project. Each arm is loaded, drawn, compared with pinocchio (forward kinematics in
200 configurations, limits), started twice as a cell (with an empty cache of self-collision pairs,
and again) and validated with a program of ten lines. The kernels must be compiled (`understudy
warm`).
"""

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pinocchio

from understudy.app.live import Live, Options
from understudy.app.validate import validate_text
from understudy.config import CellConfig, load_config
from understudy.errors import ConfigError
from understudy.simulation.collision.body import six_joint_chain
from understudy.space.kinematics.chain import Chain
from understudy.space.model.urdf import elements
from understudy.units import DEG, MM


class Arm(NamedTuple):
    """A row: maker and name, its file below the folder, and further keys of the cell file."""

    name: str
    model: str
    keys: str = ""


KUKA, ABB, FANUC = "kuka_experimental/kuka", "abb/abb", "fanuc/fanuc"
UR = "Universal_Robots_ROS2_Description/urdf/ur.urdf.xacro"
ARMS = (
    Arm("KUKA KR 16-2", f"{KUKA}_kr16_support/urdf/kr16_2.urdf"),
    Arm("KUKA KR 120 R2500 pro", f"{KUKA}_kr120_support/urdf/kr120r2500pro.xacro"),
    Arm(
        "KUKA LBR iiwa 14 R820",
        f"{KUKA}_lbr_iiwa_support/urdf/lbr_iiwa_14_r820.xacro",
        "fixed_joints_deg: {joint_a3: 0}",
    ),
    Arm("Fanuc LR Mate 200iD", f"{FANUC}_lrmate200id_support/urdf/lrmate200id.xacro"),
    Arm("Fanuc M-10iA", f"{FANUC}_m10ia_support/urdf/m10ia.xacro"),
    Arm("ABB IRB 2400", f"{ABB}_irb2400_support/urdf/irb2400.urdf"),
    Arm("Universal Robots UR5e", f"{UR} name:=ur5e ur_type:=ur5e"),
    Arm("Universal Robots UR10e", f"{UR} name:=ur10e ur_type:=ur10e"),
    Arm(
        "Franka Panda",
        "example-robot-data/robots/panda_description/urdf/panda.urdf",
        "tip: panda_hand_tcp, fixed_joints_deg: {panda_joint3: 0}",
    ),
    Arm("Yaskawa GP12", "motoman/motoman_gp12_support/urdf/gp12.xacro"),
)
ROBOT = "arm"
TRIED = 200
Start = tuple[float, float]
"""Seconds of wall time and of processor time."""


def main(words: list[str]) -> int:
    if not words:
        print(__doc__)
        return 2
    folder, chosen = Path(words[0]).resolve(), [word.lower() for word in words[1:]]
    print(
        "| arm | joints | drawn | FK, largest error | limits | first start | later start "
        "| validation of ten lines |\n|---|---|---|---|---|---|---|---|"
    )
    for arm in ARMS:
        if not chosen or any(word in arm.name.lower() for word in chosen):
            print(row(arm, folder), flush=True)
    return 0


def row(arm: Arm, folder: Path) -> str:
    with tempfile.TemporaryDirectory() as own:
        os.environ["UNDERSTUDY_CACHE_DIR"] = own
        file = Path(own) / "cell.yaml"
        model = os.path.relpath(folder, own) + f"/{arm.model}"
        keys = ", ".join(filter(None, [f"kind: arm, model: '{model}'", arm.keys]))
        file.write_text(f"control: {{port: 0}}\nrobots:\n  {ROBOT}: {{{keys}}}\n")
        try:
            cells = cells_of(file)
        except ConfigError as problem:
            return f"| {arm.name} | {problem} |"
    return f"| {arm.name} | {' | '.join(cells)} |"


def cells_of(file: Path) -> list[str]:
    first, later = started(file), started(file)
    config = load_config(str(file))
    chain = six_joint_chain(config.robots[ROBOT].config, config.read_file)
    oracle = Oracle(config, chain)
    return [
        str(chain.dof),
        drawn(config),
        f"{oracle.kinematics() / MM:.1e} mm",
        oracle.limits(),
        shown(first),
        shown(later),
        validated(config, chain),
    ]


def started(file: Path) -> Start:
    """Time of a cell that starts, runs for a millisecond and ends."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = (sys.executable, "-m", "understudy", "run", str(file), "--ephemeral", "--no-hmi")
    done = subprocess.run([*command, "--for", "0.001"], capture_output=True, text=True)
    if done.returncode:
        raise ConfigError(done.stderr.strip().splitlines()[-1])
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def shown(start: Start) -> str:
    return f"{start[0]:.1f} s ({start[1]:.1f} s CPU)"


def drawn(config: CellConfig) -> str:
    """Links with a shape in the scene of the page, and the shapes that cannot be drawn."""

    async def ask() -> Any:
        live = Live(config, Options(ephemeral=True, hmi=False, rate="step"))
        try:
            return live.commands.call("scene", {}, "viewer")
        finally:
            await live.stop()

    links = asyncio.run(ask())["robots"][ROBOT]["links"]
    shapes = [shape for link in links for shape in link["shapes"]]
    missing = sum("problem" in shape for shape in shapes)
    count = sum(any("problem" not in shape for shape in link["shapes"]) for link in links)
    colors = len({str(shape["color"]) for shape in shapes if shape["color"]})
    return f"{count} of {len(links)} links, {colors} colours" + (
        f", {missing} files missing" if missing else ""
    )


def validated(config: CellConfig, chain: Chain) -> str:
    low, high = chain.sampling_range
    middle = np.where((low <= 0) & (high >= 0), 0.0, 0.5 * (low + high)) / DEG
    lines = ["G21 G90"]
    for k in range(9):
        q = middle + 4.0 * np.cos(0.7 * k + np.arange(6))
        q = np.clip(q, low / DEG + 0.01, high / DEG - 0.01)
        words = zip("ABCUVW", q, strict=True)
        lines.append("G0 " + " ".join(f"{letter}{value:.3f}" for letter, value in words))
    report = validate_text("\n".join(lines), config)
    if report.violations:
        return f"{len(report.violations)} violations: {report.violations[0].message}"
    return f"pass, {sum(bool(line.proven) for line in report.lines)} lines proven"


class Oracle:
    """The same arm in pinocchio."""

    def __init__(self, config: CellConfig, chain: Chain) -> None:
        own = config.robots[ROBOT].config
        text = config.read_file(own.model).decode()
        self._chain = chain
        self._model = pinocchio.buildModelFromXML(text)
        self._data = self._model.createData()
        self._held = {name: angle * DEG for name, angle in own.fixed_joints_deg.items()}
        _, _, joints = elements(text)
        for joint in joints:
            if joint.moves and joint.name not in chain.names:
                rest = min(max(0.0, joint.lower), joint.upper)
                self._held.setdefault(joint.name, rest)

    def kinematics(self) -> float:
        """Largest deviation of the flange's matrix, in m."""
        low, high = self._chain.sampling_range
        Q = np.random.default_rng(1).uniform(low, high, (TRIED, self._chain.dof))
        worst = 0.0
        frame = self._model.getFrameId(self._chain.model.tip)
        base = self._model.getFrameId(self._chain.model.base)
        for q, ours in zip(Q, self._chain.flanges(Q), strict=True):
            pinocchio.framesForwardKinematics(self._model, self._data, self._configuration(q))
            places = self._data.oMf
            theirs = (places[base].inverse() * places[frame]).homogeneous
            worst = max(worst, float(np.abs(ours - theirs).max()))
        return worst

    def _configuration(self, q: Any) -> Any:
        values = {**self._held, **dict(zip(self._chain.names, q, strict=True))}
        out = pinocchio.neutral(self._model)
        for name, value in values.items():
            joint = self._model.joints[self._model.getJointId(name)]
            if joint.nq == 2:  # continuous: cosine and sine
                out[joint.idx_q : joint.idx_q + 2] = np.cos(value), np.sin(value)
            elif joint.nq:
                out[joint.idx_q] = value
        return out

    def limits(self) -> str:
        """Whether positions, speeds and efforts are those that pinocchio reads."""
        compared: list[tuple[Any, Callable[[Any], float]]] = [
            (self._chain.lower, lambda j: self._model.lowerPositionLimit[j.idx_q]),
            (self._chain.upper, lambda j: self._model.upperPositionLimit[j.idx_q]),
            (self._chain.velocity, lambda j: self._model.velocityLimit[j.idx_v]),
        ]
        for ours, theirs in compared:
            for name, value in zip(self._chain.names, ours, strict=True):
                joint = self._model.joints[self._model.getJointId(name)]
                if joint.nq == 1 and abs(theirs(joint) - value) > 1e-9:
                    return f"{name} differs"
        return "equal"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
