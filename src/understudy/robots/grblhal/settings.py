"""Values of grblHAL's `$n=v` settings: what a line stores, and names for those of the planner."""

import functools
import math
import operator
import re
from collections.abc import Callable, Mapping

import numpy as np
from msgspec import Struct

from understudy.errors import ConfigError, Refused
from understudy.gcode.blocks import read_number
from understudy.gcode.dialect import firmware_delay, rotary_axes, single
from understudy.gcode.requests import Coolant, Request, Spindle
from understudy.motion.path import Floats, Limits
from understudy.robots.grblhal.numbers import (
    AXIS_LETTERS,
    ErrorCode,
    HardLimitOption,
    HomingOption,
    SettingNumber,
)
from understudy.robots.grblhal.setting_table import BOOL, SETTINGS, SPINDLE, SettingRow, read_whole
from understudy.units import MINUTE

# ── storing a value ───────────────────────────────────────────────────────────────────────────────


NEEDS_HOMING = Refused("soft limits need homing ($22)", ErrorCode.SOFT_LIMITS_NEED_HOMING)
PER_AXIS = Refused("each axis has its own rates ($22)", ErrorCode.SETTING_NOT_AVAILABLE)
DOOR_INPUT = 1 << 3
"""The only control input of the machine."""
_LARGEST_INTEGER = 0xFFFF
_MILLI = 1000.0


Stored = Mapping[int, float] | Refused
"""The settings that change, or why none does."""


def read_value(row: SettingRow, text: str) -> float | Refused:
    """The number at the begin of a text, if the setting allows it; what follows it is ignored."""
    text = text.lstrip(" ")
    value = read_whole(text) if row.whole else read_number(text)
    if value is None or math.isnan(value):
        kind = "a whole number" if row.whole else "a number"
        return Refused(f"should be {kind}", ErrorCode.BAD_NUMBER)
    if row.allows(value):
        return float(int(value) & _LARGEST_INTEGER if row.whole else value)
    code = ErrorCode.NEGATIVE if value < 0 and not row.lowest else ErrorCode.SETTING_RANGE
    top = "" if row.most == math.inf else f" and at most {row.most:g}"
    return Refused(f"should be at least {row.least:g}{top}", code)


def _stored(number: int, value: float, before: "Settings") -> Stored:
    """The settings that change when a setting gets this value."""
    rule = _RULES.get(number)
    return {number: value} if rule is None else rule(number, value, before)


def _switched(number: int, value: float, before: "Settings") -> Stored:
    """Bit 0 switches the others off."""
    return {number: value if int(value) & 1 else 0.0}


def _door_only(number: int, value: float, before: "Settings") -> Stored:
    return {number: float(int(value) & DOOR_INPUT)}


def _needs_homing(number: int, value: float, before: "Settings") -> Stored:
    homes = int(before[SettingNumber.HOMING_CYCLE]) & HomingOption.ENABLED
    return {number: value} if homes or not value else NEEDS_HOMING


def _homing(number: int, value: float, before: "Settings") -> Stored:
    """$676 shows one of the bits. Without homing there are no soft limits, and the firmware
    forgets all bits but one."""
    bits, actions = int(value), int(before[SettingNumber.RESET_ACTIONS])
    off: dict[int, float] = {}
    if not bits & HomingOption.ENABLED:
        bits = int(before[number]) & HomingOption.TWO_SWITCHES
        off = {SettingNumber.SOFT_LIMITS: 0.0, SettingNumber.JOG_LIMITS: 0.0}
    forgets = 0 if bits & HomingOption.KEEPS_HOMED else 1
    return {number: float(bits), SettingNumber.RESET_ACTIONS: float(actions & ~1 | forgets), **off}


def _reset_actions(number: int, value: float, before: "Settings") -> Stored:
    homing = int(before[SettingNumber.HOMING_CYCLE]) & ~HomingOption.KEEPS_HOMED
    kept = 0 if int(value) & 1 else HomingOption.KEEPS_HOMED
    return {number: value, SettingNumber.HOMING_CYCLE: float(homing | kept)}


def _homing_rate(number: int, value: float, before: "Settings") -> Stored:
    per_axis = int(before[SettingNumber.HOMING_CYCLE]) & HomingOption.RATES_PER_AXIS
    return PER_AXIS if per_axis else {number: value}


def _parking(number: int, value: float, before: "Settings") -> Stored:
    """Parking that is off after a start needs the words that switch it."""
    bits = int(value) if int(value) & 1 else 0
    return {number: float(bits | 4 if bits & 2 else bits)}


def _rotary(number: int, value: float, before: "Settings") -> Stored:
    return {number: float(int(value) | 1) if value else 0.0}


def _milliseconds(number: int, value: float, before: "Settings") -> Stored:
    return {number: math.trunc(single(value * _MILLI)) / _MILLI}


_RULES: Mapping[int, Callable[[int, float, "Settings"], Stored]] = {
    **dict.fromkeys((SettingNumber.PWM_OPTIONS, SettingNumber.HARD_LIMITS), _switched),
    **dict.fromkeys((SettingNumber.CONTROL_INVERT, SettingNumber.CONTROL_PULLUP), _door_only),
    **dict.fromkeys((SettingNumber.SOFT_LIMITS, SettingNumber.JOG_LIMITS), _needs_homing),
    SettingNumber.HOMING_CYCLE: _homing,
    SettingNumber.RESET_ACTIONS: _reset_actions,
    **dict.fromkeys((SettingNumber.HOMING_FEED_RATE, SettingNumber.HOMING_SEEK_RATE), _homing_rate),
    SettingNumber.PARKING: _parking,
    SettingNumber.ROTARY_OPTIONS: _rotary,
    **dict.fromkeys(
        (SettingNumber.SPINDLE_DELAY, SettingNumber.SPINDLE_OFF_DELAY, SettingNumber.COOLANT_DELAY),
        _milliseconds,
    ),
}


# ── the values of a machine ───────────────────────────────────────────────────────────────────────


REST_AT_OFFSETS = 1 << 8
"""Bit of $10: motion ends before the work offset changes."""
PROBE_OVERRIDE = 1
"""Bit of $65: the feed override acts on probing moves."""
DEFAULTS: Mapping[int, float] = {number: row.default for number, row in SETTINGS.items()}

_LINE = re.compile(r"\$(\d+)\s*=(.*)")
PWM_MODE_ROW = SettingRow(SPINDLE, "Deprecated", "", BOOL, 0.0)
RPM_CONTROLS_ENABLE = 1 << 1
"""Bit of $9."""
SMALLEST = 1e-3
"""Least value of a setting that the planner divides by; the firmware hangs at 0."""
SLOWEST = 1.0
"""Least speed of an axis, in mm or deg per minute."""


class Settings(Struct, frozen=True):
    """Settings that differ from the firmware's defaults, by number; `others` are unknown ones."""

    given: Mapping[int, float] = {}
    others: Mapping[int, str] = {}

    def __getitem__(self, number: int) -> float:
        return self.given.get(number, SETTINGS[number].default)

    def changed(self, number: int, text: str) -> "Settings | Refused":
        """The settings after `$number=text`; an unknown number is refused."""
        if number == SettingNumber.PWM_MODE:
            return self._pwm_mode(text)
        if number not in SETTINGS:
            return Refused(f"${number} is not available", ErrorCode.SETTING_NOT_AVAILABLE)
        value = read_value(SETTINGS[number], text)
        if not isinstance(value, Refused):
            after = _stored(number, value, self)
            if not isinstance(after, Refused):
                return Settings({**self.given, **after}, self.others)
            value = after
        return Refused(f"${number}={text.strip()}: {value.reason}", value.code)

    def _pwm_mode(self, text: str) -> "Settings | Refused":
        """$7 can be written only; it is a bit of $9."""
        value = read_value(PWM_MODE_ROW, text)
        if isinstance(value, Refused):
            return Refused(f"$7={text.strip()}: {value.reason}", value.code)
        options = int(self[SettingNumber.PWM_OPTIONS])
        if options:
            options = options & ~RPM_CONTROLS_ENABLE | RPM_CONTROLS_ENABLE * int(value)
        return Settings({**self.given, SettingNumber.PWM_OPTIONS: float(options)}, self.others)

    # ── axes ──

    @property
    def steps(self) -> Floats:
        """Steps per mm or deg."""
        return np.maximum(self._of_axes(SettingNumber.STEPS_PER_UNIT), SMALLEST)

    @property
    def travel(self) -> Floats:
        """Length of each axis in mm or deg."""
        return self._of_axes(SettingNumber.TRAVEL)

    @property
    def limits(self) -> Limits:
        """Speed and acceleration of the axes in mm or deg and seconds."""
        rates = np.maximum(self._of_axes(SettingNumber.MAXIMUM_RATE), SLOWEST) / MINUTE
        return Limits.of(rates, np.maximum(self._of_axes(SettingNumber.ACCELERATION), SMALLEST))

    @property
    def rotary(self) -> tuple[bool, ...]:
        return rotary_axes(int(self[SettingNumber.ROTARY_AXES]))

    @property
    def soft_limits(self) -> bool:
        return bool(self[SettingNumber.SOFT_LIMITS])

    @property
    def travel_range(self) -> tuple[Floats, Floats]:
        """Range of each axis after homing; with hard limits the pull-off is kept free."""
        travel, options = self.travel, int(self[SettingNumber.HOMING_CYCLE])
        pull_off = self[SettingNumber.HOMING_PULL_OFF]
        masks = (int(self[SettingNumber.HOMING_PHASE + n]) for n in range(len(AXIS_LETTERS)))
        automatic = functools.reduce(operator.or_, masks)
        hard = int(self[SettingNumber.HARD_LIMITS]) & HardLimitOption.ENABLED
        free = pull_off * _bits(automatic) if hard else np.zeros(len(travel))
        if not options & HomingOption.ORIGIN_ZERO:
            return free - travel, 0.0 - free
        reverse = _bits(int(self[SettingNumber.HOMING_DIRECTION])) == 1.0
        return np.where(reverse, 0.0, free - travel), np.where(reverse, travel - free, 0.0)

    # ── planner ──

    @property
    def junction_deviation(self) -> float:
        """Deviation at corners in mm; 0 stops at every corner."""
        return self[SettingNumber.JUNCTION_DEVIATION]

    @property
    def arc_tolerance(self) -> float:
        """Distance between an arc and its chords in mm."""
        return max(self[SettingNumber.ARC_TOLERANCE], SMALLEST)

    @property
    def planner_blocks(self) -> int:
        return int(self[SettingNumber.PLANNER_BLOCKS])

    @property
    def feed_is_linear(self) -> bool:
        """The feed of a move of linear and rotary axes is that of its linear axes alone."""
        return bool(self[SettingNumber.ROTARY_OPTIONS])

    @property
    def rests_at_offsets(self) -> bool:
        return bool(int(self[SettingNumber.REPORT_OPTIONS]) & REST_AT_OFFSETS)

    @property
    def probe_inverted(self) -> bool:
        """The probe input is off while the probe touches something."""
        return bool(self[SettingNumber.INVERT_PROBE])

    @property
    def probes_overridden(self) -> bool:
        """The feed override acts on probing moves."""
        return bool(int(self[SettingNumber.PROBING_OPTIONS]) & PROBE_OVERRIDE)

    def switch_seconds(self, request: Request) -> float:
        """Seconds that the program waits for spindle or coolant.

        The firmware waits when the spindle starts, turns round or stops, not at a change of speed
        alone, and also in laser mode; for the coolant it waits when any of it flows.
        """
        if isinstance(request, Spindle) and request.turned:
            off = request.direction == "M5"
            number = SettingNumber.SPINDLE_OFF_DELAY if off else SettingNumber.SPINDLE_DELAY
            return firmware_delay(self[number])
        if isinstance(request, Coolant) and (request.flood or request.mist):
            return firmware_delay(self[SettingNumber.COOLANT_DELAY])
        return 0.0

    @property
    def chip_break_mm(self) -> float:
        """How far G73 retracts between two plunges."""
        return self[SettingNumber.CHIP_BREAK]

    def _of_axes(self, first: int) -> Floats:
        return np.array([self[first + axis] for axis in range(len(AXIS_LETTERS))])


def _bits(mask: int) -> Floats:
    """1 for each axis of a mask, otherwise 0."""
    return np.array([float(mask >> axis & 1) for axis in range(len(AXIS_LETTERS))])


def read_settings(text: str, file: str = "") -> Settings:
    """Read `$n=v` lines as the firmware prints them; skip empty lines, `;` comments and `ok`."""
    settings = Settings()
    for number, line in enumerate(text.splitlines(), 1):
        content = line.partition(";")[0].strip()
        if content not in ("", "ok"):
            settings = _with_line(settings, content, file, number)
    return settings


def _with_line(settings: Settings, content: str, file: str, line: int) -> Settings:
    found = _LINE.fullmatch(content)
    if found is None:
        allowed = "$NUMBER=VALUE, e.g. $110=6000"
        raise ConfigError("no setting", file=file, line=line, value=content, allowed=allowed)
    number, text = int(found[1]), found[2].strip()
    if number not in SETTINGS:
        return Settings(settings.given, {**settings.others, number: text})
    after = settings.changed(number, text)
    if isinstance(after, Refused):
        raise ConfigError(after.reason, file=file, line=line)
    return after
