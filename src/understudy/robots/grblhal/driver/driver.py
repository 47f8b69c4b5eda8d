"""GrblHalDriver: what may be asked of a real grblHAL, and what it tells."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from understudy.errors import Refused
from understudy.ports import (
    AnalogIO,
    ControllerStatus,
    DigitalIO,
    Finished,
    JointState,
    Tally,
    Ticket,
)
from understudy.ports.controller import JointListener, StatusListener
from understudy.ports.refusals import BUSY, JOGGING, NOT_CONNECTED, NOT_ENABLED, STOPPED
from understudy.protocol.client import ReconnectSchedule
from understudy.robots.grblhal.driver.config import (
    NEEDS_THE_BUTTON,
    NO_TIME_SCALE,
    NOT_PUT,
    NOT_RESTORED,
    Config,
    Saved,
)
from understudy.robots.grblhal.driver.ends import LineListener
from understudy.robots.grblhal.driver.jog import Jogging, Limits, no_axis
from understudy.robots.grblhal.driver.lines import Job, Lines, LineWriter, Order, Progress
from understudy.robots.grblhal.driver.link import HALTED, HOME_ALL, Link
from understudy.robots.grblhal.driver.picture import Picture, Tip
from understudy.robots.grblhal.driver.pins import Pins
from understudy.robots.grblhal.driver.telling import Telling
from understudy.robots.grblhal.driver.words import (
    AXIS_LETTERS,
    HOLD,
    RAPID,
    START,
    feed_override,
)
from understudy.space.pose import Pose
from understudy.units import NS_PER_MS, nanoseconds, seconds


class GrblHalDriver:
    """`MotionController`, `Part` and `Caller`."""

    def __init__(
        self, config: Config, *, writer: LineWriter | None, tip: Tip | None, limits: Limits | None
    ) -> None:
        patience = config.answer_timeout_ms * NS_PER_MS
        pauses = [nanoseconds(pause) for pause in config.reconnect_s]
        self._pins = Pins(config.digital_output_names, config.analog_output_names)
        self._picture = Picture(self._pins, tip)
        self._lines = Lines(writer, self._picture.machine)
        self._link = Link(
            self._picture,
            self._lines,
            Jogging(self._picture, limits, config.heartbeat_ms * NS_PER_MS),
            ReconnectSchedule(timeout=patience, pauses=pauses),
            patience=patience,
            period=config.poll_ms * NS_PER_MS,
        )
        self._telling = Telling(self._link)
        self._now = 0
        self._sent = 0
        self._next_ticket = 1
        self._orphan: Ticket | None = None

    # ── connection and drives ──

    def connect(self, now: int) -> Refused | None:
        """Call; that it is connected shows later."""
        self._link.call(now)
        return self._done(now)

    def disconnect(self, now: int) -> Refused | None:
        """What was begun here is stopped first."""
        self.disable(now)
        self._link.leave(now)
        return self._done(now)

    def is_connected(self) -> bool:
        return self._link.connected()

    def enable(self, now: int) -> Refused | None:
        """Lines may be sent; a grblHAL brings its drives up with the first of them."""
        refused = self._unreachable() or self._telling.alarm()
        if refused is None:
            self._link.enabled = True
        return refused or self._done(now)

    def disable(self, now: int) -> Refused | None:
        """No line is accepted any more; what was begun here is stopped."""
        if self._link.enabled and self._link.under_way():
            self._link.halt(HALTED, now)
        self._link.enabled = False
        return self._done(now)

    def is_enabled(self) -> bool:
        return self._link.enabled

    def is_simulation(self) -> bool:
        return False

    # ── motion ──

    def send_gcode(self, text: str, now: int) -> Refused | None:
        """Queue a line; one that cannot be read is refused at once.

        After a line that failed later, every line is refused until an empty one or a reset.
        """
        if refused := self._not_ready() or (None if self._link.jogging.over else JOGGING):
            return refused
        if not text.strip():
            self._link.forgive()
        if self._lines.job or self._link.error:
            return self._link.error or BUSY
        line = self._lines.check(text, self._sent + 1)
        if isinstance(line, Refused):
            return line
        self._sent += 1
        refused = self._lines.add(Order(self._sent, line)) if line else None
        self._link.go_on(now)
        return refused or self._done(now)

    def run(self, lines: Iterable[str], now: int) -> Ticket | Refused:
        """Stream a program; lines are read as they can be said, and its end is told."""
        if refused := self._not_ready() or self._link.error:
            return refused
        if self._link.occupied():
            return BUSY
        ticket = Ticket(self._next_ticket)
        self._next_ticket += 1
        self._lines.job = Job(ticket, iter(lines))
        self._link.go_on(now)
        self._done(now)
        return ticket

    def progress(self) -> Progress | None:
        job = self._lines.job
        return Progress(job.read, job.taken) if job else None

    def jog(self, axis: int, velocity: float, now: int) -> Refused | None:
        """Move one axis at so many rad/s; asked for again before the heartbeat is late, or over."""
        if refused := self._not_ready() or no_axis(axis):
            return refused
        if not math.isfinite(velocity):
            return Refused(f"{velocity} rad/s is no speed")
        link = self._link
        if link.jogging.over and (link.under_way() or not self._picture.known):
            return BUSY
        self._lines.lose_track()
        link.jogging.turn(axis, velocity, link.talk, now)
        return self._said(now)

    def stop_jog(self, now: int) -> Refused | None:
        self._link.jogging.stop(self._link.talk)
        return self._said(now)

    def stop(self, now: int) -> Refused | None:
        """Brake along the path, and forget what waits; modes are as after a reset."""
        self._link.halt(HALTED, now)
        return self._done(now)

    def emergency_stop(self, now: int) -> Refused | None:
        """A reset on the wire: no safety function. Said again if the call ends before it is heard.

        Nothing is accepted until `reset`.
        """
        self._link.stopped, self._link.enabled = STOPPED, False
        self._link.stop_owed = True
        self._link.reset(STOPPED, now, unlock=False)
        return self._done(now)

    def home(self, now: int, axis: int = -1) -> Refused | None:
        """Queue the homing of one axis, or of all; also out of an alarm that homing ends."""
        alarm = self._link.alarm
        barred = self._not_ready()
        if barred is not None and barred == alarm and alarm.code not in NEEDS_THE_BUTTON:
            barred = None if self._link.enabled else NOT_ENABLED
        if refused := barred or self._link.error or (no_axis(axis) if axis != -1 else None):
            return refused
        if self._lines.job or not self._link.jogging.over:
            return BUSY if self._lines.job else JOGGING
        text = HOME_ALL if axis == -1 else HOME_ALL + AXIS_LETTERS[axis]
        refused = self._lines.add(Order(0, text, "home"))
        self._link.go_on(now)
        return refused or self._done(now)

    def is_homed(self) -> bool:
        return self._picture.homed

    # ── the operator's ──

    def hold(self, now: int) -> Refused | None:
        """Brake along the path and wait for `cycle_start`; a jog ends."""
        if not self._link.jogging.over:
            return self.stop_jog(now)
        self._link.say(HOLD)
        return self._said(now)

    def cycle_start(self, now: int) -> Refused | None:
        if refused := self._not_ready():
            return refused
        self._link.say(START)
        return self._said(now)

    def override_feed(self, percent: float, now: int) -> Refused | None:
        """Whole per cent: the wire knows steps of 10 and 1."""
        if not 10.0 <= percent <= 200.0:
            return Refused(f"{percent:g} % is outside 10…200 %")
        told = self._picture.overrides
        self._link.say(feed_override(round(percent), told[0] if told else None))
        self._picture.overrides = (round(percent), *told[1:])
        return self._said(now)

    def override_rapid(self, percent: float, now: int) -> Refused | None:
        if percent not in RAPID:
            known = ", ".join(f"{each}" for each in sorted(RAPID))
            return Refused(f"{percent:g} %: the wire knows {known} % for rapids")
        self._link.say(RAPID[int(percent)])
        return self._said(now)

    def reset(self, now: int) -> Refused | None:
        """Clear emergency stop and errors, and unlock; whatever moves is cut off."""
        link = self._link
        link.stopped = link.alarm = link.error = None
        link.stop_owed = False
        link.reset(HALTED, now, unlock=True)
        return self._done(now)

    def set_optional_stop(self, wanted: bool) -> None:
        """Whether M1 pauses; seen to with the next report."""
        self._link.optional_stop = wanted

    def set_joint_positions(self, positions: object, now: int) -> Refused | None:
        return NOT_PUT

    # ── pins ──

    def digital_io(self) -> DigitalIO:
        return self._pins.digital()

    def analog_io(self, now: int) -> AnalogIO:
        return self._pins.analog()

    def input_result(self) -> float:
        return self._pins.result

    def set_digital_output(self, pin: int | str, value: bool, now: int) -> Refused | None:
        return self._insert(self._pins.set_digital(pin, value), now)

    def set_analog_output(self, channel: int | str, value: float, now: int) -> Refused | None:
        return self._insert(self._pins.set_analog(channel, value), now)

    # ── what it tells ──

    def joint_state(self, now: int) -> JointState:
        """As it was told last; NaN where nobody was asked."""
        return self._picture.joints()

    def tcp(self, now: int) -> Pose:
        return self._picture.tip()

    def tally(self, now: int) -> Tally:
        return Tally(self._link.taken, 0, self._picture.distance)

    def status(self, now: int) -> ControllerStatus:
        return self._telling.status(now, self._sent)

    def on_status(self, listener: StatusListener) -> None:
        self._telling.on_status(listener)

    def on_joint_state(self, listener: JointListener, now: int) -> None:
        """Told with every report."""
        self._telling.on_joints(listener)

    def on_line(self, listener: LineListener) -> None:
        """Told of every line: taken, or why not."""
        self._link.ends.line_listeners.append(listener)

    def on_finished(self, listener: Finished) -> None:
        """Told when a program that `run` streams has ended."""
        self._link.ends.job_listeners.append(listener)

    def look(self, now: int) -> None:
        """Ask for a report now, not with the next poll."""
        self._link.look(now)

    # ── simulated time: nothing happens here ──

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
        return self._now if self._orphan is not None else self._link.next_wake()

    def wake(self, now: int) -> None:
        self._now = now
        orphan, self._orphan = self._orphan, None
        if orphan is not None:
            self._link.ends.job(orphan, NOT_RESTORED, now)
        self._link.wake(now)
        self._done(now)

    def busy(self) -> bool:
        return self._link.under_way()

    def faults(self) -> tuple[str, ...]:
        return ()

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        return Refused(f"{fault} cannot be brought about on a real controller")

    def save(self) -> Saved:
        job = self._lines.job
        pending = job.ticket if job else self._orphan
        return Saved(self._now, self._next_ticket, pending, self._link.called, self._link.stop_owed)

    def load(self, state: Any) -> None:
        """Begin a new call; a program of the snapshot is refused as soon as time runs."""
        saved = msgspec.convert(state, Saved)
        self._now = saved.now
        self._next_ticket = max(self._next_ticket, saved.next_ticket)
        self._lines.job, self._orphan = None, saved.pending
        self._link.begin_anew(NOT_RESTORED, called=saved.called, now=saved.now)
        self._link.stop_owed |= saved.stop_owed

    # ── the line ──

    def wanted(self) -> int | None:
        return self._link.reconnect.wanted() if self._link.called else None

    def connected(self, now: int) -> None:
        self._now = now
        self._link.begin(now)
        self._done(now)

    def receive(self, data: bytes, now: int) -> None:
        self._now = now
        self._link.receive(data, now)
        self._done(now)

    def take(self, room: int) -> bytes:
        return self._link.talk.take(room) if self._link.talk else b""

    def lost(self, now: int, reason: str) -> None:
        self._now = now
        self._link.break_off(Refused(reason), now)
        self._done(now)

    def on_ready(self, listener: Callable[[], None]) -> None:
        self._link.stir_listeners.append(listener)

    # ── inside ──

    def _unreachable(self) -> Refused | None:
        return None if self._link.connected() else NOT_CONNECTED

    def _not_ready(self) -> Refused | None:
        refused = self._unreachable() or self._telling.alarm()
        return refused or (None if self._link.enabled else NOT_ENABLED)

    def _insert(self, line: str | Refused, now: int) -> Refused | None:
        """A line of our own, ahead of those that wait."""
        if isinstance(line, Refused):
            return line
        refused = self._unreachable() or self._telling.alarm() or self._link.error
        refused = refused or self._lines.add_first(Order(0, line))
        if refused is None:
            self._link.go_on(now)
        return refused or self._done(now)

    def _said(self, now: int) -> Refused | None:
        self._link.go_on(now)
        return self._done(now)

    def _done(self, now: int) -> Refused | None:
        """Nothing was refused."""
        self._telling.tell(now, self._sent)
        return None
