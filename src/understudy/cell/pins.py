"""Names and wiring of the pins."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from understudy.errors import ConfigError, Refused, unknown
from understudy.units import NS_PER_MS

Pins = Annotated[int, Meta(ge=0, le=32)]
Channels = Annotated[int, Meta(ge=0, le=8)]
Bank = Literal["DI", "DO"]
Pin = int | str
"""A number, or a name."""

DIGITAL_OUTPUTS = {
    0: "ARC_START",
    1: "GAS",
    2: "WIRE_INCH",
    3: "WIRE_RETRACT",
    4: "FAULT_RESET",
    8: "GRIPPER_CLOSE",
    9: "GRIPPER_OPEN",
    10: "VACUUM_ON",
    11: "BLOW_OFF",
    12: "WELD_JOB_0",
    13: "WELD_JOB_1",
    14: "WELD_JOB_2",
    15: "WELD_JOB_3",
}
DIGITAL_INPUTS = {
    0: "ARC_OK",
    1: "GAS_OK",
    2: "WELD_ERROR",
    3: "WIRE_STUCK",
    4: "READY",
    8: "GRIPPER_CLOSED",
    9: "GRIPPER_OPENED",
    10: "PART_DETECTED",
    11: "VACUUM_OK",
}
ANALOG_OUTPUTS = {0: "WIRE_FEED_SET", 1: "VOLTAGE_SET"}
ANALOG_INPUTS = {
    0: "CURRENT",
    1: "VOLTAGE",
    2: "WIRE_SPEED",
    3: "GAS_FLOW",
    4: "GRIP_FORCE",
    5: "VACUUM",
}


class Link(Struct, frozen=True, forbid_unknown_fields=True):
    """An output that moves an input after a delay."""

    output: Pin
    input: Pin
    delay_ms: Annotated[float, Meta(ge=0, le=3_600_000)] = 0.0
    invert: bool = False


class Relay(Struct, frozen=True, forbid_unknown_fields=True):
    """An input that moves an output after a delay."""

    input: Pin
    output: Pin
    delay_ms: Annotated[float, Meta(ge=0, le=3_600_000)] = 0.0
    invert: bool = False


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """How many pins there are, what they are called and how they are wired."""

    digital_inputs: Pins = 32
    digital_outputs: Pins = 32
    analog_inputs: Channels = 8
    analog_outputs: Channels = 8
    analog_range_v: tuple[float, float] | None = (0.0, 10.0)
    digital_input_names: dict[int, str] = field(default_factory=lambda: DIGITAL_INPUTS)
    digital_output_names: dict[int, str] = field(default_factory=lambda: DIGITAL_OUTPUTS)
    analog_input_names: dict[int, str] = field(default_factory=lambda: ANALOG_INPUTS)
    analog_output_names: dict[int, str] = field(default_factory=lambda: ANALOG_OUTPUTS)
    links: list[Link] = []
    relays: list[Relay] = []


class Wire(Struct, frozen=True):
    """A link or relay with its numbers found; delay in ns."""

    source: Bank
    pin: int
    target: Bank
    to: int
    delay: int
    invert: bool = False


class PinNames:
    """One bank of pins: by number, by name, or by both (`DI3`)."""

    def __init__(self, prefix: str, count: int, names: Mapping[int, str]) -> None:
        self.prefix = prefix
        self.count = count
        self._names = {number: name for number, name in names.items() if number < count}
        self._numbers = {name.upper(): number for number, name in self._names.items()}
        self._numbers |= {f"{prefix}{number}": number for number in range(count)}

    def number(self, pin: Pin) -> int | Refused:
        if isinstance(pin, str):
            found = self._numbers.get(pin.upper())
            if found is not None:
                return found
            return Refused(str(unknown(f"pin of {self.prefix}", pin, self._known())))
        if 0 <= pin < self.count:
            return pin
        allowed = f"0…{self.count - 1}" if self.count else "none"
        return Refused(f"there is no {self.prefix}{pin}; allowed: {allowed}")

    def name(self, number: int) -> str:
        return self._names.get(number, f"{self.prefix}{number}")

    def checked(self, pin: Pin, key: str) -> int:
        """For the configuration: the number, or a ConfigError."""
        number = self.number(pin)
        if isinstance(number, Refused):
            raise ConfigError(number.reason, key=key)
        return number

    def _known(self) -> Sequence[str]:
        return [*self._names.values(), *(f"{self.prefix}{n}" for n in range(self.count))]


def wiring(config: Config, inputs: PinNames, outputs: PinNames) -> list[Wire]:
    """All links and relays; a ring without any delay is a ConfigError."""
    wires = []
    for at, link in enumerate(config.links):
        output = outputs.checked(link.output, f"links.{at}.output")
        input_ = inputs.checked(link.input, f"links.{at}.input")
        wires.append(Wire("DO", output, "DI", input_, _ns(link.delay_ms), link.invert))
    for at, relay in enumerate(config.relays):
        input_ = inputs.checked(relay.input, f"relays.{at}.input")
        output = outputs.checked(relay.output, f"relays.{at}.output")
        wires.append(Wire("DI", input_, "DO", output, _ns(relay.delay_ms), relay.invert))
    if ring(wires):
        raise ConfigError("a ring of links without any delay never settles", key="links")
    return wires


def ring(wires: Sequence[Wire]) -> bool:
    """Whether a level could run round in no time."""
    at_once: dict[tuple[Bank, int], set[tuple[Bank, int]]] = {}
    for wire in wires:
        if wire.delay == 0:
            at_once.setdefault((wire.source, wire.pin), set()).add((wire.target, wire.to))
    while leaves := {to for ends in at_once.values() for to in ends if to not in at_once}:
        at_once = {pin: ends - leaves for pin, ends in at_once.items() if ends - leaves}
    return bool(at_once)


def _ns(ms: float) -> int:
    return round(ms * NS_PER_MS)
