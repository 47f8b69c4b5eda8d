"""Operator actions on a plain machine under grblHAL, simulated or REAL, and programs on it.

A program is sent line by line, as a sender does: each line goes out when the one before it is
answered; `error:n` ends the program. Lines get the N word of their line in the file, so that status
reports (`Ln:`) show it.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from understudy.errors import Refused
from understudy.gcode import Problem, parse
from understudy.gcode.blocks import number_text
from understudy.ports import ControllerStatus
from understudy.ports.operation import (
    AxisReading,
    Condition,
    Frame,
    Jog,
    ModelAxis,
    RealClient,
    RobotModel,
    Target,
)
from understudy.robots.grblhal.controller import Notice, Override
from understudy.robots.grblhal.language import GcodeLanguage
from understudy.robots.grblhal.machine.machine import UNITS, Machine
from understudy.robots.grblhal.numbers import AXIS_LETTERS, ERRORS, OVERRIDE_RANGES, SettingNumber
from understudy.simulation.program.run import OLDEST, LineFeed, ProgramRun
from understudy.space.pose import Pose
from understudy.units import MINUTE

if TYPE_CHECKING:
    from understudy.config import CellConfig
    from understudy.robots.grblhal.driver import GrblHalDriver

AXES_ONLY = Refused("a machine has axes, not a pose: give joints_deg (mm for X Y Z, deg for A B C)")
POSITION_UNKNOWN = Refused("the machine has not reported its position: wait until it is connected")
NOT_NOW = Refused("the machine accepts no line now: it holds, waits or executes another line")


def condition_of(status: ControllerStatus) -> Condition:
    """The condition of a robot, from the status of its controller."""
    return Condition(
        state=status.state,
        moving=status.moving,
        connected=status.connected,
        enabled=status.enabled,
        error=status.error_message,
        code=status.error_code,
        line=status.line,
    )


class MachineActions:
    """`OperatorActions` of a machine: m and rad inside, mm and deg on its wire."""

    frames: tuple[Frame, ...] = ("joint",)

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._firmware = machine.firmware
        self._answer: int | None = None
        self._listens = False
        self.hold = self._firmware.realtime.hold
        self.cycle_start = self._firmware.realtime.start
        self.stop = self._firmware.realtime.stop
        self.stop_jog = self._firmware.realtime.cancel_jog

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

    def reset(self, now: int) -> None:
        self._machine.reset(now)

    # ── lines ──

    def send_gcode(self, text: str, now: int) -> Refused | None:
        if refused := self._firmware.lines.gcode_refusal(now):
            return refused
        return self._send(self._firmware.lines.execute, text, now)

    def home(self, axis: int, now: int) -> Refused | None:
        letters = AXIS_LETTERS[axis] if 0 <= axis < len(AXIS_LETTERS) else ""
        return self._send(self._firmware.lines.home, letters, now)

    def override_feed(self, percent: float, now: int) -> Refused | None:
        return self._override("feed", percent, now)

    def override_rapid(self, percent: float, now: int) -> Refused | None:
        return self._override("rapid", percent, now)

    def move_to(self, target: Target, now: int) -> Refused | None:
        if target.joints is None:
            return AXES_ONLY
        axes = np.array(target.joints) / UNITS
        words = " ".join(f"{a}{number_text(v)}" for a, v in zip(AXIS_LETTERS, axes, strict=True))
        return self.send_gcode(f"G21 G90 G53 G0 {words}", now)

    def jog(self, jog: Jog, now: int) -> Refused | None:
        """Jog one axis."""
        if not 0 <= jog.axis < len(UNITS):
            return Refused(f"axis {jog.axis}: the machine has axes 0…{len(UNITS) - 1}")
        unit = UNITS[jog.axis]
        step = jog.step if jog.step is not None else self._travel(jog.axis)
        signed = number_text(round(np.copysign(step, jog.speed) / unit, 6))
        feed = number_text(round(abs(jog.speed) / unit * MINUTE, 6))
        line = f"G21 G91 {AXIS_LETTERS[jog.axis]}{signed} F{feed}"
        return self._send(self._firmware.lines.jog, line, now)

    # ── inside ──

    def _travel(self, axis: int) -> float:
        """Length of the axis."""
        settings = self._firmware.storage.settings()
        return float(settings.get(SettingNumber.TRAVEL + axis, 0.0)) * UNITS[axis]

    def _override(self, what: Override, percent: float, now: int) -> Refused | None:
        low, high = OVERRIDE_RANGES[what]
        if not low <= percent <= high:
            return Refused(f"{percent:g} % is outside {low:g}…{high:g} %")
        self._firmware.switches.override(what, round(percent), now)
        return None

    def _send(self, take: Callable[[str, int], None], text: str, now: int) -> Refused | None:
        """Pass a line of the operator to the firmware; return its refusal if it answers at once."""
        if not self._firmware.lines.accepts_line(now):
            return NOT_NOW
        if not self._listens:
            self._listens = True
            self._firmware.listen(self._receive)
        self._answer = None
        take(text, now)
        code, self._answer = self._answer, None
        return Refused(f"error:{code} ({text})", code) if code else None

    def _receive(self, notice: Notice, now: int) -> None:
        if notice.kind == "answer":
            self._answer = notice.code


AXES = (
    ModelAxis("X", "prismatic", (1.0, 0.0, 0.0)),
    ModelAxis("Y", "prismatic", (0.0, 1.0, 0.0)),
    ModelAxis("Z", "prismatic", (0.0, 0.0, 1.0)),
    ModelAxis("A", "revolute", (1.0, 0.0, 0.0)),
    ModelAxis("B", "revolute", (0.0, 1.0, 0.0)),
    ModelAxis("C", "revolute", (0.0, 0.0, 1.0)),
)


def model_of(machine: Machine) -> RobotModel:
    """The model of the machine: three linear and three rotary axes, without a chain of links."""

    def overrides(now: int) -> dict[str, float]:
        feed, rapid, _ = machine.firmware.reading(now).overrides
        return {"feed": float(feed), "rapid": float(rapid)}

    return RobotModel(
        axes=AXES, tool=lambda now: machine.firmware.reading(now).tool, overrides=overrides
    )


# ── a REAL machine ────────────────────────────────────────────────────────────────────────────────


class RealMachineActions:
    """`OperatorActions` of a machine behind a driver: m and rad inside, mm and deg on its wire.

    Steps and moves are lines in machine coordinates (G53), so that no offset shifts them. They name
    the axes that the machine has, and no others.
    """

    frames: tuple[Frame, ...] = ("joint",)

    def __init__(self, driver: "GrblHalDriver") -> None:
        self._driver = driver
        self.disable = driver.disable
        self.hold = driver.hold
        self.cycle_start = driver.cycle_start
        self.override_feed = driver.override_feed
        self.override_rapid = driver.override_rapid
        self.send_gcode = driver.send_gcode
        self.stop = driver.stop
        self.stop_jog = driver.stop_jog
        self.emergency_stop = driver.emergency_stop
        self.reset = driver.reset

    def condition(self, now: int) -> Condition:
        return condition_of(self._driver.status(now))

    def axis_reading(self, now: int) -> AxisReading:
        axes = self._driver.joint_state(now)
        return AxisReading(axes.positions, axes.velocities, (), self._driver.tcp(now))

    def enable(self, now: int) -> Refused | None:
        if not self._driver.is_connected() and (refused := self._driver.connect(now)):
            return refused
        return self._driver.enable(now)

    def home(self, axis: int, now: int) -> Refused | None:
        return self._driver.home(now, axis)

    def move_to(self, target: Target, now: int) -> Refused | None:
        return AXES_ONLY if target.joints is None else self._go("G0", target.joints, "", now)

    def jog(self, jog: Jog, now: int) -> Refused | None:
        """Jogs one axis: until `stop_jog`, or by a step."""
        if jog.step is None:
            return self._driver.jog(jog.axis, jog.speed, now)
        axes = list(self._driver.joint_state(now).positions)
        if not all(map(math.isfinite, axes)):
            return POSITION_UNKNOWN
        if not 0 <= jog.axis < self._driver.axis_count():
            return Refused(
                f"axis {jog.axis}: the machine has axes 0…{self._driver.axis_count() - 1}"
            )
        axes[jog.axis] += math.copysign(jog.step, jog.speed)
        feed = number_text(round(abs(jog.speed) / UNITS[jog.axis] * MINUTE, 6))
        return self._go("G1", axes, f" F{feed}", now)

    def _go(self, word: str, axes: Sequence[float], feed: str, now: int) -> Refused | None:
        rows = list(zip(AXIS_LETTERS, axes, UNITS, strict=True))[: self._driver.axis_count()]
        words = " ".join(letter + number_text(round(at / unit, 6)) for letter, at, unit in rows)
        return self._driver.send_gcode(f"G21 G90 G94 G53 {word} {words}{feed}", now)


def real_client(config: "CellConfig", name: str, machine: Machine) -> RealClient:
    """The driver, with the units and pin names of the simulated machine."""
    from understudy.robots.grblhal.driver import Config, build

    io = machine.io
    settings = Config(
        fewer_axes=True,
        digital_output_names={io.do.name(pin): pin for pin in range(io.do.count)},
        analog_output_names={io.ao.name(pin): pin for pin in range(io.ao.count)},
    )
    driver = build(settings, tool_pose=lambda axes: Pose(*axes), units=UNITS)
    return RealClient(
        driver,
        RealMachineActions(driver),
        program=ProgramRun(driver, GcodeLanguage(machine.firmware.runner.options.wire)),
        connect=driver.connect,
        disconnect=driver.disconnect,
    )


# ── programs ──────────────────────────────────────────────────────────────────────────────────────


OWN_NUMBER = re.compile(r"(\s*/?)\s*(?:[Nn]\s*[0-9.]+)?(.*)", re.DOTALL)
DROPPED = Refused("the machine has dropped the line")


class LineSender:
    """`LineRobot`: one line at a time, the next one after its answer."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._firmware = machine.firmware

    def has_room(self, opened: int, now: int) -> bool:
        lines = self._firmware.lines
        free = opened == 0 and lines.accepts_line(now)
        return free and lines.gcode_refusal(now) is None

    def take(self, text: str, number: int, now: int) -> Sequence[int] | Refused:
        self._firmware.lines.execute(self._numbered(text, number), now)
        return (number or OLDEST,)

    def line(self, now: int) -> int:
        return self._firmware.reading(now).line

    def stops(self) -> int:
        return self._firmware.runner.state.stops

    def drop(self, now: int) -> None:
        """Nothing: the machine finishes the lines that it has accepted; an alarm drops them."""

    def report_to(self, feed: LineFeed) -> None:
        def receive(notice: Notice, now: int) -> None:
            if notice.kind == "answer":
                feed.finished(OLDEST, _refusal(notice.code), now)
            elif notice.kind == "void":
                feed.finished(OLDEST, DROPPED, now)
            elif notice.kind == "settled":
                feed.changed(now)

        self._firmware.listen(receive)

    def _numbered(self, text: str, number: int) -> str:
        """The line with its number as N word, if the firmware reads it as the same line."""
        dialect = self._firmware.runner.options.wire
        block = parse(text, dialect)
        found = OWN_NUMBER.fullmatch(text)
        if isinstance(block, Problem) or not number or found is None:
            return text
        if not (block.commands or block.values):
            return text
        numbered = f"{found[1]}N{number} {found[2].lstrip()}"
        return text if isinstance(parse(numbered, dialect), Problem) else numbered


def _refusal(code: int) -> Refused | None:
    return Refused(f"error:{code} ({ERRORS.get(code, 'unknown')})", code) if code else None


def program_run(machine: Machine) -> ProgramRun:
    feed = LineFeed(MachineActions(machine), LineSender(machine), machine.io.digital)
    return ProgramRun(feed, GcodeLanguage(machine.firmware.runner.options.wire))
