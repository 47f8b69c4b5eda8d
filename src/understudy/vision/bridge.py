"""ProcessVision: vision by a process that takes pictures and finds objects in them.

The part asks questions (`AsksProcess`); a wire carries them, or the cell answers them in this
process. If time has stood since the question (lock-step, a pause, an answer in this process), the
answer acts after the latency of the configuration, else when it comes. A question without an answer
is lost when the wire reports it, if time has run meanwhile, else at the end of the time-out.
"""

import zlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from understudy.errors import ConfigError, Refused, located_at
from understudy.ports import FaultSource, Ticket
from understudy.ports.faults import Faults
from understudy.ports.object_finder import FoundObjects, ResultListener
from understudy.ports.requests import Question
from understudy.sight.lens import CameraModel
from understudy.space.pose import Pose
from understudy.space.transform import Rows, matrix, pose, rows_mm
from understudy.units import NS_PER_MS, nanoseconds, seconds
from understudy.vision.detector_config import DetectorChoice, plain
from understudy.vision.faults import FAULTS
from understudy.vision.ground_truth import VisionFaults, old_picture, refuse_injection
from understudy.vision.messages import Picture, read_facts, read_picture

CAPTURE = "capture"
CLOCK_ROUNDING = 1e-6
"""Seconds by which the time of a picture may be rounded."""
PATIENCE_SECONDS = 30.0
"""Wall time that a silent process has at least while simulated time stands: a slow machine must not
change what the cell does. A process that is gone is reported at once."""
MOST_SUPERSEDED = 64
"""Questions without their answer that are remembered: requests for pictures may still be on their
way."""
ReplyListener = Callable[[Ticket, dict[str, Any] | Refused, int], None]
"""Called with the reply to a command other than `capture`."""


class Asked(Struct, frozen=True):
    """A question without an answer. `payload`: empty if a fault keeps it from being sent."""

    ticket: int
    command: str
    at: int
    payload: str
    class_filter: str = ""


class VisionAnswer(Struct, frozen=True):
    """What the listeners get at `due`: a result, the facts of another command, or why neither."""

    ticket: int
    due: int
    command: str = CAPTURE
    result: FoundObjects | None = None
    facts: dict[str, Any] | None = None
    refused: str = ""


class State(Struct):
    """The questions and the last answer, in a snapshot. `connected`: the last question was
    answered. `answered`, `lost`: questions so far. `problem`: of the last question, empty if it had
    none. `detectors`: None: those of the cell file, with which the process was started."""

    tickets: int = 0
    asked: Asked | None = None
    answer: VisionAnswer | None = None
    last: FoundObjects | None = None
    connected: bool = False
    answered: int = 0
    lost: int = 0
    problem: str = ""
    detectors: list[dict[str, Any]] | None = None


class Status(Struct, frozen=True):
    """The connection to the vision process and its last answer. `connected`: the last question was
    answered. `last`: the last picture. `detectors_set`: checksum of detectors other than those of
    the cell file; empty for those."""

    where: str
    waiting: bool
    connected: bool
    answered: int
    lost: int
    problem: str
    last: FoundObjects | None
    detectors_set: str = ""


class ProcessVision:
    """`ObjectFinder` and `AsksProcess`, and a `TimedComponent` of the cell. ``where``: the address
    of the process; ``flange``: of its robot, in the cell; ``latency`` and ``timeout``: ns;
    ``shot``: parameters of every picture; ``obstacles``: results have points of the depth image;
    ``detectors``: those of the cell file, None for vision that looks for no objects;
    ``patience_s``: wall time for an answer, at least; ``own_camera``: pictures are taken by the
    virtual camera of the cell, whose times are those of the cell."""

    takes_pictures = True

    def __init__(
        self,
        name: str,
        where: str,
        flange: Callable[[int], Pose],
        *,
        camera: CameraModel,
        latency: int,
        timeout: int,
        fault_source: FaultSource,
        shot: Mapping[str, Any] | None = None,
        obstacles: bool = False,
        detectors: DetectorChoice | None = None,
        patience_s: float = PATIENCE_SECONDS,
        own_camera: bool = False,
    ) -> None:
        self.name = name
        self.where = where
        self.model = camera
        self._flange = flange
        self._latency = latency
        self._timeout = timeout
        self._patience = max(patience_s, seconds(timeout))
        self._faults = VisionFaults(name, fault_source)
        self._shot: dict[str, Any] = dict(shot or {})
        self._capture: dict[str, Any] = {"obstacles": True} if obstacles else {}
        self._choice = detectors
        self._own_camera = own_camera
        self.state = State()
        self._restores = 0
        self._question: Question | None = None
        self._superseded: deque[str] = deque(maxlen=MOST_SUPERSEDED)
        self._on_result: list[ResultListener] = []
        self._on_reply: list[ReplyListener] = []
        self._on_question: list[Callable[[], None]] = []

    # ── ObjectFinder ──

    def request(self, class_filter: str, now: int) -> Ticket | Refused:
        """A picture now; a request while one is under way replaces it."""
        under_way = self.state.asked or self.state.answer
        if under_way is not None and under_way.command != CAPTURE:
            return Refused(f"vision is busy with {under_way.command}")
        params = self._shot | self._capture | {"T_base_flange": self._flange_mm(now)}
        if self.state.detectors is not None:
            params["detectors"] = self.state.detectors
        silent = self._faults.silent(now)
        return self._ask(CAPTURE, params, now, class_filter=class_filter, silent=silent)

    def cancel(self, now: int) -> None:
        self.state.answer = None
        self._set_asked(None)

    def camera(self, flange: Pose) -> Pose:
        return pose(self.model.place(matrix(flange)))

    def on_result(self, listener: ResultListener) -> None:
        self._on_result.append(listener)

    # ── detectors ──

    def detectors(self) -> Sequence[Mapping[str, Any]]:
        """The detectors of the next picture."""
        if self.state.detectors is not None:
            return self.state.detectors
        return () if self._choice is None else self._choice.configured

    def can_set_detectors(self) -> bool:
        return self._choice is not None

    def set_detectors(self, tables: Sequence[Mapping[str, Any]] | None) -> Refused | None:
        """Sets the detectors from the next picture on; None: those of the cell file."""
        wanted = None if tables is None else [plain(table) for table in tables]
        try:
            self._check_detectors(wanted)
        except ConfigError as problem:
            return Refused(str(problem))
        same = self._choice is not None and wanted == self._choice.configured
        self.state.detectors = None if same else wanted
        return None

    def _check_detectors(self, tables: Sequence[Mapping[str, Any]] | None) -> None:
        if tables is None:
            return
        if self._choice is None:
            raise ConfigError("this vision calibrates its camera and looks for no objects")
        self._choice.check(tables)

    # ── other commands of the process ──

    def ask(self, command: str, params: Mapping[str, Any], now: int) -> Ticket | Refused:
        """Any command but `capture`, as `calibrate_start`; the reply comes to `on_reply`."""
        if self.busy():
            return Refused("vision is busy with another question")
        return self._ask(command, params, now)

    def start_calibration(self, params: Mapping[str, Any], now: int) -> Ticket | Refused:
        return self.ask("calibrate_start", params, now)

    def capture_calibration_image(self, now: int, picture_px: int = 0) -> Ticket | Refused:
        """``picture_px``: the reply has the picture in this width."""
        params = self._shot | {"T_base_flange": self._flange_mm(now), "picture_px": picture_px}
        return self.ask("calibrate_capture", params, now)

    def compute_calibration(self, params: Mapping[str, Any], now: int) -> Ticket | Refused:
        return self.ask("calibrate_compute", params, now)

    def get_last_result(self) -> FoundObjects | None:
        return self.state.last

    def is_connected(self) -> bool:
        """Whether the last question was answered."""
        return self.state.connected

    def on_reply(self, listener: ReplyListener) -> None:
        self._on_reply.append(listener)

    # ── AsksProcess ──

    def question(self) -> Question | None:
        return self._question

    def superseded(self, trigger: str) -> bool:
        return trigger in self._superseded

    def answered(self, number: int, payload: bytes, now: int) -> None:
        state, asked = self.state, self.state.asked
        if asked is None or asked.ticket != number:
            return
        state.answered += 1
        state.connected, state.problem = True, ""
        due = now if now > asked.at else asked.at + self._latency
        if asked.command == CAPTURE:
            state.answer = self._picture(asked, payload, due, now)
        else:
            facts = read_facts(payload, number)
            state.answer = (
                VisionAnswer(number, due, asked.command, refused=facts.reason)
                if isinstance(facts, Refused)
                else VisionAnswer(number, due, asked.command, facts=facts)
            )
        self._question = None  # it has its answer, so it is not superseded
        self._set_asked(None)

    def unanswered(self, number: int, reason: str, now: int) -> None:
        asked = self.state.asked
        if asked is not None and asked.ticket == number:
            self._lose(asked, reason, now if now > asked.at else self._lost_at(asked))

    def on_question(self, listener: Callable[[], None]) -> None:
        self._on_question.append(listener)

    # ── component ──

    def next_wake(self) -> int | None:
        state = self.state
        if state.answer is not None:
            return state.answer.due
        return None if state.asked is None else state.asked.at + self._timeout

    def wake(self, now: int) -> None:
        state = self.state
        if state.answer is None and state.asked is not None and now >= self._lost_at(state.asked):
            self._lose(state.asked, f"no answer in {self._timeout / NS_PER_MS:g} ms", now)
        answer = state.answer
        if answer is None or answer.due > now:
            return
        state.answer = None
        self._report(answer, now)

    def busy(self) -> bool:
        return self.state.asked is not None or self.state.answer is not None

    def faults(self) -> Faults:
        return FAULTS

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        return refuse_injection(fault)

    def scene_marks(self) -> dict[str, Any]:
        return {"camera": self.model.scene_view()}

    def status(self, now: int) -> Status:
        state, others = self.state, self.state.detectors
        checksum = "" if others is None else f"{zlib.crc32(msgspec.json.encode(others)):08x}"
        return Status(
            self.where,
            self.busy(),
            self.is_connected(),
            state.answered,
            state.lost,
            state.problem,
            state.last,
            checksum,
        )

    def restored(self) -> None:
        with located_at(self.name):
            self._check_detectors(self.state.detectors)
        # Also an equal question is asked again: the picture for it shows the state before.
        self._restores += 1
        self._question_changed()

    # ── inside ──

    def _ask(
        self,
        command: str,
        params: Mapping[str, Any],
        now: int,
        *,
        class_filter: str = "",
        silent: bool = False,
    ) -> Ticket:
        state = self.state
        state.tickets += 1
        state.answer = None
        request = {"command": command, "params": params, "request_id": state.tickets}
        payload = "" if silent else msgspec.json.encode(request).decode()
        self._set_asked(Asked(state.tickets, command, now, payload, class_filter))
        return Ticket(state.tickets)

    def _set_asked(self, asked: Asked | None) -> None:
        self.state.asked = asked
        self._question_changed()

    def _question_changed(self) -> None:
        if self._question is not None:
            self._superseded.append(self._question.trigger)
        asked = self.state.asked
        self._question = self._question_of(asked) if asked and asked.payload else None
        for listener in self._on_question:
            listener()

    def _question_of(self, asked: Asked) -> Question:
        trigger = f"{self.name}:{asked.ticket}:{self._restores}"
        request = msgspec.json.decode(asked.payload) | {"trigger": trigger}
        return Question(asked.ticket, msgspec.json.encode(request), self._patience, trigger)

    def _lost_at(self, asked: Asked) -> int:
        return asked.at + self._timeout

    def _lose(self, asked: Asked, reason: str, due: int) -> None:
        state = self.state
        state.lost += 1
        state.connected, state.problem = False, reason
        state.answer = VisionAnswer(asked.ticket, due, asked.command, refused=reason)
        self._set_asked(None)

    def _picture(self, asked: Asked, payload: bytes, due: int, now: int) -> VisionAnswer:
        found = read_picture(payload, asked.ticket)
        if isinstance(found, Picture) and self._own_camera and _is_old(found, asked.at):
            found = Refused(old_picture(found.t_exposure or 0.0, asked.at))
        late, problem = self._faults.old_picture(asked.at, now)
        if problem:
            found, due = Refused(problem), due + late
        if isinstance(found, Refused):
            self.state.problem = found.reason
            return VisionAnswer(asked.ticket, due, refused=found.reason)
        seen = self._faults.disturb(found.detected(), now)
        wanted = tuple(o for o in seen if asked.class_filter in ("", o.class_name))
        exposed = _exposure(found, asked.at, now)
        result = FoundObjects(exposed, found.frame_id, wanted, brightness=found.brightness)
        self.state.last = result
        return VisionAnswer(asked.ticket, due, result=replace(result, points=found.cloud()))

    def _report(self, answer: VisionAnswer, now: int) -> None:
        ticket, refused = Ticket(answer.ticket), Refused(answer.refused)
        if answer.command == CAPTURE:
            for listener in self._on_result:
                listener(ticket, answer.result or refused, now)
            return
        reply = refused if answer.facts is None else answer.facts
        for reply_to in self._on_reply:
            reply_to(ticket, reply, now)

    def _flange_mm(self, now: int) -> Rows:
        return rows_mm(matrix(self._flange(now)))


def _is_old(picture: Picture, asked_at: int) -> bool:
    """Whether the picture was taken before it was asked for: it shows the cell as it was."""
    at = picture.t_exposure
    return at is not None and 0.0 <= at < seconds(asked_at) - CLOCK_ROUNDING


def _exposure(picture: Picture, asked_at: int, now: int) -> int:
    """When the picture was taken. A camera with another clock than the cell's was triggered by the
    question."""
    if picture.t_exposure is None or not 0.0 <= picture.t_exposure < seconds(now) + 1.0:
        return asked_at
    at = nanoseconds(picture.t_exposure)
    return at if asked_at <= at <= now else asked_at
