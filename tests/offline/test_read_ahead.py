"""Reading tool lines ahead gives the same events as reading them one by one."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.offline.setups import arm

from understudy.gcode.program import PlainLines, ProgramLine, program_lines
from understudy.motion.path import Floats
from understudy.offline import walk as walking
from understudy.offline.setup import Setup
from understudy.offline.walk import (
    Event,
    PlannedMotion,
    Reader,
    Standstill,
    Straights,
    Violation,
    Walker,
    spans_of,
    straights,
    walk,
)
from understudy.space.pose import Pose
from understudy.space.transform import matrices, matrix

BEGIN = "G21 G90 G94\nG0 X450 Y0 Z450 A180 B0 C0\n"
OUT_OF_REACH = "G1 X2000 F3000"


def one_by_one(program: str, setup: Setup) -> Iterator[Event]:
    """The events of a walk without reading ahead."""
    walker = Walker(setup)
    reader = Reader(setup, walker)
    for line in program_lines(program, setup.dialect):
        reader.read(line)
        yield from walker.take()
    walker.end(0)
    yield from walker.take()


def each_line(events: Iterator[Event]) -> Iterator[Event]:
    for event in events:
        yield from event if isinstance(event, PlainLines) else [event]


def assert_same(program: str) -> None:
    setup = replace(arm(), start=(0.0, 0.0, 0.6, 0.0, 0.9, 0.0))
    ahead, plain = list(each_line(walk(program, setup))), list(one_by_one(program, setup))
    assert [type(event) for event in ahead] == [type(event) for event in plain]
    for one, other in zip(ahead, plain, strict=True):
        if isinstance(one, PlannedMotion) and isinstance(other, PlannedMotion):
            assert_same_run(one, other)
        elif isinstance(one, Standstill) and isinstance(other, Standstill):
            assert (one.line, one.kind) == (other.line, other.kind)
            assert (one.begins, one.ends) == pytest.approx((other.begins, other.ends), abs=1e-9)
        else:
            assert one == other


def assert_same_run(one: PlannedMotion, other: PlannedMotion) -> None:
    spans, wanted = spans_of(one.plan), spans_of(other.plan)
    assert list(spans) == list(wanted)
    np.testing.assert_allclose(list(spans.values()), list(wanted.values()), atol=1e-9)
    assert one.plan.target == pytest.approx(other.plan.target, abs=1e-9)
    times = np.linspace(one.plan.begins, one.plan.ends, 50)
    np.testing.assert_allclose(one.plan.positions(times), other.plan.positions(times), atol=1e-8)


CIRCLE = "\n".join(
    f"G1 X{450 + 20 * np.cos(0.1 * k):.3f} Y{20 * np.sin(0.1 * k):.3f} F3000" for k in range(70)
)
PROGRAMS = {
    "many lines": CIRCLE,
    "a line in the middle that is out of reach": f"{CIRCLE}\n{OUT_OF_REACH}\n{CIRCLE}",
    "what is not named stays where the arm is": f"G1 X460 F600\n{OUT_OF_REACH}\nG1 Y10\nG1 Z440",
    "steps from where the arm is": "G1 X460 F600\nG91\nG1 Y5\nG1 X3000\nG1 Y5\nG1 Z-5 A5\nG90",
    "turning in place, and nowhere at all": "G1 X455 F600\nG1 X455 A175\nG1 X455\nG1 X460\nG1 Y1",
    "switches and dwells between": "G1 X455 F600\nM64 P1\nG1 X456\nM62 P2\nG1 X457\nG4 P1\nG1 Y2",
    "exact stops": "G61.1\nG1 X455 F600\nG1 X460\nG64\nG1 Y5\nG1 Y9",
    "by inverse time, arcs, joints": (
        "G93\nG1 X455 F60\nG94\nG1 X460 F600\nG3 X470 Y0 I5 J0\nG1 Y3\nG1 U1 V85\nG1 X450 Y0 Z450"
    ),
    "no feed, nonsense, inches": "G1 X455\nG1 X455 F600\nG1 X?\nG20\nG1 X17.9\nG21\nG1 X450",
    "an orientation of two names": "G1 X460 A180 B90 C0 F900\nG1 X465\nG1 Z440 C10",
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=list(PROGRAMS))
def test_events_are_the_same_as_without_reading_ahead(text: str) -> None:
    assert_same(f"{BEGIN}{text}\nM2\n")


LINES = st.one_of(
    st.builds(
        "G1 X{:.2f} Y{:.2f} F{}".format, st.floats(420, 480), st.floats(-40, 40), st.just(600)
    ),
    st.builds("G1 Z{:.2f} F900".format, st.floats(420, 470)),
    st.builds("G1 X460 A{:.1f} F900".format, st.floats(160, 200)),
    st.sampled_from([OUT_OF_REACH, "G91", "G90", "G1 U2 F600", "G4 P0.1", "M64 P1", "G0 X450 Y0"]),
)


@given(st.lists(LINES, max_size=25))
@settings(max_examples=12, deadline=None)
def test_random_programs_give_the_same_events_as_without_reading_ahead(lines: list[str]) -> None:
    assert_same(BEGIN + "\n".join(lines))


def test_refused_lines_are_read_at_most_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each is read at most once more."""
    count = 0

    def counted(values: Floats, *rest: Any) -> Straights:
        nonlocal count
        count += len(values)
        return straights(values, *rest)

    monkeypatch.setattr(walking, "straights", counted)
    lines = [f"G1 X{2000 + k} F600" if k % 40 > 20 else f"G1 Y{k % 7} F600" for k in range(200)]
    events = list(each_line(walk(BEGIN + "\n".join(lines), arm())))
    assert sum(isinstance(event, Violation) for event in events) == 95
    assert sum(isinstance(event, ProgramLine) for event in events) == 202
    assert 200 <= count <= 2 * 202


def test_many_poses_are_converted_to_matrices() -> None:
    poses = [Pose(0.1, 0.2, 0.3, 3.0, -1.0, 0.5), Pose(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)]
    np.testing.assert_allclose(matrices(poses), [matrix(each) for each in poses], atol=1e-15)
    assert matrices([]).shape == (0, 4, 4)
