"""The settings of the firmware: a row and a sentence for each `$n`, and how numbers are written.

The sentences are ours; the firmware's own descriptions (`$SED`, `$ESG`, `$ESH`) say the same at
more length.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from understudy.robots.grblhal.numbers import AXIS_LETTERS, SettingNumber

# ── numbers as the firmware reads and writes them ─────────────────────────────────────────────────


_WORD = 0xFFFFFFFF
_MOST_DIGITS, _LARGEST_TO_EXTEND = 9, _WORD // 10


def read_whole(text: str) -> int | None:
    """The whole number at the begin of a text; None if there is none.

    Decimals must be 0, and each of them multiplies the number by ten: `1.0` is 10. Digits beyond
    the ninth are dropped if they are greater than 4.
    """
    value = digits = 0
    point = found = False
    for character in text.removeprefix("+"):
        if character == "." and not point:
            point = True
            continue
        if not "0" <= character <= "9":
            break
        digit, found = int(character), True
        digits += not point and (digit > 0 or value > 0)
        if point and digit:
            return None
        if (digits <= _MOST_DIGITS or digit <= 4) and value <= _LARGEST_TO_EXTEND:
            value = (value * 10 + digit) & _WORD
    return value if found else None


def fixed(value: float, places: int) -> str:
    """A number with this many decimals, rounded in single precision.

    The part before the point and the decimals are counted in 32 bits: a larger number is wrong.
    """
    one = np.float32
    n = abs(one(value)) + one(0.5 * 10.0**-places)
    whole = int(n) & _WORD
    n = n - one(whole)
    for _ in range(places // 2):
        n = n * one(100.0)
    if places % 2:
        n = n * one(10.0)
    decimals = f"{int(n) & _WORD:0{places}d}"[-places:]
    return f"{'-' if value < 0.0 else ''}{whole}.{decimals}"


# ── the table ─────────────────────────────────────────────────────────────────────────────────────


BOOL, BITS, SWITCHED_BITS, CHOICE, MASK, WHOLE, DECIMAL = 0, 1, 2, 3, 4, 5, 6
"""Data types as `$ES` numbers them."""
GENERAL, CONTROL, LIMITS, COOLANT, SPINDLE, TOOLS = 1, 2, 3, 5, 6, 9
HOMING, PROBING, DOOR, JOGGING, STEPPER, AXES, AXIS = 11, 12, 13, 14, 35, 42, 43
"""Groups as `$EG` numbers them; the group of an axis is `AXIS` plus its index."""
_ONE, _THREE, _FIVE = "#0.0", "#####0.000", "#####0.000##"


class SettingRow(NamedTuple):
    """A setting: group, name, unit and data type as `$ES` prints them, and its default.

    `shape` is the format of a number, or the names of bits or choices. `lowest` and `highest` are
    the limits as `$ES` prints them. `zero`: 0 is allowed although it is below `lowest`. `reboot`:
    it acts after the next start of the controller.
    """

    group: int
    name: str
    unit: str
    kind: int
    default: float
    shape: str = ""
    lowest: str = ""
    highest: str = ""
    reboot: bool = False
    zero: bool = False

    @property
    def whole(self) -> bool:
        """Whether the value is a whole number."""
        return self.kind != DECIMAL

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the bits or choices."""
        listed = self.kind in (BITS, SWITCHED_BITS, CHOICE)
        return tuple(self.shape.split(",")) if listed else ()

    @property
    def least(self) -> float:
        return float(self.lowest or 0.0)

    @property
    def most(self) -> float:
        """Largest value, also where the data type limits it."""
        if self.kind in (BITS, SWITCHED_BITS):
            return 2.0 ** len(self.names) - 1.0
        if self.kind == CHOICE:
            return len(self.names) - 1.0
        return float(self.highest) if self.highest else _MOST.get(self.kind, math.inf)

    def allows(self, value: float) -> bool:
        return self.least <= value <= self.most or (self.zero and value == 0.0)

    def text(self, value: float) -> str:
        """The value as `$$` prints it, with the decimals of its format, and one at least."""
        places = max(1, len(self.shape.partition(".")[2]))
        return fixed(value, places) if self.kind == DECIMAL else str(int(value))


_MOST = {BOOL: 1.0, MASK: 63.0}


def _per_axis() -> dict[int, SettingRow]:
    number = SettingNumber
    kinds = {
        number.STEPS_PER_UNIT: ("travel resolution", "step/{}", _FIVE, 250.0),
        number.MAXIMUM_RATE: ("maximum rate", "{}/min", _THREE, 500.0),
        number.ACCELERATION: ("acceleration", "{}/sec^2", _THREE, 10.0),
        number.TRAVEL: ("maximum travel", "{}", _THREE, 200.0),
    }
    return {
        first + axis: SettingRow(
            AXIS + axis,
            f"{letter}-axis {name}",
            unit.format("deg" if axis > 2 else "mm"),
            DECIMAL,
            default,
            shape,
        )
        for first, (name, unit, shape, default) in kinds.items()
        for axis, letter in enumerate(AXIS_LETTERS)
    }


SETTINGS: Mapping[int, SettingRow] = {
    0: SettingRow(STEPPER, "Step pulse time", "microseconds", DECIMAL, 5.0, "#0.0", lowest="2.0"),
    1: SettingRow(STEPPER, "Step idle delay", "milliseconds", WHOLE, 25, "####0", highest="65535"),
    2: SettingRow(STEPPER, "Step pulse invert", "", MASK, 0),
    3: SettingRow(STEPPER, "Step direction invert", "", MASK, 0),
    4: SettingRow(STEPPER, "Invert stepper enable output(s)", "", MASK, 63),
    5: SettingRow(LIMITS, "Invert limit inputs", "", MASK, 0),
    6: SettingRow(PROBING, "Invert probe inputs", "", BITS, 0, "Probe"),
    9: SettingRow(
        SPINDLE,
        "PWM spindle options",
        "",
        SWITCHED_BITS,
        1,
        "Enable,RPM controls spindle enable signal,Disable laser mode capability,Enable ramping",
    ),
    10: SettingRow(
        GENERAL,
        "Status report options",
        "",
        BITS,
        511,
        "Position in machine coordinate,Buffer state,Line numbers,Feed & speed,Pin state,"
        "Work coordinate offset,Overrides,Probe coordinates,Buffer sync on WCO change,"
        "Parser state,Alarm substatus,Run substatus,Enable when homing,Distance-to-go",
    ),
    11: SettingRow(GENERAL, "Junction deviation", "mm", DECIMAL, 0.01, "#####0.000"),
    12: SettingRow(GENERAL, "Arc tolerance", "mm", DECIMAL, 0.002, "#####0.000"),
    13: SettingRow(GENERAL, "Report in inches", "", BOOL, 0),
    14: SettingRow(CONTROL, "Invert control inputs", "", BITS, 0, "N/A,N/A,N/A,Safety door"),
    15: SettingRow(COOLANT, "Invert coolant outputs", "", BITS, 0, "Flood,Mist"),
    17: SettingRow(
        CONTROL, "Pullup disable control inputs", "", BITS, 0, "N/A,N/A,N/A,Safety door"
    ),
    18: SettingRow(LIMITS, "Pullup disable limit inputs", "", MASK, 0),
    19: SettingRow(PROBING, "Pullup disable probe inputs", "", BITS, 0, "Probe"),
    20: SettingRow(LIMITS, "Soft limits enable", "", BOOL, 0),
    21: SettingRow(
        LIMITS,
        "Hard limits enable",
        "",
        SWITCHED_BITS,
        0,
        "Enable,Strict mode,Disable for rotary axes",
    ),
    22: SettingRow(
        HOMING,
        "Homing cycle",
        "",
        SWITCHED_BITS,
        0,
        "Enable,Enable single axis commands,Homing on startup required,"
        "Set machine origin to 0,Two switches shares one input,Allow manual,Override locks,"
        "N/A,N/A,Per axis feedrates,Run startup scripts only on homing completed",
    ),
    23: SettingRow(HOMING, "Homing direction invert", "", MASK, 0),
    24: SettingRow(HOMING, "Homing locate feed rate", "mm/min", DECIMAL, 25.0, "#####0.0"),
    25: SettingRow(HOMING, "Homing search seek rate", "mm/min", DECIMAL, 500.0, "#####0.0"),
    26: SettingRow(HOMING, "Homing switch debounce delay", "milliseconds", WHOLE, 250, "##0"),
    27: SettingRow(HOMING, "Homing switch pull-off distance", "mm", DECIMAL, 1.0, "#####0.000"),
    28: SettingRow(GENERAL, "G73 Retract distance", "mm", DECIMAL, 0.1, "#####0.000"),
    29: SettingRow(STEPPER, "Pulse delay", "microseconds", DECIMAL, 0.0, "#0.0", highest="20"),
    30: SettingRow(SPINDLE, "Maximum spindle speed", "RPM", DECIMAL, 1000.0, "#####0.000"),
    31: SettingRow(SPINDLE, "Minimum spindle speed", "RPM", DECIMAL, 0.0, "#####0.000"),
    32: SettingRow(GENERAL, "Mode of operation", "", CHOICE, 0, "Normal,Laser mode,Lathe mode"),
    33: SettingRow(SPINDLE, "Spindle PWM frequency", "Hz", DECIMAL, 5000.0, "#####0"),
    34: SettingRow(
        SPINDLE, "Spindle PWM off value", "percent", DECIMAL, 0.0, "##0.0", highest="100"
    ),
    35: SettingRow(
        SPINDLE, "Spindle PWM min value", "percent", DECIMAL, 0.0, "##0.0", highest="100"
    ),
    36: SettingRow(
        SPINDLE, "Spindle PWM max value", "percent", DECIMAL, 100.0, "##0.0", highest="100"
    ),
    37: SettingRow(STEPPER, "Steppers to keep enabled", "", MASK, 0),
    39: SettingRow(GENERAL, "Enable legacy RT commands", "", BOOL, 1),
    40: SettingRow(JOGGING, "Limit jog commands", "", BOOL, 0),
    41: SettingRow(
        DOOR,
        "Parking cycle",
        "",
        SWITCHED_BITS,
        0,
        "Enable,Deactivate upon init,Enable parking override control",
    ),
    42: SettingRow(DOOR, "Parking axis", "", CHOICE, 2, "X,Y,Z"),
    43: SettingRow(HOMING, "Homing passes", "", WHOLE, 1, "##0", lowest="1", highest="128"),
    44: SettingRow(HOMING, "Axes homing, first phase", "", MASK, 4),
    45: SettingRow(HOMING, "Axes homing, second phase", "", MASK, 3),
    46: SettingRow(HOMING, "Axes homing, third phase", "", MASK, 0),
    47: SettingRow(HOMING, "Axes homing, fourth phase", "", MASK, 0),
    48: SettingRow(HOMING, "Axes homing, fifth phase", "", MASK, 0),
    49: SettingRow(HOMING, "Axes homing, sixth phase", "", MASK, 0),
    56: SettingRow(DOOR, "Parking pull-out distance", "mm", DECIMAL, 5.0, "###0.0"),
    57: SettingRow(DOOR, "Parking pull-out rate", "mm/min", DECIMAL, 100.0, "###0.0"),
    58: SettingRow(DOOR, "Parking target", "mm", DECIMAL, -5.0, "-###0.0", lowest="-100000"),
    59: SettingRow(DOOR, "Parking fast rate", "mm/min", DECIMAL, 500.0, "###0.0"),
    60: SettingRow(GENERAL, "Restore overrides", "", BOOL, 0),
    61: SettingRow(
        DOOR, "Safety door options", "", BITS, 0, "Ignore when idle,Keep coolant state on door open"
    ),
    62: SettingRow(GENERAL, "Sleep enable", "", BOOL, 0),
    63: SettingRow(
        GENERAL,
        "Feed hold actions",
        "",
        BITS,
        3,
        "Disable laser during hold,Restore spindle and coolant state on resume,"
        "Set RPM to minimum (except for laser M4)",
    ),
    64: SettingRow(GENERAL, "Force init alarm", "", BOOL, 0),
    65: SettingRow(
        PROBING, "Probing options", "", BITS, 0, "Allow feed override,Apply soft limits"
    ),
    **_per_axis(),
    341: SettingRow(
        TOOLS,
        "Tool change mode",
        "",
        CHOICE,
        0,
        "Normal,Manual touch off,Manual touch off @ G59.3,Automatic touch off @ G59.3,Ignore M6",
    ),
    342: SettingRow(TOOLS, "Tool change probing distance", "mm", DECIMAL, 30.0, "#####0.0"),
    343: SettingRow(TOOLS, "Tool change locate feed rate", "mm/min", DECIMAL, 25.0, "#####0.0"),
    344: SettingRow(TOOLS, "Tool change search seek rate", "mm/min", DECIMAL, 200.0, "#####0.0"),
    345: SettingRow(TOOLS, "Tool change probe pull-off rate", "mm/min", DECIMAL, 200.0, "#####0.0"),
    346: SettingRow(
        TOOLS,
        "Tool change options",
        "",
        BITS,
        1,
        "Restore position after M6,Change tool at G30,Fast probe pull off",
    ),
    376: SettingRow(STEPPER, "Rotary axes", "", BITS, 7, "A-Axis,B-Axis,C-Axis"),
    384: SettingRow(GENERAL, "Disable G92 persistence", "", BOOL, 0),
    392: SettingRow(
        DOOR, "Spindle on delay", "s", DECIMAL, 4.0, "#0.0", lowest="0.5", highest="20", zero=True
    ),
    393: SettingRow(
        DOOR, "Coolant on delay", "s", DECIMAL, 1.0, "#0.0", lowest="0.5", highest="20", zero=True
    ),
    394: SettingRow(
        SPINDLE,
        "Spindle on delay",
        "s",
        DECIMAL,
        0.0,
        "#0.0",
        lowest="0.5",
        highest="20",
        zero=True,
    ),
    398: SettingRow(
        GENERAL,
        "Planner buffer blocks",
        "",
        WHOLE,
        100,
        "####0",
        lowest="30",
        highest="1000",
        reboot=True,
    ),
    481: SettingRow(
        GENERAL,
        "Autoreport interval",
        "ms",
        WHOLE,
        0,
        "###0",
        lowest="100",
        highest="1000",
        reboot=True,
        zero=True,
    ),
    485: SettingRow(TOOLS, "Keep tool number over reboot", "", BOOL, 0),
    486: SettingRow(GENERAL, "Lock coordinate systems", "", BITS, 0, "G59.1,G59.2,G59.3"),
    538: SettingRow(STEPPER, "Fast rotary go to G28", "", BITS, 0, "A-Axis,B-Axis,C-Axis"),
    539: SettingRow(
        SPINDLE,
        "Spindle off delay",
        "s",
        DECIMAL,
        0.0,
        "#0.0",
        lowest="0.5",
        highest="20",
        zero=True,
    ),
    673: SettingRow(
        COOLANT,
        "Coolant on delay",
        "s",
        DECIMAL,
        0.0,
        "#0.0",
        lowest="0.5",
        highest="20",
        zero=True,
    ),
    676: SettingRow(
        GENERAL,
        "Reset actions",
        "",
        BITS,
        15,
        "Clear homed status if position was lost,Clear offsets (except G92),"
        "Clear rapids override,Clear feed override",
    ),
    680: SettingRow(STEPPER, "Stepper enable delay", "ms", WHOLE, 0, "##0", highest="500"),
    701: SettingRow(
        GENERAL, "Rotary options", "", SWITCHED_BITS, 0, "Fix feedrate,Revert metric conversion"
    ),
}

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


def row_of(number: int, settings: Mapping[int, float]) -> SettingRow:
    """The row of a setting; an axis that is not rotary ($376) counts mm."""
    row = SETTINGS[number]
    rotary = int(settings.get(SettingNumber.ROTARY_AXES, _ALL_ROTARY)) << _FIRST_ROTARY
    if "deg" not in row.unit or rotary >> (row.group - AXIS) & 1:
        return row
    return row._replace(unit=row.unit.replace("deg", "mm"))


_FIRST_ROTARY, _ALL_ROTARY = 3, 7
"""Index of the A axis, and $376 with A, B and C."""


# ── what each setting does ────────────────────────────────────────────────────────────────────────


DESCRIPTIONS: Mapping[int, str] = {
    0: "Length of a step pulse.",
    1: "Time after the last step until the motors are switched off; 255 keeps them on.",
    2: "Axes whose step signals are active low.",
    3: "Axes whose direction signals are active low.",
    4: "Axes whose enable signals are active low.",
    5: "Axes whose limit inputs are inverted.",
    6: "Probe inputs that are inverted.",
    9: "Options of the PWM output of the spindle.",
    10: "Fields of the status report.",
    11: "Deviation from a corner that the path may have; smaller is slower.",
    12: "Distance between an arc and the chords that replace it.",
    13: "Positions and speeds are reported in inches.",
    14: "Control inputs that are inverted.",
    15: "Coolant outputs that are inverted.",
    17: "Control inputs without a pull-up resistor.",
    18: "Limit inputs without a pull-up resistor.",
    19: "Probe inputs without a pull-up resistor.",
    20: "Refuses targets outside the travel of an axis; needs homing.",
    21: "Stops with an alarm when a limit switch is touched.",
    22: "Options of the homing cycle.",
    23: "Axes that look for their switch in the negative direction.",
    24: "Slow speed with which the switch is found exactly.",
    25: "Fast speed with which the switch is looked for.",
    26: "Pause between the phases of homing, until a switch is quiet.",
    27: "Distance from the switch after homing.",
    28: "How far G73 retracts to break the chip.",
    29: "Time between direction signal and step pulse.",
    30: "Highest speed of the spindle.",
    31: "Lowest speed of the spindle.",
    32: "Ordinary machine, laser or lathe.",
    33: "Frequency of the PWM output.",
    34: "PWM duty while the spindle is off.",
    35: "PWM duty at the lowest speed.",
    36: "PWM duty at the highest speed.",
    37: "Axes whose motors stay on at rest.",
    39: "The characters ? ! ~ act at once also inside settings and comments.",
    40: "Jogs end at the limits of the travel of homed axes.",
    41: "Moves to a parking position when the safety door opens.",
    42: "Axis that parks.",
    43: "How often the switch is found again slowly.",
    44: "Axes that are homed first.",
    45: "Axes that are homed second.",
    46: "Axes that are homed third.",
    47: "Axes that are homed fourth.",
    48: "Axes that are homed fifth.",
    49: "Axes that are homed sixth.",
    56: "Distance that the tool is pulled out before parking.",
    57: "Speed of pulling out and plunging.",
    58: "Parking position in machine coordinates.",
    59: "Speed to the parking position.",
    60: "Overrides return to 100 % at the end of a program.",
    61: "What the safety door does.",
    62: "Allows $SLP.",
    63: "What a feed hold does with laser, spindle and coolant.",
    64: "Starts with an alarm after power on.",
    65: "Options of probing moves.",
    341: "What M6 does.",
    342: "Longest probing move of a tool change.",
    343: "Slow speed of probing in a tool change.",
    344: "Fast speed of probing in a tool change.",
    345: "Speed away from the tool setter.",
    346: "Options of tool changes.",
    376: "Axes that are rotary.",
    384: "G92 offsets are lost at power off.",
    392: "Time until the spindle turns after the safety door is closed.",
    393: "Time until the coolant flows after the safety door is closed.",
    394: "Time until the spindle is up to speed.",
    398: "Moves that are planned ahead.",
    481: "Time between reports that are sent without a question.",
    485: "The number of the tool is kept at power off.",
    486: "Coordinate systems that G10 does not change.",
    538: "Rotary axes that go to G28 the short way.",
    539: "Time until the spindle stands still.",
    673: "Time until the coolant flows.",
    676: "What a reset clears.",
    680: "Time between switching the motors on and the first step.",
    701: "How the feed of moves with linear and rotary axes is read.",
}
_OF_AXES: Mapping[int, str] = {
    SettingNumber.STEPS_PER_UNIT: "Steps for each millimetre or degree.",
    SettingNumber.MAXIMUM_RATE: "Highest speed, which G0 uses.",
    SettingNumber.ACCELERATION: "Acceleration of all moves.",
    SettingNumber.TRAVEL: "Length of the axis, from its switch.",
}


def description(number: int) -> str:
    return DESCRIPTIONS.get(number) or _OF_AXES.get(number // 10 * 10, "")
