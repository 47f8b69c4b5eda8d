"""MDI: one line in the language of a robot, with its answer and a history."""

from collections.abc import Callable

import pytest
from tests.benches import Bench


@pytest.mark.parametrize(
    ("cell", "robot", "line", "axis", "value"),
    [
        ("g60_welding", "g60", "G1 A12 F6000", 0, 12.0),
        ("grblhal_6axis", "machine", "G1 X15 F400", 0, 15.0),
        ("kuka_eki", "kuka", "G1 X20 Y0 Z80 A0 B0 C0 F100", 0, 20.0),
        ("text_robot", "bench", "MOVE_ABS 100,50,150,0,0,0", 0, 100.0),
    ],
)
def test_a_line_moves_every_kind_of_robot(
    bench_of: Callable[[str], Bench], cell: str, robot: str, line: str, axis: int, value: float
) -> None:
    bench = bench_of(cell)
    if "drives" in bench.facts(robot)["capabilities"]:
        bench.do("enable", robot=robot)
    answer = bench.do("mdi", robot=robot, line=line)
    assert (answer["line"], answer["state"]) == (line, "running")
    bench.forward(20.0)
    [entry] = bench.do("mdi_history", robot=robot)["entries"]
    assert (entry["state"], entry["answer"]) == ("done", "")
    where = bench.joints(robot) if robot == "g60" else bench.pose(robot)
    assert where[axis] == pytest.approx(value, abs=1e-3)


def test_a_line_that_cannot_be_read_or_carried_out_says_why(arm: Bench) -> None:
    unread = arm.do("mdi", robot="g60", line="G1 A")
    assert unread["state"] == "refused"
    assert "column" in unread["answer"]
    assert "line" not in unread["answer"], "no running total of the session"
    arm.do("mdi", robot="g60", line="G0 B75")
    arm.forward(1.0)
    entry = arm.do("mdi_history", robot="g60")["entries"][-1]
    assert entry["state"] == "failed"
    assert "J2 = 75.0° is outside" in entry["answer"]
    assert arm.do("mdi", robot="g60", line="G0 B5")["state"] == "refused", "until reset"
    arm.do("reset", robot="g60")
    arm.do("enable", robot="g60")
    assert arm.do("mdi", robot="g60", line="; only a comment")["state"] == "refused"
    assert arm.do("mdi", robot="g60", line="G0 B5")["state"] == "running"
    assert arm.do("mdi", robot="g60", line="G0 B6")["answer"].startswith(
        "the robot must be at rest"
    )


def test_a_refused_line_names_the_error_as_an_earlier_one(arm: Bench) -> None:
    arm.do("mdi", robot="g60", line="G0 B75")
    arm.forward(1.0)
    refused = arm.do("mdi", robot="g60", line="G0 B5")
    assert refused["state"] == "refused"
    assert refused["answer"].startswith("not started, reset first: an earlier error")


def test_the_outcome_of_a_line_is_noted_though_a_refused_line_came_meanwhile(arm: Bench) -> None:
    arm.do("mdi", robot="g60", line="G1 A12 F600")
    arm.do("mdi", robot="g60", line="G1 A0 F600")
    arm.forward(20.0)
    states = [entry["state"] for entry in arm.do("mdi_history", robot="g60")["entries"]]
    assert states == ["done", "refused"]


def test_a_text_robot_answers_in_its_own_words(bench: Bench) -> None:
    entry = bench.do("mdi", robot="bench", line="MOVE_ABS 1,2")
    assert entry["state"] == "refused"
    assert "x,y,z" in entry["answer"]


def test_no_line_while_a_program_runs_and_the_program_stays_loaded(arm: Bench) -> None:
    text = "G1 A5 F600\nG1 A0\n"
    arm.do("load_program", robot="g60", text=text, name="swing")
    arm.do("run_program", robot="g60")
    entry = arm.do("mdi", robot="g60", line="G0 B5")
    assert entry["state"] == "refused"
    assert entry["answer"] == "a program is running on g60: no MDI line until it ends"
    arm.forward(10.0)
    assert arm.do("program", robot="g60")["state"] == "done"
    arm.do("mdi", robot="g60", line="G0 A3")
    arm.forward(5.0)
    program = arm.do("program", robot="g60")
    assert (program["text"], program["state"]) == (text, "done")
    lines = [each["line"] for each in arm.do("mdi_history", robot="g60")["entries"]]
    assert lines == ["G0 B5", "G0 A3"]


def test_drives_off_and_a_stopped_cell_are_named(bench_of: Callable[[str], Bench]) -> None:
    bench = bench_of("g60_welding")
    assert "drives" in bench.do("mdi", robot="g60", line="G0 A3")["answer"]
    bench.do("enable", robot="g60")
    bench.do("stop")
    assert bench.do("mdi", robot="g60", line="G0 A3")["state"] == "refused"
    assert bench.do("mdi_history", robot="g60")["entries"][-1]["number"] == 2
