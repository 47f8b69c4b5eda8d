"""CAN buses, by python-can: where one is, and the connection that a driver makes to it.

    can:socketcan:can0            an interface of Linux; its bit rate is set by `ip link`
    can:pcan:PCAN_USBBUS1@500000  an adapter with its bit rate
    can:virtual:NAME              a bus inside this process

The driver gets and gives whole frames of 16 bytes (`protocol.can_frames`). No frame is dropped
silently: one that the bus does not take is sent again for a while, then the connection ends; frames
that come faster than they are handled end it, too, as does a controller that lost some. Frames of
CAN FD do not fit and are counted in the log.
"""

import asyncio
import contextlib
import logging
import re
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from understudy.errors import ConfigError, needs
from understudy.protocol.can_frames import (
    EXTENDED,
    IDENTIFIER,
    LARGEST_STANDARD,
    LONGEST,
    REMOTE,
    SIZE,
    CanFrame,
    unpack,
)
from understudy.wire.dial import Call, Dial, DialTarget, parse_place
from understudy.wire.interface import words_of

if TYPE_CHECKING:
    from can import BusABC, Message

log = logging.getLogger(__name__)

FORMS = "can:INTERFACE:CHANNEL or can:INTERFACE:CHANNEL@BITRATE, e.g. can:socketcan:can0@500000"
LARGEST_BACKLOG = 256
"""Frames that wait to be sent."""
MOST_UNREAD = 4096
"""Frames that wait to be handled: half a second of a full bus with 1 Mbit/s."""
READ_AT_ONCE = 256
RETRY_SECONDS = 0.002
GIVE_UP = 250
"""Attempts to send one frame: about half a second."""
POLL_SECONDS = 0.05
"""How long a thread that reads a bus takes to see that it shall end."""
LOST_FRAMES = {0x40: "bus off", 0x04: "the controller has lost frames"}
"""Classes of error frames of Linux after which the connection is made anew. Of class 4 only those
with an overflow count."""
OVERFLOW = 0x03
"""Bits of the second byte of an error frame of class 4: receiving or sending buffer overflow."""

_BUS = re.compile(r"can:([a-z0-9_]{1,32}):([^\s@]{1,200})(?:@([0-9]{4,7}))?")


class CanBus(Struct, frozen=True, forbid_unknown_fields=True):
    """The `DialTarget` of a CAN bus; ``bitrate`` is None where the system sets it."""

    interface: str
    channel: str
    bitrate: Annotated[int, Meta(ge=1000, le=8_000_000)] | None = None

    def __str__(self) -> str:
        rate = f"@{self.bitrate}" if self.bitrate is not None else ""
        return f"can:{self.interface}:{self.channel}{rate}"

    def call(self, dial: Dial, number: int) -> Call:
        return CanCall(dial, number, self)


def parse_bus(text: str) -> CanBus:
    """Reads the address of a CAN bus."""
    found = _BUS.fullmatch(text)
    if found is None:
        raise ConfigError("not the address of a CAN bus", value=text, allowed=FORMS)
    return CanBus(found[1], found[2], int(found[3]) if found[3] else None)


def device_place(text: str) -> DialTarget:
    """Reads the address of a device: of a CAN bus, or as `understudy send --to` has it."""
    return parse_bus(text) if text.startswith("can:") else parse_place(text)


def open_bus(place: CanBus) -> "BusABC":
    """Opens a bus; OSError if that fails. It may take seconds: some adapters start slowly."""
    try:
        import can
    except ImportError:
        raise OSError(needs("python-can")) from None
    try:
        if place.bitrate is None:
            return can.Bus(interface=place.interface, channel=place.channel)
        return can.Bus(interface=place.interface, channel=place.channel, bitrate=place.bitrate)
    except (can.CanError, OSError, ValueError, TypeError, ImportError) as problem:
        raise OSError(words_of(problem)) from None


class CanCall:
    """`Call` over a CAN bus. A bus with a file descriptor is read by the event loop, another one by
    a thread."""

    def __init__(self, dial: Dial, number: int, place: CanBus) -> None:
        self.number = number
        self.ended = asyncio.Event()
        self._dial = dial
        self._place = place
        self._loop = asyncio.get_running_loop()
        self._bus: BusABC | None = None
        self._unsent: deque[CanFrame] = deque()
        self._attempts = 0
        """How often the first of the unsent frames was given to the bus."""
        self._retry: asyncio.TimerHandle | None = None
        self._unread = UnreadFrames(self._loop, self._deliver)
        self._foreign = 0
        self._dropped = False
        self._opening = self._loop.create_task(self._open())

    async def _open(self) -> None:
        try:
            bus = await asyncio.to_thread(open_bus, self._place)
        except OSError as problem:
            self.ended.set()
            self._dial.lost(self, f"{self._place} cannot be opened: {words_of(problem)}")
            return
        if self._dropped:
            self._shut(bus)
            return
        self._bus = bus
        descriptor = _descriptor(bus)
        if descriptor is None:
            self._unread.read(bus)
        else:
            self._loop.add_reader(descriptor, self._read, bus)
        self._dial.connected(self)

    # ── call ──

    def carry(self, take: Callable[[int], bytes]) -> None:
        while self._bus is not None and (data := take(self._room())):
            self._unsent.extend(unpack(data))
            if self._retry is None:
                self._send()

    def close(self) -> None:
        """Closes at once: a bus that does not take frames now will hardly take them later."""
        self.drop()

    def drop(self) -> None:
        self._dropped = True
        if self._retry is not None:
            self._retry.cancel()
        bus, self._bus = self._bus, None
        if bus is not None:
            if (descriptor := _descriptor(bus)) is not None:
                self._loop.remove_reader(descriptor)
            self._shut(bus)

    def _shut(self, bus: "BusABC") -> None:
        """Closes the bus; the event loop does not wait for it."""
        closed = self._loop.run_in_executor(None, self._close_bus, bus)
        closed.add_done_callback(lambda _: self.ended.set())

    def _close_bus(self, bus: "BusABC") -> None:
        self._unread.stop()
        with contextlib.suppress(Exception):  # adapters raise errors of their own when unplugged
            bus.shutdown()

    # ── to the bus ──

    def _send(self) -> None:
        self._retry = None
        while self._bus is not None and self._unsent:
            try:
                self._bus.send(_message(self._unsent[0]), timeout=0)
            except Exception as problem:  # noqa: BLE001  adapters raise errors of their own
                self._attempts += 1
                if self._attempts >= GIVE_UP:
                    self._gone(f"it takes no frames: {words_of(problem)}")
                else:
                    self._retry = self._loop.call_later(RETRY_SECONDS, self._retried)
                return
            self._attempts = 0
            self._unsent.popleft()

    def _retried(self) -> None:
        self._send()
        self._dial.look()

    def _room(self) -> int:
        return max(0, LARGEST_BACKLOG - len(self._unsent)) * SIZE

    # ── from the bus ──

    def _read(self, bus: "BusABC") -> None:
        messages: list[Message] = []
        try:
            while len(messages) < READ_AT_ONCE and (message := bus.recv(0)):
                messages.append(message)
        except Exception as problem:  # noqa: BLE001  adapters raise errors of their own
            self._gone(words_of(problem))
            return
        self._deliver(messages, "")

    def _deliver(self, messages: "list[Message]", trouble: str) -> None:
        """Gives frames to the driver. ``trouble`` says why the bus cannot be read on."""
        if self._bus is None:
            return
        frames = []
        for message in messages:
            if message.is_error_frame:
                trouble = trouble or _loss(message)
            elif message.is_fd or len(message.data) > LONGEST:
                self._note_foreign()
            else:
                frames.append(_frame(message).pack())
        if frames:
            self._dial.received(self, b"".join(frames))
        if trouble:
            self._gone(trouble)

    def _note_foreign(self) -> None:
        self._foreign += 1
        if self._foreign & (self._foreign - 1) == 0:  # 1, 2, 4, 8 …
            log.warning("%s: %d frames of CAN FD were not read", self._place, self._foreign)

    def _gone(self, why: str) -> None:
        self.drop()
        self._dial.lost(self, f"{self._place} is gone: {why}")


class UnreadFrames:
    """Reads a bus without a file descriptor in a thread, and hands its frames to the event loop.

    It stops when the event loop does not take them; ``deliver`` then gets the reason.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, deliver: "Callable[[list[Message], str], None]"
    ) -> None:
        self._loop = loop
        self._deliver = deliver
        self._lock = threading.Lock()
        self._waiting: list[Message] = []
        self._trouble = ""
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def read(self, bus: "BusABC") -> None:
        self._thread = threading.Thread(target=self._run, args=(bus,), daemon=True, name="can bus")
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, bus: "BusABC") -> None:
        while not self._stopped.is_set():
            try:
                message = bus.recv(POLL_SECONDS)
            except Exception as problem:  # noqa: BLE001  adapters raise errors of their own
                self._put(None, words_of(problem) or type(problem).__name__)
                return
            if message is not None and not self._put(message, ""):
                return

    def _put(self, message: "Message | None", trouble: str) -> bool:
        """Whether there was room."""
        with self._lock:
            full = len(self._waiting) >= MOST_UNREAD
            self._trouble = trouble or ("frames come faster than they are handled" if full else "")
            wake = not self._waiting or bool(self._trouble)
            if message is not None and not full:
                self._waiting.append(message)
        if wake:
            with contextlib.suppress(RuntimeError):  # the event loop has ended
                self._loop.call_soon_threadsafe(self._hand_over)
        return not full

    def _hand_over(self) -> None:
        with self._lock:
            messages, self._waiting = self._waiting, []
            trouble = self._trouble
        self._deliver(messages, trouble)


def _descriptor(bus: "BusABC") -> int | None:
    try:
        found = bus.fileno()
    except NotImplementedError:
        return None
    return found if found >= 0 else None


def _message(frame: CanFrame) -> "Message":
    from can import Message

    identifier = frame.id & IDENTIFIER
    return Message(
        arbitration_id=identifier,
        is_extended_id=bool(frame.id & EXTENDED) or identifier > LARGEST_STANDARD,
        is_remote_frame=bool(frame.id & REMOTE),
        data=None if frame.id & REMOTE else frame.data,
    )


def _frame(message: "Message") -> CanFrame:
    flags = EXTENDED * message.is_extended_id | REMOTE * message.is_remote_frame
    return CanFrame(message.arbitration_id | flags, bytes(message.data))


def _loss(message: "Message") -> str:
    """Why the connection must be made anew after an error frame; empty if it need not."""
    kinds, data = message.arbitration_id, bytes(message.data)
    if kinds & 0x04 and not (len(data) > 1 and data[1] & OVERFLOW):
        kinds &= ~0x04
    return next((text for kind, text in LOST_FRAMES.items() if kinds & kind), "")
