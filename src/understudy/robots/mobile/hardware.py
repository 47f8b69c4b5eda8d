"""The hardware of robots in MOCK mode: motors, inputs, outputs, sensors and battery, simulated.

`MockHardware` is the `TimedHardware` of all MOCK robots of a layout; it keeps where each robot
really is. The runtime estimates this from the wheels, as on a real robot. `Scenario` has what
happens to the robots, and when: scripts and injected faults. All entries of all profiles that have
a time are one timeline. Its state is the number of entries that have happened, and the number of
draws of each rule that waits for a command.

Inputs: one has the value that a script, a fault, a test or an operator gave it; a limit input is on
while its axis is at the bound, unless it was set. An input or output with a fault is not connected
and keeps its last value. Noise of limit inputs (`limitSensorNoise`): the time is cut into slots as
long as a tick, and in some slots the input reads the wrong value. The number of slots between two
of them is drawn, so that nothing is drawn at the other ticks.

Battery: it drains with the time and with the metres driven. A robot with an empty battery has no
connected motors; it brakes and stands.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from understudy.chance import draw
from understudy.errors import Refused
from understudy.ports import State
from understudy.robots.mobile import drive, motors, sensors
from understudy.robots.mobile.config.layout import Layout, outlines_of
from understudy.robots.mobile.config.profile import FaultRule, SimulationProfile
from understudy.robots.mobile.config.robot_file import RobotFile, ScannerConfig
from understudy.robots.mobile.field import AHEAD, HALF_LENGTH, HALF_WIDTH, outline_clearances
from understudy.robots.mobile.hardware_interface import (
    Bools,
    Bounds,
    Floats,
    MotorFault,
    Obstacles,
    RobotReadings,
    Rows,
)
from understudy.robots.mobile.motors import MockMotors, Pose
from understudy.robots.mobile.other_robots import OtherRobots
from understudy.robots.mobile.sensors import MockSensors
from understudy.robots.mobile.tables import Columns, columns, restore
from understudy.robots.mobile.world import Places, Solid, Worlds, map_of
from understudy.space.compiled import compiled
from understudy.units import LATEST, NS_PER_SECOND, nanoseconds

# ── inputs and outputs ────────────────────────────────────────────────────────────────────────────

SWITCH = 1e-3
"""Metres or radians before the bound at which a limit switch acts."""
LONGEST_GAP = 1e9
"""Slots; 50 days or more."""
LIMIT_ROLES = ("LIMIT_MIN", "LIMIT_MAX")


class Noise(Struct, frozen=True):
    """Noise of one input: in a slot it is wrong with this probability. ``name``: of its draws."""

    row: int
    seed: int
    name: str
    probability: float
    tick_hz: int

    def gap(self, index: int) -> int:
        """Slots with the right value before the next wrong one."""
        if self.probability >= 1.0:
            return 0
        right = 1.0 - draw(self.seed, self.name, index)
        return int(min(math.log(right) / math.log1p(-self.probability), LONGEST_GAP))

    def slot(self, number: int) -> int:
        """When a slot begins, in nanoseconds."""
        return -(-number * NS_PER_SECOND // self.tick_hz)


class MockIo:
    """`IoDriver` of all inputs and outputs of a layout."""

    def __init__(self, layout: Layout, seeds: Sequence[int]) -> None:
        inputs, outputs = len(layout.inputs), len(layout.outputs)
        self._input_robots = np.array([row.robot for row in layout.inputs], dtype=np.int64)
        self._values = np.zeros(inputs, dtype=np.bool_)
        self._connected = np.ones(inputs, dtype=np.bool_)
        self._forced = np.zeros(inputs, dtype=np.bool_)
        """Limit inputs that were set: they do not follow their axis."""
        self._outputs = np.zeros(outputs, dtype=np.bool_)
        self._outputs_connected = np.ones(outputs, dtype=np.bool_)
        self._enables = _rows(row.point.role == "MOTOR_ENABLE" for row in layout.outputs)
        self._output_robots = np.array([row.robot for row in layout.outputs], dtype=np.int64)
        self.enabled = np.ones(len(layout.robots), dtype=np.bool_)
        """Whether the motors of robots are enabled: all their MOTOR_ENABLE outputs are on."""
        self._update_enabled()
        self._estops = _rows(row.point.role == "ESTOP" for row in layout.inputs)
        self.limit_rows = _rows(row.point.role in LIMIT_ROLES for row in layout.inputs)
        self._limit_motors = np.zeros(inputs, dtype=np.int64)
        for row in self.limit_rows:
            robot, point = layout.inputs[row]
            self._limit_motors[row] = layout.motor_row(robot, point.motor_id or "") or 0
        self._is_upper = np.array([row.point.role == "LIMIT_MAX" for row in layout.inputs], bool)
        self._noise = _noise(layout, seeds)
        self._slots = np.full((inputs, 2), LATEST, dtype=np.int64)
        """Begin and end of the time in which an input reads the wrong value."""
        self._draws = np.zeros((inputs, 2), dtype=np.int64)
        """Number of draws and of the next wrong slot, for each input with noise."""
        for noise in self._noise.values():
            self._draws[noise.row, 1] = -1
            self._draw(noise)

    # ── IoDriver ──

    def read_inputs(self, rows: Rows) -> Bools:
        return self._values[rows]

    def inputs_connected(self, rows: Rows) -> Bools:
        return self._connected[rows]

    def read_outputs(self, rows: Rows) -> Bools:
        return self._outputs[rows]

    def write_outputs(self, rows: Rows, values: Bools) -> None:
        self._outputs[rows] = np.where(self._outputs_connected[rows], values, self._outputs[rows])
        self._update_enabled()

    # ── what happens to them ──

    def set_input(self, row: int, value: bool | None) -> None:
        """None: a limit input follows its axis again, another one is off."""
        self._forced[row] = value is not None
        if self._connected[row]:
            self._values[row] = bool(value)

    def press_estop(self, robot: int, pressed: bool) -> None:
        """All emergency stop inputs of a robot."""
        for row in self._estops[self._input_robots[self._estops] == robot]:
            self.set_input(int(row), pressed)

    def connect_input(self, row: int, connected: bool) -> None:
        self._connected[row] = connected

    def connect_output(self, row: int, connected: bool) -> None:
        self._outputs_connected[row] = connected

    def step(self, rows: Rows, state: Floats, limits: Floats, now: int) -> None:
        """Limit inputs of these rows; ``state`` and ``limits``: of the motors."""
        if self._noise:
            self._draw_slots(rows, now)
        switch_limits(
            rows,
            self._limit_motors,
            self._is_upper,
            self._connected,
            self._forced,
            self._slots,
            now,
            state,
            limits,
            self._values,
        )

    def next_change(self, now: int) -> int:
        """When noise begins or ends next."""
        if not self._noise:
            return LATEST
        return int(np.where(self._slots > now, self._slots, LATEST).min())

    def _update_enabled(self) -> None:
        self.enabled[:] = True
        off = self._enables[~self._outputs[self._enables]]
        self.enabled[self._output_robots[off]] = False

    # ── noise ──

    def _draw_slots(self, rows: Rows, now: int) -> None:
        """The next slots of the inputs whose last one is over."""
        for row in rows[now >= self._slots[rows, 1]]:
            noise = self._noise[int(row)]
            while now >= self._slots[row, 1]:
                self._draw(noise)

    def _draw(self, noise: Noise) -> None:
        index, before = self._draws[noise.row].tolist()
        slot = before + 1 + noise.gap(index)
        self._draws[noise.row] = index + 1, slot
        self._slots[noise.row] = noise.slot(slot), noise.slot(slot + 1)

    # ── snapshot ──

    def save(self) -> Columns:
        return columns(self._saved())

    def load(self, state: Columns) -> None:
        restore(self._saved(), state)
        self._update_enabled()

    def _saved(self) -> dict[str, NDArray[np.bool_] | NDArray[np.int64]]:
        return {
            "values": self._values,
            "connected": self._connected,
            "forced": self._forced,
            "outputs": self._outputs,
            "outputs_connected": self._outputs_connected,
            "slots": self._slots,
            "draws": self._draws,
        }


@compiled
def switch_limits(
    rows: Rows,
    axes: Rows,
    is_upper: Bools,
    connected: Bools,
    forced: Bools,
    slots: Rows,
    now: int,
    state: Floats,
    limits: Floats,
    values: Bools,
) -> None:
    """Fills ``values`` of limit inputs from the places of their axes; one is wrong in its slot
    (begin and end), and follows nothing while it is ``forced`` or not connected."""
    for row in rows:
        if forced[row] or not connected[row]:
            continue
        position, axis = state[axes[row], motors.POSITION], axes[row]
        if is_upper[row]:
            at_bound = position >= limits[axis, motors.HIGHEST] - SWITCH
        else:
            at_bound = position <= limits[axis, motors.LOWEST] + SWITCH
        values[row] = at_bound ^ (slots[row, 0] <= now < slots[row, 1])


def _rows(chosen: Iterable[bool]) -> Rows:
    return np.flatnonzero(np.fromiter(chosen, dtype=np.bool_)).astype(np.int64)


def _noise(layout: Layout, seeds: Sequence[int]) -> dict[int, Noise]:
    found = {}
    for row, (robot, point) in enumerate(layout.inputs):
        file = layout.robots[robot]
        probability = _noise_probability(file)
        if point.role in LIMIT_ROLES and probability > 0.0:
            name = f"{file.identity.robot_id}.noise.{point.io_id}"
            found[row] = Noise(row, seeds[robot], name, probability, file.runtime.tick_hz)
    return found


def _noise_probability(robot: RobotFile) -> float:
    profile = robot.runtime.simulation_profile
    noise = profile.io_overrides.limit_sensor_noise if profile else None
    return noise.probability if noise and noise.enabled else 0.0


# ── what happens to robots ────────────────────────────────────────────────────────────────────────


class Entry(NamedTuple):
    """Something that happens to a robot at a time (nanoseconds)."""

    at: int
    robot: int
    act: Callable[[], None]


class Rule(NamedTuple):
    """A fault rule and its number in the profile of a robot."""

    robot: int
    number: int
    rule: FaultRule


class ScenarioState(Struct, frozen=True):
    """`drawn`: draws of each rule that waits for a command."""

    happened: int
    drawn: list[int]


class Faults:
    """Puts motors, inputs, outputs and devices out of order, and repairs them."""

    def __init__(
        self, layout: Layout, motors: MockMotors, io: MockIo, sensors: MockSensors
    ) -> None:
        self._layout = layout
        self._motors = motors
        self._io = io
        self._sensors = sensors

    def inject(self, robot: int, target: str, fault: MotorFault, at: int) -> None:
        """``target``: as in the profile, `drive` or `motor:<id>`, `io:<id>`, `device:<id>`."""
        for row in self._motor_rows(robot, target):
            self._motors.fail(row, fault, at)
        self._connect(robot, target, connected=False)

    def repair(self, robot: int, target: str) -> None:
        for row in self._motor_rows(robot, target):
            self._motors.clear(row)
        self._connect(robot, target, connected=True)

    def _motor_rows(self, robot: int, target: str) -> list[int]:
        if target == "drive":
            return list(self._layout.motor_rows(robot, "DRIVE").tolist())
        row = self._layout.motor_row(robot, target.removeprefix("motor:"))
        return [] if row is None or not target.startswith("motor:") else [row]

    def _connect(self, robot: int, target: str, *, connected: bool) -> None:
        kind, _, name = target.partition(":")
        if kind == "io":
            for row, (of, point) in enumerate(self._layout.inputs):
                if (of, point.io_id) == (robot, name):
                    self._io.connect_input(row, connected)
            for row, (of, output) in enumerate(self._layout.outputs):
                if (of, output.io_id) == (robot, name):
                    self._io.connect_output(row, connected)
        elif kind == "device":
            for row, (of, device) in enumerate(self._layout.devices):
                if (of, device.device_id) == (robot, name):
                    self._sensors.connect(row, connected)


class Scenario:
    """The timeline of all robots. ``seeds``: of the random numbers of each robot; ``robots``: those
    in MOCK mode."""

    def __init__(
        self, layout: Layout, robots: Sequence[int], seeds: Sequence[int], faults: Faults
    ) -> None:
        self._layout = layout
        self._seeds = seeds
        self._faults = faults
        self._entries: list[Entry] = []
        self._happened = 0
        self._waiting: dict[tuple[int, str], list[int]] = {}
        """The rules that wait for a command of a robot."""
        self._rules: list[Rule] = []
        for robot in robots:
            self._add_rules(robot, profile_of(layout, robot))
        self._drawn = [0] * len(self._rules)

    def add_scripts(self, robot: int, worlds: Worlds, io: MockIo, sensors: MockSensors) -> None:
        profile = profile_of(self._layout, robot)
        for press in profile.io_overrides.estop_script:
            self._add(press.at_seconds, robot, partial(io.press_estop, robot, press.pressed))
        script, rows = profile.io_overrides.input_script, {}
        if script:
            inputs = enumerate(self._layout.inputs)
            rows = {point.io_id: row for row, (of, point) in inputs if of == robot}
        for change in script:
            self._add(
                change.at_seconds, robot, partial(io.set_input, rows[change.io_id], change.value)
            )
        for code in profile.scripts.barcodes:
            self._add(code.at_seconds, robot, partial(sensors.read_code, robot, code))
        for moved in profile.scripts.obstacles:
            at = nanoseconds(moved.at_seconds)
            self._add(moved.at_seconds, robot, partial(worlds.change, robot, moved, at))

    def begin(self) -> None:
        """Sorts the timeline: by time, then by robot, then as written."""
        self._entries.sort(key=lambda entry: entry[:2])

    def advance(self, now: int) -> None:
        """Everything that is due happens."""
        while self.next_entry() <= now:
            self._happened += 1
            self._entries[self._happened - 1].act()

    def next_entry(self) -> int:
        """When something happens next."""
        if self._happened < len(self._entries):
            return self._entries[self._happened].at
        return LATEST

    def command_started(self, robot: int, command_type: str, now: int) -> None:
        for number in self._waiting.get((robot, command_type), ()):
            index, self._drawn[number] = self._drawn[number], self._drawn[number] + 1
            self._try(self._rules[number], index, now)

    # ── inside ──

    def _add(self, at_seconds: float, robot: int, act: Callable[[], None]) -> None:
        self._entries.append(Entry(nanoseconds(at_seconds), robot, act))

    def _add_rules(self, robot: int, profile: SimulationProfile) -> None:
        for number, rule in enumerate(profile.fault_injection.rules):
            found = Rule(robot, number, rule)
            if isinstance(rule.value, str):
                self._waiting.setdefault((robot, rule.value), []).append(len(self._rules))
                self._rules.append(found)
            else:
                at = nanoseconds(rule.value)
                self._add(rule.value, robot, partial(self._try, found, 0, at))

    def _try(self, found: Rule, index: int, at: int) -> None:
        robot, number, rule = found
        name = f"{self._layout.robots[robot].identity.robot_id}.fault.{number}"
        if draw(self._seeds[robot], name, index) >= rule.probability:
            return
        cause = f"at {rule.value:g} s" if isinstance(rule.value, float) else f"with {rule.value}"
        fault = MotorFault(rule.fault_code, f"simulated fault {cause}")
        self._faults.inject(robot, rule.target, fault, at)

    # ── snapshot ──

    def save(self) -> ScenarioState:
        return ScenarioState(self._happened, list(self._drawn))

    def load(self, state: ScenarioState) -> None:
        self._happened, self._drawn = state.happened, list(state.drawn)


def profile_of(layout: Layout, robot: int) -> SimulationProfile:
    """The profile of a robot, or the one of a robot without."""
    return layout.robots[robot].runtime.simulation_profile or SimulationProfile()


# ── all hardware ──────────────────────────────────────────────────────────────────────────────────

PERCENT_PER_SECOND = 4.0 / 3600.0
"""Computer and sensors: a full battery lasts 25 hours of standing."""
PERCENT_PER_METRE = 0.004
"""Driving: a full battery lasts 25 km."""


CONTACT = "ROBOT_CONTACT"
"""Fault of the DRIVE motors of robots that touch each other."""


class Surroundings(Struct, frozen=True):
    """Where a robot is put. `pose`: instead of that in its profile. `solids`: obstacles of the cell
    that it can meet. `seed`: of its random numbers, see `fleet_keys.seed_of`."""

    pose: Pose | None = None
    solids: tuple[Solid, ...] = ()
    seed: int = 0


class TickGroup(NamedTuple):
    """Robots that tick together, and what belongs to them."""

    axes: Rows
    limits: Rows
    lidars: Rows
    scanners: Rows
    late: Rows


class HardwareState(Struct, frozen=True):
    """State of the hardware of all robots."""

    now: int
    motors: motors.MotorsState
    io: Columns
    sensors: sensors.SensorsState
    scenario: ScenarioState
    battery: list[float]
    world: Places


class MockHardware:
    """`TimedHardware` of robots in MOCK mode. ``robots``: their rows in the layout; rows of other
    robots stay as they are. ``see_each_other``: they are obstacles of each other."""

    def __init__(
        self,
        layout: Layout,
        surroundings: Sequence[Surroundings],
        robots: Sequence[int],
        *,
        see_each_other: bool = False,
    ) -> None:
        self._layout = layout
        profiles = [profile_of(layout, row) for row in range(len(layout.robots))]
        seeds = [each.seed for each in surroundings]
        poses = [_pose(layout, row, each) for row, each in enumerate(surroundings)]
        self._now = 0
        self._floor: Bounds | None = None
        self._worlds = Worlds([each.solids for each in surroundings], profiles)
        self.motors = MockMotors(layout, poses, _odometry_scales(layout, seeds), seeds)
        self.io = MockIo(layout, seeds)
        body = self.motors.body
        self.others: OtherRobots | None = None
        if see_each_other:
            outlines, devices = outlines_of(layout), len(layout.devices)
            self.others = OtherRobots(outlines, robots, devices, self.motors.figures, body)
        """The robots as obstacles of each other, if they see each other."""
        self.sensors = MockSensors(layout, self._worlds, body, self.others)
        self.faults = Faults(layout, self.motors, self.io, self.sensors)
        self._scenario = Scenario(layout, robots, seeds, self.faults)
        for robot in robots:
            self._scenario.add_scripts(robot, self._worlds, self.io, self.sensors)
        self._scenario.begin()
        self._charge = np.array([each.initial_state.battery_percent for each in profiles])
        """Percent at the time 0; `set_battery` changes it as if the robot had started with more."""
        self._groups: dict[bytes, TickGroup] = {}
        self.io.step(self.io.limit_rows, self.motors.state, self.motors.limits, 0)
        self.sensors.start(self.motors.body)

    # ── TimedHardware ──

    def begin(self, now: int) -> None:
        self._now = now
        self._scenario.advance(now)
        if self._worlds.changes():
            self.sensors.world_changes()
            self._worlds.refresh(now)
            self.sensors.note_change()

    def command_started(self, robot: int, command_type: str, now: int) -> None:
        self._scenario.command_started(robot, command_type, now)

    def step(self, rows: Rows, seconds: float) -> None:
        group = self._groups.get(rows.tobytes()) or self._group(rows)
        self.motors.powered = self.io.enabled
        self.motors.connected[rows] = self._battery(rows) > 0.0
        before = self.motors.body.copy() if self.others else None
        self.motors.step(rows, group.axes, group.late, seconds, self._now)
        if before is not None:
            self._separate(before)
        self.io.step(group.limits, self.motors.state, self.motors.limits, self._now)
        self.sensors.step(rows, group.lidars, group.scanners, self.motors.body, self._now)

    def read_robots(self, rows: Rows) -> RobotReadings:
        return RobotReadings(battery_percent=self._battery(rows))

    def next_change(self) -> int | None:
        """`Rests`: when something acts although all motors stand."""
        if self._worlds.moving() or self.motors.response.acts_at_rest():
            return self._now
        left = self._battery(np.arange(len(self._charge)))
        empty = self._now + np.ceil(left[left > 0.0] / PERCENT_PER_SECOND * NS_PER_SECOND)
        found = min(
            self._scenario.next_entry(),
            self.io.next_change(self._now),
            self.sensors.next_change(self._now),
            int(empty.min(initial=LATEST)),
        )
        return None if found >= LATEST else found

    # ── what tests and operators do ──

    def press_estop(self, robot: int, pressed: bool) -> None:
        self.io.press_estop(robot, pressed)

    def set_input(self, robot: int, io_id: str, value: bool | None) -> Refused | None:
        """Sets an input; None: see `MockIo.set_input`."""
        known = []
        for row, (of, point) in enumerate(self._layout.inputs):
            if (of, point.io_id) == (robot, io_id):
                self.io.set_input(row, value)
                return None
            known += [point.io_id] if of == robot else []
        return Refused(f"the robot has no input {io_id}; it has: {', '.join(known) or 'none'}")

    def set_solids(self, solids: Sequence[Sequence[Solid]], floor: Bounds | None = None) -> None:
        """The cell has other objects. ``solids``: those that each robot can meet; ``floor``: on
        which they stand."""
        self._floor = floor
        self.sensors.world_changes()
        self._worlds.set_solids(solids, self._now)
        self.sensors.note_change()
        if self._now == 0:
            self.sensors.start(self.motors.body)

    def set_battery(self, robot: int, percent: float) -> None:
        self._charge[robot] = percent + float(self._used(np.array([robot]))[0])

    def inject_fault(self, robot: int, target: str, code: str) -> None:
        fault = MotorFault(code, "simulated fault")
        self.faults.inject(robot, target, fault, self._now)

    # ── ground truth ──

    def pose(self, robot: int) -> Pose:
        """Where a robot really is."""
        x, y, yaw = self.motors.body[robot, : drive.FORWARD].tolist()
        return x, y, yaw

    def poses(self) -> Floats:
        """Where all robots really are."""
        return self.motors.body[:, : drive.FORWARD]

    def velocity(self, robot: int) -> Pose:
        """Forward, sideways (m/s) and turning (rad/s)."""
        forward, sideways, turning = self.motors.body[
            robot, drive.FORWARD : drive.TURNING + 1
        ].tolist()
        return forward, sideways, turning

    def outline(self, robot: int) -> Floats:
        """The four corners of a robot in the world."""
        x, y, yaw = self.pose(robot)
        half, side, ahead = self.sensors.outlines[robot, [HALF_LENGTH, HALF_WIDTH, AHEAD]]
        corners = [(half, side), (-half, side), (-half, -side), (half, -side)]
        c, s = math.cos(yaw), math.sin(yaw)
        return np.array(
            [(x + (a + ahead) * c - b * s, y + (a + ahead) * s + b * c) for a, b in corners]
        )

    def clearance(self, robot: int) -> float:
        """Metres between the outline of a robot and the nearest obstacle; below 0: they overlap."""
        one, found, worlds = slice(robot, robot + 1), np.empty(1), self._worlds
        outline_clearances(
            np.ascontiguousarray(self.motors.body[one, : drive.FORWARD]),
            self.sensors.outlines[one],
            worlds.circles,
            worlds.circle_spans[one],
            worlds.lines,
            worlds.line_spans[one],
            found,
        )
        return float(found[0])

    def obstacles(self, robot: int) -> Obstacles:
        return Obstacles(*self._worlds.around(robot))

    def map_bounds(self, robot: int) -> Bounds | None:
        return map_of(self._floor, profile_of(self._layout, robot))

    def all_obstacles(self) -> Obstacles:
        """Those of all robots; an obstacle of several robots may be there several times."""
        return Obstacles(self._worlds.circles, self._worlds.lines)

    # ── snapshot ──

    def save(self) -> State:
        return HardwareState(
            self._now,
            self.motors.save(),
            self.io.save(),
            self.sensors.save(),
            self._scenario.save(),
            self._charge.tolist(),
            self._worlds.save(),
        )

    def load(self, state: State) -> None:
        saved = msgspec.convert(state, HardwareState, from_attributes=True)
        if len(saved.battery) != len(self._charge):
            raise msgspec.ValidationError("the snapshot has another number of robots")
        self._now = saved.now
        self.motors.load(saved.motors)
        self.io.load(saved.io)
        if self.others is not None:
            self.others.place(self.motors.body)
        self._worlds.load(saved.world, saved.now)
        self.sensors.load(saved.sensors, self.motors.body)
        self._scenario.load(saved.scenario)
        self._charge[:] = saved.battery

    # ── inside ──

    def _separate(self, before: Floats) -> None:
        """Robots that ran into each other stand, and their drives are faulty. ``before``: where all
        robots were before this step."""
        body = self.motors.body
        if self.others is None or (body[:, : drive.FORWARD] == before[:, : drive.FORWARD]).all():
            return
        self.sensors.note_motion()
        for pair in self.others.separate(before, body):
            self.motors.halt(pair)
            for robot, other in (pair, pair[::-1]):
                name = self._layout.robots[other].identity.robot_id
                fault = MotorFault(CONTACT, f"contact with {name}")
                self.faults.inject(robot, "drive", fault, self._now)

    def _battery(self, rows: Rows) -> Floats:
        left: Floats = np.maximum(self._charge[rows] - self._used(rows), 0.0)
        return left

    def _used(self, rows: Rows) -> Floats:
        """Percent since the time 0."""
        driven: Floats = self.motors.body[rows, drive.TRAVELLED]
        return self._now / NS_PER_SECOND * PERCENT_PER_SECOND + driven * PERCENT_PER_METRE

    def _group(self, rows: Rows) -> TickGroup:
        chosen, layout = set(rows.tolist()), self._layout
        axes = [
            row
            for row, (robot, motor) in enumerate(layout.motors)
            if motor.role == "FUNCTIONAL" and robot in chosen
        ]
        limits = [row for row in self.io.limit_rows if layout.inputs[row].robot in chosen]
        lidars = [row for row in self.sensors.lidar_rows if layout.devices[row].robot in chosen]
        scanners = [row for row in self.sensors.scanner_rows if layout.devices[row].robot in chosen]
        late = [n for n, robot in enumerate(self.motors.response.robot.tolist()) if robot in chosen]
        found = TickGroup(
            *(np.array(each, dtype=np.int64) for each in (axes, limits, lidars, scanners, late))
        )
        self._groups[rows.tobytes()] = found
        return found


def _pose(layout: Layout, row: int, around: Surroundings) -> Pose:
    start = profile_of(layout, row).initial_state.pose
    return around.pose or (start.x, start.y, start.yaw)


def _odometry_scales(layout: Layout, seeds: Sequence[int]) -> Floats:
    """What each wheel reports of a metre that it rolls: `odometryDriftPercent` more or less."""
    scales = np.ones(len(layout.motors))
    drifts = [_drift(robot) for robot in layout.robots]
    for row, (robot, motor) in enumerate(layout.motors):
        if motor.role == "DRIVE" and drifts[robot] > 0.0:
            name = f"{layout.robots[robot].identity.robot_id}.odometry.{motor.motor_id}"
            scales[row] += drifts[robot] / 100.0 * (2.0 * draw(seeds[robot], name, 0) - 1.0)
    return scales


def _drift(robot: RobotFile) -> float:
    """The largest drift, in percent, of the robot's scanners."""
    settings = [device.settings for device in robot.io.devices]
    drifts = [each.odometry_drift_percent for each in settings if isinstance(each, ScannerConfig)]
    return max(drifts, default=0.0)
