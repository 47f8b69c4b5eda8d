"""A DH-Robotics AG-95 that is not there: initialisation, moves, grip state."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from understudy.devices.gripper.modbus.dh import (
    ACTUAL,
    CALIBRATE,
    CAUGHT,
    DROPPED,
    FORCE,
    FORCE_PERCENT,
    GRIP_STATE,
    INIT_STATE,
    INITIALISE,
    INITIALISED,
    INITIALISING,
    LIMITS,
    MOVING,
    ONCE,
    POSITION,
    REACHED,
    SPEED,
    SPEED_PERCENT,
    SPEED_TOO,
    UNINITIALISED,
    WHOLE,
)
from understudy.devices.gripper.modbus.fingers import Fingers
from understudy.devices.gripper.modbus.interface import Opening, Word, between, share
from understudy.devices.gripper.modbus.server import ILLEGAL_ADDRESS, ILLEGAL_VALUE, registers_in
from understudy.protocol.modbus import READ_HOLDING, READ_INPUT, WRITE, WRITE_ONE

Mode = Literal["off", "initialising", "ready", "failed"]
TRANSITIONS: Mapping[tuple[Mode, str], Mode] = {
    ("off", "initialise"): "initialising",
    ("off", "calibrate"): "initialising",
    ("ready", "calibrate"): "initialising",
    ("initialising", "initialise"): "initialising",
    ("initialising", "calibrate"): "initialising",
    ("initialising", "done"): "ready",
    ("off", "fault"): "failed",
    ("initialising", "fault"): "failed",
    ("ready", "fault"): "failed",
    ("failed", "power off and on"): "off",
}
"""An event without a row changes nothing."""
INIT_STATES: Mapping[Mode, int] = {"initialising": INITIALISING, "ready": INITIALISED}
RANGES: Mapping[int, Sequence[int]] = {
    INITIALISE: (ONCE, CALIBRATE),
    FORCE: range(FORCE_PERCENT[0], FORCE_PERCENT[1] + 1),
    SPEED: range(SPEED_PERCENT[0], SPEED_PERCENT[1] + 1),
    POSITION: range(WHOLE + 1),
    SPEED_TOO: range(SPEED_PERCENT[0], SPEED_PERCENT[1] + 1),
}
"""Registers that can be written, and their values."""


class State(Struct):
    """`steps`: openings that the initialisation has still to go to."""

    mode: Mode = "off"
    force: Word = 100
    speed: Word = 100
    position: Word = WHOLE
    initialise: Word = 0
    steps: Annotated[list[Opening], Meta(max_length=2)] = []


class VirtualDh:
    """`Registers` of an AG-95."""

    functions = (READ_HOLDING, READ_INPUT, WRITE_ONE, WRITE)

    def __init__(self, unit: int, fingers: Fingers) -> None:
        self.unit = unit
        self._fingers = fingers
        self._state = State()
        fingers.on_rest(self._rested)

    # ── registers ──

    def read(self, address: int, count: int, now: int) -> Sequence[int] | int:
        self._fingers.look(now)
        state = self._state
        values = {
            INITIALISE: state.initialise,
            FORCE: state.force,
            SPEED: state.speed,
            POSITION: state.position,
            SPEED_TOO: state.speed,
            INIT_STATE: INIT_STATES.get(state.mode, UNINITIALISED),
            GRIP_STATE: self._grip_state(),
            ACTUAL: round(self._fingers.opening(now) / LIMITS.stroke * WHOLE),
        }
        return registers_in(values, address, count)

    def write(self, address: int, values: Sequence[int], now: int) -> int:
        written = dict(zip(range(address, address + len(values)), values, strict=True))
        if not written.keys() <= RANGES.keys():
            return ILLEGAL_ADDRESS
        if any(value not in RANGES[at] for at, value in written.items()):
            return ILLEGAL_VALUE
        state = self._state
        state.force = written.get(FORCE, state.force)
        state.speed = written.get(SPEED_TOO, written.get(SPEED, state.speed))
        state.position = written.get(POSITION, state.position)
        if INITIALISE in written:
            self._initialise(written[INITIALISE], now)
        elif POSITION in written and state.mode == "ready":
            self._go(now)
        return 0

    def _grip_state(self) -> int:
        state = self._fingers.state
        if self._fingers.moving and not state.lost:
            return MOVING
        if state.lost:
            return DROPPED
        return CAUGHT if state.rest in ("touching", "blocked") else REACHED

    # ── commands ──

    def _initialise(self, how: int, now: int) -> None:
        """1: opens, unless it is initialised already. 0xA5: closes, too, to find both ends."""
        state = self._state
        state.initialise = how
        if self._event("initialise" if how == ONCE else "calibrate"):
            state.steps = [LIMITS.stroke] if how == ONCE else [0.0, LIMITS.stroke]
            self._next_step(now)

    def _event(self, event: str) -> bool:
        """Whether the table has a row for this event."""
        after = TRANSITIONS.get((self._state.mode, event))
        self._state.mode = after or self._state.mode
        return after is not None

    def _next_step(self, now: int) -> None:
        self._fingers.go(self._state.steps.pop(0), LIMITS.speed[1], LIMITS.force[0], now)
        if self._fingers.touching:
            self._rested(now)

    def _rested(self, now: int) -> None:
        """An end that a part keeps the fingers from counts as found."""
        if self._state.mode != "initialising":
            return
        if self._state.steps:
            self._next_step(now)
        else:
            self._event("done")

    def _go(self, now: int) -> None:
        state = self._state
        force = between(share(state.force, FORCE_PERCENT), LIMITS.force)
        speed = between(share(state.speed, SPEED_PERCENT), LIMITS.speed)
        self._fingers.go(LIMITS.stroke * state.position / WHOLE, speed, force, now)

    # ── faults and snapshot ──

    def fail(self, now: int) -> None:
        """The drive switches off: the gripper is not initialised, and cannot be."""
        self._event("fault")
        self._fingers.halt(now)

    def repair(self, now: int) -> None:
        """Power off and on: it must be initialised again."""
        self._event("power off and on")

    def problem(self) -> str:
        return "the drive is off" if self._state.mode == "failed" else ""

    def save(self) -> State:
        return self._state

    def load(self, state: Any) -> None:
        self._state = msgspec.convert(state, State)
