"""What `$n=v` stores: the number that the firmware reads, and what it makes of it."""

import math
from collections.abc import Callable, Mapping
from typing import Protocol

from understudy.errors import Refused
from understudy.gcode.blocks import read_number
from understudy.gcode.dialect import single
from understudy.robots.grblhal.digits import read_whole
from understudy.robots.grblhal.numbers import ErrorCode, HomingOption, SettingNumber
from understudy.robots.grblhal.setting_table import SettingRow

NEEDS_HOMING = Refused("soft limits need homing ($22)", ErrorCode.SOFT_LIMITS_NEED_HOMING)
PER_AXIS = Refused("each axis has its own rates ($22)", ErrorCode.SETTING_NOT_AVAILABLE)
DOOR_INPUT = 1 << 3
"""The only control input of the machine."""
_LARGEST_INTEGER = 0xFFFF
_MILLI = 1000.0


class Values(Protocol):
    """Settings by number."""

    def __getitem__(self, number: int, /) -> float: ...


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


def stored(number: int, value: float, before: Values) -> Stored:
    """The settings that change when a setting gets this value."""
    rule = _RULES.get(number)
    return {number: value} if rule is None else rule(number, value, before)


def _switched(number: int, value: float, before: Values) -> Stored:
    """Bit 0 switches the others off."""
    return {number: value if int(value) & 1 else 0.0}


def _door_only(number: int, value: float, before: Values) -> Stored:
    return {number: float(int(value) & DOOR_INPUT)}


def _needs_homing(number: int, value: float, before: Values) -> Stored:
    homes = int(before[SettingNumber.HOMING_CYCLE]) & HomingOption.ENABLED
    return {number: value} if homes or not value else NEEDS_HOMING


def _homing(number: int, value: float, before: Values) -> Stored:
    """$676 shows one of the bits. Without homing there are no soft limits, and the firmware
    forgets all bits but one."""
    bits, actions = int(value), int(before[SettingNumber.RESET_ACTIONS])
    off: dict[int, float] = {}
    if not bits & HomingOption.ENABLED:
        bits = int(before[number]) & HomingOption.TWO_SWITCHES
        off = {SettingNumber.SOFT_LIMITS: 0.0, SettingNumber.JOG_LIMITS: 0.0}
    forgets = 0 if bits & HomingOption.KEEPS_HOMED else 1
    return {number: float(bits), SettingNumber.RESET_ACTIONS: float(actions & ~1 | forgets), **off}


def _reset_actions(number: int, value: float, before: Values) -> Stored:
    homing = int(before[SettingNumber.HOMING_CYCLE]) & ~HomingOption.KEEPS_HOMED
    kept = 0 if int(value) & 1 else HomingOption.KEEPS_HOMED
    return {number: value, SettingNumber.HOMING_CYCLE: float(homing | kept)}


def _homing_rate(number: int, value: float, before: Values) -> Stored:
    per_axis = int(before[SettingNumber.HOMING_CYCLE]) & HomingOption.RATES_PER_AXIS
    return PER_AXIS if per_axis else {number: value}


def _parking(number: int, value: float, before: Values) -> Stored:
    """Parking that is off after a start needs the words that switch it."""
    bits = int(value) if int(value) & 1 else 0
    return {number: float(bits | 4 if bits & 2 else bits)}


def _rotary(number: int, value: float, before: Values) -> Stored:
    return {number: float(int(value) | 1) if value else 0.0}


def _milliseconds(number: int, value: float, before: Values) -> Stored:
    return {number: math.trunc(single(value * _MILLI)) / _MILLI}


_RULES: Mapping[int, Callable[[int, float, Values], Stored]] = {
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
