"""VirtualIO: the pins between a controller and what stands around it.

An input has one owner: a device that drives it, or a link from an output. A forced value beats both
until it is released. What takes time (a link's delay, a pulse) is an event with a wake; a ramp is a
closed form.
"""

from bisect import insort
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct

from understudy.cell.pins import Bank, Config, Pin, PinNames, Wire, ring, wiring
from understudy.errors import Refused
from understudy.ports import AnalogIO, DigitalIO
from understudy.units import NS_PER_MS, nanoseconds

HISTORY_LENGTH = 1000
PULSE_MS = 100.0


class Change(NamedTuple):
    """A digital pin that is another now."""

    at: int
    bank: Bank
    pin: int
    value: bool


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
    what: Literal["level", "release"]
    bank: Bank
    pin: int
    value: bool


class State(Struct):
    """All that the pins remember. `driven`: inputs as their owners want them."""

    wires: list[Wire]
    analog_outputs: list[float]
    inputs: int = 0
    outputs: int = 0
    driven: int = 0
    forced: list[int] = []
    analog_forced: dict[int, Ramp] = {}
    pending: list[Pending] = []
    count: int = 0
    history: list[Change] = []


Listener = Callable[[Change], None]
Source = Callable[[int], float]


class VirtualIO:
    """Levels of all pins; a `Part`. A value that cannot be is refused and the old one stays."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.di = PinNames("DI", config.digital_inputs, config.digital_input_names)
        self.do = PinNames("DO", config.digital_outputs, config.digital_output_names)
        self.ai = PinNames("AI", config.analog_inputs, config.analog_input_names)
        self.ao = PinNames("AO", config.analog_outputs, config.analog_output_names)
        self._state = State(wiring(config, self.di, self.do), [0.0] * config.analog_outputs)
        self._sources: dict[int, Source] = {}
        self._listeners: list[Listener] = []
        for wire in self._state.wires:
            if wire.invert:
                self._send(wire, False, 0)

    # ── reading ──

    @property
    def pins(self) -> tuple[int, int, int, int]:
        """How many digital inputs and outputs, analog inputs and outputs."""
        return self.di.count, self.do.count, self.ai.count, self.ao.count

    def digital(self) -> DigitalIO:
        return DigitalIO(self._state.inputs, self._state.outputs)

    def analog(self, now: int) -> AnalogIO:
        inputs = tuple(self.analog_input(channel, now) for channel in range(self.ai.count))
        return AnalogIO(inputs, tuple(self._state.analog_outputs))

    def digital_input(self, pin: int) -> bool:
        return bool(self._state.inputs >> pin & 1)

    def digital_output(self, pin: int) -> bool:
        return bool(self._state.outputs >> pin & 1)

    def analog_input(self, channel: int, now: int) -> float:
        if channel in self._state.analog_forced:
            return self._state.analog_forced[channel].at(now)
        source = self._sources.get(channel)
        return self._clamped(source(now)) if source else 0.0

    def analog_output(self, channel: int) -> float:
        return self._state.analog_outputs[channel]

    def is_forced(self, pin: int) -> bool:
        return pin in self._state.forced

    def history(self) -> tuple[Change, ...]:
        """The last changes, oldest first."""
        return tuple(self._state.history)

    def on_change(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def on_edge(
        self, pin: str, edge: Literal["rise", "fall"], listener: Callable[[int], None]
    ) -> Refused | None:
        """Told of every edge of one pin, input or output, by its name."""
        banks: dict[Bank, int | Refused] = {"DI": self.di.number(pin), "DO": self.do.number(pin)}
        found = {(bank, number) for bank, number in banks.items() if isinstance(number, int)}
        if not found:
            return Refused(f"there is no pin {pin}")

        def tell(change: Change) -> None:
            if (change.bank, change.pin) in found and change.value == (edge == "rise"):
                listener(change.at)

        self.on_change(tell)
        return None

    # ── the controller's side ──

    def set_digital_output(self, pin: Pin, value: bool, now: int) -> Refused | None:
        number = self.do.number(pin)
        if isinstance(number, Refused):
            return number
        self._set("DO", number, value, now)
        return None

    def set_analog_output(self, channel: Pin, value: float, now: int) -> Refused | None:
        number = self.ao.number(channel)
        refused = number if isinstance(number, Refused) else self._out_of_range(value)
        if refused:
            return refused
        assert isinstance(number, int)
        self._state.analog_outputs[number] = value
        return None

    # ── injection ──

    def set_digital_input(self, pin: Pin, value: bool, now: int) -> Refused | None:
        """Force an input, until `release_digital_input`."""
        number = self.di.number(pin)
        if isinstance(number, Refused):
            return number
        if number not in self._state.forced:
            self._state.forced.append(number)
        self._set("DI", number, value, now)
        return None

    def release_digital_input(self, pin: Pin, now: int) -> Refused | None:
        number = self.di.number(pin)
        if isinstance(number, Refused):
            return number
        if number in self._state.forced:
            self._state.forced.remove(number)
        self._set("DI", number, bool(self._state.driven >> number & 1), now)
        return None

    def simulate_sensor_trigger(
        self, pin: Pin, value: bool, now: int, duration_ms: float = PULSE_MS
    ) -> Refused | None:
        """A pulse: forced to ``value`` for a while."""
        number = self.di.number(pin)
        if isinstance(number, Refused):
            return number
        self.set_digital_input(number, value, now)
        self._later(now + round(duration_ms * NS_PER_MS), "release", "DI", number, value)
        return None

    def set_analog_input(self, channel: Pin, value: float, now: int) -> Refused | None:
        return self.simulate_analog_sensor(channel, value, now)

    def simulate_analog_sensor(
        self, channel: Pin, value: float, now: int, ramp_s: float = 0.0
    ) -> Refused | None:
        """Force an analog input to a value, along a ramp if it is given time."""
        number = self.ai.number(channel)
        refused = number if isinstance(number, Refused) else self._out_of_range(value)
        if refused:
            return refused
        assert isinstance(number, int)
        start = self.analog_input(number, now)
        self._state.analog_forced[number] = Ramp(value, start, now, now + nanoseconds(ramp_s))
        return None

    def release_analog_input(self, channel: Pin, now: int) -> Refused | None:
        number = self.ai.number(channel)
        if isinstance(number, Refused):
            return number
        self._state.analog_forced.pop(number, None)
        return None

    # ── wiring ──

    def link(self, output: Pin, input_: Pin, delay_ms: float, now: int) -> Refused | None:
        """From now on this output moves that input."""
        source, target = self.do.number(output), self.di.number(input_)
        for number in (source, target):
            if isinstance(number, Refused):
                return number
        assert isinstance(source, int)
        assert isinstance(target, int)
        wire = Wire("DO", source, "DI", target, round(delay_ms * NS_PER_MS))
        if ring([*self._state.wires, wire]):
            return Refused("a ring of links without any delay never settles")
        self._state.wires.append(wire)
        self._send(wire, self.digital_output(source), now)
        return None

    def unlink(self, output: Pin, now: int) -> Refused | None:
        """This output moves no input any more; what is under way does not arrive."""
        number = self.do.number(output)
        if isinstance(number, Refused):
            return number
        gone = {(w.target, w.to) for w in self._state.wires if (w.source, w.pin) == ("DO", number)}
        keep = self._state.wires
        self._state.wires = [w for w in keep if (w.source, w.pin) != ("DO", number)]
        self._state.pending = [p for p in self._state.pending if (p.bank, p.pin) not in gone]
        return None

    # ── devices ──

    def own(self, pin: int) -> int | None:
        """A device drives this input from now on; the delay of a link that did, in ns."""
        mine = [w for w in self._state.wires if (w.target, w.to) == ("DI", pin)]
        self._state.wires = [w for w in self._state.wires if w not in mine]
        return mine[0].delay if mine else None

    def drive(self, pin: int, value: bool, now: int) -> None:
        """What an owner wants of its input."""
        self._state.driven = _with_bit(self._state.driven, pin, value)
        if pin not in self._state.forced:
            self._set("DI", pin, value, now)

    def is_driven(self, pin: int) -> bool:
        """Whether its owner wants this input on, forced or not."""
        return bool(self._state.driven >> pin & 1)

    def drive_analog(self, channel: int, source: Source) -> None:
        """A device's reading, asked for when somebody looks."""
        self._sources[channel] = source

    # ── part ──

    def next_wake(self) -> int | None:
        return self._state.pending[0].due if self._state.pending else None

    def wake(self, now: int) -> None:
        while self._state.pending and self._state.pending[0].due <= now:
            due = self._state.pending.pop(0)
            if due.what == "release":
                self.release_digital_input(due.pin, now)
            else:
                self._arrive(due.bank, due.pin, due.value, now)

    def busy(self) -> bool:
        return False

    def faults(self) -> tuple[str, ...]:
        return ("force_input", "release_input", "pulse_input", "force_analog")

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        number, value = round(parameters["pin"]), parameters.get("value", 0.0)
        if fault == "force_input":
            return self.set_digital_input(number, value != 0.0, now)
        if fault == "release_input":
            return self.release_digital_input(number, now)
        if fault == "pulse_input":
            duration = parameters["duration_s"] * 1e3
            return self.simulate_sensor_trigger(number, value != 0.0, now, duration)
        return self.simulate_analog_sensor(number, value, now, parameters["ramp_s"])

    def status(self, now: int) -> "Pinboard":
        return Pinboard(
            digital=self.digital(),
            analog=self.analog(now),
            forced=tuple(sorted(self._state.forced)),
            analog_forced=tuple(sorted(self._state.analog_forced)),
        )

    def save(self) -> State:
        return self._state

    def load(self, state: Any) -> None:
        self._state = msgspec.convert(state, State)

    # ── inside ──

    def _set(self, bank: Bank, pin: int, value: bool, now: int) -> None:
        state = self._state
        before = state.inputs if bank == "DI" else state.outputs
        after = _with_bit(before, pin, value)
        if after == before:
            return
        if bank == "DI":
            state.inputs = after
        else:
            state.outputs = after
        change = Change(now, bank, pin, value)
        state.history = [*state.history[1 - HISTORY_LENGTH :], change]
        for wire in state.wires:
            if (wire.source, wire.pin) == (bank, pin):
                self._send(wire, value, now)
        for listener in self._listeners:
            listener(change)

    def _send(self, wire: Wire, value: bool, now: int) -> None:
        level = value ^ wire.invert
        if wire.delay == 0:
            self._arrive(wire.target, wire.to, level, now)
        else:
            self._later(now + wire.delay, "level", wire.target, wire.to, level)

    def _arrive(self, bank: Bank, pin: int, value: bool, now: int) -> None:
        if bank == "DI":
            self.drive(pin, value, now)
        else:
            self._set("DO", pin, value, now)

    def _later(
        self, due: int, what: Literal["level", "release"], bank: Bank, pin: int, value: bool
    ) -> None:
        insort(self._state.pending, Pending(due, self._state.count, what, bank, pin, value))
        self._state.count += 1

    def _clamped(self, value: float) -> float:
        if self._config.analog_range_v is None:
            return value
        low, high = self._config.analog_range_v
        return min(max(value, low), high)

    def _out_of_range(self, value: float) -> Refused | None:
        low, high = self._config.analog_range_v or (-1e12, 1e12)
        if low <= value <= high:
            return None
        return Refused(f"{value:g} V is outside {low:g}…{high:g} V", 44)


class Pinboard(Struct, frozen=True):
    """All pins at a glance."""

    digital: DigitalIO
    analog: AnalogIO
    forced: tuple[int, ...]
    analog_forced: tuple[int, ...]


def levels(names: PinNames, word: int) -> Mapping[str, bool]:
    """A bank by name."""
    return {names.name(pin): bool(word >> pin & 1) for pin in range(names.count)}


def _with_bit(word: int, pin: int, value: bool) -> int:
    return word | 1 << pin if value else word & ~(1 << pin)
