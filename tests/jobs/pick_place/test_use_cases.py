"""Configuration for machine tending, assembly, sorting, bin picking and depalletising."""

import pytest
from tests.jobs.pick_place.bench import PART, Bench

from understudy.jobs.pick_place.config import (
    CycleConfig,
    Grasp,
    Handshake,
    HandshakeStep,
    Insert,
    PalletConfig,
)
from understudy.jobs.pick_place.pallet import PalletPattern
from understudy.ports.object_finder import DetectedObject
from understudy.space.pose import Pose, Position, pose_of
from understudy.units import NS_PER_MS


def brakes(bench: Bench) -> bool:
    return bench.arm.braking


SMALL = PalletConfig(rows=1, columns=2, layers=2, pitch_x=60.0, pitch_y=60.0, layer_height=40.0)


# ── machine tending ─────────────────────────────────────────────────────────────────────────────

DOOR = Handshake(
    before_place=(HandshakeStep(set="OPEN_DOOR"), HandshakeStep(wait="DOOR_OPEN", timeout_ms=800)),
    at_place=(HandshakeStep(set="CLAMP"), HandshakeStep(wait="CLAMPED", timeout_ms=500)),
    after_place=(HandshakeStep(set="OPEN_DOOR", value=False), HandshakeStep(set="START")),
)


def test_the_robot_waits_over_the_place_for_the_door_and_at_the_place_for_the_chuck() -> None:
    bench = Bench(CycleConfig(handshake=DOOR))
    bench.job.run_single_cycle(0)
    bench.run(lambda: bench.pins.log == [("OPEN_DOOR", True)])
    assert bench.state == "MOVE_TO_PLACE"
    moves = len(bench.arm.moves)
    bench.wake(700 * NS_PER_MS)
    assert (bench.state, len(bench.arm.moves)) == ("MOVE_TO_PLACE", moves)
    bench.pins.set("DOOR_OPEN", True, bench.now)
    bench.wake()
    assert bench.state == "APPROACH_PLACE"
    bench.run(lambda: ("CLAMP", True) in bench.pins.log)
    assert "release" not in bench.gripper.calls
    bench.pins.set("CLAMPED", True, bench.now)
    bench.wake()
    assert bench.state == "RELEASING"
    bench.run()
    assert bench.cycles == [(1, True)]
    assert bench.pins.log[-2:] == [("OPEN_DOOR", False), ("START", True)]


def test_a_machine_that_does_not_answer_is_a_fault_with_the_part_in_the_hand() -> None:
    bench = Bench(CycleConfig(handshake=DOOR))
    bench.job.run_single_cycle(0)
    bench.run_to("MOVE_TO_PLACE")
    bench.run_to("ERROR")
    assert bench.status.code == "HANDSHAKE_TIMEOUT"
    assert "DOOR_OPEN not on in 800 ms" in bench.status.last_error
    assert bench.gripper.part


def test_a_pause_stops_the_time_of_a_handshake() -> None:
    bench = Bench(CycleConfig(handshake=DOOR))
    bench.job.run_single_cycle(0)
    bench.run(lambda: bool(bench.pins.log))
    bench.job.pause(bench.now)
    bench.wake(10_000 * NS_PER_MS)
    bench.pins.set("DOOR_OPEN", True, bench.now)
    bench.wake()
    assert bench.state == "PAUSED"
    bench.job.resume(bench.now)
    bench.wake()
    assert bench.state == "APPROACH_PLACE"


def test_unloading_has_a_handshake_with_the_chuck_while_the_part_is_gripped() -> None:
    unclamp = (HandshakeStep(set="CLAMP", value=False), HandshakeStep(wait="CLAMPED", value=False))
    position = Position(500.0, 0.0, 100.0)
    config = CycleConfig(
        source="fixed", pick_position=position, handshake=Handshake(at_pick=unclamp)
    )
    bench = Bench(config)
    bench.pins.levels["CLAMPED"] = True
    bench.job.run_single_cycle(0)
    bench.run(lambda: bool(bench.pins.log))
    assert (bench.state, bench.gripper.part, bench.arm.at) == ("GRIPPING", True, position.pose())
    bench.pins.set("CLAMPED", False, bench.now)
    bench.wake()
    assert bench.state == "RETRACT_PICK"


# ── assembly ────────────────────────────────────────────────────────────────────────────────────

PRESS = CycleConfig(insert=Insert(distance_mm=12.0, speed_mm_s=4.0, contact="CONTACT"))


def test_an_insert_is_slow_and_ends_at_the_contact() -> None:
    bench = Bench(PRESS)
    bench.job.run_single_cycle(0)
    bench.run_to("APPROACH_PLACE")
    bench.run(lambda: bench.arm.moves[-1].speed == pytest.approx(0.004))
    start, end = bench.arm.at, bench.arm.moves[-1].pose
    assert end is not None
    assert start.z - end.z == pytest.approx(0.012)
    bench.wake(50 * NS_PER_MS)
    assert not brakes(bench)
    bench.pins.set("CONTACT", True, bench.now)
    bench.wake()
    assert brakes(bench)
    bench.pins.set("CONTACT", False, bench.now)  # it bounces: the contact counts all the same
    bench.run()
    assert bench.cycles == [(1, True)]


def test_an_insert_without_a_contact_fails_unless_it_is_not_required() -> None:
    for required in (True, False):
        insert = Insert(contact="CONTACT", required=required)
        bench = Bench(CycleConfig(insert=insert))
        bench.job.run_single_cycle(0)
        bench.run()
        assert bench.cycles == [(1, not required)]
        assert bench.status.code == ("NO_CONTACT" if required else "")
        assert bench.gripper.part == required


def test_a_contact_before_the_insert_is_a_fault() -> None:
    bench = Bench(PRESS)
    bench.pins.levels["CONTACT"] = True
    bench.job.run_single_cycle(0)
    bench.run()
    assert bench.status.code == "NO_CONTACT"
    assert "before the insert" in bench.status.last_error


def test_the_force_of_an_insert_is_read_at_the_interval_of_the_monitor() -> None:
    bench = Bench(CycleConfig(insert=Insert(force_input="FORCE", force_volts=2.5)))
    bench.job.run_single_cycle(0)
    bench.run(lambda: bench.state == "APPROACH_PLACE" and bench.arm.moves[-1].speed < 0.01)
    bench.pins.volts["FORCE"] = 2.4
    bench.wake(50 * NS_PER_MS)
    assert not brakes(bench)
    bench.pins.volts["FORCE"] = 2.5
    bench.wake(50 * NS_PER_MS)
    assert brakes(bench)
    bench.run()
    assert bench.cycles == [(1, True)]


# ── sorting and bin picking ─────────────────────────────────────────────────────────────────────


def test_parts_are_sorted_by_class() -> None:
    left, right = Position(500.0, -200.0, 80.0), Position(500.0, 200.0, 80.0)
    bench = Bench(CycleConfig(places={"bolt": left, "nut": right}))
    for name in ("bolt", "nut", "washer"):
        bench.vision.answers.append((DetectedObject(1, name, 0.9, PART.pose),))
    placed: list[Pose] = []
    bench.job.on_state(
        lambda old, new, now: placed.append(bench.arm.at) if new == "RELEASING" else None
    )
    bench.job.run_continuous(0, 3)
    bench.run()
    assert placed == [left.pose(), right.pose(), bench.job.config.place_position.pose()]
    assert bench.status.statistics.by_class == {"bolt": 1, "nut": 1, "washer": 1}


def test_a_bin_is_emptied_from_the_top_along_the_axis_of_each_part() -> None:
    tilted = DetectedObject(1, "part", 0.99, pose_of((0, 0, 450.0, 0, 20.0, 0)))
    top = DetectedObject(2, "part", 0.9, pose_of((20.0, 0, 400.0, 0, -15.0, 40.0)))
    bench = Bench(CycleConfig(order="highest"))
    bench.vision.answers.append((tilted, top))
    bench.job.run_single_cycle(0)
    bench.run_to("APPROACH_PICK")
    assert bench.status.current_target == top
    over, part = bench.arm.at, bench.arm.moves[-1].pose
    assert part is not None
    assert over[3:] == pytest.approx(part[3:])
    assert over[:2] != pytest.approx(part[:2])


def test_a_class_can_be_approached_straight_down() -> None:
    tilted = DetectedObject(1, "part", 0.99, pose_of((0, 0, 450.0, 0, 20.0, 0)))
    bench = Bench(CycleConfig(grasps={"part": Grasp(approach="up")}))
    bench.vision.answers.append((tilted,))
    bench.job.run_single_cycle(0)
    bench.run_to("APPROACH_PICK")
    part = bench.arm.moves[-1].pose
    assert part is not None
    assert bench.arm.at[:2] == pytest.approx(part[:2])


# ── pallets ─────────────────────────────────────────────────────────────────────────────────────


def test_a_pallet_is_filled_and_ends_the_run_before_the_next_pick() -> None:
    pallet = PalletPattern(SMALL, Position(600.0, -200.0, 100.0))
    bench = Bench(pallet=pallet)
    bench.job.start(0)
    bench.run()
    assert bench.cycles == [(n, True) for n in (1, 2, 3, 4)]
    assert (bench.state, bench.status.reason) == ("IDLE", "PALLET_FULL")
    assert bench.status.last_error == ""
    assert len(bench.vision.requests) == 4
    refused = bench.job.start(bench.now)
    assert refused is not None
    assert refused.reason.startswith("PALLET_FULL")
    pallet.reset()
    assert bench.job.start(bench.now) is None


def test_a_failed_cycle_leaves_the_cell_of_the_pallet_free() -> None:
    pallet = PalletPattern(SMALL, Position(600.0, -200.0, 100.0))
    bench = Bench(pallet=pallet)
    bench.job.start(0)
    bench.run_to("MOVE_TO_PLACE")
    bench.gripper.lose(bench.now)
    bench.wake()
    assert pallet.get_current_index() == 0
    bench.arm.finish(bench.now)
    bench.wake()
    bench.job.reset(bench.now)
    bench.job.run_single_cycle(bench.now)
    bench.run()
    assert pallet.get_current_index() == 1


def test_the_part_crosses_above_what_is_stacked() -> None:
    pallet = PalletPattern(SMALL, Position(600.0, -200.0, 100.0))
    pallet.skip_to_position(2)
    bench = Bench(pallet=pallet)
    bench.job.run_single_cycle(0)
    bench.run_to("MOVE_TO_PLACE")
    first = bench.arm.moves[-1].pose
    assert first is not None
    assert first.z >= pallet.safe_height(2)


def test_parts_are_taken_off_a_pallet_without_vision() -> None:
    config = PalletConfig(
        rows=1, columns=2, layers=2, pitch_x=60.0, pitch_y=60.0, layer_height=40.0,
        origin=Position(300.0, 0.0, 60.0), depalletise=True,
    )  # fmt: skip
    source = PalletPattern(config)
    bench = Bench(CycleConfig(source="pallet", source_pallet=config), source=source)
    picked: list[float] = []
    bench.job.on_state(
        lambda old, new, now: picked.append(bench.arm.at.z) if new == "GRIPPING" else None
    )
    bench.job.start(0)
    bench.run()
    assert (bench.state, bench.status.reason) == ("IDLE", "SOURCE_EMPTY")
    assert picked == pytest.approx([0.1, 0.1, 0.06, 0.06])
    assert bench.vision.requests == []
