"""Registers of the DH-Robotics AG-95, and how a driver uses them.

    written                                          read
    0x0100  1: initialise, 0xA5: and calibrate       0x0200  0 not initialised, 1 done, 2 under way
    0x0101  force, 20 … 100 %                        0x0201  0 moving, 1 reached, 2 caught, 3 lost
    0x0102  speed, 1 … 100 %; 0x0104 is the same     0x0202  position, per mille
    0x0103  position, per mille: 0 closed, 1000 open

The manual names both addresses for the speed; models without it refuse them.
"""

from collections.abc import Mapping, Sequence

from understudy.devices.gripper.modbus.interface import (
    Block,
    Limits,
    Phase,
    ServoReading,
    Write,
    share,
)
from understudy.protocol.modbus import READ_HOLDING

UNIT = 1
INITIALISE, FORCE, SPEED, POSITION, SPEED_TOO = 0x0100, 0x0101, 0x0102, 0x0103, 0x0104
INIT_STATE, GRIP_STATE, ACTUAL = 0x0200, 0x0201, 0x0202
ONCE, CALIBRATE = 0x01, 0xA5
UNINITIALISED, INITIALISED, INITIALISING = 0, 1, 2
MOVING, REACHED, CAUGHT, DROPPED = 0, 1, 2, 3
WHOLE = 1000
"""Per mille."""
FORCE_PERCENT, SPEED_PERCENT = (20, 100), (1, 100)
LIMITS = Limits(stroke=0.095, force=(45.0, 160.0), speed=(0.00136, 0.136))


def percent(value: float, limits: tuple[float, float], percents: tuple[int, int]) -> int:
    low, high = percents
    return round(low + share(value, limits) * (high - low))


class DhProfile:
    """`Profile`."""

    unit = UNIT
    limits = LIMITS
    status = Block(READ_HOLDING, INIT_STATE, 3)
    single_writes = True

    def activation(self) -> Sequence[Write]:
        return (Write(INITIALISE, (ONCE,)),)

    def move(self, opening: float, force: float, speed: float) -> Sequence[Write]:
        return (
            Write(FORCE, (percent(force, LIMITS.force, FORCE_PERCENT),)),
            Write(SPEED, (percent(speed, LIMITS.speed, SPEED_PERCENT),), optional=True),
            Write(POSITION, (round(share(opening, (0.0, LIMITS.stroke)) * WHOLE),)),
        )

    def target(self, opening: float) -> None:
        return None

    def reading(self, values: Sequence[int]) -> ServoReading:
        state, grip, position = values
        phases: Mapping[int, Phase] = {INITIALISED: "ready", INITIALISING: "starting"}
        return ServoReading(
            phase=phases.get(state, "off"),
            moving=grip == MOVING,
            part=grip == CAUGHT,
            opening=LIMITS.stroke * position / WHOLE,
        )
