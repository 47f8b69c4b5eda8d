"""The cycle with doubles: the design document's three tests, retries, pause, stop and faults."""

from typing import Any

import pytest
from tests.jobs.pick_place.bench import ESTOP, PART, Bench

from understudy.errors import Refused
from understudy.jobs.pick_place.config import CycleConfig
from understudy.jobs.pick_place.manager import NOT_PAUSED, NOT_RUNNING
from understudy.jobs.pick_place.state import RUNNING, TRANSITIONS
from understudy.ports import state as snapshots
from understudy.ports.object_finder import DetectedObject
from understudy.space.pose import Position, pose_of
from understudy.units import NS_PER_MS, NS_PER_SECOND


class TestPickPlaceTest:
    """PickPlaceTest of the design document."""

    def test_SingleCycleSuccess(self) -> None:  # noqa: N802
        bench = Bench()
        assert bench.job.run_single_cycle(0) is None
        bench.run()
        assert bench.cycles == [(1, True)]
        assert bench.status.success_count == 1
        assert len(bench.vision.requests) == 1
        assert bench.gripper.calls == ["grip", "release"]
        assert len(bench.arm.moves) >= 4
        assert bench.states == [*RUNNING, "IDLE"]

    def test_GripRetryOnFailure(self) -> None:  # noqa: N802
        """With one detection per attempt: after a miss the hand opens, retracts and looks again."""
        bench = Bench(CycleConfig(max_grip_retries=3))
        bench.gripper.outcomes.extend([False, False, True])
        bench.job.run_single_cycle(0)
        bench.run()
        assert bench.cycles == [(1, True)]
        assert len(bench.vision.requests) == 3
        assert bench.gripper.calls == ["grip", "release", "grip", "release", "grip", "release"]

    def test_VisionTimeoutError(self) -> None:  # noqa: N802
        bench = Bench(CycleConfig(max_scan_retries=3))
        bench.vision.always = ()
        bench.job.run_single_cycle(0)
        bench.run()
        assert bench.cycles == [(1, False)]
        assert bench.state == "IDLE"
        assert bench.status.last_error != ""
        assert len(bench.vision.requests) == 3


# ── counts and runs ─────────────────────────────────────────────────────────────────────────────


def test_a_single_cycle_is_a_success_only_at_its_end() -> None:
    bench = Bench()
    bench.job.run_single_cycle(0)
    assert bench.state == "MOVE_TO_SCAN"
    bench.run_to("RETRACT_PLACE")
    assert (bench.status.success_count, bench.cycles) == (0, [])
    bench.run()
    assert (bench.state, bench.status.reason) == ("IDLE", "DONE")


def test_a_run_has_the_given_number_of_cycles() -> None:
    bench = Bench()
    assert bench.job.run_continuous(0, 4) is None
    assert bench.status.cycles_left == 3
    bench.run()
    assert bench.cycles == [(n, True) for n in (1, 2, 3, 4)]
    statistics = bench.status.statistics
    assert statistics.by_class == {"part": 4}
    assert statistics.shortest_s <= statistics.mean_s <= statistics.longest_s
    assert isinstance(bench.job.run_continuous(bench.now, 0), Refused)


def test_start_runs_until_stop() -> None:
    bench = Bench()
    bench.job.start(0)
    bench.run(lambda: len(bench.cycles) == 7)
    assert bench.status.cycles_left == -1
    assert bench.job.start(bench.now) is not None
    assert bench.job.stop(bench.now) is None
    bench.run()
    assert bench.cycles[-1] == (8, False)
    assert (bench.state, bench.status.reason) == ("IDLE", "STOPPED")


def test_a_new_start_clears_the_last_error() -> None:
    bench = Bench(CycleConfig(max_scan_retries=1))
    bench.vision.answers.append(())
    bench.job.start(0)
    bench.run()
    assert bench.status.reason == "NO_OBJECT"
    bench.job.run_single_cycle(bench.now)
    assert bench.status.last_error == ""
    bench.run()
    assert bench.cycles[-1] == (2, True)


def test_a_hand_with_a_part_or_a_moving_arm_is_not_started() -> None:
    bench = Bench()
    bench.gripper.part = True
    refused = bench.job.start(0)
    assert refused is not None
    assert "release it" in refused.reason
    assert bench.job.release_part(0) is None
    bench.run()
    assert not bench.gripper.part
    bench.arm.broken = ESTOP
    assert bench.job.start(bench.now) == ESTOP
    bench.arm.broken = None
    bench.job.may_start = lambda now: Refused("the mode is WELDING")
    assert bench.job.start(bench.now) == Refused("the mode is WELDING")


def test_a_closed_hand_opens_first() -> None:
    bench = Bench()
    bench.gripper.state = "CLOSED"
    bench.job.run_single_cycle(0)
    assert bench.gripper.calls == ["release"]
    assert bench.arm.moves == []
    bench.run()
    assert bench.cycles == [(1, True)]


# ── misses ──────────────────────────────────────────────────────────────────────────────────────

WEAK = DetectedObject(2, "part", 0.5, PART.pose)
OTHER = DetectedObject(3, "bolt", 0.99, PART.pose)
MISSES: dict[str, Any] = {"nothing": (), "weak": (WEAK,), "other class": (OTHER,)}


@pytest.mark.parametrize("miss", MISSES.values(), ids=list(MISSES))
def test_every_miss_counts(miss: Any) -> None:
    bench = Bench(CycleConfig(object_class_filter="part", max_scan_retries=3))
    bench.vision.answers.extend([miss, miss])
    bench.job.run_single_cycle(0)
    bench.run()
    assert bench.cycles == [(1, True)]
    bench.vision.always = miss
    bench.job.start(bench.now)
    bench.run()
    assert (bench.state, bench.status.scan_misses) == ("IDLE", 3)
    assert bench.cycles == [(1, True), (2, False)]


def test_grips_that_are_used_up_leave_the_hand_open_and_retracted() -> None:
    bench = Bench(CycleConfig(max_grip_retries=2))
    bench.gripper.outcomes.extend([False, Refused("close time-out")])
    bench.job.start(0)
    bench.run()
    assert (bench.state, bench.status.code) == ("ERROR", "GRIP_FAILED")
    assert "close time-out" in bench.status.last_error
    assert bench.gripper.state == "OPENED"
    last = bench.arm.moves[-1].pose
    assert last is not None
    assert last.z == pytest.approx(0.06)


def test_a_part_that_the_sensor_sees_late_is_a_part() -> None:
    """The grip has failed by its time-out, but the sensor is on when the job looks."""
    bench = Bench()
    bench.gripper.outcomes.append(Refused("close time-out"))
    bench.job.run_single_cycle(0)
    bench.run_to("GRIPPING")
    bench.gripper.part = True
    bench.run()
    assert bench.cycles == [(1, True)]
    assert bench.gripper.calls == ["grip", "release"]


# ── pause ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("state", RUNNING)
def test_a_pause_in_every_state_changes_nothing_but_the_time(state: str) -> None:
    plain, paused = Bench(), Bench()
    for bench in (plain, paused):
        bench.job.run_single_cycle(0)
        bench.run_to(state)
    assert paused.job.pause(paused.now) is None
    assert (paused.state, paused.status.paused_in) == ("PAUSED", state)
    moves = len(paused.arm.moves)
    paused.run(lambda: not paused.devices())  # a grip or a picture ends, a move does not
    paused.wake(20 * NS_PER_SECOND)
    assert len(paused.arm.moves) == moves
    assert paused.state == "PAUSED"
    assert paused.job.resume(paused.now) is None
    assert paused.state == state
    plain.run()
    paused.run()
    assert paused.arm.moves == plain.arm.moves
    assert paused.cycles == [(1, True)]


def test_pause_and_resume_only_where_they_fit() -> None:
    bench = Bench()
    assert bench.job.pause(0) == NOT_RUNNING
    assert bench.job.resume(0) == NOT_PAUSED
    bench.job.start(0)
    assert bench.job.resume(0) == NOT_PAUSED


# ── stop, emergency stop, faults ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("paused", [False, True])
@pytest.mark.parametrize("state", RUNNING)
def test_stop_and_emergency_stop_work_in_every_state(state: str, paused: bool) -> None:
    for stopped in (True, False):
        bench = Bench()
        bench.job.start(0)
        bench.run_to(state)
        if paused:
            bench.job.pause(bench.now)
        before = list(bench.gripper.calls)
        part = bench.gripper.part
        if stopped:
            bench.job.stop(bench.now)
            assert bench.state == "IDLE"
        else:
            bench.arm.trip(bench.now)
            bench.wake()
            assert (bench.state, bench.status.code) == ("ERROR", "EMERGENCY_STOP")
        bench.run()
        assert bench.gripper.calls == before
        assert bench.gripper.part == part
        assert bench.cycles == [(1, False)]
        assert not bench.job.busy()


def test_an_error_is_latched_until_reset() -> None:
    bench = Bench()
    bench.job.start(0)
    bench.run_to("MOVE_TO_PICK")
    bench.arm.trip(bench.now)
    bench.wake()
    assert bench.job.start(bench.now) is not None
    assert bench.job.reset(bench.now) == ESTOP
    bench.arm.broken = None
    assert bench.state == "ERROR"
    assert bench.job.reset(bench.now) is None
    assert (bench.state, bench.status.last_error, bench.status.code) == ("IDLE", "", "")
    assert bench.job.reset(bench.now) is not None
    bench.job.run_single_cycle(bench.now)
    bench.run()
    assert bench.cycles[-1] == (2, True)


@pytest.mark.parametrize("state", ["RETRACT_PICK", "MOVE_TO_PLACE", "APPROACH_PLACE"])
@pytest.mark.parametrize("paused", [False, True])
def test_a_part_that_is_lost_in_transfer_is_a_fault(state: str, paused: bool) -> None:
    bench = Bench()
    bench.job.start(0)
    bench.run_to(state)
    if paused:
        bench.job.pause(bench.now)
    bench.gripper.lose(bench.now)
    bench.wake()
    assert (bench.state, bench.status.code) == ("ERROR", "PART_LOST")
    assert bench.arm.braking
    assert "release" not in bench.gripper.calls


def test_a_part_that_is_not_released_is_a_fault() -> None:
    bench = Bench()
    bench.gripper.sticks = True
    bench.job.run_single_cycle(0)
    bench.run()
    assert (bench.state, bench.status.code) == ("ERROR", "PART_NOT_RELEASED")
    assert bench.status.success_count == 0


def test_a_refused_move_is_a_fault_with_its_reason() -> None:
    bench = Bench()
    bench.job.start(0)
    bench.run_to("MOVE_TO_PLACE")
    bench.arm.finish(bench.now, Refused("soft limit of A3"))
    bench.wake()
    assert bench.status.code == "ARM_FAULT"
    assert "soft limit of A3" in bench.status.last_error
    assert "then reset the job" in bench.status.last_error


# ── known sources ───────────────────────────────────────────────────────────────────────────────


def test_a_fixed_position_needs_no_vision() -> None:
    position = Position(300.0, 100.0, 50.0)
    bench = Bench(CycleConfig(source="fixed", pick_position=position))
    bench.job.run_continuous(0, 2)
    bench.run()
    assert bench.cycles == [(1, True), (2, True)]
    assert bench.vision.requests == []
    assert position.pose() in [move.pose for move in bench.arm.moves]


# ── snapshot ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("state", RUNNING)
def test_a_snapshot_in_every_state_goes_on_alike(state: str) -> None:
    bench = Bench()
    bench.gripper.outcomes.append(False)
    bench.job.run_continuous(0, 2)
    bench.run_to(state)
    saved = bench.copy_state()
    again = Bench()
    for mine, other in zip(
        (again.arm, again.gripper, again.vision),
        (bench.arm, bench.gripper, bench.vision),
        strict=True,
    ):
        names = {name: value for name, value in vars(other).items() if not name.startswith("_")}
        vars(mine).update({n: v.copy() if hasattr(v, "copy") else v for n, v in names.items()})
    again.now = bench.now
    snapshots.load(again.job, saved)
    assert again.copy_state() == saved
    bench.run()
    again.run()
    assert again.copy_state() == bench.copy_state()
    assert again.now == bench.now


# ── table ───────────────────────────────────────────────────────────────────────────────────────


def test_the_order_of_picks() -> None:
    low = DetectedObject(1, "part", 0.99, pose_of((0.0, 0.0, 495.0, 0, 0, 0)))
    high = DetectedObject(2, "part", 0.9, pose_of((50.0, 0.0, 400.0, 0, 0, 0)))
    near = DetectedObject(3, "part", 0.95, pose_of((0.0, 10.0, 300.0, 0, 0, 0)))
    for order, first in (("confidence", low), ("highest", near), ("nearest", near)):
        bench = Bench(CycleConfig(order=order))  # type: ignore[arg-type]
        bench.vision.always = (low, high, near)
        bench.job.run_single_cycle(0)
        bench.run_to("MOVE_TO_PICK")
        assert bench.status.current_target == first


def test_every_running_state_can_be_stopped_paused_and_failed() -> None:
    for state in RUNNING:
        assert TRANSITIONS[state, "stop"] == "IDLE"
        assert TRANSITIONS[state, "pause"] == "PAUSED"
        assert TRANSITIONS[state, "fault"] == "ERROR"


def test_an_answer_with_an_error_is_asked_again_until_the_watchdog_expires() -> None:
    bench = Bench(CycleConfig(vision_timeout_ms=1000.0, scan_retry_ms=100.0))
    bench.vision.always = Refused("the camera is not connected")
    bench.job.start(0)
    bench.run_to("SCANNING")
    began = bench.now
    bench.run_to("ERROR")
    assert bench.now - began == 1000 * NS_PER_MS
    assert len(bench.vision.requests) == 5
    assert "the camera is not connected" in bench.status.last_error


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"target": None}, "GRIPPING without a part"),
        ({"state": "PAUSED", "before": "ERROR"}, "paused in ERROR"),
        ({"work": {"step": -1}}, "step -1 of 0"),
    ],
)
def test_a_crafted_snapshot_is_refused_and_changes_nothing(
    change: dict[str, Any], problem: str
) -> None:
    bench = Bench()
    bench.job.run_single_cycle(0)
    bench.run_to("GRIPPING")
    saved = bench.copy_state()
    with pytest.raises(ValueError, match=problem):
        snapshots.load(bench.job, {**saved, **change})
    assert bench.copy_state() == saved
    snapshots.load(bench.job, saved)
    bench.run()
    assert bench.cycles == [(1, True)]
