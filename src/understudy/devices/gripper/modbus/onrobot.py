"""Registers of the OnRobot RG2, and how a driver uses them.

    written                                    read
    0x0000  target force, 0.1 N                0x0102  fingertip offset, 0.1 mm, signed
    0x0001  target width, 0.1 mm               0x0107  depth, 0.1 mm, signed
    0x0002  control: 1 grip, 8 stop,           0x0108  relative depth, 0.1 mm, signed
            16 grip with fingertip offset      0x010B  width, 0.1 mm
    0x0403  fingertip offset                   0x010C  status
                                               0x0113  width with fingertip offset

    status   bit 0 busy, bit 1 grip detected, bits 2 to 5 safety switches 1 and 2 (pushed, trigged),
             bit 6 safety error

The width is measured between the aluminium fingers, or, with the offset of both fingertips taken
off, between the tips. While the gripper is busy it accepts no command but stop.
"""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from understudy.devices.gripper.modbus.fingers import Fingers
from understudy.devices.gripper.modbus.interface import (
    Block,
    Limits,
    Opening,
    ServoReading,
    Word,
    Write,
    between,
    share,
    unknown_reading,
)
from understudy.devices.gripper.modbus.server import ILLEGAL_ADDRESS, ILLEGAL_VALUE, registers_in
from understudy.protocol.modbus import READ_HOLDING, READ_WRITE, WRITE, WRITE_ONE

UNIT = 65
TARGET_FORCE, TARGET_WIDTH, CONTROL, NEW_OFFSET = 0x0000, 0x0001, 0x0002, 0x0403
OFFSET, DEPTH, RELATIVE_DEPTH, WIDTH, STATUS, TIP_WIDTH = (
    0x0102,
    0x0107,
    0x0108,
    0x010B,
    0x010C,
    0x0113,
)
GRIP, STOP, GRIP_TIPS = 1, 8, 16
"""Values of the control register."""
BUSY, GRIPPED, S1_PUSHED, S1_TRIGGED, S2_PUSHED, S2_TRIGGED, SAFETY = (1 << bit for bit in range(7))
SAFETY_BITS = S1_PUSHED | S1_TRIGGED | S2_PUSHED | S2_TRIGGED | SAFETY
KNOWN_BITS = BUSY | GRIPPED | SAFETY_BITS
TENTH_MM, TENTH_N = 1e-4, 0.1
LIMITS = Limits(stroke=0.110, force=(3.0, 40.0), speed=(0.055, 0.184))
READ_COUNT = TIP_WIDTH - WIDTH + 1


def speed_of(force: float) -> float:
    """The RG2 has no register for its speed: it is faster with more force."""
    return between(share(force, LIMITS.force), LIMITS.speed)


class OnRobotProfile:
    """`Profile`: widths between the fingertips, so that 0 is closed."""

    unit = UNIT
    limits = LIMITS
    status = Block(READ_HOLDING, WIDTH, READ_COUNT)
    single_writes = False

    def activation(self) -> Sequence[Write]:
        """It is ready when it has power."""
        return ()

    def move(self, opening: float, force: float, speed: float) -> Sequence[Write]:
        low, high = self.limits.force
        strong = round(min(max(force, low), high) / TENTH_N)
        wide = round(min(max(opening, 0.0), self.limits.stroke) / TENTH_MM)
        return (Write(TARGET_FORCE, (strong, wide, GRIP_TIPS)),)

    def target(self, opening: float) -> None:
        return None

    def reading(self, values: Sequence[int]) -> ServoReading:
        status, opening = values[STATUS - WIDTH], values[TIP_WIDTH - WIDTH] * TENTH_MM
        if status & ~KNOWN_BITS:
            return unknown_reading(opening, status)
        return ServoReading(
            phase="ready",
            moving=bool(status & BUSY),
            part=bool(status & GRIPPED),
            opening=opening,
            fault="a safety switch of the gripper stops it" if status & SAFETY_BITS else "",
        )


# ── the virtual gripper ───────────────────────────────────────────────────────────────────────────


FINGER = 0.0554
"""Length of the links of a finger, m: the depth follows from the width."""
WORD = 0x10000
LARGEST_OFFSET = 500
READ = range(OFFSET, TIP_WIDTH + 1)
"""Addresses that can be read; those without a meaning are 0."""


class State(Struct):
    """The state of the virtual gripper in a snapshot. `offset`: of a fingertip, 0.1 mm.
    `depth_at_command`: m."""

    force: Word = 0
    width: Word = 0
    control: Word = 0
    offset: Annotated[int, Meta(ge=-LARGEST_OFFSET, le=LARGEST_OFFSET)] = 0
    depth_at_command: Opening = 0.0
    pushed: bool = False
    trigged: bool = False


class VirtualOnRobot:
    """`Registers` of an RG2. The opening of its fingers is the width between the fingertips."""

    functions = (READ_HOLDING, WRITE_ONE, WRITE, READ_WRITE)

    def __init__(self, unit: int, fingers: Fingers) -> None:
        self.unit = unit
        self._fingers = fingers
        self.state = State()

    # ── registers ──

    def read(self, address: int, count: int, now: int) -> Sequence[int] | int:
        self._fingers.look(now)
        state = self.state
        values = {
            TARGET_FORCE: state.force,
            TARGET_WIDTH: state.width,
            CONTROL: state.control,
            NEW_OFFSET: state.offset % WORD,
            **dict.fromkeys(READ, 0),
            **self._measured(now),
        }
        return registers_in(values, address, count)

    def write(self, address: int, values: Sequence[int], now: int) -> int:
        written = dict(zip(range(address, address + len(values)), values, strict=True))
        if not written.keys() <= {TARGET_FORCE, TARGET_WIDTH, CONTROL, NEW_OFFSET}:
            return ILLEGAL_ADDRESS
        state = self.state
        offset = written.get(NEW_OFFSET, state.offset % WORD)
        offset -= WORD if offset >= WORD // 2 else 0
        control = written.get(CONTROL, 0)
        if control not in (0, GRIP, STOP, GRIP_TIPS) or abs(offset) > LARGEST_OFFSET:
            return ILLEGAL_VALUE
        state.offset = offset
        state.force = written.get(TARGET_FORCE, state.force)
        state.width = written.get(TARGET_WIDTH, state.width)
        if CONTROL in written:
            state.control = control
            self._command(control, now)
        return 0

    def _measured(self, now: int) -> dict[int, int]:
        tips = round(self._fingers.opening(now) / TENTH_MM)
        depth = self._depth(now)
        return {
            OFFSET: self.state.offset % WORD,
            DEPTH: round(depth / TENTH_MM) % WORD,
            RELATIVE_DEPTH: round((depth - self.state.depth_at_command) / TENTH_MM) % WORD,
            WIDTH: max(tips + 2 * self.state.offset, 0),
            STATUS: self._status(),
            TIP_WIDTH: tips,
        }

    def _status(self) -> int:
        state = self._fingers.state
        gripped = state.rest in ("touching", "blocked")
        return (
            BUSY * self._fingers.moving
            | GRIPPED * gripped
            | S1_PUSHED * self.state.pushed
            | S1_TRIGGED * self.state.trigged
        )

    def _depth(self, now: int) -> float:
        """How far the fingertips stand out; less when the fingers are further apart."""
        half = self._fingers.opening(now) / 2.0
        return float((FINGER * FINGER - half * half) ** 0.5)

    # ── commands ──

    def _command(self, control: int, now: int) -> None:
        if control == STOP:
            self._fingers.halt(now)
        if control in (GRIP, GRIP_TIPS) and not self._fingers.moving and not self.state.trigged:
            offset = 0 if control == GRIP_TIPS else 2 * self.state.offset
            low, high = LIMITS.force
            force = min(max(self.state.force * TENTH_N, low), high)
            self.state.depth_at_command = self._depth(now)
            goal = (self.state.width - offset) * TENTH_MM
            self._fingers.go(goal, speed_of(force), force, now)

    # ── faults and snapshot ──

    def fail(self, now: int) -> None:
        """Safety switch 1 is pushed: the gripper stops until its power was off."""
        self.state.pushed = self.state.trigged = True
        self._fingers.halt(now)

    def repair(self, now: int) -> None:
        """Power off and on, with the switch released."""
        self.state.pushed = self.state.trigged = False

    def problem(self) -> str:
        return "safety switch 1 is pushed" if self.state.trigged else ""
