"""The pins of a REAL controller for its devices and jobs: the inputs are read while nothing moves.

    M66P8L0Q0        one input after the other
    <Idle|…|In:1>    its value is in the report that follows

A controller carries out M66 after all lines before it, so that no input can be read in a motion.
An analog value is the whole number that the report has.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from understudy.errors import Refused
from understudy.ports import DigitalIO
from understudy.ports.io import Bank, PinChange
from understudy.robots.grblhal.driver import GrblHalDriver
from understudy.units import NS_PER_MS

PAUSE = 20 * NS_PER_MS
"""From one round of readings to the next, and between two looks at a robot that moves."""
NO_RESULT = 1000 * NS_PER_MS
"""After this time a reading is taken as lost, and repeated."""


class PinNumbers(Protocol):
    """The numbers of one bank of pins, by number or name."""

    def number(self, pin: int | str) -> int | Refused: ...

    def known(self, pin: int | str) -> int:
        """The number of a pin, or a LookupError."""
        ...


class Input(NamedTuple):
    bank: Literal["DI", "AI"]
    pin: int


class PolledPins:
    """`PollsInputs`, and a component beside the driver. ``names``: of the banks DI, DO, AI, AO."""

    def __init__(self, driver: GrblHalDriver, names: Mapping[str, PinNumbers]) -> None:
        self._driver = driver
        self._names = names
        self._followed: list[Input] = []
        self._next = 0
        self._asked: Input | None = None
        self._asked_at = 0
        self._read_at: dict[Input, int] = {}
        self._due: int | None = None
        self._levels: dict[Bank, int] = {"DI": 0, "DO": 0}
        self._listeners: list[Callable[[PinChange], None]] = []
        driver.pins.listeners.append(self._pins_changed)

    # ── PollsInputs ──

    def follow(self, digital: Sequence[int | str], analog: Sequence[int | str] = ()) -> None:
        wanted = [Input("DI", self._names["DI"].known(pin)) for pin in digital]
        wanted += [Input("AI", self._names["AI"].known(pin)) for pin in analog]
        self._followed += [each for each in dict.fromkeys(wanted) if each not in self._followed]
        self._due = self._due or 0

    def read_since(self, since: int) -> bool:
        return all(self._read_at.get(each, -1) >= since for each in self._followed)

    def digital_output(self, pin: int | str) -> bool:
        return bool(self._driver.digital_io().outputs >> self._names["DO"].known(pin) & 1)

    def digital_input(self, pin: int | str) -> bool:
        return bool(self._driver.digital_io().inputs >> self._names["DI"].known(pin) & 1)

    def analog_output(self, channel: int | str) -> float:
        return self._driver.pins.volts_out(self._names["AO"].known(channel))

    def analog_input(self, channel: int | str, now: int) -> float:
        return self._driver.pins.volts_in(self._names["AI"].known(channel))

    def set_digital_output(self, pin: int | str, value: bool, now: int) -> Refused | None:
        number = self._names["DO"].number(pin)
        if isinstance(number, Refused):
            return number
        return self._driver.set_digital_output(number, value, now)

    def set_analog_output(self, channel: int | str, value: float, now: int) -> Refused | None:
        number = self._names["AO"].number(channel)
        if isinstance(number, Refused):
            return number
        return self._driver.set_analog_output(number, value, now)

    def on_change(self, listener: Callable[[PinChange], None]) -> None:
        """Calls the listener when the controller has set an output, or an input was read."""
        self._listeners.append(listener)

    # ── component ──

    def next_wake(self) -> int | None:
        return self._due

    def wake(self, now: int) -> None:
        if self._due is None or now < self._due:
            return
        self._due = now + PAUSE
        status = self._driver.status(now)
        if not status.connected:
            self._read_at.clear()
        if status.state != "Idle" or status.moving or status.error or not self._followed:
            self._asked = None
        elif self._asked is None or now >= self._asked_at + NO_RESULT:
            asked = self._followed[self._next % len(self._followed)]
            if self._driver.read_input(*asked, now) is None:
                self._asked, self._asked_at = asked, now

    def busy(self) -> bool:
        return False

    def status(self, now: int) -> DigitalIO:
        return self._driver.digital_io()

    # ── inside ──

    def _pins_changed(self, now: int) -> None:
        if self._asked is not None and self._driver.pins.last_read == self._asked:
            self._read_at[self._asked] = self._asked_at
            self._asked = None
            self._next += 1
            self._due = now if self._next % len(self._followed) else now + PAUSE
        levels = self._driver.digital_io()
        self._note("DO", levels.outputs, now)
        self._note("DI", levels.inputs, now)

    def _note(self, bank: Bank, levels: int, now: int) -> None:
        changed, self._levels[bank] = levels ^ self._levels[bank], levels
        for pin in range(changed.bit_length()):
            if changed >> pin & 1:
                for listener in self._listeners:
                    listener(PinChange(now, bank, pin, bool(levels >> pin & 1)))
