"""The status report: `<State|MPos:…|Bf:…|Ln:…|FS:…|Pn:…|WCO:…|WCS:…|Ov:…|A:…|…>`.

Its fields depend on $10, on what has changed since the last report, and on two counters: Ov and WCO
come in every 20th or 30th report, in every 10th while nothing moves, and never in the same one.
"""

import math
import re
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from understudy.gcode.blocks import COORDINATE_SYSTEMS
from understudy.gcode.dialect import MM_PER_INCH, ZERO, Axes
from understudy.gcode.modal import Modal, work_offset
from understudy.ports.decoder import Decoded
from understudy.robots.grblhal.controller import FirmwareReading
from understudy.robots.grblhal.numbers import AXIS_LETTERS, SettingNumber

MACHINE, BUFFER, LINE, SPEED, PINS, OFFSET, OVERRIDES = (1 << bit for bit in range(7))
PARSER, ALARM = 1 << 9, 1 << 10
"""Bits of $10."""
LATHE = 2
"""Value of $32."""
OV_BUSY, OV_IDLE, WCO_BUSY, WCO_IDLE = 20, 10, 30, 10
"""Number of reports between two Ov or WCO fields."""
BUSY = ("Home", "Run", "Hold", "Jog", "Door")

ALL = frozenset(
    {
        "offset",
        "system",
        "overrides",
        "spindle",
        "coolant",
        "scaling",
        "mpg",
        "homed",
        "tool",
        "probe",
        "reference",
        "input",
        "diameter",
    }
)
AFTER_RESET = frozenset({"overrides", "spindle", "coolant", "reference"})


class SavedReports(Struct):
    """Snapshot of `StatusReports`."""

    flags: list[str]
    full: bool
    override_counter: int
    offset_counter: int
    auto: bool
    numbers: tuple[float, float, int] = (0.0, 0.0, 0)
    shifted: bool = False
    codes: Modal | None = None


class StatusReports:
    """Writes status reports and remembers which fields the next one must contain.

    ``_numbers``, ``_shifted`` and ``_codes`` are the modal state that `modes_changed` has seen: F,
    S and T, whether G92 is active, and all the rest.
    """

    _numbers: tuple[float, float, int] = (0.0, 0.0, 0)
    _shifted = False
    _codes: Modal | None = None

    def __init__(self) -> None:
        self._flags: set[str] = set()
        self.restart(auto=False)

    def note(self, *fields: str) -> None:
        self._flags.update(fields)

    def ask_all(self) -> None:
        """Put every field into the next report."""
        self._flags = set(ALL)
        self._full = True

    @property
    def full(self) -> bool:
        """Whether the next report has all fields."""
        return self._full

    def restart(self, *, auto: bool) -> None:
        self._flags = set(AFTER_RESET)
        self._full = False
        self._override_counter = 0
        self._offset_counter = 0
        self.auto = auto

    def restart_counters(self) -> None:
        """Put Ov and WCO into the next reports, for a new client."""
        self._override_counter = self._offset_counter = 0

    def report(
        self, reading: FirmwareReading, settings: Mapping[int, float], *, free_bytes: int
    ) -> str:
        """The next report; ``free_bytes``: free space of the receive buffer."""
        mask = int(settings[SettingNumber.REPORT_OPTIONS])
        later = self._count(reading, mask)
        fields = [
            _state(reading, self._full or bool(mask & ALARM)),
            *_always(reading, settings, free_bytes),
        ]
        fields += self._occasional(reading, settings)
        self._flags, self._full = later, False
        return f"<{'|'.join(fields)}>"

    def modes_changed(self, modal: Modal, settings: Mapping[int, float]) -> bool:
        """Whether `[GC:…]` has to follow a report ($10); one kind of change for each report."""
        if not int(settings[SettingNumber.REPORT_OPTIONS]) & PARSER:
            return False
        numbers = modal.feed, modal.speed, modal.tool
        if numbers != self._numbers:
            self._numbers = numbers
            return True
        if any(modal.g92) != self._shifted:
            self._shifted = not self._shifted
            return True
        codes, before = _codes_of(modal), self._codes
        self._codes = codes
        return codes != before

    def _count(self, reading: FirmwareReading, mask: int) -> set[str]:
        """Advance the counters; return the fields that are postponed to the next report."""
        flags, later = self._flags, set()
        state = reading.state.partition(":")[0]
        busy = state in BUSY
        if not mask & OVERRIDES:
            flags.discard("overrides")
        elif self._override_counter == 0 or "overrides" in flags:
            flags.add("overrides")
            self._override_counter = (OV_BUSY if busy else OV_IDLE) - 1
            self._note_outputs(reading)
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

    def _note_outputs(self, reading: FirmwareReading) -> None:
        if reading.spindle != "M5":
            self._flags.add("spindle")
        if reading.flood or reading.mist:
            self._flags.add("coolant")

    def _occasional(self, reading: FirmwareReading, settings: Mapping[int, float]) -> list[str]:
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
            fields.append(f"Sc:{reading.modal.scaling.letters}")
        interval = int(settings[SettingNumber.REPORT_INTERVAL])
        if self._full and interval:
            fields.append(f"AR:{interval}" if self.auto else "AR")
        if "mpg" in flags:
            fields.append("MPG:0")
        if "homed" in flags and reading.homed:
            fields.append(f"H:{reading.homed}")
        if "diameter" in flags and settings[SettingNumber.MODE] == LATHE:
            fields.append("D:0")
        if "tool" in flags:
            fields.append(f"T:{reading.tool}")
        if "probe" in flags:
            fields.append("P:0")
        if "reference" in flags:
            fields.append("TLR:0")
        if "input" in flags and reading.input is not None:
            fields.append(f"In:{int(reading.input)}")
        if self._full:
            fields += ["FW:grblHAL", *(["$C:1"] if reading.critical else [])]
        return fields

    # ── snapshots ──

    def save(self) -> SavedReports:
        return SavedReports(
            sorted(self._flags),
            self._full,
            self._override_counter,
            self._offset_counter,
            self.auto,
            self._numbers,
            self._shifted,
            self._codes,
        )

    def load(self, saved: SavedReports) -> None:
        self._flags, self._full, self.auto = set(saved.flags), saved.full, saved.auto
        self._override_counter = saved.override_counter
        self._offset_counter = saved.offset_counter
        self._numbers, self._shifted, self._codes = saved.numbers, saved.shifted, saved.codes


def _codes_of(modal: Modal) -> Modal:
    """The active codes, with the offsets that act; the rest as at the start."""
    own = modal.offsets[modal.coordinates]
    offsets = tuple(own if n == modal.coordinates else ZERO for n in range(len(modal.offsets)))
    start = Modal()
    return replace(
        modal,
        offsets=offsets,
        feed=0.0,
        speed=0.0,
        tool=0,
        selected=0,
        line=0,
        g92=ZERO,
        g92_kept=ZERO,
        g28=ZERO,
        g30=ZERO,
        tools=(),
        cycle=start.cycle,
    )


def axis_values(values: Axes, settings: Mapping[int, float]) -> str:
    """Axis values with three decimals; linear axes in inches ($13) with four."""
    inches, rotary = (
        bool(settings[SettingNumber.REPORT_INCHES]),
        int(settings[SettingNumber.ROTARY_AXES]),
    )
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


def _state(reading: FirmwareReading, substate: bool) -> str:
    if reading.state == "Alarm" and substate and reading.alarm:
        return f"Alarm:{reading.alarm}"
    return reading.state


def _always(reading: FirmwareReading, settings: Mapping[int, float], free_bytes: int) -> list[str]:
    """Fields that depend on $10 alone."""
    mask = int(settings[SettingNumber.REPORT_OPTIONS])
    position, name = reading.position, "MPos"
    if not mask & MACHINE:
        shift = work_offset(reading.modal)
        x, y, z, a, b, c = (p - s for p, s in zip(position, shift, strict=True))
        position, name = (x, y, z, a, b, c), "WPos"
    fields = [f"{name}:{axis_values(position, settings)}"]
    if mask & BUFFER:
        fields.append(f"Bf:{reading.free},{free_bytes}")
    if mask & LINE and reading.line:
        fields.append(f"Ln:{reading.line}")
    if mask & SPEED:
        scale = MM_PER_INCH if settings[SettingNumber.REPORT_INCHES] else 1.0
        fields.append(f"FS:{_whole(reading.feed / scale)},{_whole(reading.speed)}")
    if mask & PINS and reading.switches:
        fields.append(f"Pn:{reading.switches}")
    return fields


def _whole(value: float) -> int:
    """Rounded as the firmware does: a half goes up."""
    return math.floor(value + 0.5)


def _accessories(reading: FirmwareReading, *, awaited: bool) -> str:
    letters = {"M3": "S", "M4": "C"}.get(reading.spindle, "")
    letters += "F" if reading.flood else ""
    letters += "M" if reading.mist else ""
    return letters + ("T" if reading.changing and awaited else "")


# ── names of fields, for tools that compare transcripts ─────────────────────────────────────────

_AXES = tuple(AXIS_LETTERS)
PARTS = {
    "MPos": _AXES,
    "WPos": _AXES,
    "WCO": _AXES,
    "DTG": _AXES,
    "Bf": ("blocks", "bytes"),
    "FS": ("feed", "speed"),
    "Ov": ("feed", "rapid", "spindle"),
}


REFUSALS = re.compile(r"error:|ALARM:[12]\b")


def read_answer(data: bytes, address: str) -> Decoded:
    """`ok`, `error:n`, `ALARM:n`, the name of a report in `<…>` or `[…]`, or a setting."""
    text = data.decode("latin-1").strip()
    if text.startswith("<"):
        state, *parts = text.strip("<>").split("|")
        fields = {name: value for name, colon, value in (p.partition(":") for p in parts) if colon}
        return Decoded(("status",), {"State": state, **fields})
    if text.startswith("["):
        name, _, value = text.strip("[]").partition(":")
        return Decoded((name,), {"value": value})
    if text.startswith("$"):
        name, _, value = text.partition("=")
        return Decoded((name,), {"value": value})
    refused = REFUSALS.match(text) is not None
    return Decoded((text,) if text.startswith(("ok", "error:", "ALARM:")) else (), {}, refused)


def name_field(answer: bytes, byte: int) -> str:
    """Name of the field that a byte of an answer belongs to: State, MPos.X, Bf.blocks, GC …"""
    text = answer.decode("latin-1")
    if text[:1] == "<":
        return _in_report(text[1:], byte - 1)
    if text[:1] == "[":
        return text[1:].partition(":")[0]
    if text[:1] == "$":
        return text.partition("=")[0].strip()
    if text.startswith(("ok", "error:")):
        return "verdict"
    return "ALARM" if text.startswith("ALARM:") else "text"


def _in_report(text: str, byte: int) -> str:
    before = text[: max(byte, 0)]
    field = text.split("|")[before.count("|")]
    if "|" not in before:
        return "State"
    name, _, _ = field.partition(":")
    within = before.rpartition("|")[2]
    parts = PARTS.get(name, ())
    index = within.count(",")
    return f"{name}.{parts[index]}" if ":" in within and index < len(parts) else name
