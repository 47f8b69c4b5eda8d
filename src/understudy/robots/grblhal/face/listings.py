"""Lists that `$` commands print: alarms, errors, settings with their details, help."""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from understudy.robots.grblhal.numbers import HomingOption, SettingNumber
from understudy.robots.grblhal.setting_descriptions import description
from understudy.robots.grblhal.setting_table import (
    AXES,
    BITS,
    BOOL,
    CHOICE,
    DECIMAL,
    GROUPS,
    MASK,
    SWITCHED_BITS,
    WHOLE,
    SettingRow,
    row_of,
)
from understudy.robots.grblhal.settings import PROBE_OVERRIDE, REST_AT_OFFSETS
from understudy.robots.grblhal.texts import ALARMS, ERRORS

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
    """``homing``: $22; the commands of homing stand before that of its switches."""
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
