"""VisionServer: answers the requests of the vision process. Bytes in, bytes out, no sockets.

Every request gets a reply; an error is `{"success": false, "error": …}`, and the server lives.
"""

import base64
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import cv2
import msgspec
import numpy as np
from msgspec import Struct

from understudy.errors import ConfigError, Refused, unknown
from understudy.ports.decoder import Evidence, Operation, Sections
from understudy.sight.bundle import Corners
from understudy.sight.calibrator import (
    CalibrationPose,
    CalibrationResult,
    HandEyeCalibrator,
    Validation,
)
from understudy.sight.cloud import cloud, thinned
from understudy.sight.frame import Frame
from understudy.sight.lens import Lens, Mount
from understudy.sight.markers import target_finder
from understudy.sight.targets import CalibrationTarget
from understudy.space.transform import Array
from understudy.units import MM
from understudy.vision.interface import (
    CameraError,
    CameraSource,
    DetectionError,
    Detector,
    Seen,
    Shot,
    View,
)
from understudy.vision.messages import (
    CalibrationParams,
    CaptureParams,
    ComputeParams,
    GrabParams,
    NoParams,
    PictureParams,
    Request,
    RequestError,
    StartParams,
    ValidateParams,
    error_words,
    is_sound,
    object_of,
    place_rows,
    read_params,
    read_place,
    read_request,
    shown,
)

log = logging.getLogger(__name__)

MOST_OBJECTS = 256
"""The most objects of a reply."""
GRAB_SECONDS = 4.0
"""Wall time that the camera has for a picture: less than clients wait for a reply (5 s)."""
NO_IMAGE = "Failed to capture image"


@dataclass(frozen=True)
class Eye:
    """What is known of the camera. `place`: on the flange (eye in hand) or in the base of the robot
    (eye to hand), 4×4 in metres; `lens`: goes before what a frame says of itself; with a width of 0
    it is used for pictures of any size."""

    mount: Mount = "eye_in_hand"
    place: Array | None = None
    lens: Lens | None = None

    def in_base(self, flange: Array | None) -> Array | None:
        """The camera in the base of the robot; None if it is not known."""
        if self.place is None or self.mount == "eye_to_hand":
            return self.place
        return None if flange is None else np.asarray(flange @ self.place)

    def lens_of(self, frame: Frame) -> Lens:
        height, width, _ = frame.picture.shape
        lens = self.lens or frame.lens
        if lens is None:
            raise DetectionError(
                "the intrinsics of the camera are not known: give a calibration file with "
                "camera_intrinsics"
            )
        if not lens.width:
            return replace(lens, width=width, height=height)
        if (lens.width, lens.height) != (width, height):
            raise DetectionError(
                f"the picture has {width}×{height} pixels, the intrinsics of the camera are those "
                f"of {lens.width}×{lens.height}"
            )
        return lens


class Sighted(NamedTuple):
    """A picture and what was found in it."""

    view: View
    seen: Sequence[Seen]


class Named(NamedTuple):
    """A detector and its kind."""

    kind: str
    detector: Detector


# ── hand-eye calibration: pictures of a target, and what they give ────────────────────────────────


MOST_POSES = 200


@dataclass(frozen=True)
class Capture:
    """A picture of the target. `exposed_at`: seconds, on the clock of the camera."""

    frame_id: int
    exposed_at: float
    pose: CalibrationPose
    lens: Lens

    def facts(self, number: int) -> dict[str, Any]:
        """The facts as the replies have them."""
        return {
            "number": number,
            "frame_id": self.frame_id,
            "timestamp_us": round(self.exposed_at * 1e6),
            "t_exposure": self.exposed_at,
            "T_base_flange": place_rows(self.pose.flange),
            "T_camera_target": place_rows(self.pose.target),
        }

    def corner_facts(self) -> dict[str, Any]:
        """The corners of the target, millimetres and pixels, and the lens that shows them."""
        corners = self.pose.corners or Corners(np.zeros((0, 3)), np.zeros((0, 2)))
        return {
            "corners": len(corners.pixels),
            "corner_pixels": corners.pixels.tolist(),
            "corner_points": (corners.points / MM).tolist(),
            "K": self.lens.matrix.tolist(),
            "distortion": list(self.lens.distortion),
            "size": [self.lens.width, self.lens.height],
        }


class CalibrationSession:
    """Captures of one target, and the camera that they give."""

    def __init__(self, target: CalibrationTarget, mount: Mount) -> None:
        self.target = target
        self.mount: Mount = mount
        self.captures: list[Capture] = []
        self._calibrator = HandEyeCalibrator(mount)
        try:
            self._find = target_finder(target)
        except ConfigError as problem:
            raise RequestError(f"calibrate_start: target: {problem}") from None

    def see(self, view: View, flange: Array | None) -> Capture:
        """The target in a picture, not yet added."""
        frame = view.frame
        if flange is None:
            raise RequestError(
                "the pose of the flange is not known: the camera does not send it, and "
                "params.T_base_flange is missing"
            )
        seen = self._find(frame.picture, view.lens)
        if isinstance(seen, str):
            raise RequestError(f"the target is not found: {seen}")
        pose = CalibrationPose(flange, seen.place, seen.corners)
        return Capture(frame.frame_id, frame.exposed_at, pose, view.lens)

    def add(self, capture: Capture) -> None:
        if len(self.captures) >= MOST_POSES:
            raise RequestError(f"{MOST_POSES} poses are captured; compute, or start again")
        if self.captures and self.captures[0].lens != capture.lens:
            raise RequestError("the lens is not that of the first pose; start again")
        pose = capture.pose
        _raise_refusal(self._calibrator.add_pose(pose.flange, pose.target, pose.corners))
        self._calibrator.lens = capture.lens
        self.captures.append(capture)

    def delete_last(self) -> None:
        _raise_refusal(self._calibrator.delete_last())
        self.captures.pop()

    def compute(self, method: str, *, refine: bool) -> CalibrationResult:
        result = self._calibrator.compute(method, refined=refine)
        if isinstance(result, Refused):
            raise RequestError(result.reason)
        return result

    def validate(self, capture: Capture, tolerance_mm: float) -> Validation:
        found = self._calibrator.validate(capture.pose, tolerance_mm)
        if isinstance(found, Refused):
            raise RequestError(found.reason)
        return found

    def directions(self) -> list[dict[str, Any]]:
        """How far the poses turn about each axis of the flange."""
        return [
            {"name": each.name, "turned_deg": each.turned_deg, "missing": each.missing}
            for each in self._calibrator.coverage()
        ]


def _raise_refusal(refused: Refused | None) -> None:
    if refused is not None:
        raise RequestError(refused.reason)


def result_facts(result: CalibrationResult) -> dict[str, Any]:
    """A result as the replies have it."""
    held_out, (mm, deg) = result.held_out, result.deviations_mm_deg
    pixels = [each.pixel_rms for each in result.poses]
    return {
        "method": result.method,
        "mount": result.mount,
        "refined": result.refined,
        "matrix": place_rows(result.camera),
        "T_target": place_rows(result.target),
        "poses": len(result.poses),
        "reprojection_error_px": result.pixel_rms,
        "reprojection_error_mm": result.rms_mm,
        "held_out_error_mm": None if held_out is None else held_out.rms_mm,
        "held_out_largest_mm": None if held_out is None else held_out.largest_mm,
        "deviation_mm": mm.tolist(),
        "deviation_deg": deg.tolist(),
        "residuals_px": None if None in pixels else pixels,
        "residuals_mm": [each.distance_mm for each in result.poses],
        "residuals_deg": [each.angle_deg for each in result.poses],
    }


# ── the server ──────────────────────────────────────────────────────────────────────────────────

Tables = Sequence[Mapping[str, Any]]
"""Detectors as the section `vision` has them: each with its `kind` and the keys of this kind."""
Build = Callable[[Tables], Sequence[tuple[str, Detector]]]
"""Kind and detector of each table; ConfigError with the key of what is wrong."""


class VisionServer:
    """Takes pictures, finds objects in them, and calibrates the camera. ``camera``: where pictures
    come from; ``build``: makes the detectors that a request brings; ``source``: the address of the
    camera, for the status."""

    def __init__(
        self,
        camera: CameraSource,
        detectors: Sequence[Named],
        eye: Eye | None = None,
        *,
        build: Build | None = None,
        source: str = "",
    ) -> None:
        self._camera = camera
        self._detectors = tuple(detectors)
        self._build = build
        self._built: tuple[Tables, tuple[Named, ...]] | None = None
        self._eye = eye or Eye()
        self._source = source
        self._started = time.monotonic()
        self._counts: Counter[str] = Counter()
        self._last_error = ""
        self._trigger = ""
        self._session: CalibrationSession | None = None
        self._pictures: dict[str, Sighted] = {}

    def handle(self, message: bytes) -> bytes:
        """The reply to a request, whatever came. Never raises."""
        request_id: Any = None
        try:
            request = read_request(message)
            request_id = request.request_id
            reply = {"success": True} | self._answer(request)
        except CameraError as problem:
            reply = self._failed(NO_IMAGE, str(problem))
        except RequestError as problem:
            reply = self._failed(str(problem), problem.detail)
        except DetectionError as problem:
            reply = self._failed(str(problem))
        except Exception as problem:
            log.exception("a request failed")
            reply = self._failed(f"internal error: {type(problem).__name__}: {problem}")
        if request_id is not None:
            reply["request_id"] = request_id
        return msgspec.json.encode(reply)

    def handle_parts(self, parts: Sequence[bytes]) -> bytes:
        """The reply to a message of ZeroMQ; a request has one part."""
        if len(parts) != 1:
            reason = f"a message of {len(parts)} parts; a request has one"
            return msgspec.json.encode(self._failed(reason))
        return self.handle(parts[0])

    def close(self) -> None:
        self._camera.close()

    def _answer(self, request: Request) -> dict[str, Any]:
        self._counts["requests"] += 1
        row = COMMANDS.get(request.command)
        if row is None:
            wrong = unknown("command", shown(request.command), COMMANDS)
            raise RequestError(f"Unknown command: {shown(request.command)}", str(wrong))
        self._trigger = request.trigger
        return row.answer(self, read_params(request, row.params))

    def _failed(self, reason: str, detail: str = "") -> dict[str, Any]:
        self._counts["errors"] += 1
        self._last_error = error_words(reason, detail)
        return {"success": False, "error": reason, **({"detail": detail} if detail else {})}

    # ── pictures ──

    def _grab(self, params: GrabParams) -> "tuple[View, Array | None]":
        """A new picture, and the flange at its exposure."""
        shot = Shot(params.exposure_ms, params.gain_db, self._trigger)
        frame = self._camera.grab(shot, GRAB_SECONDS)
        self._counts["frames"] += 1
        flange = frame.flange
        if flange is None and params.T_base_flange is not None:
            flange = read_place(params.T_base_flange, "T_base_flange")
        return View(frame, self._eye.lens_of(frame), self._eye.in_base(flange)), flange

    def _detectors_for(self, tables: Tables | None) -> Sequence[Named]:
        """The server's own, or those of a request; the last ones of a request are kept."""
        if tables is None:
            return self._detectors
        if self._built is not None and self._built[0] == tables:
            return self._built[1]
        if self._build is None:
            raise RequestError("capture: detectors: those of this server cannot be changed")
        self._built = None  # before others are built: a network may need much memory
        try:
            found = tuple(Named(*row) for row in self._build(tables))
        except ConfigError as problem:
            raise RequestError(f"capture: {problem}") from None
        self._built = (tables, found)
        return found

    def _detect(self, view: View, detectors: Sequence[Named]) -> list[Seen]:
        found: list[Seen] = []
        for kind, detector in detectors:
            try:
                found += [seen for seen in detector.detect(view) if is_sound(seen)]
            except DetectionError as problem:
                raise DetectionError(f"detector {kind}: {problem}") from None
        return found

    # ── commands ──

    def capture(self, params: CaptureParams) -> dict[str, Any]:
        began = time.monotonic()
        detectors = self._detectors_for(params.detectors)
        view, flange = self._grab(params)
        grabbed = time.monotonic()
        seen = self._detect(view, detectors)
        self._pictures["last"] = Sighted(view, seen)
        if not seen:
            self._pictures["miss"] = Sighted(view, seen)
        points = points_mm(obstacle_points(view)) if params.obstacles else None
        reply = _picture_facts(view, flange) | {
            "objects": [object_of(each, n) for n, each in enumerate(seen[:MOST_OBJECTS], start=1)],
            "latency_ms": (time.monotonic() - began) * 1e3,
            "grab_ms": (grabbed - began) * 1e3,
        }
        if points is not None:
            reply["points"] = points
        if len(seen) > MOST_OBJECTS:
            reply["objects_left_out"] = len(seen) - MOST_OBJECTS
        return reply

    def ping(self, params: NoParams) -> dict[str, Any]:
        return {"reply": "pong"}

    def get_status(self, params: NoParams) -> dict[str, Any]:
        session = self._session
        return {
            "camera": self._source,
            "detectors": [kind for kind, _ in self._detectors],
            "mount": self._eye.mount,
            "hand_eye": place_rows(self._eye.place),
            "uptime_s": time.monotonic() - self._started,
            "frames": self._counts["frames"],
            "requests": self._counts["requests"],
            "errors": self._counts["errors"],
            "last_error": self._last_error,
            "calibrating": session is not None,
            "poses": len(session.captures) if session else 0,
        }

    def get_picture(self, params: PictureParams) -> dict[str, Any]:
        """A picture that `capture` has taken, for people."""
        taken = self._pictures.get(params.which)
        if taken is None:
            raise RequestError(f"there is no picture yet: {params.which}")
        picture = SHOWN[params.show](taken)
        if picture is None:
            raise RequestError("the camera has no depth image")
        facts = _picture_facts(taken.view, taken.view.frame.flange)
        return facts | {"objects_seen": len(taken.seen), "jpeg": jpeg(picture, params.width)}

    def get_hand_eye(self, params: NoParams) -> dict[str, Any]:
        if self._eye.place is None:
            raise RequestError(
                "the camera is not calibrated: give a calibration file, or calibrate_compute"
            )
        return {"mount": self._eye.mount, "matrix": place_rows(self._eye.place)}

    # ── calibration ──

    def calibrate_start(self, params: StartParams) -> dict[str, Any]:
        """A new session; an unfinished one is forgotten."""
        self._session = CalibrationSession(params.target, params.mount or self._eye.mount)
        return {
            "target": msgspec.to_builtins(params.target),
            "mount": self._session.mount,
            "poses": 0,
        }

    def calibrate_capture(self, params: CalibrationParams) -> dict[str, Any]:
        session = self._running()
        view, flange = self._grab(params)
        capture = session.see(view, flange)
        session.add(capture)
        found = self._captured(capture, len(session.captures))
        if params.picture_px:
            found["jpeg"] = jpeg(view.frame.picture, params.picture_px)
        return found

    def calibrate_delete_last(self, params: NoParams) -> dict[str, Any]:
        session = self._running()
        session.delete_last()
        return {"poses": len(session.captures)}

    def calibrate_status(self, params: NoParams) -> dict[str, Any]:
        session = self._running()
        return {
            "target": msgspec.to_builtins(session.target),
            "mount": session.mount,
            "poses": len(session.captures),
            "directions": session.directions(),
            "captures": [each.facts(n) for n, each in enumerate(session.captures, start=1)],
        }

    def calibrate_compute(self, params: ComputeParams) -> dict[str, Any]:
        session = self._running()
        result = session.compute(params.method, refine=params.refine)
        if params.apply:
            if refused := result.contradiction():
                raise RequestError(f"{refused.reason}; apply: false shows the figures")
            self._eye = replace(self._eye, mount=session.mount, place=result.camera)
        return result_facts(result) | {"applied": params.apply}

    def calibrate_validate(self, params: ValidateParams) -> dict[str, Any]:
        session = self._running()
        view, flange = self._grab(params)
        capture = session.see(view, flange)
        found = session.validate(capture, params.tolerance_mm)
        return self._captured(capture, 0) | {
            "valid": found.passed,
            "error_mm": found.distance_mm,
            "error_deg": found.angle_deg,
            "tolerance_mm": found.tolerance_mm,
        }

    def _captured(self, capture: Capture, number: int) -> dict[str, Any]:
        count = {"poses": len(self._running().captures)}
        return capture.facts(number) | capture.corner_facts() | count

    def _running(self) -> CalibrationSession:
        if self._session is None:
            raise RequestError("no calibration is under way; calibrate_start begins one")
        return self._session


SHOWN: Mapping[str, Callable[[Sighted], Any]] = {
    "objects": lambda taken: annotated(taken.view, taken.seen),
    "plain": lambda taken: taken.view.frame.picture,
    "depth": lambda taken: depth_picture(taken.view),
}


class CommandRow(NamedTuple):
    """A row of the table: what `params` holds, and the method that answers."""

    params: type[Struct]
    answer: Callable[[VisionServer, Any], dict[str, Any]]


COMMANDS: Mapping[str, CommandRow] = {
    "capture": CommandRow(CaptureParams, VisionServer.capture),
    "ping": CommandRow(NoParams, VisionServer.ping),
    "get_status": CommandRow(NoParams, VisionServer.get_status),
    "get_picture": CommandRow(PictureParams, VisionServer.get_picture),
    "get_hand_eye": CommandRow(NoParams, VisionServer.get_hand_eye),
    "calibrate_start": CommandRow(StartParams, VisionServer.calibrate_start),
    "calibrate_capture": CommandRow(CalibrationParams, VisionServer.calibrate_capture),
    "calibrate_delete_last": CommandRow(NoParams, VisionServer.calibrate_delete_last),
    "calibrate_status": CommandRow(NoParams, VisionServer.calibrate_status),
    "calibrate_compute": CommandRow(ComputeParams, VisionServer.calibrate_compute),
    "calibrate_validate": CommandRow(ValidateParams, VisionServer.calibrate_validate),
}


SERVER_TESTS = "tests/vision/test_server.py"
OF_DOCUMENT = ("capture", "calibrate_start", "calibrate_capture", "calibrate_compute")
"""Requests that the design document has; the others are our own."""


def operations() -> Sections:
    def row(name: str) -> Operation:
        """The docstring of the method is the meaning."""
        text = " ".join((COMMANDS[name].answer.__doc__ or "").split("\n\n")[0].split())
        evidence: Evidence = "document" if name in OF_DOCUMENT else "us"
        return Operation(name, text, "emulated", evidence, SERVER_TESTS)

    return {"Requests": [row(name) for name in COMMANDS]}


OPERATIONS = operations


def _picture_facts(view: View, flange: Array | None) -> dict[str, Any]:
    """What the reply says of the picture. `timestamp_us` is the time of the exposure."""
    frame = view.frame
    height, width, _ = frame.picture.shape
    return {
        "timestamp_us": round(frame.exposed_at * 1e6),
        "frame_id": frame.frame_id,
        "t_exposure": frame.exposed_at,
        "T_base_flange": place_rows(flange),
        "T_base_camera": place_rows(view.camera),
        "size": [width, height],
        "brightness": float(np.mean(frame.picture)),
    }


# ── pictures for people: what was seen, drawn into the frame, as JPEG ─────────────────────────────


Image = Any
"""(height, width, 3) of uint8: red, green, blue."""
AXIS_LENGTH = 0.02
"""Metres of the drawn axes of an object."""
AXIS_POINTS = np.array(
    [[0.0, 0.0, 0.0], [AXIS_LENGTH, 0.0, 0.0], [0.0, AXIS_LENGTH, 0.0], [0.0, 0.0, AXIS_LENGTH]]
)
AXIS_COLORS = ((220, 40, 40), (40, 180, 40), (60, 100, 240))
"""Colors of the axes x, y and z."""
BOX_COLOR = (250, 210, 60)
NEAREST_DRAWN = 1e-3
JPEG_PERCENT = 80
"""Quality of JPEG files."""


def annotated(view: View, seen: Sequence[Seen]) -> Image:
    """The picture with a box, the axes, the class and the confidence of each object."""
    picture = np.array(view.frame.picture)
    line = max(1, picture.shape[1] // 500)
    for each in seen:
        x, y, width, height = each.bbox
        cv2.rectangle(picture, (x, y), (x + width, y + height), BOX_COLOR, line)
        text = f"{each.class_name} {each.confidence:.2f}"
        cv2.putText(
            picture,
            text,
            (x, max(12, y - 4)),
            cv2.FONT_HERSHEY_SIMPLEX,
            0.45 * line,
            BOX_COLOR,
            line,
        )
        _draw_axes(picture, each.place, view.lens, 2 * line)
    return picture


def _draw_axes(picture: Image, place: Array, lens: Lens, line: int) -> None:
    points = AXIS_POINTS @ place[:3, :3].T + place[:3, 3]
    if not (points[:, 2] > NEAREST_DRAWN).all():
        return
    spots = np.clip(np.round(lens.pixels(points)), -20_000, 40_000).astype(int).tolist()
    for tip, color in zip(spots[1:], AXIS_COLORS, strict=True):
        cv2.line(picture, spots[0], tip, color, line, cv2.LINE_AA)


def depth_picture(view: View) -> Image | None:
    """The depth image in colours from red (near) to blue; black where nothing was seen. None
    without a depth image."""
    depth = view.frame.depth
    if depth is None:
        return None
    there = depth > 0.0
    near, far = (depth[there].min(), depth[there].max()) if there.any() else (0.0, 1.0)
    share = np.clip((far - depth) / max(float(far - near), 1e-6), 0.0, 1.0)
    colors = cv2.applyColorMap((share * 255.0).astype(np.uint8), cv2.COLORMAP_JET)
    return np.where(there[..., None], cv2.cvtColor(colors, cv2.COLOR_BGR2RGB), 0).astype(np.uint8)


def jpeg(picture: Image, width: int) -> str:
    """A picture as JPEG, at most this wide, as text in base64."""
    scale = width / picture.shape[1]
    if scale < 1.0:
        size = (width, max(1, round(picture.shape[0] * scale)))
        picture = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    settings = [cv2.IMWRITE_JPEG_QUALITY, JPEG_PERCENT]
    data = cv2.imencode(".jpg", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR), settings)[1]
    return base64.b64encode(data.tobytes()).decode()


# ── the surroundings, as the depth image shows them ───────────────────────────────────────────────

# The job that asks knows what stands in the cell; the vision process does not. It reports points of
# every surface that it sees, and the job looks for those that it cannot explain.


MOST_POINTS = 4000
"""Points of a reply; with more of them the cubes become larger."""
CUBE = 0.008
"""Side of the cubes of which one point is reported, metres."""
FEWEST_PIXELS = 2
"""Pixels in a cube; fewer are noise at the border of an object."""
STRIDE_SIDE = 320
"""Larger pictures are read with a stride."""
GROWTH = 1.25


def obstacle_points(view: View) -> Array:
    """(n, 3): points in the frame of the camera, metres; at most MOST_POINTS."""
    depth = view.frame.depth
    if depth is None:
        raise DetectionError("the check of obstacles needs a camera with a depth image")
    step = max(1, max(depth.shape) // STRIDE_SIDE)
    points = cloud(depth, view.lens)[::step, ::step].reshape(-1, 3)
    points = points[np.isfinite(points[:, 2])]
    cell = CUBE
    found = thinned(points, cell, fewest=FEWEST_PIXELS)
    while len(found) > MOST_POINTS:
        cell *= GROWTH
        found = thinned(points, cell, fewest=FEWEST_PIXELS)
    return found


def points_mm(points: Array) -> list[list[float]]:
    """The points as a reply has them: millimetres, to 1/100."""
    rows: list[list[float]] = np.round(points / MM, 2).tolist()
    return rows
