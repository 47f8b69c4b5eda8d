"""G65, G66, G67 and M98: macro calls of a controller that stores no files.

The firmware has only seven macros of its own; the call of any other is refused. What it refuses,
and how much of the line is carried out before, follows the firmware.
"""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from understudy.errors import Refused
from understudy.gcode import error_numbers
from understudy.gcode.blocks import TAKES_M_WORDS
from understudy.gcode.modal import ModalCall
from understudy.gcode.work import Work

LAST_NUMBER = 65535
BUILT_IN = range(1, 8)
VALUES = frozenset("ABCEFHIJKQRSTUVWXYZ")
"""Letters whose values a macro gets; all other words of the line belong to the line."""
LAST_PARAMETER = 5000
MOST_CALLS = 100
"""Calls of G66 that are active at once: as many as the memory of a controller holds, about."""
CHECKED_GROUPS = (
    "macro",
    "nonmodal",
    "motion",
    "plane",
    "distance",
    "feed mode",
    "units",
    "scaling",
    "tool",
)
"""Groups of commands that the firmware still checks in a line with a macro call."""
CALLED_AFTER = ("G0", "G1")
"""Motions after which G66 calls its macro."""

Given = Mapping[str, float]


def check_call(work: Work) -> Refused | None:
    """The P word of a call; the words that the macro takes are removed from the line."""
    name = _active(work)
    if not name:
        return None
    given = work.command("macro")
    if given in TAKES_M_WORDS and work.old.calls and work.old.calls[-1].name == "G66.1":
        message = "cannot be called while G66.1 is active"
        return work.refuse(error_numbers.MODAL_CONFLICT, given, message)
    if name != "G67" and not work.old.calls:
        if not work.has("P"):
            return work.missing(name, "P")
        if work.value("P") > LAST_NUMBER:
            return work.refuse(error_numbers.RANGE, "P", f"macros are numbered 0 to {LAST_NUMBER}")
    if given in ("G66", "G66.1") and len(work.old.calls) >= MOST_CALLS:
        message = f"{MOST_CALLS} macros are active: end one with G67"
        return work.refuse(error_numbers.CALL_STACK, given, message)
    work.use("LP")
    if name == "G67":
        work.changes["calls"] = work.old.calls[:-1]
    if name in TAKES_M_WORDS:
        _leave_values_to_macro(work)
    return None


def call(work: Work) -> Refused | None:
    """Calls the macro of a line with G65 or G66.1, of which nothing else is carried out."""
    name = _active(work)
    if name == "G65":
        return run(work, _given_call(work, name))
    chosen = _given_call(work, name)
    if work.old.calls:
        active, given = work.old.calls[-1], dict(chosen.values)
        chosen = replace(
            active, values=tuple((each, given.get(each, old)) for each, old in active.values)
        )
    return run(work, chosen)


def takes_whole_line(work: Work) -> bool:
    """Whether the line is only a macro call: G65, G66.1, and every line while G66.1 is active."""
    return _active(work) in ("G65", "G66.1")


def remember_call(work: Work, name: str = "G66") -> ModalCall:
    """The macro of G66 or G66.1."""
    return _given_call(work, name)


def call_at_end(work: Work) -> ModalCall | None:
    """The macro that is called last in a line: that of M98, or of G66 after a motion.

    The firmware forgets an M98 in a line with a straight motion.
    """
    if work.axis == "motion" and work.motion in CALLED_AFTER:
        return work.old.calls[-1] if work.old.calls else None
    if work.command("macro") == "M98":
        return replace(_given_call(work, "M98"), values=())
    return None


def _active(work: Work) -> str:
    name = work.command("macro")
    if not name and work.old.calls and work.old.calls[-1].name == "G66.1":
        return "G66.1"
    return name


def _leave_values_to_macro(work: Work) -> None:
    block = work.block
    commands = {group: each for group, each in block.commands.items() if group in CHECKED_GROUPS}
    taken = VALUES
    if "macro" not in commands:  # G66.1 is active: its macro takes only the words that it has
        taken = frozenset(letter for letter, _ in work.old.calls[-1].values)
    values = {letter: value for letter, value in block.values.items() if letter not in taken}
    work.use("".join(taken))
    work.named.clear()
    work.axis = block.axis
    work.given = dict(block.values)
    work.block = replace(block, commands=commands, values=values)


def _given_call(work: Work, name: str) -> ModalCall:
    given = work.given or work.block.values
    repeats = int(given.get("L", 0.0)) or (0 if work.old.calls else 1)
    values = tuple((letter, value) for letter, value in given.items() if letter in VALUES)
    return ModalCall(name, given.get("P", 0.0), repeats, values)


# ── the firmware's own macros ───────────────────────────────────────────────────────────────────


def run(work: Work, called: ModalCall) -> Refused | None:
    """Calls one of the firmware's own macros; every other one is refused."""
    number = int(called.number) % (LAST_NUMBER + 1)
    if number not in BUILT_IN:
        message = f"there is no macro {number} on this controller"
        return work.refuse(error_numbers.RANGE, called.name, message)
    if called.repeats > 1:
        return work.refuse(error_numbers.RANGE, called.name, "calls this macro only once")
    code = MACROS[number](work, dict(called.values))
    return work.refuse(code, called.name, f"macro {number} refuses its values") if code else None


def _read_setting(work: Work, given: Given) -> int:
    if "Q" not in given:
        return error_numbers.MISSING_WORD
    return 0 if int(given["Q"]) in work.dialect.settings else error_numbers.RANGE


def _read_tool(work: Work, given: Given) -> int:
    if not {"Q", "R"} <= given.keys():
        return error_numbers.MISSING_WORD
    known = work.old.tool_in_table(int(given["Q"])) is not None and 0 <= given["R"] < 6
    return 0 if known else error_numbers.TOOL


def _use_parameter(work: Work, given: Given) -> int:
    if "I" not in given:
        return error_numbers.MISSING_WORD
    writable = 1 <= int(given["I"]) <= LAST_PARAMETER
    return error_numbers.RANGE if "Q" in given and not writable else 0


def _choose_probe(work: Work, given: Given) -> int:
    if "Q" not in given:
        return error_numbers.MISSING_WORD
    return 0 if given["Q"] == 0 else error_numbers.RANGE


MACROS: dict[int, Callable[[Work, Given], int]] = {
    1: _read_setting,
    2: _read_tool,
    3: _use_parameter,
    4: lambda work, given: 0,
    5: _choose_probe,
    6: lambda work, given: 0,
    7: lambda work, given: error_numbers.UNSUPPORTED,
}
"""grblHAL's own macros; each returns an error number. No result of them can be read: expressions
are not part of this build."""
