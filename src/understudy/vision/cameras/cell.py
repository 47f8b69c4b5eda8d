"""The virtual camera of a cell: `understudy://HOST:PORT/NAME`, frames over ZeroMQ.

The picture is taken when the request arrives; it brings the flange at that instant.
"""

import re

import msgspec

from understudy.errors import UNREADABLE, ConfigError
from understudy.sight.frame import Frame, FrameError, decode, read_header
from understudy.vision.interface import CameraError, CameraSource, Shot
from understudy.wire.zmq_request import NoReplyError, ZmqRequester

LONGEST_REASON = 500
"""Characters of an error of the camera in a message."""
_ADDRESS = re.compile(r"understudy://([^/\s]+)/([^/\s]+)")


def open_camera(address: str) -> CameraSource:
    found = _ADDRESS.fullmatch(address)
    if found is None:
        raise ConfigError(
            "not the address of a virtual camera",
            value=address,
            allowed="understudy://HOST:PORT/NAME, NAME being the robot",
        )
    return CellCamera(f"tcp://{found[1]}", found[2])


class CellCamera:
    """A client of the virtual camera of a cell. ``address``: of the face `camera`; ``name``: of the
    robot that has the camera."""

    def __init__(self, address: str, name: str) -> None:
        self._requester = ZmqRequester(address)
        self._name = name
        self._number = 0

    def grab(self, shot: Shot, seconds: float) -> Frame:
        self._number += 1
        asked = {
            "grab": self._name,
            "request_id": self._number,
            "exposure_ms": shot.exposure_ms,
            "gain_db": shot.gain_db,
            "trigger": shot.trigger or None,
        }
        request = {key: value for key, value in asked.items() if value is not None}
        try:
            parts = self._requester.ask([msgspec.json.encode(request)], seconds)
        except NoReplyError as problem:
            raise CameraError(f"camera {self._name}: {problem}; is the cell running?") from None
        if len(parts) == 1:
            raise CameraError(f"camera {self._name}: {_reason(parts[0])}")
        try:
            answers = read_header(parts[0]).request_id
            if answers != self._number:
                raise FrameError(f"the reply to request {answers}, not to {self._number}")
            return decode(parts)
        except FrameError as problem:
            raise CameraError(f"camera {self._name}: {problem}") from None

    def close(self) -> None:
        self._requester.close()


class Failure(msgspec.Struct, frozen=True):
    error: str


def _reason(part: bytes) -> str:
    try:
        return msgspec.json.decode(part, type=Failure).error[:LONGEST_REASON]
    except UNREADABLE:
        return f"a reply of one part that is no error: {part[:100]!r}"
