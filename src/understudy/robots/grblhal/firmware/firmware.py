"""A firmware, put together: lines, panel and memory around one program."""

from collections.abc import Callable
from typing import Any

import msgspec

from understudy.gcode.wire import Listener, Notice, Reading
from understudy.robots.grblhal.firmware.core import Core
from understudy.robots.grblhal.firmware.lines import FirmwareLines
from understudy.robots.grblhal.firmware.memory import FirmwareMemory
from understudy.robots.grblhal.firmware.panel import FirmwarePanel
from understudy.robots.grblhal.firmware.plant import Plant
from understudy.robots.grblhal.firmware.state import NO_SWITCH, State
from understudy.simulation.program.options import ProgramHooks
from understudy.simulation.program.runner import Runner
from understudy.units import seconds


class Firmware:
    """`WireController` around a runner, which it is told of as its hooks."""

    def __init__(self, plant: Plant, runner: Callable[[ProgramHooks], Runner]) -> None:
        self.core = Core(plant)
        self.lines = FirmwareLines(self.core)
        self.panel = self.knobs = FirmwarePanel(self.core, self.lines)
        self.memory = FirmwareMemory(self.core, self.lines)
        self.core.runner = runner(self.lines)

    def listen(self, listener: Listener) -> None:
        self.core.listen(listener)

    # ── time ──

    def next_wake(self) -> int | None:
        state = self.core.state
        moments = [
            self.core.runner.next_wake(),
            state.resume_at,
            state.homing_until,
            state.reviving,
        ]
        return min((moment for moment in moments if moment is not None), default=None)

    def wake(self, now: int) -> None:
        state, runner = self.core.state, self.core.runner
        due = runner.next_wake()
        if due is not None and due <= now:
            runner.run(now)
        if state.homing_until is not None and state.homing_until <= now:
            self._found_no_switch(now)
        if state.reviving is not None and state.reviving <= now:
            self.panel.revive(now)
        self.panel.rest(now)
        state.resume_at = None
        self.core.emit(Notice("settled"), now)

    # ── what can be read ──

    def reading(self, now: int) -> Reading:
        core, state = self.core, self.core.state
        runner = core.runner
        running = runner.queue.line_at(now) if core.moving(now) else 0
        modal = runner.state.modal
        switches = (("L", state.block_delete), ("T", not state.optional_stop))
        return Reading(
            state=core.condition(now),
            alarm=state.alarm if state.locked else 0,
            critical=state.critical or state.asleep,
            position=core.position(now),
            free=runner.queue.window if self._dwells(now) else runner.queue.room(now),
            window=runner.queue.window,
            line=dict(state.numbered).get(running, 0) if running else modal.line,
            feed=core.pace(now),
            speed=core.rpm(),
            spindle=state.spindle,
            flood=state.flood,
            mist=state.mist,
            overrides=(state.feed, state.rapid, state.spindle_percent),
            tool=modal.tool if state.tool is None else state.tool,
            changing=state.tool is not None,
            homed=runner.homed,
            input=state.result,
            switches="".join(letter for letter, on in switches if on)
            + ("Q" if state.single_block else ""),
            modal=modal,
            probe=state.probe,
            touched=state.touched,
        )

    def _dwells(self, now: int) -> bool:
        plan = self.core.runner.queue.plan
        return plan.ends > seconds(now) and not self.core.moving(now)

    def _found_no_switch(self, now: int) -> None:
        self.core.state.homing_until = None
        self.core.lock(NO_SWITCH, now)
        self.panel.reset(now)

    # ── snapshots ──

    def save(self) -> State:
        return msgspec.convert(msgspec.to_builtins(self.core.state), State)

    def load(self, state: Any) -> None:
        self.core.state = msgspec.convert(state, State)
