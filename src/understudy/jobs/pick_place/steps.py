"""The steps of which the states of the cycle are made: values, carried out one after the other."""

from msgspec import Struct

from understudy.jobs.pick_place.config import HandshakeStep, Insert, PinName
from understudy.ports.operation import Target
from understudy.space.pose import Pose
from understudy.units import NS_PER_MS


class Move(Struct, frozen=True, tag=True):
    """One move of the arm, to its end."""

    target: Target


class Touch(Struct, frozen=True, tag=True):
    """A slow move that ends at a contact, or fails at its end."""

    target: Target


class Rest(Struct, frozen=True, tag=True):
    """Waits until the arm, which was stopped, has come to rest."""


class Look(Struct, frozen=True, tag=True):
    """One request to vision."""


class Grip(Struct, frozen=True, tag=True):
    """Closes the hand on a part."""


class Release(Struct, frozen=True, tag=True):
    """Puts down the part that the hand has."""


class Open(Struct, frozen=True, tag=True):
    """Opens a hand that has no part; a fault if it has one."""


class SetOutput(Struct, frozen=True, tag=True):
    pin: PinName
    value: bool


class WaitInput(Struct, frozen=True, tag=True):
    """`timeout`: ns."""

    pin: PinName
    value: bool
    timeout: int


Step = Move | Touch | Rest | Look | Grip | Release | Open | SetOutput | WaitInput


def handshake(steps: tuple[HandshakeStep, ...]) -> list[Step]:
    """The steps of one list of the section `handshake`."""
    found: list[Step] = []
    for step in steps:
        if step.set is not None:
            found.append(SetOutput(step.set, step.value))
        if step.wait is not None:
            found.append(WaitInput(step.wait, step.value, round(step.timeout_ms * NS_PER_MS)))
    return found


def insertion(insert: Insert, place: Pose, before: Pose, speed: float) -> list[Step]:
    """The approach to the place with a contact at its end: ``before`` is where the slow move
    begins, ``speed`` (m/s) that of the move to it."""
    return [
        Move(Target(None, before, True, speed)),
        Touch(Target(None, place, True, insert.speed_mm_s * 1e-3)),
    ]
