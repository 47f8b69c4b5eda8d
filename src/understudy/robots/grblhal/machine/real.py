"""A REAL machine under grblHAL: its driver, and the operator's actions on it."""

import math
from collections.abc import Sequence

from understudy.config import CellConfig
from understudy.errors import Refused
from understudy.gcode.blocks import number_text
from understudy.ports.operation import AxisReading, Condition, Frame, Jog, RealClient, Target
from understudy.robots.grblhal.driver import Config as DriverConfig
from understudy.robots.grblhal.driver import GrblHalDriver, build
from understudy.robots.grblhal.language import GcodeLanguage
from understudy.robots.grblhal.machine.machine import UNITS, Machine
from understudy.robots.grblhal.numbers import AXIS_LETTERS
from understudy.robots.grblhal.operator import AXES_ONLY, condition_of
from understudy.simulation.program.run import ProgramRun
from understudy.space.pose import Pose
from understudy.units import MINUTE

POSITION_UNKNOWN = Refused("the machine has not reported its position: wait until it is connected")


class RealMachineActions:
    """`OperatorActions` of a machine behind a driver: m and rad inside, mm and deg on its wire.

    Steps and moves are lines in machine coordinates (G53), so that no offset shifts them. They name
    the axes that the machine has, and no others.
    """

    frames: tuple[Frame, ...] = ("joint",)

    def __init__(self, driver: GrblHalDriver) -> None:
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


def real_client(config: CellConfig, name: str, machine: Machine) -> RealClient:
    """The driver, with the units and pin names of the simulated machine."""
    io = machine.io
    settings = DriverConfig(
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
