"""What pins remember: levels, forces, ramps, and what is under way to them."""

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

from msgspec import Struct

from understudy.devices.io.pins import Config, Number, PinNames, Wire
from understudy.errors import ConfigError, Refused
from understudy.ports import AnalogIO, DigitalIO
from understudy.ports.io import Bank, PinChange

What = Literal["level", "pulse_over"]
OUT_OF_RANGE = 44


class Span(NamedTuple):
    """The voltages that can be."""

    low: float = -math.inf
    high: float = math.inf

    @staticmethod
    def of(config: Config) -> "Span":
        span = Span(*config.analog_range_v) if config.analog_range_v else Span()
        if span.low > span.high:
            raise ConfigError("low before high", key="analog_range_v", value=list(span))
        return span

    def clamped(self, volts: float) -> float:
        return min(max(volts, self.low), self.high)

    def refusal(self, volts: float) -> Refused | None:
        if self.low <= volts <= self.high and math.isfinite(volts):
            return None
        allowed = f"{self.low:g}…{self.high:g} V"
        return Refused(f"{volts:g} V is outside {allowed}", OUT_OF_RANGE)


class Ramp(Struct, frozen=True):
    """An analog value: `end`, after a straight way from `start`."""

    end: float
    start: float = 0.0
    begins: int = 0
    ends: int = 0

    def at(self, now: int) -> float:
        if now >= self.ends:
            return self.end
        share = max(now - self.begins, 0) / (self.ends - self.begins)
        return self.start + (self.end - self.start) * share


class Pending(Struct, frozen=True, order=True):
    """Something that happens to a pin later; `number` orders what is due at the same time."""

    due: int
    number: int
    what: What
    bank: Bank
    pin: Number
    value: bool


class State(Struct):
    """All that the pins remember. `driven`: inputs as their owners want them."""

    wires: list[Wire]
    analog_outputs: list[float]
    inputs: int = 0
    outputs: int = 0
    driven: int = 0
    forced: dict[Number, bool] = {}
    pulsed: dict[Number, bool] = {}
    analog_forced: dict[Number, Ramp] = {}
    pending: list[Pending] = []
    count: int = 0
    history: list[PinChange] = []


class Pinboard(Struct, frozen=True):
    """All pins at a glance; which inputs are not what their owners want."""

    digital: DigitalIO
    analog: AnalogIO
    forced: tuple[int, ...]
    analog_forced: tuple[int, ...]


def levels(names: PinNames, word: int) -> Mapping[str, bool]:
    """A bank by name."""
    return {names.name(pin): bool(word >> pin & 1) for pin in range(names.count)}


def with_bit(word: int, pin: int, value: bool) -> int:
    return word | 1 << pin if value else word & ~(1 << pin)
