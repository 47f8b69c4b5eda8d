"""The pins of a controller as its devices see them, and changes of a digital pin."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from understudy.errors import Refused

Bank = Literal["DI", "DO"]


class PinChange(NamedTuple):
    """A digital pin that has another level from this instant on."""

    at: int
    bank: Bank
    pin: int
    value: bool


class ControllerPins(Protocol):
    """The pins of a controller, simulated or REAL, as a device or a job uses them: it sets outputs
    as a program does, and reads inputs."""

    def digital_output(self, pin: int | str, /) -> bool: ...

    def analog_output(self, channel: int | str, /) -> float: ...

    def digital_input(self, pin: int | str, /) -> bool: ...

    def analog_input(self, channel: int | str, now: int, /) -> float: ...

    def set_digital_output(self, pin: int | str, value: bool, now: int, /) -> Refused | None: ...

    def set_analog_output(
        self, channel: int | str, value: float, now: int, /
    ) -> Refused | None: ...

    def on_change(self, listener: Callable[[PinChange], None], /) -> None:
        """Calls the listener inside every change of a digital pin."""
        ...


@runtime_checkable
class PollsInputs(ControllerPins, Protocol):
    """Pins of a REAL controller that reports an input only when it is asked, and while nothing
    moves."""

    def follow(self, digital: Sequence[int | str], analog: Sequence[int | str] = ()) -> None:
        """These inputs are read again and again while nothing moves."""
        ...

    def read_since(self, since: int) -> bool:
        """Whether every followed input was read at this time or later."""
        ...


class DevicePins(ControllerPins, Protocol):
    """The pins between a simulated controller and its simulated devices, which drive inputs."""

    def own(self, pin: int) -> None:
        """The device drives this digital input from now on."""
        ...

    def drive(self, pin: int, value: bool, now: int) -> None:
        """Sets the level of an owned input; a forced value hides it."""
        ...

    def is_driven(self, pin: int) -> bool: ...

    def drive_analog(self, channel: int, source: Callable[[int], float]) -> None:
        """Reads an analog input from ``source(now)`` from now on, in volts."""
        ...

    def link_delay(self, pin: int) -> int | None:
        """The delay of the link onto a digital input in ns; None without a link."""
        ...

    def retain(self, pin: int) -> None:
        """A reset of the controller leaves this output as it is from now on."""
        ...
