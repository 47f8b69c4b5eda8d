"""`$` lines: settings, printed tables, homing, jogs and modes.

Each command returns its error number, 0 for ok, or None if the controller answers later.

`$#=…` prints values of numbered and named parameters:

    > $#=5221\\n     < [PARAM:5221=10.5]      (X of G54)
    > $#=_metric\\n  < [PARAM:_metric=1]
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from understudy.errors import Refused
from understudy.gcode.blocks import COORDINATE_SYSTEMS, read_number
from understudy.gcode.dialect import MM_PER_INCH, Axes
from understudy.gcode.modal import modes_report, work_offset
from understudy.robots.grblhal.controller import (
    Edition,
    FirmwareReading,
    PinCounts,
    Restored,
    Toggle,
)
from understudy.robots.grblhal.face.reports import axis_values
from understudy.robots.grblhal.numbers import (
    ALARMS,
    AXIS_LETTERS,
    ERRORS,
    HELP,
    LONGEST_STORED,
    RX_SIZE,
    SLEEPING,
    ErrorCode,
    HomingOption,
    SettingNumber,
)
from understudy.robots.grblhal.setting_table import (
    AXES,
    BITS,
    BOOL,
    CHOICE,
    DECIMAL,
    GROUPS,
    MASK,
    SETTINGS,
    SWITCHED_BITS,
    WHOLE,
    SettingRow,
    description,
    fixed,
    row_of,
)
from understudy.robots.grblhal.settings import PROBE_OVERRIDE, REST_AT_OFFSETS

if TYPE_CHECKING:
    from understudy.robots.grblhal.firmware import Firmware

BUILD = "20260817"
SPINDLE_NAME = "simulated PWM spindle"
RESTORED: dict[str, Restored] = {"$": "settings", "#": "parameters", "*": "all", "&": "driver"}
STANDING = ("Idle", "Alarm", "Check")
"""Reported states in which settings are printed."""
HOMING_COMMANDS = ("H", "HX", "HY", "HZ", "HA", "HB", "HC")


class DollarCommands:
    """Executes `$` lines; ``say`` sends a line of text, ``note`` adds a field to the next report.

    ``after`` is called once the line has been answered.
    """

    def __init__(
        self,
        controller: "Firmware",
        pins: PinCounts,
        *,
        say: Callable[[str], None],
        note: Callable[[str], None],
        edition: Edition = "GrblHAL",
    ) -> None:
        self._controller = controller
        self._pins = pins
        self._say = say
        self._note = note
        self._edition = edition
        self.after: Callable[[int], None] | None = None

    def execute(self, line: str, now: int) -> int | None:
        """Execute a whole line that begins with `$`."""
        if line == "$":
            self._say(HELP)
            return 0
        head, equals, argument = line[1:].partition("=")
        name = head.replace(" ", "").upper()
        if name.startswith("HELP"):
            return self._help(name[4:] + equals + argument)
        given = argument if equals else None
        command = COMMANDS.get(name)
        if command is None or (given is not None and not command.takes):
            return self._setting(name, given, now)
        if self._controller.reading(now).critical and not command.always:
            return ErrorCode.CRITICAL_EVENT
        return command.run(self, given, now)

    # ── settings ──

    def _setting(self, name: str, value: str | None, now: int) -> int:
        if self._controller.reading(now).state not in STANDING:
            return ErrorCode.NOT_IDLE
        number, code = _number(name)
        if code or number < 0:
            return ErrorCode.UNKNOWN_COMMAND
        if value is not None:
            return _code(self._controller.storage.store(number, value, now))
        settings = self._settings()
        if number not in settings:
            return ErrorCode.SETTING_NOT_AVAILABLE
        self._print_setting(number, settings)
        return 0

    def _all_settings(self, argument: str | None, now: int) -> int:
        if argument is not None:
            number, code = _number(argument)
            if code or number < 0:
                return code
            if number not in self._settings():
                return ErrorCode.SETTING_NOT_AVAILABLE
            return self._list(setting_details(number, self._settings()))
        if self._controller.reading(now).state.partition(":")[0] in ("Run", "Hold"):
            return ErrorCode.NOT_IDLE
        settings = self._settings()
        for number in sorted(settings):
            self._print_setting(number, settings)
        return 0

    def _print_setting(self, number: int, settings: Mapping[int, float]) -> None:
        self._say(f"${number}={SETTINGS[number].text(settings[number])}")

    def _settings(self) -> Mapping[int, float]:
        settings = self._controller.storage.settings()
        return {number: value for number, value in settings.items() if number in SETTINGS}

    # ── printed tables ──

    def modes(self, now: int) -> None:
        """Print the active modes: `[GC:…]`."""
        reading = self._controller.reading(now)
        text = modes_report(replace(reading.modal, tool=reading.tool))
        spindle = f" {reading.modal.spindle} "
        pause, change = f" {reading.pause}".rstrip(), "M6 " if reading.changing else ""
        self._say(text.replace(spindle, f"{pause}{spindle}{change}", 1))

    def _modes(self, argument: str | None, now: int) -> int:
        self.modes(now)
        self._note("homed")
        return 0

    def _offsets(self, argument: str | None, now: int) -> int:
        if argument is not None:
            return self._parameter(argument, now)
        reading, settings = self._controller.reading(now), self._controller.storage.settings()
        modal = reading.modal
        rows = dict(zip(COORDINATE_SYSTEMS, modal.offsets, strict=True))
        rows |= {"G28": modal.g28, "G30": modal.g30, "G92": modal.g92}
        if modal.scaling.active:
            rows = {"G51": modal.scaling.factors, **rows}
        for name, values in rows.items():
            self._say(f"[{name}:{axis_values(values, settings)}]")
        if self._homes():
            self._say(f"[HOME:{axis_values(reading.home, settings)}:{reading.homed_axes}]")
        self._say(f"[TLO:{axis_values(modal.tool_length, settings)}]")
        self.probe(now)
        return 0

    def probe(self, now: int) -> None:
        """Print `[PRB:…:0]`, the end of the last probing move."""
        reading, settings = self._controller.reading(now), self._controller.storage.settings()
        self._say(f"[PRB:{axis_values(reading.probe, settings)}:{int(reading.touched)}]")

    def _info(self, argument: str | None, now: int) -> int:
        if self._controller.reading(now).state not in (*STANDING, "Sleep"):
            return ErrorCode.NOT_IDLE
        if argument is not None:
            if len(argument) > LONGEST_STORED:
                return ErrorCode.UNKNOWN_COMMAND
            self._controller.storage.label(argument)
            return 0
        if self._edition == "GrblHAL":
            return self._full_info(argument, now)
        self._say(self._version())
        self._say(f"[{self._sizes(now)}]")
        return 0

    def _version(self) -> str:
        return f"[VER:1.1f.{BUILD}:{self._controller.storage.label()}]"

    def _sizes(self, now: int) -> str:
        letters = options_text(self._controller.storage.settings())
        return f"OPT:{letters},{self._controller.reading(now).window},{RX_SIZE}"

    def _full_info(self, argument: str | None, now: int) -> int:
        """Print what `$I+` shows; a firmware that calls itself Grbl has no tool change."""
        grbl = self._edition == "Grbl"
        self._say(self._version())
        for line in (
            f"{self._sizes(now)},6,0",
            "AXS:6:XYZABC",
            f"NEWOPT:ENUMS,{','.join(self._new_options())}",
            "FIRMWARE:grblHAL",
            "SIGNALS:D",
            "NVS STORAGE:*Snapshot",
            "DRIVER:Understudy",
            f"DRIVER VERSION:{BUILD}",
            *(["COMPATIBILITY LEVEL:1"] if grbl else []),
            *(["AUX IO:{},{},{},{}".format(*self._pins)] if any(self._pins) else []),
        ):
            self._say(f"[{line}]")
        return 0

    def _new_options(self) -> list[str]:
        """Abilities that Grbl does not know."""
        legacy = self._controller.storage.settings()[SettingNumber.LEGACY_REALTIME]
        homing = ["HOME"] if self._homes() else []
        tools = ["TC"] if self._edition == "GrblHAL" else []
        return ["RT+" if legacy else "RT-", *homing, *tools, "SED"]

    def _homes(self) -> bool:
        options = int(self._controller.storage.settings()[SettingNumber.HOMING_CYCLE])
        return bool(options & HomingOption.ENABLED)

    def _limit_inputs(self, text: str, mask: int) -> int:
        """Print the letters of limit inputs in a line."""
        letters = (letter for axis, letter in enumerate(AXIS_LETTERS) if mask >> axis & 1)
        self._say(text.format("".join(letters)))
        return 0

    def _startup_lines(self, argument: str | None, now: int) -> int:
        if self._controller.reading(now).state not in STANDING:
            return ErrorCode.NOT_IDLE
        for index, line in enumerate(self._controller.storage.startup()):
            self._say(f"$N{index}={line}")
        return 0

    def _list(self, lines: Iterable[str]) -> int:
        for line in lines:
            self._say(line)
        return 0

    def _everything(self, argument: str | None, now: int) -> int:
        self._list(alarms())
        self._list(errors())
        self._list(groups())
        return self._list(setting_rows(self._settings()))

    def _describe(self, argument: str | None, now: int) -> int:
        number, code = _number(argument or "")
        if not code and number in self._settings():
            self._say(f"[SETTINGDESCR:{number}|{description(number)}]")
        return code

    def _spindles(self, argument: str | None, now: int) -> int:
        self._say(f"0 - {SPINDLE_NAME}")
        return 0

    def _spindle_rows(self, argument: str | None, now: int) -> int:
        values = self._settings()
        rpm = f"{values[SettingNumber.MINIMUM_RPM]:.1f},{values[SettingNumber.MAXIMUM_RPM]:.1f}"
        self._say(f"[SPINDLE:0|0|0|*DRV|{SPINDLE_NAME}|{rpm}]")
        return 0

    def _parameter(self, name: str, now: int) -> int:
        number, code = _number(name)
        numbered = not code and number >= 0
        known = Known(self._controller.reading(now), self._controller.storage.settings())
        self._say(parameter_text(name, known, number=number if numbered else None))
        return 0

    def _help(self, topic: str) -> int:
        if not topic:
            return self._list(help_topics())
        return self._list(help_on(topic, self._settings()))

    # ── actions ──

    def _jog(self, argument: str | None, now: int) -> int | None:
        if argument is None:
            return ErrorCode.UNKNOWN_COMMAND
        self._controller.lines.jog(argument, now)
        return None

    def _store_startup(self, index: int, argument: str | None, now: int) -> int | None:
        if argument is None:
            return ErrorCode.UNKNOWN_COMMAND
        self._controller.storage.store_startup(index, argument, now)
        return None

    def _restore(self, argument: str | None, now: int) -> int:
        if self._controller.reading(now).state not in ("Idle", "Alarm"):
            return ErrorCode.NOT_IDLE
        what = RESTORED.get((argument or "")[:1])
        if what is None:
            return ErrorCode.UNKNOWN_COMMAND
        refused = self._controller.storage.restore(what, now)
        self.after = None if refused else self._controller.realtime.reset
        return _code(refused)

    def _check(self, argument: str | None, now: int) -> int:
        leaving = self._controller.reading(now).state == "Check"
        self.after = self._controller.realtime.reset if leaving else None
        return _code(self._controller.switches.check(now))

    def _sleep(self, argument: str | None, now: int) -> int:
        refused = self._controller.switches.sleep(now)
        self.after = None if refused else lambda now: self._say(f"[MSG:{SLEEPING}]")
        return _code(refused)

    def _toggle(self, what: Toggle, now: int) -> int:
        on = self._controller.switches.toggle(what, now)
        self._say("[MSG:Enabled]" if on else "[MSG:Disabled]")
        return 0


class DollarCommand(NamedTuple):
    """A `$` command; ``takes`` a value after `=`; ``always``: also in a critical alarm."""

    run: Callable[[DollarCommands, Any, int], int | None]
    takes: bool = False
    always: bool = True


def _nothing(dollar: DollarCommands, argument: str | None, now: int) -> int:
    """Answers ok and prints nothing: there is nothing to list."""
    return 0


def not_here(dollar: DollarCommands, argument: str | None, now: int) -> int:
    """The machine has no clock, no encoder, no report of its motors, and no plate to probe."""
    return ErrorCode.UNKNOWN_COMMAND


def _number(text: str) -> tuple[int, int]:
    """The whole number at the begin of a text, and the error number if there is none."""
    value = read_number(text)
    if math.isnan(value):
        return 0, ErrorCode.BAD_NUMBER
    return int(value), 0 if value == int(value) else ErrorCode.UNKNOWN_COMMAND


def _code(refused: Refused | None) -> int:
    return refused.code if refused else 0


COMMANDS: dict[str, DollarCommand] = {
    "$": DollarCommand(DollarCommands._all_settings, takes=True),
    "+": DollarCommand(DollarCommands._all_settings),
    "#": DollarCommand(DollarCommands._offsets, takes=True),
    "G": DollarCommand(DollarCommands._modes),
    "I": DollarCommand(DollarCommands._info, takes=True),
    "I+": DollarCommand(DollarCommands._full_info),
    "N": DollarCommand(DollarCommands._startup_lines),
    "EA": DollarCommand(lambda d, a, now: d._list(alarms())),
    "EAG": DollarCommand(lambda d, a, now: d._list(alarms_csv())),
    "EE": DollarCommand(lambda d, a, now: d._list(errors())),
    "EEG": DollarCommand(lambda d, a, now: d._list(errors_csv())),
    "EG": DollarCommand(lambda d, a, now: d._list(groups())),
    "ES": DollarCommand(lambda d, a, now: d._list(setting_rows(d._settings()))),
    "ESG": DollarCommand(lambda d, a, now: d._list(settings_csv(d._settings()))),
    "ESH": DollarCommand(lambda d, a, now: d._list(settings_table(d._settings()))),
    "E*": DollarCommand(DollarCommands._everything),
    "SED": DollarCommand(DollarCommands._describe, takes=True),
    "SPINDLES": DollarCommand(DollarCommands._spindles),
    "SPINDLESH": DollarCommand(DollarCommands._spindle_rows),
    "LIM": DollarCommand(
        lambda d, a, now: d._limit_inputs("[LIMITS:{},,,]", d._controller.reading(now).limits)
    ),
    "LEV": DollarCommand(
        lambda d, a, now: d._limit_inputs(
            "[LASTEVENTS:,{},,,]", d._controller.reading(now).limit_event
        )
    ),
    "HSS": DollarCommand(
        lambda d, a, now: d._limit_inputs("[HOMES:{},:L]", d._controller.reading(now).limits)
    ),
    **dict.fromkeys(("PINS", "PINSTATE", "PORTS", "DWNGRD"), DollarCommand(_nothing)),
    "TLR": DollarCommand(_nothing, always=False),
    "TPW": DollarCommand(not_here, always=False),
    **dict.fromkeys(("RTC", "SDS", "REBOOT"), DollarCommand(not_here, takes=True)),
    **dict.fromkeys(("SD", "SR"), DollarCommand(not_here, takes=True, always=False)),
    "RST": DollarCommand(DollarCommands._restore, takes=True),
    "J": DollarCommand(DollarCommands._jog, takes=True, always=False),
    "N0": DollarCommand(lambda d, a, now: d._store_startup(0, a, now), takes=True, always=False),
    "N1": DollarCommand(lambda d, a, now: d._store_startup(1, a, now), takes=True, always=False),
    "X": DollarCommand(
        lambda d, a, now: _code(d._controller.switches.unlock(now)), True, always=False
    ),
    "C": DollarCommand(DollarCommands._check, always=False),
    "SLP": DollarCommand(DollarCommands._sleep, always=False),
    "B": DollarCommand(lambda d, a, now: d._toggle("block delete", now), always=False),
    "S": DollarCommand(lambda d, a, now: d._toggle("single block", now), always=False),
    "O": DollarCommand(lambda d, a, now: d._toggle("optional stop", now), always=False),
    **{
        name: DollarCommand(
            lambda d, a, now, axes=name[1:]: d._controller.lines.home(axes, now),  # type: ignore[misc]
            takes=True,
            always=False,
        )
        for name in HOMING_COMMANDS
    },
}


# ── lists: alarms, errors, settings with their details, help ──────────────────────────────────────


SPEED_ENABLES = 1 << 1
"""Bit of $9: the speed switches the spindle."""
Settings = Mapping[int, float]
"""Values by number."""
KIND_NAMES = {
    BOOL: "bool",
    BITS: "bitfield",
    SWITCHED_BITS: "xbitfield",
    CHOICE: "radiobuttons",
    MASK: "bitfield",
    WHOLE: "integer",
    DECIMAL: "float",
}
"""Data types as `$ESH` names them."""
ALL_GROUPS = dict(
    sorted({**GROUPS, 4: "Dual axis", 7: "Spindle sync", 36: "Stepper driver"}.items())
)
"""Groups with those that have no settings here, in the order in which `$HELP` looks for one."""
UNIT_NAMES = {BOOL: "boolean", BITS: "mask", SWITCHED_BITS: "mask", CHOICE: "integer", MASK: "mask"}
"""What `$ESH` prints as unit of a setting without one."""

COMMAND_HELP = (
    ("G", "output parser state."),
    ("J=<gcode>", "jog machine."),
    ("#", "output offsets, tool table, probing and home position"),
    ("#=<n>", "output value for parameter <n>."),
    ("<n>", "output setting <n> value"),
    ("<n>=<value>", "assign <value> to settings <n>"),
    ("$", "output all setting values"),
    ("$=<n>", "output setting details for setting <n>."),
    ("+", "output all setting values."),
    ("SED=<n>", "output settings description for setting <n>."),
    ("B", "toggle block delete switch."),
    ("S", "toggle single stepping switch."),
    ("O", "toggle optional stop switch (M1)."),
    ("C", "enable check mode, <Reset> to exit."),
    ("X", "unlock machine."),
    ("HSS", "report homing switches status."),
    ("HELP", "output help topics"),
    ("HELP <topic>", "output help for <topic>."),
    ("SPINDLES", "enumerate spindles, human readable."),
    ("SPINDLESH", "enumerate spindles, machine readable."),
    ("SLP", "enter sleep mode."),
    ("TLR", "set tool offset reference."),
    ("TPW", "probe tool plate."),
    ("I", "output system information"),
    ("I=<string>", "set build info string."),
    ("I+", "output extended system information."),
    ("RST=*", "restore/reset all settings."),
    ("RST=$", "restore default settings."),
    ("RST=#", "reset offsets."),
    ("N", "output startup lines."),
    ("N0", "N0=<gcode> - set startup line 0."),
    ("N1", "N1=<gcode> - set startup line 1."),
    ("EA", "enumerate alarms."),
    ("EAG", "enumerate alarms, Grbl formatted."),
    ("EE", "enumerate status codes."),
    ("EEG", "enumerate status codes, Grbl formatted."),
    ("EG", "enumerate setting groups."),
    ("ES", "enumerate settings."),
    ("ESG", "enumerate settings, Grbl formatted."),
    ("ESH", "enumerate settings, grblHAL formatted."),
    ("E*", "enumerate alarms, status codes and settings."),
    ("PORTS", "enumerate serial (UART) ports."),
    ("LEV", "output last control signal events."),
    ("LIM", "output current limit pins."),
    ("DWNGRD", "toggle setting flags for downgrade."),
)
"""`$HELP COMMANDS`."""


# ── alarms and errors ──


def alarms() -> Iterator[str]:
    return (f"[ALARMCODE:{number}||{text}]" for number, text in ALARMS.items())


def errors() -> Iterator[str]:
    return (f"[ERRORCODE:{number}||{text}]" for number, text in ERRORS.items())


def alarms_csv() -> Iterator[str]:
    yield '"Alarm Code in v1.1+"," Alarm Message in v1.0-"," Alarm Description"'
    yield from _csv(ALARMS)


def errors_csv() -> Iterator[str]:
    yield '"Error Code in v1.1+","Error Message in v1.0-","Error Description"'
    yield from _csv(ERRORS)


def _csv(texts: Mapping[int, str]) -> Iterator[str]:
    return (f'"{number}","N/A","{text}"' for number, text in texts.items())


# ── settings ──


def options_text(settings: Settings) -> str:
    """The letters of `[OPT:…]` in `$I`: abilities of the controller, some of them settings."""
    homing, probing, report, pwm = (
        int(settings.get(number, 0))
        for number in (
            SettingNumber.HOMING_CYCLE,
            SettingNumber.PROBING_OPTIONS,
            SettingNumber.REPORT_OPTIONS,
            SettingNumber.PWM_OPTIONS,
        )
    )
    letters = {
        "VNM": True,
        "Z": homing & HomingOption.ORIGIN_ZERO,
        "H": homing & HomingOption.SINGLE_AXIS,
        "T": homing & HomingOption.TWO_SWITCHES,
        "A": probing & PROBE_OVERRIDE,
        "0": pwm & SPEED_ENABLES,
        "L": not homing & HomingOption.REQUIRED,
        "+": True,
        "W": not report & REST_AT_OFFSETS,
    }
    return "".join(letter for letter, shown in letters.items() if shown)


def groups() -> Iterator[str]:
    for number, name in GROUPS.items():
        yield f"[SETTINGGROUP:{number}|{AXES if number > AXES else 0}|{name}]"


def setting_rows(settings: Settings) -> Iterator[str]:
    for number in sorted(settings):
        row = row_of(number, settings)
        parts = (row.group, row.name, row.unit, row.kind, row.shape, row.lowest, row.highest)
        yield f"[SETTING:{number}|{'|'.join(map(str, parts))}|{_flags(row, '|')}]"


def settings_csv(settings: Settings) -> Iterator[str]:
    yield '"$-Code"," Setting"," Units"," Setting Description"'
    for number in sorted(settings):
        row = row_of(number, settings)
        yield f'"{number}","{row.name}","{row.unit}","{description(number)}",'


def settings_table(settings: Settings) -> Iterator[str]:
    """`$ESH`: columns with tabs between them."""
    yield "$-Code\tSetting\tUnits\tDatatype\tData format\tSetting Description\tMin\tMax"
    for number in sorted(settings):
        row = row_of(number, settings)
        unit = row.unit or UNIT_NAMES.get(row.kind, "")
        shape = "axes" if row.kind == MASK else row.shape
        cells = (number, row.name, unit, KIND_NAMES[row.kind], shape, description(number))
        limits = f"{row.lowest}\t{row.highest}\t{_flags(row, chr(9))}"
        yield "\t".join(map(str, cells)) + f"\t{limits}"


def _flags(row: SettingRow, between: str) -> str:
    return f"{int(row.reboot)}{between}{int(row.zero)}"


def setting_details(number: int, settings: Settings) -> Iterator[str]:
    """`$$=n`: the name, the unit and the range of a setting, or the names of its bits."""
    row = row_of(number, settings)
    yield ""
    kinds = {
        BOOL: " as boolean",
        BITS: " as bitfield:",
        SWITCHED_BITS: " as bitfield where setting bit 0 enables the rest:",
        CHOICE: ":",
        MASK: " as axismask",
    }
    yield f"${number}: {row.name}{kinds.get(row.kind, _range(row))}"
    for index, name in enumerate(row.names):
        if name != "N/A":
            yield f"    {index} - {name}" + (f" ({1 << index})" if row.kind != CHOICE else "")


def _range(row: SettingRow) -> str:
    text = f" in {row.unit}" if row.unit else ""
    if row.lowest and row.highest:
        text += f", range: {row.lowest} - {row.highest}"
    elif row.lowest:
        text += f", min: {row.lowest}"
    elif row.highest:
        text += f", max: {row.highest}"
    return text + (", reboot required" if row.reboot else "")


# ── help ──


def help_topics() -> Iterator[str]:
    yield "Help topics:"
    yield " Commands"
    yield " Settings"
    yield from (f" {name}" for name in sorted(GROUPS.values()) if name != "Root")


def help_on(topic: str, settings: Settings) -> Iterator[str]:
    """Help on the commands, on all settings, or on the settings of the first group that fits."""
    pattern = topic.upper()
    if _fits(pattern, "COMMANDS"):
        yield from _command_help(int(settings[SettingNumber.HOMING_CYCLE]))
        return
    if _fits(pattern, "SETTINGS"):
        for number in sorted(settings):
            yield from setting_details(number, settings)
        return
    found = next((n for n, name in ALL_GROUPS.items() if _fits(pattern, _plain(name))), None)
    if found is None:
        yield from ("", "N/A")
        return
    yield from ("", f"---- {ALL_GROUPS[found]}:")
    for number in sorted(settings):
        if found == 0 or row_of(number, settings).group == found:
            yield from setting_details(number, settings)


def _command_help(homing: int) -> Iterator[str]:
    """Help on the commands with the setting ``homing`` ($22); the homing commands come before
    that of the limit switches."""
    for name, text in COMMAND_HELP:
        if name == "HSS" and homing & HomingOption.ENABLED:
            yield "$H - home configured axes."
        if name == "HSS" and homing & HomingOption.SINGLE_AXIS:
            yield "$H<axisletter> - home single axis."
        yield f"${name} - {text}"


def _plain(name: str) -> str:
    return name.replace(" ", "").upper()


@lru_cache(maxsize=4096)
def _fits(pattern: str, text: str) -> bool:
    """Whether a text begins as the pattern: `.` is any character, `*` repeats the one before it,
    and `$` is the end."""
    if not pattern:
        return True
    if pattern[1:2] == "*":
        rest = 0
        while not _fits(pattern[2:], text[rest:]):
            if rest == len(text) or pattern[0] not in (".", text[rest]):
                return False
            rest += 1
        return True
    if pattern == "$":
        return not text
    return text != "" and pattern[0] in (".", text[0]) and _fits(pattern[1:], text[1:])


# ── parameters, as NGC expressions have them ──────────────────────────────────────────────────────


FIRST_READ_ONLY = 5061
"""Smaller numbers belong to programs; without expressions they are 0."""
NUMBER_MASK = 0xFFFF
NAME_LENGTH = 21
FIRST_OFFSET, BETWEEN_SYSTEMS, SYSTEMS, LAST_OF_SYSTEM = 5221, 20, 9, 10
G59_INDEX = 5
VERSION, BUILD_NUMBER = 1.1, 260817.0
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
    "_vminor": lambda known: BUILD_NUMBER,
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
