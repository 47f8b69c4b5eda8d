"""The runtime of all mobile robots of a process, REAL or MOCK: one component on the time axis.

`Ticker` does the tick of the robots with one tick rate, in the order of the design document:
scripts, inbox, commands, motors, inputs and devices, safety, odometry, status, streams. What holds
for all robots at every tick is done by the kernels of `tick`; a `Robot` acts only when something
happens to it. `Fleet` has all tickers, the queue to the broker, and what an operator sees and does.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.ports import KEPT, Epoch, State, WireMessage
from understudy.ports.device import DeviceEvent
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.fleet_interface import (
    FLAGS,
    Bytes,
    FleetColumns,
    FleetListener,
    FleetRobot,
    HoldReading,
    MotorReading,
    RequestKind,
    Signal,
)
from understudy.robots.mobile.hardware_interface import (
    MotorLimits,
    MotorOutputs,
    Rests,
    TimedHardware,
)
from understudy.robots.mobile.runtime import tick
from understudy.robots.mobile.runtime.late_drives import expect, give_ramped
from understudy.robots.mobile.runtime.messages import (
    LIMIT_REACHED,
    NOT_FOLLOWING,
    TIMEOUT,
    TO_ROBOT,
    MotorState,
    kind_of,
)
from understudy.robots.mobile.runtime.outgoing import (
    BOOT,
    SavedSendQueue,
    SendQueue,
    read_record,
    robot_key,
    uuid_text,
)
from understudy.robots.mobile.runtime.pose_control import DONE, steer_to_goals
from understudy.robots.mobile.runtime.reports import STILL, find_sound
from understudy.robots.mobile.runtime.robot import Robot, SavedRobot
from understudy.robots.mobile.runtime.stream_messages import StreamMessages
from understudy.robots.mobile.runtime.table import Codes, Flags, Floats, Table, rows_of
from understudy.robots.mobile.runtime.tasks import Planner
from understudy.robots.mobile.runtime.tick import OFFLINE, POSE, UNLIMITED
from understudy.robots.mobile.wheels import (
    move_on_arcs,
    set_wheel_speeds,
)
from understudy.space.compiled import direct
from understudy.units import LATEST, NS_PER_SECOND

LIMIT_SPAN = 2e-3
"""Metres or radians of the way that an axis may still have when its limit input comes on."""
LIMIT_TICKS = 3


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


class TickKernels:
    """The kernels that run at each tick, bound to the columns of a table. ``lost``, ``over``: what
    `tick.find_lost` and `tick.find_over` fill."""

    def __init__(self, table: Table, lost: Flags, over: Flags) -> None:
        figures, wheels, speeds = table.figures, table.wheels, table.expected_speeds
        command, ahead, limits = table.command, table.ahead, table.limits
        mode, stop, until, phase = table.mode, table.stop, table.until, table.phase
        foreseen, blocked, moved = table.foreseen, table.blocked, table.moved
        of_tick: dict[str, Any] = {"later": (1.0,)}
        self.update_limits = direct(
            tick.update_limits, figures, wheels, speeds, command, ahead, limits, **of_tick
        )
        self.steer_to_goals = direct(
            steer_to_goals,
            table.drive,
            table.expected_pose,
            speeds,
            table.goal,
            limits,
            table.settled,
            phase,
            table.route,
            table.steered,
            **of_tick,
        )
        self.find_lost = direct(
            tick.find_lost,
            mode,
            until,
            wheels,
            table.drives,
            table.set_speed,
            table.rolling,
            table.body_limits,
            table.latency,
            table.astray,
            lost,
            later=(1, 1.0),
        )
        self.find_over = direct(tick.find_over, mode, until, phase, stop, DONE, over, later=(1,))
        self.choose_commands = direct(
            tick.choose_commands, mode, stop, table.velocity, table.steered, wheels, limits, command
        )
        self.foresee = direct(
            tick.foresee,
            table.drive,
            wheels,
            speeds,
            table.body_limits,
            command,
            table.steering,
            table.next_steering,
            foreseen,
            **of_tick,
        )
        self.watched_motion = direct(
            tick.watched_motion, wheels, foreseen, table.motion, table.last_way
        )
        self.hold_back = direct(
            tick.hold_back, figures, wheels, speeds, foreseen, ahead, command, blocked, **of_tick
        )
        self.watch_obstacles = direct(
            tick.watch_obstacles,
            figures,
            wheels,
            table.speeds,
            command,
            ahead,
            stop,
            blocked,
            **of_tick,
        )
        self.move_on_arcs = direct(move_on_arcs, moved, table.pose)
        self.add_travel = direct(tick.add_travel, moved, table.since_correction)
        self.update_statuses = direct(
            tick.update_statuses,
            table.conditions,
            table.seen,
            stop,
            table.status,
            table.changes,
            later=(True,),
        )


class Ticker:
    """``rows``: of the layout, robots with the same tickHz."""

    def __init__(
        self,
        layout: Layout,
        rows: Sequence[int],
        hardware: TimedHardware,
        queue: SendQueue,
        planner: Planner | None,
        take_scans: Callable[[int], None],
    ) -> None:
        self.table = table = Table(layout, rows)
        self.hardware = hardware
        self.hz = table.files[0].runtime.tick_hz
        self.queue = queue
        self.robots = [Robot(table, row, hardware, queue, planner) for row in range(table.size)]
        self.inbox: deque[Delivery] = deque()
        self.ticks = -1
        """Number of the last tick since the time 0; -1 before the start."""
        self.poked = -1
        """When something last came from outside."""
        self.greets = False
        """There is a new connection."""
        self.plan: tuple[object, int | None] = (None, None)
        """What the next tick was planned for, and when it is; see `Fleet`."""
        self.only_messages = False
        """Whether the robots stand at the next tick, and only messages of their streams are due."""
        self._driving = (-2, False)
        self._take_scans = take_scans
        self._ended = np.zeros(table.motors.size, dtype=np.int8)
        self._lost, self._over = np.zeros((2, table.size), dtype=np.bool_)
        self._changed = np.zeros(table.motors.size, dtype=np.bool_)
        self._due = np.zeros(table.due.size, dtype=np.int64)
        self._wakes = np.zeros(table.size, dtype=np.int64)
        keys = [robot.key for robot in self.robots]
        self._streams = StreamMessages(table, hardware, queue, keys, self._report)
        self._note_wakes()

    @cached_property
    def _kernels(self) -> TickKernels:
        return TickKernels(self.table, self._lost, self._over)

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
            or table.given.any()
        )

    def drives(self) -> bool:
        """The opposite of `stands`, found once for each tick: others ask at every instant."""
        if self._driving[0] != self.ticks:
            self._driving = self.ticks, self.ticks >= 0 and not self.stands()
        return self._driving[1]

    def next_module_wake(self) -> int:
        return int(self._wakes.min())

    def next_message(self) -> int:
        """When the next message of a stream is due."""
        return int(self.table.due.min())

    def busy(self) -> bool:
        return any(robot.executor.is_busy for robot in self.robots)

    # ── start ──

    def start(self, seeds: Sequence[int | None], now: int) -> None:
        """The first tick: limits and outputs are written, nothing moves yet."""
        table, hardware = self.table, self.hardware
        self.ticks = now * self.hz // NS_PER_SECOND
        hardware.begin(now)
        limits = MotorLimits(table.max_speed, table.max_acceleration, table.deceleration)
        hardware.motors.set_limits(table.motors, limits)
        enables = [row for rows in table.enables for row in rows]
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
        if self.only_messages:
            self.ticks = number
            self.hardware.begin(now)
            self._publish_due(now)
            return
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
            record = self.robots[delivery.robot].handle(delivery.kind, delivery.data, now)
            self.queue.note_handled(delivery.reply_to, record)
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
        table, late = self.table, self.table.late
        tick.extend_held(table.mode, table.stop, table.until, passed)
        if late.rows.size:
            expect(
                late.rows,
                late.given,
                late.ordered,
                late.measured,
                late.fixed,
                late.reach,
                table.pose,
                table.speeds,
                table.moved,
                table.latency,
                table.expected_pose,
                table.expected_speeds,
                late.settled,
                seconds,
            )
        self._kernels.update_limits(seconds)
        self._kernels.steer_to_goals(seconds)

    def _finish(self, now: int, seconds: float) -> None:
        """Commands that have ended, or that a drive does not follow."""
        table = self.table
        lost = self._kernels.find_lost(now, seconds)
        for row in np.flatnonzero(self._lost).tolist() if lost else ():
            self._end(row, self.robots[row].body.why_not_moving() or NOT_FOLLOWING, now)
        over = self._kernels.find_over(now)
        for row in np.flatnonzero(self._over).tolist() if over else ():
            self._end(row, None, now)
        if table.moving.any():
            self._stop_at_limits(now)
            slowest = table.deceleration * seconds
            count = tick.find_ended(
                table.moving,
                table.position,
                table.rolling,
                table.target,
                table.tolerance,
                slowest,
                table.deadline,
                now,
                self._ended,
            )
            for place in np.flatnonzero(self._ended).tolist() if count else ():
                outcome = None if self._ended[place] == 1 else TIMEOUT
                row = int(table.motor_robot[place])
                self.robots[row].motor_ended(place, outcome, now)
                self._wakes[row] = self.robots[row].wake_at

    def _stop_at_limits(self, now: int) -> None:
        """Ends the motion of axes towards a limit input that is on, unless they are at the end of
        their way. An input that is on for a tick or two only is noise."""
        table = self.table
        if not table.limit_inputs.size:
            return
        motors = table.limit_motor
        left = table.limit_side * (table.target[motors] - table.position[motors])
        on = self.hardware.io.read_inputs(table.limit_inputs)
        towards = on & table.moving[motors] & (left > LIMIT_SPAN)
        table.limit_ticks[:] = np.where(towards, table.limit_ticks + 1, 0)
        for place in set(motors[table.limit_ticks >= LIMIT_TICKS].tolist()):
            self._end(int(table.motor_robot[place]), LIMIT_REACHED, now)

    def _end(self, row: int, outcome: Any, now: int) -> None:
        self.robots[row].finished(outcome, now)
        self._wakes[row] = self.robots[row].wake_at

    def _write(self, seconds: float) -> None:
        table, motors = self.table, self.hardware.motors
        self._kernels.choose_commands()
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
        self._kernels.foresee(seconds)
        if table.lidars.size:
            self._kernels.watched_motion()
            self.hardware.sensors.set_motion(table.lidars, table.motion[table.lidar_robot])
            self._read_lidars()
            self._kernels.hold_back(seconds)
        if table.late.rows.size:
            self._kernels.foresee(seconds)  # a robot may be held back now
            may_move = (table.mode != tick.REST) & (table.stop == tick.NO_STOP)
            give_ramped(table.late.rows, table.foreseen, may_move, table.command, table.given)
        np.copyto(table.steering, table.next_steering, where=table.command[:, 0] != 0.0)

    def _read(self, now: int) -> None:
        """Motors, inputs and lidars; motors that fail or recover."""
        table, hardware = self.table, self.hardware
        found = hardware.motors.read(table.motors)
        changed = tick.take_readings(
            table.drives,
            table.wheels,
            found.position,
            found.velocity,
            found.connected,
            found.faulty,
            table.position,
            table.rolling,
            table.connected,
            table.faulty,
            table.moved,
            table.speeds,
            self._changed,
        )
        table.homing[:] = found.homing
        if changed:
            tick.update_motors(
                table.motor_robot,
                table.is_drive,
                table.connected,
                table.faulty,
                table.drive_down,
                table.function_down,
            )
            for place in np.flatnonzero(self._changed).tolist():
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
            table.lidar_robot,
            seen.ahead,
            seen.connected,
            UNLIMITED,
            table.ahead,
            table.lidar_up,
        )

    def _read_inputs(self) -> None:
        table, io = self.table, self.hardware.io
        if table.estop_inputs.size:
            tick.merge_inputs(
                table.estop_robot,
                io.read_inputs(table.estop_inputs),
                io.inputs_connected(table.estop_inputs),
                table.estop,
                table.inputs_up,
            )
        if table.hold_inputs.size:
            up = np.ones(table.size, dtype=np.bool_)
            held = io.read_inputs(table.hold_inputs)
            tick.merge_inputs(table.hold_robot, held, held, table.io_hold, up)

    def _watch(self, seconds: float) -> None:
        self._kernels.watch_obstacles(seconds)

    def _locate(self, now: int) -> None:
        """Odometry: an exact arc from the positions of the wheels; markers correct it."""
        self._kernels.move_on_arcs()
        self._kernels.add_travel()
        self._take_scans(now)

    def _update_statuses(self, now: int) -> None:
        table = self.table
        count = self._kernels.update_statuses(self.queue.connected)
        for row in np.flatnonzero(table.changes).tolist() if count else ():
            self.robots[row].changed(int(table.changes[row]), now)
            self._wakes[row] = self.robots[row].wake_at

    def _publish_due(self, now: int) -> None:
        table = self.table
        count = tick.find_due(table.due, table.periods, now, self._due)
        if count and self.queue.connected:
            self._streams.publish(self._due[:count], now)

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


# ── what an operator sees ────────────────────────────────────────────────────────────────────────

BIT = {name: 1 << number for number, name in enumerate(FLAGS)}


class Drawn(NamedTuple):
    """Poses as the robots believe them, codes of `STATUSES`, and whether they move."""

    poses: Floats
    statuses: Codes
    moving: Flags


def _flags(table: Table, robots: Sequence[Robot]) -> Bytes:
    flags = np.zeros(table.size, dtype=np.uint8)
    flags[table.estop] |= BIT["estop"]
    flags[~find_sound(table, slice(None))] |= BIT["fault"]
    flags[table.blocked] |= BIT["blocked"]
    flags[table.traffic_hold] |= BIT["held"]
    flags[[robot.executor.is_busy for robot in robots]] |= BIT["busy"]
    flags[[robot.tasks.is_active for robot in robots]] |= BIT["task"]
    flags[[file.runtime.mode == "REAL" for file in table.files]] |= BIT["real"]
    return flags


def _hold(robot: Robot) -> HoldReading:
    state, fastest = robot.node_hold.state, robot.reports.speed_limit
    return HoldReading(
        node=state.node_id,
        active=state.active,
        standing=state.standing,
        at_node=robot.tasks.steps.node_id,
        max_speed=fastest if fastest < UNLIMITED else None,
    )


def _motors(robot: Robot, states: dict[str, MotorState]) -> Iterator[MotorReading]:
    for motor in robot.file.motors:
        state = states[motor.motor_id]
        fault = [text for text in (state.fault_code, state.fault_message) if isinstance(text, str)]
        yield MotorReading(
            motor.motor_id,
            motor.role,
            state.mode,
            state.connected,
            state.position,
            state.velocity,
            ": ".join(fault),
        )


def _signals(
    layout: Layout, row: int, hardware: TimedHardware
) -> tuple[list[Signal], list[Signal], list[Signal]]:
    """Inputs, outputs and devices of a robot."""
    ins = [(n, each.point) for n, each in enumerate(layout.inputs) if each.robot == row]
    outs = [(n, each.point) for n, each in enumerate(layout.outputs) if each.robot == row]
    devs = [(n, each.device) for n, each in enumerate(layout.devices) if each.robot == row]
    in_rows, out_rows, dev_rows = (rows_of([n for n, _ in each]) for each in (ins, outs, devs))
    io = hardware.io
    in_values = zip(io.read_inputs(in_rows), io.inputs_connected(in_rows), strict=True)
    return (
        [
            Signal(point.io_id, point.role, bool(on), bool(there))
            for (_, point), (on, there) in zip(ins, in_values, strict=True)
        ],
        [
            Signal(point.io_id, point.role, bool(on))
            for (_, point), on in zip(outs, io.read_outputs(out_rows), strict=True)
        ],
        [
            Signal(device.device_id, device.type, bool(there), bool(there))
            for (_, device), there in zip(devs, hardware.sensors.connected(dev_rows), strict=True)
        ],
    )


# ── the fleet ────────────────────────────────────────────────────────────────────────────────────

INBOX = 1024
"""Messages that may wait for the next tick; twice as many as robots, if these are more."""
ANSWERS = 4
"""Confirmed messages that a message of the backend causes: an ack and its event, twice or more."""


@dataclass(frozen=True, slots=True)
class FleetStatus:
    """`waiting`: messages that the broker has not confirmed; `given_up`: too many waited."""

    robots: int
    connected: bool
    waiting: int
    given_up: int


class SavedFleet(Struct, forbid_unknown_fields=True):
    post: SavedSendQueue
    tickers: list[SavedTicker]
    ended: bool


WINDOW = 10 * NS_PER_SECOND
MOST_UNKNOWN = 20
"""Robots that are named in a window; a flood of messages makes no flood of lines."""
LONGEST_ID = 64


class UnknownRobots:
    """Messages for robots that do not exist. ``report`` is called with the robot, the kind of the
    message, the number of such messages so far and the time: at most once for each robot in
    `WINDOW`."""

    def __init__(
        self, elsewhere: Collection[str] | None, report: Callable[[str, str, int, int], None]
    ) -> None:
        self._elsewhere = None if elsewhere is None else frozenset(elsewhere)
        self._report = report
        self._count = 0
        self._begun = 0
        self._named: set[str] = set()

    def note(self, robot_id: str, kind: str, now: int) -> None:
        if self._elsewhere is None or robot_id in self._elsewhere:
            return
        self._count += 1
        if now - self._begun >= WINDOW:
            self._begun = now
            self._named.clear()
        name = "".join(c if c.isprintable() else "?" for c in robot_id[:LONGEST_ID])
        if name not in self._named and len(self._named) < MOST_UNKNOWN:
            self._named.add(name)
            self._report(name, kind, self._count, now)


class Fleet:
    """`ports.TimedComponent`, and what the face of the robots uses.

    ``run_id`` and ``epoch`` are part of every message;
    ``seeds``: of the robots, for `simulation.started`; ``planner``: finds routes if no backend
    does. ``meet``: the robots see each other, so that one that stands is not left out while another
    one moves. ``spread``: the robots send the messages of their streams at different ticks, so that
    the broker gets as many at each. ``elsewhere``: robots of other processes; None: another process
    reports messages for robots that do not exist.
    """

    def __init__(
        self,
        layout: Layout,
        hardware: TimedHardware,
        *,
        run_id: str,
        epoch: Epoch,
        seeds: Sequence[int | None] = (),
        planner: Planner | None = None,
        meet: bool = False,
        spread: bool = False,
        elsewhere: Collection[str] | None = (),
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        count = len(layout.robots)
        self._layout = layout
        self._hardware = hardware
        self._rests = hardware if isinstance(hardware, Rests) else None
        self._meet = meet
        self._unknown = UnknownRobots(elsewhere, self._note_unknown)
        self._log = log
        self._listeners: list[Callable[[DeviceEvent], None]] = []
        self._queue = SendQueue(count, run_id=run_id, epoch=epoch, log=log)
        self._seeds = seeds or (None,) * count
        rates = sorted({robot.runtime.tick_hz for robot in layout.robots})
        groups = [
            [row for row, robot in enumerate(layout.robots) if robot.runtime.tick_hz == rate]
            for rate in rates
        ]
        self._tickers = [
            Ticker(layout, rows, hardware, self._queue, planner, self._take_scans)
            for rows in groups
        ]
        for ticker in self._tickers if spread else ():
            ticker.table.spread_messages()
        self._places = {
            row: (ticker, place)
            for ticker, rows in zip(self._tickers, groups, strict=True)
            for place, row in enumerate(rows)
        }
        self._capacity = max(INBOX, 2 * count)
        self._ended = False

    @property
    def layout(self) -> Layout:
        return self._layout

    def robot(self, row: int) -> Robot:
        """A robot by its row in the layout."""
        ticker, place = self._places[row]
        return ticker.robots[place]

    def last_tick(self, row: int) -> int:
        """The time of the last tick of a robot."""
        ticker, _ = self._places[row]
        return ticker.time_of(ticker.ticks)

    def driven_at(self) -> int | None:
        """The time of the last tick of the robots that move or shall move; None while all stand."""
        times = [each.time_of(each.ticks) for each in self._tickers if each.drives()]
        return max(times, default=None)

    def hold(self, row: int, held: bool, now: int) -> None:
        """An operator stops a robot (MANUAL_HOLD), or releases it."""
        ticker, place = self._places[row]
        ticker.table.operator_hold[place] = held
        ticker.poked = now

    def stop(self, row: int, now: int) -> None:
        """An operator ends what a robot does: the running command fails, those that wait are
        canceled, and its tasks end as after the command STOP."""
        ticker, place = self._places[row]
        ticker.stop(place, now)
        ticker.poked = now

    def poke(self, row: int, now: int) -> None:
        """Something outside of the hardware's scripts has changed (an operator, a test): the robot
        looks at its hardware at the next tick."""
        self._places[row][0].poked = now

    def request(
        self, row: int, kind: RequestKind, payload: Mapping[str, Any], now: int
    ) -> Refused | None:
        """An operator gives a robot a message in the place of its backend: it is handled at the
        robot's next tick. Refused if the robot would reject it now."""
        ticker, place = self._places[row]
        if len(ticker.inbox) >= self._capacity:
            return Refused(f"{self._capacity} messages wait for the next tick")
        robot_id = self._layout.robots[row].identity.robot_id
        count = int(ticker.table.sent[place]), len(ticker.inbox)
        made = f"{self._queue.run_id}/operator/{now}/{count}"
        message_id = uuid_text(robot_key(made, robot_id), BOOT)
        if own_id := TO_ROBOT[kind].own_id:
            payload = {own_id: message_id, **payload}
        data = msgspec.json.encode({"messageId": message_id, "payload": payload})
        problem = self.robot(row).problem(kind, data)
        if problem is None:
            ticker.inbox.append(Delivery(place, kind, data, ""))
            ticker.poked = now
        return problem

    def on_robot_event(self, listener: FleetListener) -> None:
        """Calls ``listener`` at every event of a robot, and at the end of every task."""
        self._queue.listeners.append(listener)

    def on_event(self, listener: Callable[[DeviceEvent], None]) -> None:
        """Of `ReportsEvents`: calls the listener for events that concern no robot of the cell."""
        self._listeners.append(listener)

    def advice(self, message: str) -> str:
        return ""

    def _note_unknown(self, robot_id: str, kind: str, count: int, now: int) -> None:
        text = f"{kind} for {robot_id}: this cell has no such robot ({count} such messages so far)"
        self._log(f"nats: {text}")
        for listener in self._listeners:
            listener(DeviceEvent(now, text))
        for robot_listener in self._queue.listeners:
            robot_listener(robot_id, "robot.unknown", {"kind": kind, "messages": count}, now)

    def columns(self) -> FleetColumns:
        """All robots in the order of the layout, where they believe to be."""
        count = len(self._places)
        found = FleetColumns(
            pose=np.zeros((count, 3), dtype=np.float32),
            speed=np.zeros(count, dtype=np.float32),
            goal=np.full((count, 3), np.nan, dtype=np.float32),
            battery=np.zeros(count, dtype=np.uint8),
            status=np.zeros(count, dtype=np.uint8),
            stop=np.zeros(count, dtype=np.uint8),
            flags=np.zeros(count, dtype=np.uint8),
        )
        for ticker in self._tickers:
            table, rows = ticker.table, ticker.table.robots
            found.pose[rows] = table.pose
            found.speed[rows] = table.speeds[:, 0]
            going = table.mode == POSE
            found.goal[rows[going]] = table.goal[going, :3]
            found.battery[rows] = np.rint(self._hardware.read_robots(rows).battery_percent)
            found.status[rows] = np.where(table.status < 0, OFFLINE, table.status)
            found.stop[rows] = table.stop
            found.flags[rows] = _flags(table, ticker.robots)
        return found

    def drawn(self) -> Drawn:
        """What pages draw of all robots."""
        count = len(self._places)
        found = Drawn(
            np.zeros((count, 3)), np.zeros(count, dtype=np.int8), np.zeros(count, dtype=np.bool_)
        )
        for ticker in self._tickers:
            table, rows = ticker.table, ticker.table.robots
            found.poses[rows] = table.pose
            found.statuses[rows] = np.where(table.status < 0, OFFLINE, table.status)
            found.moving[rows] = np.abs(table.speeds[:, [0, 2]]).max(axis=1) > STILL
        return found

    def reading(self, row: int) -> FleetRobot:
        """One robot in detail, without what only the simulation and the lidar know: `true_pose` and
        `lidar` are left empty."""
        robot = self.robot(row)
        state, report = robot.reports.state(), robot.reports
        nearest = report.nearest
        inputs, outputs, devices = _signals(self._layout, row, self._hardware)
        return FleetRobot(
            name=robot.file.identity.robot_id,
            status=state.status,
            stop=state.safety_stop_reason or "",
            estop=state.estop_pressed,
            pose=(state.pose.x, state.pose.y, state.pose.yaw),
            true_pose=None,
            velocity=(state.velocity.linear, state.velocity.angular),
            battery=state.battery_percent,
            localization=state.localization_status,
            nearest=nearest if nearest < UNLIMITED else None,
            braking_distance=report.braking_distance(),
            faults=[f"{fault.code}: {fault.message}" for fault in state.faults],
            motors=list(_motors(robot, state.motors)),
            inputs=inputs,
            outputs=outputs,
            devices=devices,
            queue=robot.executor.readings(),
            tasks=robot.tasks.readings(),
            hold=_hold(robot),
            route=robot.tasks.steps.way_left() if robot.tasks.is_active else [],
            lidar=[],
        )

    def wake_modules(self, row: int, now: int) -> None:
        """A module of a robot has received something: it acts at the next tick."""
        ticker, place = self._places[row]
        ticker.wake_modules(place, now)

    # ── time ──

    def next_wake(self) -> int | None:
        if self._ended:
            return None
        wakes = [wake for each in self._tickers if (wake := self._next_tick(each)) is not None]
        return min(wakes, default=None)

    def _next_tick(self, ticker: Ticker) -> int | None:
        """The next tick. While robots stand, ticks that change nothing are left out: the next one
        is that of the next message, module, script or fault. What comes from outside, and messages
        that wait for their confirmation, bring the next tick."""
        if ticker.ticks < 0:
            return 0
        queue = self._queue
        reason = ticker.ticks, ticker.poked, queue.connected, queue.waiting > 0, self._sees(ticker)
        if ticker.plan[0] != reason:
            ticker.plan = reason, self._plan_tick(ticker)
        return ticker.plan[1]

    def _plan_tick(self, ticker: Ticker) -> int | None:
        ticker.only_messages = False
        waits = self._queue.connected and self._queue.waiting > 0
        if self._rests is None or waits or ticker.expects() or self._sees(ticker):
            return ticker.next_tick()
        change = self._rests.next_change()
        wake = min(ticker.next_module_wake(), LATEST if change is None else change)
        at = LATEST if wake >= LATEST else ticker.tick_from(wake)
        if self._queue.connected and (message := ticker.next_message()) < LATEST:
            message = ticker.tick_from(message)
            ticker.only_messages = message < at
            at = min(at, message)
        return None if at >= LATEST else at

    def _sees(self, ticker: Ticker) -> bool:
        """Whether its robots see others move, which have another tick rate."""
        others = (each for each in self._tickers if each is not ticker)
        return self._meet and any(not each.stands() for each in others)

    def wake(self, now: int) -> None:
        for ticker in self._tickers:
            at = self._next_tick(ticker)
            if at is None or at > now:
                continue
            if ticker.ticks < 0:
                ticker.start([self._seeds[row] for row in ticker.table.robots], now)
            else:
                ticker.tick(now)
        self._queue.flush(now)

    def busy(self) -> bool:
        """Whether a command is under way."""
        return any(ticker.busy() for ticker in self._tickers)

    def status(self, now: int) -> FleetStatus:
        queue = self._queue
        return FleetStatus(len(self._places), queue.connected, queue.waiting, queue.given_up)

    def shut_down(self, now: int) -> None:
        """The last messages of all robots; afterwards nothing moves."""
        for row in range(len(self._places)):
            self.robot(row).shut_down(now)
        self._queue.flush(now)
        self._ended = True

    def _take_scans(self, now: int) -> None:
        for scan in self._hardware.sensors.take_scans():
            self.robot(self._layout.devices[scan.row].robot).scanned(scan, now)

    # ── the broker ──

    def set_connected(self, connected: bool, now: int) -> None:
        """The messages of a new connection are sent at the next tick."""
        self._queue.set_connected(connected)
        for ticker in self._tickers:
            ticker.poked = now
            ticker.greets = connected

    def announce(self, now: int) -> None:
        """The broker has lost what it had stored: at the next tick every robot says again who it
        is, its settings and its state, and what is under way is recorded again."""
        for ticker in self._tickers:
            ticker.poked = now
            ticker.greets = self._queue.connected
            for robot in ticker.robots:
                robot.journal.write_again()

    def receive(self, message: WireMessage, now: int) -> None:
        robot_id, kind = kind_of(message.address)
        row = self._layout.robot_rows.get(robot_id)
        if row is None:
            self._queue.note_handled(message.reply_to)
            self._unknown.note(robot_id, kind, now)
            return
        ticker, place = self._places[row]
        ticker.inbox.append(Delivery(place, kind, message.payload, message.reply_to))
        ticker.poked = now

    def recall(self, message: WireMessage, now: int) -> None:
        """A record of the last run; without a name: all of them have come."""
        self._queue.keeps = True
        if message.address == KEPT:
            for ticker in self._tickers:
                for robot in ticker.robots:
                    robot.recalled(now)
            return
        record = read_record(message.payload)
        robot_id = message.address.removeprefix(f"{KEPT}/").partition(".")[0]
        found = self._layout.robot_rows.get(robot_id)
        if record is None or found is None:
            return
        ticker, place = self._places[found]
        if record.phase == "ACCEPTED":
            ticker.inbox.append(Delivery(place, record.kind, bytes(record.message), ""))
            ticker.poked = now
        else:
            ticker.robots[place].recall(record, now)

    def confirmed(self, message_id: str, now: int) -> None:
        self._queue.confirmed(message_id)
        if self._ended:  # no tick comes that sends what is left
            self._queue.flush(now)

    def credit(self) -> int:
        """Half of the outbox is for answers to the backend: a backend that asks faster than the
        broker stores the answers has to wait. It may always send one message, so that a STOP comes
        through while nothing is stored."""
        most = min(self._capacity, max(self._queue.free_half() // ANSWERS, 1))
        return max(most - sum(len(ticker.inbox) for ticker in self._tickers), 0)

    def take(self, room: int) -> WireMessage | None:
        return self._queue.take(room)

    def take_many(self, room: int) -> Sequence[WireMessage]:
        return self._queue.take_many(room)

    def take_handled(self) -> Sequence[str]:
        return self._queue.take_handled()

    def waiting(self) -> bool:
        return self._queue.has_ready()

    def subjects(self) -> Sequence[str]:
        """What the robots listen to."""
        return [f"robot.*.{kind}" for kind in TO_ROBOT]

    # ── snapshot ──

    def save(self) -> State:
        return SavedFleet(self._queue.save(), [each.save() for each in self._tickers], self._ended)

    def load(self, state: State) -> None:
        saved = msgspec.convert(state, SavedFleet)
        if len(saved.tickers) != len(self._tickers):
            raise msgspec.ValidationError(f"tickers: {len(self._tickers)} are needed")
        self._queue.load(saved.post)
        for ticker, part in zip(self._tickers, saved.tickers, strict=True):
            ticker.load(part)
        self._ended = saved.ended
