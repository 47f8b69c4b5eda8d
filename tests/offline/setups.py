"""Setups of the tests: the golden machine, and the G60."""

from functools import cache
from pathlib import Path

import numpy as np

from understudy.gcode import ARM
from understudy.motion.path import Limits
from understudy.offline.setup import Setup
from understudy.robots.arm.mover import ArmMover
from understudy.robots.grblhal.offline import machine_of
from understudy.space.kinematics.chain import Frames, chain
from understudy.space.model.urdf import read

TESTS = Path(__file__).parents[1]
GOLDEN = TESTS / "golden" / "grblhal"
G60 = TESTS.parent / "src" / "understudy" / "catalog" / "robots" / "g60.urdf"


def settings_text(name: str = "s1_base") -> str:
    return (GOLDEN / "settings" / f"{name}.txt").read_text()


def program_text(name: str) -> str:
    return (GOLDEN / "programs" / f"{name}.nc").read_text()


def machine(name: str = "s1_base", more: str = "") -> Setup:
    return machine_of(settings_text(name) + more)


@cache
def arm() -> Setup:
    g60 = chain(read(G60.read_text()))
    limits = Limits.of(g60.velocity, g60.acceleration)
    return Setup(ArmMover(g60, limits, Frames(np.eye(4), np.eye(4)), 0.0), ARM)
