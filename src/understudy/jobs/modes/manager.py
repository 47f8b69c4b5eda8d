"""ModeManager: the mode of operation of a robot, and the changeover from one to another.

Outside WELDING no arc can be switched on; in MANUAL, and while a person works at the robot during a
changeover, the tool moves at 250 mm/s at most. The manager acts on events: tickets of the arm and
of the tools, changes of the welding process and of the controller, and deadlines. A step begins in
`wake`, because those who report an event are busy at that moment.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from msgspec import Struct

from understudy.errors import Refused
from understudy.jobs.arm_motion import ControllerMotion
from understudy.jobs.modes import MODES
from understudy.jobs.modes.config import ModesConfig, TouchPlate, check_modes
from understudy.ports import Component, ControllerStatus, Finished, Ticket
from understudy.ports.hand import Hand
from understudy.ports.job_arm import JobArm
from understudy.ports.jobs import JobSite, Played, start_only_if
from understudy.ports.modes import (
    CHANGEOVER_STEPS,
    JOB_MODE,
    ChangeStep,
    ModeStatus,
    ObeysModes,
    OperationMode,
    Settles,
    TargetMode,
    ToolsInHand,
    arc_refusal,
    speed_limit,
)
from understudy.ports.operation import OccupiesRobot, Target
from understudy.ports.refusals import HAND_FULL
from understudy.space.pose import Pose
from understudy.units import DEG, MINUTE, MM, nanoseconds

TRANSITIONS: Mapping[tuple[ChangeStep, str], ChangeStep] = {
    ("SETTLED", "request"): "STOP_WELD",
    ("STOP_WELD", "done"): "PARK_TORCH",
    ("PARK_TORCH", "done"): "TOOL_CHANGE",
    ("TOOL_CHANGE", "done"): "UPDATE_TLO",
    ("TOOL_CHANGE", "by_hand"): "CONFIRM_TOOL",
    ("CONFIRM_TOOL", "done"): "UPDATE_TLO",
    ("UPDATE_TLO", "calibrate"): "CALIBRATE_TOOL",
    ("UPDATE_TLO", "done"): "SETTLED",
    ("CALIBRATE_TOOL", "done"): "SETTLED",
    **{(step, "failed"): "FAILED" for step in CHANGEOVER_STEPS},
    **{(step, "abort"): "SETTLED" for step in CHANGEOVER_STEPS},
    ("FAILED", "retry"): "STOP_WELD",
    ("FAILED", "abort"): "SETTLED",
}

PROGRESS: Mapping[ChangeStep, float] = {
    "SETTLED": 1.0,
    "STOP_WELD": 0.0,
    "PARK_TORCH": 0.2,
    "TOOL_CHANGE": 0.4,
    "CONFIRM_TOOL": 0.5,
    "UPDATE_TLO": 0.7,
    "CALIBRATE_TOOL": 0.8,
}
"""Share of a changeover that is done when a step begins."""


ModeChanged = Callable[[OperationMode, OperationMode, int], None]
"""Called with the mode before, the mode now and the time."""

ATTENDED: tuple[ChangeStep, ...] = ("CONFIRM_TOOL", "FAILED")
"""Steps in which a person works at the robot: the speed limit of MANUAL applies."""
NO_CHANGE = Refused("no changeover is under way")


class Mover(Protocol):
    """The moves that a changeover makes; `ports.job_arm.ArmMotion` has them."""

    def move(self, target: Target, now: int) -> Ticket | Refused: ...

    def stop(self, now: int) -> Refused | None: ...

    def on_finished(self, listener: Finished) -> None: ...


class Controller(Protocol):
    """The part of `ports.controller.MotionController` that a changeover needs."""

    def send_gcode(self, text: str, now: int) -> Refused | None: ...

    def stop(self, now: int) -> Refused | None: ...

    def tcp(self, now: int) -> Pose: ...

    def status(self, now: int) -> ControllerStatus: ...

    def on_status(self, listener: Callable[[ControllerStatus], None]) -> None: ...


@dataclass(frozen=True)
class Surroundings:
    """What stands around a mode manager. Without ``tools`` no mode has a tool of its own."""

    controller: Controller
    arm: Mover
    tools: ToolsInHand | None = None
    process: Settles | None = None
    arc_on: Callable[[], bool] = lambda: False
    hand: Hand | None = None
    job: OccupiesRobot | None = None


class State(Struct):
    """The state that snapshots hold.

    `before`: the mode that the changeover left. `ticket`: of the move or tool change under way.
    `line`: a line of G-code is carried out. `stage`: of the touch sensing. `due`: when the step
    goes on. `deadline`: when it has failed.
    """

    mode: OperationMode
    before: TargetMode
    target: TargetMode
    step: ChangeStep = "SETTLED"
    ticket: int = 0
    line: bool = False
    stage: int = 0
    due: int | None = None
    deadline: int | None = None
    error: str = ""


class ModeManager:
    """A part of the cell, and the `ModeGuard` of its robot's controller."""

    def __init__(self, config: ModesConfig, around: Surroundings) -> None:
        self._config = config
        self._around = around
        self.state = State(config.start, config.start, config.start)
        self._listeners: list[ModeChanged] = []
        self._limits: list[Callable[[float], None]] = []
        around.arm.on_finished(self._moved)
        if around.tools is not None:
            around.tools.on_finished(self._changed)
        if around.process is not None:
            around.process.on_process(self._process_changed)
        self._listens = False

    # ── commands ──

    @property
    def current_mode(self) -> OperationMode:
        return self.state.mode

    def request_mode_change(self, mode: TargetMode, now: int) -> Refused | None:
        """Begins the changeover to a mode."""
        if refused := self.can_change_to(mode, now):
            return refused
        self._listen()
        state = self.state
        assert state.mode != "CHANGEOVER"
        state.before, state.target = state.mode, mode
        self._set_mode("CHANGEOVER", now)
        self._go("request", now)
        return None

    def can_change_to(self, mode: TargetMode, now: int) -> Refused | None:
        """Why the changeover to this mode cannot begin now; None if it can."""
        if mode == self.state.mode:
            return Refused(f"the mode is {mode} already")
        return self.can_change_mode(now)

    def can_change_mode(self, now: int) -> Refused | None:
        """Why the mode cannot be changed now; None if it can."""
        state = self.state
        if state.step == "FAILED":
            return Refused(f"the changeover has failed ({state.error}): retry or abort it first")
        if state.step != "SETTLED":
            return Refused(f"a changeover to {state.target} is under way")
        return self._unsafe(now)

    def _unsafe(self, now: int) -> Refused | None:
        """Why no changeover can begin: a job runs, the arc is on, the hand is full, …"""
        around = self._around
        if around.job is not None and (refused := around.job.occupied(now)):
            return refused
        if around.arc_on():
            return Refused("the arc is on: switch it off first (M5)")
        if around.hand is not None and around.hand.status(now).part_detected:
            return HAND_FULL
        return self._not_at_rest(now)

    def is_changing_mode(self) -> bool:
        return self.state.mode == "CHANGEOVER"

    def get_change_progress(self) -> float:
        """Share of the changeover that is done; 1 without one."""
        return PROGRESS.get(self.state.step, 0.0)

    def confirm_tool(self, now: int) -> Refused | None:
        """The operator has mounted the tool that was asked for."""
        state, tools = self.state, self._around.tools
        if state.step != "CONFIRM_TOOL" or tools is None:
            return Refused("no tool is asked for")
        if refused := tools.exchanged(self._tool(state.target), now):
            return refused
        self._go("done", now)
        return None

    def retry(self, now: int) -> Refused | None:
        """Starts a failed changeover again; steps that are done take no time."""
        if self.state.step != "FAILED":
            return Refused("no changeover has failed")
        if refused := self._unsafe(now):
            return refused
        self._go("retry", now)
        return None

    def abort(self, now: int) -> Refused | None:
        """Ends a changeover: back to the mode before if its tool is mounted, else to MANUAL."""
        state = self.state
        if state.step == "SETTLED":
            return NO_CHANGE
        self._cancel(now)
        wanted = self._config.tools.get(state.before)
        kept = wanted is None or wanted == self.mounted(now)
        self._go("abort", now)
        self._set_mode(state.before if kept else "MANUAL", now)
        return None

    def on_mode_changed(self, listener: ModeChanged) -> None:
        self._listeners.append(listener)

    # ── guard of the controller ──

    def arc_refusal(self) -> Refused | None:
        return arc_refusal(self.state.mode)

    def job_refusal(self, mounted: int) -> Refused | None:
        """Why the job of cycles cannot start with this tool."""
        if self.state.mode != JOB_MODE:
            return Refused(f"the mode is {self.state.mode}: request the mode {JOB_MODE} first")
        wanted = self._config.tools.get(JOB_MODE)
        if wanted in (None, mounted):
            return None
        return Refused(f"tool {mounted} is active; {JOB_MODE} needs tool {wanted}: change it first")

    def occupied(self, now: int) -> Refused | None:
        """While the changeover moves the robot; in a step with a person at it, jogs are allowed."""
        state = self.state
        if state.step in ("SETTLED", *ATTENDED):
            return None
        return Refused(f"the changeover to {state.target} moves the robot ({state.step})")

    def on_limit(self, listener: Callable[[float], None]) -> None:
        self._limits.append(listener)
        listener(self._speed_limit())

    # ── time ──

    def next_wake(self) -> int | None:
        moments = [at for at in (self.state.due, self.state.deadline) if at is not None]
        return min(moments, default=None)

    def wake(self, now: int) -> None:
        state = self.state
        if state.due is not None and now >= state.due:
            state.due = None
            STEP_ACTIONS[state.step](self, now)
        if state.deadline is not None and now >= state.deadline:
            state.deadline = None
            self._fail(f"{state.step} took longer than {self._time_limit():g} s", now)

    # ── component ──

    def busy(self) -> bool:
        return self.state.due is not None or self.state.ticket != 0 or self.state.line

    def status(self, now: int) -> ModeStatus:
        state, limit = self.state, self._speed_limit()
        return ModeStatus(
            mode=state.mode,
            target=state.target,
            step=state.step,
            progress=self.get_change_progress(),
            error=state.error,
            tool=self._tool(state.target) if state.step == "CONFIRM_TOOL" else 0,
            speed_limit_mm_s=None if math.isinf(limit) else limit / MM,
        )

    def restored(self) -> None:
        if self.state.step != "SETTLED":
            self._listen()
        self._apply_limit()

    # ── listening ──

    def _listen(self) -> None:
        """Subscribes to the controller: without listeners it has less to do."""
        if not self._listens:
            self._listens = True
            self._around.controller.on_status(self._status_changed)

    def _moved(self, ticket: Ticket, refused: Refused | None, now: int) -> None:
        if self.state.ticket == ticket and self.state.step in ("PARK_TORCH", "CALIBRATE_TOOL"):
            self._ticket_ended(refused, now)

    def _changed(self, ticket: Ticket, refused: Refused | None, now: int) -> None:
        if self.state.ticket == ticket and self.state.step == "TOOL_CHANGE":
            self._ticket_ended(refused, now)

    def _ticket_ended(self, refused: Refused | None, now: int) -> None:
        self.state.ticket = 0
        if refused is None:
            self.state.due = now
        else:
            self._fail(refused.reason, now)

    def _process_changed(self, now: int) -> None:
        if self.state.step == "STOP_WELD":
            self.state.due = now

    def _status_changed(self, status: ControllerStatus) -> None:
        if self.state.step == "STOP_WELD" or self.state.line:
            self.state.due = status.at

    # ── steps ──

    def _stop_weld(self, now: int) -> None:
        """Waits until the arm rests, the arc is out and the gas has stopped."""
        process = self._around.process
        if (process is None or process.settled) and not self._not_at_rest(now):
            self._go("done", now)

    def _park(self, now: int) -> None:
        state, config = self.state, self._config
        position = config.park_positions.get(state.before)
        joints = config.park_joints_deg.get(state.before)
        if state.stage or not self._changes_tool(now) or (position is None and joints is None):
            self._go("done", now)
            return
        state.stage = 1
        turned = None if joints is None else tuple(angle * DEG for angle in joints)
        pose = None if position is None else position.pose()
        self._move(Target(turned, pose, False, config.park_speed_mm_s * MM), now)

    def _change_tool(self, now: int) -> None:
        state, tools = self.state, self._around.tools
        if not self._changes_tool(now) or tools is None:
            self._go("done", now)
        elif state.stage:
            self._fail(f"T{self._tool(state.target)} is not in the hand after the change", now)
        elif self._config.change == "manual":
            self._go("by_hand", now)
        else:
            state.stage = 1
            self._started(tools.change(self._tool(state.target), now), now)

    def _update_offset(self, now: int) -> None:
        """Applies the data of the new tool: its length, which G43 takes from the tool table."""
        state = self.state
        tool = self._config.tools.get(state.target)
        if not state.stage and tool is not None:
            state.stage = 1
            self._send(f"G43 H{tool}" if tool else "G49", now)
        elif self._line_is_done(now):
            if tool is not None and tool != self.mounted(now):
                self._fail(f"T{tool} is not in the hand", now)
            elif self._config.calibrate is not None and tool:
                self._go("calibrate", now)
            else:
                self._finish(now)

    def _calibrate(self, now: int) -> None:
        """Moves above the plate, probes down, compares, and moves up again."""
        state, plate = self.state, self._config.calibrate
        assert plate is not None
        if state.stage in (0, 3):
            speed = self._config.park_speed_mm_s * MM
            line = state.stage == 3
            state.stage += 1
            self._move(Target(None, plate.position.pose(), line, speed), now)
        elif state.stage == 1:
            state.stage = 2
            self._send(_probing(plate), now)
        elif state.stage == 2 and self._line_is_done(now):
            self._compare(plate, now)
        elif state.stage == 4:
            self._finish(now)

    def _compare(self, plate: TouchPlate, now: int) -> None:
        state = self.state
        off = self._around.controller.tcp(now).z - plate.plate_z_mm * MM
        if abs(off) > plate.tolerance_mm * MM:
            side = "above" if off > 0.0 else "below"
            missed = f"the tool touches {abs(off) / MM:.2f} mm {side} the top of the plate"
            self._fail(f"{missed}: teach its TCP", now)
            return
        state.stage, state.due = 3, now

    def _finish(self, now: int) -> None:
        target = self.state.target
        self._go("done", now)
        self._set_mode(target, now)

    # ── inside ──

    def _go(self, event: str, now: int) -> None:
        """Takes the transition of an event; the new step begins in the next wake."""
        state = self.state
        state.step = TRANSITIONS[state.step, event]
        state.stage, state.ticket, state.line = 0, 0, False
        runs = state.step not in ("SETTLED", *ATTENDED)
        state.due = now if runs else None
        state.deadline = now + nanoseconds(self._time_limit()) if runs else None
        if state.step != "FAILED":
            state.error = ""
        self._apply_limit()

    def _fail(self, reason: str, now: int) -> None:
        self._cancel(now)
        if self.state.step == "CALIBRATE_TOOL":
            self._around.controller.send_gcode("G90", now)  # the probing line was relative
        self._go("failed", now)
        self.state.error = reason

    def _cancel(self, now: int) -> None:
        """Stops the move, line or tool change that is under way."""
        state, around = self.state, self._around
        moving, state.ticket = state.ticket != 0, 0
        if moving and state.step == "TOOL_CHANGE" and around.tools is not None:
            around.tools.cancel(now)
        elif moving:
            around.arm.stop(now)
        elif state.line:
            around.controller.stop(now)

    def _set_mode(self, mode: OperationMode, now: int) -> None:
        old, self.state.mode = self.state.mode, mode
        self._apply_limit()
        for listener in self._listeners:
            listener(old, mode, now)

    def _speed_limit(self) -> float:
        state = self.state
        return speed_limit("MANUAL" if state.step in ATTENDED else state.mode)

    def _apply_limit(self) -> None:
        for listener in self._limits:
            listener(self._speed_limit())

    def _time_limit(self) -> float:
        config = self._config
        return config.stop_timeout_s if self.state.step == "STOP_WELD" else config.step_timeout_s

    def _tool(self, mode: TargetMode) -> int:
        return self._config.tools.get(mode, 0)

    def mounted(self, now: int) -> int:
        return self._around.tools.mounted(now) if self._around.tools is not None else 0

    def _changes_tool(self, now: int) -> bool:
        wanted = self._config.tools.get(self.state.target)
        return wanted is not None and wanted != self.mounted(now)

    def _not_at_rest(self, now: int) -> Refused | None:
        status = self._around.controller.status(now)
        if status.error:
            return Refused(f"the robot has an error ({status.error_message}): reset it first")
        if status.moving or status.state != "Idle":
            return Refused(f"the robot must be at rest; its state is {status.state}")
        return None

    def _move(self, target: Target, now: int) -> None:
        self._started(self._around.arm.move(target, now), now)

    def _started(self, ticket: Ticket | Refused, now: int) -> None:
        if isinstance(ticket, Refused):
            self._fail(ticket.reason, now)
        else:
            self.state.ticket = int(ticket)

    def _send(self, line: str, now: int) -> None:
        self.state.line = True
        if refused := self._around.controller.send_gcode(line, now):
            self._fail(refused.reason, now)

    def _line_is_done(self, now: int) -> bool:
        """Whether the line that was sent is carried out; an error of it is a failure."""
        if not self.state.line:
            return True
        status = self._around.controller.status(now)
        if status.error:
            self.state.line = False
            self._around.controller.send_gcode("", now)  # clears the error of this line
            self._fail(status.error_message, now)
            return False
        self.state.line = status.moving or status.state != "Idle"
        return not self.state.line


def _probing(plate: TouchPlate) -> str:
    feed = plate.speed_mm_s * MINUTE
    return f"G21 G91 G94 G38.2 Z{-plate.depth_mm:g} F{feed:g}"


STEP_ACTIONS: Mapping[ChangeStep, Callable[[ModeManager, int], None]] = {
    "SETTLED": lambda manager, now: None,
    "FAILED": lambda manager, now: None,
    "CONFIRM_TOOL": lambda manager, now: None,
    "STOP_WELD": ModeManager._stop_weld,
    "PARK_TORCH": ModeManager._park,
    "TOOL_CHANGE": ModeManager._change_tool,
    "UPDATE_TLO": ModeManager._update_offset,
    "CALIBRATE_TOOL": ModeManager._calibrate,
}


class ControllerTools:
    """`ToolsInHand` of a controller alone: no sensor sees the tool."""

    def __init__(self, arm: JobArm) -> None:
        self._arm = arm

    def mounted(self, now: int) -> int:
        return self._arm.tool(now)

    def change(self, tool: int, now: int) -> Ticket | Refused:
        return Refused("the robot has no tool changer: set `change: manual` in its section `modes`")

    def exchanged(self, tool: int, now: int) -> Refused | None:
        """M61 sets the number of the tool without a change."""
        return self._arm.controller.send_gcode(f"M61 Q{tool}", now)

    def cancel(self, now: int) -> None:
        """No change is ever under way."""

    def on_finished(self, listener: Finished) -> None:
        """No change is ever under way."""


def mode_components(site: JobSite) -> dict[str, Component]:
    """The mode manager and its moves; without a tool changer tools are changed by hand."""
    config: ModesConfig = site.sections[MODES]
    arm, tools, job = site.arm, site.find(ToolsInHand), site.find(Played)
    check_modes(config, arm.tools, automatic=tools is not None)
    motion = ControllerMotion(arm.controller, arm.move_to, arm.flange)
    around = Surroundings(
        controller=arm.controller,
        arm=motion,
        tools=tools or ControllerTools(arm),
        process=site.find(Settles),
        arc_on=arm.arc_on,
        hand=site.find(Hand),
        job=job,
    )
    manager = ModeManager(config, around)
    if job is not None:
        start_only_if(job, lambda now: manager.job_refusal(manager.mounted(now)))
    if isinstance(site.controller, ObeysModes):
        site.controller.obey(manager)
    return {"modes_motion": motion, "modes": manager}


def guard_real_job(site: JobSite) -> None:
    """The job of a REAL robot starts only in its mode, with the tool of that mode."""
    job, simulated = site.find(Played), site.simulated.values()
    manager = next((each for each in simulated if isinstance(each, ModeManager)), None)
    if job is not None and manager is not None:
        start_only_if(job, lambda now: manager.job_refusal(site.arm.tool(now)))
