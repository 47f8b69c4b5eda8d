"""After a lost arc the program goes on at the place where it was lost, with an overlap."""

from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest
from tests.benches import Bench

SEAM = files("understudy").joinpath("catalog/programs/seam.gcode").read_text()
LENGTH = 200.0
LINE = 11


def welder(bench: Bench) -> Any:
    return bench.ask("status")["parts"]["g60.welder"]


def recovered(bench: Bench) -> None:
    bench.do("reset", robot="g60")
    bench.do("reset")
    bench.do("enable", robot="g60")


@pytest.fixture
def lost(bench_of: Callable[[str], Bench]) -> Bench:
    """The arc was lost in the middle of the seam, after about 81 mm."""
    bench = bench_of("g60_welding")
    bench.do("enable", robot="g60")
    bench.do("load_program", robot="g60", text=SEAM, name="seam.gcode")
    bench.do("run_program", robot="g60")
    lose_after(bench, 81.0)
    return bench


def lose_after(bench: Bench, mm: float) -> None:
    for _ in range(1200):
        if welder(bench).total_weld_length_mm >= mm:
            break
        bench.forward(0.05)
    bench.do("inject", fault="arc_fault", on="g60.welder")
    bench.forward(3.0)
    assert bench.do("program", robot="g60")["state"] == "failed"


def welded(bench: Bench) -> float:
    """Millimetres under the arc since the last reset, to the end of the program."""
    bench.forward(60.0)
    shown = bench.do("program", robot="g60")
    assert (shown["state"], shown["error"]) == ("done", "")
    return float(welder(bench).total_weld_length_mm)


def test_the_seam_is_welded_from_the_place_of_the_loss_with_the_overlap(lost: Bench) -> None:
    shown = lost.do("program", robot="g60")
    assert shown["line"] == LINE
    assert shown["lost_mm"] == pytest.approx(81.0, abs=1.5)
    recovered(lost)
    lost.do("jog", robot="g60", frame="base", axis=2, speed=20.0, step=60.0)  # away from the part
    lost.forward(6.0)
    snapshot = lost.do("snapshot")
    lost.do("restore", **snapshot)
    lost.do("continue_weld", robot="g60", overlap_mm=5.0)
    assert welded(lost) == pytest.approx(LENGTH - shown["lost_mm"] + 5.0, abs=1.0)
    assert lost.do("metrics")["collisions_detected"] == 0
    trail = lost.ask("status")["parts"]["g60.welder"]
    assert not trail.fault


def test_an_arc_that_is_lost_again_goes_on_again(lost: Bench) -> None:
    recovered(lost)
    lost.do("continue_weld", robot="g60", overlap_mm=5.0)
    lose_after(lost, 40.0)
    again = lost.do("program", robot="g60")
    assert again["lost_mm"] == pytest.approx(81.0 - 5.0 + 40.0, abs=2.5)
    recovered(lost)
    lost.do("continue_weld", robot="g60")
    assert welded(lost) == pytest.approx(LENGTH - again["lost_mm"] + 5.0, abs=1.0)


def test_an_overlap_that_is_longer_than_the_seam_so_far_begins_the_line(lost: Bench) -> None:
    recovered(lost)
    lost.do("continue_weld", robot="g60", overlap_mm=500.0)
    assert welded(lost) == pytest.approx(LENGTH, abs=1.0)


def test_without_a_lost_arc_there_is_nothing_to_continue(arm: Bench) -> None:
    assert "no arc" in arm.refusal("continue_weld", robot="g60")
    arm.do("load_program", robot="g60", text="G90 G21\nG1 A20 F600\n")
    arm.do("run_program", robot="g60")
    arm.forward(0.5)
    arm.do("emergency_stop", robot="g60")
    arm.forward(1.0)
    assert arm.do("program", robot="g60")["lost_mm"] is None
    recovered(arm)
    assert "no arc" in arm.refusal("continue_weld", robot="g60")


def test_the_fault_must_be_reset_first(lost: Bench) -> None:
    assert "weld fault" in lost.refusal("continue_weld", robot="g60")
    recovered(lost)
    lost.do("load_program", robot="g60", text=SEAM.replace("G1 Y100", "G91 G1 Y200"))
    lost.do("run_program", robot="g60")
    lose_after(lost, 20.0)
    recovered(lost)
    assert "G91" in lost.refusal("continue_weld", robot="g60")
