"""grblHAL's numbers: errors and alarms with their texts, settings, and the bytes of real-time
commands.

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
    """Numbers of alarms, as in `ALARM:N`."""

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
    PROCESS_FAULT = refusals.PROCESS_FAULT


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


# ── texts of alarms and errors, as the firmware prints them ───────────────────────────────────────


ALARMS: Mapping[int, str] = {
    1: "Hard limit has been triggered. Machine position is likely lost due to sudden "
    "halt. Re-homing is highly recommended.",
    2: "Soft limit alarm. G-code motion target exceeds machine travel. Machine "
    "position retained. Alarm may be safely unlocked.",
    3: "Reset/E-stop while in motion. Machine position is likely lost due to sudden "
    "halt. Re-homing is highly recommended.",
    4: "Probe fail. Probe is not in the expected initial state before starting probe "
    "cycle when G38.2 and G38.3 is not triggered and G38.4 and G38.5 is triggered.",
    5: "Probe fail. Probe did not contact the workpiece within the programmed travel "
    "for G38.2 and G38.4.",
    6: "Homing fail. The active homing cycle was reset.",
    7: "Homing fail. Safety door was opened during homing cycle.",
    8: "Homing fail. Pull off travel failed to clear limit switch. Try increasing "
    "pull-off setting or check wiring.",
    9: "Homing fail. Could not find limit switch within search distances. Try "
    "increasing max travel, decreasing pull-off distance, or check wiring.",
    10: "EStop asserted. Clear and reset",
    11: "Homing required. Execute homing command ($H) to continue.",
    12: "Limit switch engaged. Clear before continuing.",
    13: "Probe protection triggered. Clear before continuing.",
    14: "Spindle at speed timeout. Clear before continuing.",
    15: "Homing fail. Could not find second limit switch for auto squared axis within "
    "search distances. Try increasing max travel, decreasing pull-off distance, or "
    "check wiring.",
    16: "Power on selftest (POS) failed.",
    17: "Motor fault.",
    18: "Homing fail. Bad configuration.",
    19: "Modbus exception. Timeout or message error.",
    20: "I/O expander communication failed.",
    21: "Non Volatile Storage (EEPROM) failure.",
    22: "Buffer overflow.",
}

ERRORS: Mapping[int, str] = {
    0: "",
    1: "G-code words consist of a letter and a value. Letter was not found.",
    2: "Missing the expected G-code word value or numeric value format is not valid.",
    3: "'$' system command was not recognized or supported.",
    4: "Negative value received for an expected positive value.",
    5: "Homing cycle failure. Homing is not configured via settings.",
    6: "Step pulse time must be greater or equal to 2 microseconds.",
    7: "A settings read failed. Auto-restoring affected settings to default values.",
    8: "'$' command cannot be used unless controller state is IDLE. Ensures smooth "
    "operation during a job.",
    9: "G-code commands are locked out during alarm or jog state.",
    10: "Soft limits cannot be enabled without homing also enabled.",
    11: "Max characters per line exceeded. Received command line was not executed.",
    12: "'$' setting value cause the step rate to exceed the maximum supported.",
    13: "Safety door detected as opened and door state initiated.",
    14: "Build info or startup line exceeded line length limit. Line not stored.",
    15: "Jog target exceeds machine travel. Jog command has been ignored.",
    16: "Jog command has no '=' or contains prohibited g-code.",
    17: "Laser mode requires PWM output.",
    18: "Reset asserted",
    19: "Non positive value",
    20: "Unsupported or invalid g-code command found in block.",
    21: "More than one g-code command from same modal group found in block.",
    22: "Feed rate has not yet been set or is undefined.",
    23: "G-code command in block requires an integer value.",
    24: "More than one g-code command that requires axis words found in block.",
    25: "Repeated g-code word found in block.",
    26: "No axis words found in block for g-code command or current modal state which "
    "requires them.",
    27: "Line number value is invalid.",
    28: "G-code command is missing a required value word.",
    29: "G59.x work coordinate systems are not supported.",
    30: "G53 only allowed with G0 and G1 motion modes.",
    31: "Axis words found in block when no command or current modal state uses them.",
    32: "G2 and G3 arcs require at least one in-plane axis word.",
    33: "Motion command target is invalid.",
    34: "Arc radius value is invalid.",
    35: "G2 and G3 arcs require at least one in-plane offset word.",
    36: "Unused value words found in block.",
    37: "G43.1 dynamic tool length offset is not assigned to configured tool length axis.",
    38: "Tool number greater than max supported value or undefined tool selected.",
    39: "Value out of range.",
    40: "G-code command not allowed when tool change is pending.",
    41: "Spindle not running when motion commanded in CSS or spindle sync mode.",
    42: "Plane must be ZX for threading.",
    43: "Max. feed rate exceeded.",
    44: "RPM out of range.",
    45: "Only homing is allowed when a limit switch is engaged.",
    46: "Home machine to continue.",
    47: "ATC: current tool is not set. Set current tool with M61.",
    48: "Value word conflict.",
    49: "Power on self test failed. A hard reset is required.",
    50: "Emergency stop active.",
    51: "Motor fault.",
    52: "Setting value is out of range.",
    53: "Setting is not available, possibly due to limited driver support.",
    54: "Retract position is less than drill depth.",
    55: "Attempt to home two auto squared axes at the same time.",
    56: "Coordinate system is locked.",
    57: "Unexpected file demarcation.",
    58: "Port is not available",
    77: "Authentication required.",
    78: "Access denied.",
    79: "Not allowed while critical event is active.",
    84: "Could not open file.",
    86: "Port is not usable.",
    87: "Tool in spindle.",
    88: "No tool in spindle.",
    253: "User defined error occured.",
}
