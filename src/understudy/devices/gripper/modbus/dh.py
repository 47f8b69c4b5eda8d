"""Registers of the DH-Robotics AG-95, and how a driver uses them.

    written                                          read
    0x0100  1: initialise, 0xA5: and calibrate       0x0200  0 not initialised, 1 done, 2 under way
    0x0101  force, 20 … 100 %                        0x0201  0 moving, 1 reached, 2 caught, 3 lost
    0x0102  speed, 1 … 100 %; 0x0104 is the same     0x0202  position, per mille
    0x0103  position, per mille: 0 closed, 1000 open

The manual names both addresses for the speed; models without it refuse them.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from understudy.devices.gripper.modbus.fingers import Fingers
from understudy.devices.gripper.modbus.interface import (
    Block,
    Limits,
    Opening,
    Phase,
    ServoReading,
    Word,
    Write,
    between,
    share,
    unknown_reading,
)
from understudy.devices.gripper.modbus.server import ILLEGAL_ADDRESS, ILLEGAL_VALUE, registers_in
from understudy.protocol.modbus import READ_HOLDING, READ_INPUT, WRITE, WRITE_ONE

UNIT = 1
INITIALISE, FORCE, SPEED, POSITION, SPEED_TOO = 0x0100, 0x0101, 0x0102, 0x0103, 0x0104
INIT_STATE, GRIP_STATE, ACTUAL = 0x0200, 0x0201, 0x0202
ONCE, CALIBRATE = 0x01, 0xA5
UNINITIALISED, INITIALISED, INITIALISING = 0, 1, 2
PHASES: Mapping[int, Phase] = {
    UNINITIALISED: "off",
    INITIALISED: "ready",
    INITIALISING: "starting",
}
GRIP_STATES = MOVING, REACHED, CAUGHT, DROPPED = 0, 1, 2, 3
WHOLE = 1000
"""The whole range, in per mille."""
FORCE_PERCENT, SPEED_PERCENT = (20, 100), (1, 100)
LIMITS = Limits(stroke=0.095, force=(45.0, 160.0), speed=(0.00136, 0.136))


def percent(value: float, limits: tuple[float, float], percents: tuple[int, int]) -> int:
    low, high = percents
    return round(low + share(value, limits) * (high - low))


class DhProfile:
    """`Profile`."""

    unit = UNIT
    limits = LIMITS
    status = Block(READ_HOLDING, INIT_STATE, 3)
    single_writes = True

    def activation(self) -> Sequence[Write]:
        return (Write(INITIALISE, (ONCE,)),)

    def move(self, opening: float, force: float, speed: float) -> Sequence[Write]:
        return (
            Write(FORCE, (percent(force, LIMITS.force, FORCE_PERCENT),)),
            Write(SPEED, (percent(speed, LIMITS.speed, SPEED_PERCENT),), optional=True),
            Write(POSITION, (round(share(opening, (0.0, LIMITS.stroke)) * WHOLE),)),
        )

    def target(self, opening: float) -> None:
        return None

    def reading(self, values: Sequence[int]) -> ServoReading:
        state, grip, position = values
        opening = LIMITS.stroke * min(position, WHOLE) / WHOLE
        if state not in PHASES or grip not in GRIP_STATES:
            return unknown_reading(opening, state, grip)
        return ServoReading(
            phase=PHASES[state],
            moving=grip == MOVING,
            part=grip == CAUGHT,
            opening=opening,
        )


# ── the virtual gripper ───────────────────────────────────────────────────────────────────────────


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
    """The state of the virtual gripper in a snapshot. `steps`: openings that the initialisation has
    still to go to."""

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
        self.state = State()
        fingers.on_rest(self._rested)

    # ── registers ──

    def read(self, address: int, count: int, now: int) -> Sequence[int] | int:
        self._fingers.look(now)
        state = self.state
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
        state = self.state
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
        state = self.state
        state.initialise = how
        if self._event("initialise" if how == ONCE else "calibrate"):
            state.steps = [LIMITS.stroke] if how == ONCE else [0.0, LIMITS.stroke]
            self._next_step(now)

    def _event(self, event: str) -> bool:
        """Whether the table has a row for this event."""
        after = TRANSITIONS.get((self.state.mode, event))
        self.state.mode = after or self.state.mode
        return after is not None

    def _next_step(self, now: int) -> None:
        self._fingers.go(self.state.steps.pop(0), LIMITS.speed[1], LIMITS.force[0], now)
        if self._fingers.touching:
            self._rested(now)

    def _rested(self, now: int) -> None:
        """An end that a part keeps the fingers from counts as found."""
        if self.state.mode != "initialising":
            return
        if self.state.steps:
            self._next_step(now)
        else:
            self._event("done")

    def _go(self, now: int) -> None:
        state = self.state
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
        return "the drive is off" if self.state.mode == "failed" else ""
