"""The registers of a device: what stands where in the block of a motor or a sensor.

A number of 32 bits takes two registers, the higher half first, and counts 1e-4 of the SI unit:
0.1 mm, 0.1 mm/s, 0.1 mm/s2, or the same with mrad. It is clipped to what 32 bits can hold.

    holding registers of a motor          input registers of a motor
    0      control word                   0      status word
    1, 2   set speed                      1, 2   position
    3, 4   target position                3, 4   velocity
    5, 6   tolerance                      5      number of the fault, 0: none
    7, 8   largest speed
    9, 10  largest acceleration
    11, 12 largest deceleration
    13     cycle counter

The cycle counter changes with every write: the device must stop the motor when it stands still for
longer than 0.5 s. An input is a discrete input and an output is a coil.

    input registers of a lidar            of a scanner                      of a battery
    0  status word                        0     status word                 0  status word
    1  nearest obstacle, mm               1     counter of codes            1  charge, 0.01 %
    2  free distance ahead, mm            2     length of the code, bytes
       (65535: nothing is seen)           3…18  the code, two bytes each
"""

from collections.abc import Sequence

from understudy.robots.mobile.real.channels import MotorCommand, MotorStatus

STEPS = 10_000
"""Steps of a number in one SI unit."""
ENABLE, GO, RESET = 1, 2, 4
"""Bits of the control word of a motor: it may move, it goes to its target, its fault is cleared."""
READY, FAULT, HOMING = 1, 2, 4
"""Bits of a status word; sensors have READY only."""
WRITTEN, READ = 14, 6
"""Registers of the block of a motor."""
LIDAR_READ, SCANNER_READ, BATTERY_READ = 3, 19, 2
NOTHING_SEEN = 0xFFFF
MM = 1e-3
LARGEST = 0x7FFFFFFF


def written(command: MotorCommand, cycle: int) -> list[int]:
    """The holding registers of a motor."""
    control = ENABLE * command.enable | GO * command.moving | RESET * command.reset
    values = (command.speed, command.target, command.tolerance, *command.limits)
    return [control, *(half for value in values for half in halves(value)), cycle & 0xFFFF]


def motor_status(registers: Sequence[int]) -> MotorStatus:
    status = registers[0]
    return MotorStatus(
        bool(status & READY), bool(status & FAULT), bool(status & HOMING),
        number(registers[1:3]), number(registers[3:5]), registers[5],
    )  # fmt: skip


def halves(value: float) -> tuple[int, int]:
    """A number as two registers."""
    steps = round(max(min(value * STEPS, LARGEST), -LARGEST)) & 0xFFFFFFFF
    return steps >> 16, steps & 0xFFFF


def number(registers: Sequence[int]) -> float:
    """The number in two registers."""
    steps = registers[0] << 16 | registers[1]
    return (steps - (1 << 32) if steps >> 31 else steps) / STEPS


def distance(register: int) -> float:
    """Metres; infinite if nothing is seen."""
    return float("inf") if register == NOTHING_SEEN else register * MM


def code_of(registers: Sequence[int]) -> str:
    """The code that a scanner has read; bytes that are not ASCII become question marks."""
    data = b"".join(register.to_bytes(2, "big") for register in registers[3:SCANNER_READ])
    text = data[: min(registers[2], len(data))].decode("ascii", "replace")
    return "".join(c if c.isprintable() and c.isascii() else "?" for c in text)
