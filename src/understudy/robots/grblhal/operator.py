"""Operator actions on a machine under grblHAL: lines as over its wire, buttons of its panel."""

from typing import Any, Protocol

import numpy as np

from understudy.errors import Refused
from understudy.gcode.wire import Notice, WireController
from understudy.gcode.words import number_text
from understudy.ports import Injectable
from understudy.ports.operation import AxisReading, Condition, Frame, Jog, Target
from understudy.space.pose import Pose
from understudy.units import DEG, MINUTE, MM

LETTERS = "XYZABC"
UNITS = (MM, MM, MM, DEG, DEG, DEG)
AXES_ONLY = Refused("a machine has axes, no pose: give joints_deg (mm for X Y Z, deg for A B C)")
NOT_NOW = Refused("the machine takes no line now: it holds, waits or works on one")
OVERRIDES = {"feed": (10.0, 200.0), "rapid": (5.0, 100.0)}


class Machine(Injectable, Protocol):
    """A part behind a grblHAL wire."""

    @property
    def firmware(self) -> WireController: ...


class MachineActions:
    """Axes in m and rad inside, mm and deg on its wire."""

    frames: tuple[Frame, ...] = ("joint",)

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._firmware = machine.firmware
        self._answer: int | None = None
        self._firmware.listen(self._hear)
        self.hold = self._firmware.panel.hold
        self.cycle_start = self._firmware.panel.start
        self.stop = self._firmware.panel.stop
        self.stop_jog = self._firmware.panel.cancel_jog

    def condition(self, now: int) -> Condition:
        reading = self._firmware.reading(now)
        state = reading.state.split(":")[0]
        return Condition(
            state=state,
            moving=state in ("Run", "Jog", "Home"),
            enabled=not reading.alarm,
            error=f"alarm {reading.alarm}: reset first" if reading.alarm else "",
            code=reading.alarm,
            line=reading.line,
        )

    def axis_reading(self, now: int) -> AxisReading:
        axes = self._firmware.reading(now).position
        values = tuple(value * unit for value, unit in zip(axes, UNITS, strict=True))
        return AxisReading(values, (), (), Pose(*values))

    # ── stops ──

    def emergency_stop(self, now: int) -> Refused | None:
        return self._machine.inject("emergency_stop", {}, now)

    def reset(self, now: int) -> Refused | None:
        self._machine.inject("emergency_release", {}, now)
        return self._firmware.knobs.unlock(now)

    # ── lines ──

    def send_gcode(self, text: str, now: int) -> Refused | None:
        if refused := self._firmware.lines.barred(now):
            return refused
        return self._say(self._firmware.lines.execute, text, now)

    def home(self, axis: int, now: int) -> Refused | None:
        letters = LETTERS[axis] if 0 <= axis < len(LETTERS) else ""
        return self._say(self._firmware.lines.home, letters, now)

    def override_feed(self, percent: float, now: int) -> Refused | None:
        return self._override("feed", percent, now)

    def override_rapid(self, percent: float, now: int) -> Refused | None:
        return self._override("rapid", percent, now)

    def move_to(self, target: Target, now: int) -> Refused | None:
        if target.joints is None:
            return AXES_ONLY
        # The door has turned all six into radians; three of them were millimetres.
        axes = np.array(target.joints) / DEG
        words = " ".join(f"{a}{number_text(v)}" for a, v in zip(LETTERS, axes, strict=True))
        return self.send_gcode(f"G21 G90 G53 G0 {words}", now)

    def jog(self, jog: Jog, now: int) -> Refused | None:
        """The door gives degrees; X Y Z have so many millimetres instead."""
        step = jog.step if jog.step is not None else self._travel(jog.axis)
        signed = number_text(round(np.copysign(step, jog.speed) / DEG, 6))
        feed = number_text(round(abs(jog.speed) / DEG * MINUTE, 6))
        line = f"G21 G91 {LETTERS[jog.axis]}{signed} F{feed}"
        return self._say(self._firmware.lines.jog, line, now)

    # ── inside ──

    def _travel(self, axis: int) -> float:
        """As far as the axis goes, if nothing stops it."""
        return float(self._firmware.memory.settings().get(130 + axis, 0.0)) * DEG

    def _override(self, what: Any, percent: float, now: int) -> Refused | None:
        low, high = OVERRIDES[what]
        if not low <= percent <= high:
            return Refused(f"{percent:g} % is outside {low:g}…{high:g} %")
        self._firmware.knobs.override(what, round(percent), now)
        return None

    def _say(self, take: Any, text: str, now: int) -> Refused | None:
        """A line of the desk's own; what its wire is told of it nobody there has asked for."""
        if not self._firmware.lines.listening(now):
            return NOT_NOW
        self._answer = None
        take(text, now)
        code, self._answer = self._answer, None
        return Refused(f"error:{code} ({text})", code) if code else None

    def _hear(self, notice: Notice, now: int) -> None:
        if notice.kind == "answer":
            self._answer = notice.code
