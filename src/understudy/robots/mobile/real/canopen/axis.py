"""One motor at a drive: its settings, the control word and the target of each cycle, its readings.

DRIVE motors run in the mode *profile velocity*, FUNCTIONAL motors in *profile position*. A target
position is handed over by a handshake: bit 4 of the control word rises with the new target, the
drive answers with bit 12 of the status word, and bit 4 is taken back.
"""

import struct

from msgspec import Struct

from understudy.robots.mobile.config.robot_file import Motor
from understudy.robots.mobile.real.canopen import cia402
from understudy.robots.mobile.real.canopen.cia402 import STEPS, DriveState, state_of
from understudy.robots.mobile.real.canopen.services import Sdo
from understudy.robots.mobile.real.channels import MotorCommand, MotorStatus
from understudy.units import NS_PER_SECOND

ENABLED_WITHIN = NS_PER_SECOND
"""A drive that is not enabled after this time is not ready."""
LARGEST = 0x7FFFFFFF
TURNS = 1 << 32
"""The position of a drive counts with 32 bits."""
_OUTPUT, _MOTION = struct.Struct("<Hi"), struct.Struct("<ii")
RAMPS = (cia402.PROFILE_VELOCITY, cia402.ACCELERATION, cia402.DECELERATION)
"""Settings that act with the next target."""


class Counts(Struct, frozen=True):
    """Counts of a drive in a metre or radian, in one of them per second, and per second squared;
    below zero if the motor turns the other way round."""

    position: float
    velocity: float
    acceleration: float


class Axis:
    """A motor at a drive; a functional one goes to ``positions``, a wheel turns with a speed."""

    def __init__(self, motor: Motor, counts: Counts) -> None:
        limits = motor.limits.si
        self.positions = motor.role == "FUNCTIONAL"
        self._counts = counts
        self._bounds = (limits.lowest, limits.highest)
        self.command = MotorCommand(
            (limits.max_speed, limits.max_acceleration, limits.max_deceleration)
        )
        self._status: int | None = None
        self._error = 0
        self._raw: int | None = None
        """Position of the drive when it was read last; None: not since it was configured."""
        self._raw_before: int | None = None
        """Position of the drive before it was configured anew; None: its zero may be another."""
        self._position = 0
        """Counts; those of a wheel do not jump when the drive begins anew."""
        self._velocity = 0
        self._asked: int | None = None
        """Target that waits for the drive's answer."""
        self._given: int | None = None
        """Target that the drive has taken."""
        self._edges = 0
        self._waiting_since: int | None = None
        """When the drive was enabled last, or could have been."""
        self._disabled_since: int | None = None

    # ── settings ──

    def settings(self) -> list[Sdo]:
        """All settings that a drive needs for the present limits."""
        speed, acceleration, deceleration = self.command.limits
        fastest = _size(speed * self._counts.velocity)
        mode = cia402.PROFILE_POSITION_MODE if self.positions else cia402.PROFILE_VELOCITY_MODE
        ramps = (acceleration, deceleration)
        found = [
            Sdo(cia402.MODE, 0, mode, 1),
            Sdo(cia402.MAX_PROFILE_VELOCITY, 0, fastest, 4, needed=False),
            *(
                Sdo(index, 0, _size(value * self._counts.acceleration), 4)
                for index, value in zip(
                    (cia402.ACCELERATION, cia402.DECELERATION), ramps, strict=True
                )
            ),
        ]
        if self.positions:
            window = _size(self.command.tolerance * self._counts.position)
            found.append(Sdo(cia402.PROFILE_VELOCITY, 0, fastest, 4))
            found.append(Sdo(cia402.POSITION_WINDOW, 0, window, 4, needed=False))
            found += self._position_limits()
        return found

    def _position_limits(self) -> list[Sdo]:
        low, high = self._bounds
        if low is None and high is None:
            return []
        unbounded = float("inf")
        ends = sorted(
            (
                self._steps(-unbounded if low is None else low),
                self._steps(unbounded if high is None else high),
            )
        )
        return [
            Sdo(cia402.POSITION_LIMITS, sub, value, 4, needed=False)
            for sub, value in enumerate(ends, 1)
        ]

    def setting_changed(self, index: int) -> None:
        """The drive has a new setting: a motion that is under way begins anew with it."""
        if index in RAMPS:
            self._given = None

    # ── what the drive sends ──

    def configured_anew(self) -> None:
        """What was known of the drive is forgotten, but not where its wheel stood: it may have
        rolled on while nothing was heard."""
        if self._raw is not None:
            self._raw_before = self._raw
        self._status = self._raw = self._asked = self._given = None
        self._waiting_since = self._disabled_since = None

    def restarted(self) -> None:
        """The drive has lost its position with its power."""
        self._raw_before = None

    def take_status(self, status: int, error: int) -> None:
        self._status, self._error = status, error

    def take_motion(self, data: bytes) -> None:
        raw, self._velocity = _MOTION.unpack_from(data)
        if self.positions:
            self._position = raw
        else:
            before = self._raw_before if self._raw is None else self._raw
            self._position += 0 if before is None else _wrapped(raw - before)
        self._raw = raw

    @property
    def heard(self) -> bool:
        """Whether status and motion have come since the drive was configured."""
        return self._status is not None and self._raw is not None

    def status(self) -> MotorStatus:
        state = state_of(self._status or 0)
        faulty = state in (DriveState.FAULT, DriveState.FAULT_REACTION)
        return MotorStatus(
            ready=faulty or (self._disabled_since is None and state is not DriveState.UNKNOWN),
            faulty=faulty,
            position=self._position / self._counts.position,
            velocity=self._velocity / self._counts.velocity,
            fault=self._error,
        )

    # ── what the drive gets ──

    def output(self, now: int) -> tuple[bytes, str]:
        """Control word and target as they are mapped, and what is to be logged. Nothing is sent
        before the state of the drive is known: a wrong control word would let a motor coast."""
        if self._status is None:
            return b"", ""
        state = state_of(self._status)
        word = self._control(state, self._status)
        target = self._position_target() if self.positions else self._speed()
        return _OUTPUT.pack(word, target), self._watch_enabling(state, now)

    def stop(self) -> bytes:
        """A quick stop, as it is mapped, whatever the state of the drive is."""
        return _OUTPUT.pack(cia402.QUICK_STOP, self._position_target() if self.positions else 0)

    def _control(self, state: DriveState, status: int) -> int:
        word = STEPS[state][self.command.enable]
        if state is DriveState.FAULT and self.command.reset:
            self._edges += 1
            return word | cia402.RESET_FAULT * (self._edges % 2)
        self._edges = 0
        if state is not DriveState.ENABLED or not self.command.enable:
            self._asked = self._given = None
        elif self.positions:
            word |= self._set_point(bool(status & cia402.SET_POINT_TAKEN))
        return word

    def _set_point(self, taken: bool) -> int:
        """Bits of the control word that start and stop a motion to the target."""
        if not self.command.moving:
            self._asked = self._given = None
            return cia402.HALT
        if self._asked is not None and taken:
            self._given, self._asked = self._asked, None
        target = self._steps(self.command.target)
        if self._asked is None and not taken and target != self._given:
            self._asked = target
        return 0 if self._asked is None else cia402.NEW_SET_POINT | cia402.CHANGE_AT_ONCE

    def _watch_enabling(self, state: DriveState, now: int) -> str:
        """Notes a drive that shall be enabled and is not: its power may be off."""
        since = self._waiting_since
        if state is DriveState.ENABLED or not self.command.enable or since is None:
            self._waiting_since = now
            self._disabled_since = None
        elif self._disabled_since is None and now - since > ENABLED_WITHIN:
            self._disabled_since = now
            return (
                ""
                if state is DriveState.FAULT
                else f"the drive is not enabled: it stays in {state} ({self._status or 0:04X}h)"
            )
        return ""

    def _position_target(self) -> int:
        """The target that the drive shall take, or has taken."""
        found = self._given if self._asked is None else self._asked
        return 0 if found is None else found

    def _speed(self) -> int:
        fastest = self.command.limits[0]
        speed = max(min(self.command.speed, fastest), -fastest)
        return _clipped(speed * self._counts.velocity)

    def _steps(self, position: float) -> int:
        return _clipped(position * self._counts.position)


def _clipped(value: float) -> int:
    return round(max(min(value, LARGEST), -LARGEST))


def _size(value: float) -> int:
    """A limit; drives refuse 0."""
    return max(_clipped(abs(value)), 1)


def _wrapped(difference: int) -> int:
    """The difference between two positions, over the end of their 32 bits, too."""
    return (difference + TURNS // 2) % TURNS - TURNS // 2
