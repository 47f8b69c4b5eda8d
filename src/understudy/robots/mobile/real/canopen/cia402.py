"""Drives by CiA 402: states, control words and objects.

    Not ready ─▶ Switch on disabled ─▶ Ready to switch on ─▶ Switched on ─▶ Operation enabled
                        ▲      ▲                                                  │
                        │      └───────────── Quick stop active ◀─────────────────┤
                        └─────── Fault ◀───── Fault reaction active ◀─────────────┘ (from any state)

The state is read from the status word (6041h); `STEPS` has the control word (6040h) for the next
step to where the drive shall be: *Operation enabled*, or *Switched on* while it is not enabled.
"""

from collections.abc import Mapping
from enum import StrEnum

CONTROL, STATUS, ERROR, MODE = 0x6040, 0x6041, 0x603F, 0x6060
TARGET_POSITION, TARGET_VELOCITY = 0x607A, 0x60FF
POSITION, VELOCITY = 0x6064, 0x606C
INPUTS, OUTPUTS = 0x60FD, 0x60FE
POSITION_LIMITS, POSITION_WINDOW = 0x607D, 0x6067
MAX_PROFILE_VELOCITY, PROFILE_VELOCITY = 0x607F, 0x6081
ACCELERATION, DECELERATION = 0x6083, 0x6084
LOST_CONNECTION_OPTION = 0x6007
QUICK_STOP_REACTION = 3
DEVICE_TYPE = 0x1000
DRIVE = 402
"""Low half of the device type."""
PROFILE_POSITION_MODE, PROFILE_VELOCITY_MODE = 1, 3

NEW_SET_POINT, CHANGE_AT_ONCE, RESET_FAULT, HALT = 1 << 4, 1 << 5, 1 << 7, 1 << 8
"""Bits of the control word; a new set-point and a reset act when their bit rises."""
SET_POINT_TAKEN = 1 << 12
"""Bit of the status word in the mode profile position."""


class DriveState(StrEnum):
    NOT_READY = "Not ready to switch on"
    SWITCH_ON_DISABLED = "Switch on disabled"
    READY = "Ready to switch on"
    SWITCHED_ON = "Switched on"
    ENABLED = "Operation enabled"
    QUICK_STOP = "Quick stop active"
    FAULT_REACTION = "Fault reaction active"
    FAULT = "Fault"
    UNKNOWN = "Unknown"
    """The status word is none of CiA 402."""


STATES: tuple[tuple[int, int, DriveState], ...] = (
    (0x4F, 0x00, DriveState.NOT_READY),
    (0x4F, 0x40, DriveState.SWITCH_ON_DISABLED),
    (0x6F, 0x21, DriveState.READY),
    (0x6F, 0x23, DriveState.SWITCHED_ON),
    (0x6F, 0x27, DriveState.ENABLED),
    (0x6F, 0x07, DriveState.QUICK_STOP),
    (0x4F, 0x0F, DriveState.FAULT_REACTION),
    (0x4F, 0x08, DriveState.FAULT),
)
"""Mask and value of the status word in each state."""

DISABLE_VOLTAGE, QUICK_STOP, SHUTDOWN, SWITCH_ON, ENABLE = 0x0, 0x2, 0x6, 0x7, 0xF

STEPS: Mapping[DriveState, tuple[int, int]] = {
    DriveState.NOT_READY: (DISABLE_VOLTAGE, DISABLE_VOLTAGE),
    DriveState.SWITCH_ON_DISABLED: (SHUTDOWN, SHUTDOWN),
    DriveState.READY: (SWITCH_ON, SWITCH_ON),
    DriveState.SWITCHED_ON: (SWITCH_ON, ENABLE),
    DriveState.ENABLED: (SWITCH_ON, ENABLE),
    DriveState.QUICK_STOP: (DISABLE_VOLTAGE, DISABLE_VOLTAGE),
    DriveState.FAULT_REACTION: (DISABLE_VOLTAGE, DISABLE_VOLTAGE),
    DriveState.FAULT: (DISABLE_VOLTAGE, DISABLE_VOLTAGE),
    DriveState.UNKNOWN: (QUICK_STOP, QUICK_STOP),
}
"""The control word in each state: while the drive is not enabled, and while it is."""

ERROR_KINDS: Mapping[int, str] = {
    0x1: "generic error",
    0x2: "current",
    0x3: "voltage",
    0x4: "temperature",
    0x5: "hardware of the drive",
    0x6: "software of the drive",
    0x7: "additional modules (motor, brake, sensor)",
    0x8: "monitoring (communication, speed, position)",
    0x9: "external error",
    0xF: "of the maker",
}
"""What the first digit of an error code says."""


def state_of(status: int) -> DriveState:
    return next(
        (state for mask, value, state in STATES if status & mask == value), DriveState.UNKNOWN
    )


def error_text(code: int) -> str:
    kind = ERROR_KINDS.get(code >> 12, "unknown kind of error")
    return f"its drive reports error {code:04X}h: {kind}"
