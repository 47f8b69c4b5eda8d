"""Driver of a gripper with Modbus: one request at a time, and the status in a steady period.

    connected ─▶ read the status ─▶ off? write the activation ─▶ ready ─▶ poll
                                                     close, open ─▶ write the move, then poll

A request that is not answered in time is sent again: reads change nothing, and all writes set
absolute values, so that a repeated one changes nothing either. When the repetitions are used up,
the connection is made anew. A gripper that is found activated is not activated again: its fingers
would move, and drop a part.

What the gripper reports counts after a command only when it was read after the command was
acknowledged, and when the position that the device goes to is the one that was asked for.
"""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from understudy.devices.gripper.actuator import Direction, Reading, Timing
from understudy.devices.gripper.modbus import ServoConfig
from understudy.devices.gripper.modbus.interface import (
    Opening,
    Piece,
    Profile,
    ServoReading,
    Word,
    Write,
)
from understudy.errors import Refused
from understudy.protocol.client import NOT_YET, ConnectionState, DeviceCaller
from understudy.protocol.modbus import (
    LINE_RULES,
    WRITING,
    Frame,
    Kind,
    answer_fits,
    build_frame,
    exception_number,
    frame_reader,
    read_request,
    read_values,
    write_request,
)
from understudy.units import NS_PER_MS, ms_to_ns, whole_ns

CONNECTING = 2000 * NS_PER_MS
START_UP = 6000 * NS_PER_MS
"""Added to the time-outs of commands while the gripper is not activated."""
AT_END = 0.002
"""Metres from an end at which the fingers count as open or closed."""
LARGEST_TRANSACTION = 0xFFFF


class ServoSettings(Struct, frozen=True):
    """What commands ask for, SI; time-outs and settling in ns."""

    force: float
    speed: float
    close_timeout: int
    open_timeout: int
    settle: int


class Pending(Struct):
    """A request without an answer yet. `tries`: how often it may be repeated. `due`: when the
    answer is late."""

    pdu: Annotated[bytes, Meta(min_length=5, max_length=253)]
    tries: Annotated[int, Meta(ge=0, le=100)]
    due: int

    @property
    def writes(self) -> bool:
        return self.pdu[0] in WRITING

    def words(self) -> str:
        verb = "a write" if self.writes else "a read"
        return f"{verb} of register 0x{int.from_bytes(self.pdu[1:3], 'big'):04X}"


class SavedConnection(Struct):
    """Snapshot of the connection to the device."""

    state: ConnectionState = "waiting"
    due: int = 0
    number: Annotated[int, Meta(ge=0)] = 0
    failures: Annotated[int, Meta(ge=0)] = 0
    cycles: Annotated[int, Meta(ge=0)] = 0
    trouble: str = NOT_YET


class DriverState(Struct):
    """Snapshot of a driver.

    `goal`: the opening of a command that was not sent yet. `target`: of the last command. `writes`:
    what is to be sent. `status`: the status registers, empty if none were read. `fresh`: they were
    read after the last command was acknowledged; `outdated`: something was written since.
    `may_activate`: without a command. `refused`: why
    the device refuses the last request.
    """

    direction: Direction = ""
    goal: Opening | None = None
    target: Opening | None = None
    writes: Annotated[list[Write], Meta(max_length=10)] = []
    pending: Pending | None = None
    poll_at: int = 0
    status: list[Word] = []
    fresh: bool = True
    outdated: bool = False
    may_activate: bool = True
    refused: str = ""
    transaction: Word = 0
    received: Piece = b""
    unsent: Piece = b""
    ready_at: int = 0
    connection: SavedConnection = msgspec.field(default_factory=SavedConnection)


class ServoDriver(DeviceCaller):
    """`Actuator` of a servo gripper and `Caller` of its device."""

    def __init__(
        self,
        where: str,
        kind: Kind,
        profile: Profile,
        config: ServoConfig,
        settings: ServoSettings,
    ) -> None:
        super().__init__(where, lambda message: None, CONNECTING)
        self._kind = kind
        self._profile = profile
        self._unit = profile.unit if config.unit is None else config.unit
        self._config = config
        self._settings = settings
        self._reader = frame_reader(kind, "answers")
        self._state = DriverState(may_activate=config.activate_at_start)
        self._changes: list[Callable[[int], None]] = []
        travel = whole_ns(profile.limits.stroke / self._speed())
        self._own_timing = Timing(
            settings.close_timeout + travel, settings.open_timeout + travel, settings.settle
        )
        self.timing = self._starting_timing()

    # ── actuator ──

    def close(self, now: int) -> Refused | None:
        return self._command("close", 0.0, now)

    def open(self, now: int) -> Refused | None:
        return self._command("open", self._profile.limits.stroke, now)

    def finish(self, now: int) -> None:
        """The fingers keep pressing on a part by themselves."""

    def give_up(self, now: int) -> str:
        reading = self._reading()
        where = f", the fingers are {reading.opening * 1e3:.1f} mm apart" if reading else ""
        return f"no part and not closed in time{where}"

    def reading(self, now: int) -> Reading:
        state, servo = self._state, self._reading()
        if servo is None:
            return Reading(direction=state.direction, problem=self._problem())
        rests = state.fresh and servo.phase == "ready" and not servo.moving
        part = servo.part and (state.direction != "open" or not state.fresh)
        return Reading(
            closed=rests and not servo.part and servo.opening <= AT_END,
            opened=rests and servo.opening >= self._profile.limits.stroke - AT_END,
            part=part,
            force_n=self._settings.force if part else 0.0,
            direction=state.direction,
            problem=self._problem() or servo.fault,
            opening=servo.opening,
        )

    def on_change(self, listener: Callable[[int], None]) -> None:
        self._changes.append(listener)

    def _command(self, direction: Direction, goal: float, now: int) -> Refused | None:
        if self._is_lost():
            return Refused(f"the gripper is not connected: {self._trouble}")
        state = self._state
        state.direction, state.goal, state.fresh, state.refused = direction, goal, False, ""
        under_way = state.pending is not None and state.pending.writes
        state.writes = state.writes[:1] if under_way else []
        state.poll_at = now
        self._advance(now)
        return None

    def _problem(self) -> str:
        if self._state.refused:
            return self._state.refused
        return f"the gripper is not connected: {self._trouble}" if self._is_lost() else ""

    def _is_lost(self) -> bool:
        """The connection has ended, or could not be made."""
        return self._trouble not in ("", NOT_YET)

    def _reading(self) -> ServoReading | None:
        return self._profile.reading(self._state.status) if self._state.status else None

    def _speed(self) -> float:
        low, high = self._profile.limits.speed
        return min(max(self._settings.speed, low), high)

    def _starting_timing(self) -> Timing:
        own = self._own_timing
        return Timing(own.close + START_UP, own.open + START_UP, own.settle)

    # ── requests ──

    def _advance(self, now: int) -> None:
        """Sends the next request, if none is under way and one is due."""
        state = self._state
        if self._schedule.state != "connected" or state.pending is not None:
            return
        if not state.writes:
            self._plan_writes()
        if state.writes:
            write, single = state.writes[0], self._profile.single_writes
            self._send(write_request(write.address, write.values, single=single), now)
        elif state.poll_at <= now:
            self._send(read_request(*self._profile.status), now)

    def _plan_writes(self) -> None:
        """The writes that the status and a waiting command ask for."""
        state, servo = self._state, self._reading()
        if servo is None or state.outdated:
            return
        if servo.phase == "off" and (state.may_activate or state.goal is not None):
            state.may_activate = False
            state.writes = list(self._profile.activation())
        elif servo.phase == "ready" and state.goal is not None:
            state.target, state.goal = state.goal, None
            state.writes = list(
                self._profile.move(state.target, self._settings.force, self._speed())
            )

    def _send(self, pdu: bytes, now: int) -> None:
        state = self._state
        state.transaction = state.transaction % LARGEST_TRANSACTION + 1
        state.pending = Pending(pdu, self._config.retries, 0)
        self._send_pending(now)

    def _send_pending(self, now: int) -> None:
        state = self._state
        assert state.pending is not None
        state.pending.due = now + ms_to_ns(self._config.timeout_ms)
        transaction = state.transaction if LINE_RULES[self._kind].numbered else 0
        state.unsent += build_frame(self._kind, Frame(self._unit, transaction, state.pending.pdu))
        self._tell(now)

    def _answered(self, frame: Frame, now: int) -> None:
        state = self._state
        pending = state.pending
        if pending is None or frame.unit != self._unit or not answer_fits(pending.pdu, frame.pdu):
            return  # a late answer to a request that was repeated
        if LINE_RULES[self._kind].numbered and frame.transaction != state.transaction:
            return
        state.pending = None
        self._schedule.answered()
        before = self.reading(now)
        if problem := exception_number(frame.pdu):
            self._refused(problem, pending, now)
        elif pending.writes:
            self._written(now)
        else:
            self._read(read_values(frame.pdu), now)
        self._advance(now)
        if self.reading(now) != before:
            self._report(now)

    def _refused(self, problem: int, pending: Pending, now: int) -> None:
        state = self._state
        optional = pending.writes and state.writes[0].optional
        if pending.writes and optional:
            self._written(now)
            return
        state.refused = f"the gripper refuses {pending.words()}: exception {problem}"
        state.writes, state.goal = [], None
        state.poll_at = now + self._period()

    def _written(self, now: int) -> None:
        self._state.writes.pop(0)
        self._state.outdated = True
        self._state.poll_at = now + ms_to_ns(self._config.poll_ms)

    def _read(self, values: list[int], now: int) -> None:
        state = self._state
        state.status, state.outdated = values, False
        servo = self._profile.reading(values)
        if not state.fresh and state.goal is None and not state.writes:
            wanted = None if state.target is None else self._profile.target(state.target)
            state.fresh = wanted is None or servo.target == wanted
        ready = servo.phase == "ready"
        self.timing = self._own_timing if ready else self._starting_timing()
        self._cycles += 1
        state.poll_at = now + self._period()

    def _period(self) -> int:
        servo = self._reading()
        rests = self._state.fresh and servo is not None and not servo.moving
        idle = rests and servo is not None and servo.phase != "starting"
        return round((self._config.idle_poll_ms if idle else self._config.poll_ms) * NS_PER_MS)

    def _report(self, now: int) -> None:
        for listener in self._changes:
            listener(now)

    # ── time ──

    def _next_due(self) -> int | None:
        pending = self._state.pending
        return self._state.poll_at if pending is None else pending.due

    def _due(self, now: int) -> None:
        if self._state.pending is None:
            self._advance(now)
        else:
            self._repeat(now)

    def _repeat(self, now: int) -> None:
        """No answer in time: asks once more, or gives the connection up."""
        pending = self._state.pending
        assert pending is not None
        self._reader.silence()
        if not pending.tries:
            self._fail(now, f"no answer to {pending.words()}")
            return
        pending.tries -= 1
        self._send_pending(now)

    # ── the wire ──

    def connected(self, now: int) -> None:
        super().connected(now)
        self._state.poll_at = now
        self._advance(now)

    def receive(self, data: bytes, now: int) -> None:
        for frame in self._reader.feed(data):
            self._answered(frame, now)
        if self._reader.broken:
            self._fail(now, "its answer is not Modbus")

    def take(self, room: int) -> bytes:
        state = self._state
        if len(state.unsent) > room:
            return b""
        data, state.unsent = state.unsent, b""
        return data

    @property
    def ready_at(self) -> int:
        """When there was something to send, or another connection was wanted, last."""
        return self._state.ready_at

    def has_unsent(self) -> bool:
        return bool(self._state.unsent)

    def _tell(self, now: int) -> None:
        self._state.ready_at = now
        super()._tell(now)

    def _drop(self, now: int) -> None:
        state = self._state
        state.pending, state.unsent = None, b""
        state.writes = []
        state.goal = state.target = None  # a command that has failed is not repeated later
        self._reader = frame_reader(self._kind, "answers")

    def _fail(self, now: int, reason: str) -> None:
        super()._fail(now, reason)
        self._report(now)

    # ── snapshot ──

    def save(self) -> DriverState | None:
        """A REAL gripper cannot be saved: its connection goes on as it is."""
        if self._config.real is not None:
            return None
        state = self._state
        state.received = self._reader.part
        state.connection = SavedConnection(*self._schedule.save(), self._cycles, self._trouble)
        return state

    def load(self, state: Any) -> None:
        if self._config.real is not None:
            return
        self._state = loaded = msgspec.convert(state, DriverState)
        if len(loaded.status) not in (0, self._profile.status.size):
            raise ValueError(f"{len(loaded.status)} status registers")
        if loaded.pending is not None and loaded.pending.writes and not loaded.writes:
            raise ValueError("a write is under way, and there is none")
        self._reader = frame_reader(self._kind, "answers", loaded.received)
        saved = loaded.connection
        self._trouble, self._cycles = saved.trouble, saved.cycles
        self._schedule.load(saved.state, saved.due, saved.number, saved.failures)
        servo = self._reading()
        ready = servo is not None and servo.phase == "ready"
        self.timing = self._own_timing if ready else self._starting_timing()
