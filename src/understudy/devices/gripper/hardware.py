"""The simulated hardware of a gripper: two fingers or a vacuum cup, and what they can hold.

`Grasp` has what it needs of the cell: the parts in its reach, and how its tool moves. The stroke of
the fingers is planned when their valve shifts, up to the part or to the end, and then sampled.
Levels of sensors follow from the stroke; force and air pressure are exponential functions of time.
So is the pressure of the cup between two changes of valve, seal or air; the times at which it
passes a level are computed from it.
"""

import math
from collections.abc import Callable, Mapping
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from understudy.devices.gripper import PNEUMATIC_FAULTS, Config
from understudy.devices.gripper.actuator import Direction
from understudy.errors import Refused
from understudy.ports import FaultSource
from understudy.ports.device import Mount
from understudy.ports.faults import Faults
from understudy.ports.io import DevicePins, PinChange
from understudy.ports.workpieces import WorkpieceReading
from understudy.space.pose import Pose, pose_mm_deg
from understudy.space.transform import inverse, matrix, pose, translation
from understudy.units import DEG, MM, NS_PER_MS, NS_PER_SECOND, ms_to_ns, seconds, whole_ns

Vector = NDArray[np.float64]
STANDARD_GRAVITY = 9.80665
AXES = {"x": 0, "y": 1}


class Span(NamedTuple):
    """A part along the axis of the fingers: its width, and its centre from the tool point."""

    width: float
    offset: float

    def fits(self, opening: float) -> bool:
        """Whether it lies between two fingers that are this far apart."""
        return abs(self.offset) + self.width / 2.0 < opening / 2.0


def span_along(tool: Pose, part: WorkpieceReading, axis: str) -> Span:
    frame, own = matrix(tool), matrix(part.pose)
    along = frame[:3, AXES[axis]]
    cosines, (length, breadth, height) = np.abs(along @ own[:3, :3]), part.size
    if part.type == "cylinder":
        round_ = math.sqrt(max(1.0 - float(cosines[2]) ** 2, 0.0))
        width = length * round_ + height * float(cosines[2])
    else:
        width = float(cosines @ np.array((length, breadth, height)))
    return Span(width, float(along @ (own[:3, 3] - frame[:3, 3])))


def seals(tool: Pose, part: WorkpieceReading, *, radius: float, reach: float, tilt: float) -> bool:
    """Whether a cup at the tool point, which looks along the tool's Z, lies on a flat face of the
    part: near enough, flat enough, and with its whole rim on the face."""
    frame, own = matrix(tool), matrix(part.pose)
    cosines = frame[:3, 2] @ own[:3, :3]
    faces = int(np.argmax(np.abs(cosines)))
    if abs(cosines[faces]) < math.cos(tilt):
        return False
    beyond = (own[:3, 3] - frame[:3, 3]) @ own[:3, :3]
    size = np.array(part.size)
    gap = float(beyond[faces] * np.sign(cosines[faces]) - size[faces] / 2.0)
    on_face = np.delete(np.abs(beyond), faces) + radius
    inside = bool((on_face <= np.delete(size, faces) / 2.0).all())
    if part.type == "cylinder":
        rim = float(np.hypot(beyond[0], beyond[1])) + radius
        inside = faces == 2 and rim <= size[0] / 2.0
    return abs(gap) <= reach and inside


def load_of(mass: float, acceleration: Vector) -> Vector:
    """The force with which a lifted part must be held, in the axes of the cell."""
    load: Vector = mass * (acceleration + np.array([0.0, 0.0, STANDARD_GRAVITY]))
    return load


def fingers_carry(load: Vector, axis: Vector, force: float, friction: float) -> bool:
    """Whether two fingers that press with this force along the axis carry the load: the part of it
    along the axis is taken by a finger, the rest by friction on both."""
    along = float(load @ axis)
    across = float(np.linalg.norm(load - along * axis))
    return abs(along) <= force and across <= 2.0 * friction * force


def cup_carries(load: Vector, approach: Vector, force: float, friction: float) -> bool:
    """Whether a cup that sucks with this force against its approach direction carries the load."""
    pull = -float(load @ approach)
    across = float(np.linalg.norm(load + pull * approach))
    return pull <= force and across <= friction * (force - pull)


WATCH_PERIOD = 10 * NS_PER_MS
"""The motion of the tool is sampled once per period while it can decide about a part."""
LIFTED = 1.0 * MM
"""A part that has been moved this far does not rest on its support any more."""
HARDEST = 50.0
"""m/s²: arms accelerate a tool less than this. A grip that carries it needs no watch."""

Point = tuple[float, float, float]
Carries = Callable[[Vector, Vector], bool]
"""(load, the tool's axes as columns) → whether the grip carries it."""


def is_weak(mass: float, force: float) -> bool:
    """Whether a hard acceleration of the arm may pull a part of this mass out of the grip."""
    return force < mass * (STANDARD_GRAVITY + HARDEST)


class Watch(Struct):
    """What is known of the path of the tool since a part is held. `at`: the next sample. `home`:
    where the tool was when the watch began; `points`: the last two positions."""

    at: int | None = None
    home: Point = (0.0, 0.0, 0.0)
    points: Annotated[list[Point], Meta(max_length=2)] = []


class Grasp:
    """The parts around the tool of one robot. Without parts or a tool there is nothing to grip."""

    def __init__(self, mount: Mount) -> None:
        self._parts = mount.parts
        self._tool_pose = mount.tool_pose
        self._robot = mount.robot

    def tool(self, now: int) -> Pose | None:
        return None if self._tool_pose is None else self._tool_pose(now)

    def found(self, region: tuple[float, float, float], now: int) -> list[WorkpieceReading]:
        """The resting parts in a box around the tool point, the nearest first."""
        tool = self.tool(now)
        if self._parts is None or tool is None:
            return []
        parts = self._parts
        return [parts.reading(name, now) for name in parts.near(tool, region, now)]

    def take(self, name: str, now: int) -> None:
        if self._parts is not None:
            self._parts.take(name, self._robot, now)

    def let_go(self, now: int) -> None:
        if self._parts is not None and self._parts.held_by(self._robot):
            self._parts.let_go(self._robot, now)

    def held(self) -> str:
        """The name of the part that the robot holds; empty if there is none."""
        return "" if self._parts is None else self._parts.held_by(self._robot)

    # ── watch ──

    def start(self, watch: Watch, now: int) -> None:
        """Begins to watch the tool; the samples follow in whole periods."""
        watch.at, watch.home = now + WATCH_PERIOD, self._position(now)
        watch.points = [watch.home]

    def _position(self, now: int) -> Point:
        tool = self.tool(now)
        return (0.0, 0.0, 0.0) if tool is None else (tool.x, tool.y, tool.z)

    def moved(self, watch: Watch, now: int) -> bool:
        """Whether the tool has left the place where the watch began."""
        away = np.subtract(self._position(now), watch.home)
        return float(np.linalg.norm(away)) > LIFTED

    def carries(self, watch: Watch, mass: float, carries: Carries, now: int) -> bool:
        """Takes a sample; whether the grip carries the part through the motion of the tool."""
        watch.at = now + WATCH_PERIOD
        here, before = self._position(now), watch.points
        watch.points = [*before, here][-2:]
        tool = self.tool(now)
        if tool is None or len(before) < 2 or not self.moved(watch, now):
            return True
        step = seconds(WATCH_PERIOD)
        acceleration = (np.array(here) - 2.0 * np.array(before[1]) + np.array(before[0])) / step**2
        return carries(load_of(mass, acceleration), matrix(tool)[:3, :3])


# ── two fingers: valve, cylinder, end sensors ─────────────────────────────────────────────────────


BAR = 1e5
NEARBY = 0.2
"""Edge of the box (m) in which a part is looked for that the cup has missed."""
SLACK = 1e-9
"""Metres of rounding error."""
SENSORS = {
    "closed_sensor_stuck": "closed",
    "opened_sensor_stuck": "opened",
    "part_sensor_stuck": "part",
}
FINGER_FAULTS: Faults = {n: fault for n, fault in PNEUMATIC_FAULTS.items() if n != "vacuum_leak"}
NO_PART_HELD = Refused("the gripper holds no part")


class FingersState(Struct):
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
        self.state = FingersState(start=wide, target=wide)
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
            self.state.shift_at = now + ms_to_ns(self._fingers.valve_delay_ms)

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
            missed = part and self._fault_source.draw_fault("grip_miss", self._name, now)
            if missed:
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
        rise = -math.expm1(-(now - since) / ms_to_ns(self._fingers.force_rise_ms))
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
        since, delay = state.held_since, ms_to_ns(self._fingers.part_sensor_delay_ms)
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
            times.append(state.held_since + ms_to_ns(self._fingers.part_sensor_delay_ms))
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
        return FINGER_FAULTS

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


# ── vacuum cup: ejector, blow-off, vacuum switch ──────────────────────────────────────────────────


KPA = 1e3
SLACK_KPA = 1e-9
"""Rounding error of a pressure."""
CUP_FAULTS: Faults = {
    name: fault
    for name, fault in PNEUMATIC_FAULTS.items()
    if name not in ("closed_sensor_stuck", "opened_sensor_stuck")
}


class CupState(Struct):
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


def on_face(tool: Pose, part: WorkpieceReading) -> tuple[Pose, float]:
    """The tool on the face of the part that it looks at, in the frame of the part, and how far
    ahead of the tool that face is (m)."""
    there = inverse(matrix(part.pose)) @ matrix(tool)
    way = there[:3, 2]
    axis = int(np.argmax(np.abs(way)))
    face = -math.copysign(part.size[axis] / 2.0, way[axis])
    missing = float((face - there[axis, 3]) / way[axis])
    return pose(there @ translation(0.0, 0.0, missing)), missing


class CupHardware:
    """`Hardware` that reads VACUUM_ON and BLOW_OFF and drives VACUUM_OK and the analog sensor."""

    def __init__(self, name: str, config: Config, mount: Mount) -> None:
        self._name = name
        self._pins, self._cup = config.pins, config.cup
        self._io: DevicePins = mount.needed_pins()
        self._fault_source: FaultSource = mount.fault_source
        self._grasp = Grasp(mount)
        self.state = CupState()
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
            self.state.shift_at = change.at + ms_to_ns(self._cup.valve_delay_ms)

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
        state.final, state.tau = 0.0, ms_to_ns(cup.vent_ms)
        if state.pump and not state.air_lost:
            sealed = cup.sealed_kpa * (1.0 - state.leak)
            state.final = sealed if state.part else max(cup.open_kpa, sealed)
            state.tau = ms_to_ns(cup.evacuation_ms)
        elif state.pump and state.part:
            held_s = cup.hold_s * (1.0 - state.leak)
            state.tau = max(round(held_s * NS_PER_SECOND), ms_to_ns(cup.vent_ms))
        elif state.blow and not state.air_lost:
            state.tau = ms_to_ns(cup.blow_ms)
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

    def miss(self, now: int) -> str:
        """Where the face of the nearest part is, and the grasp that puts the cup on it."""
        tool = self._grasp.tool(now)
        near = self._grasp.found((NEARBY, NEARBY, NEARBY), now)
        if tool is None or not near:
            return ""
        part = near[0]
        grasp, missing = on_face(tool, part)
        if abs(missing) <= self._cup.reach_mm * MM:
            return ""
        where = f"{abs(missing) / MM:.1f} mm {'ahead of' if missing > 0.0 else 'behind'} the cup"
        numbers = ", ".join(f"{round(value, 1) + 0.0:g}" for value in pose_mm_deg(grasp))
        key = f"grasps: {{{part.class_name or part.name}: {{offset_mm_deg: [{numbers}]}}}}"
        return f"the face of {part.name} is {where}; {key} puts the cup on it"

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
        if kpa <= self._on_kpa + SLACK_KPA:
            state.ok = True
        elif kpa >= self._off_kpa - SLACK_KPA:
            state.ok = False
        self._io.drive(self._pins.vacuum_ok, state.ok if state.stuck is None else state.stuck, now)
        if not state.part:
            return
        lift = self._lift_kpa()
        if not state.held and kpa <= lift:
            self._take(now)
        elif state.held and kpa >= lift + SLACK_KPA:
            self._lose(now)

    # ── time ──

    def _levels(self) -> list[int]:
        """When the pressure passes a level that matters, after the last look."""
        state = self.state
        levels = [self._on_kpa, self._off_kpa]
        if state.part:
            lift = self._lift_kpa()
            levels.append(lift + 2.0 * SLACK_KPA if state.held else lift - SLACK_KPA)
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
        return CUP_FAULTS

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
            state.shift_at = now + ms_to_ns(self._cup.valve_delay_ms)
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
