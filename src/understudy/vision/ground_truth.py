"""GroundTruthVision: a simulated camera that knows where the parts of the cell are.

It answers as a vision process does, after a latency and with faults of the scenario, without
pictures. It reports the centres of the resting parts whose centre is in the picture and that no
other part hides.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from understudy.errors import Refused
from understudy.ports import ActiveFault, FaultSource, Ticket
from understudy.ports.faults import Faults
from understudy.ports.object_finder import DetectedObject, FoundObjects, ResultListener
from understudy.ports.workpieces import SeenWorkpieces, WorkpieceReading
from understudy.sight.lens import CameraModel
from understudy.space.model.shapes import box_corners
from understudy.space.pose import ORIGIN, Pose
from understudy.space.transform import Array, inverse, matrices, matrix, pose
from understudy.units import DEG, MM, nanoseconds, seconds
from understudy.vision.faults import FAULTS

Bools = NDArray[np.bool_]
CONFIDENCE = 0.99
"""Confidence of every object, unless a fault lowers it."""
WRONG_CLASS = "unknown"
"""What a fault reports in place of the class."""


class Pending(Struct, frozen=True):
    """A picture whose result comes at `due`; `problem`: why it cannot be used."""

    ticket: int
    due: int
    result: FoundObjects
    problem: str = ""


class State(Struct):
    """The state of vision in a snapshot. `pending`: the result that is on its way. `frames`:
    pictures so far."""

    tickets: int = 0
    frames: int = 0
    pending: Pending | None = None


class Status(Struct, frozen=True):
    """Pictures so far, and whether a result is on its way."""

    frames: int
    waiting: bool


class GroundTruthVision:
    """`ObjectFinder` of the simulated workpieces. ``flange``: of its robot; ``latency``: from
    picture to result, ns."""

    takes_pictures = False

    def __init__(
        self,
        name: str,
        parts: SeenWorkpieces,
        flange: Callable[[int], Pose],
        *,
        camera: CameraModel,
        latency: int,
        fault_source: FaultSource,
    ) -> None:
        self.name = name
        self.model = camera
        self._parts = parts
        self._flange = flange
        self._latency = latency
        self._faults = VisionFaults(name, fault_source)
        self.state = State()
        self._listeners: list[ResultListener] = []

    # ── ObjectFinder ──

    def request(self, class_filter: str, now: int) -> Ticket | Refused:
        """A picture of this instant; a request while one is under way replaces it."""
        state = self.state
        state.tickets += 1
        state.pending = None
        if self._faults.silent(now):
            return Ticket(state.tickets)
        state.frames += 1
        seen = self._faults.disturb(self._seen(now), now)
        wanted = tuple(o for o in seen if not class_filter or o.class_name == class_filter)
        result = FoundObjects(now, state.frames, wanted)
        late, problem = self._faults.old_picture(now, now)
        state.pending = Pending(state.tickets, now + self._latency + late, result, problem)
        return Ticket(state.tickets)

    def cancel(self, now: int) -> None:
        self.state.pending = None

    def camera(self, flange: Pose) -> Pose:
        return pose(self.model.place(matrix(flange)))

    def on_result(self, listener: ResultListener) -> None:
        self._listeners.append(listener)

    # ── component ──

    def next_wake(self) -> int | None:
        return None if self.state.pending is None else self.state.pending.due

    def wake(self, now: int) -> None:
        pending = self.state.pending
        if pending is None or pending.due > now:
            return
        self.state.pending = None
        for listener in self._listeners:
            answer = Refused(pending.problem) if pending.problem else pending.result
            listener(Ticket(pending.ticket), answer, now)

    def busy(self) -> bool:
        return self.state.pending is not None

    def faults(self) -> Faults:
        return FAULTS

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        return refuse_injection(fault)

    def scene_marks(self) -> dict[str, Any]:
        return {"camera": self.model.scene_view()}

    def status(self, now: int) -> Status:
        return Status(self.state.frames, self.busy())

    # ── inside ──

    def _seen(self, now: int) -> list[DetectedObject]:
        """The visible parts, those near the middle of the picture first."""
        at = self.model.place(matrix(self._flange(now)))
        to_camera = inverse(at)
        there = [self._parts.reading(name, now) for name in self._parts.names()]
        there = [part for part in there if part.state == "resting"]
        if not there:
            return []
        found = []
        for part, hidden in zip(there, _hidden(there, at[:3, 3]), strict=True):
            place = to_camera @ matrix(part.pose)
            if not hidden and self.model.lens.sees(place[:3, 3]):
                aside = float(np.hypot(*(place[:2, 3] / place[2, 3])))
                found.append((aside, part.name, place, part))
        found.sort(key=lambda row: row[:2])
        return [
            DetectedObject(
                id=number,
                class_name=part.class_name,
                confidence=CONFIDENCE,
                pose=pose(place),
                bbox=self.model.bbox(_corners(part) @ place[:3, :3].T + place[:3, 3]),
                part=name,
            )
            for number, (_, name, place, part) in enumerate(found, start=1)
        ]


def _corners(part: WorkpieceReading) -> Array:
    half = np.array(part.size) / 2.0
    return box_corners(-half, half)


def _hidden(parts: Sequence[WorkpieceReading], eye: Array) -> Bools:
    """For each part whether the box of another one is between the eye and its centre."""
    places = matrices([part.pose for part in parts])
    half = np.array([part.size for part in parts]) / 2.0
    turn, centre = places[:, :3, :3], places[:, :3, 3]
    here = np.einsum("jba,jb->ja", turn, eye - centre)  # the eye in the frame of each box
    way = np.einsum("jba,ib->ija", turn, centre - eye)  # each line of sight in each frame
    level = np.abs(way) < 1e-12
    with np.errstate(divide="ignore", invalid="ignore"):
        a, b = (-half - here) / way, (half - here) / way
    enters = np.where(level, -np.inf, np.minimum(a, b)).max(axis=2)
    leaves = np.where(level, np.inf, np.maximum(a, b)).min(axis=2)
    beside = (level & (np.abs(here) >= half)).any(axis=2)
    crosses = ~beside & (enters < leaves) & (enters < 1.0) & (leaves > 0.0)
    np.fill_diagonal(crosses, val=False)
    return np.asarray(crosses.any(axis=1))


# ── faults, the same for vision by a process ────────────────────────────────────────────────────


def old_picture(taken_s: float, asked_at: int) -> str:
    """Why an answer for such a picture cannot be used."""
    return f"an old picture: of {taken_s} s, not {seconds(asked_at)} s"


def refuse_injection(fault: str) -> Refused:
    return Refused(f"{fault} cannot be injected: it acts only by a scenario rule")


class VisionFaults:
    """The `FAULTS` of one camera, by the rules of the scenario. ``place``: the name of its
    component in the cell."""

    def __init__(self, place: str, fault_source: FaultSource) -> None:
        self._place = place
        self._fault_source = fault_source

    def silent(self, now: int) -> bool:
        """Whether the request of this moment is not answered."""
        return self._fault("vision_silent", now) is not None

    def disturb(self, seen: Sequence[DetectedObject], now: int) -> list[DetectedObject]:
        """The objects after the faults of the scenario. Every fault is drawn for every picture, so
        that no rule changes the draws of another."""
        missing = self._fault("vision_no_object", now)
        low = self._fault("vision_low_confidence", now)
        noise = self._fault("vision_noise", now)
        wrong = self._fault("vision_wrong_class", now)
        if missing is not None:
            return []
        if low is not None:
            seen = [replace(o, confidence=low.parameters["confidence"]) for o in seen]
        if noise is not None:
            seen = self._noisy(seen, noise)
        if wrong is not None:
            seen = [replace(o, class_name=WRONG_CLASS) for o in seen]
        return list(seen)

    def old_picture(self, asked_at: int, now: int) -> tuple[int, str]:
        """By how many ns the answer is late, and why its picture cannot be used."""
        fault = self._fault("vision_old_picture", now)
        if fault is None:
            return 0, ""
        taken = max(seconds(asked_at) - fault.parameters["age_s"], 0.0)
        return nanoseconds(fault.parameters["late_s"]), old_picture(taken, asked_at)

    def _noisy(self, seen: Sequence[DetectedObject], noise: ActiveFault) -> list[DetectedObject]:
        """The poses, shifted along and turned about the axes of the camera."""
        deviations = np.array(self._fault_source.deviations(noise, 6 * len(seen))).reshape(-1, 6)
        scale = [noise.parameters["mm"] * MM] * 3 + [noise.parameters["deg"] * DEG] * 3
        found = []
        for each, by in zip(seen, deviations * scale, strict=True):
            x, y, z, *turn = by.tolist()
            place = matrix(each.pose)
            place[:3, :3] = (
                matrix(ORIGIN._replace(rx=turn[0], ry=turn[1], rz=turn[2]))[:3, :3]
                @ (place[:3, :3])
            )
            place[:3, 3] += (x, y, z)
            found.append(replace(each, pose=pose(place)))
        return found

    def _fault(self, fault: str, now: int) -> ActiveFault | None:
        return self._fault_source.draw_fault(fault, self._place, now)
