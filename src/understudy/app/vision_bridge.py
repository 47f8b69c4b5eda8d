"""VisionBridge: a client of the vision process for scripts and tests, with calls that wait.

    with VisionBridge() as vision:
        vision.connect("tcp://127.0.0.1:5570")
        part = vision.detect_single_object("cube")

The jobs of a cell ask the process by their own part (`jobs.vision_bridge`), without waiting.
"""

import itertools
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec
import numpy as np

from understudy.errors import Refused
from understudy.ports.pick_place import DetectedObject, VisionResult
from understudy.space.matrix_rows import Rows
from understudy.vision.replies import read_facts, read_picture
from understudy.wire.zmq_request import NoReplyError, ZmqRequester

NS_PER_US = 1000
Value = TypeVar("Value")
ADDRESS = "tcp://127.0.0.1:5570"
ANSWER_SECONDS = 10.0
"""Wall time for the reply to a command without a time-out of its own."""
IDEMPOTENT = frozenset({"capture", "ping", "get_status", "get_hand_eye"})
"""Commands that are asked once more if the connection breaks: nothing changes by asking twice."""


class VisionBridge:
    """The calls of the design document; one thread of its own owns the socket. `last_error`: why
    the last call gave nothing; empty if it did."""

    def __init__(self) -> None:
        self.last_error = ""
        self._requester: ZmqRequester | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="VisionBridge")
        self._numbers = itertools.count(1)
        self._picture: Future[VisionResult | Refused] | None = None

    def __enter__(self) -> "VisionBridge":
        return self

    def __exit__(self, *exception: object) -> None:
        self.disconnect()
        self._thread.shutdown()

    # ── connection ──

    def connect(self, address: str = ADDRESS) -> bool:
        """Whether a vision process answers there."""
        self.disconnect()
        self._requester = ZmqRequester(address)
        return self.is_connected()

    def disconnect(self) -> None:
        if self._requester is not None:
            self._thread.submit(self._requester.close).result()
        self._requester, self._picture = None, None

    def is_connected(self) -> bool:
        return self._requester is not None and self._facts("ping") is not None

    # ── pictures ──

    def trigger_capture(self, timeout_ms: float = 5000.0, **params: Any) -> bool:
        """Begins a picture that may take this long; `get_last_result` waits for it. ``params``:
        exposure_ms, gain_db."""
        if self._requester is None:
            self.last_error = "not connected"
            return False
        self._picture = self._thread.submit(self._capture, params, timeout_ms / 1000.0)
        return True

    def get_last_result(self, timeout_ms: float = 1000.0) -> VisionResult | None:
        """The result of the last picture; None if there is none within the time-out."""
        if self._picture is None:
            self.last_error = "no picture was triggered"
            return None
        try:
            found = self._picture.result(timeout_ms / 1000.0)
        except TimeoutError:
            self.last_error = f"no result in {timeout_ms:g} ms"
            return None
        return self._kept(found)

    def detect_single_object(
        self, class_filter: str = "", timeout_ms: float = 2000.0
    ) -> DetectedObject | None:
        """The object with the highest confidence in a new picture. Empty filter: any class."""
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
        return self._facts("calibrate_start", params) is not None

    def capture_calibration_image(self, **params: Any) -> bool:
        """``params``: T_base_flange, 4 rows with millimetres, if the camera does not know it."""
        return self._facts("calibrate_capture", params) is not None

    def compute_calibration(self, **params: Any) -> bool:
        return self._facts("calibrate_compute", params) is not None

    def get_hand_eye_matrix(self) -> tuple[float, ...] | None:
        """The camera on the flange or in the base of the robot: 16 numbers by rows, with mm."""
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
        if self._requester is None:
            self.last_error = "not connected"
            return None
        ask = self._thread.submit(self._ask, command, params or {}, ANSWER_SECONDS)
        number, reply = ask.result()
        found = reply if isinstance(reply, Refused) else read_facts(reply, number)
        return self._kept(found)

    def _capture(self, params: Mapping[str, Any], seconds: float) -> VisionResult | Refused:
        number, reply = self._ask("capture", params, seconds)
        if isinstance(reply, Refused):
            return reply
        picture = read_picture(reply, number)
        if isinstance(picture, Refused):
            return picture
        at = picture.timestamp_us * NS_PER_US
        return VisionResult(at, picture.frame_id, picture.detected(), picture.cloud())

    def _ask(
        self, command: str, params: Mapping[str, Any], seconds: float
    ) -> tuple[int, bytes | Refused]:
        """Number and reply; in the thread of the socket."""
        assert self._requester is not None
        number, deadline = next(self._numbers), time.monotonic() + seconds
        request = {"command": command, "params": params, "request_id": number}
        try:
            question = [msgspec.json.encode(request, enc_hook=_plain)]
        except (TypeError, ValueError) as problem:
            return number, Refused(f"{command}: {problem}")
        again = command in IDEMPOTENT
        left = seconds
        while True:
            try:
                return number, b"".join(self._requester.ask(question, left))
            except NoReplyError as problem:
                left = deadline - time.monotonic()
                if not again or left <= 0.0:
                    return number, Refused(str(problem))
                again = False

    def _kept(self, found: Value | Refused) -> Value | None:
        """The value, or None with the reason in `last_error`."""
        self.last_error = found.reason if isinstance(found, Refused) else ""
        return None if isinstance(found, Refused) else found


def _plain(value: Any) -> Any:
    """Arrays and numbers of NumPy as lists and numbers."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be sent")
