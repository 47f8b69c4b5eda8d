"""Actuators on the pins of a controller: the valve of two fingers, and the ejector of a cup.

An output is switched off before the other one is switched on.
"""

from collections.abc import Callable

from msgspec import Struct

from understudy.devices.gripper import Config
from understudy.devices.gripper.actuator import Direction, Reading, Timing
from understudy.errors import Refused
from understudy.ports.io import DevicePins, PinChange
from understudy.units import NS_PER_MS

BOTH_SENSORS = "GRIPPER_CLOSED and GRIPPER_OPENED are on at the same time"
POLL_PERIOD = 10 * NS_PER_MS
"""An analog input has no edges: it is read once per period while its value counts."""
Listener = Callable[[int], None]


def ns(ms: float) -> int:
    return round(ms * NS_PER_MS)


class _Switches:
    """The two outputs of a gripper, of which at most one is on."""

    def __init__(self, pins: DevicePins, first: int, second: int) -> None:
        self._pins = pins
        self._both = (first, second)

    def switch(self, on: int | None, now: int) -> Refused | None:
        """Switches off all outputs but ``on``, and then ``on`` itself on."""
        for pin in self._both:
            if pin != on and (refused := self._pins.set_digital_output(pin, False, now)):
                return refused
        return None if on is None else self._pins.set_digital_output(on, True, now)


# ── two fingers ─────────────────────────────────────────────────────────────────────────────────


class FingerState(Struct):
    """The state of the valve in a snapshot. `direction`: the coil that was energised last."""

    direction: Direction = ""


class FingerValve:
    """`Actuator`: the 5/2 valve of two fingers, which keeps its position without current."""

    def __init__(self, config: Config, pins: DevicePins) -> None:
        self.timing = Timing(
            ns(config.close_timeout_ms), ns(config.open_timeout_ms), ns(config.settle_time_ms)
        )
        self._config = config
        self._pins = pins
        self._coils = _Switches(pins, config.pins.close, config.pins.open)
        self.state = FingerState()
        self._listeners: list[Listener] = []
        pins.on_change(self._pin_changed)

    def close(self, now: int) -> Refused | None:
        return self._coils.switch(self._config.pins.close, now)

    def open(self, now: int) -> Refused | None:
        return self._coils.switch(self._config.pins.open, now)

    def finish(self, now: int) -> None:
        self._coils.switch(None, now)

    def give_up(self, now: int) -> str:
        reading = self.reading(now)
        self._coils.switch(None, now)
        where = "the fingers are still open" if reading.opened else "neither end sensor is on"
        return f"no part and not closed within {self._config.close_timeout_ms:g} ms: {where}"

    def reading(self, now: int) -> Reading:
        pins, config = self._config.pins, self._config
        closed, opened = (
            self._pins.digital_input(pins.closed),
            self._pins.digital_input(pins.opened),
        )
        return Reading(
            closed=closed,
            opened=opened,
            part=self._pins.digital_input(pins.part),
            force_n=config.calibration.force_n(self._pins.analog_input(pins.force, now)),
            direction=self.state.direction,
            problem=BOTH_SENSORS if closed and opened else "",
        )

    def on_change(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def _pin_changed(self, change: PinChange) -> None:
        pins = self._config.pins
        if change.bank == "DI" and change.pin in (pins.closed, pins.opened, pins.part):
            for listener in self._listeners:
                listener(change.at)
        elif change.bank == "DO" and change.value and change.pin in (pins.close, pins.open):
            self.state.direction = "close" if change.pin == pins.close else "open"

    def next_wake(self) -> int | None:
        return None

    def wake(self, now: int) -> None:
        return None


# ── vacuum ──────────────────────────────────────────────────────────────────────────────────────


class VacuumState(Struct):
    """The state of the ejector and its sensors in a snapshot. `beyond`: the analog input was beyond
    the threshold when it was last read. Times in ns."""

    beyond: bool = False
    blow_until: int | None = None
    poll_at: int | None = None


class VacuumValve:
    """`Actuator`: ejector, blow-off, vacuum switch and vacuum sensor of a cup.

    A part is there while VACUUM_OK is on, or while the sensor is beyond the threshold; the sensor
    is read periodically while the ejector is on and VACUUM_OK is off.
    """

    def __init__(self, config: Config, pins: DevicePins) -> None:
        self.timing = Timing(ns(config.vacuum_timeout_ms), ns(config.open_timeout_ms), 0)
        self._config = config
        self._pins = pins
        self._valves = _Switches(pins, config.pins.vacuum_on, config.pins.blow_off)
        self.state = VacuumState()
        self._listeners: list[Listener] = []
        pins.on_change(self._pin_changed)

    def close(self, now: int) -> Refused | None:
        return self.enable_vacuum(now)

    def open(self, now: int) -> Refused | None:
        return self.blow_off(now)

    def finish(self, now: int) -> None:
        """The ejector stays as it is: a held part needs it."""

    def give_up(self, now: int) -> str:
        kpa, limit = self._kpa(now), self._config.vacuum_threshold_kpa
        self.disable_vacuum(now)
        after = f"within {self._config.vacuum_timeout_ms:g} ms"
        return f"MISSED: {kpa:.1f} kPa {after}, {limit:g} kPa are needed"

    def enable_vacuum(self, now: int) -> Refused | None:
        self.state.blow_until = None
        return self._valves.switch(self._config.pins.vacuum_on, now)

    def disable_vacuum(self, now: int) -> Refused | None:
        return self._pins.set_digital_output(self._config.pins.vacuum_on, False, now)

    def blow_off(self, now: int) -> Refused | None:
        """Switches the ejector off and blows for `blowoff_time_ms`."""
        self.state.blow_until = now + ns(self._config.blowoff_time_ms)
        return self._valves.switch(self._config.pins.blow_off, now)

    def reading(self, now: int) -> Reading:
        part, vacuum = self._part(now), self._is_on(self._config.pins.vacuum_on)
        return Reading(
            opened=not (vacuum or self._is_on(self._config.pins.blow_off) or part),
            part=part,
            vacuum_kpa=self._kpa(now),
            direction="close" if vacuum else "open",
        )

    def _is_on(self, output: int) -> bool:
        return self._pins.digital_output(output)

    def _kpa(self, now: int) -> float:
        volts = self._pins.analog_input(self._config.pins.vacuum, now)
        return self._config.calibration.vacuum_kpa(volts)

    def _part(self, now: int) -> bool:
        if self._pins.digital_input(self._config.pins.vacuum_ok):
            return True
        slack = self._config.vacuum_hysteresis_kpa if self.state.beyond else 0.0
        return self._kpa(now) <= self._config.vacuum_threshold_kpa + slack

    def on_change(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def _pin_changed(self, change: PinChange) -> None:
        pins = self._config.pins
        if change.bank == "DI":
            if change.pin == pins.vacuum_ok:
                self._look(change.at)
        elif change.pin in (pins.vacuum_on, pins.blow_off):
            self._look(change.at)

    def _look(self, now: int) -> None:
        """Reads the sensor, decides whether it must be read again, and tells the listeners."""
        self.state.beyond = self._part(now)
        counts = self.state.beyond or self._is_on(self._config.pins.vacuum_on)
        needed = counts and not self._pins.digital_input(self._config.pins.vacuum_ok)
        self.state.poll_at = now + POLL_PERIOD if needed else None
        for listener in self._listeners:
            listener(now)

    def next_wake(self) -> int | None:
        times = (self.state.blow_until, self.state.poll_at)
        return min((at for at in times if at is not None), default=None)

    def wake(self, now: int) -> None:
        state = self.state
        if state.blow_until is not None and state.blow_until <= now:
            state.blow_until = None
            self._pins.set_digital_output(self._config.pins.blow_off, False, now)
        if state.poll_at is not None and state.poll_at <= now:
            self._look(now)
