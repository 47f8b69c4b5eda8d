"""grblHAL's numbers in words: settings as `$ES` tells of them, alarms, errors, messages."""

from typing import NamedTuple

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
    39: "The value is out of range.",
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
    85: "A user's own error.",
    86: "The port cannot be used.",
    87: "There is a tool in the spindle.",
    88: "There is no tool in the spindle.",
}


class Row(NamedTuple):
    """A setting: its group, name, unit, data type and format as the firmware numbers them."""

    group: int
    name: str
    unit: str
    kind: int
    shape: str = ""
    least: str = ""
    most: str = ""

    def text(self, value: float) -> str:
        """The value as it is printed: as many decimals as its format has places."""
        places = len(self.shape.partition(".")[2])
        return f"{value:.{places}f}" if self.kind == DECIMAL else str(int(value))


BOOL, BITS, EXCLUSIVE, CHOICE, MASK, WHOLE, DECIMAL = 0, 1, 2, 3, 4, 5, 6
GENERAL, CONTROL, LIMITS, COOLANT, SPINDLE = 1, 3, 4, 6, 7
PROBING, HOMING, DOOR, TOOLS, STEPPER, AXIS = 10, 12, 14, 20, 35, 40
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
    3: Row(STEPPER, "Direction invert", "", MASK),
    4: Row(STEPPER, "Stepper enable invert", "", MASK),
    5: Row(LIMITS, "Limit inputs invert", "", MASK),
    6: Row(PROBING, "Probe input invert", "", BITS),
    10: Row(GENERAL, "Fields of the status report", "", BITS),
    11: Row(GENERAL, "Junction deviation", "mm", DECIMAL, _THREE),
    12: Row(GENERAL, "Arc tolerance", "mm", DECIMAL, _THREE),
    13: Row(GENERAL, "Report in inches", "", BOOL),
    20: Row(LIMITS, "Soft limits", "", BOOL),
    21: Row(LIMITS, "Hard limits", "", EXCLUSIVE),
    22: Row(HOMING, "Homing", "", EXCLUSIVE),
    23: Row(HOMING, "Homing direction invert", "", MASK),
    24: Row(HOMING, "Homing locate rate", "mm/min", DECIMAL, "#####0.0"),
    25: Row(HOMING, "Homing seek rate", "mm/min", DECIMAL, "#####0.0"),
    26: Row(HOMING, "Homing switch debounce", "milliseconds", WHOLE, "##0"),
    27: Row(HOMING, "Homing pull-off", "mm", DECIMAL, _THREE),
    28: Row(GENERAL, "G73 retract", "mm", DECIMAL, _THREE),
    29: Row(STEPPER, "Pulse delay", "microseconds", DECIMAL, _TWO, "", "20"),
    30: Row(SPINDLE, "Highest spindle speed", "RPM", DECIMAL, _THREE),
    31: Row(SPINDLE, "Lowest spindle speed", "RPM", DECIMAL, _THREE),
    32: Row(GENERAL, "Mode of operation", "", CHOICE),
    33: Row(SPINDLE, "PWM frequency", "Hz", DECIMAL, "#####0"),
    34: Row(SPINDLE, "PWM off value", "percent", DECIMAL, "##0.0", "", "100"),
    35: Row(SPINDLE, "PWM lowest value", "percent", DECIMAL, "##0.0", "", "100"),
    36: Row(SPINDLE, "PWM highest value", "percent", DECIMAL, "##0.0", "", "100"),
    37: Row(STEPPER, "Steppers kept on", "", MASK),
    39: Row(GENERAL, "Printable real-time commands everywhere", "", BOOL),
    40: Row(GENERAL, "Jogs stay within travel", "", BOOL),
    43: Row(HOMING, "Homing passes", "", WHOLE, "##0", "1", "128"),
    44: Row(HOMING, "Homing, first axes", "", MASK),
    45: Row(HOMING, "Homing, second axes", "", MASK),
    46: Row(HOMING, "Homing, third axes", "", MASK),
    62: Row(GENERAL, "Sleep allowed", "", BOOL),
    63: Row(GENERAL, "Feed hold actions", "", BITS),
    64: Row(GENERAL, "Alarm at power-on", "", BOOL),
    65: Row(PROBING, "Probing options", "", BITS),
    **{
        first + axis: Row(
            AXIS + axis, f"{letter}-axis {name}", unit.format("deg" if axis > 2 else "mm"),
            DECIMAL, shape,
        )
        for first, (name, unit, shape) in _PER_AXIS.items()
        for axis, letter in enumerate("XYZABC")
    },
    341: Row(TOOLS, "Tool change mode", "", CHOICE),
    376: Row(STEPPER, "Rotary axes", "", BITS),
    392: Row(DOOR, "Spindle on delay after the door", "s", DECIMAL, _TWO, "0.5", "20"),
    393: Row(DOOR, "Coolant on delay after the door", "s", DECIMAL, _TWO, "0.5", "20"),
    394: Row(SPINDLE, "Spindle on delay", "s", DECIMAL, _TWO, "0.5", "20"),
    398: Row(GENERAL, "Planner blocks", "", WHOLE, "####0", "30", "1000"),
    481: Row(GENERAL, "Autoreport interval", "ms", WHOLE, "###0", "100", "1000"),
    484: Row(GENERAL, "Unlock after emergency stop", "", BOOL),
    701: Row(GENERAL, "Rotary options", "", EXCLUSIVE),
}  # fmt: skip

GROUPS = {
    GENERAL: "General",
    CONTROL: "Control signals",
    LIMITS: "Limits",
    COOLANT: "Coolant",
    SPINDLE: "Spindle",
    PROBING: "Probing",
    HOMING: "Homing",
    DOOR: "Safety door",
    TOOLS: "Tool change",
    STEPPER: "Stepper",
    **{AXIS + axis: f"{letter}-axis" for axis, letter in enumerate("XYZABC")},
}
