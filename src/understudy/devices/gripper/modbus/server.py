"""Answers of a device with registers to Modbus requests: functions 3, 4, 6, 16 and 23."""

import struct
from collections.abc import Mapping
from typing import Any

from pymodbus.exceptions import ModbusException
from pymodbus.pdu import ExceptionResponse, ModbusPDU
from pymodbus.pdu.register_message import (
    ReadHoldingRegistersRequest,
    ReadHoldingRegistersResponse,
    ReadInputRegistersRequest,
    ReadInputRegistersResponse,
    ReadWriteMultipleRegistersRequest,
    ReadWriteMultipleRegistersResponse,
    WriteMultipleRegistersRequest,
    WriteMultipleRegistersResponse,
    WriteSingleRegisterRequest,
    WriteSingleRegisterResponse,
)

from understudy.devices.gripper.modbus.interface import Registers
from understudy.protocol.modbus import (
    EXCEPTION_BIT,
    LINE_RULES,
    READ_HOLDING,
    READ_INPUT,
    READ_WRITE,
    WRITE,
    WRITE_ONE,
    Frame,
    Kind,
)

ILLEGAL_FUNCTION, ILLEGAL_ADDRESS, ILLEGAL_VALUE, DEVICE_FAILURE = 1, 2, 3, 4
BROADCAST = 0
WRITES = (WRITE_ONE, WRITE)
"""What a broadcast may ask for: nothing is answered to it."""
MOST_READ, MOST_WRITTEN, MOST_WRITTEN_AND_READ = 125, 123, 121


REQUESTS: Mapping[int, type[ModbusPDU]] = {
    READ_HOLDING: ReadHoldingRegistersRequest,
    READ_INPUT: ReadInputRegistersRequest,
    WRITE_ONE: WriteSingleRegisterRequest,
    WRITE: WriteMultipleRegistersRequest,
    READ_WRITE: ReadWriteMultipleRegistersRequest,
}


def respond(device: Registers, kind: Kind, frame: Frame, now: int, *, fails: bool) -> bytes | None:
    """The PDU of the answer to a frame; None: the device is silent. ``fails``: it answers with
    the exception DEVICE_FAILURE."""
    function, line = frame.pdu[0], LINE_RULES[kind]
    if function & EXCEPTION_BIT:
        return None  # the answer of another device on the bus
    if line.shared and frame.unit == BROADCAST:
        if function in WRITES:
            answer_to(device, frame.pdu, now)
        return None
    if frame.unit not in (device.unit, *line.itself):
        return None
    if fails:
        return _encoded(ExceptionResponse(function, DEVICE_FAILURE))
    return answer_to(device, frame.pdu, now)


def answer_to(device: Registers, pdu: bytes, now: int) -> bytes:
    """The PDU of the answer to the PDU of a request."""
    function = pdu[0]
    if function not in device.functions or function not in REQUESTS:
        return _encoded(ExceptionResponse(function, ILLEGAL_FUNCTION))
    request: Any = REQUESTS[function]()
    try:
        request.decode(pdu[1:])
    except (ModbusException, ValueError, IndexError, struct.error):
        return _encoded(ExceptionResponse(function, ILLEGAL_VALUE))
    if not _whole(function, request, pdu):
        return _encoded(ExceptionResponse(function, ILLEGAL_VALUE))
    answer = ANSWERS[function](device, request, now)
    if isinstance(answer, int):
        answer = ExceptionResponse(function, answer)
    return _encoded(answer)


def registers_in(table: Mapping[int, int], address: int, count: int) -> list[int] | int:
    """Registers of a table by address; the exception if one of them is not in it."""
    wanted = range(address, address + count)
    if any(each not in table for each in wanted):
        return ILLEGAL_ADDRESS
    return [table[each] for each in wanted]


def _whole(function: int, request: Any, pdu: bytes) -> bool:
    """Whether the size of a request is the one that its numbers say."""
    if function in (READ_HOLDING, READ_INPUT, WRITE_ONE):
        return len(pdu) == 5
    if function == WRITE:
        count, size, most, head = request.count, request.byte_count, MOST_WRITTEN, 6
    else:
        count, size = request.write_count, request.write_byte_count
        most, head = MOST_WRITTEN_AND_READ, 10
    return bool(1 <= count <= most and size == 2 * count and len(pdu) == head + size)


def _encoded(answer: ModbusPDU) -> bytes:
    data: bytes = bytes([answer.function_code]) + answer.encode()
    return data


# ── one function each ───────────────────────────────────────────────────────────────────────────


def _read_holding(device: Registers, request: Any, now: int) -> ModbusPDU | int:
    values = device.read(request.address, request.count, now)
    return values if isinstance(values, int) else ReadHoldingRegistersResponse(registers=values)


def _read_input(device: Registers, request: Any, now: int) -> ModbusPDU | int:
    values = device.read(request.address, request.count, now)
    return values if isinstance(values, int) else ReadInputRegistersResponse(registers=values)


def _write_one(device: Registers, request: Any, now: int) -> ModbusPDU | int:
    problem = device.write(request.address, request.registers, now)
    return problem or WriteSingleRegisterResponse(
        address=request.address, registers=request.registers
    )


def _write(device: Registers, request: Any, now: int) -> ModbusPDU | int:
    problem = device.write(request.address, request.registers, now)
    return problem or WriteMultipleRegistersResponse(address=request.address, count=request.count)


def _read_write(device: Registers, request: Any, now: int) -> ModbusPDU | int:
    """Writes first, then reads: the answer shows what the write has caused."""
    problem = device.write(request.write_address, request.write_registers, now)
    values = problem or device.read(request.read_address, request.read_count, now)
    return (
        values if isinstance(values, int) else ReadWriteMultipleRegistersResponse(registers=values)
    )


ANSWERS = {
    READ_HOLDING: _read_holding,
    READ_INPUT: _read_input,
    WRITE_ONE: _write_one,
    WRITE: _write,
    READ_WRITE: _read_write,
}
