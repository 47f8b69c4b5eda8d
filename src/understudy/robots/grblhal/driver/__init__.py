"""Driver of a real grblHAL, or of a simulated one behind a wire.

    0x87                 after connecting: full status report
    0x85 $I $$           once nothing moves: discard a partial line, ask for sizes and settings
    N7G1X10F600          lines as the receive buffer has room for them, each answered once
    ?                    every poll period
    ! ~ 0x18 0x19 …      at once

Every call returns at once. Everything in progress fails if the connection ends, if the controller
falls silent or restarts, or if it sends an answer without a request: lines that were sent are
reported as failed, the others as not sent, and no line is sent twice. Connecting does not enable,
home, reset or move anything. While there is no report the state is Unknown.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from understudy.errors import ConfigError, Refused
from understudy.ports import (
    AnalogIO,
    ControllerStatus,
    DigitalIO,
    Finished,
    Joints,
    JointState,
    Tally,
    Ticket,
)
from understudy.ports.controller import JointListener, StatusListener
from understudy.ports.faults import Faults
from understudy.ports.modes import ModeGuard
from understudy.ports.operation import Sender, SendOptions, StreamEnded
from understudy.ports.refusals import BUSY, JOGGING, NOT_CONNECTED, NOT_ENABLED, STOPPED
from understudy.protocol.client import ReconnectSchedule
from understudy.robots.grblhal.driver.connection import (
    HALTED,
    HOME_ALL,
    ControllerConnection,
    LineListener,
)
from understudy.robots.grblhal.driver.exchange import (
    LineQueue,
    LineWriter,
    Progress,
    QueuedLine,
    StreamedProgram,
    can_switch_arc_on,
)
from understudy.robots.grblhal.driver.jog import JogControl, JogLimits, no_axis
from understudy.robots.grblhal.driver.messages import RAPID_BYTES, feed_override
from understudy.robots.grblhal.driver.state import DEGREES, ControllerState, ReportedPins, ToolPose
from understudy.robots.grblhal.numbers import (
    AXIS_LETTERS,
    OVERRIDE_RANGES,
    AlarmCode,
    Realtime,
)
from understudy.space.pose import Pose
from understudy.units import NS_PER_MS, nanoseconds, seconds

__all__ = ["Config", "GrblHalDriver", "LineWriter", "Progress", "build"]

Milliseconds = Annotated[int, Meta(ge=1, le=3_600_000)]
Delay = Annotated[float, Meta(ge=1e-3, le=86_400.0)]
Pin = Annotated[int, Meta(ge=0, le=255)]

NOT_RESTORED = Refused("a real controller cannot be restored from a snapshot")
NO_TIME_SCALE = Refused("the time of a real controller cannot be scaled")
NOT_PLACED = Refused("a real arm cannot change its position without a motion")
NOT_ENDED_BY_HOMING = (AlarmCode.HARD_LIMIT, AlarmCode.ESTOP, AlarmCode.MOTOR_FAULT)
"""Alarms that need a reset."""


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Configuration of the driver.

    `dialect` of the programs; `arm` needs a `LineWriter` that translates them into joint lines.
    `heartbeat_ms`: how long a jog continues without a new request. `reconnect_s`: pauses between
    connection attempts; the last one is repeated. `…_output_names`: names that may replace the
    output numbers. `fewer_axes`: the controller may have fewer than six, the others are at 0.
    """

    dialect: Literal["grblhal", "arm"] = "grblhal"
    poll_ms: Milliseconds = 100
    answer_timeout_ms: Milliseconds = 3000
    heartbeat_ms: Milliseconds = 300
    reconnect_s: Annotated[tuple[Delay, ...], Meta(min_length=1)] = (1.0, 2.0, 4.0, 8.0, 16.0)
    digital_output_names: dict[str, Pin] = {}
    analog_output_names: dict[str, Pin] = {}
    fewer_axes: bool = False


class DriverState(Struct):
    """Snapshot of the driver; the controller itself cannot be saved."""

    now: int
    next_ticket: int
    pending: Ticket | None
    called: bool
    stop_owed: bool


class GrblHalDriver:
    """`MotionController`, `Component` and `Caller`."""

    def __init__(
        self,
        config: Config,
        *,
        writer: LineWriter | None,
        tool_pose: ToolPose | None,
        limits: JogLimits | None,
        units: Joints,
    ) -> None:
        timeout = config.answer_timeout_ms * NS_PER_MS
        pauses = [nanoseconds(pause) for pause in config.reconnect_s]
        self.pins = ReportedPins(config.digital_output_names, config.analog_output_names)
        self._state = ControllerState(self.pins, tool_pose, units, fewer_axes=config.fewer_axes)
        self._queue = LineQueue(writer, self._state.info)
        self._connection = ControllerConnection(
            self._state,
            self._queue,
            JogControl(self._state, limits, config.heartbeat_ms * NS_PER_MS),
            ReconnectSchedule(timeout=timeout, pauses=pauses),
            timeout=timeout,
            period=config.poll_ms * NS_PER_MS,
        )
        self._connection.report_listeners.append(self._notify_joints)
        self._status_listeners: list[StatusListener] = []
        self._joint_listeners: list[JointListener] = []
        self._last_status: tuple[object, ...] = ()
        self._now = 0
        self._sent = 0
        self._next_ticket = 1
        self._restored: Ticket | None = None
        """Ticket of a program in a snapshot, to be refused when time runs."""

    # ── connection and drives ──

    def connect(self, now: int) -> Refused | None:
        """Start to connect; `is_connected` is true once it has succeeded."""
        self._connection.connect(now)
        return self._done(now)

    def disconnect(self, now: int) -> Refused | None:
        """Stop everything that this driver has started, then disconnect."""
        self.disable(now)
        self._connection.disconnect(now)
        return self._done(now)

    def is_connected(self) -> bool:
        return self._connection.connected()

    def enable(self, now: int) -> Refused | None:
        """Allow lines; a grblHAL enables its drives with the first of them."""
        refused = self._unreachable() or self._alarm()
        if refused is None:
            self._connection.enabled = True
        return refused or self._done(now)

    def disable(self, now: int) -> Refused | None:
        """Refuse lines from now on, and stop everything that this driver has started."""
        if self._connection.enabled and self._connection.working():
            self._connection.halt(HALTED, now)
        self._connection.enabled = False
        return self._done(now)

    def is_enabled(self) -> bool:
        return self._connection.enabled

    def is_simulation(self) -> bool:
        return False

    # ── motion ──

    def send_gcode(self, text: str, now: int) -> Refused | None:
        """Queue a line; a line that cannot be read is refused at once.

        After a line has failed later, every line is refused until an empty one or a reset.
        """
        if refused := self._not_ready() or (None if self._connection.jogging.over else JOGGING):
            return refused
        if not text.strip():
            self._connection.clear_error()
        if self._queue.program or self._connection.error:
            return self._connection.error or BUSY
        line = self._queue.check(text, self._sent + 1)
        if isinstance(line, Refused):
            return line
        self._sent += 1
        refused = self._queue.add(QueuedLine(self._sent, line)) if line else None
        self._connection.advance(now)
        return refused or self._done(now)

    def run(self, lines: Iterable[str], now: int) -> Ticket | Refused:
        """Stream a program; lines are read as they can be sent. `on_finished` reports its end."""
        if refused := self._not_ready() or self._connection.error:
            return refused
        if self._connection.occupied():
            return BUSY
        ticket = Ticket(self._next_ticket)
        self._next_ticket += 1
        self._queue.program = StreamedProgram(ticket, iter(lines))
        self._connection.advance(now)
        self._done(now)
        return ticket

    def progress(self) -> Progress | None:
        program = self._queue.program
        return Progress(program.read, program.accepted) if program else None

    def jog(self, axis: int, velocity: float, now: int) -> Refused | None:
        """Move one axis at a velocity in rad/s until `heartbeat_ms` pass without a new request."""
        if refused := self._not_ready() or no_axis(axis):
            return refused
        if not math.isfinite(velocity):
            return Refused(f"{velocity} rad/s is not a speed")
        connection = self._connection
        if connection.jogging.over and (connection.working() or not self._state.known):
            return BUSY
        self._queue.lose_position()
        connection.jogging.jog(axis, velocity, connection.exchange, now)
        return self._advance(now)

    def stop_jog(self, now: int) -> Refused | None:
        self._connection.jogging.stop(self._connection.exchange)
        return self._advance(now)

    def stop(self, now: int) -> Refused | None:
        """Brake along the path and drop the waiting lines; the modal state is that after a
        reset."""
        self._connection.halt(HALTED, now)
        return self._done(now)

    def emergency_stop(self, now: int) -> Refused | None:
        """Send a reset, which is no safety function; nothing is accepted until `reset`.

        It is sent again if the connection ends before the controller confirms it.
        """
        self._connection.stopped, self._connection.enabled = STOPPED, False
        self._connection.stop_owed = True
        self._connection.reset(STOPPED, now, unlock=False)
        return self._done(now)

    def home(self, now: int, axis: int = -1) -> Refused | None:
        """Queue the homing of one axis or of all; it is accepted in an alarm that homing ends."""
        alarm = self._connection.alarm
        barred = self._not_ready()
        if barred is not None and barred == alarm and alarm.code not in NOT_ENDED_BY_HOMING:
            barred = None if self._connection.enabled else NOT_ENABLED
        if refused := barred or self._connection.error or (no_axis(axis) if axis != -1 else None):
            return refused
        if self._queue.program or not self._connection.jogging.over:
            return BUSY if self._queue.program else JOGGING
        text = HOME_ALL if axis == -1 else HOME_ALL + AXIS_LETTERS[axis]
        refused = self._queue.add(QueuedLine(0, text, "home"))
        self._connection.advance(now)
        return refused or self._done(now)

    def is_homed(self) -> bool:
        return self._state.homed

    # ── operator ──

    def hold(self, now: int) -> Refused | None:
        """Brake along the path and wait for `cycle_start`; end a jog."""
        if not self._connection.jogging.over:
            return self.stop_jog(now)
        self._connection.send_realtime(Realtime.HOLD)
        return self._advance(now)

    def cycle_start(self, now: int) -> Refused | None:
        if refused := self._not_ready():
            return refused
        self._connection.send_realtime(Realtime.START)
        return self._advance(now)

    def override_feed(self, percent: float, now: int) -> Refused | None:
        """Set the feed override in whole per cent, by steps of 10 and 1."""
        low, high = OVERRIDE_RANGES["feed"]
        if not low <= percent <= high:
            return Refused(f"{percent:g} % is outside {low}…{high} %")
        present = self._state.overrides
        self._connection.send_realtime(
            *feed_override(round(percent), present[0] if present else None)
        )
        self._state.overrides = (round(percent), *present[1:])
        return self._advance(now)

    def override_rapid(self, percent: float, now: int) -> Refused | None:
        if percent not in RAPID_BYTES:
            known = ", ".join(f"{each}" for each in sorted(RAPID_BYTES))
            return Refused(f"{percent:g} %: allowed for rapids: {known} %")
        self._connection.send_realtime(RAPID_BYTES[int(percent)])
        return self._advance(now)

    def reset(self, now: int) -> Refused | None:
        """Clear emergency stop and errors, and unlock; motion is cut off."""
        connection = self._connection
        connection.stopped = connection.alarm = connection.error = None
        connection.stop_owed = False
        connection.reset(HALTED, now, unlock=True)
        return self._done(now)

    def set_optional_stop(self, wanted: bool) -> None:
        """Set whether M1 pauses; the driver sends it with the next report."""
        self._connection.optional_stop = wanted

    def set_joint_positions(self, positions: object, now: int) -> Refused | None:
        return NOT_PLACED

    # ── pins ──

    def digital_io(self) -> DigitalIO:
        return self.pins.digital()

    def analog_io(self, now: int) -> AnalogIO:
        return self.pins.analog()

    def read_input(self, bank: Literal["DI", "AI"], pin: int, now: int) -> Refused | None:
        """Queue a reading of an input, M66; `pins` has the value when a report shows it."""
        self.pins.last_read = None
        return self._insert(f"M66{'P' if bank == 'DI' else 'E'}{pin}L0Q0", now)

    def input_result(self) -> float:
        return self.pins.result

    def set_digital_output(self, pin: int | str, value: bool, now: int) -> Refused | None:
        line = self.pins.set_digital(pin, value)
        locked = self._queue.arc_refusal()
        if locked and isinstance(line, str) and can_switch_arc_on(line):
            return locked
        return self._insert(line, now)

    def obey(self, guard: ModeGuard) -> None:
        """Sends nothing that switches the arc on while the mode of operation locks it.

        The speed of a REAL robot is not limited here: it cannot be operated in MANUAL.
        """
        self._queue.arc_refusal = guard.arc_refusal

    def set_analog_output(self, channel: int | str, value: float, now: int) -> Refused | None:
        return self._insert(self.pins.set_analog(channel, value), now)

    # ── readings and listeners ──

    def joint_state(self, now: int) -> JointState:
        """Joint state of the last report; NaN before the first one."""
        return self._state.joints()

    def axis_count(self) -> int:
        """Number of axes in the reports of the controller; 6 before the first one."""
        return self._state.axis_count

    def tcp(self, now: int) -> Pose:
        return self._state.tool_pose()

    def tally(self, now: int) -> Tally:
        return Tally(self._connection.accepted, 0, self._state.distance)

    def status(self, now: int) -> ControllerStatus:
        connection, state = self._connection, self._state
        error = self._alarm() or connection.error or connection.trouble
        moving = self._moving()
        return ControllerStatus(
            connected=connection.connected(),
            enabled=connection.enabled,
            moving=moving,
            error=error is not None,
            homed=state.homed,
            error_message=error.reason if error else "",
            error_code=error.code if error else 0,
            buffer_available=state.info.blocks - state.used_blocks,
            buffer_used=state.used_blocks,
            state=self._state_word(moving),
            line=state.line if moving else 0,
            accepted=self._sent,
            stops=connection.stops,
            at=now,
        )

    def on_status(self, listener: StatusListener) -> None:
        self._status_listeners.append(listener)

    def on_joint_state(self, listener: JointListener, now: int) -> None:
        """Call a listener with every report."""
        self._joint_listeners.append(listener)

    def on_line(self, listener: LineListener) -> None:
        """Call a listener for every line, with None if it is accepted, or with the refusal."""
        self._connection.outcomes.line_listeners.append(listener)

    def on_finished(self, listener: Finished) -> None:
        """Call a listener when a program that `run` streams has ended."""
        self._connection.outcomes.program_listeners.append(listener)

    def request_report(self, now: int) -> None:
        """Request a report now, before the next poll."""
        self._connection.request_report(now)

    # ── simulated time: no effect on a real controller ──

    def set_time_scale(self, scale: float) -> Refused | None:
        return NO_TIME_SCALE

    def pause(self) -> None:
        return None

    def resume(self) -> None:
        return None

    def simulation_time(self, now: int) -> float:
        return seconds(now)

    # ── part ──

    def next_wake(self) -> int | None:
        return self._now if self._restored is not None else self._connection.next_wake()

    def wake(self, now: int) -> None:
        self._now = now
        restored, self._restored = self._restored, None
        if restored is not None:
            self._connection.outcomes.program(restored, NOT_RESTORED, now)
        self._connection.wake(now)
        self._done(now)

    def busy(self) -> bool:
        return self._connection.under_way()

    def faults(self) -> Faults:
        return {}

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        return Refused(f"{fault} cannot be injected into a real controller")

    def save(self) -> DriverState:
        program = self._queue.program
        pending = program.ticket if program else self._restored
        return DriverState(
            self._now,
            self._next_ticket,
            pending,
            self._connection.wanted,
            self._connection.stop_owed,
        )

    def load(self, state: Any) -> None:
        """Connect again; a program of the snapshot is refused as soon as time runs."""
        saved = msgspec.convert(state, DriverState)
        self._now = saved.now
        self._next_ticket = max(self._next_ticket, saved.next_ticket)
        self._queue.program, self._restored = None, saved.pending
        self._connection.forget(NOT_RESTORED, wanted=saved.called, now=saved.now)
        self._connection.stop_owed |= saved.stop_owed

    # ── wire ──

    def wanted(self) -> int | None:
        return self._connection.reconnect.wanted() if self._connection.wanted else None

    def connected(self, now: int) -> None:
        self._now = now
        self._connection.begin(now)
        self._done(now)

    def receive(self, data: bytes, now: int) -> None:
        self._now = now
        self._connection.receive(data, now)
        self._done(now)

    def take(self, room: int) -> bytes:
        return self._connection.exchange.take(room) if self._connection.exchange else b""

    def lost(self, now: int, reason: str) -> None:
        self._now = now
        self._connection.lost(Refused(reason), now)
        self._done(now)

    def on_ready(self, listener: Callable[[], None]) -> None:
        self._connection.ready_listeners.append(listener)

    # ── inside ──

    def _unreachable(self) -> Refused | None:
        return None if self._connection.connected() else NOT_CONNECTED

    def _alarm(self) -> Refused | None:
        return self._connection.stopped or self._connection.alarm

    def _not_ready(self) -> Refused | None:
        refused = self._unreachable() or self._alarm()
        return refused or (None if self._connection.enabled else NOT_ENABLED)

    def _insert(self, line: str | Refused, now: int) -> Refused | None:
        """Queue a line of the driver ahead of those that wait."""
        if isinstance(line, Refused):
            return line
        refused = self._unreachable() or self._alarm() or self._connection.error
        refused = refused or self._queue.add(QueuedLine(0, line), first=True)
        if refused is None:
            self._connection.advance(now)
        return refused or self._done(now)

    def _advance(self, now: int) -> Refused | None:
        self._connection.advance(now)
        return self._done(now)

    def _done(self, now: int) -> Refused | None:
        """Notify the listeners of the status if it has changed; return None: nothing was
        refused."""
        if self._status_listeners:
            status = self.status(now)
            flags = (status.connected, status.enabled, status.moving, status.error, status.homed)
            if (*flags, status.state) != self._last_status:
                self._last_status = (*flags, status.state)
                for listener in self._status_listeners:
                    listener(status)
        return None

    def _notify_joints(self, now: int) -> None:
        for listener in self._joint_listeners:
            listener(self._state.joints())

    def _moving(self) -> bool:
        """Whether something moves or will move without the operator; false in a hold at rest."""
        if self._alarm():
            return False
        if self._state.waits_for_operator and not self._connection.recovering():
            return False
        return self._state.moves or self._connection.working()

    def _state_word(self, moving: bool) -> str:
        if self._alarm():
            return "Alarm"
        if not self._connection.jogging.over:
            return "Jog"
        state = self._state.state
        return "Run" if state == "Idle" and moving else state


def build(
    config: Config,
    *,
    writer: LineWriter | None = None,
    tool_pose: ToolPose | None = None,
    limits: JogLimits | None = None,
    units: Joints = DEGREES,
) -> GrblHalDriver:
    """A driver; ``writer`` translates programs into joint lines, ``tool_pose`` returns the pose of
    the tool, ``limits`` are the joint limits for jogs in rad (m), ``units`` the sizes of the axes'
    units."""
    if (config.dialect == "arm") != (writer is not None):
        raise ConfigError(
            "dialect `arm` needs a writer of joint lines, dialect `grblhal` must have none",
            key="dialect",
            value=config.dialect,
        )
    return GrblHalDriver(config, writer=writer, tool_pose=tool_pose, limits=limits, units=units)


# ── `understudy send`: the lines of a program as they are ─────────────────────────────────────────


POLL_MS = 50
"""Period of the status polls."""


class LineStream:
    """`ProgramStream`. It does not unlock, home or reset: a controller in alarm stays in alarm."""

    def __init__(self, driver: GrblHalDriver, text: str) -> None:
        self.driver = driver
        self._lines = text.splitlines()
        self.total = len(self._lines)
        self._connecting = self._disconnecting = False
        self._ended: StreamEnded = lambda outcome: None
        driver.on_finished(lambda ticket, outcome, now: self._ended(outcome))

    def start(self, now: int, ended: StreamEnded) -> bool | Refused:
        if not self._connecting:
            self._connecting = True
            self.driver.connect(now)
        if not self.driver.is_connected():
            message = self.driver.status(now).error_message
            return Refused(message) if message else False
        if refused := self.driver.enable(now):
            return refused
        self._ended = ended
        started = self.driver.run(self._lines, now)
        return started if isinstance(started, Refused) else True

    def progress(self) -> int | None:
        progress = self.driver.progress()
        return progress.accepted if progress else None

    def give_up(self, now: int) -> None:
        self.driver.stop(now)

    def closing(self, now: int) -> bool:
        """Whether the connection still closes: the driver stops all motion before it
        disconnects."""
        if not self._disconnecting:
            self._disconnecting = True
            self.driver.disconnect(now)
        return self.driver.wanted() is not None


def stream(text: str, options: SendOptions) -> LineStream:
    return LineStream(build(Config(dialect="grblhal", poll_ms=POLL_MS)), text)


SENDER = Sender("grblhal", "grblhal", unit="lines", read=stream, dialects=("grblhal",))
