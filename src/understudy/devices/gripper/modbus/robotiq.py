"""Registers of the Robotiq 2F-85 and 2F-140, and how a driver uses them.

    written                                         read
    0x03E8  high: action request, low: 0            0x07D0  high: gripper status, low: 0
    0x03E9  high: 0, low: rPR                       0x07D1  high: gFLT, low: gPR
    0x03EA  high: rSP, low: rFR                     0x07D2  high: gPO, low: gCU

    action request    bit 0 rACT, bit 3 rGTO, bit 4 rATR, bit 5 rARD
    gripper status    bit 0 gACT, bit 3 gGTO, bits 4 and 5 gSTA, bits 6 and 7 gOBJ

A position has 8 bits, 0 open … 255 closed. The fingers reach their ends at 13 and at 230, which
gives the 0.4 mm per bit of the 2F-85 and the 0.65 mm of the 2F-140.
"""

from collections.abc import Mapping, Sequence

from understudy.devices.gripper.modbus.interface import (
    Block,
    Limits,
    Phase,
    ServoReading,
    Write,
    between,
    share,
)
from understudy.protocol.modbus import READ_HOLDING

UNIT = 9
COMMAND, STATUS, COUNT = 0x03E8, 0x07D0, 3
ACTIVATE, GO_TO, RELEASE, RELEASE_OPENING = 0x01, 0x08, 0x10, 0x20
"""Bits of the action request: rACT, rGTO, rATR, rARD."""
OPEN, CLOSED = 13, 230
"""Positions (gPO) of the ends."""
LARGEST = 255

RESET, STARTING, ACTIVE = 0, 1, 3
"""gSTA."""
MOVING, STOPPED_OPENING, STOPPED_CLOSING, AT_POSITION = 0, 1, 2, 3
"""gOBJ."""
DELAYED, NOT_ACTIVATED, RELEASING = 0x05, 0x07, 0x0B
ACTIVATION_FAILED, OVERCURRENT, RELEASED = 0x0D, 0x0E, 0x0F
FAULTS: Mapping[int, str] = {
    DELAYED: "action delayed until the activation is completed",
    NOT_ACTIVATED: "the activation bit must be set before an action",
    0x08: "maximum operating temperature exceeded",
    0x09: "no communication for 1 s",
    0x0A: "under minimum operating voltage",
    RELEASING: "automatic release in progress",
    0x0C: "internal fault",
    ACTIVATION_FAILED: "activation fault, something was between the fingers",
    OVERCURRENT: "overcurrent",
    RELEASED: "automatic release completed",
}
"""gFLT in words."""
HARMLESS = (0, DELAYED, NOT_ACTIVATED)
"""gFLT of a gripper that the next activation or the end of this one brings back."""

LIMITS_85 = Limits(stroke=0.085, force=(20.0, 235.0), speed=(0.020, 0.150))
LIMITS_140 = Limits(stroke=0.140, force=(10.0, 125.0), speed=(0.030, 0.250))


def position_of(opening: float, stroke: float) -> int:
    """gPO of an opening."""
    return round(OPEN + (1.0 - opening / stroke) * (CLOSED - OPEN))


def opening_of(position: int, stroke: float) -> float:
    """The opening at a position, which may be beyond the ends."""
    return stroke * min(max((CLOSED - position) / (CLOSED - OPEN), 0.0), 1.0)


class RobotiqProfile:
    """`Profile`."""

    unit = UNIT
    status = Block(READ_HOLDING, STATUS, COUNT)
    single_writes = False

    def __init__(self, limits: Limits) -> None:
        self.limits = limits

    def activation(self) -> Sequence[Write]:
        return Write(COMMAND, (0, 0, 0)), Write(COMMAND, (ACTIVATE << 8, 0, 0))

    def move(self, opening: float, force: float, speed: float) -> Sequence[Write]:
        fast, strong = share(speed, self.limits.speed), share(force, self.limits.force)
        last = round(fast * LARGEST) << 8 | round(strong * LARGEST)
        return (Write(COMMAND, ((ACTIVATE | GO_TO) << 8, self.target(opening), last)),)

    def target(self, opening: float) -> int:
        """The ends are asked for by 0 and 255, beyond what the fingers reach."""
        if opening <= 0.0 or opening >= self.limits.stroke:
            return LARGEST if opening <= 0.0 else 0
        return position_of(opening, self.limits.stroke)

    def reading(self, values: Sequence[int]) -> ServoReading:
        status, fault = values[0] >> 8, values[1] >> 8
        state, found = status >> 4 & 3, status >> 6
        phases: Mapping[int, Phase] = {STARTING: "starting", ACTIVE: "ready"}
        going = bool(status & GO_TO)
        return ServoReading(
            phase=phases.get(state, "off"),
            moving=state == ACTIVE and going and found == MOVING,
            part=going and found == STOPPED_CLOSING,
            opening=opening_of(values[2] >> 8, self.limits.stroke),
            fault="" if fault in HARMLESS else FAULTS.get(fault, f"fault {fault}"),
            target=values[1] & 0xFF,
        )


def force_of(value: int, limits: Limits) -> float:
    """N of rFR."""
    return between(value / LARGEST, limits.force)


def speed_of(value: int, limits: Limits) -> float:
    """m/s of rSP."""
    return between(value / LARGEST, limits.speed)
