"""The power source: Idle … PostFlow on the welding pins, as events on simulated time."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from understudy.cell.io import Change, VirtualIO
from understudy.cell.welder import seam
from understudy.cell.welder.config import (
    AMPERES_PER_VOLT,
    ARC_VOLTS_PER_VOLT,
    LITRES_PER_MINUTE_PER_VOLT,
    METRES_PER_MINUTE_PER_VOLT,
    Config,
    WeldParameters,
)
from understudy.cell.welder.gauges import Gauges, WeldingState
from understudy.cell.welder.phases import (
    ARC_OK,
    ARC_START,
    BURNING,
    CURRENT,
    FAULT_RESET,
    GAS,
    GAS_FLOW,
    GAS_OK,
    READY,
    TRANSITIONS,
    VOLTAGE,
    WELD_ERROR,
    WIRE_SPEED,
    WIRE_STUCK,
    Phase,
    PhaseListener,
    State,
)
from understudy.errors import Refused
from understudy.ports import Luck
from understudy.units import MM, NS_PER_MS, nanoseconds, seconds


class Welder:
    """A `Part` on the pins of a controller; owns ARC_OK, GAS_OK, WELD_ERROR, WIRE_STUCK, READY."""

    def __init__(
        self, name: str, config: Config, *, io: VirtualIO, way: seam.ToolWay, luck: Luck
    ) -> None:
        self._name = name
        self._config = config
        self._io = io
        self._luck = luck
        self._gauges = Gauges(name, config, io=io, luck=luck)
        self._seam = seam.Seam(way, config.standing_arc_s)
        self._state = State(seam=self._seam.state)
        self._listeners: list[PhaseListener] = []
        self._strike_time, self._gas_delay = self._take_the_pins()
        io.on_change(self._pin_changed)

    def _take_the_pins(self) -> tuple[int, int]:
        """A link onto a pin that the welder drives becomes the welder's own delay."""
        arc, gas = self._io.own(ARC_OK), self._io.own(GAS_OK)
        for pin in (WELD_ERROR, WIRE_STUCK, READY):
            self._io.own(pin)
        self._io.drive(READY, True, 0)
        self._io.drive_analog(
            CURRENT, lambda now: self._gauges.current(self._state, now) / AMPERES_PER_VOLT
        )
        self._io.drive_analog(
            VOLTAGE, lambda now: self._gauges.voltage(self._state, now) / ARC_VOLTS_PER_VOLT
        )
        speed = METRES_PER_MINUTE_PER_VOLT
        self._io.drive_analog(
            WIRE_SPEED, lambda now: abs(self._gauges.wire_speed(self._state)) / speed
        )
        self._io.drive_analog(
            GAS_FLOW, lambda now: self._gauges.flow(self._state, now) / LITRES_PER_MINUTE_PER_VOLT
        )
        ignition = nanoseconds(self._config.ignition_time_s)
        delay = round(self._config.gas_delay_ms * NS_PER_MS)
        return ignition if arc is None else arc, delay if gas is None else gas

    # ── what the pins say ──

    def _pin_changed(self, change: Change) -> None:
        if change.bank != "DO":
            return
        if change.pin == ARC_START:
            self._event("arc_on" if change.value else "arc_off", change.at)
        elif change.pin == GAS:
            self._state.valve = change.value
            self._mind_the_gas(change.at)
        elif change.pin == FAULT_RESET and change.value:
            self.reset(change.at)

    def _event(self, event: str, now: int) -> None:
        """Go over into the phase that the table names; nothing happens where it names none."""
        phase = TRANSITIONS.get((self._state.phase, event))
        if phase is not None:
            self._enter(phase, now)  # type: ignore[arg-type]

    def _enter(self, phase: Phase, now: int) -> None:
        state, config = self._state, self._config
        self._look(now)
        if phase == "PreFlow" and not (state.valve or config.auto_gas or self._holds_gas()):
            self._seam.note(now, "gas", "the arc was started with the gas closed")
            self._fail("gas", now)
            return
        lengths = {
            "Stabilize": config.stabilize_s,
            "Crater": config.crater_s,
            "Burnback": config.burnback_s,
            "PostFlow": config.post_flow_s,
        }
        state.phase = phase
        state.ends = now + nanoseconds(lengths[phase]) if phase in lengths else None
        if state.arc and phase not in BURNING:
            self._burn(False, now)
        self._mind_the_gas(now)
        if phase == "PreFlow":
            flows = state.flows_at if state.flows_at is not None else now
            state.ends = max(now, flows + nanoseconds(config.pre_flow_s))
        elif phase == "Ignition":
            state.tries = 0
            self._try_to_ignite(now)
        for listener in self._listeners:
            listener(phase, now)

    # ── gas ──

    def _holds_gas(self) -> bool:
        return self._state.phase in ("Crater", "Burnback", "PostFlow")

    def _mind_the_gas(self, now: int) -> None:
        state = self._state
        active = state.phase not in ("Idle", "Fault")
        wanted = state.valve or self._holds_gas() or (self._config.auto_gas and active)
        open_ = wanted and not state.gas_blocked
        if open_ and state.flows_at is None:
            state.flows_at = now + self._gas_delay
        elif not open_ and state.flows_at is not None:
            state.flows_at = None
            self._io.drive(GAS_OK, False, now)
            if active:
                self._fail("gas", now)

    # ── arc ──

    def _try_to_ignite(self, now: int) -> None:
        state = self._state
        state.tries += 1
        state.ends = now + nanoseconds(self._config.ignition_timeout_s)
        missed = self._luck.strike("ignition_failure", self._name, now) is not None
        state.strikes = None if missed or state.ignition_blocked else now + self._strike_time

    def _burn(self, burns: bool, now: int) -> None:
        self._look(now)
        self._state.arc = burns
        self._state.strikes = None
        ms = self._config.arc_ok_on_ms if burns else self._config.arc_ok_off_ms
        self._state.arc_ok_due = now + round(ms * NS_PER_MS)

    def _fail(self, fault: str, now: int) -> None:
        state = self._state
        self._look(now)
        if state.arc:
            self._burn(False, now)
        state.phase, state.fault = "Fault", fault
        state.ends = state.strikes = state.out_since = state.out_until = None
        self._io.drive(WELD_ERROR, True, now)
        self._io.drive(READY, False, now)
        self._mind_the_gas(now)
        for listener in self._listeners:
            listener("Fault", now)

    def _look(self, now: int) -> None:
        wanted = self._io.digital_output(ARC_START) and self._state.phase in ("Weld", "Fault")
        self._seam.look(now, burning=self._state.arc, wanted=wanted)

    # ── time ──

    def next_wake(self) -> int | None:
        return min((at for at, _ in self._due()), default=None)

    def wake(self, now: int) -> None:
        while (due := min(self._due(), default=None, key=lambda pair: pair[0])) and due[0] <= now:
            due[1](due[0])

    def _due(self) -> list[tuple[int, Callable[[int], None]]]:
        """What happens by itself, and when."""
        state = self._state
        events: list[tuple[int | None, Callable[[int], None]]] = [
            (self._gas_comes(), lambda now: self._io.drive(GAS_OK, True, now)),
            (state.strikes, lambda now: self._burn(True, now)),
            (state.arc_ok_due, self._tell_arc),
            (state.out_until, self._come_back),
            (self._lost_for_good(), lambda now: self._fail("arc", now)),
            (state.ends, self._over),
            (self._next_look(), self._look),
        ]
        return [(at, act) for at, act in events if at is not None]

    def _gas_comes(self) -> int | None:
        flows = self._state.flows_at
        return flows if flows is not None and not self._io.is_driven(GAS_OK) else None

    def _lost_for_good(self) -> int | None:
        since = self._state.out_since
        return None if since is None else since + nanoseconds(self._config.arc_lost_s)

    def _next_look(self) -> int | None:
        state = self._state
        watched = state.arc or state.phase == "Weld"
        return self._seam.state.seen + seam.LOOK if watched else None

    def _tell_arc(self, now: int) -> None:
        self._state.arc_ok_due = None
        self._io.drive(ARC_OK, self._state.arc, now)
        if self._state.arc:
            self._event("arc_ok", now)

    def _come_back(self, now: int) -> None:
        self._state.out_since = self._state.out_until = None
        self._burn(True, now)

    def _over(self, now: int) -> None:
        if self._state.phase != "Ignition":
            self._event("over", now)
        elif self._state.tries < self._config.ignition_tries:
            self._try_to_ignite(now)
        else:
            self._fail("ignition", now)

    # ── what people do to it ──

    def set_weld_parameters(self, current: float, voltage: float, wire_speed: float) -> None:
        """In place of the weld job: A, V, m/min."""
        self._state.own_parameters = WeldParameters(current, voltage, wire_speed)

    def cut(self, now: int) -> None:
        """The power is gone, in whatever phase: no crater, no burnback."""
        if self._state.phase in (*BURNING, "PreFlow", "Ignition"):
            self._enter("PostFlow", now)

    def reset(self, now: int) -> None:
        """Clear a fault and its cause."""
        state = self._state
        state.wire_stuck = state.gas_blocked = state.ignition_blocked = False
        state.fault = ""
        self._io.drive(WIRE_STUCK, False, now)
        self._io.drive(WELD_ERROR, False, now)
        self._io.drive(READY, True, now)
        self._event("reset", now)
        self._mind_the_gas(now)

    def program_ended(self, now: int) -> None:
        """An arc that is still on when the program ends was left on."""
        if self._io.digital_output(ARC_START):
            self._seam.note(now, "left_on", "the arc was left on at the end of the program")

    def clear_trail(self) -> None:
        self._seam.state.trail = []

    def on_phase(self, listener: PhaseListener) -> None:
        self._listeners.append(listener)

    def faults(self) -> tuple[str, ...]:
        brought = ("arc_fault", "wire_fault", "gas_fault", "ignition_fault")
        return (*brought, "ignition_failure", "weld_noise")

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        state = self._state
        if fault == "arc_fault":
            if not state.arc:
                return Refused("there is no arc to lose")
            self._burn(False, now)
            state.out_since = now
            back = now + nanoseconds(parameters["duration_s"])
            state.out_until = back if back < (self._lost_for_good() or 0) else None
        elif fault == "wire_fault":
            state.wire_stuck = True
            self._io.drive(WIRE_STUCK, True, now)
            self._fail("wire", now)
        elif fault == "gas_fault":
            state.gas_blocked = True
            self._mind_the_gas(now)
        else:
            state.ignition_blocked = True
        return None

    # ── readings ──

    @property
    def phase(self) -> Phase:
        return self._state.phase

    @property
    def fault(self) -> str:
        return self._state.fault

    def trail(self) -> tuple[seam.Point, ...]:
        return tuple(self._seam.state.trail)

    def issues(self) -> tuple[seam.ProcessIssue, ...]:
        return tuple(self._seam.state.issues)

    def status(self, now: int) -> WeldingState:
        state, gauges, seen = self._state, self._gauges, self._seam.state
        burning = now - seen.seen if state.arc else 0
        return WeldingState(
            phase=state.phase,
            fault=state.fault,
            arc_on=state.arc,
            gas_flowing=gauges.flow(state, now) > 0.0,
            wire_feeding=gauges.wire_speed(state) != 0.0,
            current_amps=gauges.current(state, now),
            voltage_volts=gauges.voltage(state, now),
            wire_speed_m_min=gauges.wire_speed(state),
            gas_flow_l_min=gauges.flow(state, now),
            arc_on_time_s=seconds(seen.arc_on + burning),
            total_weld_length_mm=seen.length / MM,
        )

    # ── part ──

    def busy(self) -> bool:
        return self._state.phase not in ("Idle", "Weld", "Fault")

    def save(self) -> State:
        self._state.seam = self._seam.state
        return self._state

    def load(self, state: Any) -> None:
        self._state = msgspec.convert(state, State)
        self._seam.state = self._state.seam
