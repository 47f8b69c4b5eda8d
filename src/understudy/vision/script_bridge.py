"""VisionBridge: a client of the vision process for scripts and tests, with calls that wait.

    with VisionBridge() as vision:
        vision.connect("tcp://127.0.0.1:5570")
        part = vision.detect_single_object("cube")

The jobs of a cell ask the process by a component of their own (`vision.bridge`), without waiting.
"""

import itertools
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from understudy.errors import LONGEST_SHOWN, UNREADABLE, ConfigError, Refused
from understudy.ports.object_finder import DetectedObject, FoundObjects
from understudy.space.transform import Rows
from understudy.vision.messages import error_words, read_facts, read_picture
from understudy.wire.zmq_request import NoReplyError, ZmqRequester

NS_PER_US = 1000
Value = TypeVar("Value")
ADDRESS = "tcp://127.0.0.1:5570"
ANSWER_SECONDS = 10.0
"""Wall time for the reply to a command without a time-out of its own."""
LONGEST_TIMEOUT_MS = 1e9
REAL = (int, float, np.integer, np.floating)
LONGEST_ERROR = 2000
"""Characters of an error of the vision process that `last_error` keeps."""
IDEMPOTENT = frozenset({"capture", "ping", "get_status", "get_hand_eye"})
"""Commands that are asked once more if the connection breaks: nothing changes by asking twice."""
NOT_CONNECTED = Refused("not connected")


class VisionBridge:
    """The calls of the design document; one thread of its own owns the socket.

    A call that fails returns False or None and says why in `last_error`; a call that succeeds
    clears it, and `disconnect` leaves it as it is.

    Units: poses and points are metres and radians, in the frame of the camera. Matrices of the
    calibration calls have millimetres in their last column. Time-outs are milliseconds.
    """

    def __init__(self) -> None:
        self.last_error = ""
        self._connection: _Connection | None = None
        self._numbers = itertools.count(1)
        self._picture: Future[FoundObjects | Refused] | None = None

    def __enter__(self) -> "VisionBridge":
        return self

    def __exit__(self, *exception: object) -> None:
        self.disconnect()

    # ── connection ──

    def connect(self, address: str = ADDRESS) -> bool:
        """Whether a vision process answers there. An earlier connection is closed before."""
        self.disconnect()
        requester = self._kept(_requester(address))
        if requester is None:
            return False
        self._connection = _Connection(requester)
        return self.is_connected()

    def disconnect(self) -> None:
        """Closes the connection. A picture under way is not waited for. `connect` opens another."""
        connection, self._connection, self._picture = self._connection, None, None
        if connection is not None:
            connection.close()

    def is_connected(self) -> bool:
        """Whether the vision process answers now."""
        return self._facts("ping") is not None

    # ── pictures ──

    def trigger_capture(self, timeout_ms: float = 5000.0, **params: Any) -> bool:
        """Begins a picture that may take this long; `get_last_result` waits for it. ``params``:
        exposure_ms, gain_db. False if it cannot be asked for; then there is no last result."""
        self._picture = None
        seconds = self._kept(_seconds(timeout_ms))
        if seconds is not None:
            self._picture = self._kept(self._ask("capture", params, seconds, _read_result))
        return self._picture is not None

    def get_last_result(self, timeout_ms: float = 1000.0) -> FoundObjects | None:
        """The result of the last picture; None if there is none within the time-out. Poses and
        points are metres and radians in the frame of the camera, `exposed_at` is nanoseconds."""
        seconds = self._kept(_seconds(timeout_ms))
        if seconds is None:
            return None
        if self._picture is None:
            return self._kept(Refused("no picture was triggered"))
        try:
            found = self._picture.result(seconds)
        except TimeoutError:
            found = Refused(f"no result in {timeout_ms:g} ms")
        return self._kept(found)

    def detect_single_object(
        self, class_filter: str = "", timeout_ms: float = 2000.0
    ) -> DetectedObject | None:
        """The object with the highest confidence in a new picture. Empty filter: any class. Its
        `pose` is metres and radians in the frame of the camera."""
        if not self.trigger_capture(timeout_ms):
            return None
        result = self.get_last_result(timeout_ms)
        objects = (
            [o for o in result.objects if class_filter in ("", o.class_name)] if result else []
        )
        if result is not None and not objects:
            self.last_error = f"the picture shows no {class_filter or 'object'}"
        return max(objects, key=lambda each: each.confidence, default=None)

    # ── calibration ──

    def start_calibration(self, **params: Any) -> bool:
        """Begins a new calibration. ``params``: target (its sizes in mm), mount."""
        return self._facts("calibrate_start", params) is not None

    def capture_calibration_image(self, **params: Any) -> bool:
        """Adds a pose to the calibration. ``params``: T_base_flange, 4 rows with millimetres in the
        last column, if the camera does not know it; `rows_mm` of `space.transform` makes them
        from a matrix in metres."""
        return self._facts("calibrate_capture", params) is not None

    def compute_calibration(self, **params: Any) -> bool:
        """Computes the camera from the poses so far. ``params``: method, refine, apply."""
        return self._facts("calibrate_compute", params) is not None

    def get_hand_eye_matrix(self) -> tuple[float, ...] | None:
        """The camera on the flange or in the base of the robot: 16 numbers by rows, with
        millimetres in the last column. `from_rows_mm` of `space.transform` makes the 4×4 matrix
        in metres, the unit of `DetectedObject.pose`."""
        facts = self._facts("get_hand_eye")
        if facts is None:
            return None
        try:
            rows = msgspec.convert(facts.get("matrix"), Rows)
        except msgspec.ValidationError as problem:
            self.last_error = f"wrong reply of the vision process: matrix: {problem}"
            return None
        return tuple(value for row in rows for value in row)

    # ── inside ──

    def _facts(
        self, command: str, params: Mapping[str, Any] | None = None
    ) -> dict[str, Any] | None:
        """The reply to a command, when it has come."""
        asked = self._ask(command, params or {}, ANSWER_SECONDS, read_facts)
        return self._kept(asked if isinstance(asked, Refused) else asked.result())

    def _ask(
        self, command: str, params: Mapping[str, Any], seconds: float, read: "Read[Value]"
    ) -> "Future[Value | Refused] | Refused":
        """Begins a question; the result is what ``read`` makes of the reply."""
        if self._connection is None:
            return NOT_CONNECTED
        question = _question(command, params, next(self._numbers))
        if isinstance(question, Refused):
            return question
        return self._connection.ask(question, seconds, read)

    def _kept(self, found: Value | Refused) -> Value | None:
        """The value, or None with the reason in `last_error`."""
        self.last_error = found.reason if isinstance(found, Refused) else ""
        return None if isinstance(found, Refused) else found


# ── the thread of the socket ────────────────────────────────────────────────────────────────────

Read = Callable[[bytes, int], Value | Refused]
"""Value of a reply, from its bytes and the number of its question."""


class _Question(NamedTuple):
    """A request as it is sent."""

    command: str
    number: int
    payload: bytes


class _Connection:
    """A socket to one vision process, and the thread that owns it."""

    def __init__(self, requester: ZmqRequester) -> None:
        self._requester = requester
        self._closing = threading.Event()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="VisionBridge")

    def ask(
        self, question: _Question, seconds: float, read: Read[Value]
    ) -> "Future[Value | Refused]":
        """Begins a question; it is sent after those before it."""
        return self._thread.submit(self._answered, question, seconds, read)

    def close(self) -> None:
        """Ends the question under way and those that wait, closes the socket, ends the thread."""
        self._closing.set()
        self._thread.submit(self._requester.close)
        self._thread.shutdown()

    def _answered(self, question: _Question, seconds: float, read: Read[Value]) -> Value | Refused:
        reply = self._reply(question, seconds)
        if isinstance(reply, Refused):
            return reply
        found = read(reply, question.number)
        return _with_whole_error(found, reply) if isinstance(found, Refused) else found

    def _reply(self, question: _Question, seconds: float) -> bytes | Refused:
        deadline, left = time.monotonic() + seconds, seconds
        again = question.command in IDEMPOTENT
        while self._is_open():
            try:
                return b"".join(self._requester.ask([question.payload], left, self._is_open))
            except NoReplyError as problem:
                left = deadline - time.monotonic()
                if self._is_open() and (not again or left <= 0.0):
                    return Refused(str(problem))
                again = False
        return Refused("the connection was closed before the reply came")

    def _is_open(self) -> bool:
        return not self._closing.is_set()


# ── what a call is given ────────────────────────────────────────────────────────────────────────


def _requester(address: object) -> ZmqRequester | Refused:
    """The requester of an address, or why there is none."""
    if not isinstance(address, str) or not address.isprintable():
        wrong = f"not the address of a server (got {_shown(address)})"
        return Refused(f"{wrong}; allowed: tcp://HOST:PORT")
    try:
        return ZmqRequester(address)
    except ConfigError as problem:
        return Refused(str(problem))


def _seconds(timeout_ms: object) -> float | Refused:
    """A time-out in seconds."""
    number = timeout_ms if isinstance(timeout_ms, REAL) else math.nan
    if 0.0 <= number <= LONGEST_TIMEOUT_MS:
        return float(number) / 1000.0
    allowed = f"a number from 0 to {LONGEST_TIMEOUT_MS:.0f}"
    return Refused(f"timeout_ms: not a time-out (got {_shown(timeout_ms)}); allowed: {allowed}")


def _question(command: str, params: Mapping[str, Any], number: int) -> _Question | Refused:
    """The question, or why the parameters cannot be sent."""
    try:
        plain = msgspec.to_builtins(params, enc_hook=_plain)
        wrong = next(_not_finite(plain), None)
        request = {"command": command, "params": plain, "request_id": number}
        payload = msgspec.json.encode(request)
    except (TypeError, ValueError, RecursionError) as problem:
        return Refused(f"{command}: {problem}")
    if wrong is not None:
        return Refused(f"{command}: {wrong}; allowed: finite numbers")
    return _Question(command, number, payload)


def _shown(value: object) -> str:
    return f"{value!r:.{LONGEST_SHOWN}}"


def _plain(value: Any) -> Any:
    """Arrays and numbers of NumPy as lists and numbers."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be sent")


def _not_finite(value: Any, key: str = "") -> Iterator[str]:
    """Key and value of each number that JSON does not have: it would be sent as null, which stands
    for the default."""
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{key}: not a finite number (got {value})"
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    for name, each in items:
        yield from _not_finite(each, f"{key}.{name}" if key else str(name))


# ── what comes back ─────────────────────────────────────────────────────────────────────────────


def _read_result(reply: bytes, number: int) -> FoundObjects | Refused:
    picture = read_picture(reply, number)
    if isinstance(picture, Refused):
        return picture
    at = picture.timestamp_us * NS_PER_US
    return FoundObjects(at, picture.frame_id, picture.detected(), picture.cloud())


class _Error(msgspec.Struct, frozen=True):
    """The error of a reply."""

    error: str = ""
    detail: str = ""


def _with_whole_error(refused: Refused, reply: bytes) -> Refused:
    """The refusal with the error as the process has sent it. `messages` shortens it for the pages
    of a cell, which would lose the list of allowed values."""
    try:
        found = msgspec.json.decode(reply, type=_Error)
    except UNREADABLE:
        return refused
    error = error_words(found.error, found.detail)
    if not error or not error.startswith(refused.reason.removesuffix("…")):
        return refused
    return Refused(error if len(error) <= LONGEST_ERROR else f"{error[:LONGEST_ERROR]}…")
