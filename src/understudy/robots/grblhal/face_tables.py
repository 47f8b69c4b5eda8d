"""grblHAL's numbers in words: settings as `$ES` tells of them, alarms, errors, messages, and the
bytes that act at once."""

from typing import NamedTuple

from understudy.gcode.wire import Override, Toggle

BANNER = "GrblHAL 1.1f ['$' or '$HELP' for help]"
HELP = "[HLP:$$ $# $G $I $N $x=val $Nx=line $J=line $SLP $C $X $H $B ~ ! ? ctrl-x]"
UNLOCK = "'$H'|'$X' to unlock"
SLEEPING = "Sleeping"

NEWS = {
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

FULL_STATUS, JOG_CANCEL, STOP, AUTO_REPORT = 0x87, 0x85, 0x19, 0x8C
STATUS = (0x05, 0x80)
OVERRIDES: dict[int, tuple[Override, int, bool]] = {
    0x90: ("feed", 100, False), 0x91: ("feed", 10, True), 0x92: ("feed", -10, True),
    0x93: ("feed", 1, True), 0x94: ("feed", -1, True),
    0x95: ("rapid", 100, False), 0x96: ("rapid", 50, False), 0x97: ("rapid", 25, False),
    0x99: ("spindle", 100, False), 0x9A: ("spindle", 10, True), 0x9B: ("spindle", -10, True),
    0x9C: ("spindle", 1, True), 0x9D: ("spindle", -1, True),
}  # fmt: skip
"""Byte: which override, and by or to how many per cent."""
TOGGLES: dict[int, Toggle] = {
    0x88: "optional stop", 0x89: "single block", 0x9E: "spindle", 0xA0: "flood", 0xA1: "mist",
}  # fmt: skip

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
    47: "The tool in the spindle is not known: say so with M61.",
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


class Row(NamedTuple):
    """A setting: its group, name, unit, data type and format as the firmware numbers them.

    `shape`: the format of a number, or the names of bits or choices. `reboot`: it acts after the
    next one; `zero`: 0 is allowed below `least`.
    """

    group: int
    name: str
    unit: str
    kind: int
    shape: str = ""
    least: str = ""
    most: str = ""
    reboot: bool = False
    zero: bool = False

    def text(self, value: float) -> str:
        """The value as it is printed: as many decimals as its format has places."""
        places = len(self.shape.partition(".")[2])
        return f"{value:.{places}f}" if self.kind == DECIMAL else str(int(value))


BOOL, BITS, SWITCHED_BITS, CHOICE, MASK, WHOLE, DECIMAL = 0, 1, 2, 3, 4, 5, 6
GENERAL, CONTROL, LIMITS, COOLANT, SPINDLE, TOOLS = 1, 2, 3, 5, 6, 9
HOMING, PROBING, DOOR, JOGGING, STEPPER, AXES, AXIS = 11, 12, 13, 14, 35, 42, 43
_TWO, _THREE, _FIVE = "#0.0", "#####0.000", "#####0.000##"

_PER_AXIS = {
    100: ("travel resolution", "step/{}", _FIVE),
    110: ("maximum rate", "{}/min", _THREE),
    120: ("acceleration", "{}/sec^2", _THREE),
    130: ("maximum travel", "{}", _THREE),
}

SETTINGS: dict[int, Row] = {
    0: Row(STEPPER, "Step pulse time", "microseconds", DECIMAL, _TWO, "2.0"),
    1: Row(STEPPER, "Step idle delay", "milliseconds", WHOLE, "####0", "", "65535"),
    2: Row(STEPPER, "Step pulse invert", "", MASK),
    3: Row(STEPPER, "Step direction invert", "", MASK),
    4: Row(STEPPER, "Invert stepper enable output(s)", "", MASK),
    5: Row(LIMITS, "Invert limit inputs", "", MASK),
    6: Row(PROBING, "Invert probe inputs", "", BITS, "Probe,Toolsetter,Probe 2"),
    10: Row(
        GENERAL, "Status report options", "", BITS,
        "Position in machine coordinate,Buffer state,Line numbers,Feed & speed,Pin state,"
        "Work coordinate offset,Overrides,Probe coordinates,Buffer sync on WCO change,"
        "Parser state,Alarm substatus,Run substatus,Enable when homing,Distance-to-go",
    ),
    11: Row(GENERAL, "Junction deviation", "mm", DECIMAL, _THREE),
    12: Row(GENERAL, "Arc tolerance", "mm", DECIMAL, _THREE),
    13: Row(GENERAL, "Report in inches", "", BOOL),
    20: Row(LIMITS, "Soft limits enable", "", BOOL),
    21: Row(
        LIMITS, "Hard limits enable", "", SWITCHED_BITS,
        "Enable,Strict mode,Disable for rotary axes",
    ),
    22: Row(
        HOMING, "Homing cycle", "", SWITCHED_BITS,
        "Enable,Enable single axis commands,Homing on startup required,Set machine origin to 0,"
        "Two switches shares one input,Allow manual,Override locks,N/A,Use limit switches,"
        "Per axis feedrates,Run startup scripts only on homing completed",
    ),
    23: Row(HOMING, "Homing direction invert", "", MASK),
    24: Row(HOMING, "Homing locate feed rate", "mm/min", DECIMAL, "#####0.0"),
    25: Row(HOMING, "Homing search seek rate", "mm/min", DECIMAL, "#####0.0"),
    26: Row(HOMING, "Homing switch debounce delay", "milliseconds", WHOLE, "##0"),
    27: Row(HOMING, "Homing switch pull-off distance", "mm", DECIMAL, _THREE),
    28: Row(GENERAL, "G73 Retract distance", "mm", DECIMAL, _THREE),
    29: Row(STEPPER, "Pulse delay", "microseconds", DECIMAL, _TWO, "", "20"),
    30: Row(SPINDLE, "Maximum spindle speed", "RPM", DECIMAL, _THREE),
    31: Row(SPINDLE, "Minimum spindle speed", "RPM", DECIMAL, _THREE),
    32: Row(GENERAL, "Mode of operation", "", CHOICE, "Normal,Laser mode,Lathe mode"),
    33: Row(SPINDLE, "Spindle PWM frequency", "Hz", DECIMAL, "#####0"),
    34: Row(SPINDLE, "Spindle PWM off value", "percent", DECIMAL, "##0.0", "", "100"),
    35: Row(SPINDLE, "Spindle PWM min value", "percent", DECIMAL, "##0.0", "", "100"),
    36: Row(SPINDLE, "Spindle PWM max value", "percent", DECIMAL, "##0.0", "", "100"),
    37: Row(STEPPER, "Steppers to keep enabled", "", MASK),
    39: Row(GENERAL, "Enable legacy RT commands", "", BOOL),
    40: Row(JOGGING, "Limit jog commands", "", BOOL),
    43: Row(HOMING, "Homing passes", "", WHOLE, "##0", "1", "128"),
    44: Row(HOMING, "Axes homing, first phase", "", MASK),
    45: Row(HOMING, "Axes homing, second phase", "", MASK),
    46: Row(HOMING, "Axes homing, third phase", "", MASK),
    62: Row(GENERAL, "Sleep enable", "", BOOL),
    63: Row(
        GENERAL, "Feed hold actions", "", BITS,
        "Disable laser during hold,Restore spindle and coolant state on resume,"
        "Set RPM to minimum (except for laser M4)",
    ),
    64: Row(GENERAL, "Force init alarm", "", BOOL),
    65: Row(
        PROBING, "Probing options", "", BITS,
        "Allow feed override,Apply soft limits,N/A,Auto select toolsetter,Auto select probe 2,"
        "Probe protection",
    ),
    **{
        first + axis: Row(
            AXIS + axis, f"{letter}-axis {name}", unit.format("deg" if axis > 2 else "mm"),
            DECIMAL, shape,
        )
        for first, (name, unit, shape) in _PER_AXIS.items()
        for axis, letter in enumerate("XYZABC")
    },
    341: Row(
        TOOLS, "Tool change mode", "", CHOICE,
        "Normal,Manual touch off,Manual touch off @ G59.3,Automatic touch off @ G59.3,Ignore M6",
    ),
    376: Row(STEPPER, "Rotary axes", "", BITS, "A-Axis,B-Axis,C-Axis"),
    392: Row(DOOR, "Spindle on delay", "s", DECIMAL, _TWO, "0.5", "20", zero=True),
    393: Row(DOOR, "Coolant on delay", "s", DECIMAL, _TWO, "0.5", "20", zero=True),
    394: Row(SPINDLE, "Spindle on delay", "s", DECIMAL, _TWO, "0.5", "20", zero=True),
    398: Row(GENERAL, "Planner buffer blocks", "", WHOLE, "####0", "30", "1000", reboot=True),
    481: Row(
        GENERAL, "Autoreport interval", "ms", WHOLE, "###0", "100", "1000", reboot=True, zero=True
    ),
    484: Row(GENERAL, "Unlock required after E-Stop", "", BOOL),
    701: Row(
        GENERAL, "Rotary options", "", SWITCHED_BITS, "Fix feedrate,Revert metric conversion"
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
    **{AXIS + axis: f"{letter}-axis" for axis, letter in enumerate("XYZABC")},
}
"""All stand in the first one, but those of single axes, which stand in `AXES`."""
