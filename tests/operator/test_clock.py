"""Rate and pause by command: `now`, `metrics`, `status` and the view of the page always agree."""

from typing import Any

import pytest

from understudy.agenda import Rate
from understudy.app.stand_in import StandIn


def seen(cell: StandIn) -> tuple[Any, ...]:
    """The rate that `now`, `status` and the page show, and the state of the engine, twice."""
    status = cell.do("status")
    shown = cell._call(lambda live: live.watch.look().rate)
    rates = {cell.do("now")["rate"], status["rate"], shown}
    states = {cell.do("metrics")["state"], status["parts"]["engine"].state}
    assert len(rates) == len(states) == 1, (rates, states)
    return rates.pop(), states.pop()


def stands_still(cell: StandIn) -> bool:
    return len({cell.now for _ in range(200)}) == 1


def runs_on(cell: StandIn) -> bool:
    before = cell.now
    return any(cell.now > before for _ in range(100_000))


@pytest.fixture(params=[1.0, "max"])
def cell(request: pytest.FixtureRequest) -> Any:
    rate: Rate = request.param
    with StandIn("text_robot", rate=rate) as cell:
        yield cell


def test_a_rate_set_while_paused_applies_from_resume_on(cell: StandIn) -> None:
    cell.do("pause")
    answer = cell.do("rate", rate=2)
    assert (answer["rate"], answer["paused"], answer["resumes_at"]) == (0.0, True, 2.0)
    assert seen(cell) == (0.0, "PAUSED")
    assert stands_still(cell)
    cell.do("resume")
    assert "paused" not in cell.do("now")
    assert seen(cell) == (2.0, "RUNNING")
    assert runs_on(cell)


def test_rate_zero_stops_time_until_resume(cell: StandIn) -> None:
    cell.do("rate", rate=3)
    cell.do("rate", rate=0)
    assert seen(cell) == (0.0, "PAUSED")
    assert stands_still(cell)
    cell.do("resume")
    assert seen(cell) == (3.0, "RUNNING")


@pytest.mark.parametrize("rate", ["max", "step"])
def test_a_lock_step_rate_set_while_paused_applies_from_start_on(cell: StandIn, rate: Rate) -> None:
    cell.do("pause")
    assert cell.do("rate", rate=rate)["resumes_at"] == rate
    assert seen(cell) == (0.0, "PAUSED")
    cell.do("start")
    assert seen(cell) == (rate, "RUNNING")


def test_in_lock_step_a_pause_stops_time_until_resume() -> None:
    with StandIn("text_robot", rules=False, rate="max") as cell:
        cell.do("pause")
        stream = cell._call(lambda live: live.now)
        assert cell.ask("GET_STATUS").startswith("OK Idle")
        assert cell.now == stream
        cell.do("resume")
        assert cell.ask("HOME") == "OK Homing completed"
