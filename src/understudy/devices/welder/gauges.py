"""What is set on a power source, and what its gauges show."""

from msgspec import Struct

from understudy.devices.io.virtual_io import VirtualIO
from understudy.devices.welder.config import (
    ARC_VOLTS_PER_VOLT,
    CURRENT_SHARE,
    METRES_PER_MINUTE_PER_VOLT,
    VOLTAGE_SHARE,
    Config,
    WeldParameters,
)
from understudy.devices.welder.phases import JOB_BITS, WIRE_INCH, WIRE_RETRACT, State
from understudy.ports import FaultSource

STEEL = WeldParameters()


class WeldingState(Struct, frozen=True):
    """The document's WeldingSimState, and what is behind it."""

    phase: str
    fault: str
    reason: str
    arc_on: bool
    gas_flowing: bool
    wire_feeding: bool
    current_amps: float
    voltage_volts: float
    wire_speed_m_min: float
    gas_flow_l_min: float
    arc_on_time_s: float
    total_weld_length_mm: float


class Gauges:
    """Readings of a power source; looking at them changes nothing."""

    def __init__(
        self, name: str, config: Config, *, io: VirtualIO, fault_source: FaultSource
    ) -> None:
        self._name = name
        self._config = config
        self._io = io
        self._fault_source = fault_source

    def set_values(self, state: State) -> WeldParameters:
        """From `set_weld_parameters`, else from the weld job; AO0 and AO1 where they are not 0."""
        base = state.own_parameters or self._config.jobs.get(self.job(), STEEL)
        wire, volts = self._io.analog_output(0), self._io.analog_output(1)
        return WeldParameters(
            current_amps=base.current_amps,
            voltage_volts=volts * ARC_VOLTS_PER_VOLT if volts else base.voltage_volts,
            wire_speed_m_min=wire * METRES_PER_MINUTE_PER_VOLT if wire else base.wire_speed_m_min,
        )

    def job(self) -> int:
        """The weld job that is chosen with DO12 … DO15."""
        return sum(self._io.digital_output(pin) << bit for bit, pin in enumerate(JOB_BITS))

    def current(self, state: State, now: int) -> float:
        """Amperes, measured."""
        if not state.arc:
            return 0.0
        return self.set_values(state).current_amps * CURRENT_SHARE * self._haze(now, 0)

    def voltage(self, state: State, now: int) -> float:
        """Volts across the arc, measured."""
        if not state.arc:
            return 0.0
        return self.set_values(state).voltage_volts * VOLTAGE_SHARE * self._haze(now, 1)

    def wire_speed(self, state: State) -> float:
        """m/min, negative when the wire is drawn back; the arc burns it back while it stands."""
        if state.wire_stuck or state.phase == "Burnback":
            return 0.0
        inch = self._io.digital_output(WIRE_INCH) - self._io.digital_output(WIRE_RETRACT)
        speed = self.set_values(state).wire_speed_m_min
        return speed if state.arc else inch * speed

    def flow(self, state: State, now: int) -> float:
        """l/min of gas at the torch."""
        flows = state.flows_at is not None and now >= state.flows_at
        return self._config.gas_flow_l_min if flows else 0.0

    def _haze(self, now: int, which: int) -> float:
        noise = self._fault_source.ambient("weld_noise", self._name, now)
        if noise is None:
            return 1.0
        share = noise.parameters["amplitude_percent"] / 100.0
        return 1.0 + share * self._fault_source.deviations(noise, 2)[which]
