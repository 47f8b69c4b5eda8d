"""Locks: control, state and HMI link answer clients that know the secret, and bound the others."""

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.operator.doors import FIRST_REQUEST_TIME, OPEN, DoorContext, Lock
from understudy.operator.doors.control import LONGEST_FIRST_LINE, ControlSession, control_face
from understudy.operator.doors.hmi_link import HmiLinkFace
from understudy.operator.doors.state import StateSession, framed, state_face
from understudy.operator.table import Command, Commands
from understudy.ports import HANG_UP, UNLIMITED, WireMessage
from understudy.ports.access import is_key, is_loopback
from understudy.ports.hmi import CellView, Known

SECRET, TOKEN = "the-secret-of-this-run", "a-token-of-the-cell"
LOCKED = Lock((SECRET, TOKEN), required=True)
LOOPBACK = Lock((SECRET, TOKEN))
WRONG = [None, "", "x", SECRET[:-1], SECRET + "x", SECRET.upper(), 7, True, [SECRET], {"a": SECRET}]
POST = (
    b"POST / HTTP/1.1\r\nHost: 127.0.0.1:5550\r\nContent-Type: text/plain\r\n"
    b'Content-Length: 40\r\n\r\n{"do": "quit"}\n{"do": "emergency_stop"}\n'
)


class Calls:
    """`CommandTable` that remembers what was called, and with which parameters."""

    def __init__(self) -> None:
        self.made: list[tuple[str, dict[str, Any]]] = []

    def call(self, name: str, parameters: Mapping[str, Any], role: str) -> Any:
        self.made.append((name, dict(parameters)))
        return "done"

    def needs_secret(self, name: str) -> bool:
        return False

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.made]


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def said(session: ControlSession) -> list[Any]:
    data = b""
    while piece := session.take(UNLIMITED):
        data += piece
    return [json.loads(each) for each in data.splitlines()]


def control(lock: Lock = LOCKED, **options: Any) -> tuple[Calls, ControlSession]:
    calls = Calls()
    return calls, control_face(calls, lock=lock, **options).open("1", 0)


# ── control ──


@pytest.mark.parametrize("key", [SECRET, TOKEN])
def test_the_first_request_carries_the_secret_and_no_command_sees_it(key: str) -> None:
    calls, session = control()
    session.receive(line(id=1, do="rate", rate=2, secret=key) + line(id=2, do="now"), 0)
    assert [answer["ok"] for answer in said(session)] == [True, True]
    assert calls.made == [("rate", {"rate": 2}), ("now", {})]
    assert session.credit() > 0


@pytest.mark.parametrize("wrong", WRONG)
def test_without_the_secret_nothing_is_done_and_the_connection_is_closed(wrong: Any) -> None:
    calls, session = control()
    request = {"id": 5, "do": "quit"} | ({} if wrong is None else {"secret": wrong})
    session.receive(line(**request) + line(do="quit", secret=SECRET), 0)
    (answer,) = said(session)
    assert (answer["id"], answer["ok"], answer["code"]) == (5, False, 3)
    for word in ("secret", "ready file", "understudy ctl"):
        assert word in answer["error"]
    assert SECRET not in answer["error"]
    assert calls.names == []
    assert session.credit() == HANG_UP


def test_a_wrong_secret_in_a_later_request_closes_too() -> None:
    calls, session = control()
    session.receive(line(do="now", secret=SECRET) + line(do="quit", secret="x"), 0)
    assert [answer["ok"] for answer in said(session)] == [True, False]
    assert (calls.names, session.credit()) == (["now"], HANG_UP)


@pytest.mark.parametrize(
    "first", [POST, b"hello\n", b"[1]\n", b'"do"\n', b"\xff\n", b"[" * 9999 + b"\n"]
)
def test_a_first_line_that_is_no_object_is_not_answered(first: bytes) -> None:
    calls, session = control()
    session.receive(first + line(do="quit", secret=SECRET), 0)
    assert (said(session), calls.names, session.credit()) == ([], [], HANG_UP)


@pytest.mark.parametrize("lock", [LOCKED, OPEN])
def test_a_later_line_that_is_no_object_gets_an_error_and_closes(lock: Lock) -> None:
    calls, session = control(lock)
    key = {"secret": SECRET} if lock.required else {}
    session.receive(line(do="now", **key) + POST, 0)
    first, last = said(session)
    assert (first["ok"], last["ok"]) == (True, False)
    assert "the connection is closed" in last["error"]
    assert (calls.names, session.credit()) == (["now"], HANG_UP)


def test_before_the_secret_is_known_little_is_read() -> None:
    calls, session = control()
    fed = 0
    while session.credit() > 0 and fed < 10 * LONGEST_FIRST_LINE:
        session.receive(b"x" * 1000, 0)
        fed += 1000
    assert fed <= LONGEST_FIRST_LINE + 1000
    (answer,) = said(session)
    assert str(LONGEST_FIRST_LINE) in answer["error"]
    assert (calls.names, session.credit()) == ([], HANG_UP)


def test_after_the_secret_a_long_request_in_the_same_packet_is_read() -> None:
    calls, session = control()
    session.receive(line(do="now", secret=SECRET) + line(do="load", text="x" * 50_000), 0)
    assert [answer["ok"] for answer in said(session)] == [True, True]
    assert len(calls.made[1][1]["text"]) == 50_000


@given(st.lists(st.integers(0, 150)))
def test_admission_does_not_depend_on_packet_boundaries(cuts: list[int]) -> None:
    stream = b"\r\n" + line(id=1, do="now", secret=SECRET) + line(id=2, do="x") + b"no\n" + line()
    ends = [0, *sorted(cuts), len(stream)]
    whole, pieces = control()[1], control()[1]
    whole.receive(stream, 0)
    for start, end in pairwise(ends):
        pieces.receive(stream[start:end], 0)
    expected = said(whole)
    assert said(pieces) == expected
    assert [answer["id"] for answer in expected] == [1, 2, None]


def test_a_client_that_gives_no_secret_in_time_is_disconnected() -> None:
    face = control_face(Calls(), lock=LOCKED)
    quick, slow, empty = (face.open(name, n) for n, name in enumerate(("quick", "slow", "empty")))
    quick.receive(line(do="now", secret=SECRET), 0)
    for moment in range(0, FIRST_REQUEST_TIME, FIRST_REQUEST_TIME // 10):
        slow.receive(b"{", moment)  # it is slow, but never silent
    face.ready_peers()
    assert face.next_wake() == FIRST_REQUEST_TIME + 1
    face.wake(FIRST_REQUEST_TIME + 1)
    assert (quick.credit() > 0, slow.credit(), empty.credit() > 0) == (True, HANG_UP, True)
    assert face.ready_peers() == ["slow"]
    face.wake(FIRST_REQUEST_TIME + 2)
    assert (empty.credit(), face.next_wake()) == (HANG_UP, None)


def test_a_client_that_left_has_no_deadline() -> None:
    face = control_face(Calls(), lock=LOCKED)
    face.open("1", 0).closed(1)
    assert face.next_wake() is None


# ── orders to REAL robots ──


def real_table(*, real: bool) -> Commands:
    return Commands(
        [
            Command("jog", "", lambda _: "moved"),
            Command("now", "", lambda _: 1, role="viewer"),
            Command("set_mode", "", lambda _: "REAL", secret="always"),
            Command("emergency_stop", "", lambda _: "stopped", secret="never"),
        ],
        lambda: ["g60"] if real else [],
    )


@pytest.mark.parametrize("real", [True, False])
def test_an_open_control_refuses_orders_to_real_robots_without_the_secret(real: bool) -> None:
    session = control_face(real_table(real=real), lock=LOOPBACK).open("1", 0)
    names = ("now", "jog", "set_mode", "emergency_stop")
    session.receive(b"".join(line(do=name) for name in names), 0)
    assert [answer["ok"] for answer in said(session)] == [True, not real, False, True]
    session.receive(line(do="jog", secret=SECRET) + line(do="set_mode"), 0)
    assert [answer["ok"] for answer in said(session)] == [True, True]


class Nothing:
    """`Watch` of a cell without robots."""

    def look(self, trail_from: Mapping[str, Known] | None = None) -> CellView:
        return CellView(1, 0.0, 0.0, 1.0, {})


def link_answer(lock: Lock, type_: str, *, real: bool = False, **fields: Any) -> Any:
    context = DoorContext(real_table(real=real), Nothing(), lambda: 0.0, lock=lock)
    session = HmiLinkFace("", context).open("1", 0)
    session.receive(WireMessage("", json.dumps({"type": type_, "id": 1} | fields).encode()), 0)
    message = session.take(UNLIMITED)
    assert message is not None
    return json.loads(message.payload)


JOG: dict[str, Any] = {"payload": {"command": "jog"}}


@pytest.mark.parametrize("type_", ["PING", "GET_STATUS", "GET_JOINT_POSITIONS", "COMMAND", "TEA"])
def test_off_loopback_every_message_needs_the_token(type_: str) -> None:
    wrongs: list[dict[str, Any]] = [{}, {"secret": "x"}, {"secret": SECRET[:-1]}]
    for wrong in wrongs:
        answer = link_answer(LOCKED, type_, **wrong, **JOG)
        assert (answer["type"], answer["payload"]["code"]) == ("ERROR", 3)
    assert link_answer(LOCKED, "PING", secret=TOKEN)["type"] == "PONG"
    assert link_answer(LOCKED, "COMMAND", secret=TOKEN, **JOG)["type"] == "RESULT"


def test_on_loopback_only_orders_to_real_robots_need_the_secret() -> None:
    assert link_answer(LOOPBACK, "COMMAND", **JOG)["type"] == "RESULT"
    assert link_answer(LOOPBACK, "PING")["type"] == "PONG"
    refused = link_answer(LOOPBACK, "COMMAND", real=True, **JOG)
    assert (refused["type"], refused["payload"]["code"]) == ("ERROR", 3)
    assert "REAL" in refused["payload"]["message"]
    assert link_answer(LOOPBACK, "COMMAND", real=True, secret=SECRET, **JOG)["type"] == "RESULT"
    stop: dict[str, Any] = {"payload": {"command": "emergency_stop"}}
    assert link_answer(LOOPBACK, "COMMAND", real=True, **stop)["type"] == "RESULT"
    switch: dict[str, Any] = {"payload": {"command": "set_mode"}}
    assert link_answer(LOOPBACK, "COMMAND", **switch)["type"] == "ERROR"


# ── the state socket ──


def frame_request(**fields: Any) -> bytes:
    return framed(msgspec.msgpack.encode({"want": "frame"} | fields))


def frames(session: StateSession) -> list[Any]:
    data, found = b"", []
    while piece := session.take(UNLIMITED):
        data += piece
    while data:
        size = int.from_bytes(data[:4])
        found.append(msgspec.msgpack.decode(data[4 : 4 + size]))
        data = data[4 + size :]
    return found


def test_the_first_request_for_a_frame_carries_the_secret() -> None:
    session = state_face(Nothing(), lock=LOCKED).open("1", 0)
    session.receive(frame_request(secret=SECRET) + frame_request(), 0)
    assert ["seq" in frame for frame in frames(session)] == [True, True]


@pytest.mark.parametrize("wrong", [{}, {"secret": "x"}, {"secret": 7}, {"want": "tea"}])
def test_no_frame_without_the_secret(wrong: dict[str, Any]) -> None:
    session = state_face(Nothing(), lock=LOCKED).open("1", 0)
    session.receive(frame_request(**wrong) + frame_request(secret=SECRET), 0)
    (answer,) = frames(session)
    assert answer["error"]["code"] in (3, 10)
    assert session.credit() == HANG_UP


def test_the_state_socket_has_the_same_deadline() -> None:
    face = state_face(Nothing(), lock=LOCKED)
    session = face.open("1", 0)
    session.receive(b"\x00", 0)
    face.wake(FIRST_REQUEST_TIME)
    assert (session.credit(), face.ready_peers()) == (HANG_UP, ["1"])


# ── addresses and secrets ──


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost", "LocalHost", "::ffff:127.0.0.1"]
)
def test_loopback_addresses(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "", "192.168.1.5", "fe80::1", "::ffff:10.0.0.1", "robot.local", "0", "127.1",
     "localhost.", "localhost.evil.example", "127.0.0.1.evil.example", "169.254.1.1"],
)  # fmt: skip
def test_other_addresses_and_names(host: str) -> None:
    assert not is_loopback(host)


@given(st.text() | st.integers() | st.none() | st.binary())
def test_nothing_else_is_the_secret(given_: Any) -> None:
    assert is_key(given_, (SECRET, TOKEN)) == (given_ in (SECRET, TOKEN))
    assert not is_key(given_, ("",))
