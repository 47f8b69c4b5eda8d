"""Lines and what they lead to: each is answered once, when it is through or refused."""

from understudy.errors import Refused
from understudy.gcode import requests as ask
from understudy.gcode.modal import work_offset
from understudy.gcode.requests import Coolant, Spindle
from understudy.gcode.wire import Notice
from understudy.robots.grblhal.firmware.core import IN_ALARM, Core
from understudy.robots.grblhal.firmware.state import (
    HOMING,
    IDLE_ONLY,
    NO_HOMING,
    PROBE_FAILED,
    PROBE_TOUCHES,
    TRAVEL,
)
from understudy.simulation.program.steps import (
    DROPPED,
    Entry,
    Homing,
    Line,
    Probed,
    Step,
    SystemChosen,
    over_a_wire,
)
from understudy.units import nanoseconds

MOVABLE = ("Idle", "Jog", "Tool")


class FirmwareLines:
    """`Lines` for the face, and `ProgramHooks` of the program that carries them out."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._taking = False

    # ── lines ──

    def execute(self, text: str, now: int) -> None:
        state = self._core.state
        if state.block_delete and text.startswith("/"):
            self._core.answer(0, now)
            return
        number = self._number()
        if state.checking:
            self._submit(Line(number, text, "check"), now)
        else:
            line = Line(number, text, "wire", state.single_block, state.optional_stop)
            self._submit(line, now)

    def jog(self, text: str, now: int) -> None:
        if self._core.condition(now) not in MOVABLE:
            self._core.answer(IDLE_ONLY, now)
            return
        self._submit(Line(self._number(), text, "jog"), now)

    def home(self, axes: str, now: int) -> None:
        core = self._core
        if core.condition(now) not in ("Idle", "Alarm"):
            core.answer(IDLE_ONLY, now)
        elif core.plant.homing is None:
            core.state.locked = False
            chosen = tuple("XYZABC".index(axis) for axis in axes)
            groups = (chosen,) if chosen else ((3, 4, 5), (0, 1, 2))
            self._submit(Homing(self._number(), groups), now)
        elif axes or not int(core.figures()[HOMING]) & 1:
            core.answer(NO_HOMING, now)
        else:
            core.state.locked = False
            search = core.plant.homing(core.figures())
            core.state.homing_until = now + nanoseconds(search)

    def run_own(self, lines: list[str], now: int) -> None:
        """Start-up lines, after a reset."""
        for text in lines:
            number = self._number()
            self._core.state.starting.append((number, text))
            self._submit(Line(number, text, "wire"), now)

    def store_startup(self, index: int, text: str, now: int) -> None:
        number = self._number()
        self._core.state.storing = (number, index, text)
        self._submit(Line(number, text, "wire"), now)

    def barred(self, now: int) -> Refused | None:
        return IN_ALARM if self._core.condition(now) in ("Alarm", "Jog", "Sleep") else None

    def stranded(self, now: int) -> bool:
        return self._core.condition(now) in ("Hold:0", "Door:0", "Tool")

    def listening(self, now: int) -> bool:
        core, state = self._core, self._core.state
        if state.asleep or state.critical:
            return True
        waits = state.door or state.tool is not None or state.ending
        program = core.runner
        return not (
            waits
            or state.homing_until is not None
            or program.queue.held
            or program.state.paused
            or program.state.current is not None
        )

    # ── hooks ──

    def spin(self, step: Spindle, now: int) -> Refused | None:
        self._core.state.spindle = step.direction
        self._core.changed(now, "spindle")
        return None

    def cool(self, step: Coolant, now: int) -> Refused | None:
        self._core.state.mist, self._core.state.flood = step.mist, step.flood
        self._core.changed(now, "coolant")
        return None

    def switch_off(self, now: int) -> None:
        self._core.silence(now)

    def probed(self, step: Probed, now: int) -> Refused | None:
        core = self._core
        core.state.probe, core.state.touched = core.position(now), step.touched
        if step.early:
            core.lock(PROBE_TOUCHES, now)
            return None
        if step.required and not step.touched:
            core.lock(PROBE_FAILED, now)
        core.emit(Notice("probe"), now)
        return None

    def tell(self, step: Step, now: int) -> None:
        core = self._core
        if isinstance(step, ask.Message):
            core.emit(Notice("message", text=step.text), now)
        elif isinstance(step, ask.ProgramEnd):
            core.changed(now, "offset", "spindle", "coolant")
            core.state.feed_allowed = core.state.speed_allowed = True
            core.news("program end", now)
        elif isinstance(step, ask.OffsetsChanged | SystemChosen):
            self._shifted(isinstance(step, SystemChosen), now)
        elif isinstance(step, ask.WaitInput):
            core.state.result = core.runner.state.result
            core.changed(now, "input")
        elif isinstance(step, ask.Overrides):
            self._allow_overrides(step, now)
        elif isinstance(step, ask.ToolSelect):
            core.changed(now, "tool")
        elif isinstance(step, ask.ToolChange):
            self._change_tool(step, now)

    def finished(self, entry: Entry, refused: Refused | None, now: int) -> None:
        if not over_a_wire(entry):
            return
        core, state = self._core, self._core.state
        if refused == DROPPED and not (state.door or state.ending == "cancel"):
            core.emit(Notice("void"), now)
            return
        code = refused.code if refused and refused != DROPPED else 0
        if isinstance(entry, Homing):
            self._answered(code, now)
            return
        if code < 0 and entry.how == "jog":
            code = TRAVEL
        if code < 0:
            state.pending, state.ending = -code, "alarm"
            core.runner.stop(now, silent=False)
            core.stir(now)
            return
        if entry.how == "jog" and not code:
            state.jogging = state.jogging or core.moving(now)
        elif not code:
            self._note_number(entry)
        self._conclude(entry.number, code, now)

    # ── inside ──

    def _number(self) -> int:
        self._core.state.lines += 1
        return self._core.plant.first_line + self._core.state.lines

    def _submit(self, entry: Entry, now: int) -> None:
        self._core.plant.energize(now)
        self._taking = True
        self._core.runner.submit(entry, now)
        self._taking = False

    def _conclude(self, number: int, code: int, now: int) -> None:
        """Tell whoever is waiting for this line: the client, or the store of start-up lines."""
        state = self._core.state
        own = next((text for started, text in state.starting if started == number), None)
        if own is not None:
            state.starting = [item for item in state.starting if item[0] != number]
            self._core.emit(Notice("startup", code, own), now)
            return
        if state.storing is not None and state.storing[0] == number:
            _, index, text = state.storing
            state.storing = None
            if not code:
                state.startup = [*state.startup[:index], text, *state.startup[index + 1 :]]
        self._answered(code, now)

    def _answered(self, code: int, now: int) -> None:
        self._core.answer(code, now)
        if not self._taking:
            self._core.stir(now)

    def _note_number(self, entry: Line) -> None:
        """Remember the N of what is queued; what has been run is forgotten."""
        state, number = self._core.state, self._core.runner.state.modal.line
        if not (number or state.numbered):
            return
        at = self._core.runner.queue.lines_ahead()
        state.numbered = [item for item in state.numbered if item[0] in at]
        if number:
            state.numbered.append((entry.number, number))

    def _shifted(self, chosen: bool, now: int) -> None:
        state, modal = self._core.state, self._core.runner.state.modal
        if chosen or modal.coordinates != state.system:
            self._core.changed(now, "system", "offset")
        elif work_offset(modal) != state.shift:
            self._core.changed(now, "offset")
        state.system, state.shift = modal.coordinates, work_offset(modal)

    def _allow_overrides(self, step: ask.Overrides, now: int) -> None:
        core, state = self._core, self._core.state
        if step.feed != state.feed_allowed:
            state.feed_allowed = step.feed
            core.set_pace(now)
        if step.rests:
            return
        if step.speed != state.speed_allowed:
            core.changed(now, "overrides")
        state.speed_allowed, state.hold_allowed = step.speed, step.hold

    def _change_tool(self, change: ask.ToolChange, now: int) -> None:
        """Over the wire somebody must say that the tool is there; in process it just is."""
        if change.physical and over_a_wire(self._core.runner.state.current):
            self._core.state.tool = change.previous
        else:
            self._core.changed(now, "tool")
