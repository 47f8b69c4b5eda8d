"""Program commands."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.benches import Bench

from understudy.cli.run import _outcome
from understudy.gcode.dialect import GRBLHAL_ARM
from understudy.operator.robots import Robot
from understudy.robots.grblhal.language import GcodeLanguage
from understudy.robots.kuka.operator import RecordLanguage
from understudy.robots.text_robot.operator import MoveLanguage
from understudy.simulation.program.run import PROCESS_OFF

EXAMPLES = {"MOVE_ABS": "1,2,3,0,0,0", "MOVE_REL": "1,2,3"}
TEXT = "G90 G21\nG1 A20 F600\n\nG1 A0\n"


def test_a_program_is_loaded_and_run_to_its_end(arm: Bench) -> None:
    shown = arm.do("load_program", robot="g60", text=TEXT, name="swing.gcode")
    assert (shown["name"], shown["state"], shown["lines"]) == ("swing.gcode", "idle", 4)
    arm.do("run_program", robot="g60")
    arm.forward(1.0)
    shown = arm.do("program", robot="g60")
    assert (shown["state"], shown["line"], shown["text"]) == ("running", 2, TEXT)
    arm.forward(4.0)
    assert arm.do("program", robot="g60")["state"] == "done"
    assert arm.do("events")["events"][-1].text == "swing.gcode done"


def test_a_long_program_is_read_in_slices(arm: Bench) -> None:
    text = "".join(f"G1 A{n % 7} F600\n" for n in range(2000)) + "G1 A"
    assert arm.do("load_program", robot="g60", text=text)["lines"] == 2001
    assert "line 2001, column" in arm.refusal("run_program", robot="g60")


def test_a_program_is_paused_continued_and_stopped(arm: Bench) -> None:
    arm.do("load_program", robot="g60", text=TEXT)
    arm.do("run_program", robot="g60")
    arm.forward(1.0)
    arm.do("pause_program", robot="g60")
    arm.forward(1.0)
    assert arm.do("program", robot="g60")["state"] == "paused"
    assert arm.do("run_program", robot="g60")["state"] in ("running", "paused")
    arm.forward(0.5)
    assert arm.do("stop_program", robot="g60")["state"] == "idle"
    assert arm.refusal("stop_program", robot="g60") == "no program is running"


def test_a_program_is_stepped_from_a_line(arm: Bench) -> None:
    arm.do("load_program", robot="g60", text=TEXT)
    arm.do("run_program", robot="g60", from_line=2, step=True)
    arm.forward(3.0)
    shown = arm.do("program", robot="g60")
    assert (shown["state"], shown["line"], shown["step"]) == ("paused", 2, True)
    arm.do("step_program", robot="g60")
    arm.forward(3.0)
    assert arm.do("program", robot="g60")["state"] == "done"


INTO_THE_TABLE = "G90 G21\nG1 B60 C60 F6000\nG1 B0 C37\nG1 B60 C60\nG1 B0 C37\n"


def run_into_the_table(arm: Bench, reaction: str) -> Any:
    arm.do("on_collision", robot="g60", reaction=reaction)
    arm.do("load_program", robot="g60", text=INTO_THE_TABLE, name="table.gcode")
    arm.do("run_program", robot="g60")
    arm.forward(30.0)
    return arm.do("program", robot="g60")


def test_a_program_that_ends_with_collisions_says_how_many(arm: Bench) -> None:
    shown = run_into_the_table(arm, "report")
    met = shown["collisions"]
    assert (shown["state"], met) == ("done", arm.do("metrics")["collisions_detected"])
    assert met > 1
    assert arm.do("events")["events"][-1].text == f"table.gcode done, {met} collisions"
    robot = arm.live.operator.robots.find("g60")
    assert isinstance(robot, Robot)
    assert f"with {met} collisions" in _outcome(robot)[0], "`understudy run` ends with exit code 1"
    snapshot = arm.do("snapshot")
    arm.do("restore", **snapshot)
    assert arm.do("program", robot="g60")["collisions"] == met, "snapshots have it"
    arm.do("load_program", robot="g60", text=TEXT)
    assert arm.do("program", robot="g60")["collisions"] == 0


def test_the_reaction_to_a_collision_is_switched_while_the_cell_runs(arm: Bench) -> None:
    assert arm.ask("status")["parts"]["g60.collision"].on_collision == "stop", "as shipped"
    shown = run_into_the_table(arm, "stop")
    assert (shown["state"], shown["line"], shown["collisions"]) == ("failed", 2, 1)
    assert "collides with" in shown["error"]
    arm.do("on_collision", reaction="report")
    snapshot = arm.do("snapshot")
    arm.do("on_collision", reaction="stop")
    arm.do("restore", **snapshot)
    assert arm.ask("status")["parts"]["g60.collision"].on_collision == "report"
    assert "stop" in arm.refusal("on_collision", reaction="brake")
    assert "robot with a collision watch" in arm.refusal("on_collision", reaction="stop", robot="x")


FOUR = "G90 G21\nG1 A20 F6000\n\n; there\nG1 A0\nG1 A10\n"


def test_a_run_stops_before_its_breakpoints_and_goes_on(arm: Bench) -> None:
    shown = arm.do("load_program", robot="g60", text=FOUR, breakpoints=[3, 6, 99])
    assert shown["breakpoints"] == (4, 6), "of an empty line the next one; none behind the end"
    arm.do("run_program", robot="g60")
    for line, angle in ((4, 20.0), (6, 0.0)):
        arm.forward(3.0)
        shown = arm.do("program", robot="g60")
        assert (shown["state"], shown["line"], shown["step"]) == ("paused", line, False)
        assert arm.do("sample", robot="g60", count=1)["rows"][-1]["joints_deg"][0] == pytest.approx(
            angle
        ), "the line of the breakpoint has not begun"
        arm.do("run_program", robot="g60")
    arm.forward(3.0)
    shown = arm.do("program", robot="g60")
    assert (shown["state"], shown["breakpoints"]) == ("done", (4, 6)), "kept for the next run"


def test_a_breakpoint_of_a_running_program_counts_where_the_line_was_not_sent(arm: Bench) -> None:
    arm.do("load_program", robot="g60", text=FOUR, breakpoints=[5])
    arm.do("run_program", robot="g60")
    answer = arm.do("set_breakpoints", robot="g60", lines=[2, 6])
    assert (answer["breakpoints"], answer["late"]) == ((2, 6), [2]), "line 2 is under way already"
    arm.forward(9.0)
    shown = arm.do("program", robot="g60")
    assert (shown["state"], shown["line"]) == ("paused", 6)
    arm.do("step_program", robot="g60")
    arm.forward(3.0)
    assert arm.do("program", robot="g60")["state"] == "done", "steps go on from a breakpoint"


def test_breakpoints_are_in_a_snapshot_also_of_a_run_that_stands_at_one(arm: Bench) -> None:
    arm.do("load_program", robot="g60", text=FOUR, breakpoints=[5])
    arm.do("run_program", robot="g60")
    arm.forward(3.0)
    saved = arm.do("snapshot")["snapshot"]
    arm.do("set_breakpoints", robot="g60", lines=[])
    arm.do("run_program", robot="g60")
    arm.do("restore", snapshot=saved)
    shown = arm.do("program", robot="g60")
    assert (shown["state"], shown["line"], shown["breakpoints"]) == ("paused", 5, (5,))


def test_a_text_is_checked_without_being_loaded(arm: Bench) -> None:
    arm.do("load_program", robot="g60", text=TEXT)
    found = arm.do("check_program", robot="g60", text="G1 A1 F9\nG1 A\n\nG7\n")
    assert [(each.line, each.column) for each in found["problems"]] == [(2, 4), (4, 1)]
    assert "number" in found["problems"][0].message
    assert arm.do("program", robot="g60")["text"] == TEXT


def test_every_word_of_a_language_is_one_that_its_reader_takes(arm: Bench) -> None:
    """Completion shows the interpreter's own table: no word is refused as unknown."""
    words = {each["word"]: each for each in arm.do("program_words", robot="g60")}
    assert {"G0", "G1", "G38.2", "M3", "M428"} <= set(words)
    assert "G65" not in words, "this controller has none"
    assert (words["M3"]["switches"], words["G4"]["parameters"]) == ("Arc", "P seconds")
    assert all(each["meaning"] for each in words.values())
    for language in (RecordLanguage(1, 1), MoveLanguage(), GcodeLanguage(GRBLHAL_ARM)):
        for word in language.words():
            (line,) = language.lines(f"{word.word} {EXAMPLES.get(word.word, '')}")
            assert line.problem is None or "support" not in line.problem.reason, word
            assert line.problem is None or "not a move" not in line.problem.reason, word


def test_other_motions_are_refused_while_a_program_runs(arm: Bench) -> None:
    arm.do("load_program", robot="g60", text=TEXT)
    arm.do("run_program", robot="g60")
    meddling: dict[str, dict[str, Any]] = {
        "send_gcode": {"line": "G0 A0"},
        "jog": {"frame": "joint", "axis": 0, "speed": 1},
        "home": {},
        "move_to": {"joints_deg": [0] * 6},
        "stop_jog": {},
    }
    for name, parameters in meddling.items():
        assert "a program is running" in arm.refusal(name, robot="g60", **parameters)
    arm.forward(0.5)
    arm.do("stop", robot="g60")
    arm.forward(1.0)
    shown = arm.do("program", robot="g60")
    assert (shown["state"], shown["error"]) == ("idle", "")


@pytest.mark.parametrize("whole_cell", [False, True])
def test_a_program_that_the_operator_stops_has_not_failed(bench: Bench, whole_cell: bool) -> None:
    robots = {"g60": "joint_tour.gcode", "bench": "text_square.txt", "kuka": "kuka_square.gcode"}
    for robot, name in robots.items():
        text = bench.do("read_program", robot=robot, name=name)["text"]
        bench.do("load_program", robot=robot, text=text)
    bench.do("run_programs")
    bench.forward(1.0)
    assert {bench.do("program", robot=name)["state"] for name in robots} == {"running"}
    if whole_cell:
        bench.do("stop")
    for name in () if whole_cell else robots:
        bench.do("stop", robot=name)
    bench.forward(5.0)
    for name in robots:
        shown, facts = bench.do("program", robot=name), bench.facts(name)
        assert (shown["state"], shown["error"], facts["error"]) == ("idle", "", ""), name
        assert facts["state"] == ("Stopped" if whole_cell and name == "bench" else "Idle"), name


def test_a_text_robot_moves_again_after_an_ordinary_stop(bench: Bench) -> None:
    """Its protocol knows an emergency stop only; that one still needs a reset."""
    there = {"robot": "bench", "pose_mm_deg": [50, 0, 100, 0, 0, 0]}
    bench.do("move_to", **there)
    bench.forward(0.1)
    bench.do("stop", robot="bench")
    assert not bench.facts("bench")["moving"]
    bench.do("move_to", **there)
    bench.do("emergency_stop", robot="bench")
    bench.do("stop", robot="bench")
    assert bench.facts("bench")["state"] == "EmergencyStopped"
    assert "emergency stop" in bench.refusal("move_to", **there)


def test_a_robot_that_declares_no_programs_refuses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("understudy.robots.text_robot.program_run")
    cell = Bench("text_robot")
    for name in ("run_program", "preview"):
        refused = cell.refusal(name, robot="bench")
        assert refused == "bench (text_robot) runs no programs"
    cell.close()


def test_a_run_without_a_program_is_refused(bench: Bench) -> None:
    for robot in ("g60", "bench", "kuka"):
        assert bench.refusal("run_program", robot=robot) == "no program is loaded"


# ── looking ahead ──


def test_the_preview_agrees_with_the_run(arm: Bench) -> None:
    text = "G1 X450 Y0 Z400 A180 B0 C0 F6000\nG1 Y100\nM3\n"
    found = arm.do("preview", robot="g60", text=text)
    assert set(found["lines"]) == {1, 2}
    assert found["tcp"][-1] == pytest.approx([0.45, 0.1, 0.4], abs=1e-6)
    assert len(found["q"]) == len(found["tcp"]) == len(found["times"]) <= 5000
    assert found["violations"] == []
    assert found["truncated"] is False
    for line in text.splitlines()[:2]:
        arm.do("send_gcode", robot="g60", line=line)
    arm.forward(found["times"][-1] + 0.1)
    assert arm.joints("g60") == pytest.approx(
        [value * 57.29577951308232 for value in found["q"][-1]], abs=1e-3
    )


def test_the_preview_of_a_kuka_is_in_the_cell_not_in_its_base(bench: Bench) -> None:
    found = bench.do("preview", robot="kuka", text="G1 X10 Y0 Z50 A0 B0 C0 F80\nG1 X20\n")
    assert found["tcp"][-1] == pytest.approx([0.47, -1.4, 0.25], abs=1e-6)


def test_the_preview_of_the_loaded_program_has_its_violations(arm: Bench) -> None:
    arm.do("load_program", robot="g60", text="G1 A400 F600\nG1 X\n")
    found = arm.do("preview", robot="g60")
    assert [(each["line"], each["kind"]) for each in found["violations"]] == [
        (1, "joint_limit"),
        (2, "syntax"),
    ]


def test_the_path_of_a_running_program_begins_where_the_program_has_begun(arm: Bench) -> None:
    text = "G1 X450 Y0 Z400 A180 B0 C0 F6000\nG1 Y100\nG1 Y-100 F600\n"
    arm.do("load_program", robot="g60", text=text)
    assert arm.do("preview", robot="g60")["lines"][0] == 1, "at rest: with the way to the program"
    arm.do("run_program", robot="g60")
    arm.forward(5.0)
    assert arm.do("program", robot="g60")["line"] == 3
    found = arm.do("preview", robot="g60")
    assert found["tcp"][0] == pytest.approx([0.45, 0.0, 0.4], abs=2e-3)
    assert len({len(found[name]) for name in ("times", "tcp", "q", "lines", "arc")}) == 1
    assert arm.do("preview", robot="g60", text=text)["lines"][0] == 1, "a text: from here"


def test_a_preview_is_truncated(arm: Bench) -> None:
    text = "\n".join(f"G1 A{n % 7} F60" for n in range(2100))
    found = arm.do("preview", robot="g60", text=text)
    assert found["truncated"] is True
    assert max(found["lines"]) <= 2000
    assert len(found["times"]) <= 5000


@pytest.mark.parametrize("whole_cell", [True, False])
def test_a_stop_ends_a_program_that_waits_in_steps(arm: Bench, whole_cell: bool) -> None:
    arm.do("load_program", robot="g60", text=TEXT)
    arm.do("run_program", robot="g60", step=True)
    arm.forward(1.0)
    assert arm.do("program", robot="g60")["state"] == "paused"
    arm.do("stop", **({} if whole_cell else {"robot": "g60"}))
    arm.forward(0.1)
    assert arm.do("program", robot="g60")["state"] in ("failed", "idle")
    assert arm.refusal("stop_program", robot="g60") == "no program is running"


@pytest.mark.parametrize("whole_cell", [True, False])
def test_one_reset_clears_the_controller_and_its_welder(
    bench_of: Callable[[str], Bench], whole_cell: bool
) -> None:
    cell = bench_of("g60_welding")
    cell.do("enable", robot="g60")
    cell.do("inject", fault="gas_fault", on="g60.welder")
    cell.do("send_gcode", robot="g60", line="M3")
    cell.forward(3.0)
    assert cell.do("status")["parts"]["g60.welder"].fault
    cell.do("reset", **({} if whole_cell else {"robot": "g60"}))
    cell.forward(0.1)
    assert not cell.do("status")["parts"]["g60.welder"].fault
    assert cell.facts("g60")["error"] == ""


@pytest.mark.parametrize("waiting", [5, 400])
def test_a_paused_program_does_not_keep_the_cell_busy(arm: Bench, waiting: int) -> None:
    """At `max` time runs ahead only while something goes on by itself: a hold does not."""
    arm.do(
        "load_program",
        robot="g60",
        text="".join(f"G1 A{n % 2 * 20} F600\n" for n in range(1, waiting)),
    )
    arm.do("run_program", robot="g60")
    arm.forward(1.0)
    assert arm.live._cell.busy()
    arm.do("pause_program", robot="g60")
    arm.forward(2.0)
    assert not arm.live._cell.busy()
    arm.do("run_program", robot="g60")
    assert arm.live._cell.busy()


# ── start inside a seam ──

SEAM = """\
G21 G90
G0 X450 Y-100 Z450 A180 B0 C0
M7
G1 Z350 F6000
M68 E0 Q4
M3
G1 Y0 F1200
G1 Y100
M5
M9
G0 Z450
"""


@pytest.fixture
def stopped_in_the_seam(arm: Bench) -> Bench:
    """Stopped in line 8, with arc and gas off, and jogged away."""
    arm.do("load_program", robot="g60", text=SEAM, name="seam")
    arm.do("run_program", robot="g60")
    while arm.do("program", robot="g60")["line"] < 8:
        arm.forward(0.05)
    arm.forward(1.0)
    arm.do("stop_program", robot="g60")
    arm.forward(3.0)
    arm.do("jog", robot="g60", frame="base", axis=2, speed=50, step=60)
    arm.forward(3.0)
    return arm


def welder(arm: Bench) -> Any:
    return arm.do("status")["parts"]["g60.welder"]


def test_a_start_inside_a_seam_is_a_question(stopped_in_the_seam: Bench) -> None:
    arm = stopped_in_the_seam
    refused = arm.ask("run_program", robot="g60", from_line=8)
    assert refused.code == PROCESS_OFF
    for words in ("M7 (line 3)", "M3 (line 6)", "'restore'", "'leave'"):
        assert words in refused.reason
    assert arm.do("program", robot="g60")["state"] == "idle"
    assert arm.do("process_before", robot="g60", from_line=8) == [
        {"word": "M7", "line": 3, "name": "Gas"},
        {"word": "M3", "line": 6, "name": "Arc"},
    ]
    assert arm.do("process_before", robot="g60", from_line=2) == []


def test_restored_the_seam_is_welded_from_the_start_of_the_line(
    stopped_in_the_seam: Bench,
) -> None:
    arm = stopped_in_the_seam
    before = welder(arm).total_weld_length_mm
    arm.do("clear_trail", robot="g60")
    arm.do("run_program", robot="g60", from_line=8, process="restore")
    arm.forward(30.0)
    shown = arm.do("program", robot="g60")
    assert (shown["state"], shown["warning"]) == ("done", "")
    assert welder(arm).total_weld_length_mm - before == pytest.approx(100.0, abs=1.0)
    _, trail, _ = arm.live.watch.look({}).trail["g60"]
    assert min(y for _, y, _ in trail) == pytest.approx(0.0, abs=0.002)
    assert {round(z, 3) for _, _, z in trail} == {0.35}


def test_left_off_the_program_runs_and_warns(stopped_in_the_seam: Bench) -> None:
    arm = stopped_in_the_seam
    before = welder(arm).total_weld_length_mm
    arm.do("run_program", robot="g60", from_line=8, process="leave")
    arm.forward(1.0)
    assert arm.do("program", robot="g60")["warning"] == "runs without M7, M3"
    arm.forward(30.0)
    assert welder(arm).total_weld_length_mm == before


def test_an_output_that_is_still_on_is_no_question(arm: Bench) -> None:
    text = "G90\nM64 P20\nG1 A5 F600\nG1 A10\n"
    arm.do("load_program", robot="g60", text=text)
    assert "M64 P20 (line 2)" in arm.refusal("run_program", robot="g60", from_line=4)
    arm.do("set_output", robot="g60", pin=20, value=True)
    arm.do("run_program", robot="g60", from_line=4)
