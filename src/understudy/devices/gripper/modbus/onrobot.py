"""Registers of the OnRobot RG2, and how a driver uses them.

    written                                    read
    0x0000  target force, 0.1 N                0x0102  fingertip offset, 0.1 mm, signed
    0x0001  target width, 0.1 mm               0x0107  depth, 0.1 mm, signed
    0x0002  control: 1 grip, 8 stop,           0x0108  relative depth, 0.1 mm, signed
            16 grip with fingertip offset      0x010B  width, 0.1 mm
    0x0403  fingertip offset                   0x010C  status
                                               0x0113  width with fingertip offset

    status   bit 0 busy, bit 1 grip detected, bits 2 to 5 safety switches 1 and 2 (pushed, trigged),
             bit 6 safety error

The width is measured between the aluminium fingers, or, with the offset of both fingertips taken
off, between the tips. While the gripper is busy it accepts no command but stop.
"""

from collections.abc import Sequence

from understudy.devices.gripper.modbus.interface import (
    Block,
    Limits,
    ServoReading,
    Write,
    between,
    share,
)
from understudy.protocol.modbus import READ_HOLDING

UNIT = 65
TARGET_FORCE, TARGET_WIDTH, CONTROL, NEW_OFFSET = 0x0000, 0x0001, 0x0002, 0x0403
OFFSET, DEPTH, RELATIVE_DEPTH, WIDTH, STATUS, TIP_WIDTH = (
    0x0102,
    0x0107,
    0x0108,
    0x010B,
    0x010C,
    0x0113,
)
GRIP, STOP, GRIP_TIPS = 1, 8, 16
"""Values of the control register."""
BUSY, GRIPPED, S1_PUSHED, S1_TRIGGED, S2_PUSHED, S2_TRIGGED, SAFETY = (1 << bit for bit in range(7))
SAFETY_BITS = S1_PUSHED | S1_TRIGGED | S2_PUSHED | S2_TRIGGED | SAFETY
TENTH_MM, TENTH_N = 1e-4, 0.1
LIMITS = Limits(stroke=0.110, force=(3.0, 40.0), speed=(0.055, 0.184))
READ_COUNT = TIP_WIDTH - WIDTH + 1


def speed_of(force: float) -> float:
    """The RG2 has no register for its speed: it is faster with more force."""
    return between(share(force, LIMITS.force), LIMITS.speed)


class OnRobotProfile:
    """`Profile`: widths between the fingertips, so that 0 is closed."""

    unit = UNIT
    limits = LIMITS
    status = Block(READ_HOLDING, WIDTH, READ_COUNT)
    single_writes = False

    def activation(self) -> Sequence[Write]:
        """It is ready when it has power."""
        return ()

    def move(self, opening: float, force: float, speed: float) -> Sequence[Write]:
        low, high = self.limits.force
        strong = round(min(max(force, low), high) / TENTH_N)
        wide = round(min(max(opening, 0.0), self.limits.stroke) / TENTH_MM)
        return (Write(TARGET_FORCE, (strong, wide, GRIP_TIPS)),)

    def target(self, opening: float) -> None:
        return None

    def reading(self, values: Sequence[int]) -> ServoReading:
        status = values[STATUS - WIDTH]
        return ServoReading(
            phase="ready",
            moving=bool(status & BUSY),
            part=bool(status & GRIPPED),
            opening=values[TIP_WIDTH - WIDTH] * TENTH_MM,
            fault="a safety switch of the gripper stops it" if status & SAFETY_BITS else "",
        )
