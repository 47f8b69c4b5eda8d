"""Verdicts and clearances of random programs, compared with an independent oracle.

The programs are near singular poses on purpose: the wrist almost stretched, the arm almost
stretched, the wrist above the axis of the first joint.
"""

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pytest
import yaml
from tests.offline.validate.oracle import TOLERANCE, Oracle

from understudy.app.validate import validate_text
from understudy.config import CellConfig
from understudy.config.cell import read_config

FEW, MANY, LINES = 6, 500, 40
ENOUGH = 0.02
"""A proven clearance of 20 mm is tight enough."""
ROUNDING = 1e-6


def cell(random: Random) -> CellConfig:
    """A G60 with a torch among a few objects."""
    things = [
        {
            "name": "floor",
            "type": "box",
            "position_mm": [0, 0, -55],
            "dimensions_mm": [3000, 3000, 100],
        }
    ]
    for k in range(random.randint(2, 5)):
        kind = random.choice(["box", "cylinder", "sphere", "capsule"])
        angle, away = random.uniform(-3.1, 3.1), random.uniform(450, 900)
        thing: dict[str, Any] = {
            "name": f"thing{k}",
            "type": kind,
            "position_mm": [away * np.cos(angle), away * np.sin(angle), random.uniform(0, 1100)],
            "rotation_deg": [random.uniform(-180, 180) for _ in range(3)],
        }
        thing["position_mm"] = [float(x) for x in thing["position_mm"]]
        if kind == "box":
            thing["dimensions_mm"] = [random.uniform(20, 250) for _ in range(3)]
        else:
            thing["radius_mm"] = random.uniform(15, 120)
        if kind in ("cylinder", "capsule"):
            thing["height_mm"] = random.uniform(30, 300)
        things.append(thing)
    torch = {
        "name": "torch",
        "tcp_mm_deg": [0, 0, 150, 0, 0, 0],
        "shapes": [
            {
                "name": "body",
                "type": "cylinder",
                "radius_mm": 20,
                "height_mm": 70,
                "position_mm": [0, 0, 45],
            },
            {
                "name": "nozzle",
                "type": "capsule",
                "radius_mm": 11,
                "height_mm": 50,
                "position_mm": [5, 0, 112],
            },
        ],
    }
    arm = {"kind": "arm", "model": "g60", "tool": 1, "tools": {1: torch}}
    document = {"robots": {"g60": arm}, "environment": {"objects": things}}
    return read_config(yaml.safe_dump(document), "oracle.yaml")


def pose(random: Random) -> str:
    """Six joint words, many of them near a singular pose."""
    a, b, c = random.uniform(-170, 170), random.uniform(-60, 80), random.uniform(-80, 100)
    u, v, w = random.uniform(-170, 170), random.uniform(-100, 100), random.uniform(-170, 170)
    near = random.random()
    if near < 0.4:
        v = random.choice((-1, 1)) * 10 ** random.uniform(-3, 0.7)
    elif near < 0.55:
        c = -86.0 + random.uniform(-3, 3)
    elif near < 0.7:
        b, c = random.uniform(-25, -15), random.uniform(-70, -60)
    return f"A{a:.3f} B{b:.3f} C{c:.3f} U{u:.3f} V{v:.3f} W{w:.3f}"


def program(random: Random, lines: int) -> str:
    """Joint moves, and short tool lines from where they end."""
    text = ["G21 G90 G94", f"G0 {pose(random)}"]
    while len(text) < lines:
        text.append(f"G0 {pose(random)}" if random.random() < 0.5 else f"G1 {pose(random)} F3000")
        text.append("G91")
        for _ in range(random.randint(1, 6)):
            x, y, z = (random.uniform(-40, 40) for _ in range(3))
            text.append(f"G1 X{x:.3f} Y{y:.3f} Z{z:.3f} F{random.choice((300, 1500, 6000))}")
        text.append("G90")
    return "\n".join(text)


@dataclass
class Tally:
    """Figures of all compared lines."""

    proven: list[float]
    contacts: int = 0
    undecided: int = 0


def compare(seed: int, lines: int, tally: Tally) -> None:
    """Compares every moving line of a random program."""
    random = Random(seed)
    config, text = cell(random), program(random, lines)
    report = validate_text(text, config)
    left_out = {frozenset(pair.objects) for pair in report.left_out}
    oracle = Oracle(config, "g60", left_out)
    rows = {row.line: row for row in report.lines}
    touched = {
        line
        for found in report.violations
        if found.contact is not None
        for line in range(found.line, (found.last or found.line) + 1)
    }
    for line, path in oracle.paths(text).items():
        row = rows[line]
        true = oracle.least(path, max(1.12 * ENOUGH, row.clearance or 0.0))
        where = f"seed {seed}, line {line}: true {true:.6f}, reported {row}"
        if line in touched:
            assert true <= ROUNDING, where
            tally.contacts += 1
        elif row.clearance is None or not row.clearance > 1e-4:
            assert true < 1.1e-4, where
            tally.undecided += 1
        else:
            assert row.seen is not None
            assert row.clearance <= true + ROUNDING, where
            assert row.clearance >= min(0.9 * true, ENOUGH) - ROUNDING, where
            assert row.seen >= true * (1 - TOLERANCE) - ROUNDING, where
            tally.proven.append(min(row.clearance, ENOUGH) / min(true, ENOUGH))


def test_verdicts_agree_with_the_oracle() -> None:
    tally = Tally([])
    for seed in range(FEW):
        compare(seed, LINES // 2, tally)
    assert len(tally.proven) > 30
    assert tally.contacts > 5


@pytest.mark.soak
def test_verdicts_of_500_programs_agree_with_the_oracle() -> None:
    tally = Tally([])
    for seed in range(1000, 1000 + MANY):
        compare(seed, LINES, tally)
    shares = np.percentile(tally.proven, (0, 5, 50))
    print(
        f"{len(tally.proven)} lines proven, {tally.contacts} with contacts, "
        f"{tally.undecided} undecided; proven/true: least {shares[0]:.3f}, "
        f"5 % {shares[1]:.3f}, median {shares[2]:.3f}"
    )
