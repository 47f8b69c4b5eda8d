"""The demo works by itself, breaks on request, is mended, and leaves robots to their clients."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from math import dist
from typing import Any

import pytest
from msgspec import structs

from understudy.agenda import Rate
from understudy.app.live import Live, Options
from understudy.config import load_config
from understudy.config.files import shipped_clients
from understudy.errors import ConfigError, Refused
from understudy.jobs.demo.command_line import demo
from understudy.jobs.demo.commands import encoded
from understudy.jobs.demo.director import Director
from understudy.jobs.demo.section import Break, Config, Order
from understudy.ports.hmi import Later

DEADLINE_SECONDS = 120.0
RATE = 10.0
ARMS = ("g60", "picker", "kuka")
MOBILE = ("robot-1", "robot-2")


class Demo:
    """The running cell."""

    def __init__(self, live: Live) -> None:
        self.live = live

    async def ask(self, command: str, **given: Any) -> Any:
        answer = self.live.commands.call(command, given, "operator")
        if isinstance(answer, Later):
            ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            answer.then(ended.set_result)
            answer = await ended
        return answer

    def now(self, command: str, **given: Any) -> Any:
        return self.live.commands.call(command, given, "operator")

    def robots(self) -> dict[str, Any]:
        return {each["name"]: each for each in self.now("robots")["robots"]}

    def program(self, robot: str) -> str:
        return str(self.now("program", robot=robot)["state"])

    def place(self, robot: str) -> Sequence[float]:
        """x and y in metres."""
        return self.live.watch.look().robots[robot].tcp[:2]

    def parts(self) -> list[Any]:
        return list(self.now("parts")["parts"])

    def at_start(self) -> int:
        """How many blocks lie on the table from which they are picked."""
        return sum(part["position_mm"][1] > 1870.0 and not part["holder"] for part in self.parts())

    def picking(self) -> bool:
        return self.now("pick_place", robot="picker")["state"] not in ("IDLE", "ERROR")

    def error(self) -> str:
        broken = self.now("demo")["broken"]
        return "" if broken is None else str(broken["error"])

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + DEADLINE_SECONDS
        while not holds():
            assert time.monotonic() < end, what
            await asyncio.sleep(0.1)


@asynccontextmanager
async def running(rate: Rate = RATE, **changes: Any) -> AsyncIterator[Demo]:
    """The shipped cell with these changes of its key `demo`."""
    config = load_config("demo")
    section = structs.replace(config.sections["demo"], **changes)
    config = replace(config, sections={**config.sections, "demo": section})
    live = Live(config, Options(rate=rate, ephemeral=True))
    await live.start()
    try:
        yield Demo(live)
    finally:
        await live.stop()


def test_all_robots_work_by_themselves_and_begin_again() -> None:
    async def run() -> None:
        async with running() as cell:
            await cell.until(lambda: cell.program("g60") == "running", "it welds")
            await cell.until(lambda: cell.program("kuka") == "running", "the KUKA moves")
            await cell.until(cell.picking, "it picks")
            at = {name: cell.place(name) for name in MOBILE}

            def far(name: str) -> bool:
                return dist(cell.place(name), at[name]) > 1.0

            await cell.until(lambda: all(far(name) for name in MOBILE), "they drive")
            await cell.until(lambda: cell.at_start() == 0, "all blocks are on the pallet")
            await cell.until(lambda: cell.at_start() == len(cell.parts()), "they are put back")
            await cell.until(lambda: 0 < cell.at_start() < len(cell.parts()), "the next pallet")
            assert cell.now("metrics")["collisions_detected"] == 0
            assert cell.now("metrics")["state"] == "RUNNING"

    asyncio.run(run())


def test_every_fault_shows_itself_and_is_mended() -> None:
    async def run() -> None:
        async with running() as cell:
            names = cell.now("demo")["breaks"]
            assert len(names) == 7
            await cell.until(cell.picking, "it works")
            for name in names:
                broken = cell.now("break_something", name=name)["broken"]
                assert broken["name"] == name
                await cell.until(lambda: bool(cell.error()), f"{name} shows")
                assert cell.now("metrics")["state"] == "ERROR"
                again = cell.now("break_something")
                assert isinstance(again, Refused)
                assert "mend it first" in again.reason
                assert cell.now("mend")["broken"] is None
                await cell.until(lambda: cell.now("metrics")["state"] == "RUNNING", "no fault")

                def works(robot: str = broken["robot"]) -> bool:
                    busy = cell.picking() if robot == "picker" else cell.robots()[robot]["moving"]
                    return bool(busy)

                await cell.until(works, f"{broken['robot']} works again after {name}")

    asyncio.run(run())


def drawn(seed: int) -> list[str]:
    async def run() -> list[str]:
        live = Live(load_config("demo", seed=seed), Options(rate=0.0, ephemeral=True))
        cell = Demo(live)
        names = []
        for _ in range(14):
            names.append(cell.now("break_something")["broken"]["name"])
            cell.now("mend")
        await live.stop()
        return names

    return asyncio.run(run())


def test_the_order_of_faults_follows_from_the_seed() -> None:
    first, again, other = drawn(1), drawn(1), drawn(2)
    assert first == again
    assert first != other
    assert len(set(first[:7])) == len(set(first[7:])) == 7
    assert first[:7] != first[7:]


def test_a_fault_is_mended_by_itself() -> None:
    async def run() -> None:
        async with running(mend_s=0.5) as cell:
            await cell.until(lambda: cell.robots()["kuka"]["moving"], "it works")
            cell.now("break_something", name="stop")
            assert cell.now("metrics")["state"] == "ERROR"
            await cell.until(lambda: cell.now("demo")["broken"] is None, "mended")
            await cell.until(lambda: cell.robots()["kuka"]["moving"], "it works again")

    asyncio.run(run())


def test_what_visitors_leave_behind_is_put_back() -> None:
    async def run() -> None:
        async with running(idle_s=3.0) as cell:
            await cell.until(lambda: cell.program("kuka") == "running", "it works")
            own = cell.now("program", robot="kuka")["text"]
            cell.now("stop_program", robot="kuka")
            await cell.until(lambda: cell.program("kuka") != "running", "it has stopped")
            loaded = await cell.ask("load_program", robot="kuka", text="G4 P1\n", name="mine.gcode")
            assert not isinstance(loaded, Refused)
            assert cell.now("program", robot="kuka")["text"] != own
            cell.now("emergency_stop")
            cell.now("rate", rate=0.0)
            assert cell.now("metrics")["state"] != "RUNNING"
            await cell.until(lambda: cell.now("metrics")["state"] == "RUNNING", "it is put back")
            await cell.until(lambda: cell.now("program", robot="kuka")["text"] == own, "its own")
            assert cell.live.rate == 1.0
            await cell.until(lambda: cell.robots()["kuka"]["moving"], "it works again")

    asyncio.run(run())


def test_a_robot_is_left_to_its_client_and_the_others_go_on() -> None:
    async def run() -> None:
        async with running() as cell:
            await cell.until(lambda: cell.program("g60") == "running", "it welds")
            asked = await cell.ask("send_line", robot="g60", line="?")
            assert asked["answer"][-1].startswith("<Run|")
            assert cell.program("g60") == "running"
            assert cell.now("demo")["held_s"] == {}
            said = await cell.ask("send_line", robot="g60", line="$G")
            assert said["answer"][-1] == "ok"
            assert said["answer"][-2].startswith("[GC:")
            assert list(cell.now("demo")["held_s"]) == ["g60"]
            refused = await cell.ask("send_line", robot="g60", line="G0 X1e")
            assert refused["answer"][-1].startswith("error:")
            await cell.until(cell.picking, "the others go on")
            assert cell.program("g60") != "running"
            cell.now("run_demo")
            await cell.until(lambda: cell.program("g60") == "running", "the demo goes on")

    asyncio.run(run())


def test_a_line_reaches_the_wires_of_all_robots() -> None:
    async def run() -> None:
        async with running(runs=False) as cell:
            wires = {wire["robot"]: wire for wire in cell.now("demo")["wires"]}
            assert list(wires) == [*ARMS, *MOBILE]
            before = cell.place("kuka")
            move = await cell.ask("send_line", robot="kuka", line=wires["kuka"]["lines"][0])
            assert move["bytes"] >= 48
            assert {"g_seq", "g_queue_size"} == set(move["meaning"][0])
            await cell.until(lambda: dist(cell.place("kuka"), before) > 0.01, "it moves")
            fly = wires["robot-2"]["lines"][-1]
            assert fly == 'robot.robot-2.command.request {"commandType":"FLY"}'
            acks = await cell.ask("send_line", robot="robot-2", line=fly)
            payloads = [json.loads(x)["payload"] for x in acks["answer"] if x.startswith("{")]
            assert payloads[-1]["status"] == "REJECTED"
            for robot, line in (("kuka", "no hex"), ("robot-1", "no json"), ("g61", "?")):
                answer = await cell.ask("send_line", robot=robot, line=line)
                assert isinstance(answer, Refused), line

    asyncio.run(run())


def test_nothing_moves_without_the_loop() -> None:
    async def run() -> None:
        async with running(runs=False) as cell:
            await cell.until(lambda: cell.live.now > 10.0, "time runs")
            assert not any(each["moving"] for each in cell.robots().values())
            assert cell.program("g60") == "idle"

    asyncio.run(run())


def test_nothing_moves_in_lock_step(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, tick = 0, Director._tick

    def counted(director: Director) -> None:
        nonlocal looks
        tick(director)
        looks += 1

    monkeypatch.setattr(Director, "_tick", counted)

    async def run() -> None:
        async with running(rate="step") as cell:
            cell.live.advance(10.0)
            before = looks
            await cell.until(lambda: looks > before + 1, "the demo looks at the cell")
            cell.live.advance(1.0)
            assert not any(each["moving"] for each in cell.robots().values())
            assert cell.program("g60") == "idle"

    asyncio.run(run())


def test_without_nats_the_arms_work_and_the_wire_says_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "nats", None)

    async def run() -> None:
        async with running() as cell:
            wires = {wire["robot"]: wire["open"] for wire in cell.now("demo")["wires"]}
            assert wires == dict.fromkeys(ARMS, True) | dict.fromkeys(MOBILE, False)
            await cell.until(lambda: cell.robots()["g60"]["moving"], "the arm moves")
            refused = await cell.ask("send_line", robot="robot-1", line="x {}")
            assert "nats is not open" in refused.reason
            assert "nats is not open" in cell.now("demo_client", robot="robot-1").reason

    asyncio.run(run())
    assert any("nats is not opened: it needs" in each for each in caplog.messages)


def test_names_that_the_cell_does_not_have_are_errors() -> None:
    async def run(section: Config) -> None:
        config = load_config("text_robot")
        Live(replace(config, sections={"demo": section}), Options(ephemeral=True))

    for robot, order, message in (
        ("bencj", Order("enable"), r"demo\.loop\.bencj: unknown robot.*'bench'"),
        ("bench", Order("enabel"), r"demo\.loop\.bench\.0\.command: unknown command.*'enable'"),
        ("bench", Order("enable", {"fast": 1}), r"demo\.loop\.bench\.0\.parameters\.fast: unknown"),
        ("bench", Order("load_program", {"text": 1}), r"bench\.0\.parameters\.text: .*a text"),
        ("bench", Order("enable", {"robot": "bench"}), r"parameters\.robot: .*the loop adds bench"),
    ):
        with pytest.raises(ConfigError, match=message):
            asyncio.run(run(Config(loop={robot: (order,)})))
    for row, message in (
        (Break("stop", "emergency_stop", "bench.x"), r"demo\.breaks\.0\.on: unknown part"),
        (Break("stop", "emergency_stpo", "bench"), r"demo\.breaks\.0\.fault: .*'emergency_stop'"),
    ):
        with pytest.raises(ConfigError, match=message):
            asyncio.run(run(Config(breaks=(row,))))


def test_a_page_that_is_not_installed_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("understudy.cli.hmi.NEEDS", {"no_such_module": "nicegui"})
    with pytest.raises(ConfigError, match=r"the demo is a page: .* needs .*pip.* install"):
        demo()


def test_a_subject_of_nats_ends_at_any_blank() -> None:
    wire = shipped_clients()["nats"]
    for blank in (" ", "\t", "\r\n"):
        sent = encoded(f'robot.robot-1.command{blank}{{"x": 1}}', wire, "robot-1")
        assert isinstance(sent, bytes)
        assert sent.count(b"\r\nPUB robot.robot-1.command ") == 1
    assert isinstance(encoded("a\r\nSUB\t>\t9\r\n {}", wire, "robot-1"), Refused)
    assert isinstance(encoded("  ", wire, "robot-1"), Refused)
