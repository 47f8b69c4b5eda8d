"""Declarations of faults: what can go wrong with a robot, a face or a device.

The module of every kind of robot, face and device declares its own as `FAULTS`; what several kinds
share is here.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from understudy.errors import ConfigError, unknown


class Figure(NamedTuple):
    """A parameter of a fault: its default and its range."""

    default: float
    low: float
    high: float


class Fault(NamedTuple):
    """One declared fault.

    `asked`: the part it acts on asks the scenario each time it may act. `brought`: a rule with a
    time or a trigger, or an operator, injects it. `ambient`: a disturbance that acts all the time,
    so that its occurrences are not counted.
    """

    how: Literal["asked", "brought"]
    doc: str
    figures: Mapping[str, Figure] = {}
    ambient: bool = False

    def parameters(self, name: str, given: Mapping[str, float]) -> Mapping[str, float]:
        """The figures of this fault, with the given ones in place of the defaults."""
        for key, value in given.items():
            figure = self.figures.get(key)
            if figure is None:
                raise unknown(f"parameter of {name}", key, self.figures, key=f"parameters.{key}")
            if not figure.low <= value <= figure.high:
                raise ConfigError(
                    "out of range",
                    key=f"parameters.{key}",
                    value=value,
                    allowed=f"{figure.low:g}…{figure.high:g}",
                )
        return {key: figure.default for key, figure in self.figures.items()} | dict(given)


Faults = Mapping[str, Fault]
"""Declared faults by name."""

EMERGENCY_STOP: Faults = {
    "emergency_stop": Fault("brought", "the emergency stop is pressed"),
    "emergency_release": Fault("brought", "the emergency stop is released and reset"),
}
"""The faults of every robot."""

MESSAGE_FAULTS: Faults = {
    "message_loss": Fault("asked", "an answer does not arrive"),
    "message_delay": Fault(
        "asked",
        "an answer arrives late, and those behind it with it",
        {"delay_ms": Figure(100.0, 0.0, 3_600_000.0)},
    ),
    "message_duplicate": Fault("asked", "an answer arrives twice"),
    "message_garble": Fault("asked", "one byte of an answer is changed"),
    "slow_client": Fault(
        "asked",
        "answers leave slowly, as if the client read slowly",
        {"bytes_per_s": Figure(100.0, 0.1, 1e9)},
    ),
}
"""The faults of every face that act on its answers, between face and wire."""

REQUEST_FAULTS: Faults = {
    "request_loss": Fault("asked", "a request does not arrive"),
    "request_delay": Fault(
        "asked",
        "a request arrives late, and those behind it with it",
        {"delay_ms": Figure(100.0, 0.0, 3_600_000.0)},
    ),
    "request_duplicate": Fault("asked", "a request arrives twice"),
    "request_garble": Fault("asked", "one byte of a request is changed"),
}
"""The faults of every face that act on what it receives, between wire and face."""

BROKER_FAULTS: Faults = {
    "confirmation_delay": Fault(
        "asked",
        "the broker confirms a message late, as with a slow leader; others are not delayed",
        {"delay_ms": Figure(5000.0, 0.0, 3_600_000.0)},
    ),
    "delivery_repeated": Fault(
        "asked",
        "the broker delivers a message again after a time, also beyond its duplicate window",
        {"after_s": Figure(601.0, 0.0, 1e6)},
    ),
}
"""The faults of faces behind a broker that stores and confirms messages."""

FACE_FAULTS: Faults = {**MESSAGE_FAULTS, **REQUEST_FAULTS}
