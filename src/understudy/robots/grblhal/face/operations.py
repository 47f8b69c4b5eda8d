"""What a client can ask of the grblHAL face, made from the tables that the firmware reads.

Every row is in a recorded session of the real firmware, which a test checks.
"""

from collections.abc import Iterator, Mapping
from functools import cache

from understudy.gcode.blocks import COMMANDS as CODES
from understudy.gcode.blocks import SYNCHRONIZED
from understudy.gcode.dialect import GRBLHAL_MACHINE, TABLE_CODES
from understudy.ports.decoder import Operation, Operations, Sections, Status, all_rows
from understudy.robots.grblhal.face.dollar import COMMAND_HELP, _not_here
from understudy.robots.grblhal.face.dollar import COMMANDS as DOLLAR
from understudy.robots.grblhal.numbers import OVERRIDES, TOGGLES, Realtime, SettingNumber
from understudy.robots.grblhal.setting_table import SETTINGS, description

RECORDED = "tests/robots/grblhal/judge/test_golden_chats.py"

NO_ENCODER = "error:20 as in the firmware: its spindle has no encoder"
NOTES: Mapping[str, tuple[Status, str]] = {
    **dict.fromkeys((*SYNCHRONIZED, "G95"), ("refused", NO_ENCODER)),
    **dict.fromkeys(TABLE_CODES | {"G43.2"}, ("refused", "error:20: no tool table in this build")),
    "G61.1": ("refused", "error:20 as in the firmware"),
    "G64": ("refused", "error:20 as in the firmware"),
    "M428": ("refused", "error:20: only an arm's own dialect has it"),
    "M429": ("refused", "error:20: only an arm's own dialect has it"),
    "G65": ("partly", "the firmware's own macros; there are no files"),
    "G66": ("partly", "there are no files"),
    "G66.1": ("partly", "there are no files"),
    "M98": ("partly", "there are no files"),
    "G5": ("emulated", "cut into lines as the firmware cuts it"),
    "$LIM": ("partly", "the limit inputs; other inputs are left empty"),
    "$HSS": ("partly", "the homing inputs; other inputs are left empty"),
    **dict.fromkeys(("$PINS", "$PINSTATE", "$PORTS"), ("formal", "ok; nothing is listed")),
    "$DWNGRD": ("formal", "ok, without an effect"),
    "$TLR": ("formal", "ok; there is no tool length reference"),
    "$14": ("partly", "an inverted door input does not open the door"),
    "0xA2": ("refused", "error:20: there is no control loop to report"),
}
FIRST_OF_AXES, AFTER_AXES = SettingNumber.STEPS_PER_UNIT, SettingNumber.TRAVEL + 6
WITHOUT_MOTION = "ok without motion, as in the firmware"
STORED = "stored, checked and printed; nothing else reads it"

DOLLAR_MEANINGS: Mapping[str, str] = {
    "X": "clear an alarm",
    "C": "check mode on or off",
    "RST": "restore settings, offsets or everything",
    "SPINDLES": "list the spindles",
    "SPINDLESH": "list the spindles for programs",
    "PINS": "list the pins",
    "PINSTATE": "list the states of the pins",
    "HSS": "states of the homing inputs",
    "SLP": "sleep",
    "RTC": "clock",
    "SDS": "a plug-in's command, not part of this build",
    "SD": "a plug-in's command, not part of this build",
    "SR": "a plug-in's command, not part of this build",
    "REBOOT": "restart the board",
    "O": "toggle optional stop",
    "H": "home all axes",
}
REALTIME: Mapping[int, str] = {
    Realtime.STATUS: "status report",
    Realtime.STATUS_LEGACY: "status report",
    Realtime.STATUS_8BIT: "status report",
    Realtime.HOLD: "feed hold",
    Realtime.HOLD_8BIT: "feed hold",
    Realtime.START: "cycle start",
    Realtime.START_8BIT: "cycle start",
    Realtime.RESET: "reset",
    Realtime.EXIT: "reset",
    Realtime.STOP: "stop: brake and drop the queue",
    Realtime.MODES: "active modes",
    Realtime.DOOR: "safety door",
    Realtime.JOG_CANCEL: "end a jog",
    Realtime.FULL_STATUS: "status report with all fields",
    Realtime.AUTO_REPORT: "automatic reports on or off",
    Realtime.TOOL_ACKNOWLEDGE: "acknowledge a tool change",
    Realtime.CONTROL_LOOP_LOG: "report of the control loop",
    **{
        byte: f"{what} override {f'{percent:+d}' if relative else percent} %"
        for byte, (what, percent, relative) in OVERRIDES.items()
    },
    **{byte: f"toggle {what}" for byte, what in TOGGLES.items()},
}


def realtime_name(byte: int) -> str:
    """The name of a real-time command: its character, or its number."""
    return chr(byte) if byte in b"?!~" else f"0x{byte:02X}"


@cache
def operations() -> Sections:
    return {
        "G and M codes": [*_codes(), _row("T", "number of the next tool")],
        "$ commands": list(_dollar()),
        "Settings": list(_settings()),
        "Real-time bytes": [_row(realtime_name(byte), text) for byte, text in REALTIME.items()],
    }


@cache
def operations_of_wire() -> Operations:
    return all_rows(operations())


def _row(name: str, meaning: str, status: Status = "emulated", note: str = "") -> Operation:
    status, note = NOTES.get(name, (status, note))
    return Operation(name, meaning, status, "real firmware", RECORDED, note)


def _codes() -> Iterator[Operation]:
    for name, code in CODES.items():
        if name in GRBLHAL_MACHINE.accepted_only:
            yield _row(name, code.meaning, "formal", WITHOUT_MOTION)
        else:
            yield _row(name, code.meaning)


def _dollar() -> Iterator[Operation]:
    helped = {name.partition("=")[0]: text.rstrip(".") for name, text in COMMAND_HELP}
    yield _row("$", "short help")
    yield _row("$HELP", "help on commands and settings")
    for name, command in DOLLAR.items():
        axis = name[1:] if name.startswith("H") and len(name) == 2 else ""
        meaning = DOLLAR_MEANINGS.get(name) or helped.get(name, f"home axis {axis}" if axis else "")
        if command.run is _not_here:
            yield _row(f"${name}", meaning, "refused", "error:3: this build does not have it")
        else:
            yield _row(f"${name}", meaning)


def _settings() -> Iterator[Operation]:
    acting = {number for number in vars(SettingNumber).values() if isinstance(number, int)}
    for number in sorted(SETTINGS):
        if number in acting or FIRST_OF_AXES <= number < AFTER_AXES:
            yield _row(f"${number}", description(number))
        else:
            yield _row(f"${number}", description(number), "formal", STORED)
