"""Straight lines of the tool as arrays agree with the interpreter."""

from dataclasses import dataclass

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from understudy.gcode import ARM, Axes, Block, Interpretation, Modal, interpret, parse
from understudy.gcode.program import ProgramPart, program_parts
from understudy.gcode.requests import LineMove
from understudy.offline.walk import plain_angles, straight_runs, straights

HERE: Axes = (450.0, 3.0, 400.0, 180.0, 0.0, 10.0)
OFFSET: Axes = (10.0, 0.0, -5.5, 0.0, 0.0, 2.0)
UNDER_WAY = Modal(motion="G1", feed=600.0)
MODES = [
    UNDER_WAY,
    replace(UNDER_WAY, distance="G91"),
    replace(UNDER_WAY, units="G20"),
    replace(UNDER_WAY, offsets=(OFFSET, *UNDER_WAY.offsets[1:]), g92=(0.1, 0.2, 0.3, 0, 0, 0)),
]
NUMBER = st.integers(-40_000, 40_000).map(lambda n: n / 1000)
WORDS = st.dictionaries(st.sampled_from("XYZABC"), NUMBER, min_size=1)
LINES = st.lists(st.tuples(WORDS, st.sampled_from(["", "F300", "N7 F1.5", "G1", "N0"])), max_size=8)


@dataclass
class Where:
    """`Position`; only the pose is read."""

    pose: Axes
    axes: Axes = (0.0,) * 6


def part_of(*lines: str) -> ProgramPart:
    (part,) = program_parts("\n".join(lines), ARM)
    return part


@given(LINES, st.sampled_from(MODES))
def test_straight_lines_agree_with_the_interpreter(
    lines: list[tuple[dict[str, float], str]], modal: Modal
) -> None:
    """`interpret` is the oracle of straight_targets."""
    texts = [rest + "".join(f" {k}{v:.3f}" for k, v in words.items()) for words, rest in lines]
    assume(texts)
    part = part_of(*texts)
    assume(straight_runs(part, modal)[0] == len(texts))
    found = straights(part.values, modal, ARM, HERE)
    where = Where(HERE)
    for k, text in enumerate(texts):
        block = parse(text, ARM)
        assert isinstance(block, Block)
        step = interpret(block, modal, dialect=ARM, position=where)
        assert isinstance(step, Interpretation)
        (move,) = step.requests
        assert isinstance(move, LineMove)
        assert found.move(k) == move
        assert found.speeds[k] == move.speed
        assert found.after(k) == step.modal
        modal, pose = step.modal, step.pose
        assert pose is not None
        where.pose = (*pose[:3], *plain_angles(*pose[3:]))


@pytest.mark.parametrize(
    "text",
    [
        "G0 X1", "G2 X1 I1", "G91 X1", "G93 X1 F1", "X1 F0", "X1 F-5", "N99999999 X1", "X1 U2",
        "X1 S100", "X1 T2", "A1 B2", "F100", "G53 X1", "G54 X1", "X1 M8", "X1 (MSG,there)",
    ],
)  # fmt: skip
def test_other_lines_are_not_straight(text: str) -> None:
    assert straight_runs(part_of("X1", text, "X2", "X3"), UNDER_WAY) == [1, 1, 4, 4]


@pytest.mark.parametrize(
    "modal", [Modal(feed=1.0), Modal(motion="G1"), Modal("G1", feed_mode="G93")]
)
def test_a_line_without_a_feed_or_in_another_mode_is_not_straight(modal: Modal) -> None:
    assert straight_runs(part_of("X1"), modal) == [0]


def test_a_feed_in_the_line_is_enough() -> None:
    lines = part_of("X1 F5", "X1", "X1 F1", "X2 F3")
    assert straight_runs(lines, Modal(motion="G1")) == [1, 1, 4, 4]
