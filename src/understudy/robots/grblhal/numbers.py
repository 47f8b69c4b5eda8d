"""grblHAL's numbers: errors, alarms, settings, and the bytes of real-time commands.

Face, firmware, driver and offline check read them here. The error numbers of G-code lines are those
of `gcode.error_numbers`; `ports.refusals` has the ones that every controller uses.
"""

from collections.abc import Mapping

from understudy.gcode import error_numbers
from understudy.ports import refusals
from understudy.robots.grblhal.controller import Edition, Override, Toggle

BANNERS: Mapping[Edition, str] = {
    "GrblHAL": "GrblHAL 1.1f ['$' or '$HELP' for help]",
    "Grbl": "Grbl 1.1f ['$' for help]",
}
HELP = "[HLP:$$ $# $G $I $N $x=val $Nx=line $J=line $SLP $C $X $H $B ~ ! ? ctrl-x]"
UNLOCK = "'$H'|'$X' to unlock"
SLEEPING = "Sleeping"
AXIS_LETTERS = "XYZABC"
ALL_AXES = (1 << len(AXIS_LETTERS)) - 1
"""Mask of all axes."""
LONGEST_LINE = 256
"""Characters of a line, without its end."""
LONGEST_STORED = 58
"""Characters of a stored line: a start-up line, or the text of `$I=`."""
RX_SIZE = 1024
"""Bytes of the receive buffer; as a ring buffer it holds one less."""

EVENT_MESSAGES: Mapping[str, str] = {
    "resumed": "",
    "restoring spindle": "Restoring spindle",
    "door": "Check Door",
    "stop": "Stop",
    "program end": "Pgm End",
    "unlocked": "Caution: Unlocked",
    "restored": "Restoring defaults",
    "enabled": "Enabled",
    "disabled": "Disabled",
    "critical": "Reset to continue",
    "estop": "Emergency stop - clear, then reset to continue",
    "motor fault": "Motor fault - clear, then reset to continue",
    "homing required": "Homing cycle required",
    "limits engaged": "Check Limits",
    "homed": "",
}
"""Text of `[MSG:…]` for each `controller.Event`."""


# ── real-time commands ──────────────────────────────────────────────────────────────────────────


class Realtime:
    """Bytes that act at once, at any place in the stream."""

    STATUS, HOLD, START = ord("?"), ord("!"), ord("~")
    EXIT, RESET, STOP = 0x03, 0x18, 0x19
    STATUS_LEGACY, STATUS_8BIT = 0x05, 0x80
    START_8BIT, HOLD_8BIT, MODES, DOOR, JOG_CANCEL = 0x81, 0x82, 0x83, 0x84, 0x85
    FULL_STATUS, OPTIONAL_STOP, SINGLE_BLOCK, AUTO_REPORT = 0x87, 0x88, 0x89, 0x8C
    FEED_100, FEED_UP_10, FEED_DOWN_10, FEED_UP_1, FEED_DOWN_1 = range(0x90, 0x95)
    RAPID_100, RAPID_50, RAPID_25 = 0x95, 0x96, 0x97
    SPINDLE_100, SPINDLE_UP_10, SPINDLE_DOWN_10 = 0x99, 0x9A, 0x9B
    SPINDLE_UP_1, SPINDLE_DOWN_1, SPINDLE_STOP = 0x9C, 0x9D, 0x9E
    FLOOD, MIST, CONTROL_LOOP_LOG, TOOL_ACKNOWLEDGE = 0xA0, 0xA1, 0xA2, 0xA3


OVERRIDES: dict[int, tuple[Override, int, bool]] = {
    Realtime.FEED_100: ("feed", 100, False),
    Realtime.FEED_UP_10: ("feed", 10, True),
    Realtime.FEED_DOWN_10: ("feed", -10, True),
    Realtime.FEED_UP_1: ("feed", 1, True),
    Realtime.FEED_DOWN_1: ("feed", -1, True),
    Realtime.RAPID_100: ("rapid", 100, False),
    Realtime.RAPID_50: ("rapid", 50, False),
    Realtime.RAPID_25: ("rapid", 25, False),
    Realtime.SPINDLE_100: ("spindle", 100, False),
    Realtime.SPINDLE_UP_10: ("spindle", 10, True),
    Realtime.SPINDLE_DOWN_10: ("spindle", -10, True),
    Realtime.SPINDLE_UP_1: ("spindle", 1, True),
    Realtime.SPINDLE_DOWN_1: ("spindle", -1, True),
}
"""Byte → override, percent, and whether the percent is added to the present value."""

OVERRIDE_RANGES: dict[Override, tuple[int, int]] = {
    "feed": (10, 200),
    "rapid": (5, 100),
    "spindle": (10, 200),
}
"""Per cent."""

TOGGLES: dict[int, Toggle] = {
    Realtime.OPTIONAL_STOP: "optional stop",
    Realtime.SINGLE_BLOCK: "single block",
    Realtime.SPINDLE_STOP: "spindle",
    Realtime.FLOOD: "flood",
    Realtime.MIST: "mist",
}


# ── alarms and errors ───────────────────────────────────────────────────────────────────────────


class AlarmCode:
    """`ALARM:N`."""

    HARD_LIMIT, SOFT_LIMIT = refusals.HARD_LIMIT, refusals.SOFT_LIMIT
    RESET_IN_MOTION = 3
    PROBE_TOUCHES = 4
    """The probe touches before the probing move begins."""
    PROBE_FAILED = 5
    HOMING_RESET, HOMING_DOOR, PULL_OFF, NO_SWITCH = 6, 7, 8, 9
    """A homing cycle ends without success: a reset, the safety door, a switch that is still
    engaged after the pull-off, or no switch within the search distance."""
    HOMING_REQUIRED, LIMITS_ENGAGED = 11, 12
    ESTOP, MOTOR_FAULT = refusals.ESTOP, refusals.MOTOR_FAULT


CRITICAL_ALARMS = (
    AlarmCode.HARD_LIMIT,
    AlarmCode.SOFT_LIMIT,
    AlarmCode.ESTOP,
    AlarmCode.MOTOR_FAULT,
)
"""Alarms after which only a reset is accepted."""


class ErrorCode:
    """`error:N`, as far as the controller itself refuses a line."""

    BAD_NUMBER, UNKNOWN_COMMAND = error_numbers.BAD_NUMBER, error_numbers.SYSTEM_LINE
    NEGATIVE, TOO_LONG = error_numbers.NEGATIVE, error_numbers.TOO_LONG
    UNSUPPORTED, RANGE = error_numbers.UNSUPPORTED, error_numbers.RANGE
    NO_HOMING = 5
    NOT_IDLE, LOCKED = refusals.NOT_IDLE, refusals.LOCKED
    SOFT_LIMITS_NEED_HOMING = 10
    JOG_BEYOND_TRAVEL = 15
    TOOL_CHANGE_PENDING = 40
    LIMITS_ENGAGED, HOMING_REQUIRED = 45, 46
    SETTING_RANGE, SETTING_NOT_AVAILABLE = 52, 53
    CRITICAL_EVENT = 79


# ── settings ────────────────────────────────────────────────────────────────────────────────────


class SettingNumber:
    """Numbers of the settings that act; those per axis are the number of the first axis."""

    INVERT_LIMITS, INVERT_PROBE = 5, 6
    PWM_MODE, PWM_OPTIONS, REPORT_OPTIONS, INVERT_COOLANT = 7, 9, 10, 15
    JUNCTION_DEVIATION, ARC_TOLERANCE, REPORT_INCHES = 11, 12, 13
    CONTROL_INVERT, CONTROL_PULLUP = 14, 17
    SOFT_LIMITS, HARD_LIMITS = 20, 21
    HOMING_CYCLE, HOMING_DIRECTION, HOMING_FEED_RATE, HOMING_SEEK_RATE = 22, 23, 24, 25
    HOMING_DEBOUNCE, HOMING_PULL_OFF, HOMING_PASSES, HOMING_PHASE = 26, 27, 43, 44
    CHIP_BREAK = 28
    MAXIMUM_RPM, MINIMUM_RPM, MODE = 30, 31, 32
    LEGACY_REALTIME, JOG_LIMITS, PARKING = 39, 40, 41
    SLEEP_ENABLED, HOLD_ACTIONS, PROBING_OPTIONS = 62, 63, 65
    STEPS_PER_UNIT, MAXIMUM_RATE, ACCELERATION, TRAVEL = 100, 110, 120, 130
    TOOL_CHANGE, ROTARY_AXES = 341, 376
    DOOR_SPINDLE_DELAY, DOOR_COOLANT_DELAY, SPINDLE_DELAY = 392, 393, 394
    PLANNER_BLOCKS, REPORT_INTERVAL = 398, 481
    SPINDLE_OFF_DELAY, COOLANT_DELAY = 539, 673
    RESET_ACTIONS, ROTARY_OPTIONS = 676, 701


class HomingOption:
    """Bits of $22."""

    ENABLED, SINGLE_AXIS, REQUIRED, ORIGIN_ZERO, TWO_SWITCHES, MANUAL, OVERRIDE_LOCKS = (
        1 << bit for bit in range(7)
    )
    KEEPS_HOMED, RATES_PER_AXIS, STARTUP_AFTER_HOMING = 1 << 7, 1 << 9, 1 << 10


class HardLimitOption:
    """Bits of $21."""

    ENABLED, STRICT, NOT_ROTARY = 1, 2, 4


RESTORE_AFTER_HOLD = 2
"""Bit of $63: `~` restores spindle and coolant."""
REPORT_PROBE = 1 << 7
"""Bit of $10: the place of a touch is reported."""
REPORT_WHEN_HOMING = 1 << 12
"""Bit of $10: status reports are sent during a homing cycle, too."""
