"""A long program over a socket at full speed: no lost line, no overrun, no growing queue."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from understudy.app.stand_in import StandIn
from understudy.config import load_config
from understudy.errors import Refused
from understudy.ports import Ticket
from understudy.robots.arm.offline import motion_setup
from understudy.robots.arm.real import JointLines, driver_of
from understudy.robots.grblhal.driver import Config, GrblHalDriver, build
from understudy.robots.grblhal.face import BUFFER_BYTES, ReceiveBuffer
from understudy.simulation.cell import Cell
from understudy.units import DEG
from understudy.wire.dial import Dial, parse_place
from understudy.wire.exchange import Exchange
from understudy.wire.pump import Pump

ARM = "robots: {{g60: {{kind: arm, faces: {{grblhal: {{{wire}}}}}}}}}\n"
MACHINE = "robots: {machine: {kind: machine, faces: {grblhal: {port: 0}}}}\n"
BEGUN = (10, -20, 30, 0, 40, 0)
FULL = 50_000
PATIENCE_S = 600.0
PATIENCE_MS = 60_000
"""Generous, because the computer may be busy."""


def program(count: int) -> Iterator[str]:
    """A zigzag of short lines, with outputs between them."""
    for n in range(count):
        yield "M64 P1" if n % 50 == 49 else f"G1 X{n % 10 / 10} Y{n % 7 / 10} F6000"


async def stream(driver: GrblHalDriver, place: str, lines: Iterator[str]) -> Refused | None:
    cell = Cell("stream", digest="", components={"robot": driver}, faces={})
    pump = Pump(Exchange(cell))
    dial = Dial(driver, parse_place(place), pump)
    ended: asyncio.Future[Refused | None] = asyncio.get_running_loop().create_future()

    def finished(ticket: Ticket, outcome: Refused | None, now: int) -> None:
        ended.set_result(outcome)

    def on_status(status: object) -> None:
        """Start the program once the driver is connected."""
        if driver.is_connected() and not driver.is_enabled() and not ended.done():
            loop.call_soon(start)

    def start() -> None:
        if not driver.is_enabled():
            assert pump.act(driver.enable) is None
            assert not isinstance(pump.act(lambda now: driver.run(lines, now)), Refused)

    loop = asyncio.get_running_loop()
    driver.on_finished(finished)
    driver.on_status(on_status)
    pump.start()
    dial.start()
    pump.act(driver.connect)
    try:
        return await asyncio.wait_for(ended, PATIENCE_S)
    finally:
        await dial.stop()
        pump.stop()


@pytest.fixture
def most_unread(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The most bytes that ever waited in the stand-in's receive buffer."""
    most, put = [0], ReceiveBuffer.put

    def watched(reader: ReceiveBuffer, text: bytes) -> None:
        put(reader, text)
        most[0] = max(most[0], reader.waiting)

    monkeypatch.setattr(ReceiveBuffer, "put", watched)
    return most


@pytest.fixture
def even_turns() -> Iterator[None]:
    """Give driver and stand-in, which are two threads, short time slices."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("even_turns")
@pytest.mark.parametrize(
    "count", [FULL // 20, pytest.param(FULL, marks=pytest.mark.soak)], ids=["part", "whole"]
)
def test_a_long_program(count: int, tmp_path: Path, most_unread: list[int]) -> None:
    (tmp_path / "machine.yaml").write_text(MACHINE)
    driver = build(Config(poll_ms=20, answer_timeout_ms=PATIENCE_MS))
    memory: list[int] = []
    ahead: list[int] = []

    def watched() -> Iterator[str]:
        for n, line in enumerate(program(count)):
            if n % (count // 4) == count // 8:
                memory.append(psutil.Process().memory_info().rss)
            if (progress := driver.progress()) is not None:
                ahead.append(progress.read - progress.accepted)
            yield line

    with StandIn(str(tmp_path / "machine.yaml"), rate="max") as machine:
        outcome = asyncio.run(stream(driver, machine.endpoints["machine.grblhal"], watched()))
    assert outcome is None
    assert driver.tally(0).gcode_executed == count
    assert 500 < most_unread[0] <= BUFFER_BYTES, "the buffer is used, and never overrun"
    assert max(ahead) <= BUFFER_BYTES // len("N1M64 P1\n"), "no line is read before it can be sent"
    assert memory[-1] - memory[1] < 20_000_000, "bytes, of both sides together"


@pytest.mark.parametrize("wire", ["port: 0", "pty: true"])
def test_a_program_in_the_arms_dialect_reaches_a_real_controller(wire: str, tmp_path: Path) -> None:
    """The host translates a line of the tool into joint lines; the tool arrives."""
    (tmp_path / "arm.yaml").write_text(ARM.format(wire=wire))
    config = load_config(str(tmp_path / "arm.yaml"))
    settings = Config(dialect="arm", poll_ms=20, answer_timeout_ms=PATIENCE_MS)
    driver = driver_of(config, "", settings)
    tips: list[tuple[float, ...]] = []
    driver.on_joint_state(lambda state: tips.append(driver.tcp(0)[:3]), 0)
    lines = iter(["G0 A10 B-20 C30 V40", "G91", "G1 X30 Y40 Z0 F3000", "G2 X-40 I-20 F3000", "M2"])
    with StandIn(str(tmp_path / "arm.yaml"), rate="max") as arm:
        outcome = asyncio.run(stream(driver, arm.endpoints["g60.grblhal"], lines))
        arrived = arm.do("status")["parts"]["g60"]
    assert outcome is None
    assert not arrived.error
    begun = JointLines(motion_setup(config, "", "arm")).tip(tuple(angle * DEG for angle in BEGUN))
    assert tips[-1] == pytest.approx((begun.x - 0.01, begun.y + 0.04, begun.z), abs=5e-5)
