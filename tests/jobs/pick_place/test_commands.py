"""Pick & place at the operator's table: cycle, hand, pallet, and its mode of operation."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.benches import Bench
from tests.jobs.pick_place.pick_cell import TEXT, written


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(written(tmp_path))
    bench.do("enable", robot="g60")
    yield bench
    bench.close()


def until(bench: Bench, state: str) -> dict[str, Any]:
    for _ in range(2000):
        status: dict[str, Any] = bench.do("pick_place")
        if status["state"] == state:
            return status
        bench.forward(0.01)
    raise AssertionError(status)


def test_a_single_cycle_then_a_run_to_the_end_of_the_pallet(bench: Bench) -> None:
    assert bench.do("single_pick_place")["running"]
    until(bench, "IDLE")
    assert bench.do("pallet")["index"] == 1
    bench.do("start_pick_place", robot="g60", max_cycles=2)
    bench.forward(30.0)
    status = bench.do("pick_place")
    assert (status["success_count"], status["reason"]) == (3, "DONE")
    bench.do("start_pick_place")
    bench.forward(30.0)
    assert bench.do("pick_place")["reason"] == "PALLET_FULL"
    rows = [event.text for event in bench.do("events")["events"] if event.kind == "pick_place"]
    assert rows == [f"cycle {number} done" for number in (1, 2, 3, 4)]


def test_pause_resume_and_stop(bench: Bench) -> None:
    bench.do("start_pick_place")
    until(bench, "MOVE_TO_PLACE")
    assert bench.do("pause_pick_place")["state"] == "PAUSED"
    bench.forward(5.0)
    assert bench.do("resume_pick_place")["state"] == "MOVE_TO_PLACE"
    assert bench.do("stop_pick_place")["state"] == "IDLE"
    assert "stop_pick_place" in {command["name"] for command in bench.do("commands")}
    assert bench.do("pick_place")["last_error"].startswith("stopped in MOVE_TO_PLACE")


def test_nobody_else_moves_the_robot_while_the_cycle_runs(bench: Bench) -> None:
    bench.do("start_pick_place")
    bench.forward(0.2)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("jog", {"robot": "g60", "frame": "joint", "axis": 0, "speed": 5}),
        ("mdi", {"robot": "g60", "line": "G0 A10"}),
        ("set_tool", {"robot": "g60", "tool": 1}),
        ("home", {"robot": "g60"}),
        ("request_mode", {"mode": "MANUAL"}),
        ("set_pallet_index", {"index": 2}),
        ("grip_part", {}),
        ("release_part", {}),
        ("gripper_close", {}),
        ("gripper_open", {}),
    ]
    for name, parameters in calls:
        answer = bench.ask(name, **parameters)
        reason = answer["answer"] if name == "mdi" else answer.reason
        assert "running" in reason, name
    bench.do("stop_pick_place")
    bench.forward(1.0)
    bench.do("jog", robot="g60", frame="joint", axis=0, speed=5, step=1)


def test_the_pallet_goes_on_anywhere(bench: Bench) -> None:
    assert bench.do("set_pallet_index", index=3)["index"] == 3
    assert bench.do("set_pallet_layer", layer=0)["index"] == 0
    assert "index" in bench.refusal("set_pallet_index", index=-1)
    assert bench.refusal("set_pallet_index", index=99)
    bench.do("set_pallet_index", index=3)
    bench.do("start_pick_place")
    bench.forward(30.0)
    assert bench.do("pick_place")["success_count"] == 1
    assert bench.do("reset_pallet")["index"] == 0


def test_a_new_pallet_is_empty_if_its_parts_are_taken_away(bench: Bench) -> None:
    def count() -> int:
        return len(bench.do("parts")["parts"])

    before = count()
    bench.do("single_pick_place")
    bench.forward(30.0)
    assert bench.do("pick_place")["success_count"] == 1
    assert (bench.do("reset_pallet")["index"], count()) == (0, before)
    assert (bench.do("reset_pallet", clear=True)["index"], count()) == (0, before - 1)
    bench.do("single_pick_place")
    bench.forward(30.0)
    assert bench.do("pick_place")["success_count"] == 2


def test_an_emptied_source_pallet_is_set_by_the_command_that_the_refusal_names(
    tmp_path: Path,
) -> None:
    own = "pallet: {rows: 2, columns: 2, layers: 1, pitch_x: 80, pitch_y: 80, layer_height: 40}"
    source = f"""pickplace:
      source: pallet
      place_position: {{x: 450, y: -250, z: 70}}
      pick_position: {{x: 400, y: 0, z: 70}}
      source_{own[:-1]}, depalletise: true}}"""
    lines = [line for line in TEXT.splitlines() if "scan_position" not in line]
    bench = Bench(written(tmp_path, "\n".join(lines).replace(own, source)))
    try:
        bench.do("enable", robot="g60")
        assert "has no pallet" in bench.refusal("pallet", robot="g60")
        assert bench.do("set_pallet_index", index=4, source=True)["empty"]
        refused = bench.refusal("start_pick_place")
        assert "SOURCE_EMPTY" in refused
        assert "reset_pallet with source: true" in refused
        assert bench.do("reset_pallet", source=True)["stacked"] == 4
        assert bench.do("start_pick_place")["running"]
    finally:
        bench.close()


def test_the_hand_opens_and_closes_on_command(bench: Bench) -> None:
    bench.do("grip_part")
    bench.forward(2.0)
    bench.do("release_part")
    bench.forward(2.0)
    rows = {device["name"]: device for device in bench.do("devices")}
    assert not rows["g60.gripper"]["faults"]


def test_the_job_needs_its_mode_and_an_empty_hand(bench: Bench) -> None:
    bench.do("start_pick_place")
    until(bench, "MOVE_TO_PLACE")
    bench.do("stop_pick_place")
    bench.forward(1.0)
    assert "holds a part" in bench.refusal("request_mode", mode="MANUAL")
    bench.do("release_part")
    bench.forward(3.0)
    bench.do("request_mode", mode="MANUAL")
    bench.forward(1.0)
    assert bench.do("operation_mode")["mode"] == "MANUAL"
    assert "request the mode PICKPLACE" in bench.refusal("start_pick_place")


def test_the_commands_are_on_the_hmi_link_and_at_control(bench: Bench) -> None:
    described = {command["name"]: command for command in bench.do("commands")}
    assert described["pick_place"]["role"] == "viewer"
    assert described["start_pick_place"]["role"] == "operator"
    assert bench.do("glance", questions=[{"command": "pick_place"}])[0]["state"] == "IDLE"


def test_stop_of_the_robot_ends_the_job_and_a_hold_of_it_goes_on(bench: Bench) -> None:
    bench.do("start_pick_place")
    until(bench, "MOVE_TO_PLACE")
    bench.do("hold", robot="g60")
    bench.forward(5.0)
    assert bench.do("pick_place")["state"] == "MOVE_TO_PLACE"
    bench.do("cycle_start", robot="g60")
    until(bench, "SCANNING")
    bench.do("stop", robot="g60")
    status = bench.do("pick_place")
    assert (status["state"], status["reason"]) == ("IDLE", "STOPPED")
    bench.forward(5.0)
    assert bench.do("pick_place")["cycle_count"] == 2


def test_a_hand_that_was_opened_by_another_command_is_empty_in_the_next_cycle(bench: Bench) -> None:
    bench.do("start_pick_place")
    until(bench, "MOVE_TO_PLACE")
    bench.do("stop_pick_place")
    bench.forward(1.0)
    assert bench.do("pick_place")["holding"]
    bench.do("gripper_open")
    bench.forward(2.0)
    assert not bench.do("pick_place")["holding"]
    bench.do("inject", fault="force_input", on="g60.io", parameters={"pin": 10, "value": 0})
    bench.do("single_pick_place")
    until(bench, "ERROR")
    assert bench.do("pick_place")["code"] == "GRIP_FAILED"


def test_a_part_falls_out_of_the_hand_of_a_running_job_only_by_the_emergency_release(
    bench: Bench,
) -> None:
    bench.do("start_pick_place")
    until(bench, "MOVE_TO_PLACE")
    assert "running" in bench.refusal("gripper_open")
    bench.do("gripper_emergency_release")
    bench.forward(1.0)
    assert bench.do("pick_place")["code"] == "PART_LOST"


def test_no_object_in_the_hand_has_the_name_of_a_part(bench: Bench) -> None:
    thing = {"name": "cube_1", "type": "box", "dimensions_mm": [10, 10, 10]}
    assert "part 'cube_1'" in bench.refusal("attach", robot="g60", object=thing)
    bench.do("attach", robot="g60", object={**thing, "name": "camera"})


def test_the_job_needs_the_tool_of_its_mode(bench: Bench) -> None:
    bench.do("set_tool", robot="g60", tool=1)
    bench.forward(1.0)
    assert "PICKPLACE needs tool 2" in bench.refusal("start_pick_place")
    bench.do("set_tool", robot="g60", tool=2)
    bench.forward(1.0)
    bench.do("single_pick_place")
    until(bench, "RETRACT_PLACE")


def test_a_gripper_with_a_part_is_not_put_into_its_dock(tmp_path: Path) -> None:
    text = TEXT.replace("80, 0, 0, 0]}", "80, 0, 0, 0], dock: {x: 300, y: -400, z: 300}}")
    bench = Bench(written(tmp_path, text.replace("welder: {}", "tool_changer: {}")))
    try:
        bench.do("enable", robot="g60")
        bench.do("start_pick_place")
        until(bench, "MOVE_TO_PLACE")
        assert "running" in bench.refusal("mount_by_hand", tool=1)
        bench.do("stop_pick_place")
        bench.forward(2.0)
        assert "holds a part" in bench.refusal("change_tool", tool=0)
        bench.do("release_part")
        bench.forward(2.0)
        bench.do("change_tool", tool=0)
    finally:
        bench.close()
