"""What is touched: every thing once, every part that touches it, tools where they are mounted, and
stops off the path."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.offline.validate.cases import cell, proved_text

from understudy.app.validate import Options, subject_of, validate_text
from understudy.motion.plan import Motion
from understudy.offline.validate import Arm, Report
from understudy.offline.validate.clearance import MOST_PAIRS
from understudy.offline.validate.limits import stopping_paths
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


def test_one_thing_on_a_line_hides_no_other() -> None:
    """Through the post, and into the table at the end."""
    text = START + "G0 X550 Y0 Z300 A180 B0 C0\nG1 Y180 Z40 F9000\n"
    assert found_in(text + "G1 Z20\n") == [(4, "collision", "post"), (5, "collision", "table")]
    assert found_in(START + "G0 X550 Y0 Z300 A180 B0 C0\nG1 Y180 Z20 F9000\n") == [
        (4, "collision", "post"),
        (4, "collision", "table"),
    ]


def test_the_parts_that_touch_the_same_are_told_together() -> None:
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


def test_each_part_is_told_where_it_truly_begins_to_touch() -> None:
    """Checked against the arm in small steps."""
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
    """What of the arm touches what stands around, looked at in one place."""
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
def test_whatever_a_look_sees_touching_is_told(poses: list[tuple[int, ...]]) -> None:
    """Swings of the joints through the workshop, each thing and each part on its line."""
    words = (" ".join(f"{a}{q}" for a, q in zip("ABCUVW", pose, strict=True)) for pose in poses)
    config = cell("workshop")
    report = validate_text("G21\n" + "".join(f"G0 {each}\n" for each in words), config)
    arm = subject_of("", config, "g60").arm(1)
    assert isinstance(arm, Arm)
    told = {
        (line, pair)
        for each in report.violations
        for line in range(each.line, (each.last or each.line) + 1)
        for pair in (contact.objects for contact in (each.contact, *each.also) if contact)
    }
    for q, line in list(zip(report.course.joints, report.course.lines, strict=True))[::5]:
        for pair in touching(arm.detector, np.array(q)):
            assert (line, pair) in told or len(told) >= MOST_PAIRS


def test_a_contact_that_goes_on_is_one_violation_and_a_new_one_is_another() -> None:
    text = START + "G0 X550 Y-100 Z200 A180 B0 C0\nG1 Z20 F3000\nG1 X560\nG1 Y60\nG1 Z200\n"
    report = proved_text(text, "workshop")
    told = [(v.line, v.contact.objects[1], v.last) for v in report.violations if v.contact]
    assert told == [(4, "table", 7), (6, "post", 7)]


def test_where_no_further_contacts_are_looked_for_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = START + "G0 X550 Y-100 Z200 A180 B0 C0\nG1 Z20 F3000\nG1 X560\nG1 Y60\nG1 Z200\n"
    assert not proved_text(text, "workshop").notes
    monkeypatch.setattr("understudy.offline.validate.clearance.MOST_SEARCHED", 2)
    report = proved_text(text, "workshop")
    assert any(note.startswith("4 lines have contacts") for note in report.notes)
    assert not report.passed


def test_a_zone_that_is_entered_hides_nothing_either() -> None:
    """The elbow in the zone behind, the tool on its way into the floor."""
    found = found_in("G21\nG0 A180 B0\nG0 A0 B-80 C0\n")
    assert (2, "joint_limit", "") in found
    assert (3, "zone", "gangway") in found


# ── tools ──


def test_a_tool_that_touches_where_it_is_mounted_is_told_there() -> None:
    assert found_in(START + STUB) == []
    assert found_in(START + STUB + "T3 M6\n") == [
        (5, "collision", "table"),
        (5, "collision", "floor"),
    ]


def test_what_a_mounted_tool_touches_goes_on_with_the_motion_after_it() -> None:
    report = proved_text(START + STUB + "T3 M6\nG1 Z700 F6000\nG1 X510\n", "workshop")
    assert [(v.line, v.last) for v in report.violations] == [(5, 6), (5, 6)]
    assert [row.proven for row in report.lines] == [True] * 4 + [False, False, True]


def test_a_tool_that_touches_nothing_leaves_its_line_as_it_is() -> None:
    report = proved_text(START + STUB, "workshop")
    assert report.passed
    assert (report.lines[2].clearance, report.lines[2].proven) == (None, True)


# ── stops off the path ──

ALONG = START + "G1 X400 Y-300 Z{z} F6000\nG1 X700 Y-100 F{feed}\nG1 X400 Y-300\n"
"""A straight line low above the table: the joints hold it only together."""


def along(z: float, feed: float) -> Report:
    return proved_text(ALONG.format(z=z, feed=feed), "workshop", Options(with_stops=True))


def test_a_stop_off_the_path_may_touch_what_the_path_does_not() -> None:
    text = ALONG.format(z=36, feed=30000)
    assert proved_text(text, "workshop").passed
    (found,) = along(36, 30000).violations
    assert (found.line, found.kind) == (5, "collision")
    assert "in a stop with independent joints torch.nozzle would touch table" in found.message


def test_slowly_or_higher_up_a_stop_touches_nothing() -> None:
    assert along(36, 6000).passed
    assert along(60, 30000).passed


def test_what_the_path_touches_is_not_told_again_of_its_stops() -> None:
    (found,) = along(20, 30000).violations
    assert "stopped here" not in found.message


SOME = st.integers(1, 6).flatmap(
    lambda count: arrays(
        np.float64, (2, count, 3), elements=st.floats(-2, 2, width=32).filter(lambda x: x == x)
    )
)


@given(SOME, arrays(np.float64, 3, elements=st.floats(0.5, 20)))
def test_stopping_paths_are_one_path_on_which_every_joint_brakes_by_itself(
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
    """Each joint by itself, up to its own rest."""
    run = np.minimum(t, np.abs(v) / braking)
    return np.asarray(q + v * run - 0.5 * np.sign(v) * braking * run**2)
