"""`$` lines: settings, printed tables, homing, jogs and modes.

Each command returns its error number, 0 for ok, or None if the controller answers later.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from understudy.errors import Refused
from understudy.gcode.blocks import COORDINATE_SYSTEMS, read_number
from understudy.gcode.modal import modes_report
from understudy.robots.grblhal.controller import (
    Edition,
    GrblController,
    PinCounts,
    Restored,
    Toggle,
)
from understudy.robots.grblhal.face import listings
from understudy.robots.grblhal.face.parameters import Known, parameter_text
from understudy.robots.grblhal.face.reports import axis_values
from understudy.robots.grblhal.numbers import (
    AXIS_LETTERS,
    HELP,
    LONGEST_STORED,
    RX_SIZE,
    SLEEPING,
    ErrorCode,
    HomingOption,
    SettingNumber,
)
from understudy.robots.grblhal.setting_descriptions import description
from understudy.robots.grblhal.setting_table import SETTINGS

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
        controller: GrblController,
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
            return self._list(listings.setting_details(number, self._settings()))
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
        """Print `[GC:…]`."""
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
        letters = listings.options_text(self._controller.storage.settings())
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
        self._list(listings.alarms())
        self._list(listings.errors())
        self._list(listings.groups())
        return self._list(listings.setting_rows(self._settings()))

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
            return self._list(listings.help_topics())
        return self._list(listings.help_on(topic, self._settings()))

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

    def _home(self, axes: str, now: int) -> None:
        self._controller.lines.home(axes, now)


class Command(NamedTuple):
    """A `$` command; ``takes`` a value after `=`; ``always``: also in a critical alarm."""

    run: Callable[[DollarCommands, Any, int], int | None]
    takes: bool = False
    always: bool = True


def _nothing(dollar: DollarCommands, argument: str | None, now: int) -> int:
    """Answers ok and prints nothing: there is nothing to list."""
    return 0


def _not_here(dollar: DollarCommands, argument: str | None, now: int) -> int:
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


COMMANDS: dict[str, Command] = {
    "$": Command(DollarCommands._all_settings, takes=True),
    "+": Command(DollarCommands._all_settings),
    "#": Command(DollarCommands._offsets, takes=True),
    "G": Command(DollarCommands._modes),
    "I": Command(DollarCommands._info, takes=True),
    "I+": Command(DollarCommands._full_info),
    "N": Command(DollarCommands._startup_lines),
    "EA": Command(lambda d, a, now: d._list(listings.alarms())),
    "EAG": Command(lambda d, a, now: d._list(listings.alarms_csv())),
    "EE": Command(lambda d, a, now: d._list(listings.errors())),
    "EEG": Command(lambda d, a, now: d._list(listings.errors_csv())),
    "EG": Command(lambda d, a, now: d._list(listings.groups())),
    "ES": Command(lambda d, a, now: d._list(listings.setting_rows(d._settings()))),
    "ESG": Command(lambda d, a, now: d._list(listings.settings_csv(d._settings()))),
    "ESH": Command(lambda d, a, now: d._list(listings.settings_table(d._settings()))),
    "E*": Command(DollarCommands._everything),
    "SED": Command(DollarCommands._describe, takes=True),
    "SPINDLES": Command(DollarCommands._spindles),
    "SPINDLESH": Command(DollarCommands._spindle_rows),
    "LIM": Command(
        lambda d, a, now: d._limit_inputs("[LIMITS:{},,,]", d._controller.reading(now).limits)
    ),
    "LEV": Command(
        lambda d, a, now: d._limit_inputs(
            "[LASTEVENTS:,{},,,]", d._controller.reading(now).limit_event
        )
    ),
    "HSS": Command(
        lambda d, a, now: d._limit_inputs("[HOMES:{},:L]", d._controller.reading(now).limits)
    ),
    **dict.fromkeys(("PINS", "PINSTATE", "PORTS", "DWNGRD"), Command(_nothing)),
    "TLR": Command(_nothing, always=False),
    "TPW": Command(_not_here, always=False),
    **dict.fromkeys(("RTC", "SDS", "REBOOT"), Command(_not_here, takes=True)),
    **dict.fromkeys(("SD", "SR"), Command(_not_here, takes=True, always=False)),
    "RST": Command(DollarCommands._restore, takes=True),
    "J": Command(DollarCommands._jog, takes=True, always=False),
    "N0": Command(lambda d, a, now: d._store_startup(0, a, now), takes=True, always=False),
    "N1": Command(lambda d, a, now: d._store_startup(1, a, now), takes=True, always=False),
    "X": Command(lambda d, a, now: _code(d._controller.switches.unlock(now)), True, always=False),
    "C": Command(DollarCommands._check, always=False),
    "SLP": Command(DollarCommands._sleep, always=False),
    "B": Command(lambda d, a, now: d._toggle("block delete", now), always=False),
    "S": Command(lambda d, a, now: d._toggle("single block", now), always=False),
    "O": Command(lambda d, a, now: d._toggle("optional stop", now), always=False),
    **{
        name: Command(
            lambda d, a, now, axes=name[1:]: d._home(axes, now),  # type: ignore[misc]
            takes=True,
            always=False,
        )
        for name in HOMING_COMMANDS
    },
}
