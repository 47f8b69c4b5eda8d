"""Messages of streams that are made together have the bytes of plain ones."""

from functools import partial
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.robots.mobile.runtime.driven_fleet import EPOCH, DrivenFleet, robot_file

from understudy.ports import Epoch, WireMessage
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.graph import build_driver_graph
from understudy.robots.mobile.hardware import Surroundings
from understudy.robots.mobile.hardware_interface import Rows
from understudy.robots.mobile.runtime.fleet import Ticker
from understudy.robots.mobile.runtime.outgoing import RobotKey, uuid_text, uuid_texts


@given(st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 64) - 1), st.integers(0, 1 << 40))
def test_ids(high: int, low: int, number: int) -> None:
    """Of many messages at once, as of one."""
    key = RobotKey(high, low)
    keys = np.array([key, key], dtype=np.uint64)
    found = uuid_texts(keys, np.array([number, number + 1]))
    assert [text.decode() for text in found] == [
        f'"{uuid_text(key, each)}"' for each in (number, number + 1)
    ]
    assert UUID(uuid_text(key, number)).version == 8
    assert uuid_text(key, number) == plain_uuid(key, number)


def plain_uuid(key: RobotKey, number: int) -> str:
    """The ids by their definition, in whole numbers."""
    mask = (1 << 64) - 1

    def mixed(value: int) -> int:
        value &= mask
        value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & mask
        value = (value ^ value >> 27) * 0x94D049BB133111EB & mask
        return value ^ value >> 31

    high = mixed(key.high + 0x9E3779B97F4A7C15 * number) & ~0xF000 | 0x8000
    low = mixed(key.low + 0xD1B54A32D192ED03 * number) & (mask >> 2) | 1 << 63
    return str(UUID(int=high << 64 | low))


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
            ]
        )
        self.graph = build_driver_graph(layout, [Surroundings()] * 4, print)
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
            fleet.fleet._tickers[0].table.since_correction[:] = 60.0, 60.0, 300.0, 300.0
            fleet.run(0.6)
        sent.append(fleet.kept)
    expected, messages = sent
    assert len(messages) == len(expected) > 50
    assert messages == expected
    sign = {"drive": b'"MOVING"', "fault": b"LIDAR_NOT_CONNECTED", "far": b'"LOST"'}[story]
    assert any(sign in message.payload for message in messages)
