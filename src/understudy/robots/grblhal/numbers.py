"""grblHAL's numbers: errors, alarms, settings, and the bytes of real-time commands.

Face, firmware, driver and offline check read them here. The error numbers of G-code lines are those
of `gcode.error_numbers`; `ports.refusals` has the ones that every controller uses.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from understudy.gcode import error_numbers
from understudy.ports import refusals
from understudy.robots.grblhal.controller import Override, Toggle

BANNER = "GrblHAL 1.1f ['$' or '$HELP' for help]"
HELP = "[HLP:$$ $# $G $I $N $x=val $Nx=line $J=line $SLP $C $X $H $B ~ ! ? ctrl-x]"
UNLOCK = "'$H'|'$X' to unlock"
SLEEPING = "Sleeping"
LONGEST_LINE = 256
"""Characters of a line, without its end."""
RX_SIZE = 1024
"""Bytes of the receive buffer; as a ring buffer it holds one less."""

EVENT_MESSAGES: Mapping[str, str] = {
    "resumed": "",
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
}
"""Text of `[MSG:…]` for each `controller.Event`."""


# ── real-time commands ──────────────────────────────────────────────────────────────────────────


class Realtime:
    """Bytes that act at once, at any place in the stream."""

    STATUS, HOLD, START = ord("?"), ord("!"), ord("~")
    RESET, STOP = 0x18, 0x19
    STATUS_LEGACY, STATUS_8BIT = 0x05, 0x80
    START_8BIT, HOLD_8BIT, MODES, DOOR, JOG_CANCEL = 0x81, 0x82, 0x83, 0x84, 0x85
    FULL_STATUS, OPTIONAL_STOP, SINGLE_BLOCK, AUTO_REPORT = 0x87, 0x88, 0x89, 0x8C
    FEED_100, FEED_UP_10, FEED_DOWN_10, FEED_UP_1, FEED_DOWN_1 = range(0x90, 0x95)
    RAPID_100, RAPID_50, RAPID_25 = 0x95, 0x96, 0x97
    SPINDLE_100, SPINDLE_UP_10, SPINDLE_DOWN_10 = 0x99, 0x9A, 0x9B
    SPINDLE_UP_1, SPINDLE_DOWN_1, SPINDLE_STOP = 0x9C, 0x9D, 0x9E
    FLOOD, MIST, TOOL_CHANGED = 0xA0, 0xA1, 0xA3


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
    "feed": (10, 200), "rapid": (5, 100), "spindle": (10, 200),
}  # fmt: skip
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
    HOMING_RESET, NO_SWITCH = 6, 9
    ESTOP, MOTOR_FAULT = refusals.ESTOP, refusals.MOTOR_FAULT


CRITICAL_ALARMS = (
    AlarmCode.HARD_LIMIT, AlarmCode.SOFT_LIMIT, AlarmCode.ESTOP, AlarmCode.MOTOR_FAULT,
)  # fmt: skip
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
    SETTING_RANGE, SETTING_NOT_AVAILABLE = 52, 53
    CRITICAL_EVENT = 79


ALARMS = {
    1: "Hard limit has been triggered. Machine position is likely lost due to sudden halt. "
    "Re-homing is highly recommended.",
    2: "Soft limit alarm. G-code motion target exceeds machine travel. Machine position retained. "
    "Alarm may be safely unlocked.",
    3: "Reset/E-stop while in motion. Machine position is likely lost due to sudden halt. "
    "Re-homing is highly recommended.",
    4: "Probe fail. Probe is not in the expected initial state before starting probe cycle when "
    "G38.2 and G38.3 is not triggered and G38.4 and G38.5 is triggered.",
    5: "The probe met nothing on its way.",
    6: "Homing was reset.",
    7: "The safety door was opened while homing.",
    8: "Homing: the pull-off did not clear the switch.",
    9: "Homing: no switch was found within the search distance.",
    10: "Emergency stop. Clear it, then reset.",
    11: "Homing is required ($H).",
    12: "A limit switch is engaged.",
    13: "Probe protection was triggered.",
    14: "The spindle did not come to speed in time.",
    15: "Homing: the second switch of a squared axis was not found.",
    16: "The self test at power-on failed.",
    17: "Motor fault.",
    18: "Homing is not configured properly.",
    19: "Modbus: no answer, or a wrong one.",
    20: "An I/O expander does not answer.",
    21: "The memory of the settings failed.",
    22: "A buffer overflowed.",
}

ERRORS = {
    0: "",
    1: "G-code words consist of a letter and a value. Letter was not found.",
    2: "Missing the expected G-code word value or numeric value format is not valid.",
    3: "'$' system command was not recognized or supported.",
    4: "Negative value received for an expected positive value.",
    5: "Homing cycle failure. Homing is not configured via settings.",
    6: "The step pulse is too short.",
    7: "Settings could not be read and are as at first.",
    8: "Only when nothing moves and nothing waits.",
    9: "No G-code in alarm or while jogging.",
    10: "Soft limits need homing.",
    11: "The line is too long and was not carried out.",
    12: "The setting would make the steps too fast.",
    13: "The safety door is open.",
    14: "The line is too long to be stored.",
    15: "The jog would leave the travel of an axis.",
    16: "This is no part of a jog.",
    17: "Laser mode needs a PWM output.",
    18: "The reset input is on.",
    19: "The value should be above zero.",
    20: "This code is not supported.",
    21: "Two codes of one group in a line.",
    22: "There is no feed.",
    23: "The code should be a whole number.",
    24: "Two codes of the line want its axis words.",
    25: "A word stands twice in the line.",
    26: "Axis words are missing.",
    27: "The line number is not valid.",
    28: "A word is missing that the code needs.",
    29: "There is no such coordinate system.",
    30: "G53 goes with G0 and G1 only.",
    31: "Axis words that no code uses.",
    32: "An arc needs an axis word in its plane.",
    33: "The target is not valid.",
    34: "The radius of the arc is not valid.",
    35: "An arc needs a centre word in its plane.",
    36: "A word of the line is not used.",
    37: "G43.1 needs an axis that takes a tool offset.",
    38: "There is no such tool.",
    39: "Value out of range.",
    40: "Not while a tool change is awaited.",
    41: "The spindle does not turn.",
    42: "Threading needs the plane ZX.",
    43: "The feed is too high.",
    44: "The value or the port is out of range.",
    45: "Only homing is allowed while a limit switch is engaged.",
    46: "Home first.",
    47: "The tool in the spindle is not known: set it with M61.",
    48: "Two words exclude each other.",
    49: "The self test failed; a hard reset is needed.",
    50: "Emergency stop.",
    51: "Motor fault.",
    52: "The setting is out of range.",
    53: "The setting is not available.",
    54: "The retract position is below the depth of the hole.",
    55: "Two squared axes cannot be homed at once.",
    56: "The coordinate system is locked.",
    57: "A program mark where none is expected.",
    58: "The port is not available.",
    77: "Authentication is needed.",
    78: "Access is denied.",
    79: "Not while a critical event is active.",
    84: "The file could not be opened.",
    86: "The port cannot be used.",
    87: "There is a tool in the spindle.",
    88: "There is no tool in the spindle.",
    253: "A user's own error.",
}


# ── settings ────────────────────────────────────────────────────────────────────────────────────


class SettingNumber:
    """Numbers of the settings that act; those per axis are the number of the first axis."""

    REPORT_OPTIONS = 10
    JUNCTION_DEVIATION, ARC_TOLERANCE, REPORT_INCHES = 11, 12, 13
    SOFT_LIMITS, HOMING_CYCLE, HOMING_SEEK_RATE = 20, 22, 25
    MAXIMUM_RPM, MINIMUM_RPM = 30, 31
    LEGACY_REALTIME, SLEEP_ENABLED, PROBING_OPTIONS = 39, 62, 65
    STEPS_PER_UNIT, MAXIMUM_RATE, ACCELERATION, TRAVEL = 100, 110, 120, 130
    ROTARY_AXES = 376
    DOOR_SPINDLE_DELAY, DOOR_COOLANT_DELAY, SPINDLE_DELAY = 392, 393, 394
    PLANNER_BLOCKS, REPORT_INTERVAL, ROTARY_OPTIONS = 398, 481, 701


BOOL, BITS, SWITCHED_BITS, CHOICE, MASK, WHOLE, DECIMAL = 0, 1, 2, 3, 4, 5, 6
"""Data types as `$ES` numbers them."""
GENERAL, CONTROL, LIMITS, COOLANT, SPINDLE, TOOLS = 1, 2, 3, 5, 6, 9
HOMING, PROBING, DOOR, JOGGING, STEPPER, AXES, AXIS = 11, 12, 13, 14, 35, 42, 43
"""Groups as `$EG` numbers them; the group of an axis is `AXIS` plus its index."""
AXIS_LETTERS = "XYZABC"
SMALLEST = 1e-3
"""Least value of a setting that the planner divides by."""
_ONE, _THREE, _FIVE = "#0.0", "#####0.000", "#####0.000##"
_MOST = {BOOL: 1.0, MASK: 63.0}


class SettingRow(NamedTuple):
    """A setting: group, name, unit and data type as `$ES` prints them; default and range.

    `shape` is the format of a number, or the names of bits or choices. `shown` are the limits that
    `$ES` prints. `zero`: 0 is allowed although it is below `least`. `reboot`: it acts after the
    next reset. `negative` is the error number of a value below zero.
    """

    group: int
    name: str
    unit: str
    kind: int
    default: float
    shape: str = ""
    least: float = 0.0
    most: float = math.inf
    shown: tuple[str, str] = ("", "")
    reboot: bool = False
    zero: bool = False
    negative: int = ErrorCode.SETTING_RANGE

    @property
    def whole(self) -> bool:
        """Whether the value is a whole number."""
        return self.kind != DECIMAL

    @property
    def highest(self) -> float:
        """Largest value, also where the data type limits it."""
        return min(self.most, _MOST.get(self.kind, math.inf))

    def allows(self, value: float) -> bool:
        return self.least <= value <= self.highest or (self.zero and value == 0.0)

    def text(self, value: float) -> str:
        """The value as `$$` prints it, with as many decimals as its format has."""
        places = len(self.shape.partition(".")[2])
        return f"{value:.{places}f}" if self.kind == DECIMAL else str(int(value))


def _per_axis() -> dict[int, SettingRow]:
    number = SettingNumber
    kinds = {
        number.STEPS_PER_UNIT: ("travel resolution", "step/{}", _FIVE, 250.0, SMALLEST),
        number.MAXIMUM_RATE: ("maximum rate", "{}/min", _THREE, 500.0, SMALLEST),
        number.ACCELERATION: ("acceleration", "{}/sec^2", _THREE, 10.0, SMALLEST),
        number.TRAVEL: ("maximum travel", "{}", _THREE, 200.0, 0.0),
    }
    return {
        first + axis: SettingRow(
            AXIS + axis,
            f"{letter}-axis {name}",
            unit.format("deg" if axis > 2 else "mm"),
            DECIMAL,
            default,
            shape,
            least,
            negative=ErrorCode.NEGATIVE,
        )
        for first, (name, unit, shape, default, least) in kinds.items()
        for axis, letter in enumerate(AXIS_LETTERS)
    }


SETTINGS: dict[int, SettingRow] = {
    0: SettingRow(
        STEPPER, "Step pulse time", "microseconds", DECIMAL, 5.0,
        _ONE, least=2.0, shown=("2.0", ""),
    ),
    1: SettingRow(
        STEPPER, "Step idle delay", "milliseconds", WHOLE, 25,
        "####0", most=65535, shown=("", "65535"),
    ),
    2: SettingRow(STEPPER, "Step pulse invert", "", MASK, 0),
    3: SettingRow(STEPPER, "Step direction invert", "", MASK, 0),
    4: SettingRow(STEPPER, "Invert stepper enable output(s)", "", MASK, 63),
    5: SettingRow(LIMITS, "Invert limit inputs", "", MASK, 0),
    6: SettingRow(PROBING, "Invert probe inputs", "", BITS, 0, "Probe,Toolsetter,Probe 2", most=1),
    10: SettingRow(
        GENERAL, "Status report options", "", BITS, 511,
        "Position in machine coordinate,Buffer state,Line numbers,Feed & speed,Pin state,"
        "Work coordinate offset,Overrides,Probe coordinates,Buffer sync on WCO change,"
        "Parser state,Alarm substatus,Run substatus,Enable when homing,Distance-to-go", most=16383,
    ),
    11: SettingRow(GENERAL, "Junction deviation", "mm", DECIMAL, 0.01, _THREE),
    12: SettingRow(GENERAL, "Arc tolerance", "mm", DECIMAL, 0.002, _THREE, least=1e-06),
    13: SettingRow(GENERAL, "Report in inches", "", BOOL, 0),
    20: SettingRow(LIMITS, "Soft limits enable", "", BOOL, 0),
    21: SettingRow(
        LIMITS, "Hard limits enable", "", SWITCHED_BITS, 0,
        "Enable,Strict mode,Disable for rotary axes", most=15,
    ),
    22: SettingRow(
        HOMING, "Homing cycle", "", SWITCHED_BITS, 0,
        "Enable,Enable single axis commands,Homing on startup required,Set machine origin to 0,"
        "Two switches shares one input,Allow manual,Override locks,N/A,Use limit switches,"
        "Per axis feedrates,Run startup scripts only on homing completed", most=1023,
    ),
    23: SettingRow(HOMING, "Homing direction invert", "", MASK, 0),
    24: SettingRow(
        HOMING, "Homing locate feed rate", "mm/min", DECIMAL, 25.0,
        "#####0.0", least=SMALLEST,
    ),
    25: SettingRow(
        HOMING, "Homing search seek rate", "mm/min", DECIMAL, 500.0,
        "#####0.0", least=SMALLEST,
    ),
    26: SettingRow(
        HOMING, "Homing switch debounce delay", "milliseconds", WHOLE, 250,
        "##0", most=65535,
    ),
    27: SettingRow(HOMING, "Homing switch pull-off distance", "mm", DECIMAL, 1.0, _THREE),
    28: SettingRow(GENERAL, "G73 Retract distance", "mm", DECIMAL, 0.1, _THREE),
    29: SettingRow(
        STEPPER, "Pulse delay", "microseconds", DECIMAL, 0.0,
        _ONE, most=20.0, shown=("", "20"),
    ),
    30: SettingRow(SPINDLE, "Maximum spindle speed", "RPM", DECIMAL, 1000.0, _THREE),
    31: SettingRow(SPINDLE, "Minimum spindle speed", "RPM", DECIMAL, 0.0, _THREE),
    32: SettingRow(
        GENERAL, "Mode of operation", "", CHOICE, 0,
        "Normal,Laser mode,Lathe mode", most=2,
    ),
    33: SettingRow(SPINDLE, "Spindle PWM frequency", "Hz", DECIMAL, 5000.0, "#####0"),
    34: SettingRow(
        SPINDLE, "Spindle PWM off value", "percent", DECIMAL, 0.0,
        "##0.0", most=100.0, shown=("", "100"),
    ),
    35: SettingRow(
        SPINDLE, "Spindle PWM min value", "percent", DECIMAL, 0.0,
        "##0.0", most=100.0, shown=("", "100"),
    ),
    36: SettingRow(
        SPINDLE, "Spindle PWM max value", "percent", DECIMAL, 100.0,
        "##0.0", most=100.0, shown=("", "100"),
    ),
    37: SettingRow(STEPPER, "Steppers to keep enabled", "", MASK, 0),
    39: SettingRow(GENERAL, "Enable legacy RT commands", "", BOOL, 1),
    40: SettingRow(JOGGING, "Limit jog commands", "", BOOL, 0),
    43: SettingRow(
        HOMING, "Homing passes", "", WHOLE, 1,
        "##0", least=1, most=128, shown=("1", "128"),
    ),
    44: SettingRow(HOMING, "Axes homing, first phase", "", MASK, 4),
    45: SettingRow(HOMING, "Axes homing, second phase", "", MASK, 3),
    46: SettingRow(HOMING, "Axes homing, third phase", "", MASK, 0),
    62: SettingRow(GENERAL, "Sleep enable", "", BOOL, 0),
    63: SettingRow(
        GENERAL, "Feed hold actions", "", BITS, 2,
        "Disable laser during hold,Restore spindle and coolant state on resume,"
        "Set RPM to minimum (except for laser M4)", most=7,
    ),
    64: SettingRow(GENERAL, "Force init alarm", "", BOOL, 0),
    65: SettingRow(
        PROBING, "Probing options", "", BITS, 0,
        "Allow feed override,Apply soft limits,N/A,Auto select toolsetter,Auto select probe 2,"
        "Probe protection", most=7,
    ),
    **_per_axis(),
    341: SettingRow(
        TOOLS, "Tool change mode", "", CHOICE, 0,
        "Normal,Manual touch off,Manual touch off @ G59.3,Automatic touch off @ G59.3,Ignore M6",
        most=4,
    ),
    376: SettingRow(STEPPER, "Rotary axes", "", BITS, 7, "A-Axis,B-Axis,C-Axis", most=7),
    392: SettingRow(
        DOOR, "Spindle on delay", "s", DECIMAL, 4.0,
        _ONE, least=0.5, most=20.0, shown=("0.5", "20"), zero=True,
    ),
    393: SettingRow(
        DOOR, "Coolant on delay", "s", DECIMAL, 1.0,
        _ONE, least=0.5, most=20.0, shown=("0.5", "20"), zero=True,
    ),
    394: SettingRow(
        SPINDLE, "Spindle on delay", "s", DECIMAL, 0.0,
        _ONE, least=0.5, most=20.0, shown=("0.5", "20"), zero=True,
    ),
    398: SettingRow(
        GENERAL, "Planner buffer blocks", "", WHOLE, 100,
        "####0", least=30, most=1000, shown=("30", "1000"), reboot=True,
    ),
    481: SettingRow(
        GENERAL, "Autoreport interval", "ms", WHOLE, 0,
        "###0", least=100, most=1000, shown=("100", "1000"), reboot=True, zero=True,
    ),
    484: SettingRow(GENERAL, "Unlock required after E-Stop", "", BOOL, 1),
    701: SettingRow(
        GENERAL, "Rotary options", "", SWITCHED_BITS, 0,
        "Fix feedrate,Revert metric conversion", most=3,
    ),
}  # fmt: skip

GROUPS = {
    0: "Root",
    GENERAL: "General",
    CONTROL: "Control signals",
    LIMITS: "Limits",
    COOLANT: "Coolant",
    SPINDLE: "Spindle",
    TOOLS: "Tool change",
    HOMING: "Homing",
    PROBING: "Probing",
    DOOR: "Parking/Safety door",
    JOGGING: "Jogging",
    STEPPER: "Stepper",
    AXES: "Axis",
    **{AXIS + axis: f"{letter}-axis" for axis, letter in enumerate(AXIS_LETTERS)},
}
"""The parent of a group is `Root`; that of a single axis is `AXES`."""
