"""Random commands get an answer or a refusal, never an exception."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.benches import Bench

from understudy.errors import Refused

FILES = {"snapshot", "restore", "load_environment", "reload_environment"}
FILES |= {"save_program", "save_project"}
"""Commands that write or read files of any path."""
NAMES = st.sampled_from(["g60", "bench", "kuka", "", "no_robot"])
NUMBERS = st.sampled_from([0, 1, -1, 5, 3.5, 1e6, -1e6, 1e308, math.nan, math.inf, -math.inf])
VALUES = st.one_of(
    NAMES, NUMBERS, st.booleans(), st.none(), st.text(max_size=8), st.lists(NUMBERS, max_size=7)
)


@pytest.fixture(scope="module")
def worn(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One cell for all tests of this module: it must still work after random commands."""
    bench = Bench("default", files=tmp_path_factory.mktemp("files"))
    yield bench
    bench.close()


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_parameters_are_answered_or_refused(worn: Bench, data: st.DataObject) -> None:
    table = [each for each in worn.live.commands if each.name not in FILES]
    command = data.draw(st.sampled_from(table))
    keys = command.parameters.__struct_fields__
    given = {key: data.draw(VALUES) for key in keys if data.draw(st.booleans()) or key == "robot"}
    if "robot" in given:
        given["robot"] = data.draw(NAMES)
    if command.name == "advance":
        given = {"seconds": data.draw(st.sampled_from([0, 0.5, -1, math.nan]))}
    answer = worn.ask(command.name, **given)
    if not isinstance(answer, Refused):
        msgspec.json.encode(answer)


def test_the_cell_still_works_after_random_commands(worn: Bench) -> None:
    worn.do("rate", rate="step")
    worn.do("reset")
    worn.do("stop")
    worn.forward(2.0)
    worn.ask("stop_program", robot="g60")
    worn.do("reset")
    worn.do("enable", robot="g60")
    worn.do("move_to", robot="g60", joints_deg=[1, 0, 0, 0, 0, 0])
    worn.forward(5.0)
    assert worn.joints("g60") == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
