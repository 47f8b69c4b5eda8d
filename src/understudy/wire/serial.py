"""Calls over a serial device, or a pseudo-terminal: opened when a caller wants to talk.

A cable that is pulled ends the call; when to try again is the caller's affair. The device is ours
alone while it is open: two senders on one line would mix their bytes.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from understudy.wire.dial import Dial, words_of
from understudy.wire.exchange import UNLIMITED
from understudy.wire.tcp import LARGEST_BACKLOG

if TYPE_CHECKING:
    from serial import Serial

READ_SIZE = 4096
BAUD = 115_200
BAUDS = range(50, 4_000_001)


class Device(Struct, frozen=True, forbid_unknown_fields=True):
    """A serial port by the path of its device."""

    path: str
    baud: Annotated[int, Meta(ge=50, le=4_000_000)] = BAUD

    def __str__(self) -> str:
        return f"serial:{self.path}" + (f"@{self.baud}" if self.baud != BAUD else "")

    def call(self, dial: Dial, number: int) -> "SerialCall":
        return SerialCall(dial, number, self)


def open_device(device: Device) -> "Serial":
    """Ready to read and write without waiting; OSError if that cannot be."""
    try:
        from serial import Serial
    except ImportError:
        raise OSError("pyserial is missing: pip install understudy[serial]") from None
    return Serial(device.path, device.baud, timeout=0, write_timeout=0, exclusive=True)


class SerialCall:
    """`Call` over a serial line."""

    def __init__(self, dial: Dial, number: int, device: Device) -> None:
        self.number = number
        self.ended = asyncio.Event()
        self._dial = dial
        self._device = device
        self._loop = asyncio.get_running_loop()
        self._port: Serial | None = None
        self._unsent = bytearray()
        self._attempt = self._loop.call_soon(self._open)

    def _open(self) -> None:
        try:
            self._port = open_device(self._device)
        except (OSError, ValueError) as problem:
            self.ended.set()
            self._dial.lost(self, f"{self._device} cannot be opened: {words_of(problem)}")
            return
        self._loop.add_reader(self._port.fileno(), self._read)
        self._dial.connected(self)

    # ── call ──

    def carry(self, take: Callable[[int], bytes]) -> None:
        while self._port is not None and (data := take(self._room())):
            self._unsent += data
            self._write()

    def close(self) -> None:
        """A serial line says nothing when it is hung up; what is unsent is not waited for."""
        self.drop()

    def drop(self) -> None:
        self._attempt.cancel()
        self.ended.set()
        port, self._port = self._port, None
        if port is not None:
            self._loop.remove_reader(port.fileno())
            self._loop.remove_writer(port.fileno())
            with contextlib.suppress(OSError):
                port.close()

    # ── the device ──

    def _read(self) -> None:
        assert self._port is not None
        try:
            data = os.read(self._port.fileno(), READ_SIZE)
        except BlockingIOError:
            return
        except OSError as problem:
            self._gone(words_of(problem))
            return
        if data:
            self._dial.received(self, data)
        else:
            self._gone("unplugged")

    def _write(self) -> None:
        assert self._port is not None
        try:
            del self._unsent[: os.write(self._port.fileno(), self._unsent)]
        except BlockingIOError:
            pass
        except OSError as problem:
            self._gone(words_of(problem))
            return
        if self._unsent:
            self._loop.add_writer(self._port.fileno(), self._drain)

    def _drain(self) -> None:
        assert self._port is not None
        self._loop.remove_writer(self._port.fileno())
        self._write()
        self._dial.look()

    def _gone(self, why: str) -> None:
        self.drop()
        self._dial.lost(self, f"{self._device} is gone: {why}")

    def _room(self) -> int:
        return UNLIMITED if not self._unsent else max(0, LARGEST_BACKLOG - len(self._unsent))
