"""The design document's checklist 12.2, headings Motion, Cycle and Safety, in a whole cell."""

import math
from typing import Any

import numpy as np
import pytest
from tests.jobs.pick_place.cell_bench import CUBES, CellBench, box, cube

from understudy.errors import ConfigError
from understudy.jobs.pick_place.state import RUNNING
from understudy.simulation.cell import read_snapshot, write_snapshot
from understudy.space.transform import angle_between, matrix
from understudy.units import NS_PER_MS, NS_PER_SECOND

RETRY = {"max_scan_retries": 3}


def cycle(*parts: Any, **keys: Any) -> CellBench:
    bench = CellBench(*parts, **keys)
    assert bench.job.run_single_cycle(0) is None
    return bench


class TestMotion:
    def test_move_to_scan_position(self) -> None:
        bench = cycle()
        bench.run_to("SCANNING")
        assert np.array(bench.robot.tcp(bench.now)[:3]) * 1000 == pytest.approx([400, 0, 500])
        assert bench.at_rest()

    def test_approach_and_retract_motions(self) -> None:
        bench = cycle()
        heights: dict[str, float] = {}
        bench.job.on_state(
            lambda old, new, now: heights.update({old: bench.robot.tcp(now)[2] * 1000})
        )
        bench.finish()
        assert heights["MOVE_TO_PICK"] == pytest.approx(120.0, abs=0.1)
        assert heights["APPROACH_PICK"] == pytest.approx(70.0, abs=0.1)
        assert heights["RETRACT_PICK"] == pytest.approx(120.0, abs=0.1)
        assert heights["MOVE_TO_PLACE"] == pytest.approx(120.0, abs=0.1)
        assert heights["APPROACH_PLACE"] == pytest.approx(70.0, abs=0.1)
        assert heights["RETRACT_PLACE"] == pytest.approx(120.0, abs=0.1)

    def test_speed_limiting(self) -> None:
        bench = cycle(pickplace={"move_speed_mm_s": 300.0, "approach_speed_mm_s": 60.0})
        most: dict[str, float] = {}
        before = bench.robot.tcp(0)
        while bench.job.busy():
            state = bench.state
            bench.run(0.002)
            after = bench.robot.tcp(bench.now)
            if state == bench.state:
                speed = math.dist(before[:3], after[:3]) * 1000 / 0.002
                most[state] = max(most.get(state, 0.0), speed)
            before = after
        for state in ("APPROACH_PICK", "RETRACT_PICK", "APPROACH_PLACE", "RETRACT_PLACE"):
            assert 50.0 < most[state] <= 60.5
        for state in ("MOVE_TO_PICK", "MOVE_TO_PLACE"):
            assert 200.0 < most[state] <= 302.0
        with pytest.raises(ConfigError, match="max_approach_speed_mm_s"):
            CellBench(pickplace={"approach_speed_mm_s": 250.0})

    def test_collision_avoidance(self) -> None:
        """The whole cycle is free of contacts; a wall in the way stops the arm with the part."""
        bench = cycle()
        bench.finish()
        assert (bench.cycles, bench.contacts()) == ([(1, True)], 0)
        wall = box("wall", [510, -110, 100], [40, 40, 100])
        bench = cycle(objects=(wall,), robot={"collision": {"on_collision": "stop"}})
        bench.finish()
        assert bench.contacts() > 0
        assert (bench.state, bench.status.code) == ("ERROR", "ARM_FAULT")
        assert "wall" in bench.status.last_error
        assert bench.part("a").state == "held"


class TestCycle:
    def test_complete_pick_place_cycle(self) -> None:
        bench = CellBench(pickplace={"places": {"*": {"x": 600.0, "y": -200.0, "z": 70.0}}})
        bench.job.run_single_cycle(0)
        bench.finish()
        assert [state for state, _ in bench.states] == [*RUNNING, "IDLE"]
        assert bench.place_of("a") == pytest.approx([600.0, -200.0, 70.0], abs=0.1)
        assert bench.part("a").state == "resting"
        assert bench.status.statistics.last_s == pytest.approx(5.5, abs=0.5)

    def test_a_turned_part_is_placed_straight(self) -> None:
        bench = cycle(cube("b", 450.0, 120.0, 30.0))
        bench.finish()
        placed = matrix(bench.part("b").pose)
        yaw = math.degrees(math.atan2(placed[1, 0], placed[0, 0])) % 90.0
        assert min(yaw, 90.0 - yaw) < 0.01
        assert math.degrees(angle_between(np.eye(4), placed)) % 90.0 == pytest.approx(0, abs=0.01)

    def test_retry_on_grip_failure(self) -> None:
        bench = cycle(rules={"miss": {"fault": "grip_miss", "on": "g60.gripper", "times": 2}})
        bench.finish()
        assert bench.cycles == [(1, True)]
        assert [state for state, _ in bench.states].count("SCANNING") == 3
        assert bench.place_of("a") == pytest.approx([600.0, -200.0, 70.0], abs=0.1)

    def test_grip_retries_used_up(self) -> None:
        bench = cycle(rules={"miss": {"fault": "grip_miss", "on": "g60.gripper"}})
        bench.finish()
        assert (bench.state, bench.status.code) == ("ERROR", "GRIP_FAILED")
        assert bench.gripper.status(bench.now).state == "OPENED"
        assert bench.robot.tcp(bench.now)[2] == pytest.approx(0.120, abs=1e-4)

    def test_retry_on_vision_failure(self) -> None:
        rules = {"blind": {"fault": "vision_no_object", "on": "g60.vision", "times": 2}}
        bench = cycle(pickplace=RETRY, rules=rules)
        bench.finish()
        assert bench.cycles == [(1, True)]
        rules["blind"]["times"] = 3
        bench = cycle(pickplace=RETRY, rules=rules)
        bench.finish()
        assert bench.cycles == [(1, False)]
        assert (bench.state, bench.status.reason) == ("IDLE", "NO_OBJECT")

    @pytest.mark.parametrize("fault", ["vision_low_confidence", "vision_wrong_class"])
    def test_a_doubtful_detection_counts_as_a_miss(self, fault: str) -> None:
        rules = {"doubt": {"fault": fault, "on": "g60.vision", "times": 2}}
        keys = {**RETRY, "object_class_filter": "cube"}
        bench = cycle(pickplace=keys, rules=rules)
        bench.finish()
        assert bench.cycles == [(1, True)]

    def test_error_recovery(self) -> None:
        bench = cycle(rules={"slip": {"fault": "slip", "on": "g60.gripper", "at_s": 3.3}})
        bench.finish()
        assert bench.status.code == "PART_LOST"
        bench.run(1.0)
        assert bench.part("a").state == "resting"
        assert bench.job.reset(bench.now) is None
        assert bench.job.run_single_cycle(bench.now) is None
        bench.finish()
        assert bench.cycles == [(1, False), (2, True)]

    def test_a_pause_holds_the_arm_and_resume_goes_on(self) -> None:
        plain, paused = cycle(), cycle()
        plain.finish()
        paused.run_to("MOVE_TO_PLACE")
        paused.run(0.2)
        paused.job.pause(paused.now)
        paused.run(2.0)
        at = paused.robot.tcp(paused.now)
        paused.run(5.0)
        assert paused.robot.tcp(paused.now) == at
        assert paused.part("a").state == "held"
        paused.job.resume(paused.now)
        paused.finish()
        assert paused.cycles == [(1, True)]
        assert paused.place_of("a") == plain.place_of("a")

    def test_snapshot_run_restore_gives_the_same_bytes(self) -> None:
        bench = CellBench()
        bench.job.run_continuous(0, 1)
        for state in ("SCANNING", "GRIPPING", "MOVE_TO_PLACE", "RELEASING"):
            bench.run_to(state)
            saved = write_snapshot(bench.cell.snapshot())
            bench.run(3.0)
            first = write_snapshot(bench.cell.snapshot())
            bench.cell.restore(read_snapshot(saved))
            bench.now -= 3 * NS_PER_SECOND
            assert write_snapshot(bench.cell.snapshot()) == saved
            bench.run(3.0)
            assert write_snapshot(bench.cell.snapshot()) == first
            bench.cell.restore(read_snapshot(saved))
            bench.now -= 3 * NS_PER_SECOND


class TestSafety:
    def test_vision_timeout(self) -> None:
        rules = {"silent": {"fault": "vision_silent", "on": "g60.vision"}}
        keys = {"vision_timeout_ms": 700.0, "fallback_position": {"x": 350.0, "y": 0.0, "z": 450.0}}
        bench = cycle(pickplace=keys, rules=rules)
        bench.run_to("ERROR")
        times = dict(bench.states)
        assert times["ERROR"] - times["SCANNING"] == 700 * NS_PER_MS
        assert bench.status.code == "VISION_TIMEOUT"
        bench.finish()
        assert np.array(bench.robot.tcp(bench.now)[:3]) * 1000 == pytest.approx([350, 0, 450])

    def test_gripper_force_limit(self) -> None:
        bench = cycle(robot={"safety": {"max_grip_force_n": 20.0}})
        bench.finish()
        assert bench.status.code == "FORCE_LIMIT"
        assert bench.part("a").state == "held"
        assert bench.robot.tcp(bench.now)[2] == pytest.approx(0.170, abs=1e-4)

    def test_zone_restrictions(self) -> None:
        zone = {"min": [300.0, 50.0, 0.0], "max": [500.0, 200.0, 200.0]}
        bench = cycle(robot={"safety": {"pick_zone": zone}})
        bench.finish()
        assert bench.cycles == [(1, True)]
        assert bench.place_of("b") == pytest.approx([600.0, -200.0, 70.0], abs=0.1)
        assert bench.place_of("a") == pytest.approx([400.0, 0.0, 70.0], abs=0.1)
        with pytest.raises(ConfigError, match="place_position"):
            CellBench(robot={"safety": {"place_zone": zone}})

    @pytest.mark.parametrize("state", ["SCANNING", "GRIPPING", "MOVE_TO_PLACE", "RELEASING"])
    def test_emergency_stop(self, state: str) -> None:
        bench = cycle()
        bench.run_to(state)
        bench.run(0.01)
        held = [each.name for each in map(bench.part, "abc") if each.state == "held"]
        outputs = bench.robot.digital_io().outputs
        bench.robot.emergency_stop(bench.now)
        bench.run(0.0)
        assert (bench.state, bench.status.code) == ("ERROR", "EMERGENCY_STOP")
        assert bench.robot.digital_io().outputs == outputs
        at = bench.robot.tcp(bench.now)
        bench.run(5.0)
        assert bench.robot.tcp(bench.now) == at
        if state == "MOVE_TO_PLACE":
            assert held == ["a"]
            assert bench.part("a").state == "held"
        bench.robot.reset(bench.now)
        bench.robot.enable(bench.now)
        bench.run(1.0)
        if state == "MOVE_TO_PLACE":
            assert bench.part("a").state == "held"
        assert bench.job.reset(bench.now) is None


def test_a_cell_says_at_load_what_does_not_fit() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"source": "fixed"}, "pick_position"),
        ({"source": "pallet"}, "source_pallet"),
        ({"insert": {}}, r"insert: a contact is required, and no input reports it"),
        ({"insert": {}, "handshake": {"at_place": [{"wait": "DI12"}]}}, "insert"),
        ({"insert": {"contact": "TOUCH"}}, r"insert\.contact"),
        ({"insert": {"force_input": "AI99"}}, r"insert\.force_input"),
        ({"handshake": {"before_place": [{"wait": "DOOR_OPN"}]}}, r"handshake\.before_place"),
        ({"handshake": {"at_place": [{"set": "DI99"}]}}, r"handshake\.at_place"),
        ({"handshake": {"at_place": [{"value": False}]}}, r"handshake\.at_place.*needs `set`"),
    ]
    for keys, named in wrong:
        with pytest.raises(ConfigError, match=named):
            CellBench(*CUBES, pickplace=keys)
    empty = {"min": [0.0, 0.0, 0.0], "max": [0.0, 1.0, 1.0]}
    with pytest.raises(ConfigError, match="place_zone"):
        CellBench(robot={"safety": {"place_zone": empty}})
