"""VirtualIO: the pins between a controller and its devices.

An input has one owner: a device that drives it, or a link from an output. A forced value overrides
the owner until it is released; a pulse overrides both while it lasts. A link's delay and the end of
a pulse are events with a wake; a ramp is a closed form.
"""

import math
from bisect import insort
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta, Struct, field

from understudy.errors import ConfigError, Refused, unknown
from understudy.ports import AnalogIO, DigitalIO
from understudy.ports.faults import Fault, Faults, Figure
from understudy.ports.io import Bank, PinChange
from understudy.units import ms_to_ns

# ── configuration ─────────────────────────────────────────────────────────────────────────────────


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
    4: "GRIPPER_FORCE",
    5: "VACUUM_PRESSURE",
}
FROZEN = "the inputs are frozen"
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
    "inputs_frozen": Fault(
        "brought",
        "a PLC freezes its registers: all digital inputs keep their levels until reset",
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
        wire = Wire("DO", output, "DI", input_, ms_to_ns(link.delay_ms), link.invert)
        _add(wire, wires, f"links.{at}")
    for at, relay in enumerate(config.relays):
        input_ = inputs.checked(relay.input, f"relays.{at}.input")
        output = outputs.checked(relay.output, f"relays.{at}.output")
        wire = Wire("DI", input_, "DO", output, ms_to_ns(relay.delay_ms), relay.invert)
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
        if wire.delay < ms_to_ns(SHORTEST_RING_MS):
            at_once.setdefault(wire.begins, set()).add(wire.ends)
    while leaves := {to for ends in at_once.values() for to in ends if to not in at_once}:
        at_once = {pin: ends - leaves for pin, ends in at_once.items() if ends - leaves}
    return bool(at_once)


def duration_ns(ms: float) -> int | Refused:
    """A delay in nanoseconds; refused outside the allowed range."""
    if 0.0 <= ms <= LONGEST_DELAY_MS:
        return ms_to_ns(ms)
    return Refused(f"{ms:g} ms is outside 0…{LONGEST_DELAY_MS:g} ms")


# ── the pins ──────────────────────────────────────────────────────────────────────────────────────


HISTORY_LENGTH = 1000
MOST_PENDING = 10_000
PULSE_MS = 100.0
OUT_OF_RANGE = 44
"""The error code of a voltage outside the range."""

Listener = Callable[[PinChange], None]
Source = Callable[[int], float]
Interlock = Callable[[], Refused | None]
"""Why an output cannot be switched on now."""

What = Literal["level", "pulse_over"]


class Span(NamedTuple):
    """The range of the analog pins in volts."""

    low: float = -math.inf
    high: float = math.inf

    @staticmethod
    def of(config: Config) -> "Span":
        span = Span(*config.analog_range_v) if config.analog_range_v else Span()
        if span.low > span.high:
            raise ConfigError(
                "the lower bound must come first", key="analog_range_v", value=list(span)
            )
        return span

    def clamped(self, volts: float) -> float:
        return min(max(volts, self.low), self.high)

    def refusal(self, volts: float) -> Refused | None:
        if self.low <= volts <= self.high and math.isfinite(volts):
            return None
        allowed = f"{self.low:g}…{self.high:g} V"
        return Refused(f"{volts:g} V is outside {allowed}", OUT_OF_RANGE)


class Ramp(Struct, frozen=True):
    """An analog value that goes from `start` to `end` along a straight line."""

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
    """A change of a pin that is due later; `number` orders changes that are due at one time."""

    due: int
    number: int
    what: What
    bank: Bank
    pin: Number
    value: bool


class PinState(Struct):
    """The state of the pins in a snapshot. `driven`: the inputs as their owners set them. `frozen`:
    no input changes."""

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
    frozen: bool = False


class PinStatus(Struct, frozen=True):
    """All pins, and which inputs are forced."""

    digital: DigitalIO
    analog: AnalogIO
    forced: tuple[int, ...]
    analog_forced: tuple[int, ...]


def with_bit(word: int, pin: int, value: bool) -> int:
    return word | 1 << pin if value else word & ~(1 << pin)


class VirtualIO:
    """The levels of all pins; a `Device`. A value out of range is refused and the old one stays."""

    def __init__(self, config: Config) -> None:
        self._span = Span.of(config)
        self.di, self.do, self.ai, self.ao = banks(config)
        rest = [self._span.clamped(0.0)] * config.analog_outputs
        self.state = PinState(wiring(config, self.di, self.do), rest)
        self._sources: dict[int, Source] = {}
        self._owned: set[int] = set()
        self._retained: set[int] = set()
        self._devices: list[Listener] = []
        self._observers: list[Listener] = []
        self._unreported: deque[PinChange] = deque()
        self._depth = 0
        self._interlocks: dict[int, Interlock] = {}
        for wire in self.state.wires:
            if wire.invert:
                self._send(wire, self._level(*wire.begins), 0)

    # ── reading ──

    @property
    def pins(self) -> tuple[int, int, int, int]:
        """The number of digital inputs, digital outputs, analog inputs and analog outputs."""
        return self.di.count, self.do.count, self.ai.count, self.ao.count

    def digital(self) -> DigitalIO:
        return DigitalIO(self.state.inputs, self.state.outputs)

    def analog(self, now: int) -> AnalogIO:
        inputs = tuple(self.analog_input(channel, now) for channel in range(self.ai.count))
        return AnalogIO(inputs, tuple(self.state.analog_outputs))

    def digital_input(self, pin: Pin) -> bool:
        """The level of an input. An unknown pin is a LookupError; setters refuse it instead."""
        return bool(self.state.inputs >> self.di.known(pin) & 1)

    def digital_output(self, pin: Pin) -> bool:
        return bool(self.state.outputs >> self.do.known(pin) & 1)

    def analog_input(self, channel: Pin, now: int) -> float:
        number = self.ai.known(channel)
        if number in self.state.analog_forced:
            return self.state.analog_forced[number].at(now)
        source = self._sources.get(number)
        return self._span.clamped(source(now) if source else 0.0)

    def analog_output(self, channel: Pin) -> float:
        return self.state.analog_outputs[self.ao.known(channel)]

    def is_forced(self, pin: Pin) -> bool:
        number = self.di.known(pin)
        return number in self.state.forced or number in self.state.pulsed

    def history(self) -> tuple[PinChange, ...]:
        """The last changes, oldest first."""
        return tuple(self.state.history)

    def on_change(self, device: Listener) -> None:
        """Calls ``device`` during every change, so that its reaction belongs to the change."""
        self._devices.append(device)

    def subscribe(self, observer: Listener) -> None:
        """Calls ``observer`` for one change after the other, when all pins have settled."""
        self._observers.append(observer)

    def on_edge(
        self, pin: str, edge: Literal["rise", "fall"], listener: Callable[[int], None]
    ) -> Refused | None:
        """Calls ``listener(now)`` at every edge of one pin, input or output, by its name."""
        banks: dict[Bank, int | Refused] = {"DI": self.di.number(pin), "DO": self.do.number(pin)}
        found = {(bank, number) for bank, number in banks.items() if isinstance(number, int)}
        if not found:
            return Refused(f"there is no pin {pin}")

        def filtered(change: PinChange) -> None:
            if (change.bank, change.pin) in found and change.value == (edge == "rise"):
                listener(change.at)

        self.on_change(filtered)
        return None

    # ── outputs ──

    def set_digital_output(self, pin: Pin, value: bool, now: int) -> Refused | None:
        number = self.do.number(pin)
        if isinstance(number, Refused):
            return number
        if value and (refused := self.interlocked(number)):
            return refused
        self._set("DO", number, value, now)
        return None

    def interlock(self, pin: int, refusal: Interlock) -> None:
        """An output that nothing switches on while ``refusal`` returns a reason: no command, no
        program and no relay."""
        self._interlocks[pin] = refusal

    def interlocked(self, pin: int) -> Refused | None:
        """Why an output cannot be switched on now."""
        refusal = self._interlocks.get(pin)
        return refusal() if refusal else None

    def set_analog_output(self, channel: Pin, value: float, now: int) -> Refused | None:
        number = self.ao.number(channel)
        if isinstance(number, Refused):
            return number
        if refused := self._span.refusal(value):
            return refused
        self.state.analog_outputs[number] = value
        return None

    # ── injection ──

    def set_digital_input(self, pin: Pin, value: bool, now: int) -> Refused | None:
        """Forces an input until `release_digital_input`; ends a pulse."""
        number = self.di.number(pin)
        if isinstance(number, Refused):
            return number
        self._end_pulse(number)
        self.state.forced[number] = value
        self._settle(number, now)
        return None

    def release_digital_input(self, pin: Pin, now: int) -> Refused | None:
        """Returns an input to its owner's level."""
        number = self.di.number(pin)
        if isinstance(number, Refused):
            return number
        self._end_pulse(number)
        self.state.forced.pop(number, None)
        self._settle(number, now)
        return None

    def simulate_sensor_trigger(
        self, pin: Pin, value: bool, now: int, duration_ms: float = PULSE_MS
    ) -> Refused | None:
        """A pulse: ``value`` for the duration, then the level from before."""
        number, duration = self.di.number(pin), duration_ns(duration_ms)
        if isinstance(number, Refused):
            return number
        if isinstance(duration, Refused):
            return duration
        self._end_pulse(number)
        self.state.pulsed[number] = value
        self._later(now + duration, "pulse_over", "DI", number, value)
        self._settle(number, now)
        return None

    def set_analog_input(self, channel: Pin, value: float, now: int) -> Refused | None:
        return self.simulate_analog_sensor(channel, value, now)

    def simulate_analog_sensor(
        self, channel: Pin, value: float, now: int, ramp_s: float = 0.0
    ) -> Refused | None:
        """Forces an analog input to a value, along a ramp if ``ramp_s`` is given."""
        number, duration = self.ai.number(channel), duration_ns(ramp_s * 1e3)
        if isinstance(number, Refused):
            return number
        if isinstance(duration, Refused):
            return duration
        if refused := self._span.refusal(value):
            return refused
        start = self.analog_input(number, now)
        self.state.analog_forced[number] = Ramp(value, start, now, now + duration)
        return None

    def release_analog_input(self, channel: Pin, now: int) -> Refused | None:
        number = self.ai.number(channel)
        if isinstance(number, Refused):
            return number
        self.state.analog_forced.pop(number, None)
        return None

    # ── wiring ──

    def link(
        self, output: Pin, input_: Pin, delay_ms: float, now: int, *, invert: bool = False
    ) -> Refused | None:
        """Adds a link: the output sets the input. A link between the same pins is replaced."""
        wire = self._wire(output, input_, delay_ms, invert)
        if isinstance(wire, Refused):
            return wire
        others = [w for w in self.state.wires if (w.begins, w.ends) != (wire.begins, wire.ends)]
        if problem := misfit(wire, others):
            return Refused(problem)
        if len(others) < len(self.state.wires):
            self._drop_edges(wire.to)
        self.state.wires = [*others, wire]
        self._send(wire, self._level(*wire.begins), now)
        return None

    def unlink(self, output: Pin, now: int) -> Refused | None:
        """Removes the links of an output; its pending edges are dropped."""
        number = self.do.number(output)
        if isinstance(number, Refused):
            return number
        gone = [w for w in self.state.wires if w.begins == ("DO", number)]
        self.state.wires = [w for w in self.state.wires if w not in gone]
        for wire in gone:
            self._drop_edges(wire.to)
        return None

    def links(self) -> tuple[Wire, ...]:
        """The links from outputs to inputs."""
        return tuple(w for w in self.state.wires if (w.source, w.target) == ("DO", "DI"))

    # ── devices ──

    def own(self, pin: int) -> None:
        """Makes a device the owner of this input. A link onto it no longer sets the input; its
        delay becomes the response time of the device."""
        self._owned.add(pin)
        self._drop_edges(pin)
        self.drive(pin, False, 0)

    def link_delay(self, pin: int) -> int | None:
        """The delay of the link onto an input, in ns."""
        return next((w.delay for w in self.state.wires if w.ends == ("DI", pin)), None)

    def owner(self, pin: int) -> str:
        """What sets an input: `device`, `link`, or nothing (empty)."""
        linked = self.link_delay(pin) is not None
        return "device" if pin in self._owned else "link" if linked else ""

    def drive(self, pin: int, value: bool, now: int) -> None:
        """Sets the owner's level of an input."""
        self.state.driven = with_bit(self.state.driven, pin, value)
        self._settle(pin, now)

    def is_driven(self, pin: int) -> bool:
        """The owner's level of an input, forced or not."""
        return bool(self.state.driven >> pin & 1)

    def retain(self, pin: int) -> None:
        """Lets `reset` leave this output as it is."""
        self._retained.add(pin)

    def drive_analog(self, channel: int, source: Source) -> None:
        """Reads an analog input from ``source(now)`` from now on."""
        self._sources[channel] = source

    # ── part ──

    def next_wake(self) -> int | None:
        return self.state.pending[0].due if self.state.pending else None

    def wake(self, now: int) -> None:
        while self.state.pending and self.state.pending[0].due <= now:
            due = self.state.pending.pop(0)
            if due.what == "pulse_over":
                self.state.pulsed.pop(due.pin, None)
                self._settle(due.pin, due.due)
            else:
                self._arrive(due.bank, due.pin, due.value, due.due)

    def busy(self) -> bool:
        return False

    def faults(self) -> Faults:
        return FAULTS

    def reset(self, now: int) -> None:
        """Releases forced inputs, ends pulses and switches outputs off, but for retained ones."""
        state = self.state
        state.analog_forced.clear()
        if state.frozen:
            state.frozen = False
            for pin in range(self.di.count):
                self._settle(pin, now)
        for pin in sorted({*state.forced, *state.pulsed}):
            self.release_digital_input(pin, now)
        for pin in range(self.do.count):
            if pin not in self._retained:
                self._set("DO", pin, False, now)
        state.analog_outputs = [self._span.clamped(0.0)] * self.ao.count

    def active_faults(self) -> tuple[str, ...]:
        return (FROZEN,) if self.state.frozen else ()

    def fault_pin(self, fault: str, name: str) -> int | Refused:
        return (self.ai if fault == "force_analog" else self.di).number(name)

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        if fault == "inputs_frozen":
            self.state.frozen = True
            return None
        number, value = round(parameters["pin"]), parameters.get("value", 0.0)
        if fault == "force_input":
            return self.set_digital_input(number, value != 0.0, now)
        if fault == "release_input":
            return self.release_digital_input(number, now)
        if fault == "pulse_input":
            duration = parameters["duration_s"] * 1e3
            return self.simulate_sensor_trigger(number, value != 0.0, now, duration)
        return self.simulate_analog_sensor(number, value, now, parameters["ramp_s"])

    def status(self, now: int) -> PinStatus:
        return PinStatus(
            digital=self.digital(),
            analog=self.analog(now),
            forced=tuple(sorted(self.state.forced.keys() | self.state.pulsed.keys())),
            analog_forced=tuple(sorted(self.state.analog_forced)),
        )

    def restored(self) -> None:
        if len(self.state.analog_outputs) != self.ao.count or ring(self.state.wires):
            raise msgspec.ValidationError("the snapshot has other pins")
        self.state.pending.sort()

    # ── inside ──

    def _level(self, bank: Bank, pin: int) -> bool:
        word = self.state.inputs if bank == "DI" else self.state.outputs
        return bool(word >> pin & 1)

    def _settle(self, pin: int, now: int) -> None:
        """Sets an input to the pulse, else to the forced level, else to the owner's level."""
        state = self.state
        if state.frozen:
            return
        wanted = state.forced.get(pin, self.is_driven(pin))
        self._set("DI", pin, state.pulsed.get(pin, wanted), now)

    def _set(self, bank: Bank, pin: int, value: bool, now: int) -> None:
        state = self.state
        if self._level(bank, pin) == value:
            return
        if bank == "DO" and value and self.interlocked(pin):
            return
        if bank == "DI":
            state.inputs = with_bit(state.inputs, pin, value)
        else:
            state.outputs = with_bit(state.outputs, pin, value)
        change = PinChange(now, bank, pin, value)
        state.history.append(change)
        if len(state.history) > HISTORY_LENGTH:
            del state.history[0]
        self._unreported.append(change)
        self._depth += 1
        for device in self._devices:
            device(change)
        for wire in state.wires:
            if wire.begins == (bank, pin):
                self._send(wire, value, now)
        if self._depth == 1:
            self._report()
        self._depth -= 1

    def _report(self) -> None:
        while self._unreported:
            change = self._unreported.popleft()
            for observer in self._observers:
                observer(change)

    def _wire(self, output: Pin, input_: Pin, delay_ms: float, invert: bool) -> Wire | Refused:
        source, target = self.do.number(output), self.di.number(input_)
        delay = duration_ns(delay_ms)
        if isinstance(source, Refused):
            return source
        if isinstance(target, Refused):
            return target
        return (
            delay if isinstance(delay, Refused) else Wire("DO", source, "DI", target, delay, invert)
        )

    def _send(self, wire: Wire, value: bool, now: int) -> None:
        level = value ^ wire.invert
        if wire.target == "DI" and wire.to in self._owned:
            return
        if wire.delay == 0:
            self._arrive(wire.target, wire.to, level, now)
        else:
            self._later(now + wire.delay, "level", wire.target, wire.to, level)

    def _arrive(self, bank: Bank, pin: int, value: bool, now: int) -> None:
        if bank == "DI":
            self.drive(pin, value, now)
        else:
            self._set("DO", pin, value, now)

    def _later(self, due: int, what: What, bank: Bank, pin: int, value: bool) -> None:
        pending = self.state.pending
        if len(pending) >= MOST_PENDING and what == "level":
            # Edges of one wire alternate, so its last one and this one cancel each other out.
            mine = (p for p in reversed(pending) if (p.what, p.bank, p.pin) == (what, bank, pin))
            if (last := next(mine, None)) is not None:
                pending.remove(last)
                return
        insort(pending, Pending(due, self.state.count, what, bank, pin, value))
        self.state.count += 1

    def _end_pulse(self, pin: int) -> None:
        if self.state.pulsed.pop(pin, None) is not None:
            keep = self.state.pending
            self.state.pending = [p for p in keep if p.what == "level" or p.pin != pin]

    def _drop_edges(self, pin: int) -> None:
        """Removes the pending edges of an input."""
        keep = self.state.pending
        self.state.pending = [
            p for p in keep if p.what != "level" or (p.bank, p.pin) != ("DI", pin)
        ]
