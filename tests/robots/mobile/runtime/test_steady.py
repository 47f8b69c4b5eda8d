"""Steady messages that are written together have the bytes of plain ones."""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.robots.mobile.runtime.driven_fleet import EPOCH, DrivenFleet, robot_file

from understudy.ports import WireMessage
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.graph import build_driver_graph
from understudy.robots.mobile.hardware import Surroundings
from understudy.robots.mobile.hardware_interface import Rows
from understudy.robots.mobile.runtime.ids import RobotKey, uuid_text
from understudy.robots.mobile.runtime.json_text import (
    LONGEST_NUMBER,
    POWERS,
    put_integer,
    put_number,
    put_uuid,
)
from understudy.robots.mobile.runtime.ticker import Ticker

WRITTEN = 64


def text_of(write: Callable[[Any], int]) -> bytes:
    out = np.full(WRITTEN, ord("#"), dtype=np.uint8)
    end = write(out)
    assert bytes(out[end:]) == b"#" * (WRITTEN - end), "nothing beyond the end"
    return bytes(out[:end])


def bits_of(value: float) -> Any:
    return np.array([value]).view(np.uint64)[0]


def number_text(value: float) -> bytes:
    found = text_of(lambda out: put_number(out, 0, bits_of(value), POWERS))
    assert len(found) <= LONGEST_NUMBER
    return found


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_written_as_msgspec_writes_them(value: float) -> None:
    assert number_text(value) == msgspec.json.encode(value)


def test_powers_and_borders_of_notations() -> None:
    tens = [float(f"{digit}e{power}") for digit in (1, 3, 9.5) for power in range(-323, 308)]
    twos = [2.0**power for power in range(-1074, 1024)]
    others = [0.0, -0.0, 0.1 + 0.2, 9007199254740993.0, 9999999999999998.0, 1.7976931348623157e308]
    rng = np.random.default_rng(16)
    bits = rng.integers(0, 1 << 63, 20_000, dtype=np.uint64).view(np.float64)
    for value in [*tens, *twos, *others, *bits[np.isfinite(bits)].tolist()]:
        assert number_text(value) == msgspec.json.encode(value)


@given(st.integers(0, (1 << 62) - 1))
def test_integers(value: int) -> None:
    assert text_of(lambda out: put_integer(out, 0, value)) == str(value).encode()


@given(st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 64) - 1), st.integers(0, 1 << 40))
def test_ids(high: int, low: int, number: int) -> None:
    found = text_of(lambda out: put_uuid(out, 0, np.uint64(high), np.uint64(low), number))
    assert found.decode() == uuid_text(RobotKey(high, low), number)


def plain_messages(ticker: Ticker, due: Rows, now: int) -> None:
    """The oracle of write_messages: each robot makes its message and encodes it."""
    for number in due.tolist():
        row, stream = divmod(number, ticker.table.due.shape[1])
        ticker._report(row, stream, now)


class Both(DrivenFleet):
    """A fleet whose messages are kept, in the plain way or written together."""

    def __init__(self, *, plain: bool) -> None:
        layout = Layout([
            robot_file("r0"),
            robot_file("r1", identity__robotCode='quote " and ü', streams__trafficHz=5),
            robot_file("r3", io__devices__1__config={"correctsPose": True}),
            robot_file("r2", runtime__simulationProfile=None),
        ])  # fmt: skip
        self.graph = build_driver_graph(layout, [Surroundings()] * 4, print)
        super().__init__(layout, self.graph, run_id="x", epoch=EPOCH)
        self.kept: list[WireMessage] = []
        if plain:
            for ticker in self.fleet._tickers:
                ticker._steady.publish = partial(plain_messages, ticker)  # type: ignore[method-assign]

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
