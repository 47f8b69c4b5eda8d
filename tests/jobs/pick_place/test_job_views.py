"""Queries that the pick & place page draws: tables, cycles, places of a pallet, seen objects."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.benches import Bench
from tests.jobs.pick_place.pick_cell import TEXT, written

from understudy.jobs.pick_place.state import CYCLE, RUNNING, TRANSITIONS
from understudy.ports.modes import CHANGEOVER_STEPS
from understudy.vision.commands import MISSES_KEPT


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(written(tmp_path))
    bench.do("enable", robot="g60")
    yield bench
    bench.close()


def test_the_tables_are_those_of_the_jobs(bench: Bench) -> None:
    tables = bench.do("job_tables")
    assert tables["running"] == RUNNING
    assert {(a, event): b for a, event, b in tables["cycle"]} == CYCLE
    assert {(a, event): b for a, event, b in tables["transitions"]} == TRANSITIONS
    assert tables["changeover"] == CHANGEOVER_STEPS


def test_cycles_are_kept_with_their_times_and_faults(bench: Bench) -> None:
    assert bench.do("pick_place_cycles")["cycles"] == []
    bench.do("start_pick_place", max_cycles=2)
    bench.forward(30.0)
    before = bench.do("snapshot")["snapshot"]
    bench.do("single_pick_place")
    bench.forward(0.5)
    bench.do("stop_pick_place")
    rows = bench.do("pick_place_cycles")["cycles"]
    assert [(row.number, row.success, row.code) for row in rows] == [
        (1, True, ""), (2, True, ""), (3, False, "STOPPED"),
    ]  # fmt: skip
    assert rows[1].seconds == bench.do("pick_place")["statistics"]["last_s"] > 1.0
    bench.do("restore", snapshot=before)
    assert [row.number for row in bench.do("pick_place_cycles")["cycles"]] == [1, 2]
    bench.do("single_pick_place")
    bench.forward(15.0)
    rows = bench.do("pick_place_cycles")["cycles"]
    assert [(row.number, row.success) for row in rows] == [(1, True), (2, True), (3, True)]


def test_a_layer_of_the_pallet_lists_its_places_in_their_order(tmp_path: Path) -> None:
    bench = Bench(written(tmp_path, TEXT.replace("layers: 1, pitch_x", "layers: 2, pitch_x")))
    layer = bench.do("pallet_layer", layer=1)
    assert layer["places"] == [[4, 0, 0], [5, 0, 1], [6, 1, 1], [7, 1, 0]]  # SNAKE
    assert (layer["rows"], layer["columns"], layer["layers"]) == (2, 2, 2)
    bench.do("set_pallet_index", index=6)
    assert bench.do("pallet_layer")["layer"] == 1
    assert bench.ask("pallet_layer", layer=2).reason == "there is no layer 2; allowed: 0…1"
    bench.close()


def test_vision_shows_what_it_has_seen_in_pixels(bench: Bench) -> None:
    empty = bench.do("vision_result")
    assert (empty["frame_id"], empty["objects"], empty["age_s"]) == (0, [], None)
    assert empty["camera"] == {"width": 1280, "height": 960, "mount": "eye_in_hand"}
    before = bench.do("snapshot")["snapshot"]
    bench.do("single_pick_place")
    bench.forward(12.0)
    seen = bench.do("vision_result")
    assert seen["frame_id"] == 1
    assert seen["age_s"] > 1.0
    assert len(seen["objects"]) == 4
    for each in seen["objects"]:
        x, y, width, height = each["bbox"]
        origin, *ends = np.array(each["axes_px"])
        assert x < origin[0] < x + width
        assert y < origin[1] < y + height
        assert max(np.linalg.norm(end - origin) for end in ends) > 10.0
    bench.do("restore", snapshot=before)
    assert bench.do("vision_result")["objects"] == []


def test_the_picture_of_a_result_is_from_where_the_robot_stood(tmp_path: Path) -> None:
    text = TEXT.replace("    gripper: {}", "    gripper: {}\n    camera: {}")
    bench = Bench(written(tmp_path, text))
    bench.do("enable", robot="g60")
    assert "the next result has one" in bench.refusal("vision_picture")
    bench.do("single_pick_place")
    bench.forward(12.0)
    seen = bench.do("vision_picture")
    assert (seen["frame_id"], seen["width"], seen["height"]) == (1, 640, 480)
    assert seen["objects"] == bench.do("vision_result")["objects"]
    assert seen["data"] != bench.do("camera_picture", width=640)["data"]  # the robot has moved on
    assert bench.do("vision_picture")["data"] == seen["data"]
    depth = bench.do("vision_picture", depth=True)
    assert 0.0 < depth["nearest_mm"] < depth["farthest_mm"]
    assert "no picture without objects" in bench.refusal("vision_picture", which="miss")
    for part in bench.do("parts")["parts"]:
        bench.do("remove_part", name=part["name"])
    bench.do("single_pick_place")
    bench.forward(12.0)
    miss = bench.do("vision_picture", which="miss")
    assert miss["frame_id"] > 1
    assert miss["objects"] == []
    assert 2 <= miss["misses"] <= MISSES_KEPT
    before = bench.do("vision_picture", which="miss", back=1)
    assert before["time_s"] < miss["time_s"]
    for _ in range(2):  # more misses than are kept
        bench.do("single_pick_place")
        bench.forward(12.0)
    assert bench.do("vision_picture", which="miss", back=MISSES_KEPT - 1)["misses"] == MISSES_KEPT
    assert bench.refusal("vision_picture", which="miss", back=MISSES_KEPT)
    bench.close()
