"""Modbus TCP: `Codec` of a PLC."""

from understudy.protocol.modbus import (
    READ_BITS,
    READ_INPUT,
    Frame,
    TcpReader,
    answer_fits,
    build_frame,
    exception_number,
    read_request,
    read_values,
    write_bits_request,
    write_request,
)
from understudy.robots.mobile.real.registers import BadAnswerError, DeviceAnswer, Request


class ModbusCodec:
    """`Codec`."""

    def __init__(self) -> None:
        self._reader = TcpReader()

    def encode(self, request: Request) -> bytes:
        return build_frame("tcp", Frame(request.block.unit, request.number, _pdu(request)))

    def decode(self, data: bytes, request: Request) -> DeviceAnswer | None:
        frames = self._reader.feed(data)
        if self._reader.broken:
            raise BadAnswerError("its answer is not Modbus")
        answers = [frame.pdu for frame in frames if _is_for(frame, request)]
        if not answers:
            return None
        pdu, sent = answers[0], _pdu(request)
        if not answer_fits(sent, pdu):
            quoted = pdu[:20].hex(" ")
            raise BadAnswerError(f"its answer does not fit function {sent[0]}: {quoted}")
        if number := exception_number(pdu):
            return DeviceAnswer((), f"exception {number}")
        return DeviceAnswer(read_values(pdu) if request.values is None else ())


def _is_for(frame: Frame, request: Request) -> bool:
    """Whether a frame can answer the request. Some devices leave the transaction at 0, and unit 0
    stands for whatever unit is behind the address."""
    block = request.block
    return frame.transaction in (0, request.number) and block.unit in (0, frame.unit)


def _pdu(request: Request) -> bytes:
    block = request.block
    if request.values is None:
        return read_request(READ_BITS if block.bits else READ_INPUT, block.address, block.count)
    if block.bits:
        return write_bits_request(block.address, request.values)
    return write_request(block.address, request.values)
