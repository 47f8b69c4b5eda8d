"""Frames over the wire: requests, errors, faults, snapshots, transcripts; a real ZeroMQ client."""

import asyncio
from pathlib import Path

import msgspec
import pytest
import zmq
import zmq.asyncio
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.devices.camera.camera_cell import ask, camera_cell, camera_of

from understudy.app.live import Live, Options
from understudy.app.stand_in import StandIn
from understudy.config import load_config
from understudy.ports import WireMessage
from understudy.sight.frame import Frame, decode
from understudy.wire.connection import Event


def test_a_client_gets_a_frame(tmp_path: Path) -> None:
    cell = camera_cell(tmp_path, more="depth: true")
    cell.advance(1.5)
    (frame,) = ask(cell.connect(), {"grab": "g60", "request_id": "a1", "exposure_ms": 5})
    assert isinstance(frame, Frame)
    assert (frame.frame_id, frame.exposed_at, frame.exposure_ms) == (1, 1.5, 5.0)
    assert frame.picture.shape == (240, 320, 3)
    assert frame.depth is not None
    assert frame.depth.shape == (240, 320)
    assert frame.flange is not None
    assert frame.camera == "g60"


def test_the_transcript_has_sizes_and_checksums_of_pictures(tmp_path: Path) -> None:
    cell = camera_cell(tmp_path)
    ask(cell.connect(), {"grab": "g60", "request_id": 1})
    sent = [event for event in cell.transcript if event.kind == "<"]
    assert len(sent) == 1
    assert b" +230400 bytes, crc32 " in sent[0].data
    assert len(sent[0].data) < 2000


@pytest.mark.parametrize(
    ("request_", "words", "number"),
    [
        (b"", "not a request", None),
        (b"\xff\xfe", "not a request", None),
        (b"[1, 2]", "not a request", None),
        (b'{"grab": 5, "request_id": 3}', "grab", 3),
        (b'{"request_id": 3}', "grab", 3),
        (b'{"grab": "kuka", "request_id": 3}', "there is: g60", 3),
        (b'{"grab": "g60", "exposure_ms": 1e9, "request_id": 3}', "exposure_ms", 3),
        (b'{"grab": "g60", "gain_db": "loud", "request_id": 3}', "gain_db", 3),
        (b'{"grab": "g60", "exposure_ms": NaN}', "not a request", None),
        (b'{"grab": "g60", "speed": 1, "request_id": [1]}', "speed", [1]),
        (b'{"grab": "' + b"g" * 5000 + b'"}', "at most 4096", None),
        (b"[" * 4000, "not a request", None),
    ],
)
def test_a_wrong_request_gets_an_error(
    request_: bytes, words: str, number: object, tmp_path: Path
) -> None:
    cell = camera_cell(tmp_path)
    client = cell.connect()
    (reply,) = ask(client, request_)
    assert isinstance(reply, dict)
    assert words in reply["error"]
    assert reply["request_id"] == number
    assert camera_of(cell).status(0).frames == 0
    assert isinstance(ask(client, {"grab": "g60"})[0], Frame)


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=300),
        st.dictionaries(
            st.sampled_from(["grab", "request_id", "exposure_ms", "gain_db", "x"]),
            st.one_of(
                st.none(), st.integers(), st.floats(), st.text(max_size=20), st.just("g61"),
                st.lists(st.integers(), max_size=3),
            ),
        ).map(lambda value: msgspec.json.encode(value)),
    )
)  # fmt: skip
def test_any_request_gets_one_reply(any_cell: object, request_: bytes) -> None:
    replies = ask(any_cell, request_)
    assert len(replies) == 1
    assert isinstance(replies[0], Frame) or "error" in replies[0]


@pytest.fixture(scope="module")
def any_cell(tmp_path_factory: pytest.TempPathFactory) -> object:
    return camera_cell(tmp_path_factory.mktemp("cell")).connect()


def test_a_silent_camera_does_not_answer(tmp_path: Path) -> None:
    cell = camera_cell(tmp_path)
    client = cell.connect()
    camera_of(cell).inject("camera_silent", {}, 0)
    assert ask(client, {"grab": "g60"}) == []
    camera_of(cell).reset(0)
    assert len(ask(client, {"grab": "g60"})) == 1


def test_rules_of_messages_act_on_frames(tmp_path: Path) -> None:
    rules = (
        "late: {on: g60.camera, fault: message_delay, probability: 1, parameters: {delay_ms: 50}}"
    )
    cell = camera_cell(tmp_path, rules=rules)
    client = cell.connect()
    assert ask(client, {"grab": "g60"}) == []
    cell.advance(0.06)
    assert len(client.messages()) == 1


def test_a_snapshot_repeats_the_frames(tmp_path: Path) -> None:
    cell = camera_cell(tmp_path, more="depth: true")
    client = cell.connect()
    ask(client, {"grab": "g60"})
    camera_of(cell).inject("camera_frozen", {}, cell.timed_cell.now)
    snapshot = cell.exchange.snapshot()

    def run() -> list[WireMessage]:
        client.say(WireMessage("", b'{"grab": "g60"}', "/"))
        camera_of(cell).reset(cell.timed_cell.now)
        client.say(WireMessage("", b'{"grab": "g60"}', "/"))
        return client.messages()

    first = run()
    cell.exchange.restore(snapshot)
    assert run() == first
    assert len({each.more for each in first}) == 2


PATIENCE_MS = 60_000


def test_large_frames_pass_to_plain_clients(tmp_path: Path) -> None:
    """1280 × 960 with depth is 8.6 MB: more than any limit of what waits for a peer."""
    camera_cell(tmp_path, more="depth: true", size="width_px: 1280, height_px: 960")
    context = zmq.Context()
    with StandIn(str(tmp_path / "cell.yaml"), rate=1.0) as cell:
        clients = [context.socket(zmq.REQ) for _ in range(2)]
        try:
            for client in clients:
                client.set(zmq.LINGER, 0)
                client.set(zmq.RCVTIMEO, PATIENCE_MS)
                client.connect(cell.endpoints["g60.camera"])
                client.send(b'{"grab": "g60", "request_id": 4}')
            frames = [decode(client.recv_multipart()) for client in clients]
            clients[0].send(b"nonsense")
            assert len(clients[0].recv_multipart()) == 1
            clients[0].send(b'{"grab": "g60"}')
            frames.append(decode(clients[0].recv_multipart()))
        finally:
            for client in clients:
                client.close()
            context.term()
    assert sorted(frame.frame_id for frame in frames) == [1, 2, 3]
    assert {frame.picture.shape for frame in frames} == {(960, 1280, 3)}
    assert all(frame.depth is not None and frame.depth.shape == (960, 1280) for frame in frames)


def test_requests_wait_while_the_cell_starts(tmp_path: Path) -> None:
    """The code that renders may have to be compiled: the event loop must not do it for a client."""
    camera_cell(tmp_path)

    async def answered() -> tuple[int, list[bytes]]:
        arrived = asyncio.Event()

        def note(event: Event) -> None:
            if event.kind == ">":
                arrived.set()

        options = Options(ephemeral=True, note=note)
        live = Live(load_config(str(tmp_path / "cell.yaml")), options)
        await live.listen()
        context = zmq.asyncio.Context()
        client = context.socket(zmq.REQ)
        try:
            client.connect(live.endpoints["g60.camera"])
            await client.send(b'{"grab": "g60", "request_id": 4}')
            async with asyncio.timeout(PATIENCE_MS / 1000):
                await arrived.wait()
                early = live.on_component(
                    "g60.camera", lambda camera, now: camera.status(now).frames
                )
                live.go()
                return early, await client.recv_multipart()
        finally:
            client.close(0)
            context.term()
            await live.stop()

    early, parts = asyncio.run(answered())
    assert early == 0
    assert decode(parts).frame_id == 1
