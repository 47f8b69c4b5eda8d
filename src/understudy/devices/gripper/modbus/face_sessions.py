"""The clients of a virtual Modbus gripper, each a session."""

from typing import Any

import msgspec
from msgspec import Struct

from understudy.devices.gripper.modbus.face import FAULTS
from understudy.devices.gripper.modbus.interface import Registers
from understudy.devices.gripper.modbus.server import respond
from understudy.ports import HANG_UP, FaultSource
from understudy.ports.faults import Faults
from understudy.protocol.modbus import (
    LINE_RULES,
    Frame,
    Kind,
    build_frame,
    frame_reader,
)
from understudy.protocol.sessions import NotInjectable, Outbox, ReadyPeers, SessionFace
from understudy.units import NS_PER_MS

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


class ModbusFace(SessionFace[ModbusSession], NotInjectable):
    """`Face`: the clients of one device on one endpoint."""

    def __init__(self, name: str, kind: Kind, device: Registers, fault_source: FaultSource) -> None:
        self.kind = kind
        self.ready = ReadyPeers()
        self._name = name
        self._device = device
        self._fault_source = fault_source
        self._sessions = {}

    def open(self, peer: str, now: int) -> ModbusSession:
        self._sessions[peer] = ModbusSession(self, peer)
        return self._sessions[peer]

    def close(self, peer: str) -> None:
        self._sessions.pop(peer, None)

    def faults(self) -> Faults:
        return FAULTS

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
