"""The status report: `<State|MPos:…|Bf:…|Ln:…|FS:…|Pn:…|WCO:…|WCS:…|Ov:…|A:…|…>`.

Which fields it has is decided by $10, by what has changed since the last one, and by two counters:
Ov and WCO come every so many reports, more often when nothing moves, and never both in one.
"""

from collections.abc import Mapping

from msgspec import Struct

from understudy.gcode.commands import COORDINATE_SYSTEMS
from understudy.gcode.dialect import MM_PER_INCH, Axes
from understudy.gcode.modal import work_offset
from understudy.gcode.wire import Reading

MASK, INCHES, ROTARY, HOMING, INTERVAL = 10, 13, 376, 22, 481
MACHINE, BUFFER, LINE, SPEED, PINS, OFFSET, OVERRIDES = (1 << bit for bit in range(7))
PARSER, ALARM, DISTANCE = 1 << 9, 1 << 10, 1 << 13
OV_BUSY, OV_IDLE, WCO_BUSY, WCO_IDLE = 20, 10, 30, 10
BUSY = ("Home", "Run", "Hold", "Jog", "Door")

ALL = frozenset(
    {"offset", "system", "overrides", "spindle", "coolant", "scaling", "mpg", "homed", "tool",
     "probe", "reference", "input"}
)  # fmt: skip
AFTER_RESET = frozenset({"overrides", "spindle", "coolant", "reference"})


class SavedReports(Struct):
    """What a snapshot holds of the reports."""

    flags: list[str]
    full: bool
    override_counter: int
    offset_counter: int
    auto: bool


class Reports:
    """Remembers what the next report must carry."""

    def __init__(self) -> None:
        self._flags: set[str] = set()
        self.begin_anew(auto=False)

    def note(self, *fields: str) -> None:
        self._flags.update(fields)

    def ask_all(self) -> None:
        """The next report has every field."""
        self._flags = set(ALL)
        self._full = True

    def begin_anew(self, *, auto: bool) -> None:
        self._flags = set(AFTER_RESET)
        self._full = False
        self._override_counter = 0
        self._offset_counter = 0
        self.auto = auto

    def count_anew(self) -> None:
        """Somebody else listens now: Ov and WCO come with the next reports."""
        self._override_counter = self._offset_counter = 0

    def report(self, reading: Reading, settings: Mapping[int, float], *, unread: int) -> str:
        """``unread``: how many more bytes the receive buffer takes."""
        mask = int(settings[MASK])
        later = self._count(reading, mask)
        fields = [
            _state(reading, self._full or bool(mask & ALARM)),
            *_always(reading, settings, unread),
        ]
        fields += self._on_occasion(reading, settings)
        self._flags, self._full = later, False
        return f"<{'|'.join(fields)}>"

    def _count(self, reading: Reading, mask: int) -> set[str]:
        """Turn the counters; what had to give way comes in the next report."""
        flags, later = self._flags, set()
        state = reading.state.partition(":")[0]
        busy = state in BUSY
        if not mask & OVERRIDES:
            flags.discard("overrides")
        elif self._override_counter == 0 or "overrides" in flags:
            flags.add("overrides")
            self._override_counter = (OV_BUSY if busy else OV_IDLE) - 1
            self._mention_what_is_on(reading)
        else:
            self._override_counter -= 1
        if not mask & OFFSET:
            flags.discard("offset")
        elif self._offset_counter == 0 or flags & {"offset", "system"} or self._full:
            self._offset_counter = (WCO_BUSY if busy else WCO_IDLE) - 1
            flags.add("offset")
            if "overrides" in flags and not self._full and "system" not in flags:
                flags.discard("offset")
                later.add("offset")
        else:
            self._offset_counter -= 1
        if state == "Idle":
            self._override_counter = min(self._override_counter, OV_IDLE - 1)
            self._offset_counter = min(self._offset_counter, WCO_IDLE - 1)
        return later

    def _mention_what_is_on(self, reading: Reading) -> None:
        if reading.spindle != "M5":
            self._flags.add("spindle")
        if reading.flood or reading.mist:
            self._flags.add("coolant")

    def _on_occasion(self, reading: Reading, settings: Mapping[int, float]) -> list[str]:
        flags, fields = self._flags, []
        if "offset" in flags:
            fields.append(f"WCO:{axis_values(work_offset(reading.modal), settings)}")
        if "system" in flags:
            fields.append(f"WCS:{COORDINATE_SYSTEMS[reading.modal.coordinates]}")
        if "overrides" in flags:
            fields.append("Ov:{},{},{}".format(*reading.overrides))
        if flags & {"spindle", "coolant", "tool"} or reading.changing:
            fields.append(f"A:{_accessories(reading, awaited='tool' not in flags)}")
        if "scaling" in flags:
            fields.append("Sc:")
        interval = int(settings[INTERVAL])
        if self._full and interval:
            fields.append(f"AR:{interval}" if self.auto else "AR")
        if "mpg" in flags:
            fields.append("MPG:0")
        if "homed" in flags:
            fields.append(f"H:{int(reading.homed)}")
        if "tool" in flags:
            fields.append(f"T:{reading.tool}")
        if "probe" in flags:
            fields.append("P:0")
        if "reference" in flags:
            fields.append("TLR:0")
        if "input" in flags and reading.input is not None:
            fields.append(f"In:{int(reading.input)}")
        if self._full:
            fields.append("FW:grblHAL")
        return fields

    # ── snapshots ──

    def save(self) -> SavedReports:
        return SavedReports(
            sorted(self._flags),
            self._full,
            self._override_counter,
            self._offset_counter,
            self.auto,
        )

    def load(self, saved: SavedReports) -> None:
        self._flags, self._full, self.auto = set(saved.flags), saved.full, saved.auto
        self._override_counter = saved.override_counter
        self._offset_counter = saved.offset_counter


def axis_values(values: Axes, settings: Mapping[int, float]) -> str:
    """Three decimals; in inches ($13) four for what is not rotary."""
    inches, rotary = bool(settings[INCHES]), int(settings[ROTARY])
    texts = []
    for axis, value in enumerate(values):
        linear = axis < 3 or not rotary >> (axis - 3) & 1
        if inches and linear:
            texts.append(f"{value / MM_PER_INCH:.4f}")
        else:
            texts.append(f"{value:.3f}")
    return ",".join(_no_negative_zero(text) for text in texts)


def _no_negative_zero(text: str) -> str:
    return text[1:] if text[0] == "-" and not text.strip("-0.") else text


def _state(reading: Reading, substate: bool) -> str:
    if reading.state == "Alarm" and substate and reading.alarm:
        return f"Alarm:{reading.alarm}"
    return reading.state


def _always(reading: Reading, settings: Mapping[int, float], unread: int) -> list[str]:
    """What $10 alone decides."""
    mask = int(settings[MASK])
    position, name = reading.position, "MPos"
    if not mask & MACHINE:
        shift = work_offset(reading.modal)
        x, y, z, a, b, c = (p - s for p, s in zip(position, shift, strict=True))
        position, name = (x, y, z, a, b, c), "WPos"
    fields = [f"{name}:{axis_values(position, settings)}"]
    if mask & BUFFER:
        fields.append(f"Bf:{reading.free},{unread}")
    if mask & LINE and reading.line:
        fields.append(f"Ln:{reading.line}")
    if mask & SPEED:
        scale = MM_PER_INCH if settings[INCHES] else 1.0
        fields.append(f"FS:{round(reading.feed / scale)},{round(reading.speed)}")
    if mask & PINS and reading.switches:
        fields.append(f"Pn:{reading.switches}")
    return fields


def _accessories(reading: Reading, *, awaited: bool) -> str:
    letters = {"M3": "S", "M4": "C"}.get(reading.spindle, "")
    letters += "F" if reading.flood else ""
    letters += "M" if reading.mist else ""
    return letters + ("T" if reading.changing and awaited else "")
