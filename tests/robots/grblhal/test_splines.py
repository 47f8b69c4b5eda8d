"""Splines and scaling of a machine against a trace of the real firmware.

`splines.csv`: X and Y in mm about every 0.5 s, from the first step of the program to its last.
"""

from pathlib import Path

import numpy as np
import pytest
from tests.robots.grblhal.test_drilling_programs import SHARE, Sender

from understudy.app.validate import cycle_time, validate_text
from understudy.config import CellConfig, load_config
from understudy.motion.plan import Plan
from understudy.offline.walk import PlannedMotion, walk
from understudy.robots.grblhal.offline import machine_setup

GOLDEN = Path(__file__).parents[2] / "golden" / "grblhal_splines"
PROGRAM = (GOLDEN / "splines.nc").read_bytes()
TRACE = np.loadtxt(GOLDEN / "splines.csv", delimiter=",", skiprows=1)
LATEST_FIRST_STEP_S = 0.06
"""The first step takes some hundredths of a second, since the machine begins slowly."""
WITHIN_MM = 0.05


@pytest.fixture
def config() -> CellConfig:
    return load_config(str(Path(__file__).parent / "judge" / "plain_machine.yaml"))


def test_positions_and_time_are_those_of_the_firmware(config: CellConfig) -> None:
    events = walk(PROGRAM, machine_setup(config, "machine"))
    plans = [event.plan for event in events if isinstance(event, PlannedMotion)]
    assert len(plans) == 1  # splines join each other without a stop
    plan = plans[0]
    off = {first: _off(plan, first) for first in np.arange(0.0, LATEST_FIRST_STEP_S, 1e-3)}
    first_step = min(off, key=lambda first: off[first])
    assert off[first_step] < WITHIN_MM
    assert first_step + TRACE[-1, 0] == pytest.approx(plan.ends, rel=SHARE)


def _off(plan: Plan, first_step: float) -> float:
    """The largest distance from the trace, in mm, if the first step comes at this time."""
    places = plan.positions(first_step + TRACE[:, 0])[:, :2]
    return float(np.abs(places - TRACE[:, 1:]).max())


def test_the_running_machine_takes_the_time_of_cycle_time(config: CellConfig) -> None:
    report = validate_text(PROGRAM, config)
    assert report.passed, report.violations
    assert Sender(config).stream(PROGRAM) == pytest.approx(
        cycle_time(PROGRAM, config).total_s, rel=SHARE
    )
