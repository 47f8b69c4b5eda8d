"""The figures of a weld: times, set values, and what the wires carry for them."""

from typing import Annotated

from msgspec import Meta, Struct

Seconds = Annotated[float, Meta(ge=0, le=3600)]
NotNegative = Annotated[float, Meta(ge=0)]

AMPERES_PER_VOLT = 40.0
ARC_VOLTS_PER_VOLT = 4.0
METRES_PER_MINUTE_PER_VOLT = 2.0
LITRES_PER_MINUTE_PER_VOLT = 2.5
CURRENT_SHARE, VOLTAGE_SHARE = 0.95, 0.98
"""What is measured of what was set."""


class WeldParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """What is set on the power source."""

    current_amps: NotNegative = 180.0
    voltage_volts: NotNegative = 22.0
    wire_speed_m_min: NotNegative = 8.0


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """A welder beside an arm; the defaults are those for steel."""

    pre_flow_s: Seconds = 0.3
    ignition_time_s: Seconds = 0.05
    ignition_timeout_s: Seconds = 2.0
    ignition_tries: Annotated[int, Meta(ge=1, le=100)] = 3
    stabilize_s: Seconds = 0.2
    crater_s: Seconds = 0.5
    burnback_s: Seconds = 0.08
    post_flow_s: Seconds = 1.0
    arc_ok_on_ms: Annotated[float, Meta(ge=0, le=10_000)] = 20.0
    arc_ok_off_ms: Annotated[float, Meta(ge=0, le=10_000)] = 50.0
    arc_lost_s: Seconds = 0.2
    gas_delay_ms: Annotated[float, Meta(ge=0, le=10_000)] = 100.0
    gas_flow_l_min: NotNegative = 15.0
    gas_minimum_l_min: NotNegative = 5.0
    auto_gas: bool = False
    standing_arc_s: Seconds = 1.0
    jobs: dict[Annotated[int, Meta(ge=0, le=15)], WeldParameters] = {}

    @property
    def starts_in_s(self) -> float:
        """From M3, the gas being there, to a steady arc that ignites at once."""
        return self.pre_flow_s + self.ignition_time_s + self.arc_ok_on_ms / 1e3 + self.stabilize_s

    @property
    def ends_in_s(self) -> float:
        """From M5 until the arc is out."""
        return self.crater_s + self.burnback_s
