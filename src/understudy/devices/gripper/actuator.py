"""Protocols between the controller of a gripper and what it commands."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from understudy.agenda import Wakes
from understudy.errors import Refused
from understudy.ports import Injectable

Direction = Literal["", "close", "open"]


class Timing(NamedTuple):
    """Time-outs of closing and opening, and the time that the fingers need to settle, in ns."""

    close: int
    open: int
    settle: int


class Reading(NamedTuple):
    """The sensors of a gripper. `direction`: of the last command. `problem`: sensors, or a device,
    that report a fault. `opening`: between the fingers, m, where the gripper measures it."""

    closed: bool = False
    opened: bool = False
    part: bool = False
    force_n: float = 0.0
    vacuum_kpa: float = 0.0
    direction: Direction = ""
    problem: str = ""
    opening: float = 0.0


class Sensors(Protocol):
    """What the controller reads."""

    def reading(self, now: int) -> Reading: ...

    def on_change(self, listener: Callable[[int], None]) -> None:
        """Calls ``listener(now)`` when a reading may have changed."""
        ...


class Actuator(Sensors, Wakes, Protocol):
    """What the controller commands: valves on pins, or the driver of a servo gripper.

    It is saved as `ports.state` says."""

    timing: Timing

    def close(self, now: int) -> Refused | None: ...

    def open(self, now: int) -> Refused | None: ...

    def finish(self, now: int) -> None:
        """The command is over: switches off what is not needed to keep the state."""
        ...

    def give_up(self, now: int) -> str:
        """Closing has taken too long: switches off what held no part; returns the reason."""
        ...


@runtime_checkable
class HasVacuum(Protocol):
    """An actuator with an ejector and blow-off."""

    def enable_vacuum(self, now: int) -> Refused | None: ...

    def disable_vacuum(self, now: int) -> Refused | None: ...

    def blow_off(self, now: int) -> Refused | None: ...


@runtime_checkable
class ExplainsMiss(Protocol):
    """Simulated hardware that knows why a grip has no part."""

    def miss(self, now: int) -> str:
        """What is wrong, and what to do; empty: nothing is known."""
        ...


class Hardware(Wakes, Injectable, Protocol):
    """The simulated gripper behind the actuator, saved as `ports.state` says. A REAL gripper has
    none."""

    def opening(self, now: int) -> float:
        """The distance between the fingers, in metres."""
        ...

    def reset(self, now: int) -> None: ...

    def active_faults(self) -> Sequence[str]: ...
