"""`$` lines: settings, printed tables, homing, jogs and modes.

Each command returns its error number, 0 for ok, or None if the controller answers later.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from understudy.errors import Refused
from understudy.gcode.blocks import COORDINATE_SYSTEMS
from understudy.gcode.modal import modes_report
from understudy.robots.grblhal.controller import GrblController, PinCounts, Restored, Toggle
from understudy.robots.grblhal.face.reports import axis_values
from understudy.robots.grblhal.numbers import (
    ALARMS,
    AXES,
    ERRORS,
    GROUPS,
    HELP,
    RX_SIZE,
    SETTINGS,
    SLEEPING,
    ErrorCode,
)

BUILD = "20260817"
LONGEST_LABEL = 69
RESTORED: dict[str, Restored] = {"$": "settings", "#": "parameters", "*": "all"}
STANDING = ("Idle", "Alarm", "Check", "Sleep")
"""Reported states in which settings and information are printed."""
HOMING_COMMANDS = ("H", "HX", "HY", "HZ", "HA", "HB", "HC")


class DollarCommands:
    """Executes `$` lines; ``say`` sends a line of text, ``note`` adds a field to the next report.

    ``after`` is called once the line has been answered.
    """

    def __init__(
        self, controller: GrblController, pins: PinCounts, *, say: Callable[[str], None],
        note: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._controller = controller
        self._pins = pins
        self._say = say
        self._note = note
        self.after: Callable[[int], None] | None = None

    def execute(self, line: str, now: int) -> int | None:
        """Execute a whole line that begins with `$`."""
        head, equals, argument = line[1:].partition("=")
        name = head.replace(" ", "").upper()
        if not name and not equals:
            self._say(HELP)
            return 0
        given = argument if equals else None
        command = COMMANDS.get(name)
        if command is None or (given is not None and not command.takes):
            return self._setting(name, given, now)
        if self._controller.reading(now).critical and not command.always:
            return ErrorCode.CRITICAL_EVENT
        return command.run(self, given, now)

    # ── settings ──

    def _setting(self, name: str, value: str | None, now: int) -> int:
        reading = self._controller.reading(now)
        if reading.state not in STANDING:
            return ErrorCode.NOT_IDLE
        if not name.isascii() or not name.isdigit():
            return ErrorCode.UNKNOWN_COMMAND
        number = int(name[:9])
        if value is not None:
            return _code(self._controller.storage.store(number, value, now))
        if number not in self._settings():
            return ErrorCode.SETTING_NOT_AVAILABLE
        self._print_setting(number)
        return 0

    def _all_settings(self, argument: str | None, now: int) -> int:
        if self._controller.reading(now).state.partition(":")[0] in ("Run", "Hold"):
            return ErrorCode.NOT_IDLE
        for number in sorted(self._settings()):
            self._print_setting(number)
        return 0

    def _print_setting(self, number: int) -> None:
        self._say(f"${number}={SETTINGS[number].text(self._settings()[number])}")

    def _settings(self) -> Mapping[int, float]:
        settings = self._controller.storage.settings()
        return {number: value for number, value in settings.items() if number in SETTINGS}

    # ── printed tables ──

    def modes(self, now: int) -> None:
        """Print `[GC:…]`."""
        self._say(modes_report(self._controller.reading(now).modal))

    def _modes(self, argument: str | None, now: int) -> int:
        self.modes(now)
        self._note("homed")
        return 0

    def _offsets(self, argument: str | None, now: int) -> int:
        if argument is not None:
            return ErrorCode.UNKNOWN_COMMAND
        reading, settings = self._controller.reading(now), self._controller.storage.settings()
        modal = reading.modal
        rows = dict(zip(COORDINATE_SYSTEMS, modal.offsets, strict=True))
        rows |= {"G28": modal.g28, "G30": modal.g30, "G92": modal.g92, "TLO": modal.tool_length}
        for name, values in rows.items():
            self._say(f"[{name}:{axis_values(values, settings)}]")
        self.probe(now)
        return 0

    def probe(self, now: int) -> None:
        """Print `[PRB:…:0]`, the end of the last probing move."""
        reading, settings = self._controller.reading(now), self._controller.storage.settings()
        self._say(f"[PRB:{axis_values(reading.probe, settings)}:{int(reading.touched)}]")

    def _info(self, argument: str | None, now: int) -> int:
        if self._controller.reading(now).state not in STANDING:
            return ErrorCode.NOT_IDLE
        if argument is not None:
            if len(argument) > LONGEST_LABEL:
                return ErrorCode.UNKNOWN_COMMAND
            self._controller.storage.label(argument)
            return 0
        blocks = self._controller.reading(now).window
        for line in (
            f"VER:1.1f.{BUILD}:{self._controller.storage.label()}",
            f"OPT:VNML+,{blocks},{RX_SIZE},6,0",
            "AXS:6:XYZABC",
            "NEWOPT:ENUMS,RT+,TC,SED",
            "FIRMWARE:grblHAL",
            "SIGNALS:D",
            "NVS STORAGE:*Snapshot",
            "DRIVER:Understudy",
            f"DRIVER VERSION:{BUILD}",
            "AUX IO:{},{},{},{}".format(*self._pins),
        ):
            self._say(f"[{line}]")
        return 0

    def _startup_lines(self, argument: str | None, now: int) -> int:
        if self._controller.reading(now).state not in STANDING:
            return ErrorCode.NOT_IDLE
        for index, line in enumerate(self._controller.storage.startup()):
            self._say(f"$N{index}={line}")
        return 0

    def _alarms(self, argument: str | None, now: int) -> int:
        for number, text in ALARMS.items():
            self._say(f"[ALARMCODE:{number}||{text}]")
        return 0

    def _errors(self, argument: str | None, now: int) -> int:
        for number, text in ERRORS.items():
            self._say(f"[ERRORCODE:{number}||{text}]")
        return 0

    def _setting_rows(self, argument: str | None, now: int) -> int:
        for number in sorted(self._settings()):
            row = SETTINGS[number]
            parts = (row.group, row.name, row.unit, row.kind, row.shape, *row.shown)
            flags = f"{int(row.reboot)}|{int(row.zero)}"
            self._say(f"[SETTING:{number}|{'|'.join(map(str, parts))}|{flags}]")
        return 0

    def _groups(self, argument: str | None, now: int) -> int:
        for number, name in GROUPS.items():
            self._say(f"[SETTINGGROUP:{number}|{AXES if number > AXES else 0}|{name}]")
        return 0

    def _help(self, argument: str | None, now: int) -> int:
        self._say("Help topics:")
        self._say(f" Commands: {' '.join(f'${name}' for name in COMMANDS)}")
        self._say(" Settings: $ES, $EG; alarms: $EA; errors: $EE")
        return 0

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


def _code(refused: Refused | None) -> int:
    return refused.code if refused else 0


COMMANDS: dict[str, Command] = {
    "$": Command(DollarCommands._all_settings),
    "+": Command(DollarCommands._all_settings),
    "#": Command(DollarCommands._offsets, takes=True),
    "G": Command(DollarCommands._modes),
    "I": Command(DollarCommands._info, takes=True),
    "I+": Command(DollarCommands._info),
    "N": Command(DollarCommands._startup_lines),
    "EA": Command(DollarCommands._alarms),
    "EE": Command(DollarCommands._errors),
    "ES": Command(DollarCommands._setting_rows),
    "EG": Command(DollarCommands._groups),
    "HELP": Command(DollarCommands._help),
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
