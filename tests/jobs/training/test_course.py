"""The part `course` of a cell: score, faults at seeded moments, snapshots, certificate, fuzz."""

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.benches import Bench
from tests.jobs.training.courses import SOLVED, MakesTrainee, Trainee, weld_arc_fault, weld_seam

from understudy.config import load_config
from understudy.errors import ConfigError, Refused
from understudy.jobs.training.command_line import write_cell
from understudy.jobs.training.course import CourseRun, State, points
from understudy.jobs.training.exercise import Score, read_exercise
from understudy.ports import state as snapshots

WELDING = "g60_welding"
ALARM = "weld_arc_fault"


def run(trainee: Trainee, name: str) -> dict[str, Any]:
    trainee.start(name)
    SOLVED[name](trainee)
    return trainee.result()


def fault_times(trainee: Trainee) -> list[float]:
    events = msgspec.to_builtins(trainee.do("events")["events"])
    alarms = [each for each in events if each["kind"] == "alarm"]
    return [each["time_s"] for each in alarms if "arc was lost" in each["text"]]


# ── score ──


def test_points_are_lost_by_the_rules_of_the_exercise() -> None:
    def of(**given: float) -> int:
        counts = {"elapsed_s": 0.0, "collisions": 0, "wrong_commands": 0, "hints": 0}
        rules = Score(collision=20, wrong_command=3, hint=7, second=0.5, free_s=10)
        return points(rules, **{**counts, **given})  # type: ignore[arg-type]

    assert (of(), of(elapsed_s=9.0), of(elapsed_s=20.0)) == (100, 100, 95)
    assert (of(collisions=2), of(wrong_commands=4), of(hints=1)) == (60, 88, 93)
    assert of(collisions=9) == 0


def test_hints_and_refused_commands_cost_points(trainee_of: MakesTrainee) -> None:
    trainee = trainee_of(WELDING)
    assert "no exercise" in trainee.bench.refusal("take_hint")
    trainee.start("weld_first_steps")
    trainee.do("take_hint")
    assert trainee.do("course_hints", language="vi")["hints"] != []
    assert trainee.do("course_hints")["more"] == 0
    assert "no further hint" in trainee.bench.refusal("take_hint")  # costs nothing
    trainee.bench.refusal("move_to", robot="g60", joints_deg=[1, 2])
    assert trainee.do("mdi", robot="g60", line="G77")["state"] == "refused"
    trainee.bench.refusal("enable", robot="nobody")
    SOLVED["weld_first_steps"](trainee)
    result = trainee.result()
    assert (result["hints"], result["wrong_commands"]) == (1, 3)
    assert (result["passed"], result["score"]) == (True, 75)


def test_all_tasks_with_too_few_points_are_not_enough(trainee_of: MakesTrainee) -> None:
    trainee = trainee_of(WELDING)
    trainee.start("weld_first_steps")
    for _ in range(9):
        trainee.bench.refusal("move_to", robot="g60", joints_deg=[1, 2])
    SOLVED["weld_first_steps"](trainee)
    result = trainee.result()
    assert (result["reason"], result["passed"], result["score"]) == ("score", False, 55)
    assert "no exercise has been passed" in trainee.bench.refusal(
        "certificate", trainee="Ana", date="2026-01-31"
    )


# ── the same inputs, the same score ──


def test_the_same_seed_and_inputs_give_the_same_result(trainee_of: MakesTrainee) -> None:
    one, other = trainee_of(WELDING), trainee_of(WELDING)
    assert run(one, ALARM) == run(other, ALARM)
    assert fault_times(one) == fault_times(other) != []


def test_each_attempt_begins_alike_and_has_its_fault_at_another_moment(
    trainee_of: MakesTrainee,
) -> None:
    trainee = trainee_of(WELDING)
    first = run(trainee, ALARM)
    trainee.do("clear_trail", robot="g60")
    second = run(trainee, ALARM)
    assert (first["attempt"], second["attempt"]) == (1, 2)
    times = fault_times(trainee)
    assert len(set(times)) == len(times) >= 2
    assert trainee.course["results"] == 2
    assert trainee.course["best"] == {ALARM: max(first["score"], second["score"])}


def test_another_slicing_of_time_changes_nothing(trainee_of: MakesTrainee) -> None:
    results = []
    for slices in (1, 7, 40):
        trainee = trainee_of(WELDING)
        trainee.start("weld_seam")
        weld_seam(trainee)
        for _ in range(slices):
            trainee.forward(40.0 / slices)
        results.append(trainee.course["last"])
    assert results[0]["passed"]
    assert results[0] == results[1] == results[2]


def test_a_start_gives_up_the_exercise_that_is_running(trainee_of: MakesTrainee) -> None:
    trainee = trainee_of(WELDING)
    trainee.start("weld_first_steps")
    trainee.forward(3.0)
    trainee.start("weld_seam")
    assert trainee.course["last"]["reason"] == "left"
    trainee.do("leave_exercise")
    rows = trainee.do("course")["results"]
    assert [(each["exercise"], each["reason"]) for each in rows] == [
        ("weld_first_steps", "left"),
        ("weld_seam", "left"),
    ]
    assert "did you mean 'weld_seam'" in trainee.bench.refusal(
        "start_exercise", exercise="weld_saem"
    )


# ── snapshots ──


def test_a_snapshot_in_the_middle_of_a_course_is_invisible(trainee_of: MakesTrainee) -> None:
    trainee = trainee_of(WELDING)
    trainee.start(ALARM)
    trainee.do("take_hint")
    weld_seam(trainee)
    trainee.until_task(2)
    middle = trainee.do("snapshot")["snapshot"]

    def rest(other: Trainee) -> tuple[Any, Any]:
        other.until_task(3)
        at = other.do("now")["now_ns"]
        other.do("reset")
        other.do("enable", robot="g60")
        other.until_task(4)
        other.do("continue_weld", robot="g60", overlap_mm=5)
        return at, other.result()

    straight = rest(trainee)
    assert straight[1]["passed"]
    trainee.do("restore", snapshot=msgspec.to_builtins(middle))
    assert trainee.task == 2
    assert rest(trainee) == straight
    new = trainee_of(WELDING)  # as in a new process
    new.do("restore", snapshot=msgspec.to_builtins(middle))
    assert rest(new) == straight


@pytest.mark.parametrize(
    "change",
    [
        {"exercise": "unknown"},
        {"task": 9},
        {"hints": [0]},
        {"hints": [9, 0, 0, 0]},
        {"faults": []},
        {"alarmed": ["nobody"]},
        {"began": 5_000_000_000},
    ],
)
def test_a_state_that_cannot_occur_is_refused(
    trainee_of: MakesTrainee, change: dict[str, Any]
) -> None:
    trainee = trainee_of(WELDING)
    trainee.start(ALARM)
    trainee.forward(1.0)
    part = trainee.bench.live._cell.components["course"]
    assert isinstance(part, CourseRun)
    saved = snapshots.saved(part)
    with pytest.raises(ValueError, match=r"there|began"):
        snapshots.load(part, {**saved, "attempt": {**saved["attempt"], **change}})
    assert snapshots.saved(part) == saved
    snapshots.load(part, msgspec.to_builtins(State()))


# ── certificate ──


def test_the_certificate_has_name_exercises_score_date_cell_and_version(
    trainee_of: MakesTrainee,
) -> None:
    from understudy import __version__

    trainee = trainee_of(WELDING)
    run(trainee, "weld_seam")
    given = {"trainee": " Nguyễn\tThị  An\n\x1b", "date": "2026-01-31"}
    english = trainee.do("certificate", **given)
    assert english["file"] == "certificate_g60_welding_2026-01-31.txt"
    score = trainee.course["best"]["weld_seam"]
    words = (
        "Nguyễn Thị An",
        "2026-01-31",
        WELDING,
        "Weld the seam",
        f"{score} points",
        __version__,
    )
    assert all(each in english["text"] for each in words)
    assert "\x1b" not in english["text"]
    assert "1 of 4 exercises" in english["text"]
    vietnamese = trainee.do("certificate", language="vi", **given)["text"]
    assert "Hàn đường hàn" in vietnamese
    assert "1 trên 4 bài tập" in vietnamese
    assert "date" in trainee.bench.refusal("certificate", trainee="A", date="today")


# ── exercises of one's own ──

OWN = """
title: Only look
tasks:
  - title: {en: Wait, vi: Chờ}
    hold_s: 2
    until: {not: {moving: g60}}
"""


def test_a_course_of_a_folder_beside_the_cell(tmp_path: Path, trainee_of: MakesTrainee) -> None:
    folder = tmp_path / "exercises"
    folder.mkdir()
    (folder / "look.yaml").write_text(OWN)
    (folder / "second.yaml").write_text(OWN.replace("2\n", "3\n"))
    trainee = trainee_of(WELDING, {"folder": str(folder), "only": ["look"]})
    assert [each["name"] for each in trainee.do("course")["exercises"]] == ["look"]
    trainee.start("look")
    result = trainee.result()
    assert (result["passed"], result["seconds"]) == (True, pytest.approx(2.05))


@pytest.mark.parametrize(
    ("course", "message"),
    [
        ({"folder": "nowhere"}, "no such folder"),
        ({"only": ["weld_saem"]}, "no such exercise"),
        ({"ownly": []}, "did you mean 'only'"),
        ({"folder": "."}, "there is no exercise"),
    ],
)
def test_a_wrong_section_is_an_error(tmp_path: Path, course: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(str(write_cell(tmp_path, WELDING, course)))


def test_a_cell_without_the_key_has_no_course(tmp_path: Path) -> None:
    bench = Bench(WELDING)
    try:
        assert "course" not in bench.live._cell.components
        assert "unknown command" in bench.refusal("start_exercise", exercise="weld_seam")
    finally:
        bench.close()


# ── fuzz ──


def test_random_commands_are_answered_or_refused(trainee_of: MakesTrainee) -> None:
    trainee, chance = trainee_of(WELDING), random.Random(5)
    texts = ["weld_seam", ALARM, "", "x" * 999, "\x00", "vi", "en", "2026-01-31", "An"]
    names = [
        "start_exercise",
        "take_hint",
        "leave_exercise",
        "course",
        "course_hints",
        "certificate",
    ]
    keys = ["exercise", "language", "trainee", "date", "robot"]
    values: list[Any] = [*texts, None, 3, -1.5, [], {}, True]
    answered = 0
    for _ in range(300):
        name = chance.choice(names)
        given = {key: chance.choice(values) for key in chance.sample(keys, chance.randrange(4))}
        if name == "start_exercise" and chance.random() < 0.3:
            given = {"exercise": chance.choice(["weld_seam", ALARM])}
        answer = trainee.bench.ask(name, **given)
        if isinstance(answer, Refused):
            assert "a bug" not in answer.reason, (name, given)
        else:
            msgspec.json.encode(answer)
            answered += 1
        if chance.random() < 0.2:
            trainee.forward(chance.choice([0.01, 0.5, 4.0]))
    assert answered > 30
    trainee.start(ALARM)
    weld_arc_fault(trainee)
    assert trainee.result()["passed"]


MUTATIONS = ["", "- ", "{", "until: 5", "at_least: -1", "all: []", "null", "💥", "hold_s: .nan"]


def test_mutated_files_are_read_or_refused() -> None:
    from understudy.config.files import shipped

    chance = random.Random(9)
    originals = [file.read_text() for file in shipped("exercises", ".yaml").values()]
    refused: list[str] = []
    for _ in range(300):
        lines = chance.choice(originals).splitlines()
        at = chance.randrange(len(lines))
        indent = len(lines[at]) - len(lines[at].lstrip())
        if chance.random() < 0.5:
            lines[at] = " " * indent + chance.choice(MUTATIONS)
        else:
            del lines[at : at + chance.randrange(1, 4)]
        try:
            read_exercise("\n".join(lines), "mutated.yaml")
        except ConfigError as problem:
            refused.append(problem.file)
    assert set(refused) == {"mutated.yaml"}
    assert 50 < len(refused) < 300
