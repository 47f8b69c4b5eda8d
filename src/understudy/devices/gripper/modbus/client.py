"""Requests of a driver and what fits them as an answer."""

from typing import Annotated, Any

from msgspec import Meta, Struct
from pymodbus.pdu import ModbusPDU
from pymodbus.pdu.register_message import (
    ReadHoldingRegistersRequest,
    ReadInputRegistersRequest,
    WriteMultipleRegistersRequest,
    WriteSingleRegisterRequest,
)

from understudy.devices.gripper.modbus.frames import EXCEPTION_BIT
from understudy.devices.gripper.modbus.interface import Block, Write
from understudy.devices.gripper.modbus.server import READ_HOLDING, WRITE, WRITE_ONE

WRITING = (WRITE_ONE, WRITE)


def read_request(block: Block) -> bytes:
    """The PDU that reads registers."""
    kind: Any = ReadInputRegistersRequest
    if block.function == READ_HOLDING:
        kind = ReadHoldingRegistersRequest
    return _encoded(kind(address=block.address, count=block.size))


def write_request(write: Write, single: bool) -> bytes:
    """The PDU that writes registers; ``single``: one register is written with function 6."""
    kind: Any = WriteMultipleRegistersRequest
    if single and len(write.values) == 1:
        kind = WriteSingleRegisterRequest
    return _encoded(kind(address=write.address, registers=list(write.values)))


def _encoded(request: ModbusPDU) -> bytes:
    data: bytes = bytes([request.function_code]) + request.encode()
    return data


class Pending(Struct):
    """A request without an answer yet. `tries`: how often it may be repeated. `due`: when the
    answer is late."""

    pdu: Annotated[bytes, Meta(min_length=5, max_length=253)]
    tries: Annotated[int, Meta(ge=0, le=100)]
    due: int

    @property
    def writes(self) -> bool:
        return self.pdu[0] in WRITING

    def fits(self, answer: bytes) -> bool:
        """Whether these bytes can be the answer."""
        if answer[0] & ~EXCEPTION_BIT != self.pdu[0]:
            return False
        if answer[0] & EXCEPTION_BIT:
            return len(answer) == 2
        if self.writes:
            return answer == self.pdu[:5]
        return len(answer) == 2 + answer[1] and answer[1] == 2 * self._count()

    def exception(self, answer: bytes) -> int:
        """The number of the exception; 0: the request was carried out."""
        return answer[1] if answer[0] & EXCEPTION_BIT else 0

    def values(self, answer: bytes) -> list[int]:
        """The registers that were read."""
        return [int.from_bytes(answer[at : at + 2], "big") for at in range(2, len(answer), 2)]

    def words(self) -> str:
        verb = "a write" if self.writes else "a read"
        return f"{verb} of register 0x{int.from_bytes(self.pdu[1:3], 'big'):04X}"

    def _count(self) -> int:
        return int.from_bytes(self.pdu[3:5], "big")
