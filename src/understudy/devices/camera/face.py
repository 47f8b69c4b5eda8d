"""Frames of a virtual camera for clients, over ZeroMQ: request and reply.

    faces: {camera: {port: 5571}}

    > {"grab": "g60", "request_id": 7}
    > {"grab": "g60", "request_id": 8, "exposure_ms": 5, "gain_db": 6}
    < {"frame_id": 1, "t_exposure": 12.5, …}   then the picture, and the depth image if there is one
    < {"error": "…", "request_id": 9}

`grab` names the robot. The picture is taken when the request arrives. A reply is a message of
several parts (`sight/frame.py`); an error is one part.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct

from understudy.devices.camera import Exposure, Gain
from understudy.devices.camera.reactions import TALKS as TALKS
from understudy.errors import UNREADABLE, ConfigError
from understudy.ports import Deps, Endpoint, WireMessage
from understudy.ports.decoder import (
    MESSAGES,
    Decoded,
    Operation,
    Sections,
    all_rows,
    field_of_json,
    json_object,
)
from understudy.ports.faults import Faults
from understudy.ports.operation import components_of
from understudy.protocol.sessions import MessageOutbox, NotInjectable, ReadyPeers, SessionFace

if TYPE_CHECKING:
    from understudy.devices.camera.camera import VirtualCamera

OF_DEVICE = True
FAULTS: Faults = {}
LARGEST_REQUEST = 4096
LONGEST_ID = 256
"""Bytes of a request, and of its id as JSON."""
MOST_READ = 100
MOST_ANSWERS = 1
"""Frames that wait for a peer before nothing more is read from it: a frame costs milliseconds and
megabytes."""
MOST_CLIENTS = 16
ENDPOINTS = {
    "": Endpoint(wires=("zmq_router",), defaults={"port": 5571, "max_clients": MOST_CLIENTS})
}


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The face has no keys but those of its wire."""


class GrabRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A request. `request_id`: anything, it is repeated in the reply. `trigger`: of the question of
    this cell that the picture is for."""

    grab: str
    request_id: Any = None
    exposure_ms: Exposure | None = None
    gain_db: Gain | None = None
    trigger: Annotated[str, Meta(max_length=128)] = ""


class OnlyId(Struct, frozen=True):
    """What can be read of a wrong request."""

    request_id: Any = None


def build(name: str, config: Config, robot: Any, deps: Deps) -> "CameraFace":
    """The face of the camera that is mounted on ``robot``."""
    camera: Any = components_of(robot).get("camera")
    if camera is None:
        raise ConfigError("this robot has no camera", allowed="`camera: {…}` of the robot")
    return CameraFace(name.partition(".")[0], camera)


class SavedSession(Struct):
    """Snapshot of a session: the frames that wait for their client."""

    outbox: list[WireMessage] = []


class CameraSession:
    """`MessageSession` of one client: one reply to each request, at once."""

    def __init__(self, face: "CameraFace", peer: str, saved: SavedSession | None = None) -> None:
        was = saved or SavedSession()
        self._face = face
        self._peer = peer
        self._outbox = MessageOutbox(lambda: face.ready.add(peer), was.outbox)

    def receive(self, message: WireMessage, now: int) -> None:
        parts = self._face.answer(message.payload, now)
        if parts:
            self._outbox.send(WireMessage(message.reply_to, parts[0], more=tuple(parts[1:])))

    def failed(self, message: WireMessage, now: int) -> None:
        error = failure("a bug; see the log", readable_id(message.payload))
        self._outbox.send(WireMessage(message.reply_to, error))

    def take(self, room: int) -> WireMessage | None:
        return self._outbox.take(room)

    def closed(self, now: int) -> None:
        self._face.close(self._peer)

    def credit(self) -> int:
        waits = self._face.starting or len(self._outbox) >= MOST_ANSWERS
        return 0 if waits else MOST_READ

    def owed(self) -> bool:
        return False

    def save(self) -> SavedSession:
        return SavedSession(self._outbox.save())


FURTHER_PARTS = re.compile(rb"( \+\d+ bytes, crc32 [0-9a-f]{8})+\Z")
"""What a transcript has of the parts behind the first one."""


def read_request(data: bytes, address: str) -> Decoded:
    return Decoded(("grab",), json_object(data))


def read_answer(data: bytes, address: str) -> Decoded:
    """A frame, whose picture is not kept, or an error."""
    fields = json_object(FURTHER_PARTS.sub(b"", data))
    refused = "error" in fields
    return Decoded(("error" if refused else "frame",), fields, refused)


def name_field(answer: bytes, byte: int) -> str:
    """The key of the header, or the further part, that a byte of a transcript belongs to."""
    parts = FURTHER_PARTS.search(answer)
    if parts is None or byte < parts.start():
        return field_of_json(answer, byte)
    number = answer.count(b" +", parts.start(), byte + 1)
    return f"part {max(number, 1) + 1}"


FACE_TESTS = "tests/devices/camera/test_camera_face.py"


def operations() -> Sections:
    grab = Operation(
        "grab",
        "a picture at this instant, with depth if there is one",
        "emulated",
        "us",
        FACE_TESTS,
    )
    keys = [
        Operation(name, "", "emulated", "us", FACE_TESTS)
        for name in GrabRequest.__struct_fields__
        if name != "grab"
    ]
    return {"Requests": [grab], "Keys of a request": keys}


OPERATIONS = operations
DECODER = replace(
    MESSAGES,
    read_request=read_request,
    read_answer=read_answer,
    name_field=name_field,
    operations=lambda: all_rows(operations()),
    alarms_refuse=True,
)


class CameraFace(SessionFace[CameraSession], NotInjectable):
    """`MessageFace`: the clients of one camera."""

    decoder = DECODER

    def __init__(self, robot: str, camera: "VirtualCamera") -> None:
        self.ready = ReadyPeers()
        self._robot = robot
        self._camera = camera
        self._sessions = {}

    @property
    def starting(self) -> bool:
        """The code that renders pictures is not loaded yet: requests wait."""
        return self._camera.starting

    def open(self, peer: str, now: int) -> CameraSession:
        self._sessions[peer] = CameraSession(self, peer)
        return self._sessions[peer]

    def close(self, peer: str) -> None:
        self._sessions.pop(peer, None)

    def addresses(self) -> Sequence[str]:
        return ()

    def answer(self, data: bytes, now: int) -> Sequence[bytes]:
        """The parts of the reply; empty: the camera does not answer."""
        if len(data) > LARGEST_REQUEST:
            said = f"a request of {len(data)} bytes; at most {LARGEST_REQUEST}"
            return [failure(said, None)]
        number = readable_id(data)
        try:
            asked = msgspec.json.decode(data, type=GrabRequest)
        except UNREADABLE as problem:
            return [failure(f"not a request for a frame: {problem}", number)]
        if asked.grab != self._robot:
            said = f"there is no camera {asked.grab[:100]!r} here; there is: {self._robot}"
            return [failure(said, number)]
        if self._camera.superseded(asked.trigger):
            return [failure("the cell does not want this picture any more", number)]
        frame = self._camera.grab(now, asked.exposure_ms, asked.gain_db)
        if frame is None:
            return []
        from understudy.sight.frame import encode

        return encode(frame, number)

    # ── snapshot ──

    def save(self) -> dict[str, SavedSession]:
        return {peer: session.save() for peer, session in self._sessions.items()}

    def load(self, state: Any) -> None:
        sessions = msgspec.convert(state, dict[str, SavedSession])
        self._sessions = {peer: CameraSession(self, peer, each) for peer, each in sessions.items()}


def readable_id(data: bytes) -> Any:
    """The id of a request, also of a wrong one; None if it cannot be read or is too long."""
    if len(data) > LARGEST_REQUEST:
        return None
    try:
        number = msgspec.json.decode(data, type=OnlyId).request_id
    except UNREADABLE:
        return None
    return number if len(msgspec.json.encode(number)) <= LONGEST_ID else None


def failure(reason: str, number: Any) -> bytes:
    return msgspec.json.encode({"error": reason, "request_id": number})
