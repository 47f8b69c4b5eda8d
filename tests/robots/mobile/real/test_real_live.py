"""The driver of a PLC over a real connection, against the Modbus TCP server of pymodbus."""

import asyncio
from typing import Any

from pymodbus.client import AsyncModbusTcpClient
from pymodbus.server import ModbusTcpServer
from pymodbus.simulator import DataType, SimData, SimDevice

from understudy.robots.mobile.real.channels import MotorCommand
from understudy.robots.mobile.real.modbus import ModbusCodec
from understudy.robots.mobile.real.registers import Block, RegisterDriver, motor_status, written
from understudy.simulation.cell import Cell
from understudy.wire.dial import Destination, Dial
from understudy.wire.exchange import Exchange
from understudy.wire.pump import Pump

STATUS = [1, 0, 12_345, 0xFFFF, 0xFF38, 0]
"""Ready; 1.2345 m; -0.02 m/s."""
DEADLINE_SECONDS = 90


def device() -> SimDevice:
    bits = [SimData(0, count=8, values=[True] + [False] * 7, datatype=DataType.BITS)]
    return SimDevice(
        1,
        (
            [SimData(0, count=8, values=False, datatype=DataType.BITS)],
            bits,
            [SimData(0, count=20, values=0, datatype=DataType.REGISTERS)],
            [SimData(0, values=STATUS, datatype=DataType.REGISTERS)],
        ),
    )


async def _set_speed(port: int) -> list[int]:
    """The control word and the set speed that have arrived at the server."""
    async with AsyncModbusTcpClient("127.0.0.1", port=port, timeout=DEADLINE_SECONDS) as client:
        answer = await client.read_holding_registers(0, count=3, device_id=1)
    return list(answer.registers)


async def _exchange() -> tuple[RegisterDriver, int, int, int]:
    server = ModbusTcpServer(device(), address=("127.0.0.1", 0))
    assert await server.listen()
    listening: Any = server.transport
    port = listening.sockets[0].getsockname()[1]
    driver = RegisterDriver("tcp://127.0.0.1:1", ModbusCodec, print)
    motor, bit = driver.read(Block(1, 0, 6, bits=False)), driver.read(Block(1, 0, 1, bits=True))
    outputs = driver.write(Block(1, 0, 14, bits=False))
    command = MotorCommand((1.0, 1.0, 1.0), enable=True, speed=0.5)
    pump = Pump(Exchange(Cell("real", digest="", components={"plc": driver}, faces={})))
    dial = Dial(driver, Destination("127.0.0.1", port), pump)
    pump.start()
    dial.start()
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while driver.answer(motor, pump.now()) is None or driver.cycles < 5:
                driver.put(outputs, written(command, driver.cycles))
                pump.act(driver.begin_cycle)
                await asyncio.sleep(0.001)
            assert await _set_speed(port) == [1, 0, 5000]
    finally:
        await dial.stop()
        pump.stop()
        await server.shutdown()  # type: ignore[no-untyped-call]
    return driver, motor, bit, pump.now()


def test_registers_of_a_real_server_are_read_and_written() -> None:
    driver, motor, bit, now = asyncio.run(_exchange())
    registers = driver.answer(motor, now)
    assert registers is not None
    status = motor_status(registers)
    assert (status.ready, status.position, status.velocity) == (True, 1.2345, -0.02)
    assert driver.answer(bit, now) == (1,)
