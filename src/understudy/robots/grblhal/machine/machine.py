"""A plain six-axis machine under grblHAL: X Y Z in mm, A B C in deg, and its pins."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct, structs

from understudy.devices.io.pins import Config as IoConfig
from understudy.devices.io.virtual_io import VirtualIO
from understudy.errors import ConfigError, Refused
from understudy.gcode import GRBLHAL_MACHINE, ZERO, Dialect, Modal
from understudy.motion.path import Floats
from understudy.motion.stream import FIRMWARE_COMMIT, Queue, Stream
from understudy.ports import Deps, Part
from understudy.ports.faults import EMERGENCY_STOP, Faults
from understudy.ports.hmi import Pins, RobotView
from understudy.robots.grblhal.controller import FirmwareReading
from understudy.robots.grblhal.firmware import ControlledAxes, Firmware, SettingValues
from understudy.robots.grblhal.firmware import State as SavedFirmware
from understudy.robots.grblhal.machine.mover import TravelMover
from understudy.robots.grblhal.numbers import AlarmCode, SettingNumber
from understudy.robots.grblhal.settings import DEFAULTS, Settings
from understudy.simulation.program.runner import Runner
from understudy.simulation.program.steps import ControllerOptions, ProgramHooks
from understudy.simulation.program.steps import State as SavedProgram
from understudy.units import DEG, MINUTE, MM, nanoseconds

HOMING_SEARCH = 1.5
"""An axis searches for its switch over its travel times this factor."""
FIRST_HOMED = 2
"""Z, the axis that homes first."""
LINEAR_AXES = 3
UNITS = (MM, MM, MM, DEG, DEG, DEG)


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The machine in a cell file.

    `settings`: by grblHAL's numbers, where they differ from the firmware's defaults.
    `wired`: each input is wired to the output of the same number.
    """

    settings: dict[int, float] = {}
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


class Saved(Struct):
    """Snapshot of a machine."""

    firmware: SavedFirmware
    program: SavedProgram


class Machine:
    """`Part` and `GrblRobot`."""

    def __init__(self, name: str, config: Config) -> None:
        self.name = name
        self.io = pins_of(config)
        self.parts: dict[str, Part] = {"io": self.io}
        self._config = config
        self._mover = TravelMover.of(Settings())
        self._defaults = {**DEFAULTS, **config.settings}
        axes = ControlledAxes(
            unit=1.0,
            defaults=self._defaults,
            change=_changed,
            build=self._rebuild,
            on_steps=lambda position: self._mover.on_steps(position),
            homing=_search_seconds,
        )
        self.firmware = Firmware(axes, self._runner)

    # ── part ──

    def next_wake(self) -> int | None:
        return self.firmware.next_wake()

    def wake(self, now: int) -> None:
        self.firmware.wake(now)

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
            moving=self.firmware.moving(now),
            tool=reading.tool,
            line=reading.line,
            ghost=_si(plan.target.tolist()) if nanoseconds(plan.ends) > now else None,
            io=Pins(digital.inputs, digital.outputs),
            linear=LINEAR_AXES,
        )

    def faults(self) -> Faults:
        return EMERGENCY_STOP

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        if fault == "emergency_stop":
            self.firmware.emergency_stop(AlarmCode.ESTOP, now)
        else:
            self.firmware.release(now)
        return None

    def save(self) -> Saved:
        return Saved(self.firmware.save(), self.firmware.runner.save())

    def load(self, state: Any) -> None:
        saved = msgspec.convert(state, Saved)
        self.firmware.load(saved.firmware)
        settings = self.firmware.storage.settings()
        self.firmware.runner.adopt(*self._rebuild(settings, np.zeros(6), 0.0))
        self.firmware.runner.load(saved.program)

    # ── inside ──

    def _runner(self, hooks: ProgramHooks) -> Runner:
        options, queue = self._rebuild(self._defaults, np.zeros(6), 0.0)
        mount = lambda tool: self._mover  # noqa: E731
        return Runner(options, io=self.io, queue=queue, mount=mount, hooks=hooks)

    def _rebuild(
        self, values: SettingValues, position: Floats, at: float
    ) -> tuple[ControllerOptions, Queue]:
        settings = Settings(dict(values))
        self._mover = TravelMover.of(settings)
        dialect = dialect_of(self._config, settings)
        options = ControllerOptions(
            dialect=dialect,
            modal=Modal(),
            home=ZERO,
            homing_share=1.0,
            deviation=settings.junction_deviation,
            wire=dialect,
            rests_at_offsets=settings.rests_at_offsets,
            probes_overridden=settings.probes_overridden,
        )
        stream = Stream(
            position,
            settings.limits,
            window=settings.planner_blocks,
            commit=FIRMWARE_COMMIT,
            at=at,
        )
        return options, Queue(stream)


def build(name: str, config: Config, deps: Deps) -> Machine:
    settings_of(config)
    return Machine(name, config)


def settings_of(config: Config) -> Settings:
    """Settings of the cell file; a value that the firmware refuses is a ConfigError."""
    for number, value in config.settings.items():
        refused = Settings().changed(number, f"{value:g}")
        if isinstance(refused, Refused):
            raise ConfigError(refused.reason, key="settings", value=f"${number}={value:g}")
    return Settings(config.settings)


def dialect_of(config: Config, settings: Settings) -> Dialect:
    """The firmware's dialect, with the axes and pins of this machine."""
    return structs.replace(
        GRBLHAL_MACHINE,
        rotary=settings.rotary,
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


def _search_seconds(values: SettingValues) -> float:
    """Seconds until the first axis gives up the search for its switch."""
    travel = values[SettingNumber.TRAVEL + FIRST_HOMED]
    return HOMING_SEARCH * travel / values[SettingNumber.HOMING_SEEK_RATE] * MINUTE


def _si(position: Sequence[float]) -> tuple[float, ...]:
    return tuple(value * unit for value, unit in zip(position, UNITS, strict=True))
