"""Digital inputs and outputs of robots in MOCK mode.

An input has the value that a script, a fault, a test or an operator gave it; a limit input is on
while its axis is at the bound, unless it was set. An input or output with a fault is not connected
and keeps its last value.

Noise of limit inputs (`limitSensorNoise`): the time is cut into slots as long as a tick, and in
some slots the input reads the wrong value. The number of slots between two of them is drawn, so
that nothing is drawn at the other ticks.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from understudy.chance import draw
from understudy.robots.mobile import axes
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.config.robot_file import RobotFile
from understudy.robots.mobile.hardware_interface import Bools, Floats, Rows
from understudy.robots.mobile.tables import Columns, columns, restore
from understudy.units import LATEST, NS_PER_SECOND

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
        if not rows.size:
            return
        motors = self._limit_motors[rows]
        position = state[motors, axes.POSITION]
        at_bound = np.where(
            self._is_upper[rows],
            position >= limits[motors, axes.HIGHEST] - SWITCH,
            position <= limits[motors, axes.LOWEST] + SWITCH,
        )
        if self._noise:
            at_bound = at_bound ^ self._is_wrong(rows, now)
        follows = self._connected[rows] & ~self._forced[rows]
        self._values[rows] = np.where(follows, at_bound, self._values[rows])

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

    def _is_wrong(self, rows: Rows, now: int) -> Bools:
        for row in rows[now >= self._slots[rows, 1]]:
            noise = self._noise[int(row)]
            while now >= self._slots[row, 1]:
                self._draw(noise)
        wrong: Bools = (self._slots[rows, 0] <= now) & (now < self._slots[rows, 1])
        return wrong

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
