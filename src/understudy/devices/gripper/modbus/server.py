"""Answers of a device with registers to Modbus requests: functions 3, 4, 6, 16 and 23."""

import struct
from collections.abc import Callable, Mapping, Sequence

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
        return _exception(function, DEVICE_FAILURE)
    return answer_to(device, frame.pdu, now)


def answer_to(device: Registers, pdu: bytes, now: int) -> bytes:
    """The PDU of the answer to the PDU of a request."""
    function, data = pdu[0], pdu[1:]
    if function not in device.functions or function not in ANSWERS:
        return _exception(function, ILLEGAL_FUNCTION)
    answer = ANSWERS[function](device, data, now)
    return _exception(function, answer) if isinstance(answer, int) else pdu[:1] + answer


def registers_in(table: Mapping[int, int], address: int, count: int) -> list[int] | int:
    """Registers of a table by address; the exception if one of them is not in it."""
    wanted = range(address, address + count)
    if any(each not in table for each in wanted):
        return ILLEGAL_ADDRESS
    return [table[each] for each in wanted]


def _exception(function: int, number: int) -> bytes:
    return bytes([function | EXCEPTION_BIT, number])


# ── one function each: the data of the answer, or the number of an exception ────────────────────


def _read(device: Registers, data: bytes, now: int) -> bytes | int:
    if len(data) != 4:
        return ILLEGAL_VALUE
    address, count = struct.unpack(">HH", data)
    if not 1 <= count <= MOST_READ:
        return ILLEGAL_VALUE
    return _counted(device.read(address, count, now))


def _write_one(device: Registers, data: bytes, now: int) -> bytes | int:
    if len(data) != 4:
        return ILLEGAL_VALUE
    address, value = struct.unpack(">HH", data)
    return device.write(address, [value], now) or data


def _write(device: Registers, data: bytes, now: int) -> bytes | int:
    if len(data) < 5:
        return ILLEGAL_VALUE
    values = _values(data[2:], MOST_WRITTEN)
    if values is None:
        return ILLEGAL_VALUE
    return device.write(int.from_bytes(data[:2], "big"), values, now) or data[:4]


def _read_write(device: Registers, data: bytes, now: int) -> bytes | int:
    """Writes first, then reads: the answer shows what the write has caused."""
    if len(data) < 9:
        return ILLEGAL_VALUE
    address, count, write_address = struct.unpack(">HHH", data[:6])
    values = _values(data[6:], MOST_WRITTEN_AND_READ)
    if values is None or not 1 <= count <= MOST_READ:
        return ILLEGAL_VALUE
    return device.write(write_address, values, now) or _counted(device.read(address, count, now))


def _values(data: bytes, most: int) -> list[int] | None:
    """The registers of a request to write: their number, their bytes, and themselves; None if the
    numbers do not fit what follows."""
    count, size = struct.unpack(">HB", data[:3])
    if not (1 <= count <= most and size == 2 * count == len(data) - 3):
        return None
    return list(struct.unpack(f">{count}H", data[3:]))


def _counted(values: Sequence[int] | int) -> bytes | int:
    if isinstance(values, int):
        return values
    return struct.pack(f">B{len(values)}H", 2 * len(values), *values)


ANSWERS: Mapping[int, Callable[[Registers, bytes, int], bytes | int]] = {
    READ_HOLDING: _read,
    READ_INPUT: _read,
    WRITE_ONE: _write_one,
    WRITE: _write,
    READ_WRITE: _read_write,
}
