"""Lines in columns give the report of lines that are read one by one."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.app.validate import subject_of
from understudy.config import load_config
from understudy.gcode import ARM
from understudy.gcode.program import PlainLines, program_parts
from understudy.motion.path import path_of
from understudy.motion.plan import Plan
from understudy.motion.profile import trapezoid
from understudy.offline.cycle_time import COMMENT, Rows
from understudy.offline.robot import offline_robot
from understudy.offline.validate.judge import asks_too_much, judge_events
from understudy.offline.validate.report import JudgeOptions, Report
from understudy.offline.walk import Event, spans_of, walk
from understudy.space.collision.sweep import bound_cubics, greatest_slopes

TEXTS = st.text(alphabet="G1XYN07 .;(%\t\x1c\u00a0é", max_size=12)


@given(st.lists(TEXTS, min_size=1, max_size=6))
def test_rows_of_columns_have_the_texts_of_single_rows(texts: list[str]) -> None:
    """A row for each line is the oracle of copy_texts.

    The regular expression is the oracle of find_executed.
    """
    data, ends = "\n".join(texts).encode(), np.cumsum([len(text.encode()) + 1 for text in texts])
    starts = np.concatenate([[0], ends[:-1]])
    lines = PlainLines(data, ARM, 1, starts, ends - 1, np.full((len(texts), 8), np.nan))
    rows, single = Rows(), Rows()
    rows.extend(lines, 2.0)
    for number, text in enumerate(texts, 1):
        single.append(number, text.strip(), 2.0)
    assert rows == single
    assert rows.executed == sum(not COMMENT.match(text.strip()) for text in texts)
    rows.mark("refused")
    assert rows.executed == sum(not COMMENT.match(text.strip()) for text in texts[:-1])


@given(st.lists(st.sampled_from([0, 0, 1, 2]), min_size=1, max_size=12), st.booleans())
def test_times_of_rows_are_those_of_their_lines(pieces: list[int], refused: bool) -> None:
    """`spans_of` is the oracle of add_times."""
    part = next(program_parts("G1 X1\n" * len(pieces), ARM))
    line = np.repeat(np.arange(1, len(pieces) + 1), pieces)
    rows, count = Rows(), len(line)
    rows.extend(part.plain(0, len(pieces)), 5.0)
    if refused:
        rows.mark("refused")
    one = np.ones(count)
    path = path_of(
        shape=np.ones((count, 2, 1)),
        end=np.ones((count, 1)),
        length=one,
        acceleration=one,
        fastest=one,
        feed=one,
        block=np.arange(count),
        line=line,
    )
    law = trapezoid(path, one, np.ones(count + 1), at=5.0)
    plan = Plan(path, law, np.ones(1))
    rows.ran("process", plan)
    spans, here = spans_of(plan), 5.0
    for row, moves in zip(rows, pieces, strict=True):
        begin, here = spans[row.line] if moves else (here, here)
        last = refused and row.line == len(pieces)
        kind = "refused" if last else "process" if moves else ""
        assert (row.start_s, row.end_s, row.kind) == (begin, here, kind)


@given(st.integers(0, 2**32 - 1))
def test_a_feed_asks_too_much_where_a_joint_would_exceed_its_limit(seed: int) -> None:
    """Places along each piece are the oracle of asks_too_much and the oracle of bound_cubics."""
    rng = np.random.default_rng(seed)
    shape, length = rng.normal(size=(2, 4, 6)), rng.uniform(0.1, 1.0, 2)
    slopes, bends = np.empty((2, 2, 6))
    bound_cubics(shape, length, slopes, bends)
    assert np.array_equal(slopes, greatest_slopes(shape, length))
    s = np.linspace(0.0, 1.0, 400)[None, :, None] * length[:, None, None]
    _, b, c, d = (shape[:, k, None] for k in range(4))
    speed, turn = np.abs(b + 2.0 * c * s + 3.0 * d * s**2), np.abs(2.0 * c + 6.0 * d * s)
    feed, limits = rng.uniform(0.1, 1.0, 2), (np.full(6, 5.0), np.full(6, 20.0), np.full(6, 50.0))
    v = feed[:, None, None]
    used = (v * speed / 5.0).max(), (v**2 * turn / 20.0).max(), (v**3 * abs(6.0 * d) / 50.0).max()
    yes, no = np.ones(2, dtype=np.bool_), np.zeros(2, dtype=np.bool_)
    found = asks_too_much(shape, length, feed, yes, yes, limits)
    assert found == (max(used) > 1.0) or abs(max(used) - 1.0) < 1e-3
    assert not asks_too_much(shape, length, feed, no, yes, limits)
    along_joints = asks_too_much(shape, length, feed, yes, no, limits)
    assert along_joints == (used[0] > 1.0) or abs(used[0] - 1.0) < 1e-3


# ── whole reports ──


BEGIN = "G21 G90 G94\nG28\nG0 X450 Y0 Z450 A180 B0 C0\nG1 Z400 F6000\n"
PLACES = st.builds(
    "G1 X{:.2f} Y{:.2f}{}".format,
    st.floats(430, 470),
    st.floats(-40, 40),
    st.sampled_from(["", " F900", " F90000", " Z395", " ; é", " (here)"]),
)
OTHERS = st.sampled_from(["G91", "G90", "N7", "(é)", "", "M7", "M3", "M5", "G4 P0.1", "G1 X2000"])


def reported(events: Iterator[Event], program: str) -> Report:
    subject = subject_of(program, load_config("g60_welding"), "g60")
    return judge_events(events, subject, JudgeOptions())


def one_by_one(events: Iterator[Event]) -> Iterator[Event]:
    for event in events:
        yield from event if isinstance(event, PlainLines) else [event]


@given(st.lists(st.one_of(PLACES, PLACES, PLACES, OTHERS), max_size=40))
@settings(max_examples=10, deadline=None)
def test_a_report_of_columns_is_that_of_single_lines(lines: list[str]) -> None:
    program, robot = BEGIN + "\n".join(lines), offline_robot(load_config("g60_welding"), "g60")
    setup = robot.setup("")
    assert setup is not None
    columns = reported(walk(program, setup), "")
    single = reported(one_by_one(walk(program, setup)), "")
    assert columns == single
    assert columns.document() == single.document()
    assert [row.text for row in columns.lines] == [
        text.strip() for text in program.split("\n") if text.strip()
    ]


@pytest.mark.parametrize("lines", [1, 5, 3000])
def test_columns_are_used_for_a_contour(lines: int) -> None:
    setup = offline_robot(load_config("g60_welding"), "g60").setup("")
    assert setup is not None
    program = BEGIN + "\n".join(f"G1 X{450 + k % 2}" for k in range(lines))
    taken = [len(event) for event in walk(program, setup) if isinstance(event, PlainLines)]
    assert sum(taken) == lines
    assert len(taken) < 20
