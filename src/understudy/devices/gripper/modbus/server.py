"""Answers of a device with registers to Modbus requests, and the sessions of its clients."""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from understudy.devices.gripper.modbus import FACE_FAULTS
from understudy.devices.gripper.modbus.interface import Registers
from understudy.ports import HANG_UP, FaultSource
from understudy.ports.decoder import Decoded, Decoder, Operations, operations_by_name
from understudy.ports.faults import Faults
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
    Side,
    build_frame,
    frame_reader,
)
from understudy.protocol.sessions import NotInjectable, Outbox, ReadyPeers, SessionFace
from understudy.units import NS_PER_MS

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


# ── the clients of a virtual gripper, each a session ──────────────────────────────────────────────


SILENCE = 50 * NS_PER_MS
"""Pause after which the next byte begins a new RTU frame."""
READ_SIZE = 4096
OUTBOX_LIMIT = 64 * 1024


class SavedSession(Struct):
    """Snapshot of a session; `silent_at`: when the frame that has begun is dropped."""

    part: bytes = b""
    silent_at: int | None = None
    outbox: list[bytes] = []
    ended: bool = False


class ModbusSession:
    """`Session` of one client."""

    def __init__(self, face: "ModbusFace", peer: str, saved: SavedSession | None = None) -> None:
        was = saved or SavedSession()
        self._face = face
        self._peer = peer
        self._reader = frame_reader(face.kind, "requests", was.part)
        self._outbox = Outbox(lambda: face.ready.add(peer), was.outbox)
        self._ended = was.ended
        self.silent_at = was.silent_at

    def receive(self, data: bytes, now: int) -> None:
        for frame in self._reader.feed(data):
            answer = self._face.answer(frame, now)
            if answer is not None:
                self._outbox.send(build_frame(self._face.kind, frame._replace(pdu=answer)))
        ends = LINE_RULES[self._face.kind].shared and self._reader.part
        self.silent_at = now + SILENCE if ends else None
        if self._reader.broken:
            self._outbox.end()

    def take(self, room: int) -> bytes:
        return self._outbox.take(room)

    def eof(self, now: int) -> None:
        self._ended = True

    def closed(self, now: int) -> None:
        self._face.close(self._peer)

    def credit(self) -> int:
        if self._reader.broken:
            return HANG_UP
        return 0 if self._ended or self._outbox.size >= OUTBOX_LIMIT else READ_SIZE

    def owed(self) -> bool:
        return False

    def silence(self) -> None:
        self._reader.silence()
        self.silent_at = None

    def save(self) -> SavedSession:
        return SavedSession(self._reader.part, self.silent_at, self._outbox.save(), self._ended)


# ── the decoder ──


def decoder_for(kind: Kind) -> Decoder:
    """Reads the frames of a serial line or of TCP."""
    pause = SILENCE if LINE_RULES[kind].shared else 0
    return Decoder(
        cut_requests=partial(cut_frames, kind, "requests"),
        cut_answers=partial(cut_frames, kind, "answers"),
        pause=pause,
        read_request=partial(_decode, kind, "requests"),
        read_answer=partial(_decode, kind, "answers"),
        name_field=partial(field_of_answer, kind),
        line_answers=None,
    )


def cut_frames(kind: Kind, side: Side, data: bytes) -> tuple[list[bytes], bytes]:
    """The frames in a stream; bytes between them that are none are a message, too."""
    reader = frame_reader(kind, side)
    messages, at = [], 0
    for frame in reader.feed(data):
        whole = build_frame(kind, frame)
        begin = data.index(whole, at)
        messages += [data[at:begin], whole] if begin > at else [whole]
        at = begin + len(whole)
    end = len(data) - len(reader.part)
    return [*messages, data[at:end]] if end > at else messages, reader.part


def _decode(kind: Kind, side: Side, data: bytes, address: str) -> Decoded:
    """The function of a frame, and the addresses and values in it."""
    frames = frame_reader(kind, side).feed(data)
    if not frames:
        return Decoded()
    unit, _, pdu = frames[0]
    function, refused = pdu[0] & ~EXCEPTION_BIT, bool(pdu[0] & EXCEPTION_BIT)
    fields: dict[str, Any] = {"unit": unit}
    if refused:
        fields["exception"] = pdu[1] if len(pdu) > 1 else 0
    elif side == "requests" and len(pdu) >= 5:
        fields |= _asked(function, pdu)
    elif side == "answers" and function in READS:
        fields["values"] = [int.from_bytes(pdu[n : n + 2], "big") for n in range(2, len(pdu), 2)]
    return Decoded((f"FC{function:02d}",), fields, refused)


TCP_HEADER = ("transaction", "transaction", "protocol", "protocol", "length", "length")
READS = (READ_HOLDING, READ_INPUT, READ_WRITE)


def field_of_answer(kind: Kind, answer: bytes, byte: int) -> str:
    """Name of the field of a frame to which a byte belongs, by its place: the frame may be
    damaged. Registers are counted from the first one that was asked for."""
    header = TCP_HEADER if kind == "tcp" else ()
    if byte < len(header):
        return header[byte]
    at = byte - len(header)
    if at < 2:
        return ("unit", "function")[at]
    if kind == "rtu" and byte >= len(answer) - 2:
        return "CRC"
    function = answer[len(header) + 1]
    if function & EXCEPTION_BIT:
        return "exception"
    if function in READS:
        return "byte count" if at == 2 else f"register {(at - 3) // 2}"
    value = "value" if function == WRITE_ONE else "count"
    return "address" if at < 4 else value


def _asked(function: int, pdu: bytes) -> dict[str, Any]:
    """What a request reads and writes: first address, number of registers, values."""
    address, count = struct.unpack(">HH", pdu[1:5])
    if function == WRITE_ONE:
        return {"address": address, "values": [count]}
    asked: dict[str, Any] = {"address": address, "count": count}
    values = {WRITE: pdu[3:], READ_WRITE: pdu[7:]}.get(function, b"")
    if len(values) >= 3:
        asked["values"] = _values(values, MOST_WRITTEN) or []
    if function == READ_WRITE:
        asked["write_address"] = int.from_bytes(pdu[5:7], "big")
    return asked


class ModbusFace(SessionFace[ModbusSession], NotInjectable):
    """`Face`: the clients of one device on one endpoint."""

    def __init__(self, name: str, kind: Kind, device: Registers, fault_source: FaultSource) -> None:
        self.kind = kind
        self.decoder = replace(decoder_for(kind), operations=self._functions)
        self.ready = ReadyPeers()
        self._name = name
        self._device = device
        self._fault_source = fault_source
        self._sessions = {}

    def _functions(self) -> Operations:
        from understudy.devices.gripper.modbus.operations import functions

        return operations_by_name(functions(self._device.functions))

    def open(self, peer: str, now: int) -> ModbusSession:
        self._sessions[peer] = ModbusSession(self, peer)
        return self._sessions[peer]

    def close(self, peer: str) -> None:
        self._sessions.pop(peer, None)

    def faults(self) -> Faults:
        return FACE_FAULTS

    def answer(self, frame: Frame, now: int) -> bytes | None:
        """The PDU of the answer; None: the device is silent."""
        if frame.unit == self._device.unit:
            self._fault_source.received(self._name, f"FC{frame.pdu[0]:02d}", now)
        fails = self._fault_source.draw_fault("device_failure", self._name, now) is not None
        return respond(self._device, self.kind, frame, now, fails=fails)

    # ── time ──

    def next_wake(self) -> int | None:
        due = (each.silent_at for each in self._sessions.values() if each.silent_at is not None)
        return min(due, default=None)

    def wake(self, now: int) -> None:
        for session in self._sessions.values():
            if session.silent_at is not None and session.silent_at <= now:
                session.silence()

    # ── snapshot ──

    def save(self) -> dict[str, SavedSession]:
        return {peer: session.save() for peer, session in self._sessions.items()}

    def load(self, state: Any) -> None:
        sessions = msgspec.convert(state, dict[str, SavedSession])
        self._sessions = {peer: ModbusSession(self, peer, each) for peer, each in sessions.items()}
