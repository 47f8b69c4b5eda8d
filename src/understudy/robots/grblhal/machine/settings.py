"""grblHAL's `$n=v` settings: all of them by number, with names for what the planner needs."""

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from understudy.errors import ConfigError, Refused
from understudy.gcode.dialect import rotary_axes
from understudy.motion.path import Floats, Limits
from understudy.units import MINUTE

AXES = 6
BAD_NUMBER, NEGATIVE, OUT_OF_RANGE, NOT_AVAILABLE = 2, 4, 52, 53
"""grblHAL's error numbers."""
REST_AT_OFFSETS = 1 << 8
"""Bit of $10: motion ends before the work offset changes."""

_LINE = re.compile(r"\$(\d+)\s*=(.*)")
_WHOLE = re.compile(r"\d+")
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)")


class Known(NamedTuple):
    """A setting whose meaning is known: its default, its range, and whether it is whole.

    `negative` is the error number of a value below zero; `zero`: 0 is allowed below `least`.
    """

    default: float
    least: float = 0.0
    most: float = np.inf
    whole: bool = False
    negative: int = OUT_OF_RANGE
    zero: bool = False


def _per_axis(first: int, default: float, least: float = 0.0) -> dict[int, Known]:
    each = Known(default, least, negative=NEGATIVE)
    return dict.fromkeys(range(first, first + AXES), each)


SMALLEST = 1e-3
"""What a planner can divide by."""

KNOWN: Mapping[int, Known] = {
    0: Known(5.0, 2.0),
    1: Known(25, most=65535, whole=True),
    2: Known(0, most=63, whole=True),
    3: Known(0, most=63, whole=True),
    4: Known(63, most=63, whole=True),
    5: Known(0, most=63, whole=True),
    6: Known(0, most=1, whole=True),
    10: Known(511, most=16383, whole=True),
    11: Known(0.01),
    12: Known(0.002, least=1e-6),
    13: Known(0, most=1, whole=True),
    20: Known(0, most=1, whole=True),
    21: Known(0, most=15, whole=True),
    22: Known(0, most=1023, whole=True),
    23: Known(0, most=63, whole=True),
    24: Known(25.0, SMALLEST),
    25: Known(500.0, SMALLEST),
    26: Known(250, most=65535, whole=True),
    27: Known(1.0),
    28: Known(0.1),
    29: Known(0.0, most=20.0),
    30: Known(1000.0),
    31: Known(0.0),
    32: Known(0, most=2, whole=True),
    33: Known(5000.0),
    34: Known(0.0, most=100.0),
    35: Known(0.0, most=100.0),
    36: Known(100.0, most=100.0),
    37: Known(0, most=63, whole=True),
    39: Known(1, most=1, whole=True),
    40: Known(0, most=1, whole=True),
    43: Known(1, 1, 128, whole=True),
    44: Known(4, most=63, whole=True),
    45: Known(3, most=63, whole=True),
    46: Known(0, most=63, whole=True),
    62: Known(0, most=1, whole=True),
    63: Known(2, most=7, whole=True),
    64: Known(0, most=1, whole=True),
    65: Known(0, most=7, whole=True),
    **_per_axis(100, 250.0, SMALLEST),
    **_per_axis(110, 500.0, SMALLEST),
    **_per_axis(120, 10.0, SMALLEST),
    **_per_axis(130, 200.0),
    376: Known(7, most=7, whole=True),
    392: Known(4.0, 0.5, 20.0, zero=True),
    393: Known(1.0, 0.5, 20.0, zero=True),
    394: Known(0.0, 0.5, 20.0, zero=True),
    341: Known(0, most=4, whole=True),
    398: Known(100, 30, 1000, whole=True),
    481: Known(0, 100, 1000, whole=True, zero=True),
    484: Known(1, most=1, whole=True),
    701: Known(0, most=3, whole=True),
}
"""Those that mean something here; further ones are kept as text."""


class Settings(Struct, frozen=True):
    """What differs from the firmware's defaults, by number."""

    given: Mapping[int, float] = {}
    others: Mapping[int, str] = {}

    def __getitem__(self, number: int) -> float:
        return self.given.get(number, KNOWN[number].default)

    def changed(self, number: int, text: str) -> "Settings | Refused":
        """`$number=text`; a number that is not known is refused."""
        if number not in KNOWN:
            return Refused(f"${number} is not available", NOT_AVAILABLE)
        value = _value(KNOWN[number], text)
        if isinstance(value, Refused):
            return Refused(f"${number}={text.strip()}: {value.reason}", value.code)
        return Settings({**self.given, number: value}, self.others)

    # ── of the axes ──

    @property
    def steps(self) -> Floats:
        """Steps per mm or deg."""
        return self._of_axes(100)

    @property
    def travel(self) -> Floats:
        """mm or deg."""
        return self._of_axes(130)

    @property
    def limits(self) -> Limits:
        """What the axes can do, in mm or deg and per second."""
        return Limits.of(self._of_axes(110) / MINUTE, self._of_axes(120))

    @property
    def rotary(self) -> tuple[bool, ...]:
        return rotary_axes(int(self[376]))

    # ── of the planner ──

    @property
    def junction_deviation(self) -> float:
        """mm; 0 stops at every corner."""
        return self[11]

    @property
    def arc_tolerance(self) -> float:
        """mm between an arc and its chords."""
        return self[12]

    @property
    def planner_blocks(self) -> int:
        return int(self[398])

    @property
    def feed_is_linear(self) -> bool:
        """The feed of a mixed move is that of its linear axes alone."""
        return bool(self[701])

    @property
    def rests_at_offsets(self) -> bool:
        return bool(int(self[10]) & REST_AT_OFFSETS)

    @property
    def probes_overridden(self) -> bool:
        """The feed override acts on probing moves."""
        return bool(int(self[65]) & 1)

    @property
    def report_inches(self) -> bool:
        return bool(self[13])

    # ── of the switches ──

    @property
    def spindle_on_s(self) -> float:
        """Seconds that M3 and M4 take."""
        return self[394]

    def _of_axes(self, first: int) -> Floats:
        return np.array([self[first + axis] for axis in range(AXES)])


def read_settings(text: str, file: str = "") -> Settings:
    """`$n=v` lines as the firmware prints them; empty lines, `;` comments and `ok` are passed."""
    settings = Settings()
    for number, line in enumerate(text.splitlines(), 1):
        said = line.partition(";")[0].strip()
        if said in ("", "ok"):
            continue
        settings = _with_line(settings, said, file, number)
    return settings


def _with_line(settings: Settings, said: str, file: str, line: int) -> Settings:
    found = _LINE.fullmatch(said)
    if found is None:
        allowed = "$NUMBER=VALUE, e.g. $110=6000"
        raise ConfigError("no setting", file=file, line=line, value=said, allowed=allowed)
    number, text = int(found[1]), found[2].strip()
    if number not in KNOWN:
        return Settings(settings.given, {**settings.others, number: text})
    after = settings.changed(number, text)
    if isinstance(after, Refused):
        raise ConfigError(after.reason, file=file, line=line)
    return after


def _value(known: Known, text: str) -> float | Refused:
    """Spaces vanish; a whole number has no sign and no point."""
    plain = text.replace(" ", "")
    if not (_WHOLE if known.whole else _DECIMAL).fullmatch(plain):
        return Refused(f"should be {'a whole' if known.whole else 'a'} number", BAD_NUMBER)
    value = float(plain)
    if known.least <= value <= known.most or (known.zero and value == 0.0):
        return value
    code = known.negative if value < 0 else OUT_OF_RANGE
    top = "" if known.most == np.inf else f" and at most {known.most:g}"
    return Refused(f"should be at least {known.least:g}{top}", code)
