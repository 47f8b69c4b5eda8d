"""`understudy check` of exercise files: what is wrong, where, what is allowed; the list of them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from understudy.cli import app
from understudy.jobs.training.exercise import shipped_exercises

GOOD = """cell: g60_welding
title: {en: Home the robot, vi: Đưa robot về gốc}
set_up:
  - {command: enable, parameters: {robot: g60}}
faults:
  - {fault: arc_fault, on: g60.welder, parameters: {duration_s: 5}, after_s: [1, 2]}
tasks:
  - title: Home the robot
    until: {all: [{value: {of: g60, field: homed, is: true}}, {not: {moving: g60}}]}
    hints: [Press Home.]
fail_if:
  - {when: {contacts: {}}, reason: It touched something.}
"""


def checked(tmp_path: Path, text: str) -> tuple[int, str]:
    file = tmp_path / "home.yaml"
    file.write_text(text)
    done = CliRunner().invoke(app, ["check", str(file)])
    problem = "" if done.exception is None else str(done.exception)
    return done.exit_code, done.output + problem


def test_a_good_file_is_valid(tmp_path: Path) -> None:
    code, said = checked(tmp_path, GOOD)
    assert (code, "an exercise of g60_welding (1 task)" in said) == (0, True), said
    code, said = checked(tmp_path, GOOD.replace("cell: g60_welding\n", ""))
    assert (code, "names no cell" in said) == (0, True)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("hints:", "hint:", 10, "did you mean 'hints'"),
        ("until: {all:", "until: {any: [], all:", 9, "exactly one key"),
        ("{moving: g60}", "{moving: g61}", 9, "did you mean 'g60'"),
        ("field: homed", "field: homd", 9, "did you mean 'homed'"),
        ("of: g60,", "of: g60.weldr,", 9, "did you mean 'g60.welder'"),
        ("command: enable", "command: enabel", 4, "did you mean 'enable'"),
        ("{robot: g60}}", "{robt: g60}}", 4, "did you mean 'robot'"),
        ("fault: arc_fault", "fault: arc_falt", 6, "did you mean 'arc_fault'"),
        ("on: g60.welder", "on: g60.wilder", 6, "did you mean 'g60.welder'"),
        ("after_s: [1, 2]", "after_s: [2, 1]", 6, "low, then high"),
        ("after_s: [1, 2]", "task: 2", 6, "no such task"),
        ("cell: g60_welding", "cell: g60_wedling", 1, "did you mean 'g60_welding'"),
        ("vi: Đưa robot về gốc", "fr: Allez", 2, "unknown key"),
        ("- title: Home the robot\n   ", "-", 8, "this key is missing"),
        ("{contacts: {}}", "{contacts: {robot: nobody}}", 12, "unknown robot"),
        ("{moving: g60}", "{program: {robot: g60.x}}", 9, "robot that runs programs"),
        ("{moving: g60}", "{output: {robot: g60, pin: ARC_STRAT}}", 9, "did you mean"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(
    tmp_path: Path, old: str, new: str, line: int, words: str
) -> None:
    assert old in GOOD
    code, said = checked(tmp_path, GOOD.replace(old, new, 1))
    assert code != 0
    assert words in said
    assert f"home.yaml:{line}:" in said


def test_every_shipped_exercise_has_both_languages() -> None:
    for exercise in shipped_exercises().values():
        texts = [exercise.title, exercise.about, *(each.reason for each in exercise.fail_if)]
        for task in exercise.tasks:
            texts += [task.title, *task.hints, *([task.about] if task.about else [])]
        assert not any(isinstance(each, str) for each in texts)


def test_the_list_of_exercises() -> None:
    done = CliRunner().invoke(app, ["course", "--json", "-"])
    listed = json.loads(done.output)
    assert [each["name"] for each in listed] == list(shipped_exercises())
    done = CliRunner().invoke(app, ["course", "--language", "vi"])
    assert "weld_seam" in done.output
