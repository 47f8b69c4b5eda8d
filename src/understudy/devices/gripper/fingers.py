"""The simulated two-finger gripper: valve, cylinder, end sensors, part between the fingers.

The stroke is planned when the valve shifts, up to the part or to the end, and then sampled. Levels
of sensors follow from the stroke; force and air pressure are exponential functions of time.
"""

import math
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from understudy.devices.gripper import PNEUMATIC_FAULTS, Config
from understudy.devices.gripper.actuator import Direction
from understudy.devices.gripper.grasp import (
    AXES,
    Grasp,
    Vector,
    Watch,
    fingers_carry,
    is_weak,
    span_along,
)
from understudy.devices.gripper.valves import ns
from understudy.errors import Refused
from understudy.ports import FaultSource
from understudy.ports.device import Mount
from understudy.ports.faults import Faults
from understudy.ports.io import DevicePins, PinChange
from understudy.ports.workpieces import WorkpieceReading
from understudy.units import MM, seconds, whole_ns

BAR = 1e5
SLACK = 1e-9
"""Metres of rounding error."""
SENSORS = {
    "closed_sensor_stuck": "closed",
    "opened_sensor_stuck": "opened",
    "part_sensor_stuck": "part",
}
OWN_FAULTS: Faults = {n: fault for n, fault in PNEUMATIC_FAULTS.items() if n != "vacuum_leak"}
NO_PART_HELD = Refused("the gripper holds no part")


class State(Struct):
    """State of the fingers in a snapshot. Times in ns, openings in metres.

    `valve`: its position; `shift_at`, `shift_to`: when and where it shifts. The stroke begins at
    `begins` with the opening `start` and ends at `target`, which is the width of `part` if that is
    not empty. `looked`: the levels of the sensors are those of this time.
    """

    start: float
    target: float
    begins: int = 0
    valve: Direction = "open"
    shift_at: int | None = None
    shift_to: Direction = "open"
    part: str = ""
    mass: float = 0.0
    held_since: int | None = None
    looked: int = -1
    air_lost_at: int | None = None
    valve_stuck: bool = False
    stuck: dict[str, bool] = {}
    watch: Watch = msgspec.field(default_factory=Watch)


class FingerHardware:
    """`Hardware` that reads the coils of the valve and drives the sensors."""

    def __init__(self, name: str, config: Config, mount: Mount) -> None:
        self._name = name
        self._pins, self._fingers = config.pins, config.fingers
        self._io: DevicePins = mount.needed_pins()
        self._fault_source: FaultSource = mount.fault_source
        self._grasp = Grasp(mount)
        wide = self._fingers.open_mm * MM
        self.state = State(start=wide, target=wide)
        self._force = self._fingers.pressure_bar * BAR * math.pi
        self._force *= (self._fingers.piston_mm * MM / 2.0) ** 2
        for pin in (self._pins.closed, self._pins.opened, self._pins.part):
            self._io.own(pin)
        calibration = config.calibration
        self._io.drive_analog(self._pins.force, lambda now: calibration.force_v(self.force(now)))
        self._io.on_change(self._pin_changed)
        self._look(0)

    # ── valve ──

    def _pin_changed(self, change: PinChange) -> None:
        if change.bank == "DO" and change.pin in (self._pins.close, self._pins.open):
            self._energise(change.at)

    def _energise(self, now: int) -> None:
        """The valve shifts after its delay if exactly one coil is on, and stays if none or both."""
        close, open_ = (self._io.digital_output(p) for p in (self._pins.close, self._pins.open))
        self.state.shift_at = None
        if close != open_:
            self.state.shift_to = "close" if close else "open"
            self.state.shift_at = now + ns(self._fingers.valve_delay_ms)

    def _shift(self, now: int) -> None:
        state = self.state
        state.shift_at = None
        if not state.valve_stuck and state.valve != state.shift_to:
            state.valve = state.shift_to
            self._plan(now)

    # ── stroke ──

    def opening(self, now: int) -> float:
        state = self.state
        way = state.target - state.start
        gone = self._fingers.finger_speed_mm_s * MM * seconds(max(now - state.begins, 0))
        return state.target if gone >= abs(way) else state.start + math.copysign(gone, way)

    def _reaches(self, opening: float) -> int | None:
        """When the stroke comes to this opening; None if it does not lie on its way."""
        state = self.state
        low, high = sorted((state.start, state.target))
        if not low - SLACK <= opening <= high + SLACK:
            return None
        way = abs(opening - state.start)
        return state.begins + whole_ns(way / (self._fingers.finger_speed_mm_s * MM))

    def _plan(self, now: int) -> None:
        """Cuts the stroke at ``now`` and plans the one that the valve demands."""
        state = self.state
        here = self.opening(now)
        state.start, state.begins, state.target = here, now, here
        if state.valve == "open" and state.held_since is not None:
            self._drop(now)
        if state.held_since is not None or state.air_lost_at is not None:
            return
        state.part = ""
        if state.valve == "open":
            state.target = self._fingers.open_mm * MM
        else:
            part, state.target = self._part_between(here, now)
            if part is not None and self._is_missed(now):
                part, state.target = None, min(self._fingers.closed_mm * MM, here)
            state.part = part.name if part else ""

    def _part_between(self, opening: float, now: int) -> tuple[WorkpieceReading | None, float]:
        """The part on which the fingers close, and the opening at which they then stand."""
        closed, axis = min(self._fingers.closed_mm * MM, opening), self._fingers.axis
        width, height = (size * MM for size in self._fingers.pad_mm)
        region = (opening, width, height) if axis == "x" else (width, opening, height)
        tool = self._grasp.tool(now)
        if tool is None:
            return None, closed
        for part in self._grasp.found(region, now):
            span = span_along(tool, part, axis)
            if span.width > closed:
                # A part that does not fit keeps the fingers from moving.
                return (part, span.width) if span.fits(opening) else (None, opening)
        return None, closed

    def _is_missed(self, now: int) -> bool:
        return self._fault_source.draw_fault("grip_miss", self._name, now) is not None

    def _arrive(self, now: int) -> None:
        """The stroke ends at a part: it is held if it is still there."""
        state = self.state
        part, width = self._part_between(state.start, now)
        if part is None or part.name != state.part or abs(width - state.target) > MM:
            self._plan(now)
            return
        state.start, state.held_since, state.mass = state.target, now, part.mass
        self._grasp.take(part.name, now)
        if is_weak(part.mass, 2.0 * self._fingers.friction * self._force):
            self._grasp.start(state.watch, now)

    def _drop(self, now: int) -> None:
        state = self.state
        state.held_since, state.part, state.watch = None, "", Watch()
        self._grasp.let_go(now)

    def _lose(self, now: int) -> None:
        """The part slips out; the fingers close behind it if there is air."""
        state = self.state
        self._drop(now)
        state.start, state.begins = self.opening(now), now
        if state.air_lost_at is None:
            state.target = min(self._fingers.closed_mm * MM, state.start)

    # ── force ──

    def force(self, now: int) -> float:
        """The force of each finger on the held part."""
        since = self.state.held_since
        if since is None or now < since:
            return 0.0
        rise = -math.expm1(-(now - since) / ns(self._fingers.force_rise_ms))
        return self._force * rise * self._pressure(now)

    def _pressure(self, now: int) -> float:
        """The air pressure as a share of the nominal one."""
        lost = self.state.air_lost_at
        if lost is None:
            return 1.0
        return math.exp(-seconds(max(now - lost, 0)) / self._fingers.pressure_decay_s)

    def _watch(self, now: int) -> None:
        state, force = self.state, self.force(now)

        def carries(load: Vector, tool: Vector) -> bool:
            axis = tool[:, AXES[self._fingers.axis]]
            return fingers_carry(load, axis, force, self._fingers.friction)

        if not self._grasp.carries(state.watch, state.mass, carries, now):
            self._lose(now)

    # ── sensors ──

    def _levels(self, now: int) -> dict[str, bool]:
        state, band, opening = self.state, self._fingers.sensor_mm * MM, self.opening(now)
        since, delay = state.held_since, ns(self._fingers.part_sensor_delay_ms)
        return {
            "closed": opening <= self._fingers.closed_mm * MM + band + SLACK,
            "opened": opening >= self._fingers.open_mm * MM - band - SLACK,
            "part": since is not None and now >= since + delay,
        }

    def _look(self, now: int) -> None:
        """Drives the sensors to their levels of this time."""
        self.state.looked = now
        pins = {"closed": self._pins.closed, "opened": self._pins.opened, "part": self._pins.part}
        for name, level in self._levels(now).items():
            self._io.drive(pins[name], self.state.stuck.get(name, level), now)

    # ── time ──

    def _changes(self) -> list[int]:
        """When levels of sensors change, or a part is reached, after the last look."""
        state, band = self.state, self._fingers.sensor_mm * MM
        leaving = 2.0 * SLACK  # just beyond the edge of a sensor
        low, high = self._fingers.closed_mm * MM + band, self._fingers.open_mm * MM - band
        times = [self._reaches(o) for o in (low, low + leaving, high, high - leaving)]
        if state.held_since is not None:
            times.append(state.held_since + ns(self._fingers.part_sensor_delay_ms))
        return [at for at in times if at is not None and at > state.looked]

    def _arrival(self) -> int | None:
        """When the stroke reaches the part that is not held yet."""
        waiting = self.state.part and self.state.held_since is None
        return self._reaches(self.state.target) if waiting else None

    def next_wake(self) -> int | None:
        state = self.state
        times = (state.shift_at, self._arrival(), state.watch.at, *self._changes())
        return min((at for at in times if at is not None), default=None)

    def wake(self, now: int) -> None:
        state = self.state
        arrival = self._arrival()
        if arrival is not None and arrival <= now:
            self._arrive(now)
        if state.shift_at is not None and state.shift_at <= now:
            self._shift(now)
        if state.watch.at is not None and state.watch.at <= now:
            self._watch(now)
        self._look(now)

    # ── faults ──

    def faults(self) -> Faults:
        return OWN_FAULTS

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        state = self.state
        if fault in SENSORS:
            state.stuck[SENSORS[fault]] = parameters["value"] != 0.0
        elif fault == "valve_stuck":
            state.valve_stuck = True
        elif fault == "air_lost":
            self._lose_air(now)
        elif fault == "slip":
            if state.held_since is None:
                return NO_PART_HELD
            self._lose(now)
        else:
            return Refused(f"two fingers have no fault {fault}")
        self._look(now)
        return None

    def _lose_air(self, now: int) -> None:
        state = self.state
        if state.air_lost_at is None:
            state.air_lost_at = now
            if state.held_since is None:
                state.part = ""
                state.start = state.target = self.opening(now)
                state.begins = now
            elif state.watch.at is None:
                self._grasp.start(state.watch, now)

    def reset(self, now: int) -> None:
        """Repairs sensors, valve and air; a held part stays held. A stroke that a fault had stopped
        goes on."""
        state = self.state
        was_out = state.air_lost_at is not None
        state.stuck, state.air_lost_at = {}, None
        if state.valve_stuck:
            state.valve_stuck = False
            self._energise(now)
        if was_out:
            self._plan(now)
        self._look(now)

    def active_faults(self) -> list[str]:
        state = self.state
        found = [f"the {name} sensor is stuck" for name in state.stuck]
        if state.valve_stuck:
            found.append("the valve is stuck")
        if state.air_lost_at is not None:
            found.append("there is no compressed air")
        return [f"gripper fault: {each}" for each in found]

    # ── part of the snapshot ──
