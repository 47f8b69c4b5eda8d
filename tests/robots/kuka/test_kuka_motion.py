"""How the KUKA moves: rules, durations, frames, home."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.robots.kuka.kuka_bench import Robot, model, tips

from understudy.robots.kuka.motion import FARTHEST
from understudy.robots.kuka.records import Record
from understudy.space.kinematics.chain import Frames, chain
from understudy.space.model.urdf import read
from understudy.space.pose import Pose
from understudy.space.transform import matrix, pose
from understudy.units import DEG, MM

RAMP = 0.1 / 10.0
"""Seconds to reach 100 mm/s at 10 m/s²; a move takes this much longer than its length at full
speed."""


@pytest.fixture
def robot() -> Robot:
    return Robot()


def test_it_starts_at_zero_in_the_active_base(robot: Robot) -> None:
    assert robot.place == [0.0] * 6
    assert robot.axes == [0.0, -61.08, 126.744, 0.0, 24.336, 180.0]
    assert (robot.reading().tool, robot.reading().base) == (1, 5)
    progress = robot.server.progress()
    assert (progress.completed, progress.in_flight, progress.waiting) == (-1, -1, 0)


# ── durations ──


def test_a_move_takes_length_over_speed_and_one_ramp(robot: Robot) -> None:
    assert robot.go(X=200, F=100) == pytest.approx(2.0 + RAMP, abs=1e-9)
    assert robot.place == [200.0, 0, 0, 0, 0, 0]
    assert robot.axes == [0.0, -45.082, 93.737, 0.0, 41.345, 180.0]


def test_the_tip_stays_on_the_line_at_an_even_speed(robot: Robot) -> None:
    robot.say(X=200, F=100)
    times = np.arange(0.0, 2.01, 0.004)
    readings = robot.samples(times.tolist())
    places = tips(readings)
    assert np.abs(places[:, 1:]).max() < 1e-9
    cruising = (times > RAMP) & (times < 2.0)
    assert places[cruising, 0] == pytest.approx(100.0 * (times[cruising] - RAMP / 2))
    assert [r.speed for r, on in zip(readings, cruising, strict=True) if on] == pytest.approx(
        [0.1] * int(cruising.sum())
    )


@pytest.mark.parametrize(
    ("way", "seconds"),
    [
        ({"X": 30.0, "Y": 40.0, "F": 50.0}, 1.0 + 0.005),
        ({"X": 100.0, "F": 400.0}, 1.0 + RAMP),  # F clamps to 100 mm/s
        ({"A": 42.0, "F": 100.0}, 10.0 + 4.2 * DEG / 10.0),  # turning alone
        ({"X": 100.0, "A": 42.0, "F": 100.0}, 10.0 + 4.2 * DEG / 10.0),  # turning takes longer
        ({"X": 200.0, "A": 4.2, "F": 100.0}, 2.0 + RAMP),  # the travel takes longer than turning
        ({"X": 0.0, "F": 100.0}, 0.0),
    ],
)
def test_the_slower_of_travel_and_rotation_sets_the_duration(
    robot: Robot, way: dict[str, float], seconds: float
) -> None:
    assert robot.go(0, **way) == pytest.approx(seconds, abs=2e-3)


def test_the_speed_is_modal_and_its_limit_can_be_set() -> None:
    robot = Robot(speed_limit_mm_s=250.0)
    robot.go(F=200)
    assert robot.go(X=200) == pytest.approx(1.0 + 0.02)
    robot.go(F=1000)
    assert robot.go(X=-50) == pytest.approx(1.0 + 0.025)


def test_axis_speed_limits_slow_a_move_down() -> None:
    fast = Robot(speed_limit_mm_s=10_000.0)
    fast.say(X=200, F=10_000)
    end = fast.server.next_wake() or 0
    times = np.linspace(0.0, end / 1e9, 2001)
    axes = np.array([r.axes for r in fast.samples(times.tolist())])
    limits = chain(read(model("kr6_r900").decode(), file="")).velocity
    assert (np.abs(np.diff(axes, axis=0)) <= limits * times[1] * (1 + 1e-6) + 1e-12).all()


# ── given and kept words ──


def test_words_not_given_keep_their_last_commanded_value(robot: Robot) -> None:
    robot.go(X=50, Y=20, Z=30, A=10, F=100)
    robot.say(X=100)
    robot.advance(0.1)
    robot.say(Z=60)  # submitted while X is running
    robot.finish()
    assert robot.place == [100.0, 20.0, 60.0, 10.0, 0.0, 0.0]


def test_abc_are_turns_about_z_then_y_then_x(robot: Robot) -> None:
    robot.go(Z=200, F=100)
    robot.go(A=20, B=10, C=-15)
    assert robot.place[3:] == [20.0, 10.0, -15.0]
    frames = Frames(matrix(Pose(0.45, 0, 0.2, 0, 0, 0)), matrix(Pose(0, 0, 0.15, math.pi, 0, 0)))
    arm = chain(read(model("kr6_r900").decode(), file=""))
    tip = frames.tcp(arm.flange(robot.reading().axes))
    assert pose(tip) == pytest.approx(robot.reading().pose, abs=1e-9)


def test_the_axes_agree_with_the_reported_tool_pose(robot: Robot) -> None:
    arm = chain(read(model("kr6_r900").decode(), file=""))
    frames = Frames(matrix(Pose(0.45, 0, 0.2, 0, 0, 0)), matrix(Pose(0, 0, 0.15, math.pi, 0, 0)))
    robot.say(X=150, Y=-80, Z=120, A=15, B=-10, F=80)
    for t in np.linspace(0.0, 2.0, 41):
        reading = robot.server.reading(round(t * 1e9))
        tip = frames.tcp(arm.flange(reading.axes))
        assert np.linalg.norm(tip[:3, 3] - reading.pose[:3]) < 2e-6


# ── refusals: no motion, but the record counts as carried out ──


def refused(robot: Robot, expected: str, **words: float) -> None:
    before = robot.place
    assert robot.go(0, **words) == 0.0
    assert robot.server.progress().completed == robot.seq
    assert robot.place == before
    assert expected in robot.messages[-1]


def test_a_target_below_the_z_limit_is_refused_but_its_speed_is_kept(robot: Robot) -> None:
    refused(robot, "Z = -0.100 mm is below 0 mm", X=100, Z=-0.1, F=50)
    assert robot.go(X=50) == pytest.approx(1.0 + 0.005)


@pytest.mark.parametrize("z", [-0.0009, -1e-12, 0.0])
def test_rounding_never_refuses_zero(robot: Robot, z: float) -> None:
    robot.go(X=10, Z=z, F=100)
    assert robot.messages == ()
    assert robot.place[0] == 10.0


def test_the_z_limit_is_configurable() -> None:
    low = Robot(lowest_z_mm=-20.0)
    low.go(Z=-10, F=100)
    assert low.place[2] == -10.0
    refused(low, "Z = -30.000 mm is below -20 mm", Z=-30)
    nowhere = Robot(lowest_z_mm=None)
    nowhere.go(Z=-50, F=100)
    assert nowhere.place[2] == -50.0


@pytest.mark.parametrize("speed", [0.0, -1.0, 1e-9])
def test_an_invalid_speed_keeps_the_last_one(robot: Robot, speed: float) -> None:
    robot.go(F=50)
    refused(robot, "too slow", X=10, F=speed)
    assert robot.go(X=50) == pytest.approx(1.0 + 0.005)


def test_a_flawed_record_changes_nothing(robot: Robot) -> None:
    robot.server.submit(Record(1, 0, flaw="X = nan: not a number"), 0)
    assert robot.server.progress()[:3] == (1, 1, 0)
    assert robot.messages == ("record 1: X = nan: not a number",)
    assert robot.said == ["kuka: record 1: X = nan: not a number"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({"X": 5000.0}, "out of reach"),
        ({"X": -450.0, "Z": 0.0}, "of the path"),
        ({"Y": 1e30}, "is too far"),
        ({"A": 1e30}, "is too large"),
        ({"E": -1.0}, "is not a weld job"),
        ({"E": 65536.0}, "is not a weld job"),
    ],
)
def test_an_unreachable_target_is_reported_and_the_queue_continues(
    robot: Robot, words: dict[str, float], expected: str
) -> None:
    refused(robot, expected, **words)
    assert robot.go(X=100, F=100) == pytest.approx(1.0 + RAMP)


@pytest.mark.parametrize("kind", [10, 27, 29, 31, 53, 60, -1, 2**31 - 1, -(2**31)])
def test_an_unknown_kind_is_reported_and_counts_as_completed(robot: Robot, kind: int) -> None:
    assert robot.go(kind, X=100) == 0.0
    assert robot.messages == (f"record 1: Unknown command type {kind}",)
    assert robot.done == [(0.0, 1)]


# ── tools, bases, home ──


@pytest.mark.parametrize(("tool", "length"), [(1, 150), (2, 100), (4, 200), (5, 250)])
def test_selecting_a_tool_changes_the_tip_at_once(robot: Robot, tool: int, length: int) -> None:
    assert robot.go(tool) == 0.0
    assert robot.reading().tool == tool
    assert robot.place == [0.0, 0.0, 150.0 - length, 0.0, 0.0, 0.0]
    robot.go(Z=200, F=100)
    assert robot.place == [0.0, 0.0, 200.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("base", "place"),
    [(1, [0, -200, 0]), (2, [0, 200, 0]), (3, [0, -200, 200]), (4, [0, 200, 200]), (5, [0, 0, 0])],
)
def test_selecting_a_base_moves_the_origin(robot: Robot, base: int, place: list[float]) -> None:
    assert robot.go(53 + base) == 0.0
    assert robot.reading().base == base
    assert robot.place == [*place, 0.0, 0.0, 0.0]


def test_after_a_selection_the_actual_position_is_the_commanded_one(robot: Robot) -> None:
    robot.go(X=50, F=100)
    robot.go(54)
    robot.go(Z=20)
    assert robot.place == [50.0, -200.0, 20.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("kind", [3, 6, 7, 8, 9, 59])
def test_undefined_frames_can_be_selected_but_not_moved_with(robot: Robot, kind: int) -> None:
    robot.go(kind)
    selected = robot.reading()
    assert kind in (selected.tool, selected.base + 53)
    refused(robot, f"no motion with tool {selected.tool} and base {selected.base}", X=10, F=100)
    robot.go(1)
    robot.go(58)
    assert robot.go(X=100, F=100) == pytest.approx(1.0 + RAMP)


@pytest.mark.parametrize("kind", [28, 30])
def test_home_moves_the_axes_at_a_tenth_of_their_speed(robot: Robot, kind: int) -> None:
    robot.go(2)
    robot.go(55)
    robot.say(kind)
    robot.advance(1.0)
    assert robot.reading().speed > 0.01
    assert robot.reading().tool == 2
    robot.finish()
    # A6 has the longest travel, 180° at 61.5 deg/s; it is slowed down at both ends.
    assert robot.now / 1e9 == pytest.approx(180 / 61.5 + 61.5 / 1230, abs=1e-6)
    assert robot.axes == [0.0, -90.0, 90.0, 0.0, 45.0, 0.0]
    assert (robot.reading().tool, robot.reading().base, robot.reading().speed) == (1, 5, 0.0)


def test_home_from_home_takes_no_time_and_moves_start_from_there(robot: Robot) -> None:
    robot.go(28)
    assert robot.go(28) == 0.0
    # At home A5 = 45°: the tool is not vertical, so it turns during the move.
    robot.go(X=0, Y=0, Z=100, A=0, B=0, C=0, F=100)
    assert robot.place == [0.0, 0.0, 100.0, 0.0, 0.0, 0.0]


def test_an_unreachable_start_is_a_config_error() -> None:
    with pytest.raises(Exception, match=r"start_mm_deg.*out of reach"):
        Robot(start_mm_deg=(5000.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    with pytest.raises(Exception, match=r"tool: there is no such tool \(got 3\); allowed: 1, 2"):
        Robot(tool=3)


# ── properties ──

millimetres = st.floats(-2 * FARTHEST / MM, 2 * FARTHEST / MM)
near = st.floats(-300.0, 300.0)
record_words = st.fixed_dictionaries(
    {},
    optional={
        "X": near | millimetres,
        "Y": near | millimetres,
        "Z": near | millimetres,
        "A": near | st.floats(-1e9, 1e9),
        "B": near,
        "C": near,
        "F": st.floats(-10.0, 1000.0),
        "E": st.floats(-10.0, 70_000.0),
    },
)
kinds = st.sampled_from([0, 0, 0, 0, 0, 1, 2, 3, 4, 28, 54, 57, 58, 59, 77, -5])
talk = st.lists(st.tuples(kinds, record_words, st.floats(0.0, 2.0)), max_size=12)


@settings(max_examples=40, deadline=None)
@given(talk)
def test_any_records_keep_the_limits_and_are_completed(
    said: list[tuple[int, dict[str, float], float]],
) -> None:
    robot = Robot()
    arm = chain(read(model("kr6_r900").decode(), file=""))
    for kind, words, wait in said:
        robot.say(kind, **words)
        robot.advance(wait)
        axes = np.array(robot.reading().axes)
        assert np.isfinite([*axes, *robot.reading().pose, robot.reading().speed]).all()
        assert ((axes >= arm.lower - 1e-9) & (axes <= arm.upper + 1e-9)).all()
    robot.finish()
    assert [seq for _, seq in robot.done] == list(range(1, robot.seq + 1))
