"""The configuration of pins: their number, names, links and faults."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from msgspec import Meta, Struct, field

from understudy.errors import ConfigError, Refused, unknown
from understudy.ports.faults import Fault, Faults, Figure
from understudy.ports.io import Bank
from understudy.units import NS_PER_MS

Pins = Annotated[int, Meta(ge=0, le=32)]
Channels = Annotated[int, Meta(ge=0, le=8)]
Number = Annotated[int, Meta(ge=0, lt=32)]
Pin = int | str
"""A pin by number or by name."""

LONGEST_DELAY_MS = 3_600_000.0
SHORTEST_RING_MS = 1.0
"""A ring of wires needs one with at least this delay, so that simulated time can pass."""

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
FAULTS: Faults = {
    "force_input": Fault(
        "brought",
        "a digital input is forced to a level",
        {"pin": Figure(0.0, 0.0, 31.0), "value": Figure(1.0, 0.0, 1.0)},
    ),
    "release_input": Fault(
        "brought", "a forced input is released", {"pin": Figure(0.0, 0.0, 31.0)}
    ),
    "pulse_input": Fault(
        "brought",
        "a sensor triggers: an input is held at a level for a time",
        {
            "pin": Figure(10.0, 0.0, 31.0),
            "value": Figure(1.0, 0.0, 1.0),
            "duration_s": Figure(0.1, 0.0, 3600.0),
        },
    ),
    "force_analog": Fault(
        "brought",
        "an analog input is forced to a value, along a ramp if a time is given",
        {
            "pin": Figure(0.0, 0.0, 7.0),
            "value": Figure(0.0, -1000.0, 1000.0),
            "ramp_s": Figure(0.0, 0.0, 3600.0),
        },
    ),
}


class Link(Struct, frozen=True, forbid_unknown_fields=True):
    """An output sets an input after a delay."""

    output: Pin
    input: Pin
    delay_ms: Annotated[float, Meta(ge=0, le=LONGEST_DELAY_MS)] = 0.0
    invert: bool = False


class Relay(Struct, frozen=True, forbid_unknown_fields=True):
    """An input sets an output after a delay."""

    input: Pin
    output: Pin
    delay_ms: Annotated[float, Meta(ge=0, le=LONGEST_DELAY_MS)] = 0.0
    invert: bool = False


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Number, names and wiring of the pins."""

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
    """A link or relay by pin numbers; delay in ns."""

    source: Bank
    pin: Number
    target: Bank
    to: Number
    delay: Annotated[int, Meta(ge=0)]
    invert: bool = False

    @property
    def begins(self) -> tuple[Bank, int]:
        return self.source, self.pin

    @property
    def ends(self) -> tuple[Bank, int]:
        return self.target, self.to


class PinNames:
    """One bank of pins, found by number, by name, or by bank and number (`DI3`)."""

    def __init__(self, prefix: str, count: int, names: Mapping[int, str]) -> None:
        self.prefix = prefix
        self.count = count
        self._names = {number: name for number, name in names.items() if number < count}
        self._numbers = {f"{prefix}{number}": number for number in range(count)}
        for number, name in self._names.items():
            if not 0 <= number == self._numbers.setdefault(name.upper(), number):
                raise ConfigError("each pin needs a unique name", value=f"{number}: {name}")

    def number(self, pin: Pin) -> int | Refused:
        if isinstance(pin, str):
            found = self._numbers.get(pin.upper())
            if found is not None:
                return found
            return Refused(str(unknown(f"pin of {self.prefix}", pin.upper(), self._known())))
        if 0 <= pin < self.count:
            return pin
        allowed = f"0…{self.count - 1}" if self.count else "none"
        return Refused(f"there is no {self.prefix}{pin}; allowed: {allowed}")

    def name(self, number: int) -> str:
        return self._names.get(number, f"{self.prefix}{number}")

    def known(self, pin: Pin) -> int:
        """The number of a pin, or a LookupError."""
        number = self.number(pin)
        if isinstance(number, Refused):
            raise LookupError(number.reason)
        return number

    def checked(self, pin: Pin, key: str) -> int:
        """The number of a pin of the configuration, or a ConfigError."""
        number = self.number(pin)
        if isinstance(number, Refused):
            raise ConfigError(number.reason, key=key)
        return number

    def _known(self) -> Sequence[str]:
        return [*self._names.values(), *(f"{self.prefix}{n}" for n in range(self.count))]


def banks(config: Config) -> tuple[PinNames, PinNames, PinNames, PinNames]:
    """DI, DO, AI, AO."""
    given = {
        "DI": (config.digital_inputs, config.digital_input_names, "digital_input_names"),
        "DO": (config.digital_outputs, config.digital_output_names, "digital_output_names"),
        "AI": (config.analog_inputs, config.analog_input_names, "analog_input_names"),
        "AO": (config.analog_outputs, config.analog_output_names, "analog_output_names"),
    }
    found = []
    for prefix, (count, names, key) in given.items():
        try:
            found.append(PinNames(prefix, count, names))
        except ConfigError as problem:
            raise problem.within(key) from None
    di, do, ai, ao = found
    return di, do, ai, ao


def wiring(config: Config, inputs: PinNames, outputs: PinNames) -> list[Wire]:
    """All links and relays; a ring that never settles is a ConfigError."""
    wires: list[Wire] = []
    for at, link in enumerate(config.links):
        output = outputs.checked(link.output, f"links.{at}.output")
        input_ = inputs.checked(link.input, f"links.{at}.input")
        wire = Wire("DO", output, "DI", input_, _ns(link.delay_ms), link.invert)
        _add(wire, wires, f"links.{at}")
    for at, relay in enumerate(config.relays):
        input_ = inputs.checked(relay.input, f"relays.{at}.input")
        output = outputs.checked(relay.output, f"relays.{at}.output")
        wire = Wire("DI", input_, "DO", output, _ns(relay.delay_ms), relay.invert)
        _add(wire, wires, f"relays.{at}")
    return wires


def _add(wire: Wire, wires: list[Wire], key: str) -> None:
    if problem := misfit(wire, wires):
        raise ConfigError(problem, key=key)
    wires.append(wire)


def misfit(wire: Wire, wires: Sequence[Wire]) -> str:
    """The reason why this wire cannot be added to the others; empty if it can."""
    end = f"{wire.target}{wire.to}"
    other = next((w for w in wires if w.ends == wire.ends), None)
    if other is not None:
        return (
            f"{end} follows {other.source}{other.pin} already; a pin can follow only one other pin"
        )
    if ring([*wires, wire]):
        return f"a ring through {end} with less than {SHORTEST_RING_MS:g} ms never settles"
    return ""


def ring(wires: Sequence[Wire]) -> bool:
    """Whether an edge could run around a ring of wires within `SHORTEST_RING_MS`."""
    at_once: dict[tuple[Bank, int], set[tuple[Bank, int]]] = {}
    for wire in wires:
        if wire.delay < _ns(SHORTEST_RING_MS):
            at_once.setdefault(wire.begins, set()).add(wire.ends)
    while leaves := {to for ends in at_once.values() for to in ends if to not in at_once}:
        at_once = {pin: ends - leaves for pin, ends in at_once.items() if ends - leaves}
    return bool(at_once)


def duration_ns(ms: float) -> int | Refused:
    """A delay in nanoseconds; refused outside the allowed range."""
    if 0.0 <= ms <= LONGEST_DELAY_MS:
        return _ns(ms)
    return Refused(f"{ms:g} ms is outside 0…{LONGEST_DELAY_MS:g} ms")


def _ns(ms: float) -> int:
    return round(ms * NS_PER_MS)
