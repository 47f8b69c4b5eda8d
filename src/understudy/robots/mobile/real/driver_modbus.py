"""Requests and answers in Modbus TCP."""

from typing import Any

from pymodbus.exceptions import ModbusException
from pymodbus.framer import FramerSocket
from pymodbus.pdu import DecodePDU, ExceptionResponse, ModbusPDU
from pymodbus.pdu.bit_message import ReadDiscreteInputsRequest, WriteMultipleCoilsRequest
from pymodbus.pdu.register_message import ReadInputRegistersRequest, WriteMultipleRegistersRequest

from understudy.robots.mobile.real.driver_registers import Answer, BadAnswerError, Block, Request

FUNCTIONS = {(False, True): 2, (False, False): 4, (True, True): 15, (True, False): 16}
"""The function code by (writes, bits)."""


class ModbusCodec:
    """`Codec`."""

    def __init__(self) -> None:
        self._framer = FramerSocket(DecodePDU(False))

    def request(self, request: Request) -> bytes:
        pdu = _pdu(request.block, request)
        pdu.transaction_id = request.number
        frame: bytes = self._framer.buildFrame(pdu)
        return frame

    def answer(self, request: Request, received: bytes) -> tuple[int, Answer | None]:
        try:
            used, pdu = self._framer.handleFrame(received, request.block.unit, request.number)
        except ModbusException as problem:
            raise BadAnswerError(f"its answer cannot be read: {problem}") from None
        if pdu is None:
            return used, None
        if isinstance(pdu, ExceptionResponse):
            return used, Answer((), f"exception {pdu.exception_code}")
        expected = FUNCTIONS[request.values is not None, request.block.bits]
        if pdu.function_code != expected:
            raise BadAnswerError(f"it answered function {expected} with {pdu.function_code}")
        values: Any = pdu.bits if request.block.bits else pdu.registers
        return used, Answer([int(value) for value in values] if request.values is None else ())


def _pdu(block: Block, request: Request) -> ModbusPDU:
    if request.values is None:
        kind = ReadDiscreteInputsRequest if block.bits else ReadInputRegistersRequest
        return kind(address=block.address, count=block.count, dev_id=block.unit)
    if block.bits:
        bits = [bool(value) for value in request.values]
        return WriteMultipleCoilsRequest(address=block.address, bits=bits, dev_id=block.unit)
    return WriteMultipleRegistersRequest(
        address=block.address, registers=list(request.values), dev_id=block.unit
    )
