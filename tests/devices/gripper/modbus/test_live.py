"""Over sockets and pseudo-terminals: pymodbus as client and as server, pyrobotiqgripper, and the
driver as REAL."""

import asyncio
import json
import re
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pymodbus.client import AsyncModbusSerialClient, AsyncModbusTcpClient
from pymodbus.client.base import ModbusBaseClient
from pymodbus.exceptions import ModbusIOException
from pymodbus.framer import FramerType
from pymodbus.server import ModbusTcpServer
from pymodbus.simulator import DataType, SimData, SimDevice
from tests.devices.gripper.modbus.servo_cell import config_of
from tests.scratch_packages import python_packages

from understudy.app.live import Live, Options
from understudy.devices.gripper.controller import GripperController
from understudy.devices.gripper.modbus.assembly import MAKES
from understudy.errors import ConfigError, Refused

FACES = {"gripper": {"rtu": {}, "tcp": {"port": 0}, "rtu_over_tcp": {"port": 0}}}
FOREIGN = Path(__file__).parent / "foreign/robotiq.py"
PATIENCE_S = 60.0
LONG_MS = 10_000.0
"""For an answer on a busy machine."""
DUMB_STATUS = [0x3100, 0x0000, 0x0D00]
"""Status of a Robotiq that is activated and open."""


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if condition():
                return
            await asyncio.sleep(0.01)


def live_of(make: str = "robotiq_2f85", *, real: str = "", **servo: Any) -> Live:
    """A live cell with a virtual gripper at its endpoints, or with a REAL one."""
    keys = {"servo": {**servo, "real": {"to": real}}} if real else {"servo": servo, "faces": FACES}
    options = Options(rate=1.0 if real else 5.0, ephemeral=True, real=bool(real))
    return Live(config_of(make, **keys), options)


def gripper_of(live: Live) -> GripperController:
    found = live._cell.components["g60.gripper"]
    assert isinstance(found, GripperController)
    return found


def client_of(live: Live, kind: str) -> ModbusBaseClient:
    place = live.endpoints[f"g60.gripper.{kind}"]
    if kind == "rtu":
        pty = place.removeprefix("pty:")
        return AsyncModbusSerialClient(pty, baudrate=115200, retries=0, timeout=PATIENCE_S)
    host, _, port = place.rpartition("//")[2].rpartition(":")
    framer = FramerType.RTU if kind == "rtu_over_tcp" else FramerType.SOCKET
    return AsyncModbusTcpClient(host, port=int(port), framer=framer, retries=0, timeout=PATIENCE_S)


# ── pymodbus as client ──


async def _activate(client: ModbusBaseClient) -> None:
    await client.write_registers(0x03E8, [0, 0, 0], device_id=9)
    await client.write_registers(0x03E8, [0x0100, 0, 0], device_id=9)
    async with asyncio.timeout(PATIENCE_S):
        while True:
            status = await client.read_holding_registers(0x07D0, count=1, device_id=9)
            if status.registers == [0x3100]:
                return
            await asyncio.sleep(0.02)


async def _conversation(kind: str) -> tuple[Sequence[int], Sequence[int], int, bool]:
    """Status after a close, the same by function 23, an exception, and whether another unit is
    silent."""
    live = live_of(activate_at_start=False)
    await live.start()
    client = client_of(live, kind)
    try:
        assert await client.connect()
        await _activate(client)
        close = [0x0900, 0x00FF, 0xFFFF]
        assert not (await client.write_registers(0x03E8, close, device_id=9)).isError()
        async with asyncio.timeout(PATIENCE_S):
            while True:
                closed = await client.read_input_registers(0x07D0, count=3, device_id=9)
                if closed.registers[0] >> 14:
                    break
        both = await client.readwrite_registers(
            read_address=0x07D0, read_count=2, write_address=0x03E8, values=close, device_id=9
        )
        refused = await client.read_holding_registers(0x0100, count=1, device_id=9)
        silent = False
        try:
            await asyncio.wait_for(
                client.read_holding_registers(0x07D0, count=1, device_id=8), timeout=0.2
            )
        except (TimeoutError, ModbusIOException):
            silent = True
        return closed.registers, both.registers, refused.exception_code, silent
    finally:
        client.close()
        await live.stop()


@pytest.mark.parametrize("kind", ["rtu", "tcp", "rtu_over_tcp"])
def test_pymodbus_talks_to_the_virtual_gripper(kind: str) -> None:
    closed, both, exception, silent = asyncio.run(_conversation(kind))
    assert closed == [0xF900, 0x00FF, 0xE600]
    assert both == closed[:2]
    assert exception == 2
    assert silent


# ── pyrobotiqgripper as client ──


async def _driven(kind: str, environment: dict[str, str]) -> dict[str, Any]:
    """What another maker's driver has read while it drove the gripper."""
    live = live_of(activate_at_start=False)
    await live.start()
    place = live.endpoints["g60.gripper.rtu" if kind == "RTU" else "g60.gripper.rtu_over_tcp"]
    words = [str(FOREIGN), kind, re.split(r"^pty:|.*:", place)[1]]
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *words, stdout=PIPE, stderr=STDOUT, env=environment
        )
        async with asyncio.timeout(PATIENCE_S):
            said, _ = await process.communicate()
        assert process.returncode == 0, said.decode()
        found: dict[str, Any] = json.loads(said.splitlines()[-1])
        return found
    finally:
        await live.stop()


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["RTU", "RTU_VIA_TCP"])
def test_pyrobotiqgripper_drives_the_virtual_gripper(tmp_path: Path, kind: str) -> None:
    seen = asyncio.run(_driven(kind, python_packages(tmp_path, "pyrobotiqgripper")))
    assert not seen["before"]
    assert seen["activated"]
    moves = [seen[name] for name in ("closed", "half", "open")]
    assert [(move["gOBJ"], move["gFLT"]) for move in moves] == [(3, 0)] * 3
    assert [move["gPR"] for move in moves] == [255, 128, 0]
    assert moves[0]["gPO"] > 220
    assert moves[1]["gPO"] == pytest.approx(128, abs=1)
    assert moves[2]["gPO"] <= 13
    assert seen["mm"] == pytest.approx(40.0, abs=0.5)


# ── the driver as REAL ──


async def _real(make: str, kind: str, framing: str) -> tuple[list[str], float]:
    """How a grip and a release of a REAL gripper end; the REAL one is the virtual one of another
    cell."""
    there = live_of(make, activate_at_start=False)
    await there.start()
    place = there.endpoints[f"g60.gripper.{kind}"]
    here = live_of(make, real=place.removeprefix("pty:"), framing=framing, timeout_ms=LONG_MS)
    await here.start()
    ended: list[str] = []
    gripper = gripper_of(here)
    gripper.on_finished(lambda t, refused, now: ended.append(refused.reason if refused else "done"))
    try:
        await until(lambda: gripper.status(here._pump.now()).state == "OPENED")
        for command in (gripper.start_grip, gripper.start_release):
            wanted = len(ended) + 1
            ticket = here._pump.act(partial(command, timeout_ms=50_000.0))
            assert not isinstance(ticket, Refused), ticket
            await until(partial(lambda count: len(ended) == count, wanted))
        return ended, gripper.status(here._pump.now()).opening
    finally:
        await here.stop()
        await there.stop()


@pytest.mark.parametrize(
    ("make", "kind", "framing"),
    [("robotiq_2f85", "rtu", "auto"), ("onrobot_rg2", "tcp", "auto"), ("dh_ag95", "rtu", "rtu")],
)
def test_the_driver_works_with_a_gripper_at_the_other_end_of_a_wire(
    make: str, kind: str, framing: str
) -> None:
    ended, opening = asyncio.run(_real(make, kind, framing))
    assert ended == ["MISSED: closed, and there is no part", "done"]
    assert opening == pytest.approx(MAKES[make].profile.limits.stroke, abs=1e-3)  # type: ignore[index]


def test_a_real_gripper_needs_the_option_real() -> None:
    async def start() -> None:
        Live(config_of(servo={"real": {"to": "127.0.0.1:1"}}), Options(rate=1.0, ephemeral=True))

    with pytest.raises(ConfigError, match="only with --real"):
        asyncio.run(start())


# ── pymodbus as server ──


async def _commanded() -> list[int]:
    """The registers that a close has left in a server of pymodbus."""
    registers = [
        SimData(0x03E8, count=3, values=0, datatype=DataType.REGISTERS),
        SimData(0x07D0, values=DUMB_STATUS, datatype=DataType.REGISTERS),
    ]
    server = ModbusTcpServer(SimDevice(9, registers), address=("127.0.0.1", 0))
    assert await server.listen()
    listening: Any = server.transport
    port = listening.sockets[0].getsockname()[1]
    live = live_of(real=f"127.0.0.1:{port}", timeout_ms=LONG_MS)
    await live.start()
    gripper = gripper_of(live)
    try:
        await until(lambda: gripper.status(live._pump.now()).state == "OPENED")
        live._pump.act(gripper.start_grip)
        async with AsyncModbusTcpClient("127.0.0.1", port=port, timeout=PATIENCE_S) as client:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    read = await client.read_holding_registers(0x03E8, count=3, device_id=9)
                    if read.registers[0]:
                        return list(read.registers)
    finally:
        await live.stop()
        await server.shutdown()  # type: ignore[no-untyped-call]


def test_a_server_of_pymodbus_receives_what_the_driver_writes() -> None:
    speed, force = round(80 / 130 * 255), round(30 / 215 * 255)
    assert asyncio.run(_commanded()) == [0x0900, 0x00FF, speed << 8 | force]
