"""Every shipped exercise can be solved and failed: with commands of an operator, in lock-step."""

from pathlib import Path

import pytest
from tests.jobs.training.courses import FAILED, SHIPPED, SOLVED, MakesTrainee

from understudy.errors import ConfigError
from understudy.jobs.training.command_line import write_cell
from understudy.jobs.training.exercise import shipped_exercises


def test_there_are_exercises_for_each_sort_of_robot() -> None:
    assert set(SHIPPED) <= set(SOLVED) & set(FAILED)
    assert len(SHIPPED) >= 6


@pytest.mark.parametrize("name", SHIPPED)
def test_an_exercise_can_be_solved(name: str, trainee_of: MakesTrainee) -> None:
    trainee = trainee_of(SHIPPED[name])
    trainee.start(name)
    SOLVED[name](trainee)
    result = trainee.result()
    assert (result["reason"], result["passed"]) == ("passed", True), result
    assert result["score"] >= shipped_exercises()[name].score.pass_
    assert (result["collisions"], result["wrong_commands"], result["hints"]) == (0, 0, 0)
    assert result["tasks"] == len(shipped_exercises()[name].tasks)


@pytest.mark.parametrize("name", SHIPPED)
def test_an_exercise_can_be_failed(name: str, trainee_of: MakesTrainee) -> None:
    trainee = trainee_of(SHIPPED[name])
    trainee.start(name)
    script, reason = FAILED[name]
    script(trainee)
    result = trainee.result()
    assert (result["reason"], result["passed"]) == (reason, False), result


def test_a_cell_of_ones_own_is_used_as_it_is_and_must_have_a_course(tmp_path: Path) -> None:
    own = tmp_path / "g60_welding.yaml"
    own.write_text("robots: {g60: {kind: arm, model: g60, welder: {}}}\n")
    with pytest.raises(ConfigError, match="this cell has no course"):
        write_cell(tmp_path, str(own), {})
    own.write_text(f"{own.read_text()}course: {{}}\n")
    assert write_cell(tmp_path, str(own), {}) == own
