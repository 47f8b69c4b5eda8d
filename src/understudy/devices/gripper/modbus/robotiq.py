"""Registers of the Robotiq 2F-85 and 2F-140, and how a driver uses them.

    written                                         read
    0x03E8  high: action request, low: 0            0x07D0  high: gripper status, low: 0
    0x03E9  high: 0, low: rPR                       0x07D1  high: gFLT, low: gPR
    0x03EA  high: rSP, low: rFR                     0x07D2  high: gPO, low: gCU

    action request    bit 0 rACT, bit 3 rGTO, bit 4 rATR, bit 5 rARD
    gripper status    bit 0 gACT, bit 3 gGTO, bits 4 and 5 gSTA, bits 6 and 7 gOBJ

A position has 8 bits, 0 open … 255 closed. The fingers reach their ends at 13 and at 230, which
gives the 0.4 mm per bit of the 2F-85 and the 0.65 mm of the 2F-140.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import msgspec
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
from understudy.devices.gripper.modbus.server import ILLEGAL_ADDRESS, registers_in
from understudy.protocol.modbus import READ_HOLDING, READ_INPUT, READ_WRITE, WRITE

UNIT = 9
COMMAND, STATUS, COUNT = 0x03E8, 0x07D0, 3
ACTIVATE, GO_TO, RELEASE, RELEASE_OPENING = 0x01, 0x08, 0x10, 0x20
"""Bits of the action request: rACT, rGTO, rATR, rARD."""
OPEN, CLOSED = 13, 230
"""Positions (gPO) of the ends."""
LARGEST = 255

RESET, STARTING, ACTIVE = 0, 1, 3
PHASES: Mapping[int, Phase] = {RESET: "off", STARTING: "starting", ACTIVE: "ready"}
"""gSTA; 2 is not used."""
MOVING, STOPPED_OPENING, STOPPED_CLOSING, AT_POSITION = 0, 1, 2, 3
"""gOBJ."""
DELAYED, NOT_ACTIVATED, RELEASING = 0x05, 0x07, 0x0B
ACTIVATION_FAILED, OVERCURRENT, RELEASED = 0x0D, 0x0E, 0x0F
FAULTS: Mapping[int, str] = {
    DELAYED: "action delayed until the activation is completed",
    NOT_ACTIVATED: "the activation bit must be set before an action",
    0x08: "maximum operating temperature exceeded",
    0x09: "no communication for 1 s",
    0x0A: "under minimum operating voltage",
    RELEASING: "automatic release in progress",
    0x0C: "internal fault",
    ACTIVATION_FAILED: "activation fault, something was between the fingers",
    OVERCURRENT: "overcurrent",
    RELEASED: "automatic release completed",
}
"""gFLT in words."""
HARMLESS = (0, DELAYED, NOT_ACTIVATED)
"""gFLT of a gripper that the next activation or the end of this one brings back."""

LIMITS_85 = Limits(stroke=0.085, force=(20.0, 235.0), speed=(0.020, 0.150))
LIMITS_140 = Limits(stroke=0.140, force=(10.0, 125.0), speed=(0.030, 0.250))


def position_of(opening: float, stroke: float) -> int:
    """gPO of an opening."""
    return round(OPEN + (1.0 - opening / stroke) * (CLOSED - OPEN))


def opening_of(position: int, stroke: float) -> float:
    """The opening at a position, which may be beyond the ends."""
    return stroke * min(max((CLOSED - position) / (CLOSED - OPEN), 0.0), 1.0)


class RobotiqProfile:
    """`Profile`."""

    unit = UNIT
    status = Block(READ_HOLDING, STATUS, COUNT)
    single_writes = False

    def __init__(self, limits: Limits) -> None:
        self.limits = limits

    def activation(self) -> Sequence[Write]:
        return Write(COMMAND, (0, 0, 0)), Write(COMMAND, (ACTIVATE << 8, 0, 0))

    def move(self, opening: float, force: float, speed: float) -> Sequence[Write]:
        fast, strong = share(speed, self.limits.speed), share(force, self.limits.force)
        last = round(fast * LARGEST) << 8 | round(strong * LARGEST)
        return (Write(COMMAND, ((ACTIVATE | GO_TO) << 8, self.target(opening), last)),)

    def target(self, opening: float) -> int:
        """The ends are asked for by 0 and 255, beyond what the fingers reach."""
        if opening <= 0.0 or opening >= self.limits.stroke:
            return LARGEST if opening <= 0.0 else 0
        return position_of(opening, self.limits.stroke)

    def reading(self, values: Sequence[int]) -> ServoReading:
        status, fault = values[0] >> 8, values[1] >> 8
        state, found = status >> 4 & 3, status >> 6
        opening = opening_of(values[2] >> 8, self.limits.stroke)
        if state not in PHASES:
            return unknown_reading(opening, values[0])
        going = bool(status & GO_TO)
        return ServoReading(
            phase=PHASES[state],
            moving=state == ACTIVE and going and found == MOVING,
            part=going and found == STOPPED_CLOSING,
            opening=opening,
            fault="" if fault in HARMLESS else FAULTS.get(fault, f"fault {fault}"),
            target=values[1] & 0xFF,
        )


def force_of(value: int, limits: Limits) -> float:
    """N of rFR."""
    return between(value / LARGEST, limits.force)


def speed_of(value: int, limits: Limits) -> float:
    """m/s of rSP."""
    return between(value / LARGEST, limits.speed)


# ── the virtual gripper ───────────────────────────────────────────────────────────────────────────


Mode = Literal["reset", "activating", "active", "releasing", "released", "failed"]
TRANSITIONS: Mapping[tuple[Mode, str], Mode] = {
    **{
        (mode, "rACT off"): "reset"
        for mode in ("reset", "activating", "active", "releasing", "released", "failed")
    },
    ("reset", "rACT on"): "activating",
    ("activating", "done"): "active",
    ("activating", "obstacle"): "failed",
    ("activating", "rATR"): "releasing",
    ("active", "rATR"): "releasing",
    ("releasing", "done"): "released",
    ("activating", "fault"): "failed",
    ("active", "fault"): "failed",
    ("releasing", "fault"): "failed",
}
"""An event without a row changes nothing. `failed` and `released` need rACT off and on again."""
STATES: Mapping[Mode, int] = {"activating": STARTING, "active": ACTIVE}
"""gSTA by mode; all others: RESET."""
CLOSING_CURRENT, OPENING_CURRENT = 10, 16
"""gCU while the fingers move, in 10 mA; the values are those of the examples in the manual."""
RELEASE_SPEED = 0
"""rSP of the automatic release: slow."""


class State(Struct):
    """The state of the virtual gripper in a snapshot. `command`: the three registers as they were
    written. `steps`: openings that the activation has still to go to. `fault`: gFLT of a failed
    gripper."""

    command: Annotated[list[Word], Meta(min_length=COUNT, max_length=COUNT)] = msgspec.field(
        default_factory=lambda: [0] * COUNT
    )
    mode: Mode = "reset"
    steps: Annotated[list[Opening], Meta(max_length=3)] = []
    fault: Annotated[int, Meta(ge=0, le=15)] = 0


class VirtualRobotiq:
    """`Registers` of a 2F gripper."""

    functions = (READ_HOLDING, READ_INPUT, WRITE, READ_WRITE)

    def __init__(self, unit: int, limits: Limits, fingers: Fingers) -> None:
        self.unit = unit
        self._limits = limits
        self._fingers = fingers
        self.state = State()
        fingers.on_rest(self._rested)

    # ── registers ──

    def read(self, address: int, count: int, now: int) -> Sequence[int] | int:
        self._fingers.look(now)
        table = dict(enumerate(self._status(now), STATUS))
        table |= dict(enumerate(self.state.command, COMMAND))
        return registers_in(table, address, count)

    def write(self, address: int, values: Sequence[int], now: int) -> int:
        if address < COMMAND or address + len(values) > COMMAND + COUNT:
            return ILLEGAL_ADDRESS
        before = list(self.state.command)
        self.state.command[address - COMMAND : address - COMMAND + len(values)] = values
        self._act(before, now)
        return 0

    def _status(self, now: int) -> list[int]:
        action, position = self.state.command[0] >> 8, self.state.command[1] & 0xFF
        status = action & ACTIVATE | self._going() | STATES.get(self.state.mode, RESET) << 4
        at = position_of(self._fingers.opening(now), self._limits.stroke)
        return [
            (status | self._object() << 6) << 8,
            self._fault() << 8 | position,
            at << 8 | self._current(),
        ]

    def _going(self) -> int:
        return self.state.command[0] >> 8 & GO_TO

    def _object(self) -> int:
        state = self._fingers.state
        if self.state.mode != "active" or self._fingers.moving:
            return MOVING
        if state.rest in ("touching", "blocked"):
            return STOPPED_CLOSING if state.closing else STOPPED_OPENING
        return AT_POSITION if state.rest == "reached" and self._going() else MOVING

    def _fault(self) -> int:
        mode = self.state.mode
        if mode == "reset" or mode == "activating":
            waits = NOT_ACTIVATED if mode == "reset" else DELAYED
            return waits if self._going() else 0
        return {"releasing": RELEASING, "released": RELEASED}.get(mode, self.state.fault)

    def _current(self) -> int:
        if not self._fingers.moving:
            return 0
        return CLOSING_CURRENT if self._fingers.state.closing else OPENING_CURRENT

    # ── actions ──

    def _act(self, before: Sequence[int], now: int) -> None:
        action, was = self.state.command[0] >> 8, before[0] >> 8
        if not action & ACTIVATE:
            self._event("rACT off", now)
        elif not was & ACTIVATE:
            self._event("rACT on", now)
        if action & RELEASE and action & ACTIVATE:
            self._event("rATR", now)
        if self.state.mode != "active":
            return
        if action & GO_TO:
            if self.state.command != list(before):
                self._go(now)
        elif was & GO_TO:
            self._fingers.halt(now)

    def _event(self, event: str, now: int) -> None:
        after = TRANSITIONS.get((self.state.mode, event))
        if after is None or after == self.state.mode:
            return
        self.state.mode = after
        if after in ENTERED:
            ENTERED[after](self, now)

    def _reset(self, now: int) -> None:
        self.state.fault = 0
        self.state.steps = []
        self._fingers.halt(now)

    def _begin_activation(self, now: int) -> None:
        self.state.steps = [self._limits.stroke, 0.0, self._limits.stroke]
        self._next_step(now)

    def _next_step(self, now: int) -> None:
        goal = self.state.steps.pop(0)
        self._fingers.go(goal, self._limits.speed[1], self._limits.force[0], now)

    def _begin(self, now: int) -> None:
        """Active: carries out the action that was delayed."""
        if self._going():
            self._go(now)

    def _go(self, now: int) -> None:
        _, position, last = self.state.command
        goal = opening_of(position & 0xFF, self._limits.stroke)
        speed = speed_of(last >> 8, self._limits)
        self._fingers.go(goal, speed, force_of(last & 0xFF, self._limits), now)

    def _release(self, now: int) -> None:
        opens = self.state.command[0] >> 8 & RELEASE_OPENING
        goal = self._limits.stroke if opens else 0.0
        speed = speed_of(RELEASE_SPEED, self._limits)
        self._fingers.go(goal, speed, self._limits.force[0], now)
        if self._fingers.touching:
            self._event("done", now)

    def _stop(self, now: int) -> None:
        if not self.state.fault:
            self.state.fault = ACTIVATION_FAILED
        self._fingers.halt(now)

    def _rested(self, now: int) -> None:
        mode, rest = self.state.mode, self._fingers.state.rest
        if mode == "releasing":
            self._event("done", now)
        elif mode == "activating" and rest != "reached":
            self._event("obstacle", now)
        elif mode == "activating" and self.state.steps:
            self._next_step(now)
        elif mode == "activating":
            self._event("done", now)

    # ── faults and snapshot ──

    def fail(self, now: int) -> None:
        """The drive switches off by overcurrent; held parts stay between the fingers."""
        self.state.fault = OVERCURRENT
        self._event("fault", now)

    def repair(self, now: int) -> None:
        """Power off and on: rACT is 0."""
        self.state.command = [0, 0, 0]
        self._event("rACT off", now)

    def problem(self) -> str:
        return "overcurrent" if self.state.fault == OVERCURRENT else ""


ENTERED = {
    "reset": VirtualRobotiq._reset,
    "activating": VirtualRobotiq._begin_activation,
    "active": VirtualRobotiq._begin,
    "releasing": VirtualRobotiq._release,
    "failed": VirtualRobotiq._stop,
}
"""What happens when a mode is entered."""
