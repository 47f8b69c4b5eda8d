"""Work in one turn of the event loop is bounded, also with a part that does not let time go on."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.wire.test_run_ahead import advance, answer

from understudy.agenda import Rate, StuckError
from understudy.app.build import load_cell
from understudy.app.live import Live, Options
from understudy.config import load_config
from understudy.errors import Refused
from understudy.operator.doors import Doors
from understudy.robots.text_robot.robot import TextRobot
from understudy.units import NS_PER_SECOND
from understudy.wire import pump

Scene = Callable[[Live], Awaitable[None]]
BROKEN_AT = 5 * NS_PER_SECOND


def play(scene: Scene, rate: Rate = "step", cell: str = "text_robot", **options: Any) -> None:
    async def run() -> None:
        live = Live(load_config(cell), Options(rate=rate, ephemeral=True, **options))
        await live.start()
        try:
            await asyncio.wait_for(scene(live), 60.0)
        finally:
            await live.stop()

    asyncio.run(run())


def done(live: Live, name: str, **parameters: Any) -> Any:
    answer = live.commands.call(name, parameters, "operator")
    assert not isinstance(answer, Refused), answer
    return answer


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The text robot is due at 5 s, for ever."""
    monkeypatch.setattr(TextRobot, "next_wake", lambda self: BROKEN_AT)
    return monkeypatch


@pytest.mark.usefixtures("broken")
def test_in_process_the_part_is_named() -> None:
    cell = load_cell("text_robot")
    for _ in range(2):  # the second time at once
        with pytest.raises(StuckError, match=r"time stands at 5\.0+ s: bench is due again"):
            cell.advance(10.0)


def test_advance_is_refused_with_the_name_and_a_snapshot_helps(broken: pytest.MonkeyPatch) -> None:
    async def scene(live: Live) -> None:
        saved = done(live, "snapshot")["snapshot"]
        for _ in range(3):
            refused = await answer(advance(live, 10.0))
            assert isinstance(refused, Refused)
            assert "bench is due again after every wake" in refused.reason
        status = done(live, "status")
        assert "bench is due again" in status["problem"]
        assert status["now_s"] < 5.0
        broken.undo()
        done(live, "restore", snapshot=saved)
        assert (advance(live, 10.0))["now_s"] == 10.0
        assert not live.problem

    play(scene)


@pytest.mark.usefixtures("broken")
def test_a_run_for_some_time_ends(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(live: Live) -> None:
        await live.finished.wait()
        assert live.problem

    play(scene, rate="max", for_seconds=100.0)
    assert [each.message for each in caplog.records if "time stands at 5.0" in each.message]


@pytest.mark.usefixtures("broken")
def test_clients_are_served_while_time_stands() -> None:
    async def scene(live: Live) -> None:
        host, _, port = live.endpoints["bench.text_tcp"].removeprefix("tcp://").rpartition(":")
        done(live, "rate", rate=1000.0)
        while not live.problem:  # noqa: ASYNC110 - nothing tells a change
            await asyncio.sleep(0)
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET_STATUS\n")
        assert await reader.readline()
        writer.transport.abort()

    play(scene)


def test_a_long_motion_without_wakes_is_read_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorder reads a motion of hours a thousand times per turn at most, not all at once."""
    monkeypatch.setattr(pump, "TURN_SECONDS", -1.0)

    async def scene(live: Live) -> None:
        done(live, "send_gcode", robot="machine", line="G91 G1 X100 F1")
        later = advance(live, 3600.0)
        reached = list[float]()
        while not reached or reached[-1] < 100.0:
            reached.append(live.now)
            await asyncio.sleep(0)
        assert len(set(reached)) > 50  # the loop runs between any two readings
        done(live, "emergency_stop")
        assert not live.watch.look().robots["machine"].moving
        assert (await answer(later))["now_s"] == 3600.0

    play(scene, cell="grblhal_6axis")


def test_a_door_that_is_due_for_ever_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    class Due:
        wakes = 0

        def next_wake(self) -> int:
            return 7

        def wake(self, now: int) -> None:
            self.wakes += 1

    broken: Any = Due()
    doors = Doors({"state": broken})
    doors.advance(10, lambda now: None)
    assert doors.next_wake() is None
    assert broken.wakes == 1
    assert "state is due again" in caplog.text
