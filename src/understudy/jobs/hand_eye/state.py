"""The states of the hand-eye calibration, what snapshots hold, and what operators see of it."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.sight.bundle import Corners
from understudy.sight.calibrator import CalibrationPose, CalibrationResult
from understudy.sight.lens import Coefficient, Focus, Lens
from understudy.space.pose import pose_mm_deg
from understudy.space.transform import Rows, from_rows_mm, is_rigid, pose, rows_mm
from understudy.units import DEG, MM

State = Literal[
    "IDLE",
    "MOVING",
    "SETTLING",
    "CAPTURING",
    "COMPUTING",
    "VALIDATING",
    "DONE",
    "CHECK_FAILED",
    "ERROR",
]
Event = Literal[
    "start",
    "capture",
    "arrived",
    "settled",
    "next_pose",
    "captured",
    "all_captured",
    "compute",
    "computed",
    "validate",
    "validated",
    "check_failed",
    "cancel",
    "fault",
]
"""`capture`: one picture where the arm is. `next_pose`: a pose was captured, or left out."""
RESTING: tuple[State, ...] = ("IDLE", "DONE", "CHECK_FAILED", "ERROR")
RUNNING: tuple[State, ...] = ("MOVING", "SETTLING", "CAPTURING", "COMPUTING", "VALIDATING")

TRANSITIONS: Mapping[tuple[State, Event], State] = {
    **{(state, "start"): "MOVING" for state in RESTING},
    **{(state, "capture"): "CAPTURING" for state in RESTING},
    **{(state, "compute"): "COMPUTING" for state in RESTING},
    **{(state, "validate"): "VALIDATING" for state in RESTING},
    ("MOVING", "arrived"): "SETTLING",
    ("MOVING", "next_pose"): "MOVING",
    ("MOVING", "all_captured"): "COMPUTING",
    ("SETTLING", "settled"): "CAPTURING",
    ("CAPTURING", "next_pose"): "MOVING",
    ("CAPTURING", "captured"): "IDLE",
    ("CAPTURING", "all_captured"): "COMPUTING",
    ("COMPUTING", "computed"): "VALIDATING",
    ("VALIDATING", "validated"): "DONE",
    ("VALIDATING", "check_failed"): "CHECK_FAILED",
    **{(state, "cancel"): "IDLE" for state in RUNNING},
    **{(state, "fault"): "ERROR" for state in RUNNING},
}


def diagram() -> str:
    """The table as a Mermaid diagram; what several states have in common is drawn once."""
    groups = {"RESTING": RESTING, "RUNNING": RUNNING}
    common: tuple[Event, ...] = ("start", "capture", "compute", "validate", "cancel", "fault")
    lines = [
        f"    {name} --> {TRANSITIONS[states[0], event]}: {event}"
        for name, states in groups.items()
        for event in common
        if (states[0], event) in TRANSITIONS
    ]
    lines += [
        f"    {a} --> {b}: {event}" for (a, event), b in TRANSITIONS.items() if event not in common
    ]
    return "\n".join(["stateDiagram-v2", *lines])


Purpose = Literal["", "sight", "pose", "check", "here", "validate"]
"""Why a picture is taken: the first sight of the target, a pose of the calibration, one that only
checks it, or one where the operator has moved the arm."""
MOST_CORNERS = 10_000
MOST_MESSAGES = 50
MOST_PICTURE = 1_000_000
"""Characters of a picture."""
Value = Annotated[float, Meta(ge=-1e6, le=1e6)]
"""Millimetres or pixels of a picture of a cell."""
Side = Annotated[int, Meta(ge=1, le=20_000)]
LensRows = tuple[tuple[Focus, Value, Value], tuple[Value, Focus, Value], tuple[Value, Value, Value]]
Distortion = tuple[Coefficient, Coefficient, Coefficient, Coefficient, Coefficient]


class SavedPose(Struct, frozen=True):
    """A captured pose: millimetres, radians and pixels, as the reply of the process has them."""

    flange: Rows
    target: Rows
    points: list[tuple[Value, Value, Value]]
    pixels: list[tuple[Value, Value]]
    joints: tuple[float, ...] = ()

    @property
    def place_name(self) -> str:
        """Names a picture by where the flange was."""
        return str(self.flange)

    def pose(self) -> CalibrationPose:
        corners = Corners(np.array(self.points) * MM, np.array(self.pixels))
        known = corners if self.points else None
        return CalibrationPose(
            from_rows_mm(self.flange), from_rows_mm(self.target), known, self.joints
        )


class SavedLens(Struct, frozen=True):
    size: tuple[Side, Side]
    K: LensRows
    distortion: Distortion

    def lens(self) -> Lens:
        k = self.K
        return Lens(*self.size, k[0][0], k[1][1], k[0][2], k[1][2], self.distortion)


class CaptureReply(Struct, frozen=True):
    """What the job reads of the reply to `calibrate_capture`."""

    T_base_flange: Rows
    T_camera_target: Rows
    corner_points: list[tuple[Value, Value, Value]]
    corner_pixels: list[tuple[Value, Value]]
    K: LensRows
    distortion: Distortion
    size: tuple[Side, Side]
    jpeg: Annotated[str, Meta(max_length=MOST_PICTURE)] = ""

    def saved(self, joints: tuple[float, ...]) -> SavedPose:
        corners = self.corner_points, self.corner_pixels
        return SavedPose(self.T_base_flange, self.T_camera_target, *corners, joints)


def read_capture(facts: Mapping[str, Any]) -> CaptureReply | Refused:
    """The reply of a process, checked; wrong ones are refused."""
    try:
        reply = msgspec.convert(facts, CaptureReply)
    except msgspec.ValidationError as problem:
        return Refused(f"the reply to calibrate_capture: {problem}")
    if len(reply.corner_points) != len(reply.corner_pixels):
        return Refused("the reply to calibrate_capture: corners without pixels")
    if len(reply.corner_points) > MOST_CORNERS:
        return Refused(f"the reply to calibrate_capture: more than {MOST_CORNERS} corners")
    for name in ("T_base_flange", "T_camera_target"):
        if not is_rigid(from_rows_mm(getattr(reply, name))):
            return Refused(
                f"the reply to calibrate_capture: {name} is not a rotation and a translation"
            )
    return reply


class Checked(Struct, frozen=True):
    """A pose that was not used, against the calibration."""

    passed: bool
    distance_mm: float
    angle_deg: float


class Doubt(Struct, frozen=True):
    """A reason not to use the result. `mm`: by how much it misses, or the camera is moved;
    `percent`: by which a size should be larger than it was given."""

    kind: Literal["target_size", "focal_length", "check", "residual", "held_out"]
    mm: float
    percent: float = 0.0


class Saved(Struct):
    """The state of a calibration in a snapshot. `queue`: poses of the flange that are still to be
    visited. `asked`: the question that is out; `starting`: it begins a session of the process.
    `asked_again`: the last one had no answer. `computed`: the method of the result."""

    state: State = "IDLE"
    purpose: Purpose = ""
    wanted: int = 0
    checks_wanted: int = 0
    method: str = "best"
    queue: list[Rows] = []
    planned: int = 0
    left_out: int = 0
    poses: list[SavedPose] = []
    checks: list[SavedPose] = []
    lens: SavedLens | None = None
    move: int = 0
    asked: int = 0
    starting: bool = False
    settled_at: int | None = None
    asked_again: bool = False
    due: int | None = None
    notes: list["Note"] = []
    computed: str = ""
    checked: list[Checked] = []
    error: str = ""
    messages: list[str] = []


class Note(Struct, frozen=True):
    """A report of the arm or of vision; it is handled in the next wake."""

    kind: Literal["arm", "finder", "fault"]
    ticket: int = 0
    refused: str | None = None
    facts: dict[str, Any] | None = None


# ── what operators see ──────────────────────────────────────────────────────────────────────────


class PoseRow(Struct, frozen=True):
    """A row of the table of poses."""

    number: int
    flange_mm_deg: list[float]
    target_mm_deg: list[float]
    joints_deg: list[float]
    corners: int
    residual_mm: float | None = None
    residual_deg: float | None = None
    residual_px: float | None = None


class CoverageRow(Struct, frozen=True):
    """How far the poses turn the flange in a direction; `missing`: too little."""

    direction: str
    turned_deg: float
    missing: bool


class ResultRow(Struct, frozen=True):
    """The camera that was found, as operators see it. `matrix`: T_flange_camera (eye in hand) or
    T_base_camera, by rows, millimetres."""

    mount: str
    method: str
    refined: bool
    matrix: Rows
    camera_mm_deg: list[float]
    deviations_mm: list[float]
    deviations_deg: list[float]
    reprojection_error_mm: float
    reprojection_error_px: float | None
    held_out_mm: float | None
    held_out_largest_mm: float | None


class HandEyeStatus(Struct, frozen=True):
    """The state of a calibration, as operators see it. `method`: of the next computation.
    `progress`: 0 to 1. `advice`: what to do next. `left_out`: poses that could not be used.
    `doubts`: why the result must not be used."""

    state: State
    running: bool
    captured: int
    wanted: int
    left_out: int
    progress: float
    enough: bool
    advice: str
    error: str
    messages: list[str]
    poses: list[PoseRow]
    coverage: list[CoverageRow]
    result: ResultRow | None
    checked: list[Checked]
    doubts: list[Doubt]
    tolerance_mm: float
    method: str


def pose_rows(poses: Sequence[SavedPose], result: CalibrationResult | None) -> list[PoseRow]:
    known = result.poses if result is not None and len(result.poses) == len(poses) else None
    rows = []
    for number, each in enumerate(poses):
        missed = None if known is None else known[number]
        rows.append(
            PoseRow(
                number + 1,
                _mm_deg(each.flange),
                _mm_deg(each.target),
                [joint / DEG for joint in each.joints],
                len(each.pixels),
                None if missed is None else missed.distance_mm,
                None if missed is None else missed.angle_deg,
                None if missed is None else missed.pixel_rms,
            )
        )
    return rows


def result_row(result: CalibrationResult) -> ResultRow:
    shifts, turns = result.deviations_mm_deg
    held_out = result.held_out
    return ResultRow(
        result.mount,
        result.method,
        result.refined,
        rows_mm(result.camera),
        pose_mm_deg(pose(result.camera)),
        shifts.tolist(),
        turns.tolist(),
        result.rms_mm,
        result.pixel_rms,
        None if held_out is None else held_out.rms_mm,
        None if held_out is None else held_out.largest_mm,
    )


def check_saved(saved: Saved) -> None:
    """Raises ValueError for a snapshot that no job has written."""
    for each in (*saved.poses, *saved.checks):
        if not is_rigid(from_rows_mm(each.flange)) or not is_rigid(from_rows_mm(each.target)):
            raise ValueError("a pose is not a rotation and a translation")
        if len(each.points) != len(each.pixels):
            raise ValueError("corners without pixels")
    for rows in saved.queue:
        if not is_rigid(from_rows_mm(rows)):
            raise ValueError("a planned pose is not a rotation and a translation")


def _mm_deg(rows: Rows) -> list[float]:
    return pose_mm_deg(pose(from_rows_mm(rows)))


# ── reasons to doubt a result: it is then not written without `force` ─────────────────────────────


TEXTS: Mapping[str, str] = {
    "target_size": "the target is {percent:.2f} % {larger} than its configured size, which moves "
    "the camera by {mm:.2f} mm: measure the target",
    "focal_length": "the focal length is {percent:.2f} % {larger} than that of the lens, which "
    "moves the camera by {mm:.2f} mm: calibrate the lens",
    "check": "a pose that was not used misses by {mm:.2f} mm: the target may have moved, or the "
    "robot is not exact",
    "residual": "the poses miss the common target by {mm:.2f} mm rms: the target may have moved, "
    "or the robot is not exact",
    "held_out": "poses that are predicted from the others miss by {mm:.2f} mm rms: more poses are "
    "needed, or the robot is not exact",
}


def doubts(
    result: CalibrationResult, checked: Sequence[Checked], tolerance_mm: float
) -> list[Doubt]:
    """All reasons, the most telling first; empty if the result can be used."""
    found = []
    if result.scale is not None and result.scale_shift_mm > tolerance_mm:
        kind, share = result.scale.kind, result.scale.share
        found.append(Doubt(kind, result.scale_shift_mm, 100.0 * share))
    if missed := [each.distance_mm for each in checked if not each.passed]:
        found.append(Doubt("check", max(missed)))
    if result.rms_mm > tolerance_mm:
        found.append(Doubt("residual", result.rms_mm))
    if result.held_out is not None and result.held_out.rms_mm > tolerance_mm:
        found.append(Doubt("held_out", result.held_out.rms_mm))
    return found


def doubt_text(doubt: Doubt, tolerance_mm: float) -> str:
    larger = "larger" if doubt.percent > 0 else "smaller"
    text = TEXTS[doubt.kind].format(mm=doubt.mm, percent=abs(doubt.percent), larger=larger)
    return f"{text} ({tolerance_mm:g} mm are allowed)"
