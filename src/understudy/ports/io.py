"""Pins as a program sees them: levels, outputs, and changes of a digital pin."""

from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

from understudy.errors import Refused

Bank = Literal["DI", "DO"]


class PinChange(NamedTuple):
    """A digital pin that has another level from this instant on."""

    at: int
    bank: Bank
    pin: int
    value: bool


class ProgramPins(Protocol):
    """The pins that a program sets, reads and waits for."""

    def digital_input(self, pin: int, /) -> bool: ...

    def analog_input(self, channel: int, now: int, /) -> float: ...

    def set_digital_output(self, pin: int, value: bool, now: int, /) -> Refused | None: ...

    def set_analog_output(self, channel: int, value: float, now: int, /) -> Refused | None: ...

    def on_change(self, listener: Callable[[PinChange], None], /) -> None:
        """Calls the listener at every change of a digital pin."""
        ...


class ControlPins(ProgramPins, Protocol):
    """The pins of a controller, as a device that works through them uses them."""

    def digital_output(self, pin: int, /) -> bool: ...
