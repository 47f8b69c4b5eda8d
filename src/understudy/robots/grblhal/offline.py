"""Offline check of a plain machine under grblHAL: its settings, its planner, its pins."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from understudy.config import CellConfig
from understudy.errors import ConfigError, Refused
from understudy.gcode import GRBLHAL_MACHINE, requests
from understudy.gcode.dialect import AXIS_LETTERS
from understudy.motion.path import Path
from understudy.motion.plan import Plan
from understudy.offline.robot import NO_RULES, Machine, OfflinePins, Subject, rules_of
from understudy.offline.setup import NO_TOUCH, Delay, Mover, ProbeResult, Remark, Setup, TimedOutput
from understudy.offline.walk import Event, walk
from understudy.ports.faults import Faults
from understudy.robots.grblhal.machine.machine import (
    FAULTS,
    Config,
    dialect_of,
    modal_of,
    pins_of,
    settings_of,
)
from understudy.robots.grblhal.machine.mover import MachineMover, TravelMover
from understudy.robots.grblhal.machine.sensors import SENSOR_FAULTS
from understudy.robots.grblhal.settings import Settings, read_settings
from understudy.simulation.scenario import Config as Rules
from understudy.simulation.scenario import build
from understudy.units import nanoseconds, seconds, whole_ns

LEFT_TURNING = "the spindle is left on at the end of the program"
NO_BODY = "the machine has no body in this cell: collisions are not checked"
NO_TRAVEL = "soft limits are off ($20=0): the travel of the axes is not checked"


def machine_setup(
    config: CellConfig, robot: str, dialect: str = "", rules: Rules = NO_RULES
) -> Setup:
    """Mover, dialect and pins with which programs of a machine are checked."""
    if dialect not in ("", "grblhal"):
        allowed = "grblhal, the only dialect of a machine"
        raise ConfigError("--dialect", value=dialect, allowed=allowed)
    own: Config = config.robots[robot].config
    settings = _settings(config, robot)
    return Setup(
        TravelMover.of(settings) if settings.soft_limits else MachineMover.of(settings),
        dialect_of(own, settings),
        window=settings.planner_blocks,
        rests_at_offsets=settings.rests_at_offsets,
        modal=modal_of(own),
        devices=lambda: MachineDevices(robot, own, settings, rules, config.head.seed),
    )


def machine_subject(program: str, config: CellConfig, robot: str) -> Subject:
    settings = _settings(config, robot)
    travel = np.where(settings.travel > 0.0, settings.travel, np.inf)
    guarded = settings.soft_limits
    reach = (-travel, np.where(np.isinf(travel), np.inf, 0.0))
    endless = (np.full(len(travel), -np.inf), np.full(len(travel), np.inf))
    machine = Machine(
        tuple(AXIS_LETTERS), settings.limits, reach if guarded else endless, settings.rotary
    )
    notes = (NO_BODY,) if guarded else (NO_BODY, NO_TRAVEL)
    return Subject(program, config.name, robot, lambda tool: machine, notes=notes, numbered=True)


def _settings(config: CellConfig, robot: str) -> Settings:
    try:
        return settings_of(config.robots[robot].config)
    except ConfigError as problem:
        raise config.document.error((), problem.within(f"robots.{robot}")) from None


class MachineDevices:
    """`OfflineDevices` of one machine; the scenario rules of the machine act on it."""

    def __init__(
        self, name: str, config: Config, settings: Settings, rules: Rules, seed: int
    ) -> None:
        place = f"{name}.io"
        mine = rules_of(rules, (name, place))
        fault_source = build(mine, seed)
        self._settings = settings
        self._pins = OfflinePins(pins_of(config), mine, place)
        self._turns = False
        fault_source.act_on({name: self, place: self._pins.io})
        self._pins.join(fault_source)

    # ── devices ──

    def carry_out(self, request: requests.Request, line: int, now: float) -> Delay:
        pins, said = self._pins, ""
        pins.advance_to(whole_ns(now))
        begun = pins.now
        if isinstance(request, requests.Dwell):
            pins.advance_to(pins.now + nanoseconds(request.seconds))
        elif isinstance(request, requests.Spindle | requests.Coolant):
            self._switch(request)
        elif isinstance(request, requests.SetOutput | requests.SetAnalog):
            said = self._set_output(request)
        elif isinstance(request, requests.WaitInput):
            said = pins.wait(request)
        elif isinstance(request, requests.ProgramEnd):
            self._turns = False
        remarks = [Remark(line, "io", said, pins.seconds())] if said else []
        return Delay(seconds(pins.now - begun), (*remarks, *self._event_remarks(line)))

    def motion_ended(
        self, plan: Plan, mover: Mover, outputs: Sequence[TimedOutput]
    ) -> tuple[Remark, ...]:
        pins, remarks = self._pins, []
        for each in sorted(outputs, key=lambda one: one.time_s):
            pins.advance_to(whole_ns(each.time_s))
            if said := self._set_output(each.output):
                remarks.append(Remark(each.line, "io", said, pins.seconds()))
        pins.advance_to(whole_ns(plan.ends))
        return (*remarks, *self._event_remarks(int(plan.path.line[-1]), plan))

    def probe_end(self, probe: requests.Probe, path: Path, mover: Mover) -> ProbeResult:
        """The end of a probing move: the probe has nothing to touch."""
        return ProbeResult(path, NO_TOUCH if probe.required else "")

    def program_ended(self, line: int, now: float) -> tuple[Remark, ...]:
        self._pins.advance_to(whole_ns(now))
        left = (Remark(line, "process", LEFT_TURNING, self._pins.seconds()),)
        return (*self._event_remarks(line), *(left if self._turns else ()))

    # ── inside ──

    def _switch(self, request: requests.Spindle | requests.Coolant) -> None:
        if isinstance(request, requests.Spindle):
            self._turns = request.direction != "M5"
        waits = nanoseconds(self._settings.switch_seconds(request))
        self._pins.advance_to(self._pins.now + waits)

    def _set_output(self, output: requests.SetOutput | requests.SetAnalog) -> str:
        refused = self._pins.set_output(output)
        return refused.reason if refused else ""

    def _event_remarks(self, line: int, plan: Plan | None = None) -> list[Remark]:
        """Remarks about the events since the last call, with the line that was moving then."""
        return [
            Remark(
                (plan.line_at(seconds(at)) if plan else None) or line, "process", said, seconds(at)
            )
            for at, said in self._pins.take_events()
        ]

    # ── target of scenario rules ──

    def faults(self) -> Faults:
        return FAULTS

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        if fault in SENSOR_FAULTS:
            return None  # a program is checked without limit switches and probe
        return self._pins.inject(fault, parameters, now)

    def busy(self) -> bool:
        return False


class MachineOffline:
    """`OfflineRobot` of a plain machine."""

    has_body = False
    obeys_rules = True

    def __init__(self, config: CellConfig, robot: str) -> None:
        self._config = config
        self._robot = robot

    def subject(self, program: str) -> Subject:
        return machine_subject(program, self._config, self._robot)

    def events(self, text: str | bytes, dialect: str, rules: Rules) -> Iterator[Event]:
        return walk(text, self.setup(dialect, rules))

    def setup(self, dialect: str = "", rules: Rules = NO_RULES) -> Setup:
        return machine_setup(self._config, self._robot, dialect, rules)


def machine_of(settings: str, file: str = "") -> Setup:
    """The machine that `$n=v` lines describe: X Y Z in mm, A B C in deg, at zero."""
    values = read_settings(settings, file)
    mover = MachineMover.of(values)
    return Setup(
        mover,
        replace(GRBLHAL_MACHINE, rotary=values.rotary, chip_break_mm=values.chip_break_mm),
        window=values.planner_blocks,
        switch_seconds=values.switch_seconds,
        rests_at_offsets=values.rests_at_offsets,
    )
