"""The simulated vacuum cup: ejector, blow-off, vacuum switch and the part under the cup.

The pressure is an exponential function of time between two changes of valve, seal or air; the times
at which it passes a level are computed from it.
"""

import math
from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from understudy.devices.gripper import PNEUMATIC_FAULTS, Config
from understudy.devices.gripper.grasp import (
    STANDARD_GRAVITY,
    WATCH_PERIOD,
    Grasp,
    Vector,
    Watch,
    cup_carries,
    is_weak,
    seals,
)
from understudy.devices.gripper.valves import ns
from understudy.errors import Refused
from understudy.ports import FaultSource
from understudy.ports.device import Mount
from understudy.ports.faults import Faults
from understudy.ports.io import DevicePins, PinChange
from understudy.ports.workpieces import WorkpieceReading
from understudy.units import DEG, MM, NS_PER_SECOND, whole_ns

KPA = 1e3
SLACK = 1e-9
"""kPa of rounding error."""
NO_PART_HELD = Refused("the gripper holds no part")
OWN_FAULTS: Faults = {
    name: fault
    for name, fault in PNEUMATIC_FAULTS.items()
    if name not in ("closed_sensor_stuck", "opened_sensor_stuck")
}


class State(Struct):
    """State of the cup in a snapshot. Times in ns, pressures in kPa, negative.

    `pump`, `blow`: what the valves let through; `shift_at`: when they follow their coils. The
    pressure goes from `start` at `begins` towards `final` with the time constant `tau` (ns).
    `part`: under the cup; `barred`: no part seals until the ejector has been off. `ok`: VACUUM_OK.
    """

    start: float = 0.0
    final: float = 0.0
    begins: int = 0
    tau: Annotated[int, Meta(ge=1)] = 1
    pump: bool = False
    blow: bool = False
    shift_at: int | None = None
    part: str = ""
    mass: float = 0.0
    held: bool = False
    barred: bool = False
    ok: bool = False
    looked: int = -1
    leak: float = 0.0
    air_lost: bool = False
    valve_stuck: bool = False
    stuck: bool | None = None
    watch: Watch = msgspec.field(default_factory=Watch)


class CupHardware:
    """`Hardware` that reads VACUUM_ON and BLOW_OFF and drives VACUUM_OK and the analog sensor."""

    def __init__(self, name: str, config: Config, mount: Mount) -> None:
        self._name = name
        self._pins, self._cup = config.pins, config.cup
        self._io: DevicePins = mount.needed_pins()
        self._fault_source: FaultSource = mount.fault_source
        self._grasp = Grasp(mount)
        self.state = State()
        self._radius = self._cup.diameter_mm * MM / 2.0
        self._area = math.pi * self._radius**2
        self._on_kpa = config.vacuum_threshold_kpa
        self._off_kpa = min(config.vacuum_threshold_kpa + config.vacuum_hysteresis_kpa, 0.0)
        self._io.own(self._pins.vacuum_ok)
        calibration = config.calibration
        self._io.drive_analog(
            self._pins.vacuum, lambda now: calibration.vacuum_v(self.pressure(now))
        )
        self._io.on_change(self._pin_changed)

    # ── valves ──

    def _pin_changed(self, change: PinChange) -> None:
        if change.bank == "DO" and change.pin in (self._pins.vacuum_on, self._pins.blow_off):
            self.state.shift_at = change.at + ns(self._cup.valve_delay_ms)

    def _shift(self, now: int) -> None:
        state = self.state
        state.shift_at = None
        if state.valve_stuck:
            return
        pump = self._io.digital_output(self._pins.vacuum_on)
        state.blow = self._io.digital_output(self._pins.blow_off) and not pump
        if pump and not state.pump:
            state.pump = True
            self._search(now)
        elif not pump and state.pump:
            state.pump = state.barred = False
            if not state.held:
                state.part, state.watch = "", Watch()
        self._plan(now)

    # ── pressure ──

    def pressure(self, now: int) -> float:
        """kPa, negative."""
        state = self.state
        left = math.exp(-max(now - state.begins, 0) / state.tau)
        return state.final + (state.start - state.final) * left

    def _plan(self, now: int) -> None:
        """Continues from the present pressure as valves, seal and air demand."""
        state, cup = self.state, self._cup
        state.start, state.begins = self.pressure(now), now
        state.final, state.tau = 0.0, ns(cup.vent_ms)
        if state.pump and not state.air_lost:
            sealed = cup.sealed_kpa * (1.0 - state.leak)
            state.final = sealed if state.part else max(cup.open_kpa, sealed)
            state.tau = ns(cup.evacuation_ms)
        elif state.pump and state.part:
            held_s = cup.hold_s * (1.0 - state.leak)
            state.tau = max(round(held_s * NS_PER_SECOND), ns(cup.vent_ms))
        elif state.blow and not state.air_lost:
            state.tau = ns(cup.blow_ms)
        self._look(now)

    def _passes(self, kpa: float) -> int | None:
        """When the pressure has passed this level; None if it never does."""
        state = self.state
        way = state.start - state.final
        share = (kpa - state.final) / way if way else 0.0
        if not 0.0 < share < 1.0:
            return None
        return state.begins + whole_ns(-math.log(share) * state.tau / NS_PER_SECOND) + 1

    def force(self, now: int) -> float:
        return -self.pressure(now) * KPA * self._area

    def _lift_kpa(self) -> float:
        """The pressure that carries the weight of the part under the cup."""
        return -self.state.mass * STANDARD_GRAVITY / (self._area * KPA)

    # ── component ──

    def _search(self, now: int) -> bool:
        """Looks for a part under the cup; without one it looks again after a period."""
        state = self.state
        state.watch = Watch(at=now + WATCH_PERIOD)
        part = None if state.barred else self._part_below(now)
        if part is None:
            return False
        if self._fault_source.draw_fault("grip_miss", self._name, now) is not None:
            state.barred = True
            return False
        state.part, state.mass = part.name, part.mass
        self._grasp.start(state.watch, now)
        return True

    def _part_below(self, now: int) -> WorkpieceReading | None:
        tool, reach = self._grasp.tool(now), self._cup.reach_mm * MM
        if tool is None:
            return None
        size = 2.0 * self._radius
        for part in self._grasp.found((size, size, 2.0 * reach), now):
            tilt = self._cup.tilt_deg * DEG
            if seals(tool, part, radius=self._radius, reach=reach, tilt=tilt):
                return part
        return None

    def _take(self, now: int) -> None:
        """Lifts the part under the cup, if it is still there."""
        state = self.state
        part = self._part_below(now)
        if part is None or part.name != state.part:
            self._leave(now)
            return
        state.held = True
        self._grasp.take(part.name, now)
        if is_weak(part.mass, -self._cup.sealed_kpa * (1.0 - state.leak) * KPA * self._area):
            self._grasp.start(state.watch, now)
        else:
            state.watch = Watch()

    def _lose(self, now: int) -> None:
        """The part falls off; it does not come back while the ejector stays on."""
        state = self.state
        held, state.held = state.held, False
        state.part, state.watch, state.barred = "", Watch(), state.pump
        if held:
            self._grasp.let_go(now)
        self._plan(now)

    def _watch(self, now: int) -> None:
        state = self.state
        if not state.part:
            if self._search(now):
                self._plan(now)
        elif not state.held:
            state.watch.at = now + WATCH_PERIOD
            if self._grasp.moved(state.watch, now):
                self._leave(now)
        else:
            force = self.force(now)

            def carries(load: Vector, tool: Vector) -> bool:
                return cup_carries(load, tool[:, 2], force, self._cup.friction)

            if not self._grasp.carries(state.watch, state.mass, carries, now):
                self._lose(now)

    def _leave(self, now: int) -> None:
        """The cup has moved off a part that it could not lift."""
        self.state.part = ""
        self._search(now)
        self._plan(now)

    # ── levels ──

    def _look(self, now: int) -> None:
        """Acts on the pressure of this time: VACUUM_OK, and a part that is lifted or falls off."""
        state, kpa = self.state, self.pressure(now)
        state.looked = now
        if kpa <= self._on_kpa + SLACK:
            state.ok = True
        elif kpa >= self._off_kpa - SLACK:
            state.ok = False
        self._io.drive(self._pins.vacuum_ok, state.ok if state.stuck is None else state.stuck, now)
        if not state.part:
            return
        lift = self._lift_kpa()
        if not state.held and kpa <= lift:
            self._take(now)
        elif state.held and kpa >= lift + SLACK:
            self._lose(now)

    # ── time ──

    def _levels(self) -> list[int]:
        """When the pressure passes a level that matters, after the last look."""
        state = self.state
        levels = [self._on_kpa, self._off_kpa]
        if state.part:
            lift = self._lift_kpa()
            levels.append(lift + 2.0 * SLACK if state.held else lift - SLACK)
        times = [self._passes(kpa) for kpa in levels]
        return [at for at in times if at is not None and at > state.looked]

    def next_wake(self) -> int | None:
        times = (self.state.shift_at, self.state.watch.at, *self._levels())
        return min((at for at in times if at is not None), default=None)

    def wake(self, now: int) -> None:
        state = self.state
        self._look(now)
        if state.shift_at is not None and state.shift_at <= now:
            self._shift(now)
        if state.watch.at is not None and state.watch.at <= now:
            self._watch(now)

    # ── readings and faults ──

    def opening(self, now: int) -> float:
        """A cup has no fingers."""
        return 0.0

    def faults(self) -> Faults:
        return OWN_FAULTS

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        state = self.state
        if fault == "part_sensor_stuck":
            state.stuck = parameters["value"] != 0.0
            self._look(now)
        elif fault == "valve_stuck":
            state.valve_stuck = True
        elif fault == "air_lost":
            state.air_lost = True
            self._plan(now)
        elif fault == "vacuum_leak":
            state.leak = parameters["share"]
            self._plan(now)
        elif fault == "slip":
            if not state.held:
                return NO_PART_HELD
            self._lose(now)
        else:
            return Refused(f"a vacuum cup has no fault {fault}")
        return None

    def reset(self, now: int) -> None:
        """Repairs switch, valve, air and seal; a held part stays held."""
        state = self.state
        state.stuck, state.air_lost, state.leak = None, False, 0.0
        if state.valve_stuck:
            state.valve_stuck = False
            state.shift_at = now + ns(self._cup.valve_delay_ms)
        self._plan(now)

    def active_faults(self) -> list[str]:
        state = self.state
        found = {
            "VACUUM_OK is stuck": state.stuck is not None,
            "the valve is stuck": state.valve_stuck,
            "there is no compressed air": state.air_lost,
            "the cup leaks": state.leak > 0.0,
        }
        return [f"gripper fault: {text}" for text, active in found.items() if active]

    # ── part of the snapshot ──
