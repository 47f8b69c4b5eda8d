"""The one declared list of faults: what can go wrong, where, and with which figures."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from understudy.errors import ConfigError, unknown


class Figure(NamedTuple):
    """A parameter of a fault: its default and its range."""

    default: float
    low: float
    high: float


class Fault(NamedTuple):
    """`asked`: may act whenever the thing it befalls asks. `brought`: comes about by script, by
    hand or through the control endpoint."""

    how: Literal["asked", "brought"]
    acts_on: str
    doc: str
    figures: Mapping[str, Figure] = {}


FAULTS: Mapping[str, Fault] = {
    "communication_timeout": Fault(
        "asked", "face text_tcp", "the command is not carried out and answered as timed out"
    ),
    "position_noise": Fault(
        "asked",
        "robot text_robot",
        "readings of the pose deviate, evenly within ± the amplitude",
        {"amplitude_mm": Figure(0.1, 0.0, 1000.0), "amplitude_deg": Figure(0.1, 0.0, 180.0)},
    ),
    "temperature_noise": Fault(
        "asked",
        "robot text_robot",
        "readings of the temperature deviate, evenly within ± the amplitude",
        {"amplitude_c": Figure(0.2, 0.0, 100.0)},
    ),
    "emergency_stop": Fault("brought", "any robot", "somebody presses the emergency stop"),
    "emergency_release": Fault("brought", "any robot", "the emergency stop is released and reset"),
    "message_loss": Fault("asked", "any face", "an answer does not arrive"),
    "message_delay": Fault(
        "asked",
        "any face",
        "an answer arrives late, and those behind it with it",
        {"delay_ms": Figure(100.0, 0.0, 3_600_000.0)},
    ),
    "message_duplicate": Fault("asked", "any face", "an answer arrives twice"),
    "message_garble": Fault("asked", "any face", "one byte of an answer is another"),
    "slow_client": Fault(
        "asked",
        "any face",
        "answers drip out as if the client read slowly",
        {"bytes_per_s": Figure(100.0, 0.1, 1e9)},
    ),
    "axis_fault": Fault(
        "brought",
        "robot arm",
        "a drive trips: no torque until reset (alarm 17)",
        {"axis": Figure(0.0, 0.0, 5.0)},
    ),
    "force_input": Fault(
        "brought",
        "pins",
        "a digital input is held at a level, whatever drives it",
        {"pin": Figure(0.0, 0.0, 31.0), "value": Figure(1.0, 0.0, 1.0)},
    ),
    "release_input": Fault(
        "brought", "pins", "a held input is let go", {"pin": Figure(0.0, 0.0, 31.0)}
    ),
    "pulse_input": Fault(
        "brought",
        "pins",
        "a sensor triggers: an input is held at a level for a while",
        {
            "pin": Figure(10.0, 0.0, 31.0),
            "value": Figure(1.0, 0.0, 1.0),
            "duration_s": Figure(0.1, 0.0, 3600.0),
        },
    ),
    "force_analog": Fault(
        "brought",
        "pins",
        "an analog input goes to a value, along a ramp if it is given time",
        {
            "pin": Figure(0.0, 0.0, 7.0),
            "value": Figure(0.0, -1000.0, 1000.0),
            "ramp_s": Figure(0.0, 0.0, 3600.0),
        },
    ),
    "arc_fault": Fault(
        "brought",
        "welder",
        "the arc goes out; longer than arc_lost_s it is a weld fault",
        {"duration_s": Figure(10.0, 0.0, 3600.0)},
    ),
    "wire_fault": Fault("brought", "welder", "the wire is stuck until the fault is reset"),
    "gas_fault": Fault("brought", "welder", "no gas flows until the fault is reset"),
    "ignition_fault": Fault("brought", "welder", "no arc ignites until the fault is reset"),
    "ignition_failure": Fault("asked", "welder", "this try does not ignite the arc"),
    "weld_noise": Fault(
        "asked",
        "welder",
        "current and voltage waver, evenly within ± the amplitude",
        {"amplitude_percent": Figure(2.0, 0.0, 100.0)},
    ),
    "overheat": Fault("brought", "robot text_robot", "error code 6 (temperature) until reset"),
}


def figures_of(fault: str, given: Mapping[str, float]) -> Mapping[str, float]:
    """The fault's figures, with those given in place of the defaults."""
    figures = FAULTS[fault].figures
    for name, value in given.items():
        figure = figures.get(name)
        if figure is None:
            raise unknown(f"parameter of {fault}", name, figures, key=f"parameters.{name}")
        if not figure.low <= value <= figure.high:
            raise ConfigError(
                "out of range",
                key=f"parameters.{name}",
                value=value,
                allowed=f"{figure.low:g}…{figure.high:g}",
            )
    return {name: figure.default for name, figure in figures.items()} | dict(given)


NOISES = ("position_noise", "temperature_noise", "weld_noise")
"""They are there all the time: there is nothing to count."""

WIRE_FAULTS = (
    "message_loss",
    "message_delay",
    "message_duplicate",
    "message_garble",
    "slow_client",
)
"""What can happen to the answers of every face."""
