"""Kernels are compiled before anything is timed or fuzzed."""

import pytest

from understudy.gcode.program import warm


@pytest.fixture(autouse=True, scope="session")
def _warm_kernels() -> None:
    warm()
