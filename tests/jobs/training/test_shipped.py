"""Every shipped exercise can be solved and failed: with commands of an operator, in lock-step."""

import pytest
from tests.jobs.training.courses import FAILED, SHIPPED, SOLVED, MakesTrainee

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
