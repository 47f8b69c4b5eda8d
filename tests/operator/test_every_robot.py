"""Every kind of robot runs programs by the same commands."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.benches import Bench

from understudy.config import load_config
from understudy.offline.robot import NO_RULES, offline_robot
from understudy.offline.walk import PlannedMotion, PoseMotion

CELL = str(Path(__file__).parent / "every_robot.yaml")


class Case(NamedTuple):
    """A program of four moves on lines 2, 4, 5 and 6 that ends where it begins; a line that is
    refused when it is carried out, and one that cannot be read."""

    robot: str
    text: str
    refused: str
    unreadable: str


CASES = [
    Case("arm", "(out)\nG1 A10 F300\n\nG1 A20\nG1 B-5\nG1 A0 B0\n", "G1 A400", "G1 Q"),
    Case(
        "kuka",
        "(out)\nG1 X40 F20\n\nG1 Y30\nG1 Z20\nG1 X0 Y0 Z0\n",
        "G1 X9000",
        "G2 X1",
    ),
    Case(
        "machine",
        "(out)\nG21 G90 G1 X-40 F600\n\nG1 Y-30\nG1 Z-20\nG1 X0 Y0 Z0\n",
        "G43.1",
        "G1 Q",
    ),
    Case(
        "text",
        "# out\nMOVE_ABS 50,0,100,0,0,0\n\nMOVE_ABS 50,50,100,0,0,0\nMOVE_REL 0,0,10\nHOME\n",
        "MOVE_ABS 9000,0,0,0,0,0",
        "JUMP 1",
    ),
]


@pytest.fixture(params=CASES, ids=lambda tour: tour.robot)
def tour(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


@pytest.fixture
def cell() -> Iterator[Bench]:
    bench = Bench(CELL)
    bench.do("enable", robot="arm")
    yield bench
    bench.close()


def state(cell: Bench, robot: str) -> tuple[str, int]:
    shown = cell.do("program", robot=robot)
    return shown["state"], shown["line"]


def begin(cell: Bench, tour: Case, text: str = "", **options: object) -> None:
    cell.do("load_program", robot=tour.robot, text=text or tour.text, name="tour")
    cell.do("run_program", robot=tour.robot, **options)


def until(cell: Bench, robot: str, *wanted: str, patience: float = 60.0) -> tuple[str, int]:
    """Advances until the program is in one of the states."""
    for _ in range(round(patience / 0.1)):
        if state(cell, robot)[0] in wanted:
            return state(cell, robot)
        cell.forward(0.1)
    raise AssertionError(f"not {wanted} within {patience} s: {cell.do('program', robot=robot)}")


def place(cell: Bench, robot: str) -> list[float]:
    return [round(value, 3) for value in [*cell.joints(robot), *cell.pose(robot)]]


# ── from beginning to end ──


def test_every_robot_can_run_programs(cell: Bench) -> None:
    for robot in cell.do("robots")["robots"]:
        assert "program" in robot["capabilities"], robot["name"]
        assert robot["target_line"]


def test_a_program_runs_line_by_line_to_its_end(cell: Bench, tour: Case) -> None:
    before = place(cell, tour.robot)
    begin(cell, tour)
    lines = []
    while (now := state(cell, tour.robot))[0] == "running":
        lines.append(now[1])
        cell.forward(0.05)
    assert sorted(set(lines) - {1}) == [2, 4, 5, 6]
    assert lines == sorted(lines)
    assert now == ("done", 6)
    assert place(cell, tour.robot) == pytest.approx(before, abs=0.01)
    assert cell.do("events")["events"][-1].text == "tour done"


def test_a_run_takes_as_long_as_the_offline_check_says(cell: Bench, tour: Case) -> None:
    begin(cell, tour)
    until(cell, tour.robot, "done")
    events = offline_robot(load_config(CELL), tour.robot).events(tour.text, "", NO_RULES)
    ends = [event.plan.ends for event in events if isinstance(event, PlannedMotion)]
    if not ends:
        events = offline_robot(load_config(CELL), tour.robot).events(tour.text, "", NO_RULES)
        ends = [float(event.times[-1]) for event in events if isinstance(event, PoseMotion)]
    elapsed = cell.do("program", robot=tour.robot)["elapsed_s"]
    assert elapsed == pytest.approx(ends[-1], abs=0.06)


def test_a_preview_shows_the_path_of_the_tool(cell: Bench, tour: Case) -> None:
    shown = cell.do("preview", robot=tour.robot, text=tour.text)
    assert shown["violations"] == []
    assert set(shown["lines"]) >= {2, 4, 5, 6}
    assert len(shown["times"]) == len(shown["tcp"]) == len(shown["q"]) == len(shown["lines"])
    assert shown["tcp"][0] == pytest.approx(shown["tcp"][-1], abs=1e-5)
    wrong = cell.do("preview", robot=tour.robot, text=tour.unreadable)
    assert [found["line"] for found in wrong["violations"]] == [1]


# ── pause, step, stop, start in the middle ──


def test_a_pause_keeps_the_rest_until_the_program_goes_on(cell: Bench, tour: Case) -> None:
    begin(cell, tour)
    cell.forward(0.2)
    cell.do("pause_program", robot=tour.robot)
    cell.forward(0.01)
    assert state(cell, tour.robot)[0] == "paused"
    cell.forward(20.0)
    stands = place(cell, tour.robot)
    assert state(cell, tour.robot)[0] == "paused"
    cell.forward(5.0)
    assert place(cell, tour.robot) == stands
    cell.do("run_program", robot=tour.robot)
    assert until(cell, tour.robot, "done", "failed") == ("done", 6)


def test_a_program_runs_in_steps(cell: Bench, tour: Case) -> None:
    begin(cell, tour, step=True)
    seen = []
    while (now := until(cell, tour.robot, "paused", "done"))[0] == "paused":
        seen.append(now[1])
        cell.do("step_program", robot=tour.robot)
    assert [line for line in seen if line > 1] == [2, 4, 5]
    assert now == ("done", 6)


def test_a_stop_ends_motion_and_program(cell: Bench, tour: Case) -> None:
    begin(cell, tour)
    cell.forward(0.3)
    cell.do("stop_program", robot=tour.robot)
    cell.forward(2.0)
    stands = place(cell, tour.robot)
    cell.forward(20.0)
    assert place(cell, tour.robot) == stands
    assert state(cell, tour.robot)[0] == "idle"
    cell.do("reset", robot=tour.robot)
    if tour.robot == "arm":
        cell.do("enable", robot="arm")
    cell.do("run_program", robot=tour.robot)
    assert until(cell, tour.robot, "done", "failed")[0] == "done"


@pytest.mark.parametrize(("action", "ended"), [("stop", "idle"), ("emergency_stop", "failed")])
def test_a_stop_of_the_robot_ends_its_program(
    cell: Bench, tour: Case, action: str, ended: str
) -> None:
    begin(cell, tour)
    cell.forward(0.3)
    cell.do(action, robot=tour.robot)
    assert until(cell, tour.robot, ended, patience=3.0)
    cell.forward(3.0)  # it brakes
    stands = place(cell, tour.robot)
    cell.do("reset", robot=tour.robot)
    cell.forward(20.0)
    assert place(cell, tour.robot) == stands
    assert state(cell, tour.robot)[0] == ended


def test_a_stop_during_a_pause_ends_the_program(cell: Bench, tour: Case) -> None:
    begin(cell, tour)
    cell.forward(0.2)
    cell.do("pause_program", robot=tour.robot)
    cell.forward(20.0)
    cell.do("emergency_stop", robot=tour.robot)
    cell.forward(0.1)
    cell.do("reset", robot=tour.robot)
    cell.forward(0.1)
    if state(cell, tour.robot)[0] == "paused":  # the robot reports no stop while it stands
        cell.do("run_program", robot=tour.robot)
        cell.forward(0.2)
    assert state(cell, tour.robot)[0] == "failed"


def test_a_program_starts_at_a_line(cell: Bench, tour: Case) -> None:
    begin(cell, tour, from_line=4)
    assert state(cell, tour.robot) == ("running", 4)
    seen = set()
    while state(cell, tour.robot)[0] == "running":
        seen.add(state(cell, tour.robot)[1])
        cell.forward(0.05)
    assert seen == {4, 5, 6}
    assert state(cell, tour.robot) == ("done", 6)


# ── errors ──


def test_a_line_that_cannot_be_read_is_refused_before_anything_moves(
    cell: Bench, tour: Case
) -> None:
    cell.do("load_program", robot=tour.robot, text=f"{tour.text}{tour.unreadable}\n")
    assert "line 7" in cell.refusal("run_program", robot=tour.robot)
    assert state(cell, tour.robot) == ("failed", 7)


def test_a_refused_line_ends_the_program_there(cell: Bench, tour: Case) -> None:
    lines = tour.text.splitlines()
    text = "\n".join([*lines[:4], tour.refused, *lines[4:]])
    begin(cell, tour, text)
    assert until(cell, tour.robot, "failed", "done") == ("failed", 5)
    shown = cell.do("program", robot=tour.robot)
    assert "line 5" in shown["error"]
    cell.forward(20.0)  # a machine finishes the lines that it has accepted
    stands = place(cell, tour.robot)
    cell.forward(20.0)
    assert place(cell, tour.robot) == stands


def test_after_an_error_the_mended_program_runs(cell: Bench, tour: Case) -> None:
    begin(cell, tour, tour.refused)
    until(cell, tour.robot, "failed")
    if tour.robot == "arm":
        cell.do("reset", robot="arm")
        cell.do("enable", robot="arm")
    begin(cell, tour)
    assert until(cell, tour.robot, "done", "failed") == ("done", 6)


def test_other_commands_are_refused_while_a_program_runs(cell: Bench, tour: Case) -> None:
    begin(cell, tour)
    assert "a program is running" in cell.refusal("home", robot=tour.robot)
    assert "a program is running" in cell.refusal("run_program", robot=tour.robot)
    assert "a program is running" in cell.refusal("load_program", robot=tour.robot, text="")


def test_a_program_is_refused_while_the_cell_is_stopped(cell: Bench, tour: Case) -> None:
    begin(cell, tour)
    cell.forward(0.3)
    cell.do("stop")
    cell.forward(2.0)
    assert state(cell, tour.robot)[0] == "idle"
    stands = place(cell, tour.robot)
    assert "the cell is stopped" in cell.refusal("run_program", robot=tour.robot)
    cell.forward(5.0)
    assert place(cell, tour.robot) == stands


# ── snapshots ──


def test_a_snapshot_continues_the_program(cell: Bench, tour: Case) -> None:
    begin(cell, tour)
    cell.forward(0.7)
    saved = cell.do("snapshot")["snapshot"]
    shown: list[list[Any]] = []
    for _ in range(2):
        shown.append([])
        for _ in range(200):
            cell.forward(0.1)
            shown[-1].append((state(cell, tour.robot), place(cell, tour.robot)))
        cell.do("restore", snapshot=saved)
    assert shown[0][-1][0] == ("done", 6)
    assert shown[0] == shown[1]
