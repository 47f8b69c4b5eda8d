"""GripperController: grips and releases with time-outs, on simulated or real time.

It reads sensors and sets outputs only; it does not know the parts of the cell. A command returns a
ticket at once, which ends by `on_finished`. A new command replaces the one under way. Of two
outputs one is switched off before the other one is switched on.

`GripperStandIn` is for tests: the blocking calls of the design document let simulated time pass.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
from msgspec import Struct

from understudy.devices.gripper import TRANSITIONS, Config, Phase
from understudy.devices.gripper.actuator import (
    Actuator,
    Direction,
    ExplainsMiss,
    Hardware,
    HasVacuum,
    Reading,
    Timing,
)
from understudy.devices.gripper.hardware import CupHardware, FingerHardware
from understudy.devices.gripper.modbus.interface import OffersRegisters, Registers
from understudy.errors import ConfigError, Refused, needs, unknown
from understudy.ports import CallsPlace, Finished, Ticket
from understudy.ports.device import (
    DeviceAction,
    DeviceEvent,
    FingerFacts,
    Mount,
    PlotRow,
)
from understudy.ports.faults import Faults
from understudy.ports.hand import HandState, HandStatus
from understudy.ports.hmi import PanelRow
from understudy.ports.io import ControllerPins, PinChange, PollsInputs
from understudy.ports.state import load, saved
from understudy.units import MM, NS_PER_MS, ms_to_ns

if TYPE_CHECKING:
    from understudy.app.stand_in import StandIn


MISSED = "MISSED: closed, and there is no part"
LOST = "the part was lost"
GRIPPER_FAULT = "gripper fault"
UNDER_WAY: tuple[Phase, ...] = ("Closing", "Settling", "Opening", "Clearing")

ADVICE: Mapping[str, str] = {
    "at the same time": "Both end sensors are on: look at their cables and switches, then reset.",
    "part sensor": "The part sensor is on without a part: clean or adjust it, then reset.",
    "vacuum signal": "The vacuum signal is on without a part: look at the switch, then reset.",
    "lost": "The part was lost: find it, look at air pressure and pads, then reset.",
    "": "Look at air pressure, valve and sensors of the gripper, then reset.",
}
"""A word of a message → advice; the first match counts."""
BOTH_SENSORS = "GRIPPER_CLOSED and GRIPPER_OPENED are on at the same time"
POLL_PERIOD = 10 * NS_PER_MS
"""An analog input has no edges: it is read once per period while its value counts."""
Listener = Callable[[int], None]


class State(Struct):
    """State of a gripper in a snapshot. `due`: an input has changed at this time and was not looked
    at yet. `deadline`: the end of the present phase. `halted`: its ticket has ended before it."""

    phase: Phase = "Rest"
    tickets: int = 0
    ticket: int | None = None
    deadline: int | None = None
    due: int | None = None
    halted: bool = False
    error: str = ""
    actuator: Any = None
    hardware: Any = None


class GripperController:
    """`Hand` and `Device`. ``hardware``: the simulated gripper, none for a REAL one."""

    def __init__(
        self, name: str, config: Config, actuator: Actuator, hardware: Hardware | None = None
    ) -> None:
        self._name = name
        self._config = config
        self._actuator = actuator
        self._hardware = hardware
        self._state = State()
        self._widest = hardware.opening(0) if hardware else 0.0  # simulated fingers start open
        self._finished: list[Finished] = []
        self._lost: list[Callable[[int], None]] = []
        self._listeners: list[Callable[[DeviceEvent], None]] = []
        actuator.on_change(self._input_changed)

    # ── commands ──

    def start_grip(self, now: int, *, timeout_ms: float = 0.0) -> Ticket | Refused:
        reading = self._actuator.reading(now)
        if reading.opened and reading.part:
            return Refused("the part sensor is on while the fingers are open; clear it first")
        return self._begin("grip", timeout_ms, now)

    def start_release(self, now: int, *, timeout_ms: float = 0.0) -> Ticket | Refused:
        return self._begin("release", timeout_ms, now)

    def _begin(self, event: str, timeout_ms: float, now: int) -> Ticket | Refused:
        """Enters Closing or Opening; a time-out of 0 is the gripper's own."""
        if not 0.0 <= timeout_ms <= 600_000.0:
            return Refused(f"a time-out of {timeout_ms:g} ms is outside 0…600000 ms")
        state, actuator = self._state, self._actuator
        replaced, state.ticket = state.ticket, None
        opens = event == "release"
        own = actuator.timing.open if opens else actuator.timing.close
        self._go(event, now)
        state.deadline = now + (ms_to_ns(timeout_ms) or own)
        state.halted, state.error = False, ""
        refused = actuator.open(now) if opens else actuator.close(now)
        if refused:
            self._fail(refused.reason, now)
        else:
            state.tickets += 1
            state.ticket, state.due = state.tickets, now
        given = Ticket(state.tickets)
        self._tell(replaced, Refused(f"replaced by a {event}"), now)
        return refused or given

    def halt(self, now: int) -> None:
        """Ends the ticket under way. No output changes; a stroke that has begun goes on, and ends
        with its valve off."""
        self._state.halted = self._state.phase in UNDER_WAY
        self._end_ticket(Refused("halted"), now)

    def is_action_complete(self) -> bool:
        return self._state.ticket is None

    def emergency_release(self, now: int) -> Refused | None:
        """Opens at once, in every phase. Nothing calls this by itself: an emergency stop and a loss
        of power hold the part."""
        ticket = self.start_release(now)
        return ticket if isinstance(ticket, Refused) else None

    # ── vacuum ──

    def enable_vacuum(self, now: int) -> Refused | None:
        """Switches the ejector on, and waits for nothing."""
        cup = self._cup()
        return cup if isinstance(cup, Refused) else cup.enable_vacuum(now)

    def disable_vacuum(self, now: int) -> Refused | None:
        """Switches the ejector off: a held part is let go without blow-off, and is not lost."""
        cup = self._cup()
        if isinstance(cup, Refused):
            return cup
        return self._without_vacuum(cup.disable_vacuum(now), now)

    def blow_off(self, now: int) -> Refused | None:
        """Switches the ejector off and blows for `blowoff_time_ms`."""
        cup = self._cup()
        if isinstance(cup, Refused):
            return cup
        return self._without_vacuum(cup.blow_off(now), now)

    def _without_vacuum(self, refused: Refused | None, now: int) -> Refused | None:
        self._go("vacuum_off", now)
        self._end_ticket(Refused("the vacuum was switched off"), now)
        return refused

    def _cup(self) -> HasVacuum | Refused:
        actuator = self._actuator
        if isinstance(actuator, HasVacuum):
            return actuator
        return Refused(f"a gripper of type {self._config.type} has no vacuum")

    # ── phases ──

    def _go(self, event: str, now: int) -> None:
        """Enters the phase that the table has for this event, if it has one."""
        phase = TRANSITIONS.get((self._state.phase, event))
        if phase is None:
            return
        self._state.phase, self._state.deadline = phase, None
        self._report(DeviceEvent(now, phase))

    def _look(self, now: int) -> bool:
        """Carries out what follows from the sensors and the deadline; whether the phase changed."""
        before = self._state.phase
        look = _LOOKS.get(before)
        if look is not None:
            look(self, self._actuator.reading(now), now)
        return self._state.phase != before

    def _closing(self, reading: Reading, now: int) -> None:
        if reading.problem:
            self._fail(reading.problem, now)
        elif (reading.part or reading.closed) and not reading.opened:
            self._go("arrived", now)
            self._state.deadline = now + self._actuator.timing.settle
        elif self._is_over(now):
            halted, cause = self._state.halted, self._cause_of_miss(now)
            reason = "closing was halted" if halted else self._actuator.give_up(now) + cause
            self._fail(reason, now)

    def _cause_of_miss(self, now: int) -> str:
        cause = self._hardware.miss(now) if isinstance(self._hardware, ExplainsMiss) else ""
        return f"; {cause}" if cause else ""

    def _settling(self, reading: Reading, now: int) -> None:
        if not self._is_over(now):
            return
        self._actuator.finish(now)
        if reading.part:
            self._go("held", now)
            self._end_ticket(None, now)
        else:
            self._go("missed", now)
            self._end_ticket(Refused(MISSED), now)

    def _holding(self, reading: Reading, now: int) -> None:
        if reading.part:
            return
        self._state.error = LOST
        self._go("lost", now)
        self._report(DeviceEvent(now, "Lost", f"{GRIPPER_FAULT}: {LOST}"))
        for listener in self._lost:
            listener(now)

    def _opening(self, reading: Reading, now: int) -> None:
        if reading.problem:
            self._fail(reading.problem, now)
        elif reading.opened and not reading.part:
            self._go("clear", now)
            self._state.deadline = now + self._actuator.timing.settle
        elif self._is_over(now):
            self._fail(_still_closed(reading), now)

    def _clearing(self, reading: Reading, now: int) -> None:
        if not self._is_over(now):
            return
        if reading.part or not reading.opened:
            self._fail(_still_closed(reading), now)
            return
        self._actuator.finish(now)
        self._go("done", now)
        self._end_ticket(None, now)

    def _is_over(self, now: int) -> bool:
        return self._state.deadline is not None and self._state.deadline <= now

    def _fail(self, reason: str, now: int) -> None:
        self._actuator.finish(now)
        self._state.error = reason
        self._go("failed", now)
        alarm = "" if reason.startswith("MISSED") else f"{GRIPPER_FAULT}: {reason}"
        self._report(DeviceEvent(now, "Fault", alarm))
        self._end_ticket(Refused(reason), now)

    def _end_ticket(self, result: Refused | None, now: int) -> None:
        """Always the last step: a listener may give the next command."""
        ticket, self._state.ticket = self._state.ticket, None
        self._tell(ticket, result, now)

    def _tell(self, ticket: int | None, result: Refused | None, now: int) -> None:
        if ticket is not None:
            for listener in self._finished:
                listener(Ticket(ticket), result, now)

    def _input_changed(self, now: int) -> None:
        """The inputs are looked at in the next wake of this instant, when all have settled."""
        self._state.due = now

    # ── readings ──

    def status(self, now: int) -> HandStatus:
        reading = self._actuator.reading(now)
        return HandStatus(
            state=self._named_state(reading),
            part_detected=reading.part,
            force_n=reading.force_n,
            vacuum_kpa=reading.vacuum_kpa,
            sensor_closed=reading.closed,
            sensor_opened=reading.opened,
            opening=self.opening(now),
            error=self._state.error or reading.problem,
        )

    def _named_state(self, reading: Reading) -> HandState:
        """The state in the words of the design document."""
        phase = self._state.phase
        if reading.problem or phase == "Failed":
            return "ERROR"
        if phase in ("Closing", "Settling"):
            return "CLOSING"
        if phase in ("Opening", "Clearing"):
            return "OPENING"
        if reading.part and not reading.opened:
            return "GRIPPING"
        if reading.closed or reading.opened:
            return "CLOSED" if reading.closed else "OPENED"
        between: Mapping[str, HandState] = {"close": "CLOSING", "open": "OPENING"}
        return between.get(reading.direction, "UNKNOWN")

    def opening(self, now: int) -> float:
        """Between the fingers, in metres; 0 for a cup and for REAL fingers on a valve."""
        if self._hardware is not None:
            return self._hardware.opening(now)
        return self._actuator.reading(now).opening

    def fingers(self) -> FingerFacts | None:
        width, height = self._config.fingers.pad_mm
        facts = FingerFacts(self._config.fingers.axis, self._widest, (width * MM, height * MM))
        return facts if self._widest > 0.0 else None

    def has_part(self, now: int) -> bool:
        return self._actuator.reading(now).part

    def is_ready(self, now: int) -> bool:
        return self.status(now).state == "OPENED"

    @property
    def phase(self) -> Phase:
        return self._state.phase

    def panel(self, now: int) -> tuple[PanelRow, ...]:
        status = self.status(now)
        vacuum = isinstance(self._actuator, HasVacuum)
        measured = (
            (PanelRow("Vacuum", status.vacuum_kpa, "kPa"),)
            if vacuum
            else (
                PanelRow("Opening", status.opening / MM, "mm"),
                PanelRow("Force", status.force_n, "N"),
            )
        )
        return (
            PanelRow("State", status.state, state="fault" if status.error else "ok"),
            PanelRow("Part", status.part_detected),
            *measured,
        )

    def plots(self) -> tuple[PlotRow, ...]:
        if isinstance(self._actuator, HasVacuum):
            return (PlotRow("vacuum_kpa", "kPa", lambda now: self.status(now).vacuum_kpa),)
        return (
            PlotRow("opening_mm", "mm", lambda now: self.opening(now) / MM),
            PlotRow("grip_force_n", "N", lambda now: self.status(now).force_n),
        )

    # ── operator ──

    def actions(self) -> Mapping[str, DeviceAction]:
        def started(ticket: Ticket | Refused) -> Refused | None:
            return ticket if isinstance(ticket, Refused) else None

        def close(now: int) -> Refused | None:
            return started(self.start_grip(now))

        def open_(now: int) -> Refused | None:
            return started(self.start_release(now))

        falls = "open the gripper at once, in every state: a held part falls"
        own = {
            "gripper_close": DeviceAction("close the gripper on a part", (), close, "Close", False),
            "gripper_open": DeviceAction("open the gripper", (), open_, "Open", False),
            "gripper_emergency_release": DeviceAction(falls, (), self.emergency_release),
        }
        if isinstance(self._actuator, HasVacuum):
            on, off = "switch the vacuum of a gripper on", "switch the vacuum of a gripper off"
            blow = "switch the vacuum off and blow the part off"
            own |= {
                "vacuum_on": DeviceAction(on, (), self.enable_vacuum, "Vacuum on", False),
                "vacuum_off": DeviceAction(off, (), self.disable_vacuum, "Vacuum off", False),
                "blow_off": DeviceAction(blow, (), self.blow_off, "Blow off", False),
            }
        return own

    def advice(self, message: str) -> str:
        if GRIPPER_FAULT not in message:
            return ""
        return next(advice for word, advice in ADVICE.items() if word in message)

    # ── listeners ──

    def on_finished(self, listener: Finished) -> None:
        self._finished.append(listener)

    def on_lost(self, listener: Callable[[int], None]) -> None:
        self._lost.append(listener)

    def on_event(self, listener: Callable[[DeviceEvent], None]) -> None:
        self._listeners.append(listener)

    def _report(self, event: DeviceEvent) -> None:
        for listener in self._listeners:
            listener(event)

    # ── faults ──

    def faults(self) -> Faults:
        return self._hardware.faults() if self._hardware else {}

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        if self._hardware is None:
            return Refused("a REAL gripper has no simulated faults")
        return self._hardware.inject(fault, parameters, now)

    def reset(self, now: int) -> None:
        """Clears faults; outputs, fingers and a held part stay as they are."""
        self._state.error = ""
        self._go("reset", now)
        if self._hardware is not None:
            self._hardware.reset(now)

    def active_faults(self) -> Sequence[str]:
        own = (f"{GRIPPER_FAULT}: {self._state.error}",) if self._state.error else ()
        return (*own, *(self._hardware.active_faults() if self._hardware else ()))

    # ── other ends ──

    def registers(self) -> Registers | None:
        """The virtual Modbus device of a simulated servo gripper."""
        hardware = self._hardware
        return hardware.registers() if isinstance(hardware, OffersRegisters) else None

    def callers(self) -> Sequence[CallsPlace]:
        """The driver of a REAL servo gripper."""
        real = self._hardware is None and isinstance(self._actuator, CallsPlace)
        return (cast(CallsPlace, self._actuator),) if real else ()

    # ── component ──

    def _parts(self) -> tuple[Actuator | Hardware, ...]:
        return (self._actuator,) if self._hardware is None else (self._hardware, self._actuator)

    def next_wake(self) -> int | None:
        times = [part.next_wake() for part in self._parts()]
        times += [self._state.due, self._state.deadline]
        return min((at for at in times if at is not None), default=None)

    def wake(self, now: int) -> None:
        for part in self._parts():
            at = part.next_wake()
            if at is not None and at <= now:
                part.wake(now)
        self._state.due = None
        while self._look(now):
            pass
        if self._is_over(now):
            self._state.deadline = None  # a phase without a deadline, from a damaged snapshot

    def busy(self) -> bool:
        return self._state.phase in UNDER_WAY

    def save(self) -> State:
        self._state.actuator, self._state.hardware = saved(self._actuator), saved(self._hardware)
        return self._state

    def load(self, state: Any) -> None:
        loaded = msgspec.convert(state, State)
        if loaded.deadline is not None and loaded.phase not in UNDER_WAY:
            raise ValueError(f"a deadline in the phase {loaded.phase}")
        load(self._actuator, loaded.actuator)
        load(self._hardware, loaded.hardware)
        self._state = loaded


def _still_closed(reading: Reading) -> str:
    if reading.part:
        signal = "vacuum signal" if reading.vacuum_kpa else "part sensor"
        return f"the {signal} is still on after the release"
    return "the fingers did not open in time"


_LOOKS: Mapping[Phase, Callable[[GripperController, Reading, int], None]] = {
    "Closing": GripperController._closing,
    "Settling": GripperController._settling,
    "Holding": GripperController._holding,
    "Opening": GripperController._opening,
    "Clearing": GripperController._clearing,
}


# ── actuators on the pins of a robot: the valve of two fingers, and the ejector of a cup ──────────


class _Switches:
    """The two outputs of a gripper, of which at most one is on."""

    def __init__(self, pins: ControllerPins, first: int, second: int) -> None:
        self._pins = pins
        self._both = (first, second)

    def switch(self, on: int | None, now: int) -> Refused | None:
        """Switches off all outputs but ``on``, and then ``on`` itself on."""
        for pin in self._both:
            if pin != on and (refused := self._pins.set_digital_output(pin, False, now)):
                return refused
        return None if on is None else self._pins.set_digital_output(on, True, now)


class FingerState(Struct):
    """The state of the valve in a snapshot. `direction`: the coil that was energised last."""

    direction: Direction = ""


class FingerValve:
    """`Actuator`: the 5/2 valve of two fingers, which keeps its position without current."""

    def __init__(self, config: Config, pins: ControllerPins, *, delay: int = 0) -> None:
        """``delay``: ns until the sensors are read."""
        self.timing = Timing(
            ms_to_ns(config.close_timeout_ms) + delay,
            ms_to_ns(config.open_timeout_ms) + delay,
            ms_to_ns(config.settle_time_ms) + delay,
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

    def __init__(self, config: Config, pins: ControllerPins, *, delay: int = 0) -> None:
        """``delay``: ns until the sensors are read."""
        self.timing = Timing(
            ms_to_ns(config.vacuum_timeout_ms) + delay,
            ms_to_ns(config.open_timeout_ms) + delay,
            delay,
        )
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
        self.state.blow_until = now + ms_to_ns(self._config.blowoff_time_ms)
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


# ── assembly ──────────────────────────────────────────────────────────────────────────────────────


def build_gripper(name: str, config: Config, mount: Mount) -> GripperController:
    return BUILDERS[config.type](name, config, mount)


def _two_fingers(name: str, config: Config, mount: Mount) -> GripperController:
    fingers = config.fingers
    if fingers.closed_mm + 2.0 * fingers.sensor_mm >= fingers.open_mm:
        allowed = f"less than open_mm ({fingers.open_mm:g}) by more than twice sensor_mm"
        problem = "the fingers have no stroke"
        raise ConfigError(
            problem, key="fingers.closed_mm", value=fingers.closed_mm, allowed=allowed
        )
    io = mount.needed_pins()
    _check_pins(io, config)
    return GripperController(
        name, config, FingerValve(config, io), FingerHardware(name, config, mount)
    )


def _cup(name: str, config: Config, mount: Mount) -> GripperController:
    pins, threshold = config.pins, config.vacuum_threshold_kpa
    if config.cup.sealed_kpa >= threshold:
        allowed = f"below vacuum_threshold_kpa ({threshold:g})"
        problem = "the simulated ejector never reaches the threshold"
        raise ConfigError(
            problem, key="cup.sealed_kpa", value=config.cup.sealed_kpa, allowed=allowed
        )
    io = mount.needed_pins()
    _check_pins(io, config)
    io.retain(pins.vacuum_on)
    return GripperController(
        name, config, VacuumValve(config, io), CupHardware(name, config, mount)
    )


def _servo(name: str, config: Config, mount: Mount) -> GripperController:
    try:
        from understudy.devices.gripper.modbus.assembly import build_servo
    except ModuleNotFoundError as problem:
        if problem.name is None or not problem.name.startswith("pymodbus"):
            raise
        raise ConfigError(f"a servo gripper {needs('pymodbus')}", key="type") from None
    driver, hardware = build_servo(name, config, mount)
    return GripperController(name, config, driver, hardware)


BUILDERS = {
    "PNEUMATIC_2FINGER": _two_fingers,
    "PNEUMATIC_VACUUM": _cup,
    "ELECTRIC_SERVO": _servo,
}


class UsedPins(NamedTuple):
    outputs: tuple[int, ...]
    inputs: tuple[int, ...]
    analog: int


def _used_pins(config: Config) -> UsedPins:
    pins = config.pins
    if config.type == "PNEUMATIC_VACUUM":
        return UsedPins((pins.vacuum_on, pins.blow_off), (pins.vacuum_ok,), pins.vacuum)
    inputs = (pins.closed, pins.opened, pins.part)
    return UsedPins((pins.close, pins.open), inputs, pins.force)


def _check_pins(io: ControllerPins, config: Config) -> None:
    """Raises ConfigError if the robot lacks one of the pins, or if two are the same."""
    used = _used_pins(config)
    for which, pins in (("output", used.outputs), ("input", used.inputs)):
        if len(set(pins)) < len(pins):
            raise ConfigError(f"each {which} needs a pin of its own", key="pins", value=list(pins))
    try:
        for pin in used.outputs:
            io.digital_output(pin)
        for pin in used.inputs:
            io.digital_input(pin)
        io.analog_input(used.analog, 0)
    except LookupError as problem:
        raise ConfigError(str(problem.args[0]), key="pins") from None


# ── a REAL gripper ──────────────────────────────────────────────────────────────────────────────

READ_DELAY = 100 * NS_PER_MS
"""A REAL controller reports an input only when it is asked: all sensors are read in this time."""


def build_real_gripper(name: str, config: Config, pins: PollsInputs | None) -> GripperController:
    if config.type == "ELECTRIC_SERVO":
        if config.servo.real is None:
            raise ConfigError(
                f"the robot of {name} is REAL: name its REAL gripper",
                key="gripper.servo.real",
                allowed="servo: {real: {to: /dev/ttyUSB0}}, or an address as 10.0.0.5:502",
            )
        from understudy.devices.gripper.modbus.assembly import servo_driver

        return GripperController(name, config, servo_driver(name, config, config.servo))
    if pins is None:
        raise ConfigError(f"the controller of {name} has no pins", key="gripper")
    _check_pins(pins, config)
    used = _used_pins(config)
    pins.follow(used.inputs, (used.analog,))
    valve = VacuumValve if config.type == "PNEUMATIC_VACUUM" else FingerValve
    return GripperController(name, config, valve(config, pins, delay=READ_DELAY))


STEP_S = 0.005
LONGEST_S = 3600.0


class GripperStandIn:
    """The gripper of a cell in lock-step (`rate="step"`); of the only one if no name is given.

    ``reason``: why the last call returned False.
    """

    def __init__(self, cell: "StandIn", name: str = "") -> None:
        self._cell = cell
        self._name = name or _only(cell)
        self._ended: dict[Ticket, Refused | None] = {}
        self.reason = ""
        note: Finished = lambda ticket, result, now: self._ended.update({ticket: result})  # noqa: E731
        self._act(lambda gripper, now: gripper.on_finished(note))

    def grip(self, timeout_ms: float = 0.0) -> bool:
        """Closes and waits until a part is held, or until the grip has failed."""
        return self._wait(lambda gripper, now: gripper.start_grip(now, timeout_ms=timeout_ms))

    def release(self, timeout_ms: float = 0.0) -> bool:
        """Opens and waits until the part is free."""
        return self._wait(lambda gripper, now: gripper.start_release(now, timeout_ms=timeout_ms))

    def has_part(self) -> bool:
        return self.status().part_detected

    def is_ready(self) -> bool:
        """Opened, without a part."""
        return self.status().state == "OPENED"

    def status(self) -> HandStatus:
        found: HandStatus = self._act(lambda gripper, now: gripper.status(now))
        return found

    def _wait(self, start: "Callable[[GripperController, int], Ticket | Refused]") -> bool:
        ticket = self._act(start)
        if isinstance(ticket, Refused):
            self.reason = ticket.reason
            return False
        ends = self._cell.now + LONGEST_S
        while ticket not in self._ended:
            if self._cell.now > ends:
                raise TimeoutError(f"{self._name} did not end within {LONGEST_S:g} simulated s")
            self._cell.forward(STEP_S)
        result = self._ended.pop(ticket)
        self.reason = result.reason if result else ""
        return result is None

    def _act(self, action: "Callable[[GripperController, int], Any]") -> Any:
        return self._cell.on_component(self._name, action)


def _only(cell: "StandIn") -> str:
    names = [row["name"] for row in cell.do("devices") if row["kind"] == "gripper"]
    if len(names) != 1:
        raise unknown("gripper", "", names)
    return str(names[0])
