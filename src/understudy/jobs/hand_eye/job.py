"""HandEyeJob: moves an arm to diverse poses, looks at a target there, and computes the camera.

It needs an arm (`ArmMotion`) and a vision process that finds the target, simulated or REAL. The
first picture, where the arm is at the start, shows where the target is; the poses follow from it.
A pose that the arm cannot take, or from which the target is not found, is left out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import msgspec
import numpy as np

from understudy.errors import Refused, located_at
from understudy.jobs.arm_motion import ControllerMotion
from understudy.jobs.hand_eye import HAND_EYE
from understudy.jobs.hand_eye.config import MOST_POSES, HandEyeConfig
from understudy.jobs.hand_eye.state import (
    MOST_MESSAGES,
    RUNNING,
    TRANSITIONS,
    CaptureReply,
    Checked,
    CoverageRow,
    Doubt,
    Event,
    HandEyeStatus,
    Note,
    Purpose,
    Saved,
    SavedLens,
    SavedPose,
    check_saved,
    doubt_text,
    doubts,
    pose_rows,
    read_capture,
    result_row,
)
from understudy.ports import Component, Ticket
from understudy.ports.job_arm import ArmMotion, JobArm
from understudy.ports.jobs import JobSite, StartsWhenAllowed, keep_apart
from understudy.ports.object_finder import FINDER, FinderUse, ObjectFinder
from understudy.ports.operation import Target
from understudy.sight.calibration_file import calibration_of, calibration_text
from understudy.sight.calibration_poses import Sighting, calibration_flanges
from understudy.sight.calibrator import (
    CalibrationResult,
    HandEyeCalibrator,
    coverage,
    unknown_method,
    validated,
)
from understudy.sight.lens import CameraModel, Lens
from understudy.sight.targets import ENOUGH_POSES
from understudy.space.pose import Pose
from understudy.space.transform import Array, from_rows_mm, inverse, matrix, pose, rows_mm
from understudy.units import MM, ms_to_ns, nanoseconds

Reply = Callable[[Ticket, dict[str, Any] | Refused, int], None]


@runtime_checkable
class TargetFinder(Component, Protocol):
    """The vision process, as far as a calibration needs it. `model`: the camera as the cell file
    has it, from which the poses are planned."""

    model: CameraModel

    def start_calibration(self, params: Mapping[str, Any], now: int) -> Ticket | Refused: ...

    def capture_calibration_image(self, now: int, picture_px: int = 0) -> Ticket | Refused: ...

    def on_reply(self, listener: Reply) -> None: ...

    def is_connected(self) -> bool: ...

    def cancel(self, now: int) -> None: ...


@dataclass(frozen=True)
class Equipment:
    """What a calibration works with. `arm`: its moves; `job_arm`: reach, contacts and joints.
    `tool`: its number, None: the mounted one."""

    arm: ArmMotion
    job_arm: JobArm
    finder: TargetFinder
    tool: int | None = None


SPARE_POSES = 5
"""Planned beyond those that are wanted, if the arm reaches them: some may have to be left out."""
PICTURE_PX = 320
"""Width of the pictures that are kept for the report."""
IS_RUNNING = Refused("the hand-eye calibration is running: cancel it first (hand_eye_cancel)")
TOO_MANY = Refused(f"{MOST_POSES} poses are the most: compute, or delete some")
NOT_RUNNING = Refused("the hand-eye calibration is not running")
NOTHING_COMPUTED = Refused("compute the calibration first (hand_eye_compute)")
AT_REST_ONLY = Refused("the robot must be at rest: it moves, holds or waits")


class HandEyeJob:
    """A component of the cell: the calibration of the camera of one arm."""

    def __init__(self, config: HandEyeConfig, equipment: Equipment) -> None:
        self.config = config
        self._arm, self._finder, self._job_arm = equipment.arm, equipment.finder, equipment.job_arm
        self._tool = equipment.tool
        self.state = Saved(method=config.method)
        self._result: CalibrationResult | None = None
        self._pictures: dict[str, str] = {}
        self.may_start: Callable[[int], Refused | None] = lambda now: None
        """Why another job does not allow this one; None if it does."""
        self._arm.on_finished(lambda ticket, no, now: self._note("arm", ticket, no, now))
        self._arm.on_fault(lambda refused, now: self._note("fault", 0, refused, now))
        self._finder.on_reply(self._replied)

    # ── commands ──

    def start(self, now: int, *, poses: int = 0, method: str = "") -> Refused | None:
        """Calibrates by itself; ``poses`` and ``method``: others than those of the section."""
        if refused := self.not_startable(now) or unknown_method(method or self.config.method):
            return refused
        wanted = poses or self.config.poses
        if wanted < ENOUGH_POSES:
            return Refused(f"{wanted} poses; at least {ENOUGH_POSES} are needed")
        self.state = Saved(
            wanted=wanted,
            checks_wanted=self.config.check_poses,
            method=method or self.config.method,
            purpose="sight",
        )
        self._result, self._pictures = None, {}
        self._go("start")
        first = self.config.start_position
        if first is None:
            self._arrived(now)
        else:
            self._move(first.pose(), now)
        return None

    def capture_here(self, now: int) -> Refused | None:
        """One more pose where the arm is."""
        if len(self.state.poses) >= MOST_POSES:
            return TOO_MANY
        return self._picture_here("here", "capture", now)

    def validate(self, now: int) -> Refused | None:
        """Compares the target where the arm is with the calibration."""
        if self._result is None:
            return NOTHING_COMPUTED
        return self._picture_here("validate", "validate", now)

    def delete_last(self, now: int) -> Refused | None:
        if self.is_running():
            return IS_RUNNING
        if not self.state.poses:
            return Refused("there is no pose to delete")
        self.state.poses = self.state.poses[:-1]
        self._forget_result()
        self._forget_pictures()
        return None

    def compute(self, now: int, *, method: str = "") -> Refused | None:
        """The camera from the poses so far."""
        if refused := (IS_RUNNING if self.is_running() else None) or unknown_method(
            method or self.config.method
        ):
            return refused
        found = self._computed(method or self.state.method)
        if isinstance(found, Refused):
            return found
        self._go("compute")
        self._use(found, now)
        return None

    def cancel(self, now: int) -> Refused | None:
        """Brakes the arm and ends the run; captured poses stay."""
        if not self.is_running():
            return NOT_RUNNING
        self._abandon(now)
        self._say("cancelled")
        self._go("cancel")
        return None

    stop = cancel  # `StopsWithRobot`

    def reset(self, now: int) -> Refused | None:
        """Removes all poses and the result."""
        if self.is_running():
            return IS_RUNNING
        self.state, self._result = Saved(method=self.config.method), None
        self._pictures = {}
        return None

    def document(self, date: str, *, force: bool = False) -> str | Refused:
        """The calibration file; of a result whose check has failed only with ``force``."""
        if self._result is None:
            return NOTHING_COMPUTED
        if refused := self._result.contradiction():
            return refused
        if (doubt := self._doubt()) and not force:
            return Refused(f"{doubt}; save it nevertheless with force")
        return calibration_text(calibration_of(self._result, date))

    def picture(self, number: int) -> str | Refused:
        """The picture of a pose, from 1 on, as base64 of a JPEG file. Snapshots are without it."""
        poses = self.state.poses
        found = self._pictures.get(poses[number - 1].place_name) if number <= len(poses) else None
        return found or Refused(f"there is no picture of pose {number}")

    @property
    def result(self) -> CalibrationResult | None:
        return self._result

    @property
    def lens(self) -> Lens:
        """The lens as the cell file has it."""
        return self._finder.model.lens

    def last_corners(self) -> list[tuple[float, float]]:
        """Pixels of the last captured pose."""
        return self.state.poses[-1].pixels if self.state.poses else []

    def is_running(self) -> bool:
        return self.state.state in RUNNING

    def occupied(self, now: int) -> Refused | None:
        """Why other commands may not move the arm now."""
        return IS_RUNNING if self.is_running() else None

    # ── component ──

    def next_wake(self) -> int | None:
        times = (self.state.due, self.state.settled_at)
        return min((time for time in times if time is not None), default=None)

    def wake(self, now: int) -> None:
        state = self.state
        if state.due is not None and now >= state.due:
            state.due = None
            notes, state.notes = state.notes, []
            for note in notes:
                _HANDLE[note.kind](self, note, now)
        if state.settled_at is not None and now >= state.settled_at:
            state.settled_at = None
            self._go("settled")
            self._look(now)

    def busy(self) -> bool:
        return self.is_running() or self.state.due is not None

    def status(self, now: int) -> HandEyeStatus:
        state, result = self.state, self._result
        flanges = [from_rows_mm(each.flange) for each in state.poses]
        wanted = state.wanted or self.config.poses
        todo = wanted + state.checks_wanted
        done = (
            1.0
            if state.state in ("DONE", "CHECK_FAILED")
            else (len(state.poses) + len(state.checks)) / todo
        )
        return HandEyeStatus(
            state.state,
            self.is_running(),
            len(state.poses),
            wanted,
            state.left_out,
            min(1.0, done),
            len(state.poses) >= ENOUGH_POSES,
            self._advice(flanges),
            state.error,
            list(state.messages),
            pose_rows(state.poses, result),
            [CoverageRow(f"r{d.name}", d.turned_deg, d.missing) for d in coverage(flanges)],
            None if result is None else result_row(result),
            list(state.checked),
            self._doubts(),
            self.config.tolerance_mm,
            state.method,
        )

    def restored(self) -> None:
        check_saved(self.state)
        found = self._computed(self.state.computed) if self.state.computed else None
        if isinstance(found, Refused):
            raise ValueError(found.reason)
        self._result = found

    # ── moves ──

    def not_startable(self, now: int) -> Refused | None:
        if self.is_running():
            return IS_RUNNING
        if refused := self.may_start(now) or self._arm.unready(now):
            return refused
        return None if self._arm.at_rest(now) else AT_REST_ONLY

    def _move(self, tool: Pose, now: int) -> None:
        """Starts a move; a pose of the calibration that is refused is left out."""
        target = Target(None, tool, False, 0.0)  # point to point, at the speed of rapids
        check = self._job_arm.clear or self._job_arm.reach
        refused = check.check([target], now)
        ticket = refused or self._arm.move(target, now)
        if not isinstance(ticket, Refused):
            self.state.move = ticket
        elif self.state.purpose == "sight":
            self._fail(f"the start position: {ticket.reason}", now)
        else:
            self._leave_out(ticket.reason, now)

    def _arm_note(self, note: Note, now: int) -> None:
        state = self.state
        if note.ticket != state.move or state.state != "MOVING":
            return
        state.move = 0
        if note.refused is not None:
            self._fail(note.refused, now)
        else:
            self._arrived(now)

    def _arrived(self, now: int) -> None:
        self._go("arrived")
        self.state.settled_at = now + ms_to_ns(self.config.settle_ms)

    def _fault_note(self, note: Note, now: int) -> None:
        if self.is_running():
            self._fail(note.refused or "the arm cannot move", now)

    # ── pictures ──

    def _picture_here(self, purpose: Purpose, event: Event, now: int) -> Refused | None:
        if self.is_running():
            return IS_RUNNING
        if refused := self.may_start(now):
            return refused
        if not self._arm.at_rest(now):
            return AT_REST_ONLY
        self.state.purpose, self.state.error = purpose, ""
        self._go(event)
        self._look(now)
        return None

    def _look(self, now: int) -> None:
        """Asks for the target: a new session each time, so that a process that was started again
        answers, too."""
        target = msgspec.to_builtins(self.config.target)
        params = {"target": target, "mount": self._finder.model.mount}
        self._ask(self._finder.start_calibration(params, now), True, now)

    def _ask(self, ticket: Ticket | Refused, starting: bool, now: int) -> None:
        if isinstance(ticket, Refused):
            self._fail(ticket.reason, now)
        else:
            self.state.asked, self.state.starting = ticket, starting

    def _replied(self, ticket: Ticket, reply: dict[str, Any] | Refused, now: int) -> None:
        if ticket != self.state.asked:
            return
        refused = reply.reason if isinstance(reply, Refused) else None
        facts = None if isinstance(reply, Refused) else reply
        self._add(Note("finder", ticket, refused, facts), now)

    def _finder_note(self, note: Note, now: int) -> None:
        state = self.state
        if note.ticket != state.asked or not self.is_running():
            return
        state.asked = 0
        if state.starting and note.refused is None:
            self._ask(self._finder.capture_calibration_image(now, PICTURE_PX), False, now)
            return
        reply = (
            Refused(note.refused) if note.refused is not None else read_capture(note.facts or {})
        )
        if not isinstance(reply, Refused):
            state.asked_again = False
            self._seen(reply, now)
        elif not self._finder.is_connected() and not state.asked_again:
            state.asked_again = True  # a process that died is started again
            self._look(now)
        elif state.purpose in ("pose", "check") and not state.starting:
            self._leave_out(reply.reason, now)
        else:
            self._fail(reply.reason, now)

    def _seen(self, reply: CaptureReply, now: int) -> None:
        joints = tuple(float(q) for q in self._job_arm.joints(now))
        seen = reply.saved(joints)
        self.state.lens = SavedLens(reply.size, reply.K, reply.distortion)
        self._pictures[seen.place_name] = reply.jpeg
        _SEEN[self.state.purpose](self, seen, now)
        self._forget_pictures()

    def _sighted(self, seen: SavedPose, now: int) -> None:
        """The first picture: plans the poses."""
        found = self._plan(seen.pose().flange, seen.pose().target, now)
        if isinstance(found, Refused):
            self._fail(found.reason, now)
            return
        state = self.state
        state.queue, state.planned = [rows_mm(each) for each in found], len(found)
        self._next("next_pose", now)

    def _posed(self, seen: SavedPose, now: int) -> None:
        if refused := self._add_pose(seen):
            self._leave_out(refused.reason, now)
        else:
            self._next("next_pose", now)

    def _posed_here(self, seen: SavedPose, now: int) -> None:
        if refused := self._add_pose(seen):
            self._fail(refused.reason, now)
        else:
            self._forget_result()
            self._go("captured")

    def _add_pose(self, seen: SavedPose) -> Refused | None:
        """Adds a pose, if the calibrator takes it."""
        new = seen.pose()
        refused = self._calibrator().add_pose(new.flange, new.target, new.corners, new.joints)
        if refused is None:
            self.state.poses = [*self.state.poses, seen]
        return refused

    def _check_seen(self, seen: SavedPose, now: int) -> None:
        self.state.checks = [*self.state.checks, seen]
        self._next("next_pose", now)

    def _validated_here(self, seen: SavedPose, now: int) -> None:
        assert self._result is not None
        self.state.checked = [*self.state.checked, self._check(self._result, seen)]
        self._judge()

    # ── the chain of poses ──

    def _plan(self, flange: Array, seen: Array, now: int) -> list[Array] | Refused:
        camera = self._finder.model.at
        mount, config = self._finder.model.mount, self.config
        hand = flange if mount == "eye_in_hand" else inverse(flange)
        assert self.state.lens is not None
        sighting = Sighting(
            mount,
            self.state.lens.lens(),
            camera,
            np.asarray(hand @ camera @ seen),
            config.target_outline(),
            seen,
        )
        to_tool = inverse(matrix(self._arm.flange(now))) @ matrix(self._arm.tool(now))

        def allowed(flanges: Sequence[Array]) -> Sequence[bool]:
            tools = [pose(each @ to_tool) for each in flanges]
            return self._job_arm.reaches(tools, self._tool)

        count, distance = self.state.wanted + self.state.checks_wanted, config.distance_mm * MM
        return calibration_flanges(sighting, count, allowed, distance=distance, spare=SPARE_POSES)

    def _next(self, event: Event, now: int) -> None:
        """The next pose; with all of them, the result."""
        state = self.state
        if len(state.poses) >= state.wanted and len(state.checks) >= state.checks_wanted:
            self._go("all_captured")
            self._finish(now)
            return
        if not state.queue:
            self._short(now)
            return
        rows, *state.queue = state.queue
        state.purpose = self._purpose_of_next()
        self._go(event)
        to_tool = inverse(matrix(self._arm.flange(now))) @ matrix(self._arm.tool(now))
        self._move(pose(from_rows_mm(rows) @ to_tool), now)

    def _purpose_of_next(self) -> Purpose:
        """Poses that check are taken in between, so that they are as diverse as the others."""
        state = self.state
        if len(state.checks) >= state.checks_wanted:
            return "pose"
        every = max(1, state.wanted // (state.checks_wanted + 1))
        due = len(state.poses) >= every * (len(state.checks) + 1)
        return "check" if due or len(state.poses) >= state.wanted else "pose"

    def _leave_out(self, reason: str, now: int) -> None:
        self.state.left_out += 1
        self._say(f"a pose is left out: {reason}")
        self._next("next_pose", now)

    def _short(self, now: int) -> None:
        """The planned poses are used up: what there is may be enough."""
        state = self.state
        if len(state.poses) < ENOUGH_POSES:
            why = state.messages[-1] if state.messages else "the target was not found"
            done = f"{len(state.poses)} of {state.planned} poses could be captured"
            self._fail(f"{done}, {ENOUGH_POSES} are needed; the last one: {why}", now)
            return
        self._go("all_captured")
        self._finish(now)

    def _finish(self, now: int) -> None:
        found = self._computed(self.state.method)
        if isinstance(found, Refused):
            self._fail(found.reason, now)
        else:
            self._use(found, now)

    # ── result ──

    def _calibrator(self) -> HandEyeCalibrator:
        """A calibrator with the poses so far."""
        lens = self.state.lens
        found = HandEyeCalibrator(
            self._finder.model.mount, None if lens is None else lens.lens(), self.config.noise()
        )
        for saved in self.state.poses:
            each = saved.pose()
            found.add_pose(each.flange, each.target, each.corners, each.joints)
        return found

    def _computed(self, method: str) -> CalibrationResult | Refused:
        return self._calibrator().compute(method)

    def _use(self, found: CalibrationResult, now: int) -> None:
        state = self.state
        self._result, state.computed, state.error = found, found.method, ""
        self._go("computed")
        state.checked = [self._check(found, each) for each in state.checks]
        self._judge()

    def _judge(self) -> None:
        """The state after the checks: all of them count, until the camera is computed again."""
        self.state.error = doubt = self._doubt()
        if doubt:
            self._say(doubt)
        self._go("check_failed" if doubt else "validated")

    def _doubts(self) -> list[Doubt]:
        if self._result is None:
            return []
        return doubts(self._result, self.state.checked, self.config.tolerance_mm)

    def _doubt(self) -> str:
        """The first reason not to use the result; empty if there is none."""
        found = self._doubts()
        return doubt_text(found[0], self.config.tolerance_mm) if found else ""

    def _check(self, result: CalibrationResult, seen: SavedPose) -> Checked:
        found = validated(result, seen.pose(), self.config.tolerance_mm)
        return Checked(found.passed, found.distance_mm, found.angle_deg)

    def _forget_result(self) -> None:
        self._result, self.state.computed, self.state.checked = None, "", []

    def _forget_pictures(self) -> None:
        """Only the poses of the calibration keep their pictures."""
        names = {each.place_name for each in self.state.poses}
        self._pictures = {name: each for name, each in self._pictures.items() if name in names}

    def _advice(self, flanges: Sequence[Array]) -> str:
        state, missing = self.state, [d.name for d in coverage(flanges) if d.missing]
        if state.state == "ERROR":
            return "Clear the cause, then start again"
        if state.state == "CHECK_FAILED":
            return "Do not use this result: capture poses again"
        if self.is_running():
            return "The robot moves by itself"
        if self._result is not None:
            return "Validate with another pose, then save"
        if missing:
            return (
                f"Move robot to different orientations: turn the flange about {', '.join(missing)}"
            )
        if len(state.poses) < ENOUGH_POSES:
            return f"Capture {ENOUGH_POSES - len(state.poses)} more poses"
        return "Compute"

    # ── inside ──

    def _go(self, event: Event) -> None:
        self.state.state = TRANSITIONS[self.state.state, event]

    def _fail(self, reason: str, now: int) -> None:
        self._abandon(now)
        self.state.error = reason
        self._say(reason)
        self._go("fault")

    def _abandon(self, now: int) -> None:
        state = self.state
        if state.move:
            self._arm.stop(now)
        if state.asked:
            self._finder.cancel(now)
        state.move = state.asked = 0
        state.settled_at, state.notes, state.queue = None, [], []
        state.asked_again = False

    def _say(self, text: str) -> None:
        self.state.messages = [*self.state.messages, text][-MOST_MESSAGES:]

    def _note(self, kind: Any, ticket: int, refused: Refused | None, now: int) -> None:
        if self.is_running():
            self._add(Note(kind, ticket, None if refused is None else refused.reason), now)

    def _add(self, note: Note, now: int) -> None:
        self.state.notes = [*self.state.notes, note]
        self.state.due = now


_HANDLE: Mapping[str, Callable[[HandEyeJob, Note, int], None]] = {
    "arm": HandEyeJob._arm_note,
    "finder": HandEyeJob._finder_note,
    "fault": HandEyeJob._fault_note,
}
_SEEN: Mapping[Purpose, Callable[[HandEyeJob, SavedPose, int], None]] = {
    "sight": HandEyeJob._sighted,
    "pose": HandEyeJob._posed,
    "check": HandEyeJob._check_seen,
    "here": HandEyeJob._posed_here,
    "validate": HandEyeJob._validated_here,
}


def hand_eye_components(site: JobSite) -> dict[str, Component]:
    config: HandEyeConfig = site.sections[HAND_EYE]
    own: dict[str, Component] = {}
    with located_at(f"{HAND_EYE}.target"):
        config.target.check()
    asked = site.find(TargetFinder)
    if asked is None:
        name = FINDER if site.find(ObjectFinder) is None else f"{HAND_EYE}_{FINDER}"
        own[name] = asked = _finder(site, config, name)
    arm = site.arm
    own["hand_eye_motion"] = motion = ControllerMotion(arm.controller, arm.move_to, arm.flange)
    own[HAND_EYE] = job = HandEyeJob(config, Equipment(motion, arm, asked, site.tool))
    for other in site.find_all(StartsWhenAllowed):
        keep_apart(job, other)
    return own


def _finder(site: JobSite, config: HandEyeConfig, name: str) -> TargetFinder:
    need = FinderUse(
        f"{site.name}.{name}",
        latency=nanoseconds(config.latency_s),
        timeout=ms_to_ns(config.timeout_ms),
        pictures=True,
    )
    found = site.provide(ObjectFinder, need)
    assert isinstance(found, TargetFinder)
    return found
