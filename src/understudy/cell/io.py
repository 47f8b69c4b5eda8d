"""Virtual I/O: the pins between a controller and what stands around it."""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from understudy.errors import Refused
from understudy.ports import AnalogIO, DigitalIO

Pins = Annotated[int, Meta(ge=0, le=32)]
Channels = Annotated[int, Meta(ge=0, le=8)]

Changed = Callable[[int], None]
"""Told that an input is another now, and when."""


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """How many pins there are, and what the analog ones bear (`null`: whatever comes).

    `wired`: each input is wired to the output of the same number.
    """

    digital_inputs: Pins = 32
    digital_outputs: Pins = 32
    analog_inputs: Channels = 8
    analog_outputs: Channels = 8
    analog_range_v: tuple[float, float] | None = (0.0, 10.0)
    wired: bool = False


class Saved(Struct):
    """What a snapshot holds of the pins."""

    inputs: int
    outputs: int
    analog_inputs: list[float]
    analog_outputs: list[float]


class VirtualIO:
    """Levels of all pins. A value that cannot be is refused and the old one stays."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._inputs = 0
        self._outputs = 0
        self._analog_inputs = [0.0] * config.analog_inputs
        self._analog_outputs = [0.0] * config.analog_outputs
        self._listeners: list[Changed] = []

    # ── reading ──

    @property
    def pins(self) -> tuple[int, int, int, int]:
        """How many digital inputs and outputs, analog inputs and outputs."""
        config = self._config
        digital = config.digital_inputs, config.digital_outputs
        return *digital, config.analog_inputs, config.analog_outputs

    def digital(self) -> DigitalIO:
        return DigitalIO(self._inputs, self._outputs)

    def analog(self) -> AnalogIO:
        return AnalogIO(tuple(self._analog_inputs), tuple(self._analog_outputs))

    def digital_input(self, pin: int) -> bool:
        return bool(self._inputs >> pin & 1)

    def analog_input(self, channel: int) -> float:
        return self._analog_inputs[channel]

    # ── writing ──

    def set_digital_output(self, pin: int, value: bool, now: int) -> Refused | None:
        if not 0 <= pin < self._config.digital_outputs:
            return _no_pin("digital output", pin, self._config.digital_outputs)
        self._outputs = _with_bit(self._outputs, pin, value)
        if self._config.wired and pin < self._config.digital_inputs:
            self.set_digital_input(pin, value, now)
        return None

    def set_analog_output(self, channel: int, value: float, now: int) -> Refused | None:
        if not 0 <= channel < self._config.analog_outputs:
            return _no_pin("analog output", channel, self._config.analog_outputs)
        if refused := self._out_of_range(value):
            return refused
        self._analog_outputs[channel] = value
        if self._config.wired and channel < self._config.analog_inputs:
            self.set_analog_input(channel, value, now)
        return None

    def set_digital_input(self, pin: int, value: bool, now: int) -> Refused | None:
        """What a sensor would do."""
        if not 0 <= pin < self._config.digital_inputs:
            return _no_pin("digital input", pin, self._config.digital_inputs)
        if self.digital_input(pin) != value:
            self._inputs = _with_bit(self._inputs, pin, value)
            self._tell(now)
        return None

    def set_analog_input(self, channel: int, value: float, now: int) -> Refused | None:
        if not 0 <= channel < self._config.analog_inputs:
            return _no_pin("analog input", channel, self._config.analog_inputs)
        if refused := self._out_of_range(value):
            return refused
        if self._analog_inputs[channel] != value:
            self._analog_inputs[channel] = value
            self._tell(now)
        return None

    def on_input(self, listener: Changed) -> None:
        self._listeners.append(listener)

    # ── snapshots ──

    def save(self) -> Saved:
        return Saved(
            self._inputs, self._outputs, list(self._analog_inputs), list(self._analog_outputs)
        )

    def load(self, state: Any) -> None:
        saved = msgspec.convert(state, Saved)
        self._inputs, self._outputs = saved.inputs, saved.outputs
        self._analog_inputs = list(saved.analog_inputs)
        self._analog_outputs = list(saved.analog_outputs)

    def _tell(self, now: int) -> None:
        for listener in self._listeners:
            listener(now)

    def _out_of_range(self, value: float) -> Refused | None:
        if self._config.analog_range_v is None:
            return None
        low, high = self._config.analog_range_v
        if low <= value <= high:
            return None
        return Refused(f"{value:g} V is outside {low:g}…{high:g} V")


def _with_bit(word: int, pin: int, value: bool) -> int:
    return word | 1 << pin if value else word & ~(1 << pin)


def _no_pin(kind: str, pin: int, count: int) -> Refused:
    allowed = f"0…{count - 1}" if count else "none"
    return Refused(f"there is no {kind} {pin}; there are {allowed}")
