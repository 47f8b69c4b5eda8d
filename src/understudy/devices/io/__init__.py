"""The digital and analog pins of a robot's controller."""

from typing import TYPE_CHECKING, NoReturn

from understudy.errors import ConfigError
from understudy.ports.fault_reactions import Reaction, Reactions, Seen, Trial, active, at_once
from understudy.simulation.io.virtual_io import FAULTS, Config

if TYPE_CHECKING:
    from understudy.ports.device import Mount

__all__ = ["FAULTS", "REACTIONS", "Config", "build"]


def build(name: str, config: Config, mount: "Mount") -> NoReturn:
    """Refuses pins without a controller: a robot that has pins builds them itself."""
    allowed = "`io` of a robot whose controller has pins"
    raise ConfigError("there is no controller with pins here", value=name, allowed=allowed)


# ── expected reactions to its faults ──

PIN, CHANNEL = 7, 2
"""Inputs that no device of a shipped cell drives."""
VOLTS = 3.0


def _input(trial: Trial) -> bool:
    return bool(trial.part.digital().inputs >> PIN & 1)


def forced(trial: Trial) -> None:
    """an input is forced"""
    trial.part.inject("force_input", {"pin": float(PIN), "value": 1.0}, trial.now)
    trial.advance(0.1)


def sensor(trial: Trial) -> None:
    """a device switches an input on"""
    trial.part.drive(PIN, True, trial.now)
    trial.advance(0.1)


def note_pulse(trial: Trial) -> None:
    """the pulse passes"""
    trial.notes["rose"] = _input(trial)
    trial.advance(0.2)


def _rises_and_falls(trial: Trial) -> bool:
    return bool(trial.notes["rose"]) and not _input(trial)


REACTIONS: Reactions = {
    "force_input": Reaction(
        at_once,
        (
            Seen("the input is on", _input, True),
            Seen("its status names it", lambda t: PIN in t.part.status(t.now).forced, True),
        ),
        parameters={"pin": float(PIN), "value": 1.0},
    ),
    "release_input": Reaction(
        forced,
        (
            Seen("the input is off", lambda t: not _input(t), True),
            Seen("nothing is forced", lambda t: not t.part.status(t.now).forced, True),
        ),
        parameters={"pin": float(PIN)},
    ),
    "pulse_input": Reaction(
        at_once,
        (Seen("the input is on for 0.1 s, and off again", _rises_and_falls),),
        parameters={"pin": float(PIN), "value": 1.0, "duration_s": 0.1},
        then=note_pulse,
    ),
    "inputs_frozen": Reaction(
        at_once,
        (
            Seen("the input does not change", lambda t: not _input(t), True),
            active("the inputs are frozen"),
        ),
        then=sensor,
    ),
    "force_analog": Reaction(
        at_once,
        (
            Seen(
                f"the input has {VOLTS:g} V",
                lambda t: abs(t.part.analog(t.now).inputs[CHANNEL] - VOLTS) < 1e-9,
                True,
            ),
        ),
        parameters={"pin": float(CHANNEL), "value": VOLTS},
    ),
}
