"""`understudy.connect`: a running cell from another process, with the names of the fixtures."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import understudy
from understudy import ConfigError, Connection, StandIn


@pytest.fixture(scope="module")
def running() -> Iterator[StandIn]:
    with StandIn("pick_place") as cell:
        yield cell


@pytest.fixture
def cell(running: StandIn) -> Connection:
    address = running.endpoints["control"].removeprefix("tcp://")
    return understudy.connect(to=address, token=running.secret)


def test_time_passes_and_a_state_comes_back(cell: Connection) -> None:
    with cell:
        saved, before = cell.snapshot(), cell.now
        cell.forward(seconds=3)
        assert cell.now == before + 3
        assert cell.time().rate == "step"
        cell.restore(saved)
        assert cell.now == before


def test_answers_have_types(cell: Connection, running: StandIn) -> None:
    (robot,) = cell.robots().values()
    assert (robot.name, robot.mode, robot.moving) == ("g60", "SIMULATION", False)
    parts = cell.parts()
    assert {name: part.class_name for name, part in parts.items()} == {
        name: part.class_name for name, part in running.parts().items()
    }
    name = next(iter(parts))
    assert parts[name].position_mm[2] == pytest.approx(running.parts()[name].pose.z * 1000)
    cell.inject("air_lost", on="g60.gripper")
    assert cell.events()[-1].kind == "fault"


def test_a_refusal_is_an_error_with_its_reason(cell: Connection) -> None:
    with pytest.raises(RuntimeError, match="did you mean 'status'"):
        cell.do("stats")


def test_the_same_calls_on_an_event_loop(running: StandIn) -> None:
    address = running.endpoints["control"].removeprefix("tcp://")

    async def use() -> None:
        async with understudy.connect_async(to=address, token=running.secret) as cell:
            before = (await cell.time()).now_s
            await cell.forward(seconds=1)
            assert (await cell.time()).now_s == before + 1
            robots, parts = await asyncio.gather(cell.robots(), cell.parts())
            assert list(robots) == ["g60"]
            assert list(parts) == list(running.parts())
            await cell.restore(await cell.snapshot())
            await cell.inject("air_lost", on="g60.gripper")
            assert (await cell.events())[-1].kind == "fault"

    asyncio.run(use())


def test_both_have_the_same_calls() -> None:
    def calls(kind: type) -> set[str]:
        return {name for name in vars(kind) if not name.startswith("_")}

    assert calls(understudy.AsyncConnection) == calls(Connection) - {"now"}


def test_a_cell_is_found_by_its_ready_file(running: StandIn, tmp_path: Path) -> None:
    file = tmp_path / "ready.json"
    ready = {"pid": 1, "cell": "a", "rate": 1, "endpoints": dict(running.endpoints)}
    file.write_text(json.dumps(ready | {"secret": running.secret}))
    with understudy.connect(ready_file=file) as cell:
        assert cell.address("control") == running.address("control")
        with pytest.raises(ConfigError, match="allowed: control"):
            cell.address("contrl")


def test_an_address_without_a_cell_is_said_at_once() -> None:
    with pytest.raises(ConfigError, match="does not answer"), understudy.connect(to="127.0.0.1:1"):
        pass
    with pytest.raises(ConfigError, match="HOST:PORT"):
        understudy.connect(to="here")
    with pytest.raises(ConfigError, match="one of"):
        understudy.connect("a", to="127.0.0.1:1")
