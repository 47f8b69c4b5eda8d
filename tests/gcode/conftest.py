"""Controllers to talk to. Kernels are compiled before anything is timed or fuzzed."""

import pytest
from tests.gcode.talk import Talk

from understudy.gcode import ARM, GRBLHAL_MACHINE
from understudy.gcode.program import warm


@pytest.fixture(autouse=True, scope="session")
def _warm_kernels() -> None:
    warm()


@pytest.fixture
def machine() -> Talk:
    return Talk(GRBLHAL_MACHINE)


@pytest.fixture
def arm() -> Talk:
    return Talk(ARM)
