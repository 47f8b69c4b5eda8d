"""Modes of operation of a robot: the Protocols between the mode manager and what it works with."""

import math
from collections.abc import Callable
from typing import Literal, Protocol, get_args, runtime_checkable

from msgspec import Struct

from understudy.errors import Refused
from understudy.ports import Finished, Ticket
from understudy.ports.refusals import LOCKED

OperationMode = Literal["WELDING", "PICKPLACE", "SCAN_TO_PATH", "MANUAL", "CHANGEOVER"]
TargetMode = Literal["WELDING", "PICKPLACE", "SCAN_TO_PATH", "MANUAL"]
"""The modes that can be requested; CHANGEOVER is the way between two of them."""
JOB_MODE: TargetMode = "PICKPLACE"
"""The mode in which jobs of cycles run."""

MANUAL_SPEED = 0.25
"""Largest speed of the tool in MANUAL, m/s."""


def arc_refusal(mode: OperationMode) -> Refused | None:
    """Why the arc cannot be switched on in a mode."""
    if mode == "WELDING":
        return None
    return Refused(f"the arc is locked in mode {mode}: only in WELDING it can burn", LOCKED)


def speed_limit(mode: OperationMode) -> float:
    """The largest speed of the tool in a mode, m/s."""
    return MANUAL_SPEED if mode == "MANUAL" else math.inf


# ── what a mode means for the controller ────────────────────────────────────────────────────────


class ModeGuard(Protocol):
    """What the mode of operation forbids the controller of a robot."""

    def arc_refusal(self) -> Refused | None:
        """Why the arc cannot be switched on now."""
        ...

    def on_limit(self, listener: Callable[[float], None]) -> None:
        """Calls the listener with the largest speed of the tool (m/s; infinite: no limit), now and
        at every change."""
        ...


@runtime_checkable
class ObeysModes(Protocol):
    """A controller whose arc and speed depend on the mode of operation."""

    def obey(self, guard: ModeGuard) -> None: ...


# ── what a changeover needs ─────────────────────────────────────────────────────────────────────


@runtime_checkable
class Settles(Protocol):
    """A process device that goes on for a while after it was switched off."""

    @property
    def settled(self) -> bool:
        """Whether it is off, and what follows, such as the flow of gas, has ended."""
        ...

    def on_process(self, listener: Callable[[int], None]) -> None: ...


@runtime_checkable
class ToolsInHand(Protocol):
    """The tools of a robot, as a changeover needs them."""

    def mounted(self, now: int) -> int:
        """The number of the tool that the robot carries; 0: none."""
        ...

    def change(self, tool: int, now: int) -> Ticket | Refused:
        """Changes the tool at the docks; the ticket ends when the new one is verified."""
        ...

    def exchanged(self, tool: int, now: int) -> Refused | None:
        """The operator has mounted this tool by hand; refused if the sensors do not agree."""
        ...

    def cancel(self, now: int) -> None:
        """Ends a change under way where it is."""
        ...

    def on_finished(self, listener: Finished) -> None: ...


# ── the manager ─────────────────────────────────────────────────────────────────────────────────

ChangeoverStep = Literal[
    "STOP_WELD",
    "PARK_TORCH",
    "TOOL_CHANGE",
    "CONFIRM_TOOL",
    "UPDATE_TLO",
    "CALIBRATE_TOOL",
]
"""The steps of a changeover, in their order."""
ChangeStep = Literal["SETTLED", ChangeoverStep, "FAILED"]
"""SETTLED: no changeover is under way."""
CHANGEOVER_STEPS: tuple[ChangeoverStep, ...] = get_args(ChangeoverStep)


class ModeStatus(Struct, frozen=True):
    """Mode and changeover. `progress`: 0 to 1. `error`: why the changeover has failed.

    `tool`: the number that an operator has to mount, while one is asked to.
    """

    mode: OperationMode
    target: TargetMode
    step: ChangeStep = "SETTLED"
    progress: float = 1.0
    error: str = ""
    tool: int = 0
    speed_limit_mm_s: float | None = None
