"""CAN buses: addresses, and frames on the virtual and the multicast bus of python-can."""

import asyncio
import logging
import secrets
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import can
import pytest

from understudy.errors import ConfigError
from understudy.protocol.can_frames import EXTENDED, REMOTE, SIZE, CanFrame, unpack
from understudy.wire import can as wire
from understudy.wire.can import CanBus, device_place, parse_bus
from understudy.wire.dial import Destination, Dial

PATIENCE_S = 60.0
FRAMES = [
    CanFrame(0x123, b"\x01\x02\x03"),
    CanFrame(0x7FF, b""),
    CanFrame(0x12345 | EXTENDED, b"12345678"),
    CanFrame(0x55 | EXTENDED, b"short id in a long frame"[:8]),
    CanFrame(0x42 | REMOTE, b""),
]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("can:virtual:a", CanBus("virtual", "a")),
        ("can:socketcan:can0@500000", CanBus("socketcan", "can0", 500_000)),
        ("can:slcan:/dev/ttyACM0@250000", CanBus("slcan", "/dev/ttyACM0", 250_000)),
        ("can:udp_multicast:ff15:7079::1", CanBus("udp_multicast", "ff15:7079::1")),
    ],
)
def test_the_address_of_a_bus_is_read_and_written(text: str, place: CanBus) -> None:
    assert parse_bus(text) == place == device_place(text)
    assert str(place) == text


def test_a_bus_is_opened_with_its_bit_rate_if_it_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(can, "Bus", lambda **given: given)
    plain: Any = wire.open_bus(CanBus("pcan", "a"))
    assert plain == {"interface": "pcan", "channel": "a"}
    with_rate: Any = wire.open_bus(CanBus("pcan", "a", 500_000))
    assert with_rate["bitrate"] == 500_000


@pytest.mark.parametrize(
    "text",
    ["can:", "can:virtual", "can:virtual:", "can::a", "can:a:b c", "can:a:b@", "can:a:b@fast"],
)
def test_other_texts_are_refused_with_the_form(text: str) -> None:
    with pytest.raises(ConfigError, match=r"can:socketcan:can0@500000"):
        device_place(text)


def test_other_devices_have_the_addresses_of_send() -> None:
    assert device_place("tcp://plc:502") == Destination("plc", 502)


# ── frames ──────────────────────────────────────────────────────────────────────────────────────


class Talker:
    """`Caller` that sends what is in `frames`, and keeps the received frames."""

    def __init__(self) -> None:
        self.call: int | None = 1
        self.frames: list[CanFrame] = []
        self.received: list[CanFrame] = []
        self.sizes: set[int] = set()
        self.events: list[str] = []
        self._changed = asyncio.Event()
        self._listener: Callable[[], None] = lambda: None

    def wanted(self) -> int | None:
        return self.call

    def connected(self, now: int) -> None:
        self._note("connected")

    def receive(self, data: bytes, now: int) -> None:
        self.sizes.add(len(data) % SIZE)
        self.received += unpack(data)
        self._changed.set()

    def take(self, room: int) -> bytes:
        if not self.frames or room < SIZE or "connected" not in self.events:
            return b""
        return self.frames.pop(0).pack()

    def lost(self, now: int, reason: str) -> None:
        self.call = None
        self._note(reason)

    def on_ready(self, listener: Callable[[], None]) -> None:
        self._listener = listener

    def send(self, frames: list[CanFrame]) -> None:
        self.frames += frames
        self._listener()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    def _note(self, event: str) -> None:
        self.events.append(event)
        self._changed.set()


class Now:
    """`Timekeeper` that acts at once."""

    def act(self, action: Callable[[int], Any]) -> Any:
        return action(0)


def run(test: Callable[[], Any]) -> None:
    async def within_patience() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await test()

    asyncio.run(within_patience())


@asynccontextmanager
async def dialled(place: CanBus) -> AsyncIterator[Talker]:
    talker: Any = Talker()
    dial = Dial(talker, place, Now())
    dial.start()
    try:
        await talker.until(lambda: talker.events)
        yield talker
    finally:
        await dial.stop()


def message(frame: CanFrame) -> can.Message:
    return can.Message(
        arbitration_id=frame.id & 0x1FFFFFFF, is_extended_id=bool(frame.id & EXTENDED),
        is_remote_frame=bool(frame.id & REMOTE), data=frame.data,
    )  # fmt: skip


def channel() -> str:
    return secrets.token_hex(8)


@pytest.fixture(params=["virtual", "udp_multicast"])
def place(request: pytest.FixtureRequest) -> CanBus:
    """A bus that is read by a thread, and one with a file descriptor."""
    a, b = secrets.randbelow(256), secrets.randbelow(256)
    return CanBus(request.param, channel() if request.param == "virtual" else f"239.7.{a}.{b}")


def test_frames_of_all_kinds_go_both_ways_in_order(place: CanBus) -> None:
    async def test() -> None:
        with can.Bus(interface=place.interface, channel=place.channel) as peer:
            async with dialled(place) as talker:
                assert talker.events == ["connected"]
                for frame in FRAMES * 20:
                    peer.send(message(frame))
                await talker.until(lambda: len(talker.received) >= 20 * len(FRAMES))
                assert talker.received == FRAMES * 20
                assert talker.sizes == {0}, "whole frames"
                talker.send(FRAMES * 20)
                heard = [await asyncio.to_thread(peer.recv, 5.0) for _ in FRAMES * 20]
        expected = [message(frame) for frame in FRAMES * 20]
        for got, sent in zip(heard, expected, strict=True):
            assert got is not None
            assert got.equals(
                sent, timestamp_delta=None, check_channel=False, check_direction=False
            )

    run(test)


def test_frames_that_the_bus_does_not_take_are_sent_later() -> None:
    name, frames = channel(), [CanFrame(number, b"") for number in range(100)]

    async def test() -> None:
        with can.Bus(interface="virtual", channel=name, rx_queue_size=1) as peer:
            async with dialled(CanBus("virtual", name)) as talker:
                talker.send(list(frames))
                heard: list[int] = []
                while len(heard) < len(frames):
                    got = await asyncio.to_thread(peer.recv, 5.0)
                    assert got is not None
                    heard.append(got.arbitration_id)
                assert heard == [frame.id for frame in frames]
                assert talker.events == ["connected"]

    run(test)


def test_a_bus_that_takes_no_frames_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "GIVE_UP", 5)
    name, many = channel(), 2 * wire.LARGEST_BACKLOG

    async def test() -> None:
        with can.Bus(interface="virtual", channel=name, rx_queue_size=1):
            async with dialled(CanBus("virtual", name)) as talker:
                talker.send([CanFrame(1, b"")] * many)
                await talker.until(lambda: len(talker.events) == 2)
                assert "it takes no frames" in talker.events[1]
                assert len(talker.frames) >= many - wire.LARGEST_BACKLOG - 1, "a bounded backlog"

    run(test)


def test_frames_faster_than_they_are_handled_end_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire, "MOST_UNREAD", 8)
    name = channel()

    async def test() -> None:
        with can.Bus(interface="virtual", channel=name) as peer:
            async with dialled(CanBus("virtual", name)) as talker:
                for _ in range(20):
                    peer.send(message(CanFrame(1, b"")))
                end = time.monotonic() + PATIENCE_S
                while any(thread.name == "can bus" for thread in threading.enumerate()):
                    assert time.monotonic() < end  # the event loop stands: nothing is handled
                    time.sleep(0.001)  # noqa: ASYNC251
                await talker.until(lambda: len(talker.events) == 2)
                assert "faster than they are handled" in talker.events[1]
                assert len(talker.received) == 8, "those that there was room for"

    run(test)


def test_bus_off_ends_the_connection_and_other_error_frames_do_not() -> None:
    name = channel()

    def error(kind: int, detail: int = 0) -> can.Message:
        data = bytes([0, detail, 0, 0, 0, 0, 0, 0])
        return can.Message(arbitration_id=kind, is_error_frame=True, data=data)

    async def test() -> None:
        with can.Bus(interface="virtual", channel=name) as peer:
            async with dialled(CanBus("virtual", name)) as talker:
                peer.send(error(0x04, 0x08))  # a warning: many errors
                peer.send(error(0x80))
                peer.send(message(FRAMES[0]))
                await talker.until(lambda: bool(talker.received))
                assert talker.events == ["connected"]
                peer.send(error(0x40))
                await talker.until(lambda: len(talker.events) == 2)
                assert talker.events[1].endswith("is gone: bus off")

    run(test)


def test_long_frames_of_can_fd_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    name = channel()

    async def test() -> None:
        with can.Bus(interface="virtual", channel=name) as peer:
            async with dialled(CanBus("virtual", name)) as talker:
                for _ in range(3):
                    peer.send(can.Message(is_fd=True, data=bytes(12)))
                peer.send(message(FRAMES[0]))
                await talker.until(lambda: bool(talker.received))
                assert talker.received == FRAMES[:1]

    with caplog.at_level(logging.WARNING):
        run(test)
    counts = [record.args[1] for record in caplog.records if record.args and "FD" in record.msg]  # type: ignore[index]
    assert counts == [1, 2]


def test_a_bus_that_cannot_be_opened_is_named() -> None:
    async def test() -> None:
        async with dialled(CanBus("carrier_pigeon", "x")) as talker:
            (event,) = talker.events
            assert event.startswith("can:carrier_pigeon:x cannot be opened: ")

    run(test)


def test_without_python_can_the_command_that_installs_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "can", None)

    async def test() -> None:
        async with dialled(CanBus("virtual", "x")) as talker:
            assert talker.events[0].endswith("install 'python-can<5,>=4.6'")

    run(test)


def test_no_thread_and_no_bus_is_left() -> None:
    name = channel()

    async def test() -> None:
        talker: Any = Talker()
        dial = Dial(talker, CanBus("virtual", name), Now())
        dial.start()
        await dial.stop()  # while the bus opens

    run(test)
    from can.interfaces.virtual import channels

    assert name not in channels
    assert not any(thread.name == "can bus" for thread in threading.enumerate())
