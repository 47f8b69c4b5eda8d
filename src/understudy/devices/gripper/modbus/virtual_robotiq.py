"""A Robotiq 2F gripper that is not there: activation, moves, automatic release, faults."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from understudy.devices.gripper.modbus.fingers import Fingers
from understudy.devices.gripper.modbus.interface import Limits, Opening, Word
from understudy.devices.gripper.modbus.robotiq import (
    ACTIVATE,
    ACTIVATION_FAILED,
    ACTIVE,
    AT_POSITION,
    COMMAND,
    COUNT,
    DELAYED,
    GO_TO,
    MOVING,
    NOT_ACTIVATED,
    OVERCURRENT,
    RELEASE,
    RELEASE_OPENING,
    RELEASED,
    RELEASING,
    RESET,
    STARTING,
    STATUS,
    STOPPED_CLOSING,
    STOPPED_OPENING,
    force_of,
    opening_of,
    position_of,
    speed_of,
)
from understudy.devices.gripper.modbus.server import ILLEGAL_ADDRESS, registers_in
from understudy.protocol.modbus import READ_HOLDING, READ_INPUT, READ_WRITE, WRITE

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
    """`command`: the three registers as they were written. `steps`: openings that the activation
    has still to go to. `fault`: gFLT of a failed gripper."""

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
        self._state = State()
        fingers.on_rest(self._rested)

    # ── registers ──

    def read(self, address: int, count: int, now: int) -> Sequence[int] | int:
        self._fingers.look(now)
        table = dict(enumerate(self._status(now), STATUS))
        table |= dict(enumerate(self._state.command, COMMAND))
        return registers_in(table, address, count)

    def write(self, address: int, values: Sequence[int], now: int) -> int:
        if address < COMMAND or address + len(values) > COMMAND + COUNT:
            return ILLEGAL_ADDRESS
        before = list(self._state.command)
        self._state.command[address - COMMAND : address - COMMAND + len(values)] = values
        self._act(before, now)
        return 0

    def _status(self, now: int) -> list[int]:
        action, position = self._state.command[0] >> 8, self._state.command[1] & 0xFF
        status = action & ACTIVATE | self._going() | STATES.get(self._state.mode, RESET) << 4
        at = position_of(self._fingers.opening(now), self._limits.stroke)
        return [
            (status | self._object() << 6) << 8,
            self._fault() << 8 | position,
            at << 8 | self._current(),
        ]

    def _going(self) -> int:
        return self._state.command[0] >> 8 & GO_TO

    def _object(self) -> int:
        state = self._fingers.state
        if self._state.mode != "active" or self._fingers.moving:
            return MOVING
        if state.rest in ("touching", "blocked"):
            return STOPPED_CLOSING if state.closing else STOPPED_OPENING
        return AT_POSITION if state.rest == "reached" and self._going() else MOVING

    def _fault(self) -> int:
        mode = self._state.mode
        if mode == "reset" or mode == "activating":
            waits = NOT_ACTIVATED if mode == "reset" else DELAYED
            return waits if self._going() else 0
        return {"releasing": RELEASING, "released": RELEASED}.get(mode, self._state.fault)

    def _current(self) -> int:
        if not self._fingers.moving:
            return 0
        return CLOSING_CURRENT if self._fingers.state.closing else OPENING_CURRENT

    # ── actions ──

    def _act(self, before: Sequence[int], now: int) -> None:
        action, was = self._state.command[0] >> 8, before[0] >> 8
        if not action & ACTIVATE:
            self._event("rACT off", now)
        elif not was & ACTIVATE:
            self._event("rACT on", now)
        if action & RELEASE and action & ACTIVATE:
            self._event("rATR", now)
        if self._state.mode != "active":
            return
        if action & GO_TO:
            if self._state.command != list(before):
                self._go(now)
        elif was & GO_TO:
            self._fingers.halt(now)

    def _event(self, event: str, now: int) -> None:
        after = TRANSITIONS.get((self._state.mode, event))
        if after is None or after == self._state.mode:
            return
        self._state.mode = after
        ENTERED[after](self, now)

    def _reset(self, now: int) -> None:
        self._state.fault = 0
        self._state.steps = []
        self._fingers.halt(now)

    def _begin_activation(self, now: int) -> None:
        self._state.steps = [self._limits.stroke, 0.0, self._limits.stroke]
        self._next_step(now)

    def _next_step(self, now: int) -> None:
        goal = self._state.steps.pop(0)
        self._fingers.go(goal, self._limits.speed[1], self._limits.force[0], now)

    def _begin(self, now: int) -> None:
        """Active: carries out the action that was delayed."""
        if self._going():
            self._go(now)

    def _go(self, now: int) -> None:
        _, position, last = self._state.command
        goal = opening_of(position & 0xFF, self._limits.stroke)
        speed = speed_of(last >> 8, self._limits)
        self._fingers.go(goal, speed, force_of(last & 0xFF, self._limits), now)

    def _release(self, now: int) -> None:
        opens = self._state.command[0] >> 8 & RELEASE_OPENING
        goal = self._limits.stroke if opens else 0.0
        speed = speed_of(RELEASE_SPEED, self._limits)
        self._fingers.go(goal, speed, self._limits.force[0], now)
        if self._fingers.touching:
            self._event("done", now)

    def _stop(self, now: int) -> None:
        if not self._state.fault:
            self._state.fault = ACTIVATION_FAILED
        self._fingers.halt(now)

    def _stay(self, now: int) -> None:
        """Nothing moves."""

    def _rested(self, now: int) -> None:
        mode, rest = self._state.mode, self._fingers.state.rest
        if mode == "releasing":
            self._event("done", now)
        elif mode == "activating" and rest != "reached":
            self._event("obstacle", now)
        elif mode == "activating" and self._state.steps:
            self._next_step(now)
        elif mode == "activating":
            self._event("done", now)

    # ── faults and snapshot ──

    def fail(self, now: int) -> None:
        """The drive switches off by overcurrent; held parts stay between the fingers."""
        self._state.fault = OVERCURRENT
        self._event("fault", now)

    def repair(self, now: int) -> None:
        """Power off and on: rACT is 0."""
        self._state.command = [0, 0, 0]
        self._event("rACT off", now)

    def problem(self) -> str:
        return "overcurrent" if self._state.fault == OVERCURRENT else ""

    def save(self) -> State:
        return self._state

    def load(self, state: Any) -> None:
        self._state = msgspec.convert(state, State)


ENTERED = {
    "reset": VirtualRobotiq._reset,
    "activating": VirtualRobotiq._begin_activation,
    "active": VirtualRobotiq._begin,
    "releasing": VirtualRobotiq._release,
    "released": VirtualRobotiq._stay,
    "failed": VirtualRobotiq._stop,
}
"""What happens when a mode is entered."""
