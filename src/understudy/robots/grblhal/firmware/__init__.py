"""The firmware of a grblHAL controller, without axes of its own, and the lines that it executes."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from understudy.errors import Refused
from understudy.gcode import Modal, requests
from understudy.gcode.blocks import normalized
from understudy.motion.path import Floats
from understudy.robots.grblhal.controller import FirmwareReading, Notice
from understudy.robots.grblhal.firmware.commands import (
    FirmwareRealtime,
    FirmwareStorage,
    FirmwareSwitches,
)
from understudy.robots.grblhal.firmware.conditions import (
    ALARM,
    CRITICAL,
    DOOR,
    HELD_JOG,
    SLEEP,
    reported,
)
from understudy.robots.grblhal.firmware.core import (
    IN_ALARM,
    ControlledAxes,
    FirmwareCore,
    FirmwareState,
    SettingValues,
)
from understudy.robots.grblhal.firmware.limit_switches import FirmwareHoming, HardLimits
from understudy.robots.grblhal.numbers import (
    ALL_AXES,
    AXIS_LETTERS,
    AlarmCode,
    ErrorCode,
    HomingOption,
)
from understudy.simulation.program.runner import (
    DROPPED,
    Entry,
    GcodeLine,
    Homing,
    ProgramHooks,
    Runner,
    over_a_wire,
)
from understudy.simulation.program.steps import Probed, Step
from understudy.units import whole_ns

__all__ = ["IN_ALARM", "ControlledAxes", "Firmware", "FirmwareState", "SettingValues"]

NO_GCODE = (*ALARM, *SLEEP, "Jog", *HELD_JOG)
"""Conditions in which G-code is refused."""


class Firmware:
    """The controller behind a grblHAL wire, around a program runner; its `lines` are the hooks of
    that runner."""

    def __init__(self, axes: ControlledAxes, runner: Callable[[ProgramHooks], Runner]) -> None:
        self._core = FirmwareCore(axes)
        self.lines = FirmwareLines(self._core)
        self.realtime = FirmwareRealtime(self._core, self.lines.run_startup)
        self._homing = FirmwareHoming(self._core, self.realtime.fail_homing, self.lines.run_startup)
        self.lines.start_homing = self._homing.home
        self.hard_limits = HardLimits(self._core)
        self.limits = self._core.limits
        self.switches = FirmwareSwitches(self._core)
        self.storage = FirmwareStorage(self._core, self.lines.store_startup)
        self.listen = self._core.listen
        self.emergency_stop = self._core.emergency_stop
        self.process_failed = self._core.process_failed
        self.release = self.realtime.release
        self.inhibit = self.realtime.inhibit
        self.permit = self.realtime.permit
        self.moving = self._core.moving
        self.runner = self._core.runner = runner(self.lines)
        if alarm := self.realtime.start_alarm(0, cold=True):
            self._core.state.condition, self._core.state.alarm = "Alarm", alarm

    # ── time ──

    def next_wake(self) -> int | None:
        state = self._core.state
        moments = (
            self.runner.next_wake(),
            state.resume_at,
            None if state.homing is None else state.homing.until,
            self.hard_limits.next_wake() if self._core.hard_limits else None,
            state.restores_at,
        )
        return min((moment for moment in moments if moment is not None), default=None)

    def wake(self, now: int) -> None:
        state = self._core.state
        if self._core.hard_limits:
            self.hard_limits.wake(now)
        due = self.runner.next_wake()
        if due is not None and due <= now:
            self.runner.run(now)
        if state.homing is not None:
            self._homing.wake(now)
        if state.restores_at is not None and state.restores_at <= now:
            self.realtime.restore_outputs(now)
        self.realtime.rest(now)
        state.resume_at = None
        self.lines.check_startup(now)
        self._core.emit(Notice("settled"), now)

    # ── readings ──

    @property
    def locked(self) -> bool:
        """An alarm is active, or the cell is stopped."""
        return self._core.locked

    @property
    def inhibited(self) -> bool:
        """The cell is stopped: motion is refused."""
        return self._core.state.inhibited

    def fault(self) -> Refused | None:
        """The active alarm."""
        number = self._core.alarm
        return Refused(f"alarm {number}: reset first", number) if number else None

    @property
    def tool(self) -> int:
        """The tool in the spindle."""
        changing = self._core.state.tool
        return self.modal.tool if changing is None else changing

    def on_machine(self, counted: Floats) -> Floats:
        """Position of the axes on the machine for one that the firmware counts."""
        return np.asarray(counted + np.array(self._core.state.origin))

    @property
    def restoring(self) -> bool:
        """Spindle or coolant start again after the door was closed."""
        return self._core.state.restores_at is not None

    @property
    def modal(self) -> Modal:
        return self.runner.state.modal

    def reading(self, now: int) -> FirmwareReading:
        core, state, queue = self._core, self._core.state, self.runner.queue
        running = queue.line_at(now) if core.moving(now) else 0
        condition, modal = core.condition(now), self.modal
        limits, (flood, mist) = core.limits(now), core.coolant
        return FirmwareReading(
            state=reported(condition),
            alarm=core.alarm,
            critical=condition in CRITICAL or condition in SLEEP,
            position=core.position(now),
            free=queue.window if self._dwells() else queue.room(now) - state.cut_blocks,
            window=queue.window,
            line=dict(state.numbered).get(running, 0) if running else modal.line,
            feed=core.speed(now),
            speed=core.rpm(),
            spindle=state.spindle,
            flood=flood,
            mist=mist,
            overrides=(state.feed, state.rapid, state.spindle_percent),
            tool=self.tool,
            changing=state.tool is not None,
            homed=self._homed_field(),
            input=state.result,
            switches=self._switches(limits, now),
            modal=modal,
            probe=state.probe,
            touched=state.touched,
            limits=limits,
            limit_event=state.limit_event,
            homed_axes=self._homed_axes(),
            home=state.home,
            silent=state.homing is not None and state.homing.silent,
            pause=self.runner.pause,
        )

    def _switches(self, limits: int, now: int) -> str:
        """Letters of the switches and inputs that are on; G38.4 and G38.5 invert the probe."""
        state = self._core.state
        inverted = any(isinstance(step, Probed) and step.away for step in self.runner.state.todo)
        switches = (
            *((letter, limits >> axis & 1) for axis, letter in enumerate(AXIS_LETTERS)),
            ("L", state.block_delete),
            ("T", not state.optional_stop),
            ("Q", state.single_block),
            ("P", self._core.contact(now) != inverted),
        )
        return "".join(letter for letter, on in switches if on)

    def _homed_axes(self) -> int:
        if self._core.axes.sensors is not None:
            return self._core.state.homed
        return ALL_AXES if self.runner.homed else 0

    def _homed_field(self) -> str:
        core = self._core
        if core.axes.sensors is None:
            return str(int(self.runner.homed))
        options, axes, homed = core.homing_options, core.homing_axes, core.state.homed
        single = options & HomingOption.SINGLE_AXIS
        if not (axes or single or options & HomingOption.MANUAL):
            return ""
        value = str(int((axes or ALL_AXES) & ~homed == 0))
        return f"{value},{homed}" if single else value

    def _dwells(self) -> bool:
        """Whether a dwell was queued last: it is alone, and no block of the firmware's planner."""
        dwell = self.runner.queue.plan.path.dwell
        return bool(len(dwell)) and bool(dwell[-1] > 0.0)

    # ── snapshots ──

    def save(self) -> FirmwareState:
        return msgspec.convert(msgspec.to_builtins(self._core.state), FirmwareState)

    def load(self, state: Any) -> None:
        loaded = msgspec.convert(state, FirmwareState)
        if loaded.homing is not None:
            loaded.homing.check()
        self._core.state = loaded


class FirmwareLines:
    """Executes the lines of a client one after the other; `ProgramHooks` of their program.

    Every line is answered once, when it is accepted or refused. The firmware sets
    ``start_homing``, which homes a machine with limit switches.
    """

    start_homing: Callable[[str, int], None]

    def __init__(self, core: FirmwareCore) -> None:
        self._core = core
        self._submitting = False

    # ── line input ──

    def execute(self, text: str, now: int) -> None:
        """Execute a line of G-code; the answer comes as a notice, now or later."""
        state = self._core.state
        if state.block_delete and text.startswith("/"):
            self._core.answer(0, now)
            return
        if state.tool is not None and _moves(text):
            self._core.answer(ErrorCode.TOOL_CHANGE_PENDING, now)
            return
        number = self._next_number()
        line = self._line(number, text)
        if state.condition == "Check":
            line = GcodeLine(number, line.text, "check")
        self._submit(line, now)

    def jog(self, text: str, now: int) -> None:
        """Execute a jog: the text after ``$J=``."""
        if not self._core.permits("jog", now):
            self._core.answer(ErrorCode.NOT_IDLE, now)
            return
        self._submit(GcodeLine(self._next_number(), text, "jog"), now)

    def home(self, axes: str, now: int) -> None:
        """Home the axes with these letters; all axes if there are none."""
        core = self._core
        if core.axes.sensors is not None:
            self.start_homing(axes, now)
        elif not core.permits("home", now):
            core.answer(ErrorCode.NOT_IDLE, now)
        else:
            core.apply("home", now)
            chosen = tuple(AXIS_LETTERS.index(axis) for axis in axes)
            groups = (chosen,) if chosen else ((3, 4, 5), (0, 1, 2))
            self._submit(Homing(self._next_number(), groups), now)

    def run_startup(self, lines: Sequence[str], now: int) -> None:
        """Execute the start-up lines after a reset."""
        for text in filter(None, "|".join(lines).split("|")):
            number = self._next_number()
            self._core.state.starting.append((number, text))
            self._submit(GcodeLine(number, text, "wire"), now)

    def store_startup(self, index: int, text: str, now: int) -> None:
        """Run a start-up line and store it if it is accepted; the answer comes as a notice."""
        self._core.state.storing = (0, index, text)
        self._core.state.unchecked = [block for block in text.split("|") if block] or [""]
        self.check_startup(now)

    def check_startup(self, now: int) -> None:
        """Execute the next block of a start-up line that is to be stored."""
        state = self._core.state
        while state.storing is not None and state.storing[0] == 0:
            number, (_, index, text) = self._next_number(), state.storing
            state.storing = (number, index, text)
            self._submit(self._line(number, state.unchecked.pop(0)), now)

    def gcode_refusal(self, now: int) -> Refused | None:
        """Why no G-code is accepted now; None if it is."""
        return IN_ALARM if self._core.condition(now) in NO_GCODE else None

    def runs(self, now: int) -> bool:
        """Whether lines move the axes."""
        return self._core.condition(now) == "Run"

    def call_at_rest(self, now: int) -> None:
        """Send the notice `settled` when the motion in progress has ended."""
        state, ends = self._core.state, whole_ns(self._core.runner.queue.plan.ends)
        state.resume_at = max(now, ends) if state.resume_at is None else state.resume_at

    def waits_for_operator(self, now: int) -> bool:
        """Whether the program waits in Hold, Door or Tool until an operator continues it."""
        return self._core.condition(now) in ("Hold:0", "Door:0", "Jog:Held", "Tool")

    def accepts_line(self, now: int) -> bool:
        """Whether the next line may be sent; in Hold, Door and Tool lines wait unread."""
        state, program = self._core.state, self._core.runner
        if state.condition in CRITICAL or state.condition in SLEEP:
            return True
        return not (
            state.condition in (*DOOR, *HELD_JOG)
            or (state.tool is not None and not state.acknowledged)
            or state.at_rest
            or state.homing is not None
            or program.queue.held
            or program.state.paused
            or program.state.current is not None
        )

    # ── program hooks ──

    def set_spindle(self, step: requests.Spindle, now: int) -> Refused | None:
        self._core.state.spindle = step.direction
        self._core.state.checked_speed = step.speed
        self._core.changed(now, "spindle")
        return None

    def set_coolant(self, step: requests.Coolant, now: int) -> Refused | None:
        self._core.state.mist, self._core.state.flood = step.mist, step.flood
        self._core.note_coolant()
        self._core.changed(now, "coolant")
        return None

    def switch_off(self, now: int) -> None:
        self._core.switch_off(now)

    def probe_ended(self, step: Probed, now: int) -> Refused | None:
        core = self._core
        core.state.probe, core.state.touched = step.place or core.position(now), step.touched
        if step.touched:
            core.round_position(now)
        if step.early:
            core.lock("alarm", AlarmCode.PROBE_TOUCHES, now)
            return None
        if step.required and not step.touched:
            core.lock("alarm", AlarmCode.PROBE_FAILED, now)
        core.emit(Notice("probe"), now)
        return None

    def may_pause(self, now: int) -> bool:
        """A pause is a feed hold, which has no effect in an alarm, in a tool change and after
        `M53 P0`."""
        state = self._core.state
        return state.hold_allowed and state.tool is None and state.condition == "Idle"

    def report(self, step: Step, now: int) -> None:
        if note := _NOTES.get(type(step)):
            note(self, step, now)

    def finished(self, entry: Entry, refused: Refused | None, now: int) -> None:
        if not over_a_wire(entry):
            return
        core, state = self._core, self._core.state
        answered = state.condition in DOOR or state.at_rest == "cancel jog"
        if refused == DROPPED and not answered:
            core.emit(Notice("void"), now)
            return
        code = refused.code if refused and refused != DROPPED else 0
        if code == AlarmCode.PROCESS_FAULT:
            core.process_failed(now)
            code = ErrorCode.LOCKED
        if isinstance(entry, Homing):
            self._answer(code, now)
            return
        if code < 0 and entry.how == "jog":
            code = ErrorCode.JOG_BEYOND_TRAVEL
        if code < 0:  # a soft limit: `steps.beyond` gives it a negative number
            state.at_rest = "soft limit"
            core.runner.stop(now, silent=False)
            core.wake_now(now)
            return
        if entry.how == "jog" and not code:
            state.jogging = state.jogging or core.moving(now)
        elif not code:
            self._note_number(entry)
        self._conclude(entry.number, code, now)

    # ── inside ──

    def _line(self, number: int, text: str) -> GcodeLine:
        """A line over the wire; in single block the program pauses after it, also where it would
        end."""
        state = self._core.state
        single = state.single_block and normalized(text) not in ("", "%")
        found = _END.search(text) if single else None
        if found is None:
            return GcodeLine(number, text, "wire", single, state.optional_stop)
        paused = _END.sub("M0", text)
        return GcodeLine(number, paused, "wire", single, state.optional_stop, f"M{found[1]}")

    def _next_number(self) -> int:
        self._core.state.lines += 1
        return self._core.axes.first_line + self._core.state.lines

    def _submit(self, entry: Entry, now: int) -> None:
        self._core.axes.energize(now)
        self._submitting = True
        self._core.runner.submit(entry, now)
        self._submitting = False

    def _conclude(self, number: int, code: int, now: int) -> None:
        """Answer the client, or note the outcome of a start-up line."""
        state = self._core.state
        own = next((text for started, text in state.starting if started == number), None)
        if own is not None:
            state.starting = [item for item in state.starting if item[0] != number]
            self._core.emit(Notice("startup", code, own), now)
            return
        if state.storing is not None and state.storing[0] == number:
            _, index, text = state.storing
            if state.unchecked and not code:
                state.storing = (0, index, text)
                self._core.wake_now(now)
                return
            if not code:
                self._core.store_startup()
            state.storing = None
        self._answer(code, now)

    def _answer(self, code: int, now: int) -> None:
        self._core.answer(code, now)
        if not self._submitting:
            self._core.wake_now(now)

    def _note_number(self, entry: GcodeLine) -> None:
        """Remember the N word of a queued line; forget those of lines that have been executed."""
        state, number = self._core.state, self._core.runner.state.modal.line
        if not (number or state.numbered):
            return
        queued = self._core.runner.queue.lines_ahead()
        state.numbered = [item for item in state.numbered if item[0] in queued]
        if number:
            state.numbered.append((entry.number, number))

    def _print_message(self, step: requests.Message, now: int) -> None:
        self._core.emit(Notice("message", text=step.text), now)

    def _end_program(self, step: requests.ProgramEnd, now: int) -> None:
        core = self._core
        if core.state.condition != "Check":
            core.changed(now, "offset", "spindle", "coolant")
        core.state.feed_allowed = core.state.speed_allowed = True
        core.notify("program end", now)

    def _note_input(self, step: requests.WaitInput, now: int) -> None:
        self._core.state.result = self._core.runner.state.result
        self._core.changed(now, "input")

    def _offsets_changed(self, step: requests.OffsetsChanged, now: int) -> None:
        state, chosen = self._core.state, self._core.runner.state.modal.coordinates
        self._core.changed(now, "offset", *(("system",) if chosen != state.system else ()))
        state.system = chosen

    def _allow_overrides(self, step: requests.Overrides, now: int) -> None:
        core, state = self._core, self._core.state
        if step.feed != state.feed_allowed:
            state.feed_allowed = step.feed
            core.apply_overrides(now)
        if step.rests:
            return
        if step.speed != state.speed_allowed:
            core.changed(now, "overrides")
        state.speed_allowed, state.hold_allowed = step.speed, step.hold

    def _change_tool(self, change: requests.ToolChange, now: int) -> None:
        """Wait for the operator if the line came over the wire; otherwise the tool is already
        changed."""
        if change.physical and over_a_wire(self._core.runner.state.current):
            self._core.state.tool, self._core.state.acknowledged = change.previous, False
        else:
            self._core.changed(now, "tool")


def _moves(text: str) -> bool:
    """Whether a line has a word of motion, or axis words for the active one."""
    line = normalized(text)
    if _MOTION.search(line):
        return True
    return any(axis in line for axis in AXIS_LETTERS) and not _AXES_ONLY.search(line)


_MOTION = re.compile(r"G0*([01235]|5\.1|33|38\.\d|73|76|8\d)(?![\d.])")
_END = re.compile(r"(?i)M\s*0*(2|30)(?![\d.])")
_AXES_ONLY = re.compile(r"G(0*10|92|28\.1|30\.1|43\.1)(?![\d.])")

_NOTES: dict[type, Callable[[FirmwareLines, Any, int], None]] = {
    requests.Message: FirmwareLines._print_message,
    requests.ProgramEnd: FirmwareLines._end_program,
    requests.OffsetsChanged: FirmwareLines._offsets_changed,
    requests.WaitInput: FirmwareLines._note_input,
    requests.Overrides: FirmwareLines._allow_overrides,
    requests.ToolSelect: lambda lines, step, now: lines._core.changed(now, "tool"),
    requests.ScalingChanged: lambda lines, step, now: lines._core.changed(now, "scaling"),
    requests.ToolChange: FirmwareLines._change_tool,
}
"""What the firmware notes or prints after each step of a line."""
