"""PickPlaceSafety: what every key of the section `safety` does."""

from typing import Any

import pytest
from tests.jobs.pick_place.bench import ESTOP, PART, Bench

from understudy.errors import ConfigError, Refused
from understudy.jobs.pick_place.config import (
    CycleConfig,
    Insert,
    PalletConfig,
    SafetyConfig,
    Zone,
    check_sections,
)
from understudy.jobs.pick_place.moves import CycleMove, line
from understudy.jobs.pick_place.pallet import PalletPattern
from understudy.jobs.pick_place.safety import PickPlaceSafety, PictureWatchdog
from understudy.jobs.pick_place.status import ADVICE
from understudy.ports.object_finder import DetectedObject
from understudy.space.pose import Position, pose_of
from understudy.units import NS_PER_MS

CYCLE = CycleConfig()


def running(state: str, safety: SafetyConfig, cycle: CycleConfig = CYCLE) -> Bench:
    bench = Bench(cycle, safety)
    bench.job.start(0)
    bench.run_to(state)
    return bench


# ── gripper ─────────────────────────────────────────────────────────────────────────────────────


def test_max_grip_force_n_stops_and_retracts_with_the_part() -> None:
    bench = running("MOVE_TO_PLACE", SafetyConfig(max_grip_force_n=80.0))
    bench.gripper.force = 80.0
    bench.wake(50 * NS_PER_MS)
    assert bench.state == "MOVE_TO_PLACE"
    bench.gripper.force = 80.1
    bench.wake(50 * NS_PER_MS)
    assert (bench.state, bench.status.code) == ("ERROR", "FORCE_LIMIT")
    assert bench.arm.braking
    low = bench.arm.at.z
    bench.run()
    assert bench.arm.at.z == pytest.approx(0.2)  # 100 mm above the place at 100 mm
    assert bench.arm.at.z > low
    assert bench.arm.moves[-1].speed == pytest.approx(0.1)
    assert bench.gripper.part
    assert "release" not in bench.gripper.calls


@pytest.mark.parametrize("interval", [20.0, 200.0])
def test_grip_monitor_interval_ms_is_the_time_between_checks(interval: float) -> None:
    bench = running("RETRACT_PICK", SafetyConfig(grip_monitor_interval_ms=interval))
    gripped = bench.now
    bench.gripper.force = 500.0
    bench.wake(round(interval * NS_PER_MS) - 1)
    assert bench.state == "RETRACT_PICK"
    bench.wake(1)
    assert (bench.status.code, bench.now - gripped) == ("FORCE_LIMIT", interval * NS_PER_MS)


def test_require_part_sensor_makes_a_grip_without_signal_a_miss() -> None:
    for required in (True, False):
        bench = Bench(CycleConfig(max_grip_retries=1), SafetyConfig(require_part_sensor=required))
        bench.gripper.outcomes.append(False)
        bench.job.run_single_cycle(0)
        bench.run()
        assert bench.cycles == [(1, not required)]


def test_require_part_sensor_watches_a_carried_part() -> None:
    for required in (True, False):
        bench = running("MOVE_TO_PLACE", SafetyConfig(require_part_sensor=required))
        bench.gripper.part = False  # no event: the next check sees it
        bench.wake(50 * NS_PER_MS)
        assert bench.status.code == ("PART_LOST" if required else "")


# ── vision ──────────────────────────────────────────────────────────────────────────────────────


def test_vision_timeout_ms_without_an_answer_is_a_fault_and_goes_to_the_fallback() -> None:
    fallback = Position(300.0, 0.0, 400.0)
    cycle = CycleConfig(vision_timeout_ms=5000.0, fallback_position=fallback)
    bench = running("SCANNING", SafetyConfig(vision_timeout_ms=700.0), cycle)
    bench.vision.always = None
    began = bench.now
    bench.run_to("ERROR")
    assert bench.now - began == 700 * NS_PER_MS
    assert bench.status.code == "VISION_TIMEOUT"
    bench.run()
    assert bench.arm.at == fallback.pose()
    assert bench.job.reset(bench.now) is None


def test_the_shorter_vision_timeout_counts() -> None:
    for own, safe in ((300.0, 5000.0), (5000.0, 300.0)):
        limits = PickPlaceSafety(
            SafetyConfig(vision_timeout_ms=safe), CycleConfig(vision_timeout_ms=own)
        )
        assert limits.picture_timeout == 300 * NS_PER_MS


@pytest.mark.parametrize(("own", "safe", "needed"), [(0.8, 0.7, 0.8), (0.5, 0.9, 0.9)])
def test_min_detection_confidence_the_stricter_counts(
    own: float, safe: float, needed: float
) -> None:
    cycle = CycleConfig(min_confidence=own, max_scan_retries=1)
    for confidence, found in ((needed - 0.01, False), (needed, True)):
        bench = Bench(cycle, SafetyConfig(min_detection_confidence=safe))
        bench.vision.always = (DetectedObject(1, "part", confidence, PART.pose),)
        bench.job.run_single_cycle(0)
        bench.run()
        assert bench.cycles == [(1, found)]


# ── motion ──────────────────────────────────────────────────────────────────────────────────────


def test_max_approach_speed_mm_s_is_an_error_at_load_and_a_refusal_before_the_move() -> None:
    with pytest.raises(ConfigError, match="approach_speed_mm_s"):
        check_sections(CycleConfig(approach_speed_mm_s=201.0), SafetyConfig())
    with pytest.raises(ConfigError, match=r"insert\.speed_mm_s"):
        check_sections(
            CycleConfig(insert=Insert(speed_mm_s=60.0, contact="DI14"), approach_speed_mm_s=50.0),
            SafetyConfig(max_approach_speed_mm_s=55.0),
        )
    limits = PickPlaceSafety(SafetyConfig(max_approach_speed_mm_s=150.0), CYCLE)
    fast = CycleMove("APPROACH_PICK", line(PART.pose, 151.0))
    refused = limits.validate_speeds([CycleMove("MOVE_TO_PICK", line(PART.pose, 500.0)), fast])
    assert refused is not None
    assert "APPROACH_PICK at 151 mm/s" in refused.reason


def test_safe_retract_height_mm_is_the_height_of_the_emergency_retract() -> None:
    bench = running("APPROACH_PICK", SafetyConfig(safe_retract_height_mm=140.0))
    bench.run_to("GRIPPING")
    bench.arm.trip(bench.now)
    bench.wake()
    assert bench.job.emergency_retract(bench.now) == ESTOP  # never during an emergency stop
    bench.arm.broken = None
    moves = len(bench.arm.moves)
    bench.wake(NS_PER_MS)
    assert len(bench.arm.moves) == moves  # not by itself either
    assert bench.job.emergency_retract(bench.now) is None
    x, y, *_ = bench.arm.at
    bench.run()
    assert bench.arm.at[:2] == (x, y)
    assert bench.arm.at.z == pytest.approx(0.24)
    assert bench.job.emergency_retract(bench.now) is None  # as high already: no move
    assert len(bench.arm.moves) == moves + 1


# ── zones ───────────────────────────────────────────────────────────────────────────────────────

# The part of the bench is at (400, -50, 10) mm, the place at (600, -200, 100) mm.
AROUND_PICK = Zone((350.0, -100.0, 0.0), (450.0, 100.0, 50.0))
AROUND_PLACE = Zone((550.0, -250.0, 50.0), (650.0, -150.0, 150.0))


@pytest.mark.parametrize(
    ("enabled", "zone", "picked"),
    [(True, AROUND_PICK, True), (True, AROUND_PLACE, False), (False, AROUND_PLACE, True)],
)
def test_pick_zone_and_enable_pick_zone(enabled: bool, zone: Zone, picked: bool) -> None:
    bench = Bench(CYCLE, SafetyConfig(pick_zone=zone, enable_pick_zone=enabled))
    bench.job.run_single_cycle(0)
    bench.run()
    assert bench.cycles == [(1, picked)]
    if not picked:
        assert "outside the pick zone" in bench.status.last_error
        assert len(bench.arm.moves) == 1  # to the scan position only


@pytest.mark.parametrize(
    ("enabled", "zone", "placed"),
    [(True, AROUND_PLACE, True), (True, AROUND_PICK, False), (False, AROUND_PICK, True)],
)
def test_place_zone_and_enable_place_zone(enabled: bool, zone: Zone, placed: bool) -> None:
    bench = Bench(CYCLE, SafetyConfig(place_zone=zone, enable_place_zone=enabled))
    bench.job.run_single_cycle(0)
    bench.run()
    assert bench.cycles == [(1, placed)]
    if not placed:
        assert bench.status.code == "OUT_OF_ZONE"
        assert bench.gripper.calls == []


def test_a_zone_that_is_not_given_is_a_warning_an_empty_one_an_error() -> None:
    assert len(check_sections(CYCLE, SafetyConfig())) == 2
    assert (
        check_sections(CYCLE, SafetyConfig(enable_pick_zone=False, place_zone=AROUND_PLACE)) == []
    )
    for key in ("pick_zone", "place_zone"):
        empty: dict[str, Any] = {key: Zone((0.0, 0.0, 0.0), (10.0, 0.0, 10.0))}
        with pytest.raises(ConfigError, match=key):
            check_sections(CYCLE, SafetyConfig(**empty))


def test_every_key_has_a_test_in_this_file() -> None:
    names = " ".join(name for name in globals() if name.startswith("test_"))
    shorter = {"vision_timeout_ms": "vision_timeout"}
    elsewhere = {"obstacle_check", "obstacle_margin_mm"}  # test_obstacles.py
    for key in set(SafetyConfig.__struct_fields__) - elsewhere:
        assert shorter.get(key, key) in names


# ── reach ───────────────────────────────────────────────────────────────────────────────────────


def test_a_part_out_of_reach_is_a_miss_and_another_one_is_picked() -> None:
    far = DetectedObject(2, "part", 0.99, pose_of((900.0, 0.0, 490.0, 0, 0, 0)))
    bench = Bench(CycleConfig(max_scan_retries=2))
    bench.arm.unreachable = lambda target: target.pose is not None and target.pose.x > 1.2
    bench.vision.answers.append((far, PART))
    bench.job.run_single_cycle(0)
    bench.run_to("MOVE_TO_PICK")
    assert bench.status.current_target == PART
    bench.run()
    bench.vision.always = (far,)
    bench.job.run_single_cycle(bench.now)
    bench.run()
    assert "out of reach" in bench.status.last_error
    assert bench.state == "IDLE"


def test_a_scan_position_out_of_the_straight_line_is_reached_point_to_point() -> None:
    bench = Bench()
    bench.arm.unreachable = lambda target: target.line and target.pose == CYCLE.scan_position.pose()
    bench.job.run_single_cycle(0)
    assert not bench.arm.moves[0].line
    bench.run()
    assert bench.cycles == [(1, True)]
    bench.arm.unreachable = lambda target: True
    bench.job.run_single_cycle(bench.now)
    assert bench.status.code == "OUT_OF_REACH"


REACHED = (("PLACE_OUT_OF_REACH", None), ("PALLET_CELL_OUT_OF_REACH", PalletConfig()))


@pytest.mark.parametrize(("reason", "pallet"), REACHED)
@pytest.mark.parametrize("source", ["vision", "fixed"])
def test_a_place_out_of_reach_is_told_from_a_part(
    source: Any, reason: str, pallet: PalletConfig | None
) -> None:
    known = Position(400.0, 50.0, 110.0, 180.0, 0.0, 0.0)
    config = CycleConfig(max_scan_retries=1, source=source, pick_position=known)
    place = None if pallet is None else PalletPattern(pallet, config.place_position)
    bench = Bench(config, pallet=place)
    bench.arm.unreachable = lambda target: target.pose is not None and target.pose.x > 0.55
    bench.job.run_single_cycle(0)
    bench.run()
    found = bench.status.reason if source == "vision" else bench.status.code
    assert found == reason
    assert ADVICE[found] in bench.status.last_error
    assert bench.gripper.calls == []


def test_the_part_that_came_nearest_to_being_picked_tells_the_reason() -> None:
    weak = DetectedObject(2, "part", 0.5, PART.pose)
    outside = DetectedObject(3, "part", 0.99, pose_of((0.0, 500.0, 490.0, 0, 0, 0)))
    limits = SafetyConfig(pick_zone=AROUND_PICK)
    for seen, reason in (
        ((), "NO_OBJECT"),
        ((weak,), "LOW_CONFIDENCE"),
        ((outside, weak), "PICK_OUT_OF_ZONE"),
        ((weak, outside, PART), "PICK_OUT_OF_REACH"),
    ):
        bench = Bench(CycleConfig(max_scan_retries=1), limits)
        bench.arm.unreachable = lambda target: target.pose is not None and target.pose.z < 0.3
        bench.vision.always = seen
        bench.job.run_single_cycle(0)
        bench.run()
        assert (bench.state, bench.status.reason) == ("IDLE", reason)
        assert bench.status.last_error.endswith(ADVICE[bench.status.reason])


def test_a_known_pick_position_outside_its_zone_is_a_fault_of_its_own() -> None:
    at = Position(400.0, 50.0, 110.0, 180.0, 0.0, 0.0)
    config = CycleConfig(source="fixed", pick_position=at)
    bench = Bench(config, SafetyConfig(pick_zone=AROUND_PLACE))
    bench.job.run_single_cycle(0)
    bench.run()
    assert bench.status.code == "OUT_OF_ZONE"


# ── watchdog ────────────────────────────────────────────────────────────────────────────────────


def test_the_watchdog_expires_without_food() -> None:
    watchdog = PictureWatchdog()
    assert not watchdog.is_expired(10**12)
    watchdog.start(100, 1000)
    watchdog.feed(1050)
    assert not watchdog.is_expired(1149)
    assert watchdog.is_expired(1150)
    watchdog.delay(50)
    assert not watchdog.is_expired(1150)
    watchdog.stop()
    watchdog.feed(1)
    assert watchdog.expires is None


def test_the_action_of_the_watchdog_is_called_once() -> None:
    watchdog, calls = PictureWatchdog(), list[int]()
    watchdog.set_timeout_action(calls.append)
    watchdog.start(100, 1000)
    for now in (1099, 1100, 1101):
        watchdog.wake(now)
    assert calls == [1100]


def test_with_another_action_of_the_watchdog_the_job_goes_on() -> None:
    bench = running("SCANNING", SafetyConfig(vision_timeout_ms=300.0))
    calls = list[int]()
    bench.job.watchdog.set_timeout_action(calls.append)
    bench.vision.answers.append(None)
    bench.run(lambda: bool(bench.cycles))
    assert len(calls) == 1
    assert bench.cycles == [(1, True)]


@pytest.mark.parametrize("lost", [1, 2])
def test_a_lost_answer_is_asked_for_again(lost: int) -> None:
    bench = Bench(CYCLE)
    bench.vision.answers.extend([None] * lost)
    bench.job.run_single_cycle(0)
    bench.run()
    assert bench.cycles == [(1, True)]
    assert len(bench.vision.requests) == lost + 1


def test_lost_answers_are_asked_for_until_the_watchdog_expires() -> None:
    bench = Bench(CycleConfig(vision_answer_timeout_ms=900.0))
    bench.vision.always = None
    bench.job.run_single_cycle(0)
    bench.run_to("ERROR")
    assert bench.status.code == "VISION_TIMEOUT"
    assert "no answer in 900 ms" in bench.status.last_error
    assert len(bench.vision.requests) == 5  # one a second


def test_an_answer_without_objects_is_valid() -> None:
    """Empty pictures use up the scans, however long they take; they are no time-out."""
    cycle = CycleConfig(max_scan_retries=20, vision_timeout_ms=150.0)
    bench = Bench(cycle)
    bench.vision.always = ()
    bench.job.run_single_cycle(0)
    bench.run()
    assert (bench.state, bench.status.reason) == ("IDLE", "NO_OBJECT")
    assert len(bench.vision.requests) == 20


def test_a_pause_does_not_feed_the_watchdog_but_stops_it() -> None:
    bench = running("SCANNING", SafetyConfig(vision_timeout_ms=300.0))
    bench.vision.ticket = 0  # the request is lost
    bench.wake(100 * NS_PER_MS)
    bench.job.pause(bench.now)
    bench.wake(10_000 * NS_PER_MS)
    bench.job.resume(bench.now)
    bench.wake(199 * NS_PER_MS)
    assert bench.state == "SCANNING"
    bench.wake(1 * NS_PER_MS)
    assert bench.status.code == "VISION_TIMEOUT"


def test_every_fault_says_what_to_do() -> None:
    for code, advice in ADVICE.items():
        assert code
        assert len(advice) > 10


def test_a_retract_that_fails_is_reported() -> None:
    bench = running("SCANNING", SafetyConfig(vision_timeout_ms=300.0))
    bench.vision.ticket = 0
    bench.arm.refuses = Refused("soft limit of A3")
    bench.wake(300 * NS_PER_MS)
    assert "VISION_TIMEOUT" in bench.status.last_error
    assert "soft limit of A3" in bench.status.last_error
    assert not bench.job.busy()
