"""Messages of CANopen (CiA 301): NMT, SYNC, heartbeat, emergency and expedited SDO.

    identifier        message                     data
    0x000             NMT command                 command, node
    0x080             SYNC                        none
    0x080 + node      emergency                   error code (2 bytes), register, 5 of the maker
    0x180 + node …    process data (PDO)          as it is mapped
    0x580 + node      SDO answer                  see below
    0x600 + node      SDO request                 command, index (2 bytes), sub-index, value
    0x700 + node      heartbeat                   state of the node; 0: it has just started

An SDO that carries up to four bytes is *expedited*: one request, one answer. Everything here is
little-endian.
"""

import struct
from collections.abc import Mapping
from typing import NamedTuple

from understudy.protocol.can_frames import CanFrame

NMT, SYNC, EMERGENCY, SDO_ANSWER, SDO_REQUEST, HEARTBEAT = 0x0, 0x80, 0x80, 0x580, 0x600, 0x700
START, PRE_OPERATIONAL = 0x01, 0x80
"""NMT commands."""
BOOTED, OPERATIONAL = 0x00, 0x05
"""States in a heartbeat."""
NODE = 0x7F
"""Bits of the node in an identifier."""

_READ = 0x40
_WRITE = {1: 0x2F, 2: 0x2B, 4: 0x23}
"""Command of a write by the number of bytes."""
_WRITTEN, _ABORTED = 0x60, 0x80
_SDO = struct.Struct("<BHBI")

ABORTS: Mapping[int, str] = {
    0x05030000: "toggle bit not alternated",
    0x05040000: "SDO protocol timed out",
    0x06010000: "unsupported access",
    0x06010001: "the object can only be written",
    0x06010002: "the object can only be read",
    0x06020000: "the object does not exist",
    0x06040041: "the object cannot be mapped to a PDO",
    0x06040042: "the PDO would be too long",
    0x06060000: "a fault of the hardware",
    0x06070010: "the value has another length",
    0x06090011: "the sub-index does not exist",
    0x06090030: "the value is out of range",
    0x06090031: "the value is too high",
    0x06090032: "the value is too low",
    0x08000000: "general error",
    0x08000020: "the value cannot be stored",
    0x08000022: "the value cannot be stored in this state of the device",
}
"""Abort codes of CiA 301 that drives use."""


class Sdo(NamedTuple):
    """A request for one object, by its index. ``value``: what is written; None: the object is read.
    ``size``: bytes of the value. ``needed``: a node that refuses it cannot be used."""

    object: int
    sub: int
    value: int | None
    size: int
    needed: bool = True

    @property
    def name(self) -> str:
        return f"{self.object:04X}h:{self.sub}"

    def frame(self, node: int) -> CanFrame:
        command = _READ if self.value is None else _WRITE[self.size]
        value = (self.value or 0) & ((1 << 8 * self.size) - 1)
        return CanFrame(SDO_REQUEST + node, _SDO.pack(command, self.object, self.sub, value))


class SdoAnswer(NamedTuple):
    """The answer of a node. ``value``: what was read, 0 after a write. ``refused``: why the node
    refuses the request."""

    value: int
    refused: str = ""


def answer_to(request: Sdo, data: bytes) -> SdoAnswer | None:
    """The answer in ``data``; None if it belongs to another request or cannot be read."""
    if len(data) != _SDO.size:
        return None
    command, index, sub, value = _SDO.unpack(data)
    if (index, sub) != (request.object, request.sub):
        return None
    if command == _ABORTED:
        return SdoAnswer(0, f"{ABORTS.get(value, 'abort code')} ({value:08X}h)")
    if request.value is not None:
        return SdoAnswer(0) if command == _WRITTEN else None
    if command & 0xF3 == 0x43:  # expedited, with the number of bytes that are not used
        return SdoAnswer(value & (0xFFFFFFFF >> 8 * (command >> 2 & 3)))
    return SdoAnswer(value) if command == 0x42 else None


def nmt(command: int, node: int) -> CanFrame:
    return CanFrame(NMT, bytes((command, node)))


def sync() -> CanFrame:
    return CanFrame(SYNC, b"")


def heartbeat(node: int) -> CanFrame:
    return CanFrame(HEARTBEAT + node, bytes((OPERATIONAL,)))
