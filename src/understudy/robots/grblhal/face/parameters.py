"""`$#=…`: values of numbered and named parameters, as NGC expressions have them.

> $#=5221\\n     < [PARAM:5221=10.5]      (X of G54)
> $#=_metric\\n  < [PARAM:_metric=1]
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from understudy.gcode.dialect import MM_PER_INCH, Axes
from understudy.gcode.modal import work_offset
from understudy.robots.grblhal.controller import FirmwareReading
from understudy.robots.grblhal.digits import fixed
from understudy.robots.grblhal.numbers import AXIS_LETTERS, SettingNumber

FIRST_READ_ONLY = 5061
"""Smaller numbers belong to programs; without expressions they are 0."""
NUMBER_MASK = 0xFFFF
NAME_LENGTH = 21
FIRST_OFFSET, BETWEEN_SYSTEMS, SYSTEMS, LAST_OF_SYSTEM = 5221, 20, 9, 10
G59_INDEX = 5
VERSION, BUILD = 1.1, 260817.0
PLANES = {"G17": 170.0, "G18": 180.0, "G19": 190.0}
NO_RESULT = -2.0
"""Value of 5399 while no M66 has read an input."""


class Known(NamedTuple):
    """What the parameters show: the state of the controller, and its settings."""

    reading: FirmwareReading
    settings: Mapping[int, float]


def parameter_text(name: str, known: Known, *, number: int | None) -> str:
    """`[PARAM:…]` of a parameter with this number, or of a named one."""
    shown = name if number is None else str(number & NUMBER_MASK)
    value = _named(name, known) if number is None else _numbered(number & NUMBER_MASK, known)
    if value is None:
        return f"[PARAM:{shown}=N/A]"
    places = 4 if known.settings[SettingNumber.REPORT_INCHES] else 3
    return f"[PARAM:{shown}={fixed(value, places).rstrip('0').rstrip('.')}]"


# ── numbered ──


def _numbered(number: int, known: Known) -> float | None:
    if 0 < number < FIRST_READ_ONLY:
        return 0.0
    reading, modal = known.reading, known.reading.modal
    axis = number % 10 - 1
    rows: dict[range, Callable[[], float]] = {
        range(5061, 5070): lambda: _length(_probed(known, axis), axis, known),
        range(5070, 5071): lambda: float(reading.touched),
        range(5161, 5170): lambda: _of_axis(modal.g28, axis),
        range(5181, 5190): lambda: _of_axis(modal.g30, axis),
        range(5191, 5200): lambda: 1.0 if axis < len(AXIS_LETTERS) else 0.0,
        range(5210, 5211): lambda: float(any(modal.g92)),
        range(5211, 5220): lambda: _of_axis(modal.g92, axis),
        range(5220, 5221): lambda: modal.coordinates + 1.0,
        range(5399, 5400): lambda: NO_RESULT if reading.input is None else reading.input,
        range(5400, 5401): lambda: float(reading.tool),
        range(5401, 5410): lambda: _of_axis(modal.tool_length, axis),
        range(5410, 5411): lambda: 0.0,
        range(5420, 5429): lambda: _length(_work(known, axis + 1), axis + 1, known),
        range(5599, 5600): lambda: 0.0,
    }
    found = next((value for numbers, value in rows.items() if number in numbers), None)
    return _system_offset(number, known) if found is None else found()


def _system_offset(number: int, known: Known) -> float | None:
    """Offsets of G54 … G59.3; the tenth value of each is the rotation, which is not there."""
    system, value = divmod(number - FIRST_OFFSET, BETWEEN_SYSTEMS)
    if not 0 <= system < SYSTEMS or value >= LAST_OF_SYSTEM:
        return None
    return _of_axis(known.reading.modal.offsets[system], value)


def _of_axis(values: Axes, axis: int) -> float:
    return values[axis] if 0 <= axis < len(values) else 0.0


def _probed(known: Known, axis: int) -> float:
    modal = known.reading.modal
    own = _of_axis(modal.offsets[modal.coordinates], axis)
    return _of_axis(known.reading.probe, axis) - own


def _work(known: Known, axis: int) -> float:
    return _of_axis(known.reading.position, axis) - _of_axis(work_offset(known.reading.modal), axis)


def _length(value: float, axis: int, known: Known) -> float:
    """The firmware multiplies lengths by 25.4 where it reports inches."""
    rotary = axis > 2 and int(known.settings[SettingNumber.ROTARY_AXES]) >> (axis - 3) & 1
    inches = known.settings[SettingNumber.REPORT_INCHES] and not rotary
    return value * MM_PER_INCH if inches else value


# ── named ──


def _named(name: str, known: Known) -> float | None:
    key = "".join(character for character in name if character > " ").lower()[:NAME_LENGTH]
    if key.startswith("_abs_") and len(key) == len("_abs_x"):
        return _coordinate(key[-1], known, _of_axis(known.reading.position, _axis(key[-1])))
    if len(key) == len("_x") and key[0] == "_" and key[1] in _LETTERS:
        return _coordinate(key[-1], known, _work(known, _axis(key[-1])))
    get = _NAMED.get(key)
    return None if get is None else float(get(known))


def _axis(letter: str) -> int:
    return _LETTERS.find(letter)


def _coordinate(letter: str, known: Known, value: float) -> float | None:
    return None if letter not in _LETTERS else _length(value, _axis(letter), known)


def _system_number(known: Known) -> float:
    index = known.reading.modal.coordinates
    return 540.0 + 10 * min(index, G59_INDEX) + max(0, index - G59_INDEX)


def _motion_number(known: Known) -> float:
    """Ten times the number of the motion's word."""
    motion = known.reading.modal.motion
    return float(motion[1:]) * 10.0 if motion[1:].replace(".", "").isdigit() else 0.0


def _selected(known: Known) -> float:
    modal = known.reading.modal
    return float(modal.selected) if modal.selected != modal.tool else -1.0


_LETTERS = f"{AXIS_LETTERS}UVW".lower()
_NAMED: Mapping[str, Callable[[Known], float]] = {
    "_vmajor": lambda known: VERSION,
    "_vminor": lambda known: BUILD,
    "_line": lambda known: known.reading.modal.line,
    "_motion_mode": _motion_number,
    "_plane": lambda known: PLANES[known.reading.modal.plane],
    "_ccomp": lambda known: 400.0,
    "_metric": lambda known: known.reading.modal.units == "G21",
    "_imperial": lambda known: known.reading.modal.units == "G20",
    "_absolute": lambda known: known.reading.modal.distance == "G90",
    "_incremental": lambda known: known.reading.modal.distance == "G91",
    "_inverse_time": lambda known: known.reading.modal.feed_mode == "G93",
    "_units_per_minute": lambda known: known.reading.modal.feed_mode == "G94",
    "_units_per_rev": lambda known: known.reading.modal.feed_mode == "G95",
    "_coord_system": _system_number,
    "_tool_offset": lambda known: known.reading.modal.tool_offset != "G49",
    "_retract_r_plane": lambda known: known.reading.modal.retract == "G98",
    "_retract_old_z": lambda known: known.reading.modal.retract == "G99",
    "_spindle_rpm_mode": lambda known: 1.0,
    "_spindle_css_mode": lambda known: 0.0,
    "_ijk_absolute_mode": lambda known: 0.0,
    "_lathe_diameter_mode": lambda known: 0.0,
    "_lathe_radius_mode": lambda known: 1.0,
    "_spindle_on": lambda known: known.reading.modal.spindle != "M5",
    "_spindle_cw": lambda known: known.reading.modal.spindle == "M4",
    "_mist": lambda known: known.reading.modal.mist,
    "_flood": lambda known: known.reading.modal.flood,
    "_speed_override": lambda known: known.reading.modal.speed_override,
    "_feed_override": lambda known: known.reading.modal.feed_override,
    "_adaptive_feed": lambda known: 0.0,
    "_feed_hold": lambda known: known.reading.modal.hold_allowed,
    "_feed": lambda known: known.reading.modal.feed,
    "_rpm": lambda known: known.reading.modal.speed,
    "_current_tool": lambda known: known.reading.tool,
    "_current_pocket": lambda known: 0.0,
    "_selected_tool": _selected,
    "_selected_pocket": lambda known: min(0.0, _selected(known)),
    "_call_level": lambda known: -1.0,
    "_probe_state": lambda known: float("P" in known.reading.switches),
    "_probe2_state": lambda known: -1.0,
    "_toolsetter_state": lambda known: -1.0,
    "_active_probe": lambda known: 0.0,
    "_homed_state": lambda known: float(known.reading.homed.startswith("1")),
    "_homed_axes": lambda known: known.reading.homed_axes,
    "_tool_table_size": lambda known: len(known.reading.modal.tools),
    "_free_memory": lambda known: -1.0,
}
"""`_spindle_cw` is 1 for M4: the firmware's own fault."""
