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
    5: "Probe fail. Probe did not contact the workpiece within the programmed travel for G38.2 and "
    "G38.4.",
    6: "Homing fail. The active homing cycle was reset.",
    7: "Homing fail. Safety door was opened during homing cycle.",
    8: "Homing fail. Pull off travel failed to clear limit switch. Try increasing pull-off setting "
    "or check wiring.",
    9: "Homing fail. Could not find limit switch within search distances. Try increasing max "
    "travel, decreasing pull-off distance, or check wiring.",
    10: "EStop asserted. Clear and reset",
    11: "Homing required. Execute homing command ($H) to continue.",
    12: "Limit switch engaged. Clear before continuing.",
    13: "Probe protection triggered. Clear before continuing.",
    14: "Spindle at speed timeout. Clear before continuing.",
    15: "Homing fail. Could not find second limit switch for auto squared axis within search "
    "distances. Try increasing max travel, decreasing pull-off distance, or check wiring.",
    16: "Power on selftest (POS) failed.",
    17: "Motor fault.",
    18: "Homing fail. Bad configuration.",
    19: "Modbus exception. Timeout or message error.",
    20: "I/O expander communication failed.",
    21: "Non Volatile Storage (EEPROM) failure.",
    22: "Buffer overflow.",
}

ERRORS = {
    0: "",
    1: "G-code words consist of a letter and a value. Letter was not found.",
    2: "Missing the expected G-code word value or numeric value format is not valid.",
    3: "'$' system command was not recognized or supported.",
    4: "Negative value received for an expected positive value.",
    5: "Homing cycle failure. Homing is not configured via settings.",
    6: "Step pulse time must be greater or equal to 2 microseconds.",
    7: "A settings read failed. Auto-restoring affected settings to default values.",
    8: "'$' command cannot be used unless controller state is IDLE. Ensures smooth operation "
    "during a job.",
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
    26: "No axis words found in block for g-code command or current modal state which requires "
    "them.",
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
