"""The two arms of the catalogue."""

import pytest
from tests.space.arm_models import catalog_text

from understudy.space.kinematics.chain import Chain, chain
from understudy.space.model.urdf import read


@pytest.fixture(scope="session")
def g60() -> Chain:
    return chain(read(catalog_text("g60")))


@pytest.fixture(scope="session")
def kr6() -> Chain:
    return chain(read(catalog_text("kr6_r900")))


@pytest.fixture(scope="session", params=["g60", "kr6_r900"])
def arm(request: pytest.FixtureRequest) -> Chain:
    return chain(read(catalog_text(request.param)))
