"""Times and traces of the real firmware, for programs not used to fit parameters."""

import csv
from pathlib import Path

import numpy as np
import pytest
from tests.motion.mini_gcode import GOLDEN, path_of, settings

from understudy.motion.lines import lines
from understudy.motion.plan import Plan
from understudy.motion.stream import Stream, planned

TIMES = list(csv.DictReader((GOLDEN / "times.csv").read_text().splitlines()))
TRACES = sorted((GOLDEN / "traces").glob("*.csv"))


def golden_plan(program: str, machine: str) -> Plan:
    set_up = settings(machine)
    path = path_of((GOLDEN / "programs" / f"{program}.nc").read_text(), set_up)
    return planned(path, window=set_up.window)


@pytest.mark.parametrize("row", TIMES, ids=lambda row: f"{row['program']}-{row['settings']}")
def test_motion_takes_as_long_as_in_the_firmware(row: dict[str, str]) -> None:
    plan = golden_plan(row["program"], row["settings"])
    moving = plan.duration - plan.path.dwell.sum()
    assert moving == pytest.approx(float(row["motion_time_s"]), rel=1e-3)


def test_dwells_count_in_the_plan() -> None:
    plan = golden_plan("p08_dwell", "s1_base")
    assert plan.path.dwell.sum() == 1.75
    assert plan.duration == pytest.approx(1.9 + 1.75, rel=1e-6)


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.stem)
def test_positions_agree_with_the_firmware(trace: Path) -> None:
    program, _, machine = trace.stem.split("__")
    rows = np.loadtxt(trace, delimiter=",", skiprows=1)
    off = np.abs(golden_plan(program, machine).positions(rows[:, 0]) - rows[:, 1:7]).max(axis=0)
    assert (off[:3] < 0.05).all()
    assert (off[3:] < 0.1).all()


def test_lines_sent_one_by_one_take_the_same_time() -> None:
    """The wire holds lines back while the window is full; the time is that of the whole program."""
    set_up = settings("s2_jd05_pb30")
    path = path_of((GOLDEN / "programs" / "p11_tiny500.nc").read_text(), set_up)
    stream = Stream(np.zeros(6), set_up.limits, window=set_up.window)
    now = 0.0
    for target, feed in zip(path.end, path.feed, strict=True):
        while stream.used(now) >= set_up.window:
            _, begins = stream.plan.lines()
            now = float(begins[begins > now][0])
        line = lines(stream.end, target, set_up.limits, feed=feed, steps=set_up.steps)
        stream.append(line, now, deviation=set_up.deviation)
    assert stream.plan.ends == pytest.approx(planned(path, window=30).ends, abs=1e-6)
