"""The line that is shown is that of the file that runs, never a total of the session."""

import pytest
from tests.benches import Bench, bench_of

__all__ = ["bench_of"]

PROGRAM = "(comment)\nG1 A10 F600\n\nG1 A-10\n"


def shown(bench: Bench) -> tuple[int, int]:
    view = bench.live.watch.look().robots["g60"].line
    return view, next(iter(bench.live.operator.robots)).condition().line


@pytest.mark.parametrize("runs", [1, 3])
def test_header_and_state_show_the_line_of_the_file(arm: Bench, runs: int) -> None:
    for _ in range(runs):
        arm.do("load_program", robot="g60", text=PROGRAM)
        arm.do("run_program", robot="g60")
        arm.forward(0.5)
        assert shown(arm) == (2, 2)
        arm.forward(2.1)
        assert shown(arm) == (4, 4)
        arm.forward(10.0)
    assert shown(arm) == (0, 0)


def test_a_single_line_is_in_no_file(arm: Bench) -> None:
    arm.do("send_gcode", robot="g60", line="G1 A10 F600")
    arm.do("send_gcode", robot="g60", line="G1 A-10")
    arm.forward(0.5)
    assert shown(arm) == (0, 0)


def test_a_contact_of_a_single_line_names_no_line(arm: Bench) -> None:
    arm.do("send_gcode", robot="g60", line="G0 A1")
    arm.do("send_gcode", robot="g60", line="G0 B60 C165")
    arm.forward(20.0)
    texts = [e.text for e in arm.do("events")["events"] if e.kind == "collision"]
    assert texts
    assert not any(", line" in text for text in texts)


def test_a_single_line_has_no_number_of_the_session(arm: Bench) -> None:
    for line in ("G0 A1", "G0 A2", "G1 X1"):
        arm.do("send_gcode", robot="g60", line=line)
    arm.forward(2.0)
    assert arm.facts("g60")["error"] == "G1: needs a feed: F is 0"
