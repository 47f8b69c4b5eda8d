"""The state socket: one frame per request, and nothing else."""

import struct
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.benches import Bench

from understudy.operator.doors.state import LONGEST_REQUEST, StateSession, framed, state_face
from understudy.ports import HANG_UP, UNLIMITED
from understudy.ports.hmi import CellView, Known, RobotView


class Looking:
    """`Watch` that counts, with a trail of three points."""

    def __init__(self) -> None:
        self.seq = 0

    def look(self, trail_from: Mapping[str, Known] | None = None) -> CellView:
        self.seq += 1
        trail = [(0.0, 0.0, 0.0), (0.1, 0.0, 0.0), (0.2, 0.0, 0.0)]
        known = (trail_from or {}).get("g60", 0)
        assert isinstance(known, int)
        robots = {"g60": RobotView(q=(0.0, 1.0), tcp=(0.0,) * 6, state="Idle")}
        return CellView(self.seq, 2.5, 3.5, "max", robots, {"g60": (known, trail[known:], 4)})


def session() -> StateSession:
    return state_face(Looking()).open("1", 0)


def received(session: StateSession) -> list[Any]:
    data = b""
    while piece := session.take(UNLIMITED):
        data += piece
    frames = []
    while data:
        (length,) = struct.unpack_from(">I", data)
        frames.append(msgspec.msgpack.decode(data[4 : 4 + length]))
        data = data[4 + length :]
    return frames


def request(**fields: Any) -> bytes:
    return framed(msgspec.msgpack.encode(fields))


def test_a_frame_has_everything_that_a_page_draws() -> None:
    client = session()
    client.receive(request(want="frame", trail_from={"g60": 1}), 0)
    assert received(client) == [
        {
            "seq": 1,
            "t": 2.5,
            "real": 3.5,
            "rate": "max",
            "robots": {
                "g60": {
                    "q": [0.0, 1.0],
                    "tcp": [0.0] * 6,
                    "state": "Idle",
                    "moving": False,
                    "tool": 0,
                    "line": 0,
                    "ghost": None,
                    "arc": False,
                    "io": {"di": 0, "do": 0},
                    "linear": [],
                }
            },
            "trail": {"g60": [1, [[0.1, 0.0, 0.0], [0.2, 0.0, 0.0]], 4]},
            "contacts": [],
            "parts": 0,
        }
    ]


def test_each_request_gets_one_frame() -> None:
    client = session()
    assert received(client) == []
    client.receive(request(want="frame") * 3, 0)
    assert [frame["seq"] for frame in received(client)] == [1, 2, 3]


def test_frames_do_not_depend_on_packet_boundaries() -> None:
    client = session()
    for byte in request(want="frame") * 2:
        client.receive(bytes([byte]), 0)
    assert [frame["seq"] for frame in received(client)] == [1, 2]


def test_a_client_that_takes_no_frame_is_not_read() -> None:
    client = session()
    client.receive(request(want="frame"), 0)
    assert client.credit() == 0
    received(client)
    assert client.credit() > 0


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        msgspec.msgpack.encode([1]),
        msgspec.msgpack.encode({"want": "tea"}),
        msgspec.msgpack.encode({"want": "frame", "trail_from": {"g60": [1]}}),
        msgspec.msgpack.encode({"want": "frame", "tail_from": {}}),
    ],
)
def test_a_malformed_request_gets_an_error_and_the_next_is_answered(data: bytes) -> None:
    client = session()
    client.receive(framed(data) + request(want="frame"), 0)
    error, frame = received(client)
    assert error["error"]["code"] == 10
    assert "'want': 'frame'" in error["error"]["message"]
    assert frame["seq"] == 1


def test_a_request_that_is_too_long_ends_the_session() -> None:
    client = session()
    client.receive(struct.pack(">I", LONGEST_REQUEST + 1) + b"x" * 100, 0)
    (error,) = received(client)
    assert str(LONGEST_REQUEST) in error["error"]["message"]
    assert client.credit() == HANG_UP


@given(packets=st.lists(st.binary(max_size=40) | st.binary(max_size=40).map(framed)))
def test_bytes_never_raise(packets: list[bytes]) -> None:
    client = session()
    for packet in packets:
        client.receive(packet, 0)
        received(client)


@pytest.mark.parametrize("cell", ["default", "grblhal_6axis", "kuka_eki", "text_robot"])
def test_the_state_of_every_kind_of_robot_can_be_encoded(
    bench_of: Callable[[str], Bench], cell: str
) -> None:
    bench = bench_of(cell)
    assert msgspec.msgpack.encode(bench.live.watch.look({}))
