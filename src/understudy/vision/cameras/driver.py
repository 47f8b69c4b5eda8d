"""Cameras of OpenCV: `opencv:0` (number of a device), `opencv:FILE` (a film), `opencv:rtsp://…`.

Pictures of a device wait in the buffer of its driver: those are thrown away, so that the picture is
not older than the request. A driver that hangs does not hang the process: it is called by a thread
of its own.
"""

import math
import queue
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import cv2
import numpy as np

from understudy.errors import ConfigError
from understudy.sight.frame import Frame
from understudy.vision.interface import CameraError, CameraSource, NoMorePicturesError, Shot

MOST_BUFFERED = 8
"""Pictures that a driver may have buffered."""
FRESH_SECONDS = 0.003
"""A picture for which the driver waited this long was not in its buffer."""


class ExposureRule(NamedTuple):
    """How a driver is given an exposure: its value for automatic exposure off, and the value of an
    exposure in milliseconds."""

    manual: float
    value: Callable[[float], float]


BACKENDS: Mapping[str, ExposureRule] = {
    "V4L2": ExposureRule(1.0, lambda ms: ms * 10.0),  # units of 100 µs
    "DSHOW": ExposureRule(0.25, lambda ms: math.log2(ms / 1e3)),
    "MSMF": ExposureRule(0.25, lambda ms: math.log2(ms / 1e3)),
}
OTHER = ExposureRule(0.25, lambda ms: ms)
ALLOWED = "opencv:NUMBER with 0, 1, …, opencv:FILE or opencv:rtsp://…"


def open_camera(address: str) -> CameraSource:
    _, _, name = address.partition(":")
    if not name:
        raise ConfigError("which camera?", value=address, allowed=ALLOWED)
    if re.fullmatch(r"[-+]\d+", name):
        raise ConfigError("not the number of a device", value=address, allowed=ALLOWED)
    return OpenCvCamera(name)


class OpenCvCamera:
    """A camera or a film that OpenCV opens. ``name``: number of a device, or a film or stream;
    ``clock``: seconds, to see whether the driver had to wait for a picture."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._clock = clock
        self._live = name.isdecimal()
        self._count = 0
        self._capture: cv2.VideoCapture | None = None
        self._orders: queue.SimpleQueue[Shot | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[Frame | CameraError] = queue.SimpleQueue()
        self._busy = False
        self._thread = threading.Thread(target=self._work, name=f"camera {name}", daemon=True)
        self._thread.start()

    def grab(self, shot: Shot, seconds: float) -> Frame:
        deadline = time.monotonic() + seconds
        if self._busy:  # a late picture of an earlier request
            self._result(seconds)
        self._busy = True
        self._orders.put(shot)
        result = self._result(max(0.0, deadline - time.monotonic()))
        if isinstance(result, CameraError):
            raise result
        return result

    def close(self) -> None:
        self._orders.put(None)

    def _result(self, seconds: float) -> Frame | CameraError:
        try:
            result = self._results.get(timeout=seconds)
        except queue.Empty:
            raise CameraError(f"camera {self._name}: no picture in {seconds:.3g} s") from None
        self._busy = False
        return result

    # ── in the thread ──

    def _work(self) -> None:
        while (shot := self._orders.get()) is not None:
            try:
                self._results.put(self._take(shot))
            except (CameraError, cv2.error) as problem:
                self._release()
                kind = type(problem) if isinstance(problem, CameraError) else CameraError
                self._results.put(kind(f"camera {self._name}: {problem}"))
        self._release()

    def _take(self, shot: Shot) -> Frame:
        capture = self._opened()
        exposure, gain = _set_exposure(capture, shot.exposure_ms), _set_gain(capture, shot.gain_db)
        if self._live:
            _discard_buffered(capture, self._clock)
        exposed_at = time.time()
        done, picture = capture.read()
        if not done or picture is None:
            if self._live:
                raise CameraError("no picture")
            raise NoMorePicturesError(f"no more pictures ({self._count})")
        self._count += 1
        code = cv2.COLOR_GRAY2RGB if picture.ndim == 2 else cv2.COLOR_BGR2RGB
        pixels = np.asarray(cv2.cvtColor(picture, code), dtype=np.uint8)
        return Frame(
            self._count, exposed_at, pixels, exposure_ms=exposure, gain_db=gain, camera=self._name
        )

    def _opened(self) -> cv2.VideoCapture:
        if self._capture is None:
            self._capture = cv2.VideoCapture(int(self._name) if self._live else self._name)
            self._capture.set(cv2.CAP_PROP_BUFFERSIZE, 1)
        if not self._capture.isOpened():
            raise CameraError("it cannot be opened; is it connected, and free?")
        return self._capture

    def _release(self) -> None:
        if self._capture is not None:
            self._capture.release()
            self._capture = None


def _discard_buffered(capture: cv2.VideoCapture, clock: Callable[[], float]) -> None:
    for _ in range(MOST_BUFFERED):
        asked = clock()
        if not capture.grab() or clock() - asked > FRESH_SECONDS:
            return


def _set_exposure(capture: cv2.VideoCapture, ms: float | None) -> float:
    """Milliseconds that are set; 0: not known, the driver decides."""
    if ms is None:
        return 0.0
    rule = BACKENDS.get(capture.getBackendName(), OTHER)
    capture.set(cv2.CAP_PROP_AUTO_EXPOSURE, rule.manual)
    return ms if capture.set(cv2.CAP_PROP_EXPOSURE, rule.value(ms)) else 0.0


def _set_gain(capture: cv2.VideoCapture, db: float | None) -> float:
    if db is None:
        return 0.0
    return db if capture.set(cv2.CAP_PROP_GAIN, db) else 0.0
