"""Beside an arm: the torch on its pins, and whoever listens on a wire."""

from collections.abc import Callable

from understudy.devices.io.virtual_io import VirtualIO
from understudy.errors import Refused
from understudy.gcode.requests import Coolant, Spindle, ToolChange
from understudy.simulation.program.steps import Entry, GcodeLine, Probed, ProgramHooks, Step

ARC_START, GAS = 0, 1
PROBE_FAILED = Refused("the probe met nothing on its way", 5)
PROBE_TOUCHES = Refused("the probe answered before the move", 4)


class ArmAttendant:
    """`ProgramHooks` of an arm's program; ``wire`` hears everything, too."""

    def __init__(self, io: VirtualIO, failed: Callable[[], None]) -> None:
        self._io = io
        self._failed = failed
        self.wire: ProgramHooks | None = None
        self.retooled: Callable[[int], None] = lambda now: None

    def set_spindle(self, step: Spindle, now: int) -> Refused | None:
        if self.wire:
            self.wire.set_spindle(step, now)
        return self._io.set_digital_output(ARC_START, step.direction != "M5", now)

    def set_coolant(self, step: Coolant, now: int) -> Refused | None:
        if self.wire:
            self.wire.set_coolant(step, now)
        return self._io.set_digital_output(GAS, step.mist or step.flood, now)

    def switch_off(self, now: int) -> None:
        if self.wire:
            self.wire.switch_off(now)
        for pin in (ARC_START, GAS):
            self._io.set_digital_output(pin, False, now)

    def switch(self, arc: bool, gas: bool, now: int) -> None:
        """By hand, on the wire: the torch follows."""
        self._io.set_digital_output(ARC_START, arc, now)
        self._io.set_digital_output(GAS, gas, now)

    def probe_ended(self, step: Probed, now: int) -> Refused | None:
        if self.wire and step.over_wire:
            return self.wire.probe_ended(step, now)
        if step.early:
            return PROBE_TOUCHES
        return PROBE_FAILED if step.required and not step.touched else None

    def report(self, step: Step, now: int) -> None:
        if isinstance(step, ToolChange):
            self.retooled(now)
        if self.wire:
            self.wire.report(step, now)

    def finished(self, entry: Entry, refused: Refused | None, now: int) -> None:
        if self.wire:
            self.wire.finished(entry, refused, now)
        if refused and (not isinstance(entry, GcodeLine) or entry.how == "program"):
            self._failed()
