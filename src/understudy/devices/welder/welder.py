"""The power source: Idle … PostFlow on the welding pins, as events on simulated time."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from understudy.devices.io.virtual_io import VirtualIO
from understudy.devices.welder import seam
from understudy.devices.welder.config import (
    AMPERES_PER_VOLT,
    ARC_VOLTS_PER_VOLT,
    LITRES_PER_MINUTE_PER_VOLT,
    METRES_PER_MINUTE_PER_VOLT,
    Config,
    WeldParameters,
)
from understudy.devices.welder.gauges import Gauges, WeldingState
from understudy.devices.welder.phases import (
    ARC_OK,
    ARC_START,
    BURNING,
    CURRENT,
    FAULT_RESET,
    GAS,
    GAS_FLOW,
    GAS_OK,
    HOLDING_GAS,
    READY,
    TRANSITIONS,
    VOLTAGE,
    WELD_ERROR,
    WHY,
    WIRE_SPEED,
    WIRE_STUCK,
    Phase,
    PhaseListener,
    State,
)
from understudy.errors import Refused
from understudy.ports import FaultSource
from understudy.ports.hmi import Known, PanelRow, Trail
from understudy.ports.io import PinChange
from understudy.units import MM, NS_PER_MS, nanoseconds, seconds


class Welder:
    """A `Part` on the pins of a controller; owns ARC_OK, GAS_OK, WELD_ERROR, WIRE_STUCK, READY."""

    def __init__(
        self,
        name: str,
        config: Config,
        *,
        io: VirtualIO,
        way: seam.ToolWay,
        fault_source: FaultSource,
    ) -> None:
        self._name = name
        self._config = config
        self._io = io
        self._fault_source = fault_source
        self._gauges = Gauges(name, config, io=io, fault_source=fault_source)
        self._seam = seam.Seam(way, config.standing_arc_s)
        self._state = State(seam=self._seam.state)
        self._listeners: list[PhaseListener] = []
        for pin in (ARC_OK, GAS_OK, WELD_ERROR, WIRE_STUCK, READY):
            io.own(pin)
        io.drive(READY, True, 0)
        self._connect_gauges()
        io.on_change(self._pin_changed)

    def _connect_gauges(self) -> None:
        io, gauges = self._io, self._gauges
        io.drive_analog(CURRENT, lambda now: gauges.current(self._state, now) / AMPERES_PER_VOLT)
        io.drive_analog(VOLTAGE, lambda now: gauges.voltage(self._state, now) / ARC_VOLTS_PER_VOLT)
        speed, flow = METRES_PER_MINUTE_PER_VOLT, LITRES_PER_MINUTE_PER_VOLT
        io.drive_analog(WIRE_SPEED, lambda now: abs(gauges.wire_speed(self._state)) / speed)
        io.drive_analog(GAS_FLOW, lambda now: gauges.flow(self._state, now) / flow)

    # ── what the pins say ──

    def _pin_changed(self, change: PinChange) -> None:
        if change.bank != "DO":
            return
        if change.pin == ARC_START:
            self._event("arc_on" if change.value else "arc_off", change.at)
            self._watch(change.at)
        elif change.pin == GAS:
            self._state.valve = change.value
            self._mind_the_gas(change.at)
        elif change.pin == FAULT_RESET and change.value:
            self.reset(change.at)

    def _event(self, event: str, now: int) -> None:
        """Go over into the phase that the table names; nothing happens where it names none."""
        phase = TRANSITIONS.get((self._state.phase, event))
        if phase == "PreFlow" and not (self._state.valve or self._config.auto_gas):
            self._fail("gas", now, "the arc was started with the gas closed")
        elif phase is not None:
            self._enter(phase, now)

    def _enter(self, phase: Phase, now: int) -> None:
        state, config = self._state, self._config
        lengths = {
            "Stabilize": config.stabilize_s,
            "Crater": config.crater_s,
            "Burnback": config.burnback_s,
            "PostFlow": config.post_flow_s,
        }
        state.phase = phase
        state.ends = now + nanoseconds(lengths[phase]) if phase in lengths else None
        if phase not in BURNING:
            self._put_out(now)
        self._mind_the_gas(now)
        if phase == "PreFlow":
            flows = now + self._gas_delay if state.flows_at is None else state.flows_at
            state.ends = max(now, flows + nanoseconds(config.pre_flow_s))
        elif phase == "Ignition":
            state.tries = 0
            self._try_to_ignite(now)
        self._tell(now)

    def _fail(self, fault: str, now: int, reason: str = "") -> None:
        state = self._state
        state.phase, state.fault, state.reason = "Fault", fault, reason or WHY[fault]
        state.ends = None
        if fault == "gas":
            self._seam.note(now, "gas", state.reason)
        self._put_out(now)
        self._io.drive(WELD_ERROR, True, now)
        self._io.drive(READY, False, now)
        self._mind_the_gas(now)
        self._tell(now)

    def _tell(self, now: int) -> None:
        """Last of all: who listens may go on at once, and come back here."""
        phase = self._state.phase
        for listener in self._listeners:
            listener(phase, now)

    # ── gas ──

    @property
    def _gas_delay(self) -> int:
        """A link onto GAS_OK is the welder's own delay."""
        linked = self._io.link_delay(GAS_OK)
        return round(self._config.gas_delay_ms * NS_PER_MS) if linked is None else linked

    def _mind_the_gas(self, now: int) -> None:
        state = self._state
        active = state.phase not in ("Idle", "Fault")
        wanted = state.valve or state.phase in HOLDING_GAS or (self._config.auto_gas and active)
        open_ = wanted and not state.gas_blocked
        if open_ and state.flows_at is None:
            state.flows_at = now + self._gas_delay
        elif not open_ and state.flows_at is not None:
            state.flows_at = None
            if active:
                self._fail("gas", now)
            self._io.drive(GAS_OK, False, now)

    def _gas_comes(self) -> int | None:
        flows = self._state.flows_at
        enough = self._config.gas_flow_l_min >= self._config.gas_minimum_l_min
        return flows if enough and not self._io.is_driven(GAS_OK) else None

    # ── arc ──

    def _try_to_ignite(self, now: int) -> None:
        state = self._state
        state.tries += 1
        state.ends = now + nanoseconds(self._config.ignition_timeout_s)
        missed = self._fault_source.draw_fault("ignition_failure", self._name, now) is not None
        linked = self._io.link_delay(ARC_OK)
        takes = nanoseconds(self._config.ignition_time_s) if linked is None else linked
        state.strikes = None if missed or state.ignition_blocked else now + takes

    def _strike(self, now: int) -> None:
        """There it is; now only the signal is waited for."""
        self._state.ends = self._state.strikes = None
        self._burn(True, now)

    def _burn(self, burns: bool, now: int) -> None:
        self._state.arc = burns
        self._watch(now)
        ms = self._config.arc_ok_on_ms if burns else self._config.arc_ok_off_ms
        self._state.arc_ok_due = now + round(ms * NS_PER_MS)

    def _put_out(self, now: int) -> None:
        """No arc from now on, and none on its way."""
        state = self._state
        state.strikes = state.out_since = state.out_until = None
        if state.arc:
            self._burn(False, now)

    def _tell_arc(self, now: int) -> None:
        self._state.arc_ok_due = None
        self._io.drive(ARC_OK, self._state.arc, now)
        if self._state.arc:
            self._event("arc_ok", now)

    def _come_back(self, now: int) -> None:
        self._state.out_since = self._state.out_until = None
        self._burn(True, now)

    def _lost_for_good(self) -> int | None:
        since = self._state.out_since
        return None if since is None else since + nanoseconds(self._config.arc_lost_s)

    def _watch(self, now: int) -> None:
        wanted = self._io.digital_output(ARC_START)
        self._seam.watch(now, burning=self._state.arc, wanted=wanted)

    # ── time ──

    def _moments(self) -> tuple[int | None, ...]:
        """When what happens by itself happens, in the order of `_ACTS`."""
        state = self._state
        return (
            self._gas_comes(),
            state.strikes,
            state.arc_ok_due,
            state.out_until,
            self._lost_for_good(),
            state.ends,
            self._seam.next_look(),
        )

    def next_wake(self) -> int | None:
        return min([at for at in self._moments() if at is not None], default=None)

    def wake(self, now: int) -> None:
        while due := [at for at in self._moments() if at is not None and at <= now]:
            _ACTS[self._moments().index(min(due))](self, min(due))

    def _over(self, now: int) -> None:
        state, config = self._state, self._config
        state.ends = None
        if state.phase == "PreFlow" and not self._io.is_driven(GAS_OK):
            self._fail("gas", now)
        elif state.phase != "Ignition":
            self._event("over", now)
        elif state.tries < config.ignition_tries:
            self._try_to_ignite(now)
        else:
            tries = f"{config.ignition_tries} tries of {config.ignition_timeout_s:g} s"
            self._fail("ignition", now, f"no arc after {tries}")
        if state.phase == "PostFlow" and self._io.digital_output(ARC_START):
            self._event("arc_on", now)  # wanted again before the last one was out

    def look(self, now: int) -> None:
        """Take in the tool's way up to now: it is about to be forgotten."""
        self._seam.look(now)

    # ── what people do to it ──

    def set_weld_parameters(
        self, current: float, voltage: float, wire_speed: float
    ) -> Refused | None:
        """In place of the weld job: A, V, m/min."""
        for value in (current, voltage, wire_speed):
            if not 0.0 <= value < math.inf:
                return Refused(f"{value:g} cannot be set on a power source")
        self._state.own_parameters = WeldParameters(current, voltage, wire_speed)
        return None

    def cut(self, now: int) -> None:
        """The power is gone, in whatever phase: no crater, no burnback."""
        if self._state.phase in (*BURNING, "PreFlow", "Ignition"):
            self._enter("PostFlow", now)

    def reset(self, now: int) -> None:
        """Clear a fault and its cause."""
        state = self._state
        state.wire_stuck = state.gas_blocked = state.ignition_blocked = False
        state.fault = state.reason = ""
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
        self._seam.clear_trail()

    def on_phase(self, listener: PhaseListener) -> None:
        self._listeners.append(listener)

    def faults(self) -> tuple[str, ...]:
        brought = ("arc_fault", "wire_fault", "gas_fault", "ignition_fault")
        return (*brought, "ignition_failure", "weld_noise")

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        state = self._state
        if fault == "arc_fault":
            return self._blow_out(nanoseconds(parameters["duration_s"]), now)
        if fault == "wire_fault":
            state.wire_stuck = True
            self._io.drive(WIRE_STUCK, True, now)
            self._fail("wire", now)
        elif fault == "gas_fault":
            state.gas_blocked = True
            self._mind_the_gas(now)
        else:
            state.ignition_blocked, state.strikes = True, None
        return None

    def _blow_out(self, duration: int, now: int) -> Refused | None:
        state = self._state
        if not state.arc:
            return Refused("there is no arc to lose")
        self._burn(False, now)
        state.out_since = now
        state.out_until = now + duration
        return None

    # ── readings ──

    @property
    def phase(self) -> Phase:
        return self._state.phase

    @property
    def reason(self) -> str:
        """Why there is a fault, if there is one."""
        return self._state.reason

    def trail(self) -> tuple[seam.Point, ...]:
        """Where the arc has burned: points in metres from the robot's base, a millimetre apart."""
        return tuple(self._seam.state.trail)

    def trail_since(self, known: Known) -> Trail:
        return self._seam.trail_since(known)

    @property
    def burns(self) -> bool:
        return self._state.arc

    def issues(self) -> tuple[seam.ProcessIssue, ...]:
        return tuple(self._seam.state.issues)

    def status(self, now: int) -> WeldingState:
        state, gauges = self._state, self._gauges
        return WeldingState(
            phase=state.phase,
            fault=state.fault,
            reason=state.reason,
            arc_on=state.arc,
            gas_flowing=gauges.flow(state, now) > 0.0,
            wire_feeding=gauges.wire_speed(state) != 0.0,
            current_amps=gauges.current(state, now),
            voltage_volts=gauges.voltage(state, now),
            wire_speed_m_min=gauges.wire_speed(state),
            gas_flow_l_min=gauges.flow(state, now),
            arc_on_time_s=seconds(self._seam.arc_on(now)),
            total_weld_length_mm=self._seam.length(now) / MM,
        )

    def panel(self, now: int) -> tuple[PanelRow, ...]:
        state = self.status(now)
        return (
            PanelRow("Phase", state.phase, state="fault" if state.fault else "ok"),
            PanelRow("Arc", state.arc_on),
            PanelRow("Current", state.current_amps, "A"),
            PanelRow("Voltage", state.voltage_volts, "V"),
            PanelRow("Wire speed", state.wire_speed_m_min, "m/min"),
            PanelRow("Gas flow", state.gas_flow_l_min, "l/min"),
            PanelRow("Arc time", state.arc_on_time_s, "s"),
            PanelRow("Seam length", state.total_weld_length_mm, "mm"),
        )

    def active_faults(self) -> tuple[str, ...]:
        return (f"weld fault: {self._state.reason}",) if self._state.fault else ()

    # ── part ──

    def busy(self) -> bool:
        return self._state.phase not in ("Idle", "Weld", "Fault")

    def save(self) -> State:
        self._state.seam = self._seam.state
        return self._state

    def load(self, state: Any) -> None:
        self._state = msgspec.convert(state, State)
        self._seam.load(self._state.seam)


_ACTS: tuple[Callable[[Welder, int], None], ...] = (
    lambda welder, now: welder._io.drive(GAS_OK, True, now),
    Welder._strike,
    Welder._tell_arc,
    Welder._come_back,
    lambda welder, now: welder._fail("arc", now),
    Welder._over,
    Welder.look,
)
