"""The end of a run by an operator, the part that the hand then has, and a source without parts."""

import math
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.benches import Bench

from understudy.app.build import with_options
from understudy.config import load_config
from understudy.jobs.pick_place.headless import Summary, run_headless
from understudy.jobs.pick_place.status import ALARMS


@pytest.fixture
def sorting(bench_of: Callable[[str], Bench]) -> Bench:
    bench = bench_of("sorting")
    bench.do("enable", robot="g60")
    bench.do("start_pick_place")
    return bench


def job(bench: Bench) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(bench.do("pick_place"))
    return found


def until(bench: Bench, holds: Callable[[dict[str, Any]], bool], step: float = 0.05) -> None:
    for _ in range(round(120.0 / step)):
        if holds(job(bench)):
            return
        bench.forward(step)
    raise AssertionError(f"not within 120 s: {job(bench)}")


def stopped_in(bench: Bench, state: str) -> None:
    until(bench, lambda now: now["state"] == state and now["holding"])
    bench.forward(0.1)
    assert job(bench)["state"] == state
    bench.do("stop_pick_place")
    until(bench, lambda now: not bench.facts("g60")["moving"])


def parts(bench: Bench) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in msgspec.to_builtins(bench.do("parts"))["parts"]}


# ── finish the cycle, then stop ──


def test_the_run_ends_after_the_present_cycle(sorting: Bench) -> None:
    until(sorting, lambda now: now["state"] == "MOVE_TO_PLACE")
    assert sorting.do("finish_pick_place")["running"]
    assert job(sorting)["cycles_left"] == 0
    snapshot = sorting.do("snapshot")
    until(sorting, lambda now: not now["running"])
    sorting.do("restore", **snapshot)
    until(sorting, lambda now: not now["running"])
    end = job(sorting)
    assert (end["state"], end["reason"], end["holding"]) == ("IDLE", "DONE", False)
    assert (end["cycle_count"], end["success_count"], end["fail_count"]) == (1, 1, 0)
    assert "not running" in sorting.refusal("finish_pick_place")


# ── the part in the hand after a stop ──


@pytest.mark.parametrize("state", ["RETRACT_PICK", "MOVE_TO_PLACE", "APPROACH_PLACE"])
def test_a_start_goes_on_with_the_part_in_the_hand(sorting: Bench, state: str) -> None:
    stopped_in(sorting, state)
    held = next(name for name, part in parts(sorting).items() if part["holder"])
    assert job(sorting)["goes_on"]
    snapshot = sorting.do("snapshot")
    sorting.do("restore", **snapshot)
    sorting.do("start_pick_place", max_cycles=1)
    until(sorting, lambda now: not now["running"])
    end = job(sorting)
    assert (end["reason"], end["success_count"], end["holding"]) == ("DONE", 1, False)
    assert sum(end["statistics"]["by_class"].values()) == 1
    assert end["statistics"]["mean_s"] == 0.0, "half a cycle is no cycle time"
    there = parts(sorting)[held]
    assert (there["state"], there["holder"]) == ("resting", "")
    assert sorting.do("metrics")["collisions_detected"] == 0
    whole = run_headless(load_config("sorting"), cycles=1)
    assert isinstance(whole, Summary)
    assert end["statistics"]["by_class"] == whole.by_class


def test_the_part_is_put_back_where_it_was_picked(sorting: Bench) -> None:
    before = parts(sorting)
    stopped_in(sorting, "MOVE_TO_PLACE")
    held = next(name for name, part in parts(sorting).items() if part["holder"])
    sorting.do("put_back_part")
    snapshot = sorting.do("snapshot")
    sorting.do("restore", **snapshot)
    until(sorting, lambda now: not sorting.facts("g60")["moving"] and not now["holding"], 0.5)
    sorting.forward(5.0)
    there = parts(sorting)[held]
    assert (there["state"], there["holder"]) == ("resting", "")
    assert math.dist(there["position_mm"], before[held]["position_mm"]) < 1.0
    assert not job(sorting)["goes_on"]
    assert "no part of the last run" in sorting.refusal("put_back_part")
    sorting.do("start_pick_place", max_cycles=1)
    until(sorting, lambda now: not now["running"])
    assert job(sorting)["success_count"] == 1
    assert sorting.do("metrics")["collisions_detected"] == 0


@pytest.mark.parametrize("end", ["stop_pick_place", "emergency_stop"])
def test_a_put_back_that_is_broken_off_leaves_the_part_in_the_hand(
    sorting: Bench, end: str
) -> None:
    stopped_in(sorting, "MOVE_TO_PLACE")
    sorting.do("put_back_part")
    sorting.forward(0.3)
    sorting.do(end)
    until(sorting, lambda now: not sorting.facts("g60")["moving"])
    sorting.do("reset", robot="g60")
    sorting.do("enable", robot="g60")
    sorting.do("retract_pick_place")
    sorting.forward(5.0)
    assert job(sorting)["goes_on"]
    sorting.do("start_pick_place", max_cycles=1)
    until(sorting, lambda now: not now["running"])
    assert job(sorting)["success_count"] == 1


def test_a_part_that_an_operator_has_gripped_is_not_gone_on_with(sorting: Bench) -> None:
    stopped_in(sorting, "MOVE_TO_PLACE")
    sorting.do("release_part")
    sorting.forward(2.0)
    assert not job(sorting)["goes_on"]
    assert "no part of the last run" in sorting.refusal("put_back_part")


# ── a source without parts ──


def test_sorting_that_has_sorted_everything_is_a_success() -> None:
    summary = run_headless(load_config("sorting"))
    assert isinstance(summary, Summary)
    assert (summary.ended, summary.failed) == ("SOURCE_EMPTY", 0)
    assert summary.cycles == summary.success == sum(summary.by_class.values()) > 1
    assert "no more seen" in summary.error
    assert summary.passed, "exit code 0"


def test_an_empty_source_is_an_alarm_if_nothing_was_placed(
    bench_of: Callable[[str], Bench],
) -> None:
    bench = bench_of("sorting")
    for name in parts(bench):
        bench.do("remove_part", name=name)
    bench.do("enable", robot="g60")
    bench.do("start_pick_place")
    until(bench, lambda now: not now["running"])
    end = job(bench)
    assert (end["reason"], end["alarm"]) == ("NO_OBJECT", "the source is empty: no part is seen")
    assert bench.do(end["clears"])["alarm"] == ""


@pytest.mark.parametrize(
    ("change", "reason", "alarm"),
    [
        (("", "scenario: {rules: {night: {fault: frame_dark, on: g60.camera}}}"), "CAMERA_DARK",
         "the camera is dark"),
        (("x: 550", "x: 1500"), "PLACE_OUT_OF_REACH", "the place is out of reach"),
        (("", ""), "DONE", ""),
    ],
)  # fmt: skip
def test_the_end_of_a_run_is_named(
    change: tuple[str, str], reason: str, alarm: str, tmp_path: Path
) -> None:
    """Through pictures: an empty one may also be a dark one."""
    text = files("understudy.jobs.pick_place").joinpath("catalog/cells/sorting.yaml").read_text()
    old, new = change
    text = text.replace("max: [650,", "max: [1650,")
    text = text.replace(old, new) if old else f"{text}\n{new}\n"
    cell = tmp_path / "cell.yaml"
    cell.write_text(text)
    summary = run_headless(with_options(load_config(str(cell)), {"vision": "process"}), cycles=1)
    assert isinstance(summary, Summary)
    assert summary.ended == reason, summary.error
    assert ALARMS.get(summary.ended, "") == alarm
