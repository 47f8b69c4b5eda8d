"""The seam: arc time, length, and process issues."""

import math

import numpy as np
import pytest
from tests.devices.welder.weld_bench import MS, WelderBench, along_x

from understudy.devices.welder.welder import MOST_ISSUES, MOST_POINTS, Seam

SPEED = 0.01


def test_length_counts_only_while_the_arc_burns() -> None:
    """A tool that always moves, at 10 mm/s: the arc burns from 0.45 s to 5.58 s."""
    bench = WelderBench(way=along_x(SPEED)).start().turn(5000, "ARC_START", False).run(20_000)
    status = bench.welder.status(bench.now)
    assert status.arc_on_time_s == pytest.approx(5.13, abs=1e-9)
    assert status.total_weld_length_mm == pytest.approx(51.3, abs=1e-6)


def test_a_seam_of_200_mm_is_200_mm_long() -> None:
    bench = WelderBench(way=along_x(SPEED, 1.0, 21.0)).start().turn(21_000, "ARC_START", False)
    bench.run(30_000)
    assert bench.welder.status(bench.now).total_weld_length_mm == pytest.approx(200.0, abs=1e-6)
    assert bench.issues == []


def test_a_circle_is_as_long_as_its_circumference() -> None:
    def circle(times: np.ndarray) -> np.ndarray:
        angle = np.clip((times - 1.0) / 10.0, 0.0, 1.0) * math.tau
        return 0.02 * np.stack((np.cos(angle), np.sin(angle), np.zeros(len(angle))), axis=1)

    bench = WelderBench(way=circle).start().turn(11_000, "ARC_START", False).run(20_000)
    length = bench.welder.status(bench.now).total_weld_length_mm
    assert length == pytest.approx(math.tau * 20.0, abs=0.001)


def test_status_is_right_at_any_time_and_reading_changes_nothing() -> None:
    bench = WelderBench(way=along_x(SPEED)).start().run(1234.5)
    before = bench.state.seam.length
    status = bench.welder.status(bench.now)
    assert status.arc_on_time_s == pytest.approx(0.7845, abs=1e-9)
    assert status.total_weld_length_mm == pytest.approx(7.845, abs=1e-6)
    assert bench.state.seam.length == before


def test_lengths_of_several_seams_add_up() -> None:
    bench = WelderBench(way=along_x(SPEED))
    for n in range(3):
        bench.start(n * 10_000).turn(n * 10_000 + 5000, "ARC_START", False)
    bench.run(40_000)
    # The gas flows on, so the second and third arc need no pre-flow: 0.4 s longer.
    assert bench.welder.status(bench.now).arc_on_time_s == pytest.approx(5.13 + 2 * 5.53, abs=1e-9)


# ── trail ───────────────────────────────────────────────────────────────────────────────────────


def test_the_trail_is_a_point_every_millimetre() -> None:
    bench = WelderBench(way=along_x(SPEED, 1.0, 21.0)).start().turn(21_000, "ARC_START", False)
    bench.run(30_000)
    x = [point[0] for point in bench.welder.trail()]
    assert len(x) == pytest.approx(200, abs=20)
    assert x[0] == 0.0
    assert x[-1] > 0.198
    assert np.diff(x).min() >= 0.001
    assert np.diff(x).max() < 0.0012
    bench.welder.clear_trail(bench.now)
    assert bench.welder.trail() == ()


@pytest.mark.parametrize("cleared_ms", [3_000, 3_010, 3_200, 3_570])
def test_a_cleared_trail_stays_empty_while_the_crater_is_filled(cleared_ms: int) -> None:
    """The tip stands from 3.0 s on, the arc burns until 3.58 s: both before and after a look."""
    bench = WelderBench(way=along_x(SPEED, 1.0, 3.0)).start().turn(3_000, "ARC_START", False)
    bench.run(cleared_ms)
    assert bench.state.arc
    bench.welder.clear_trail(bench.now)
    bench.run(10_000)
    assert bench.phase() == "Idle"
    assert bench.welder.trail() == ()


def test_a_cleared_trail_grows_from_where_it_was_cleared() -> None:
    bench = WelderBench(way=along_x(SPEED)).start().run(3_005)
    bench.welder.clear_trail(bench.now)
    bench.turn(5_000, "ARC_START", False).run(10_000)
    x = [point[0] for point in bench.welder.trail()]
    assert x[0] == pytest.approx(3.005 * SPEED + 0.001, abs=2e-4)
    assert len(x) == pytest.approx(25, abs=2)


def test_the_next_arc_draws_its_first_point_where_the_trail_was_cleared() -> None:
    bench = WelderBench().start().turn(3_000, "ARC_START", False)
    bench.welder.clear_trail(bench.now)
    bench.start(10_000).turn(11_000, "ARC_START", False).run(20_000)
    assert bench.welder.trail() == ((0.0, 0.0, 0.0),)


def test_the_trail_is_bounded_and_thins_out() -> None:
    seam = Seam(along_x(1.0), 1.0)
    seam.watch(0, burning=True, wanted=True)
    for n in range(1, 61):
        seam.look(n * 500 * MS)
        assert len(seam.state.trail) <= MOST_POINTS
    seam.state.trail = [(0.0, 0.0, float(n)) for n in range(MOST_POINTS)]
    seam.look(31_000 * MS)
    assert len(seam.state.trail) <= MOST_POINTS // 2 + 60


# ── process issues ──────────────────────────────────────────────────────────────────────────────


def test_a_good_weld_has_no_issues() -> None:
    bench = (
        WelderBench(way=along_x(SPEED, 0.67, 5.0))
        .start()
        .turn(5000, "ARC_START", False)
        .run(20_000)
    )
    assert bench.issues == []


def test_a_standing_arc_is_noted_once() -> None:
    bench = WelderBench(way=along_x(SPEED, 3.0)).start().turn(5000, "ARC_START", False).run(20_000)
    [issue] = bench.welder.issues()
    assert issue.kind == "standing"
    assert issue.message == "the arc burned over 1 s in one place"
    assert issue.at / MS == pytest.approx(450 + 1000, abs=10.001)


def test_two_standing_arcs_are_noted_twice_and_slow_motion_is_not_standing() -> None:
    def way(times: np.ndarray) -> np.ndarray:
        """Moves from 2 s to 2.5 s and from 6 s on, at 0.5 mm/s."""
        x = 0.0005 * (np.clip(times, 2.0, 2.5) + np.clip(times, 6.0, 60.0))
        return np.stack((x, x * 0.0, x * 0.0), axis=1)

    bench = WelderBench(way=way).start().run(20_000)
    assert bench.issues == ["standing", "standing"]


def test_the_standing_time_limit_is_a_setting() -> None:
    for limit, reported in ((0.2, ["standing"]), (1.5, [])):
        way = along_x(SPEED, 1.5)
        bench = WelderBench(way=way, standing_arc_s=limit).start().run(3000)
        assert bench.issues == reported


def test_a_tool_that_moves_before_the_arc_is_cold() -> None:
    bench = WelderBench(way=along_x(SPEED)).start().run(3000)
    assert bench.issues == ["cold"]
    assert bench.welder.issues()[0].message == "the tool moved along a seam without an arc"


def test_a_gap_in_the_seam_is_cold() -> None:
    bench = WelderBench(way=along_x(SPEED, 0.67)).start().run(3000)
    assert bench.issues == []
    bench.inject("arc_fault", duration_s=0.15)
    bench.run(5000)
    assert bench.issues == ["cold"]
    assert bench.welder.status(bench.now).total_weld_length_mm == pytest.approx(
        43.3 - 1.5, abs=1e-6
    )


def test_motion_without_a_requested_arc_is_not_cold() -> None:
    bench = WelderBench(way=along_x(SPEED)).turn(0, "GAS", True).run(3_600_000)
    assert bench.issues == []
    bench.turn(3_600_000, "ARC_START", True)
    assert bench.issues == [], "nor is what was before"


def test_an_arc_left_on_at_the_end_of_the_program() -> None:
    bench = WelderBench(way=along_x(SPEED, 0.67)).start().run(3000)
    bench.welder.program_ended(bench.now)
    assert bench.issues == ["left_on"]
    bench.turn(3001, "ARC_START", False)
    bench.welder.program_ended(bench.now)
    assert bench.issues == ["left_on"]


@pytest.mark.parametrize("burning", [True, False])
@pytest.mark.parametrize("stop", [3.0, 4.005, 30.0])
def test_a_look_of_a_minute_finds_what_short_looks_find(*, burning: bool, stop: float) -> None:
    """The tool moves, stands from ``stop`` on, and moves again after 2.5 s."""

    def path(times: np.ndarray) -> np.ndarray:
        moved = np.minimum(times, stop) + np.maximum(times - stop - 2.5, 0.0)
        return np.stack([SPEED * moved, 0.0 * times, 0.0 * times], axis=-1)

    def found(*, rarely: bool) -> tuple[object, ...]:
        seam = Seam(path, 1.0)
        if rarely:
            seam.look_rarely()
        seam.watch(300 * MS, burning=burning, wanted=True)
        while (at := seam.next_look()) is not None and at < 45_123 * MS:
            seam.look(at)
        seam.watch(45_123 * MS, burning=False, wanted=False)
        state = seam.state
        return state.arc_on, state.length, [(issue.at, issue.kind) for issue in state.issues]

    often, rare = found(rarely=False), found(rarely=True)
    assert often == rare
    assert often[2]


def test_issues_are_bounded() -> None:
    seam = Seam(along_x(SPEED), 1.0)
    for n in range(MOST_ISSUES + 10):
        seam.note(n, "cold", "")
    assert len(seam.state.issues) == MOST_ISSUES
    assert seam.state.issues[-1].at == MOST_ISSUES + 9
