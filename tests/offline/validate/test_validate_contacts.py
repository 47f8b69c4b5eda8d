"""Reported contacts: every touched object once with all touching parts, mounted tools, stops off
the path."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.offline.validate.cases import cell, proved_text

from understudy.app.validate import Options, subject_of, validate_text
from understudy.motion.plan import Motion
from understudy.offline.robot import Arm
from understudy.offline.validate.clearance import MOST_PAIRS
from understudy.offline.validate.judge import stopping_paths
from understudy.offline.validate.report import Report
from understudy.space.collision.detector import CollisionDetector

START = "G21 G90 G94\nG0 X500 Y-200 Z450 A180 B0 C0\n"
THROUGH = START + "G1 Y300 Z40 F9000\n"
"""Wrist and forearm run into the post."""
STUB = "T2 M6\nG0 X500 Y-200 Z200 A180 B0 C0\n"
"""A short tool, low above the table."""


def found_in(text: str, options: Options | None = None) -> list[tuple[int, str, str]]:
    return [
        (each.line, each.kind, each.contact.objects[1] if each.contact else "")
        for each in proved_text(text, "workshop", options).violations
    ]


# ── all that is touched ──


def test_every_touched_object_of_a_line_is_reported() -> None:
    """Through the post, and into the table at the end."""
    text = START + "G0 X550 Y0 Z300 A180 B0 C0\nG1 Y180 Z40 F9000\n"
    assert found_in(text + "G1 Z20\n") == [(4, "collision", "post"), (5, "collision", "table")]
    assert found_in(START + "G0 X550 Y0 Z300 A180 B0 C0\nG1 Y180 Z20 F9000\n") == [
        (4, "collision", "post"),
        (4, "collision", "table"),
    ]


def test_all_parts_that_touch_an_object_are_in_one_violation() -> None:
    report = proved_text(THROUGH, "workshop")
    (found,) = report.violations
    assert found.contact is not None
    parts = [each.objects for each in (found.contact, *found.also)]
    assert len(set(parts)) == len(parts) >= 3
    assert {other for _, other in parts} == {"post"}
    times = [each.time_s for each in (found.contact, *found.also)]
    assert times == sorted(times)
    assert "; so do " in found.message
    (document,) = report.document()["violations"]
    assert [set(each) for each in document["also"]] == [
        {"objects", "point_mm", "depth_mm", "time_s"}
    ] * len(found.also)


def test_each_contact_has_the_time_of_its_first_touch() -> None:
    """Compared with samples in small steps."""
    config = cell("workshop")
    report = validate_text(THROUGH, config)
    (found,) = report.violations
    arm = subject_of("", config, "g60").arm(1)
    assert isinstance(arm, Arm)
    first: dict[tuple[str, str], float] = {}
    for q, time in zip(report.course.joints, report.course.times, strict=True):
        for names in touching(arm.detector, np.array(q)):
            first.setdefault(names, time)
    for each in (found.contact, *found.also):
        assert each is not None
        assert first[each.objects] == pytest.approx(each.time_s, abs=0.03)
    assert set(first) == {each.objects for each in (found.contact, *found.also) if each}


def touching(detector: CollisionDetector, q: np.ndarray) -> set[tuple[str, str]]:
    """Pairs (part of the arm, object) that touch in one configuration."""
    names, moving = detector.names, detector.world.moving
    return {
        (names[i], names[j])
        for i in range(detector.world.foot, moving)
        for j in range(moving, len(names))
        if detector.contact_between(q, i, j).collision
    }


LOWER, UPPER = (-90, -60, -60, -90, -90, -90), (90, 55, 120, 90, 90, 90)
POSES = st.tuples(*(st.integers(a, b) for a, b in zip(LOWER, UPPER, strict=True)))


@settings(max_examples=15, deadline=None)
@given(st.lists(POSES, min_size=1, max_size=2))
def test_every_contact_in_a_sample_is_reported(poses: list[tuple[int, ...]]) -> None:
    """Random joint moves through the workshop; every pair is on its line."""
    words = (" ".join(f"{a}{q}" for a, q in zip("ABCUVW", pose, strict=True)) for pose in poses)
    config = cell("workshop")
    report = validate_text("G21\n" + "".join(f"G0 {each}\n" for each in words), config)
    arm = subject_of("", config, "g60").arm(1)
    assert isinstance(arm, Arm)
    reported = {
        (line, pair)
        for each in report.violations
        for line in range(each.line, (each.last or each.line) + 1)
        for pair in (contact.objects for contact in (each.contact, *each.also) if contact)
    }
    for q, line in list(zip(report.course.joints, report.course.lines, strict=True))[::5]:
        for pair in touching(arm.detector, np.array(q)):
            assert (line, pair) in reported or len(reported) >= MOST_PAIRS


def test_a_contact_over_several_lines_is_one_violation() -> None:
    text = START + "G0 X550 Y-100 Z200 A180 B0 C0\nG1 Z20 F3000\nG1 X560\nG1 Y60\nG1 Z200\n"
    report = proved_text(text, "workshop")
    reported = [(v.line, v.contact.objects[1], v.last) for v in report.violations if v.contact]
    assert reported == [(4, "table", 7), (6, "post", 7)]


def test_a_note_reports_lines_without_a_search_for_further_contacts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = START + "G0 X550 Y-100 Z200 A180 B0 C0\nG1 Z20 F3000\nG1 X560\nG1 Y60\nG1 Z200\n"
    assert not proved_text(text, "workshop").notes
    monkeypatch.setattr("understudy.offline.validate.clearance.MOST_SEARCHED", 2)
    report = proved_text(text, "workshop")
    assert any(note.startswith("4 lines have contacts") for note in report.notes)
    assert not report.passed


def test_an_entered_zone_hides_no_other_violation() -> None:
    """The elbow enters the zone; another line is beyond a joint limit."""
    found = found_in("G21\nG0 A180 B0\nG0 A0 B-80 C0\n")
    assert (2, "joint_limit", "") in found
    assert (3, "zone", "gangway") in found


# ── tools ──


def test_a_tool_that_touches_when_it_is_mounted_is_reported_at_that_line() -> None:
    assert found_in(START + STUB) == []
    assert found_in(START + STUB + "T3 M6\n") == [
        (5, "collision", "table"),
        (5, "collision", "floor"),
    ]


def test_a_contact_of_a_mounted_tool_continues_in_the_next_motion() -> None:
    report = proved_text(START + STUB + "T3 M6\nG1 Z700 F6000\nG1 X510\n", "workshop")
    assert [(v.line, v.last) for v in report.violations] == [(5, 6), (5, 6)]
    assert [row.proven for row in report.lines] == [True] * 4 + [False, False, True]


def test_a_tool_that_touches_nothing_keeps_its_line_proven() -> None:
    report = proved_text(START + STUB, "workshop")
    assert report.passed
    assert (report.lines[2].clearance, report.lines[2].proven) == (None, True)


# ── stops off the path ──

ALONG = START + "G1 X400 Y-300 Z{z} F6000\nG1 X700 Y-100 F{feed}\nG1 X400 Y-300\n"
"""A straight line low above the table: the joints hold it only together."""


def along(z: float, feed: float) -> Report:
    return proved_text(ALONG.format(z=z, feed=feed), "workshop", Options(with_stops=True))


def test_a_contact_of_a_stop_off_the_path_is_reported() -> None:
    text = ALONG.format(z=36, feed=30000)
    assert proved_text(text, "workshop").passed
    (found,) = along(36, 30000).violations
    assert (found.line, found.kind) == (5, "collision")
    assert "in a stop with independent joints torch.nozzle would touch table" in found.message


def test_a_slow_or_higher_stop_touches_nothing() -> None:
    assert along(36, 6000).passed
    assert along(60, 30000).passed


def test_a_contact_of_the_path_is_not_reported_again_for_its_stops() -> None:
    (found,) = along(20, 30000).violations
    assert "stopped here" not in found.message


SOME = st.integers(1, 6).flatmap(
    lambda count: arrays(
        np.float64, (2, count, 3), elements=st.floats(-2, 2, width=32).filter(lambda x: x == x)
    )
)


@given(SOME, arrays(np.float64, 3, elements=st.floats(0.5, 20)))
def test_stopping_paths_are_continuous_and_every_joint_brakes_independently(
    states: np.ndarray, braking: np.ndarray
) -> None:
    q, v = states
    none = np.zeros_like(q)
    shape, length, row = stopping_paths(Motion(q, v, none), braking)
    ends = np.stack([_on(piece, x) for piece, x in zip(shape, length, strict=True)])
    assert np.allclose(shape[1:, 0], ends[:-1], atol=1e-9), "there is no jump"
    assert np.allclose(shape[0, 0], q[0])
    assert (np.diff(row) >= 0).all()
    for k in range(len(q)):
        if (v[k] ** 2 / (2 * braking)).max() <= 1e-4:
            continue
        mine = np.flatnonzero(row == k)
        tau = 0.0
        for piece in mine[: (len(mine) - 1) // 2]:
            for share in (0.0, 0.3, 1.0):
                at = tau + share * length[piece]
                assert np.allclose(
                    _on(shape[piece], share * length[piece]),
                    braked(q[k], v[k], braking, at),
                    atol=1e-9,
                )
            tau += length[piece]
        assert tau == pytest.approx((np.abs(v[k]) / braking).max())


def _on(piece: np.ndarray, x: float) -> np.ndarray:
    return np.asarray(x ** np.arange(len(piece)) @ piece)


def braked(q: np.ndarray, v: np.ndarray, braking: np.ndarray, t: float) -> np.ndarray:
    """The positions of joints that brake independently, each up to its own rest."""
    run = np.minimum(t, np.abs(v) / braking)
    return np.asarray(q + v * run - 0.5 * np.sign(v) * braking * run**2)
