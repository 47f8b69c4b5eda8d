"""The tick of the robots with one tick rate, in the order of the design document.

Scripts, inbox, commands, motors, inputs and devices, safety, odometry, status, streams. What holds
for all robots at every tick is done by the kernels of `tick`; a `Robot` acts only when something
happens to it.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from msgspec import Meta, Struct

from understudy.motion.wheels import body_speeds, displacements, move_on_arcs, set_wheel_speeds
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.hardware_interface import MotorLimits, MotorOutputs, TimedHardware
from understudy.robots.mobile.runtime import foresight, tick
from understudy.robots.mobile.runtime.commands import TIMEOUT
from understudy.robots.mobile.runtime.pose_control import DONE, steer_to_goals
from understudy.robots.mobile.runtime.post import Post
from understudy.robots.mobile.runtime.robot import Robot, SavedRobot
from understudy.robots.mobile.runtime.routes import Planner
from understudy.robots.mobile.runtime.steady import SteadyMessages
from understudy.robots.mobile.runtime.table import UNLIMITED, Table, rows_of
from understudy.units import NS_PER_SECOND


class Delivery(NamedTuple):
    """A message in the inbox. `robot`: its place in the table."""

    robot: int
    kind: str
    data: bytes
    reply_to: str


class SavedTicker(Struct, forbid_unknown_fields=True):
    ticks: Annotated[int, Meta(ge=-1, lt=1 << 62)]
    poked: Annotated[int, Meta(ge=-1, lt=1 << 62)]
    greets: bool
    table: dict[str, Any]
    robots: list[SavedRobot]
    inbox: list[Delivery]


class Ticker:
    """``rows``: of the layout, robots with the same tickHz."""

    def __init__(
        self, layout: Layout, rows: Sequence[int], hardware: TimedHardware, post: Post,
        planner: Planner | None, take_scans: Callable[[int], None],
    ) -> None:  # fmt: skip
        self.table = table = Table(layout, rows)
        self.hardware = hardware
        self.hz = table.files[0].runtime.tick_hz
        self.post = post
        self.robots = [Robot(table, row, hardware, post, planner) for row in range(table.size)]
        self.inbox: deque[Delivery] = deque()
        self.ticks = -1
        """Number of the last tick since the time 0; -1 before the start."""
        self.poked = -1
        """When something last came from outside."""
        self.greets = False
        """There is a new connection."""
        self.plan: tuple[object, int | None] = (None, None)
        """What the next tick was planned for, and when it is; see `Fleet`."""
        self._take_scans = take_scans
        self._ended = np.zeros(table.motors.size, dtype=np.int8)
        self._due = np.zeros(table.due.size, dtype=np.int64)
        self._wakes = np.zeros(table.size, dtype=np.int64)
        keys = [robot.key for robot in self.robots]
        self._steady = SteadyMessages(table, hardware, post, keys, self._report)
        self._note_wakes()

    # ── time ──

    def time_of(self, number: int) -> int:
        """The time of a tick: the first nanosecond at or after it."""
        return -(-number * NS_PER_SECOND // self.hz)

    def next_tick(self) -> int:
        """The time of the next tick. After ticks that were left out it is the first one after the
        time at which something came from outside."""
        following = self.time_of(self.ticks + 1)
        return following if self.poked < following else self.tick_from(self.poked + 1)

    def tick_from(self, time: int) -> int:
        """The time of the first tick at or after a time."""
        return self.time_of(max(-(-time * self.hz // NS_PER_SECOND), self.ticks + 1))

    def expects(self) -> bool:
        """Whether the next tick can change something: something came from outside since the last
        tick, or a motor moves or shall move."""
        return self.poked >= self.time_of(self.ticks) or not self.stands()

    def stands(self) -> bool:
        """Whether no motor moves or shall move."""
        table = self.table
        return not (
            table.mode.any()
            or table.moving.any()
            or table.command.any()
            or table.speeds.any()
            or table.rolling.any()
        )

    def next_module_wake(self) -> int:
        return int(self._wakes.min())

    def next_message(self) -> int:
        """When the next message of a stream is due."""
        return int(self.table.due.min())

    def busy(self) -> bool:
        return any(robot.executor.active is not None for robot in self.robots)

    # ── start ──

    def start(self, seeds: Sequence[int | None], now: int) -> None:
        """The first tick: limits and outputs are written, nothing moves yet."""
        table, hardware = self.table, self.hardware
        self.ticks = now * self.hz // NS_PER_SECOND
        hardware.begin(now)
        limits = MotorLimits(table.max_speed, table.max_acceleration, table.deceleration)
        hardware.motors.set_limits(table.motors, limits)
        enables = [
            row
            for file, rows in zip(table.files, table.outputs, strict=True)
            for point, row in zip(file.io.digital_outputs, rows, strict=True)
            if point.role == "MOTOR_ENABLE"
        ]
        hardware.io.write_outputs(rows_of(enables), np.ones(len(enables), dtype=np.bool_))
        for robot, seed in zip(self.robots, seeds, strict=True):
            robot.started(seed, now)
        self._read(now)
        self._update_statuses(now)
        self._publish_due(now)

    # ── one tick ──

    def tick(self, now: int) -> None:
        number = now * self.hz // NS_PER_SECOND
        if number > self.ticks + 1 and self.stands():
            self.ticks = number - 1  # ticks that changed nothing were left out
        seconds = (number - self.ticks) / self.hz
        passed = now - self.time_of(self.ticks)
        self.ticks = number
        self.hardware.begin(now)
        if self.greets:
            self._greet(now)
            self._update_statuses(now)  # who sends a command at once finds no robot OFFLINE
        self._drain_inbox(now)
        self._advance_modules(now)
        self._steer(now, seconds, passed)
        self._finish(now, seconds)
        self._write(seconds)
        self.hardware.step(self.table.robots, seconds)
        self._read(now)
        self._watch(seconds)
        self._locate(now)
        self._update_statuses(now)
        self._publish_due(now)

    def _drain_inbox(self, now: int) -> None:
        while self.inbox:
            delivery = self.inbox.popleft()
            self.robots[delivery.robot].handle(delivery.kind, delivery.data, now)
            self.post.note_handled(delivery.reply_to)
            self._wakes[delivery.robot] = self.robots[delivery.robot].wake_at

    def _advance_modules(self, now: int) -> None:
        for row in np.flatnonzero(self._wakes <= now).tolist():
            self.robots[row].advance(now)
            self._wakes[row] = self.robots[row].wake_at

    def wake_modules(self, row: int, now: int) -> None:
        """Asks the modules of a robot again when they want to act."""
        self.robots[row].settle(now)
        self._wakes[row] = self.robots[row].wake_at
        self.poked = now

    def _note_wakes(self) -> None:
        for row, robot in enumerate(self.robots):
            self._wakes[row] = robot.wake_at

    def _steer(self, now: int, seconds: float, passed: int) -> None:
        """The limits of this tick, and the speeds towards goals."""
        table = self.table
        tick.extend_held(table.mode, table.stop, table.until, passed)
        tick.update_limits(
            table.figures, table.wheels, table.speeds, table.command, table.ahead, table.limits,
            seconds,
        )  # fmt: skip
        steer_to_goals(
            table.drive, table.pose, table.speeds, table.goal, table.limits, table.phase,
            table.route, table.steered, seconds,
        )  # fmt: skip

    def _finish(self, now: int, seconds: float) -> None:
        """Commands that have ended."""
        table = self.table
        over = (table.mode == tick.VELOCITY) & (table.until <= now)
        over |= (table.mode == tick.POSE) & (table.phase == DONE) & (table.stop == tick.NO_STOP)
        if over.any():
            for row in np.flatnonzero(over).tolist():
                self._end(row, None, now)
        if table.moving.any():
            slowest = table.deceleration * seconds
            count = tick.find_ended(
                table.moving, table.position, table.rolling, table.target, table.tolerance, slowest,
                table.deadline, now, self._ended,
            )  # fmt: skip
            for place in np.flatnonzero(self._ended).tolist() if count else ():
                outcome = None if self._ended[place] == 1 else TIMEOUT
                self._end(int(table.motor_robot[place]), outcome, now)

    def _end(self, row: int, outcome: Any, now: int) -> None:
        self.robots[row].finished(outcome, now)
        self._wakes[row] = self.robots[row].wake_at

    def _write(self, seconds: float) -> None:
        table, motors = self.table, self.hardware.motors
        tick.choose_commands(
            table.mode, table.stop, table.velocity, table.steered, table.wheels, table.limits,
            table.command,
        )  # fmt: skip
        self._foresee(seconds)
        if table.drives.size:
            speeds = table.set_speed[table.drives]
            set_wheel_speeds(table.wheels, table.command, speeds)
            table.set_speed[table.drives] = speeds
        motors.write(
            table.motors,
            MotorOutputs(table.set_speed, table.target, table.tolerance, table.moving),
        )

    def _foresee(self, seconds: float) -> None:
        """Looks along the way of the next tick; robots whose way is not free stop."""
        table = self.table
        foresight.foresee(
            table.drive, table.wheels, table.speeds, table.body_limits, table.command,
            table.steering, table.next_steering, table.foreseen, seconds,
        )  # fmt: skip
        if table.lidars.size:
            foresight.watched_motion(table.wheels, table.foreseen, table.motion)
            self.hardware.sensors.set_motion(table.lidars, table.motion[table.lidar_robot])
            self._read_lidars()
            foresight.hold_back(
                table.figures, table.wheels, table.speeds, table.foreseen, table.ahead,
                table.command, table.blocked, seconds,
            )  # fmt: skip
        np.copyto(table.steering, table.next_steering, where=table.command[:, 0] != 0.0)

    def _read(self, now: int) -> None:
        """Motors, inputs and lidars; motors that fail or recover."""
        table, hardware = self.table, self.hardware
        before = table.position[table.drives]
        found = hardware.motors.read(table.motors)
        changed = (found.faulty != table.faulty) | (found.connected != table.connected)
        table.position[:], table.rolling[:] = found.position, found.velocity
        table.connected[:], table.faulty[:] = found.connected, found.faulty
        table.homing[:] = found.homing
        self._read_wheels(before)
        if changed.any():
            tick.update_motors(
                table.motor_robot, table.is_drive, table.connected, table.faulty, table.drive_down,
                table.function_down,
            )  # fmt: skip
            for place in np.flatnonzero(changed).tolist():
                row = int(table.motor_robot[place])
                self.robots[row].motor_changed(place, now)
                self._wakes[row] = self.robots[row].wake_at
        self._read_inputs()
        if table.lidars.size:
            self._read_lidars()

    def _read_lidars(self) -> None:
        table = self.table
        seen = self.hardware.sensors.read_lidars(table.lidars)
        tick.merge_lidars(
            table.lidar_robot, seen.nearest, seen.ahead, seen.connected, UNLIMITED,
            table.nearest, table.ahead, table.lidar_up,
        )  # fmt: skip

    def _read_wheels(self, before: Any) -> None:
        table = self.table
        after, rolling = table.position[table.drives], table.rolling[table.drives]
        displacements(table.wheels, before, after, table.moved)
        rolling[table.wheels.steers] = after[table.wheels.steers]
        body_speeds(table.wheels, rolling, table.speeds)

    def _read_inputs(self) -> None:
        table, io = self.table, self.hardware.io
        if table.estop_inputs.size:
            tick.merge_inputs(
                table.estop_robot, io.read_inputs(table.estop_inputs),
                io.inputs_connected(table.estop_inputs), table.estop, table.inputs_up,
            )  # fmt: skip
        if table.hold_inputs.size:
            up = np.ones(table.size, dtype=np.bool_)
            held = io.read_inputs(table.hold_inputs)
            tick.merge_inputs(table.hold_robot, held, held, table.io_hold, up)

    def _watch(self, seconds: float) -> None:
        table = self.table
        tick.watch_obstacles(
            table.figures, table.wheels, table.speeds, table.command, table.ahead, table.stop,
            table.blocked, seconds,
        )  # fmt: skip

    def _locate(self, now: int) -> None:
        """Odometry: an exact arc from the positions of the wheels; markers correct it."""
        table = self.table
        move_on_arcs(table.moved, table.pose)
        tick.add_travel(table.moved, table.since_correction)
        self._take_scans(now)

    def _update_statuses(self, now: int) -> None:
        table = self.table
        count = tick.update_statuses(
            table.conditions, self.post.connected, table.seen, table.stop, table.status,
            table.changes,
        )  # fmt: skip
        for row in np.flatnonzero(table.changes).tolist() if count else ():
            self.robots[row].changed(int(table.changes[row]), now)
            self._wakes[row] = self.robots[row].wake_at

    def _publish_due(self, now: int) -> None:
        table = self.table
        count = tick.find_due(table.due, table.periods, now, self._due)
        if count and self.post.connected:
            self._steady.publish(self._due[:count], now)

    def _report(self, row: int, stream: int, now: int) -> None:
        self.robots[row].report(stream, now)

    def _greet(self, now: int) -> None:
        """The first messages of all robots over a new connection."""
        self.greets = False
        for row, robot in enumerate(self.robots):
            robot.connected(now)
            self._wakes[row] = robot.wake_at

    # ── an operator ──

    def stop(self, row: int, now: int) -> None:
        """Ends all commands and tasks of a robot."""
        self.robots[row].stop(now)
        self._wakes[row] = self.robots[row].wake_at

    # ── snapshot ──

    def save(self) -> SavedTicker:
        robots = [robot.save() for robot in self.robots]
        return SavedTicker(
            self.ticks, self.poked, self.greets, self.table.save(), robots, list(self.inbox)
        )

    def load(self, saved: SavedTicker) -> None:
        self.ticks, self.poked, self.greets = saved.ticks, saved.poked, saved.greets
        self.plan = (None, None)
        self.table.load(saved.table)
        for robot, state in zip(self.robots, saved.robots, strict=True):
            robot.load(state)
        self.inbox = deque(each for each in saved.inbox if each.robot < self.table.size)
        self._note_wakes()
