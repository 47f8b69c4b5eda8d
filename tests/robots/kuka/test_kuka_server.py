"""The server's queue: order, blending, disconnection, welding, stops, snapshots, slices of time."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.robots.kuka.kuka_bench import Robot, tips

from understudy.ports.refusals import INHIBITED
from understudy.robots.kuka.robot import BUFFER
from understudy.units import NS_PER_SECOND, nanoseconds, seconds

RAMP = 0.01


def square(robot: Robot) -> None:
    for words in ({"X": 50.0, "F": 100.0}, {"Y": 50.0}, {"X": 0.0}, {"Y": 0.0}):
        robot.say(0, **words)


# ── one after the other ──


def test_progress_counts_completed_flying_and_waiting_records(robot: Robot) -> None:
    square(robot)
    counts = [robot.server.progress()[:3]]
    while robot.server.busy():
        robot.advance_to(robot.server.next_wake() or 0)
        counts.append(robot.server.progress()[:3])
    # completed, in flight, and how many waited when that one was taken
    assert counts == [(-1, 1, 1), (1, 2, 3), (2, 3, 2), (3, 4, 1), (4, 4, 0)]


def test_the_buffer_holds_512_records(robot: Robot) -> None:
    for n in range(BUFFER + 1):
        assert robot.server.room() == BUFFER - max(n - 1, 0)
        robot.say(X=1 - n % 2, F=100)
    assert robot.server.room() == 0
    robot.finish()
    assert [seq for _, seq in robot.done] == list(range(1, BUFFER + 2))


def test_a_record_without_duration_is_completed_in_order(robot: Robot) -> None:
    robot.say(X=100, F=100)
    robot.say(2)
    robot.say(77)
    robot.say(1)
    assert robot.done == []
    robot.finish()
    assert [seq for _, seq in robot.done] == [1, 2, 3, 4]
    assert {at for at, _ in robot.done} == {1.0 + RAMP}


# ── blending ──


def test_a_move_passes_into_the_next_at_two_percent_of_its_speed(robot: Robot) -> None:
    square(robot)
    robot.finish()
    corners = [at for at, _ in robot.done[:-1]]
    for corner in corners:
        again = Robot()
        square(again)
        again.advance(corner - 1e-6)
        assert again.reading().speed == pytest.approx(0.002, rel=0.02)


def test_without_blending_every_move_ends_at_rest() -> None:
    robot = Robot(blend_percent=0.0)
    square(robot)
    robot.finish()
    assert [at for at, _ in robot.done] == pytest.approx([0.51, 1.02, 1.53, 2.04])


def test_blending_saves_time(robot: Robot) -> None:
    square(robot)
    robot.finish()
    # From 0.1 m/s down to 2 % and up again, instead of to rest, at 10 m/s²: v·0.02²/a at each side.
    assert robot.now / NS_PER_SECOND == pytest.approx(2.04 - 6 * 0.1 * 0.02 / 10.0, abs=2e-5)


def test_the_path_is_not_cut_at_corners(robot: Robot) -> None:
    square(robot)
    worst = 0.0
    while robot.server.busy():
        robot.advance(0.001)
        x, y, _ = tips([robot.reading()])[0]
        sides = (abs(x), abs(y), abs(x - 50.0), abs(y - 50.0))
        worst = max(worst, min(sides))
    assert worst < 1e-6


def test_a_record_submitted_at_the_last_moment_still_blends() -> None:
    late = Robot()
    late.say(X=50, F=100)
    late.advance(0.505)  # braking already
    late.say(Y=50)
    late.advance_to(late.server.next_wake() or 0)
    assert late.reading().speed == pytest.approx(0.002, rel=0.02)
    late.finish()
    assert late.place == [50.0, 50.0, 0, 0, 0, 0]


@pytest.mark.parametrize("kind", [1, 54, 28, 77])
def test_the_robot_rests_before_a_record_that_is_no_line(robot: Robot, kind: int) -> None:
    robot.say(X=50, F=100)
    robot.say(kind)
    robot.advance(0.51 - 1e-6)
    assert robot.reading().speed < 2e-5


def test_moves_of_a_micrometre_are_moves(robot: Robot) -> None:
    for n in range(40):
        robot.say(X=n * 1e-3, F=100)
    robot.finish()
    assert robot.place[0] == pytest.approx(0.039)
    assert [seq for _, seq in robot.done] == list(range(1, 41))


# ── disconnected client ──


def leave(robot: Robot) -> None:
    robot.server.connect(0, False, robot.now)


def test_after_a_disconnect_the_flight_ends_and_waiting_records_are_cleared(robot: Robot) -> None:
    square(robot)
    robot.advance(0.1)
    leave(robot)
    robot.advance(0.3)
    assert len(robot.server.save().waiting) == 3  # the flag was not checked yet
    robot.advance(0.1)
    assert robot.server.save().waiting == []
    robot.finish()
    assert robot.done == [(0.51, 1)]
    assert robot.place == [50.0, 0, 0, 0, 0, 0]
    assert robot.messages == ("connection lost: 3 records cleared",)


def test_a_client_that_reconnects_before_the_check_loses_nothing(robot: Robot) -> None:
    square(robot)
    robot.advance(0.1)
    leave(robot)
    robot.advance(0.3)
    robot.server.connect(0, True, robot.now)
    robot.finish()
    assert [seq for _, seq in robot.done] == [1, 2, 3, 4]


def test_drain_carries_out_the_waiting_records() -> None:
    robot = Robot(on_disconnect="drain")
    square(robot)
    leave(robot)
    robot.finish()
    assert [seq for _, seq in robot.done] == [1, 2, 3, 4]


@pytest.mark.parametrize("moment", [0.0, 0.5, 1.0])
def test_the_connection_is_checked_every_500_ms(robot: Robot, moment: float) -> None:
    robot.say(X=200, F=100)
    robot.say(X=0)
    robot.advance(moment)
    leave(robot)
    robot.advance(0.5 - 1e-9)
    assert len(robot.server.save().waiting) == 1
    robot.advance(1e-9)
    assert robot.server.save().waiting == []


def test_an_idle_robot_without_a_client_sleeps(robot: Robot) -> None:
    leave(robot)
    robot.advance(1.0)
    assert robot.server.next_wake() is None


# ── welding ──


def test_the_job_is_on_the_outputs_from_the_start_of_its_move(robot: Robot) -> None:
    robot.say(X=50, F=100)
    robot.say(X=100, E=5)  # 0b101
    robot.say(X=150)
    robot.say(X=200, E=32768.9)
    robot.say(X=150, E=0)
    moments = {}
    while robot.server.busy():
        moments[robot.server.progress().in_flight] = robot.outputs()
        robot.advance(0.05)
    assert moments == {
        1: (),
        2: (1, 9, 65, 67),
        3: (1, 9, 65, 67),
        4: (1, 9, 80),
        5: (9,),
    }
    robot.advance(5.0)
    assert robot.outputs() == ()


def test_gas_flows_five_seconds_after_the_arc(robot: Robot) -> None:
    robot.go(X=10, E=1, F=100)
    off = robot.now
    robot.say(X=20, E=0)
    robot.advance_to(off + 5 * NS_PER_SECOND - 1)
    assert robot.outputs() == (9,)
    robot.advance_to(off + 5 * NS_PER_SECOND)
    assert robot.outputs() == ()


def test_the_arc_on_again_keeps_the_gas(robot: Robot) -> None:
    robot.go(X=10, E=1, F=100)
    robot.go(X=20, E=0)
    robot.go(X=30, E=2)
    robot.advance(6.0)
    assert robot.outputs() == (1, 9, 66)


@pytest.mark.parametrize("on_disconnect", ["clear", "drain"])
def test_connection_lost_while_welding_is_arc_off(on_disconnect: str) -> None:
    robot = Robot(on_disconnect=on_disconnect)
    robot.say(X=100, E=3, F=100)
    robot.say(X=200)
    robot.advance(0.1)
    leave(robot)
    robot.advance(0.4)
    assert robot.outputs() == ((9,) if on_disconnect == "clear" else (1, 9, 65, 66))
    robot.finish()
    robot.advance(0.5)
    assert robot.outputs() == (9,)
    robot.advance(5.0)
    assert robot.outputs() == ()


def test_a_refused_move_does_not_weld(robot: Robot) -> None:
    robot.go(X=5000, E=1, F=100)
    assert robot.outputs() == ()


# ── emergency stop ──


def test_after_an_emergency_stop_nothing_resumes(robot: Robot) -> None:
    robot.say(X=100, E=1, F=100)
    robot.say(Y=50)
    robot.advance(0.5)
    robot.server.inject("emergency_stop", {}, robot.now)
    here = robot.place
    assert here[0] == pytest.approx(49.5)
    assert (robot.reading().speed, robot.outputs()) == (0.0, (9,))
    robot.say(Z=50)
    assert robot.said[-1] == "kuka: record 3: emergency stop: reset first"
    robot.server.inject("emergency_release", {}, robot.now)
    robot.advance(10.0)
    assert robot.place == here
    assert [seq for _, seq in robot.done] == [3], "its number counts, as that of any refused one"
    robot.go(X=0)
    assert robot.place == [0.0] * 6


def test_the_cell_file_can_keep_the_records_of_a_frozen_motion() -> None:
    robot = Robot(on_emergency_stop="keep")
    robot.say(X=100, E=1, F=100)
    robot.say(Y=50)
    robot.advance(0.5)
    assert robot.server.inject("emergency_stop", {}, robot.now) is None
    here = robot.place
    assert here[0] == pytest.approx(49.5)
    assert (robot.reading().speed, robot.outputs()) == (0.0, (9,))
    robot.advance(10.0)
    assert (robot.place, robot.server.busy(), robot.done) == (here, False, [])
    robot.server.inject("emergency_release", {}, robot.now)
    robot.finish()
    assert robot.place == [100.0, 50.0, 0, 0, 0, 0]
    assert robot.now / NS_PER_SECOND == pytest.approx(10.5 + 0.505 + RAMP + 0.5 + RAMP, abs=1e-2)


def test_records_that_wait_for_the_release_can_be_cleared() -> None:
    robot = Robot(on_emergency_stop="keep")
    robot.server.inject("emergency_stop", {}, robot.now)
    robot.say(X=100, F=100)
    robot.advance(1.0)
    assert robot.place == [0.0] * 6
    leave(robot)
    robot.advance(1.0)
    robot.server.inject("emergency_release", {}, robot.now)
    robot.finish()
    assert robot.done == []


def test_a_move_is_finished_after_records_were_cleared_during_a_stop() -> None:
    robot = Robot(on_emergency_stop="keep")
    square(robot)
    robot.advance(0.2)
    robot.server.inject("emergency_stop", {}, robot.now)
    here = robot.place
    leave(robot)
    robot.advance(2.0)
    assert robot.place == here
    robot.server.inject("emergency_release", {}, robot.now)
    robot.finish()
    assert [seq for _, seq in robot.done] == [1]
    assert robot.place == [50.0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("keep", ["clear", "keep"])
def test_the_stop_of_the_cell_drops_all_records(keep: str) -> None:
    robot = Robot(on_emergency_stop=keep)
    square(robot)
    robot.advance(0.2)
    robot.server.inject("emergency_stop", {}, robot.now)
    robot.server.inhibit_motion(robot.now)
    here = robot.place
    robot.server.reset(robot.now)
    robot.go(X=0)
    assert (robot.place, robot.said[-1]) == (here, f"kuka: record {robot.seq}: {INHIBITED.reason}")
    robot.server.permit_motion(robot.now)
    robot.advance(5.0)
    assert robot.place == here
    robot.go(X=0, Y=0, F=100)
    assert robot.place == [0.0] * 6


# ── snapshots and slices of time ──


def weld(robot: Robot) -> None:
    robot.say(X=50, E=7, F=100)
    robot.say(2)
    robot.say(Y=20, A=5)
    robot.say(X=5000)
    robot.say(X=80, E=0)
    robot.say(28)


def stop_and_clear(robot: Robot) -> None:
    square(robot)
    robot.advance(0.3)
    robot.server.inject("emergency_stop", {}, robot.now)


@pytest.mark.parametrize("keep", ["clear", "keep"])
@pytest.mark.parametrize("said", [square, weld, stop_and_clear])
@pytest.mark.parametrize("moment", [0.0, 0.1, 0.51, 0.6, 1.5])
def test_a_snapshot_is_invisible(said: Callable[[Robot], None], moment: float, keep: str) -> None:
    robot = Robot(on_emergency_stop=keep)
    said(robot)
    robot.advance(moment)
    saved, begun = robot.saved(), robot.now
    endings = []
    for _ in range(2):
        robot.server.load(saved)
        robot.now, robot.done = begun, []
        seen = []
        for n in range(60):
            if n == 30:
                robot.server.inject("emergency_release", {}, robot.now)
            robot.advance(0.05)
            seen.append((robot.reading(), robot.outputs()))
        endings.append((seen, robot.done, robot.saved()))
    assert endings[0] == endings[1]


@pytest.mark.parametrize("moment", [0.1, 0.505, 0.6, 1.4])
def test_a_restored_server_continues_like_the_first(moment: float) -> None:
    first, second = Robot(), Robot()
    square(first)
    first.advance(moment)
    second.server.load(first.saved())
    second.now = first.now
    for _ in range(50):
        first.advance(0.037)
        second.advance(0.037)
        assert first.reading() == second.reading()
    assert first.saved() == second.saved()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(1e-6, 0.7), min_size=1, max_size=12))
def test_cutting_time_into_other_slices_changes_nothing(slices: list[float]) -> None:
    whole, cut = Robot(), Robot()
    weld(whole)
    weld(cut)
    for piece in slices:
        cut.advance(piece)
        cut.reading()
    end = max(cut.now, nanoseconds(3.0))
    whole.advance_to(end)
    cut.advance_to(end)
    assert (cut.done, cut.saved()) == (whole.done, whole.saved())
    assert cut.reading() == whole.reading()


def test_the_axes_never_jump(robot: Robot) -> None:
    weld(robot)
    before = np.array(robot.reading().axes)
    while robot.server.busy():
        robot.advance(0.005)
        axes = np.array(robot.reading().axes)
        assert np.abs(axes - before).max() < 0.1
        before = axes
    assert seconds(robot.now) > 1.0


@pytest.fixture
def robot() -> Robot:
    return Robot()
