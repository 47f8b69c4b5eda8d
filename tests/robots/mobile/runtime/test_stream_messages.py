"""Messages of streams that are made together have the bytes of plain ones."""

import json
from functools import partial
from random import Random
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.robots.mobile.runtime.driven_fleet import EPOCH, DrivenFleet, robot_file
from tests.wire.nats.bench import packed

from understudy.ports import Epoch, WireMessage
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.graph import build_driver_graph
from understudy.robots.mobile.hardware import Surroundings
from understudy.robots.mobile.hardware_interface import Rows
from understudy.robots.mobile.runtime.fleet import Ticker
from understudy.robots.mobile.runtime.outgoing import LEAST, RobotKey, SendQueue, uuid_text
from understudy.robots.mobile.runtime.stream_messages import UUID_SIZE, put_size, write_uuid


@given(st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 64) - 1), st.integers(0, 1 << 40))
def test_ids(high: int, low: int, number: int) -> None:
    """Of messages that are written together, as of a plain one."""
    key = RobotKey(high, low)
    out = np.zeros(UUID_SIZE + 2, dtype=np.uint8)
    assert write_uuid(np.uint64(high), np.uint64(low), number, out, 1) == UUID_SIZE + 1
    found = json.loads(out[1:-1].tobytes())
    assert found == uuid_text(key, number)
    assert UUID(found).version == 8


@given(st.integers(1, 3), st.integers(1, 12_000))
def test_the_size_stands_before_the_payload(shift: int, size: int) -> None:
    """However many digits it has, and wherever the payload was written."""
    payload = bytes(97 + n % 26 for n in range(size))
    out = np.zeros(size + 20, dtype=np.uint8)
    line, begin = 4, 4 + 3 * shift
    out[begin : begin + size] = np.frombuffer(payload, dtype=np.uint8)
    first, end = put_size(line, begin, begin + size, out)
    assert out[line:end].tobytes() == b" %d\r\n" % size + payload
    assert end - first == size


# ── many messages in one piece ──

MESSAGES = [WireMessage(f"robot.r{n}.state", b"x" * (n * n)) for n in range(12)]


def test_packed_messages_are_a_sequence_of_messages() -> None:
    whole = packed(MESSAGES)
    assert list(whole) == MESSAGES
    assert whole[2:7].data == packed(MESSAGES[2:7]).data
    assert list(whole[2:7][1:3]) == MESSAGES[3:5]
    assert whole.largest >= max(len(message.payload) for message in MESSAGES)
    assert len(whole[: whole.count_within(100)].data) <= 100 < len(whole.data)


@given(st.lists(st.integers(1, 400)), st.randoms())
def test_a_queue_gives_packed_messages_in_their_order(rooms: list[int], chance: Random) -> None:
    queue = SendQueue(1, run_id="x", epoch=Epoch(0), log=print)
    queue.set_connected(True)
    for first in range(0, len(MESSAGES), 4):
        queue.send_newest(packed(MESSAGES[first : first + 3]))
        message = MESSAGES[first + 3]
        queue.send("state", message.address, "", message.payload)
    restored = SendQueue(1, run_id="x", epoch=Epoch(0), log=print)
    restored.load(queue.save())
    for each in (queue, restored):
        found: list[WireMessage] = []
        for room in [*rooms, 1 << 20, 1 << 20]:
            if chance.random() < 0.3:
                found += filter(None, [each.take(room)])
                continue
            taken = each.take_many(room)
            assert sum(len(message.payload) for message in taken) <= room
            found += taken
        found += iter(lambda: each.take(1 << 20), None)  # noqa: B023
        assert found == MESSAGES


def test_a_full_queue_drops_the_oldest_of_packed_messages() -> None:
    queue = SendQueue(1, run_id="x", epoch=Epoch(0), log=print)
    queue.set_connected(True)
    count = 0
    while count <= LEAST:
        queue.send_newest(packed(MESSAGES))
        count += len(MESSAGES)
    found: list[WireMessage] = []
    while taken := queue.take_many(1 << 20):
        found += taken
    assert len(found) == LEAST
    assert found[-len(MESSAGES) :] == MESSAGES


# ── the same bytes as plain messages ──


def plain_messages(ticker: Ticker, due: Rows, now: int) -> None:
    """The oracle: each robot makes its message and encodes it."""
    for number in due.tolist():
        row, stream = divmod(number, ticker.table.due.shape[1])
        ticker._report(row, stream, now)


class Both(DrivenFleet):
    """A fleet whose messages are kept, in the plain way or written together."""

    def __init__(self, *, plain: bool) -> None:
        layout = Layout(
            [
                robot_file("r0"),
                robot_file("r1", identity__robotCode='quote " and ü', streams__trafficHz=5),
                robot_file("r3", io__devices__1__config={"correctsPose": True}),
                robot_file("r2", runtime__simulationProfile=None),
                robot_file("r4", identity__robotCode="long " * 40),
            ]
        )
        self.graph = build_driver_graph(layout, [Surroundings()] * 5, print)
        super().__init__(layout, self.graph, run_id="x", epoch=Epoch(EPOCH))
        self.kept: list[WireMessage] = []
        if plain:
            for ticker in self.fleet._tickers:
                ticker._streams.publish = partial(plain_messages, ticker)  # type: ignore[method-assign]

    def _settled(self, now: int) -> None:
        while (message := self.fleet.take(1 << 40)) is not None:
            self.kept.append(message)
            if message.reply_to:
                self.fleet.confirmed(message.reply_to, now)


@pytest.fixture(params=["drive", "fault", "far"])
def story(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_fleet_sends_the_bytes_of_plain_messages(story: str) -> None:
    sent = []
    for plain in (True, False):
        fleet = Both(plain=plain)
        fleet.run(0.3)
        for n in range(3):
            fleet.command("MOVE_VELOCITY", robot=f"r{n}", linear=0.4 + n / 7, angular=0.3 * n)
        fleet.run(1.1)
        if story == "fault":
            assert fleet.graph.mock is not None
            fleet.graph.mock.inject_fault(0, "drive", "BROKEN")
            fleet.graph.mock.inject_fault(1, "device:lidar_front", "BLIND")
            fleet.run(1.1)
        if story == "far":
            fleet.fleet._tickers[0].table.since_correction[:] = 60.0, 60.0, 300.0, 300.0, 0.0
            fleet.run(0.6)
        sent.append(fleet.kept)
    expected, messages = sent
    assert len(messages) == len(expected) > 50
    assert messages == expected
    sign = {"drive": b'"MOVING"', "fault": b"LIDAR_NOT_CONNECTED", "far": b'"LOST"'}[story]
    assert any(sign in message.payload for message in messages)
