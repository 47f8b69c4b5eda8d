"""An OnRobot RG2 that is not there: width, force, grip detection, safety switches."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from understudy.devices.gripper.modbus.fingers import Fingers
from understudy.devices.gripper.modbus.interface import Opening, Word
from understudy.devices.gripper.modbus.onrobot import (
    BUSY,
    CONTROL,
    DEPTH,
    GRIP,
    GRIP_TIPS,
    GRIPPED,
    LIMITS,
    NEW_OFFSET,
    OFFSET,
    RELATIVE_DEPTH,
    S1_PUSHED,
    S1_TRIGGED,
    STATUS,
    STOP,
    TARGET_FORCE,
    TARGET_WIDTH,
    TENTH_MM,
    TENTH_N,
    TIP_WIDTH,
    WIDTH,
    speed_of,
)
from understudy.devices.gripper.modbus.server import ILLEGAL_ADDRESS, ILLEGAL_VALUE, registers_in
from understudy.protocol.modbus import READ_HOLDING, READ_WRITE, WRITE, WRITE_ONE

FINGER = 0.0554
"""Length of the links of a finger, m: the depth follows from the width."""
WORD = 0x10000
LARGEST_OFFSET = 500
READ = range(OFFSET, TIP_WIDTH + 1)
"""Addresses that can be read; those without a meaning are 0."""


class State(Struct):
    """`offset`: of a fingertip, 0.1 mm. `depth_at_command`: m."""

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
        self._state = State()

    # ── registers ──

    def read(self, address: int, count: int, now: int) -> Sequence[int] | int:
        self._fingers.look(now)
        state = self._state
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
        state = self._state
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
            OFFSET: self._state.offset % WORD,
            DEPTH: round(depth / TENTH_MM) % WORD,
            RELATIVE_DEPTH: round((depth - self._state.depth_at_command) / TENTH_MM) % WORD,
            WIDTH: max(tips + 2 * self._state.offset, 0),
            STATUS: self._status(),
            TIP_WIDTH: tips,
        }

    def _status(self) -> int:
        state = self._fingers.state
        gripped = state.rest in ("touching", "blocked")
        return (
            BUSY * self._fingers.moving
            | GRIPPED * gripped
            | S1_PUSHED * self._state.pushed
            | S1_TRIGGED * self._state.trigged
        )

    def _depth(self, now: int) -> float:
        """How far the fingertips stand out; less when the fingers are further apart."""
        half = self._fingers.opening(now) / 2.0
        return float((FINGER * FINGER - half * half) ** 0.5)

    # ── commands ──

    def _command(self, control: int, now: int) -> None:
        if control == STOP:
            self._fingers.halt(now)
        if control in (GRIP, GRIP_TIPS) and not self._fingers.moving and not self._state.trigged:
            offset = 0 if control == GRIP_TIPS else 2 * self._state.offset
            low, high = LIMITS.force
            force = min(max(self._state.force * TENTH_N, low), high)
            self._state.depth_at_command = self._depth(now)
            goal = (self._state.width - offset) * TENTH_MM
            self._fingers.go(goal, speed_of(force), force, now)

    # ── faults and snapshot ──

    def fail(self, now: int) -> None:
        """Safety switch 1 is pushed: the gripper stops until its power was off."""
        self._state.pushed = self._state.trigged = True
        self._fingers.halt(now)

    def repair(self, now: int) -> None:
        """Power off and on, with the switch released."""
        self._state.pushed = self._state.trigged = False

    def problem(self) -> str:
        return "safety switch 1 is pushed" if self._state.trigged else ""

    def save(self) -> State:
        return self._state

    def load(self, state: Any) -> None:
        self._state = msgspec.convert(state, State)
