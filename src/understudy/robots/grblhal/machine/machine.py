"""A plain six-axis machine under grblHAL: X Y Z in mm, A B C in deg, and its pins."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct, structs

from understudy.errors import ConfigError, Refused
from understudy.gcode import GRBLHAL_MACHINE, ZERO, Dialect, Modal
from understudy.gcode.actions import LAST_TOOL
from understudy.gcode.blocks import number_text
from understudy.gcode.dialect import TABLE_CODES, with_pins
from understudy.gcode.modal import Tool
from understudy.motion.path import Floats
from understudy.motion.plan import Odometer, OdometerState
from understudy.motion.stream import FIRMWARE_COMMIT, Queue, Stream
from understudy.ports import Component, Deps, Tally
from understudy.ports.faults import EMERGENCY_STOP, Faults
from understudy.ports.hmi import Pins, RobotView
from understudy.robots.grblhal.controller import FirmwareReading
from understudy.robots.grblhal.firmware import (
    ControlledAxes,
    Firmware,
    FirmwareState,
    SettingValues,
)
from understudy.robots.grblhal.machine.mover import TravelMover
from understudy.robots.grblhal.machine.sensors import (
    PROBE_FAULTS,
    SENSOR_FAULTS,
    AxisLetter,
    LimitSwitches,
    MachineProbe,
    MachineSensors,
    ProbeConfig,
    ProbeFault,
    Surfaces,
    SwitchConfig,
    SwitchFaults,
    axes_of,
    check_boxes,
    check_switches,
)
from understudy.robots.grblhal.numbers import AlarmCode, ErrorCode, SettingNumber
from understudy.robots.grblhal.settings import DEFAULTS, Settings
from understudy.simulation.io.virtual_io import Config as IoConfig
from understudy.simulation.io.virtual_io import VirtualIO
from understudy.simulation.program.runner import ProgramHooks, Runner, RunnerState
from understudy.simulation.program.steps import ControllerOptions
from understudy.units import DEG, MM, nanoseconds

FAULTS: Faults = {**EMERGENCY_STOP, **SENSOR_FAULTS}
LINEAR_AXES = 3
HOMED_FOR_TOUCH_OFF = {1: 0b100, 2: 0b111, 3: 0b111}
"""Mask of the axes that have to be homed for M6, by the mode of $341."""
IGNORED_TOOL_CHANGE = 4
"""Value of $341: M6 has no effect."""
_SETTING_NUMBERS = frozenset(DEFAULTS)
UNITS = (MM, MM, MM, DEG, DEG, DEG)


ToolNumber = Annotated[int, Meta(ge=1, le=LAST_TOOL)]


class ToolConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of the tool table: its offset of X Y Z (mm), the length being that of Z."""

    name: str = ""
    offset_mm: tuple[float, float, float] = (0.0, 0.0, 0.0)
    radius_mm: float = 0.0


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The machine in a cell file.

    `settings`: by grblHAL's numbers, where they differ from the firmware's defaults. They are what
    the machine's builder has stored: `$RST=$` restores the firmware's own defaults.
    `tools`: the tool table for G43; without it the firmware has none, and G43 is error 20.
    `wired`: each input is wired to the output of the same number.
    `limit_switches`: of each axis that has one, by its letter. `starts_at`: where the axes stand at
    power-on, in mm and deg; the firmware counts from zero there until it is homed.
    `probe`: what the probe can touch.
    """

    settings: dict[int, float] = {}
    tools: dict[ToolNumber, ToolConfig] = {}
    limit_switches: dict[AxisLetter, SwitchConfig] = {}
    starts_at: dict[AxisLetter, float] = {}
    probe: ProbeConfig = ProbeConfig()
    wired: bool = True
    io: IoConfig = IoConfig(
        digital_inputs=8,
        digital_outputs=8,
        analog_inputs=4,
        analog_outputs=4,
        analog_range_v=None,
        digital_input_names={},
        digital_output_names={},
        analog_input_names={},
        analog_output_names={},
    )


class MachineState(Struct):
    """Snapshot of a machine."""

    firmware: FirmwareState
    program: RunnerState
    odometer: OdometerState
    switch_faults: SwitchFaults = SwitchFaults()
    probe_fault: ProbeFault = ""


class Machine:
    """`Component` and `GrblRobot`."""

    def __init__(self, name: str, config: Config) -> None:
        self.name = name
        self.io = pins_of(config)
        self.parts: dict[str, Component] = {"io": self.io}
        self._config = config
        self._homed = 0
        self._mover = TravelMover.of(Settings(), self._homed)
        self._switches = LimitSwitches(config.limit_switches)
        self._surfaces = Surfaces(config.probe)
        self._blocks = Settings(config.settings).planner_blocks
        axes = ControlledAxes(
            unit=1.0,
            defaults=DEFAULTS,
            stored=tuple(config.settings.items()),
            change=_changed,
            build=self._rebuild,
            on_steps=lambda position: self._mover.on_steps(position),
            sensors=MachineSensors(self._switches, self._surfaces, self._tip),
            origin=axes_of(config.starts_at),
            homed=self._note_homed,
        )
        self._odometer = Odometer(self._tip_positions)
        self.firmware = Firmware(axes, self._runner)
        self.firmware.runner.probe = MachineProbe(
            self._surfaces,
            tip=lambda counted: self._tip(self.firmware.on_machine(counted)),
            settings=lambda: Settings(self.firmware.storage.settings()),
        )

    # ── part ──

    def next_wake(self) -> int | None:
        return self.firmware.next_wake()

    def wake(self, now: int) -> None:
        self.firmware.wake(now)

    def postponed(self) -> bool:
        return self.firmware.runner.postponed

    def busy(self) -> bool:
        return self.next_wake() is not None

    def status(self, now: int) -> FirmwareReading:
        return self.firmware.reading(now)

    def view(self, now: int) -> RobotView:
        reading, digital = self.firmware.reading(now), self.io.digital()
        plan = self.firmware.runner.queue.plan
        axes = _si(reading.position)
        return RobotView(
            q=axes,
            tcp=axes,
            state=reading.state,
            moving=self.firmware.moving(now) or reading.state == "Home",
            tool=reading.tool,
            line=reading.line,
            ghost=_si(plan.target.tolist()) if nanoseconds(plan.ends) > now else None,
            io=Pins(digital.inputs, digital.outputs),
            linear=tuple(range(LINEAR_AXES)),
        )

    def on_command(self, listener: Callable[[str, int], None]) -> None:
        """Calls the listener with each command, from a client, an operator or a program."""
        self.firmware.runner.command_listeners.append(listener)

    def faults(self) -> Faults:
        return FAULTS

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        if fault == "emergency_stop":
            self.firmware.emergency_stop(AlarmCode.ESTOP, now)
        elif fault == "emergency_release":
            self.firmware.release(now)
        else:
            self._change_sensors(fault, parameters, now)
        return None

    def _change_sensors(self, fault: str, parameters: Mapping[str, float], now: int) -> None:
        """Let a switch or the probe fail, or all work again."""
        before = self.firmware.limits(now)
        if fault in PROBE_FAULTS:
            self._surfaces.fault = PROBE_FAULTS[fault]
        elif fault == "sensors_repaired":
            self._surfaces.fault, self._switches.faults = "", SwitchFaults()
        else:
            self._switches.fail(fault, int(parameters.get("axis", 0.0)))
        self.firmware.hard_limits.input_changed(before, now)

    # ── counters ──

    def tally(self, now: int) -> Tally:
        """Executed blocks, and the path of X Y Z."""
        runner = self.firmware.runner
        distance = self._odometer.at(now, runner.queue.plan.ends)
        return Tally(gcode_executed=runner.state.executed, distance=distance)

    def _mark(self, now: int) -> None:
        self._odometer.mark(now, self.firmware.runner.queue.plan.ends)

    def _tip_positions(self, times: Floats) -> Floats:
        return self.firmware.runner.queue.plan.positions(times)[:, :LINEAR_AXES] * MM

    # ── supervised ──

    def inhibit_motion(self, now: int) -> None:
        self.firmware.inhibit(now)

    def permit_motion(self, now: int) -> None:
        self.firmware.permit(now)

    def reset(self, now: int) -> None:
        """Releases the emergency stop, unlocks the firmware and clears the pins."""
        self.firmware.release(now, unlock=True)
        self.io.reset(now)

    def fault(self, now: int) -> Refused | None:
        return self.firmware.fault()

    # ── snapshots ──

    def save(self) -> MachineState:
        return MachineState(
            self.firmware.save(),
            self.firmware.runner.save(),
            self._odometer.state,
            self._switches.faults,
            self._surfaces.fault,
        )

    def load(self, state: Any) -> None:
        saved = msgspec.convert(state, MachineState)
        self.firmware.load(saved.firmware)
        self._switches.faults = saved.switch_faults
        self._surfaces.fault = saved.probe_fault
        self._homed = saved.firmware.homed
        settings = self.firmware.storage.settings()
        self.firmware.runner.adopt(*self._rebuild(settings, np.zeros(6), 0.0))
        self.firmware.runner.load(saved.program)
        self._odometer.state = saved.odometer

    # ── inside ──

    def _runner(self, hooks: ProgramHooks) -> Runner:
        options, queue = self._rebuild(self._config.settings, np.zeros(6), 0.0)
        mount = lambda tool: self._mover  # noqa: E731
        return Runner(options, io=self.io, queue=queue, mount=mount, hooks=hooks)

    def _tip(self, position: Floats) -> Floats:
        """Tip of the tool for a position of the axes on the machine; without a row in the tool
        table the tool has no length."""
        tool = self._config.tools.get(self.firmware.tool, ToolConfig())
        return np.asarray(position[:LINEAR_AXES] - np.array(tool.offset_mm))

    def _note_homed(self, axes: int) -> None:
        """Soft limits act on homed axes."""
        self._homed = axes
        self._mover = TravelMover.of(Settings(self.firmware.storage.settings()), axes)
        self.firmware.runner.remount()

    def _tool_refusal(self, settings: Settings) -> Refused | None:
        """M6 with touch off ($341) needs homed axes: Z, or X Y Z if it goes to the tool setter."""
        needed = HOMED_FOR_TOUCH_OFF.get(int(settings[SettingNumber.TOOL_CHANGE]), 0)
        if not needed & ~self._homed:
            return None
        return Refused("home the machine before M6 ($341)", ErrorCode.HOMING_REQUIRED)

    def _rebuild(
        self, values: SettingValues, position: Floats, at: float
    ) -> tuple[ControllerOptions, Queue]:
        settings = Settings(dict(values))
        self._mover = TravelMover.of(settings, self._homed)
        dialect = dialect_of(self._config, settings)
        options = ControllerOptions(
            dialect=dialect,
            modal=modal_of(self._config),
            home=ZERO,
            homing_share=1.0,
            deviation=settings.junction_deviation,
            wire=dialect,
            rests_at_offsets=settings.rests_at_offsets,
            probes_overridden=settings.probes_overridden,
            switch_seconds=settings.switch_seconds,
            tool_refusal=lambda: self._tool_refusal(settings),
        )
        stream = Stream(
            position,
            settings.limits,
            window=self._blocks,
            commit=FIRMWARE_COMMIT,
            at=at,
        )
        queue = Queue(stream)
        queue.before_change = self._mark
        return options, queue


def build(name: str, config: Config, deps: Deps) -> Machine:
    settings_of(config)
    check_switches(config.limit_switches)
    check_boxes(config.probe)
    return Machine(name, config)


def settings_of(config: Config) -> Settings:
    """Settings of the cell file; a value that the firmware refuses is a ConfigError."""
    settings = Settings()
    homing_first = sorted(config.settings, key=lambda number: number != SettingNumber.HOMING_CYCLE)
    for number in homing_first:
        text = number_text(config.settings[number])
        after = settings.changed(number, text)
        if isinstance(after, Refused):
            raise ConfigError(after.reason, key=f"settings.{number}", value=f"${number}={text}")
        settings = after
    return Settings(config.settings)


def modal_of(config: Config) -> Modal:
    """The modal state after power-on, with the tool table."""
    rows = sorted(config.tools.items())
    return Modal(
        tools=tuple(
            Tool(number, (*tool.offset_mm, 0.0, 0.0, 0.0), tool.radius_mm) for number, tool in rows
        )
    )


def dialect_of(config: Config, settings: Settings) -> Dialect:
    """The firmware's dialect, with the axes and pins of this machine."""
    machine = structs.replace(
        GRBLHAL_MACHINE,
        without=GRBLHAL_MACHINE.without - TABLE_CODES if config.tools else GRBLHAL_MACHINE.without,
        rotary=settings.rotary,
        chip_break_mm=settings.chip_break_mm,
        changes_tools=settings[SettingNumber.TOOL_CHANGE] != IGNORED_TOOL_CHANGE,
        settings=_SETTING_NUMBERS,
    )
    return with_pins(
        machine,
        digital_inputs=config.io.digital_inputs,
        digital_outputs=config.io.digital_outputs,
        analog_inputs=config.io.analog_inputs,
        analog_outputs=config.io.analog_outputs,
    )


def pins_of(config: Config) -> VirtualIO:
    """The machine's pins; if they are wired, input n follows output n."""
    io = VirtualIO(config.io)
    if not config.wired:
        return io
    for pin in range(min(io.di.count, io.do.count)):
        io.link(pin, pin, 0.0, 0)
    for channel in range(min(io.ai.count, io.ao.count)):
        io.drive_analog(channel, lambda now, at=channel: io.analog_output(at))  # type: ignore[misc]
    return io


def _changed(values: SettingValues, number: int, text: str) -> SettingValues | Refused:
    changed = Settings(dict(values)).changed(number, text)
    return changed if isinstance(changed, Refused) else dict(changed.given)


def _si(position: Sequence[float]) -> tuple[float, ...]:
    return tuple(value * unit for value, unit in zip(position, UNITS, strict=True))
