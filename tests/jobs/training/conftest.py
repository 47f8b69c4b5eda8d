"""Fixtures of the tests of courses."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.jobs.training.courses import MakesTrainee, Trainee


@pytest.fixture
def trainee_of(tmp_path: Path) -> Iterator[MakesTrainee]:
    """Makes a trainee on a cell; `course`: what stands at its key."""
    made: list[Trainee] = []

    def make(cell: str, course: dict[str, Any] | None = None) -> Trainee:
        made.append(Trainee(tmp_path, cell, course))
        return made[-1]

    yield make
    for trainee in made:
        trainee.close()
