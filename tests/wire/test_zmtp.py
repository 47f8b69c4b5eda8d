"""ZMTP as bytes: messages, commands, and every limit, fed whole and byte by byte."""

import asyncio
import contextlib
import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from understudy.ports import UNLIMITED
from understudy.wire import zmtp
from understudy.wire.interface import LARGEST_BACKLOG
from understudy.wire.tcp import Config
from understudy.wire.zmtp import (
    PLAIN,
    ZmtpError,
    ZmtpPeer,
    ZmtpReader,
    ZmtpServer,
    command,
    greeting,
    message,
)


def ready(kind: bytes = b"DEALER", identity: bytes = b"") -> bytes:
    pairs = {b"Socket-Type": kind, b"Identity": identity}
    written = [bytes([len(k)]) + k + struct.pack(">I", len(v)) + v for k, v in pairs.items()]
    return command(b"READY", b"".join(written))


GREETING = greeting()
HELLO = GREETING + ready()


def read(data: bytes, kind: bytes = b"ROUTER", piece: int = 0) -> list[list[bytes]]:
    reader = ZmtpReader(kind)
    piece = piece or len(data)
    return [m for at in range(0, len(data), piece) for m in reader.feed(data[at : at + piece])]


@pytest.mark.parametrize("piece", [0, 1, 7])
def test_messages_are_read_however_they_are_cut(piece: int) -> None:
    messages = [[b"one"], [b"", b"two"], [b"x" * 300, b"", b"y" * 70_000]]
    data = HELLO + b"".join(map(message, messages))
    assert read(data, piece=piece) == messages


def test_the_handshake_names_kind_and_mechanism() -> None:
    replies = bytes(ZmtpReader(b"ROUTER").replies)
    assert replies.startswith(b"\xff\0\0\0\0\0\0\0\0\x7f\x03")
    assert replies[12:16] == b"NULL"
    assert replies[64:].startswith(b"\x04\x29\x05READY\x0bSocket-Type\0\0\0\x06ROUTER")


def test_a_ping_is_answered_with_its_context() -> None:
    reader = ZmtpReader(b"ROUTER")
    reader.replies.clear()
    assert list(reader.feed(HELLO + command(b"PING", b"\x00\x0ahello"))) == []
    assert bytes(reader.replies) == command(b"PONG", b"hello")


def test_subscriptions_of_both_versions_are_the_same() -> None:
    data = GREETING + ready(b"SUB")
    old = message([b"\x01topic"]) + message([b"\x00topic"])
    new = command(b"SUBSCRIBE", b"topic") + command(b"CANCEL", b"topic")
    assert read(data + old, b"XPUB") == read(data + new, b"XPUB") == [[b"\x01topic"], [b"\0topic"]]


def test_a_password_is_asked_for_and_checked() -> None:
    """PLAIN, RFC 24: HELLO, WELCOME, INITIATE, READY."""
    begin = greeting(PLAIN) + command(b"HELLO", b"\x01u\x06secret")
    reader = ZmtpReader(b"XPUB", lambda given: given == b"secret")
    assert bytes(reader.replies) == greeting(PLAIN, server=True)
    reader.replies.clear()
    assert list(reader.feed(begin)) == []
    assert bytes(reader.replies) == command(b"WELCOME", b"")
    initiate = ready(b"SUB").replace(b"\x05READY", b"\x08INITIATE")
    initiate = bytes([initiate[0], initiate[1] + 3]) + initiate[2:]
    assert list(reader.feed(initiate + command(b"SUBSCRIBE", b"a"))) == [[b"\x01a"]]
    for wrong in (begin.replace(b"secret", b"Secret"), greeting(PLAIN) + command(b"HELLO", b"")):
        reader = ZmtpReader(b"XPUB", lambda given: given == b"secret")
        with pytest.raises(ZmtpError, match="wrong password"):
            list(reader.feed(wrong))
        assert bytes(reader.replies).endswith(command(b"ERROR", b"\x0ewrong password"))


@pytest.mark.parametrize("data", [HELLO, greeting(PLAIN) + ready(b"SUB")])
def test_nobody_joins_without_the_password(data: bytes) -> None:
    with pytest.raises(ZmtpError, match=r"other than PLAIN|before HELLO"):
        list(ZmtpReader(b"XPUB", lambda given: True).feed(data))


FRAME_OF_A_TERABYTE = b"\x02" + struct.pack(">Q", 1 << 40)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GET / HTTP/1.1\r\n", "not ZMTP 3"),
        (b"\x16\x03\x01\x02\x00", "not ZMTP 3"),
        (b"\xff\0\0\0\0\0\0\0\x01\x7f\x01", "not ZMTP 3"),
        (GREETING.replace(b"NULL", b"CURV") + ready(), "mechanism"),
        (GREETING + message([b"hello"]), "before READY"),
        (GREETING + command(b"HELLO", b""), "before READY"),
        (GREETING + command(b"PING", b"\0\0"), "before READY"),
        (GREETING + ready(b"SUB"), "at a ROUTER"),
        (GREETING + command(b"READY", b"\x0bSocket"), "damaged"),
        (GREETING + command(b"READY", b"\x01a\xff\xff\xff\xff"), "damaged"),
        (GREETING + ready(identity=b"i" * 300), "255"),
        (HELLO + b"\x09\x00", "flags"),
        (HELLO + b"\x05\x00", "flags"),
        (HELLO + FRAME_OF_A_TERABYTE, str(zmtp.LARGEST_MESSAGE)),
        (HELLO + b"\x06" + struct.pack(">Q", 1 << 20), str(zmtp.LARGEST_COMMAND)),
        (HELLO + b"\x01\x00" * 65, str(zmtp.MOST_FRAMES)),
    ],
)
def test_what_breaks_the_protocol_or_a_limit_is_refused_at_once(data: bytes, reason: str) -> None:
    for piece in (0, 1):
        with pytest.raises(ZmtpError, match=reason):
            read(data, piece=piece)


def test_the_limit_of_a_message_counts_all_its_frames() -> None:
    """libzmq limits each frame alone: 800 MB in frames of 8 MB made 2.3 GB."""
    frame = b"\x03" + struct.pack(">Q", 1 << 20) + bytes(1 << 20)
    reader = ZmtpReader(b"ROUTER")
    assert list(reader.feed(HELLO + frame * 8)) == []
    with pytest.raises(ZmtpError, match="more than 8388608 bytes"):
        list(reader.feed(frame))
    assert reader.unfinished < 10_000_000


@given(some.binary(max_size=300), some.booleans(), some.integers(1, 20))
def test_no_bytes_cause_another_error(garbage: bytes, greeted: bool, piece: int) -> None:
    with contextlib.suppress(ZmtpError):
        read((HELLO if greeted else b"") + garbage, piece=piece)


# ── peers ──


class FakeSink:
    """The TCP side of a peer; nothing is taken until `take`."""

    def __init__(self) -> None:
        self.waiting = 0
        self.reading = True
        self.closed = False

    def room(self) -> int:
        return LARGEST_BACKLOG - self.waiting if self.waiting else UNLIMITED

    def send(self, data: bytes) -> None:
        self.waiting += len(data)

    def read_more(self, wanted: bool) -> None:
        self.reading = wanted

    def close(self) -> None:
        self.closed = True


class Quiet:
    """`ZmtpSocket` that keeps what it gets."""

    def __init__(self) -> None:
        self.messages = 0
        self.peers: list[ZmtpPeer] = []

    def joined(self, peer: ZmtpPeer) -> None:
        self.peers.append(peer)

    def heard(self, peer: ZmtpPeer, frames: list[bytes]) -> None:
        self.messages += 1

    def drained(self, peer: ZmtpPeer) -> None:
        return None

    def left(self, peer: ZmtpPeer) -> None:
        self.peers.remove(peer)


def serve(act: Any) -> Quiet:
    """Calls ``act(server)`` on an event loop."""
    quiet = Quiet()

    async def run() -> None:
        act(ZmtpServer("door", Config(), b"ROUTER", quiet))

    asyncio.run(run())
    return quiet


def test_a_peer_that_takes_no_pongs_is_not_read_from() -> None:
    sink, read_from = FakeSink(), []

    def act(server: ZmtpServer) -> None:
        peer = server.open("door", sink)
        read_from.append(sink.reading)
        sink.waiting = 0
        server.drained(peer)
        read_from.append(sink.reading)
        server.receive(peer, HELLO + command(b"PING", b"\0\0"))
        read_from.append(sink.reading)

    serve(act)
    assert read_from == [False, True, False], "the greeting waits, all was taken, the pong waits"


def test_incomplete_messages_of_all_peers_are_bounded_and_the_largest_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(zmtp, "ALL_UNFINISHED", 10_000)
    sinks = [FakeSink() for _ in range(4)]

    def act(server: ZmtpServer) -> None:
        peers = [server.open("door", sink) for sink in sinks]
        for peer, size in zip(peers, (2000, 5000, 1000, 2500), strict=True):
            begin = b"\x03" + struct.pack(">Q", 9000)
            server.receive(peer, HELLO + begin + bytes(size))
        assert [sink.closed for sink in sinks] == [False, True, False, False]
        server.receive(peers[2], bytes(8000) + message([b"end"]))

    quiet = serve(act)
    assert quiet.messages == 1
    assert len(quiet.peers) == 3


def test_a_handshake_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    sinks = [FakeSink(), FakeSink()]

    async def run() -> None:
        loop = asyncio.get_running_loop()
        timers: list[Any] = []

        class Timer:
            def __init__(self, seconds: float, act: Any, *args: Any) -> None:
                self.cancelled = False
                self.ring: Callable[[], None] = lambda: act(*args)
                timers.append(self)

            def cancel(self) -> None:
                self.cancelled = True

        monkeypatch.setattr(loop, "call_later", Timer)
        server = ZmtpServer("door", Config(), b"ROUTER", Quiet())
        slow, quick = (server.open("door", sink) for sink in sinks)
        server.receive(slow, HELLO[:-1])
        server.receive(quick, HELLO)
        assert [timer.cancelled for timer in timers] == [False, True]
        timers[0].ring()
        monkeypatch.undo()

    asyncio.run(run())
    assert [sink.closed for sink in sinks] == [True, False]
