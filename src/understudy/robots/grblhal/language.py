"""G-code as the language of a program: reading its lines, and starting in the middle.

The lines before the first one are not run. Those of them that only select or store are sent as
they are; of those that move or switch only the modes are sent (`opening`).

Arc, gas, spindle and outputs stay as they are, so a start inside a seam would weld nothing.
`process_before` finds what the earlier lines have switched on; the operator decides whether it is
switched on again (`restoring`): at the place where the first line begins, which the robot has to
reach first, or the arc would burn on the way there.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import dist
from typing import NamedTuple

from understudy.errors import Refused
from understudy.gcode.blocks import ARCS, COMMANDS, Block, Group, number_text
from understudy.gcode.dialect import MM_PER_INCH, Dialect
from understudy.gcode.program import ProgramLine, program_lines
from understudy.ports.program import LanguageWord, Switched
from understudy.units import MM

TO_POSE = "G1 X{x} Y{y} Z{z} A{rx} B{ry} C{rz}"
TO_JOINTS = "G1 X{j1} Y{j2} Z{j3} A{j4} B{j5} C{j6}"


class GcodeLanguage(NamedTuple):
    """`Language` of a controller that reads G-code."""

    dialect: Dialect

    @property
    def target_line(self) -> str:
        return TO_POSE if self.dialect.two_frames else TO_JOINTS

    def lines(self, text: str) -> Iterator[ProgramLine]:
        return program_lines(text, self.dialect)

    def words(self) -> list[LanguageWord]:
        """The codes that the controller has."""
        return [
            LanguageWord(each.name, each.meaning, each.parameters)
            for each in COMMANDS.values()
            if each.name not in self.dialect.without
        ]

    def opening(self, lines: Sequence[ProgramLine], first: int) -> list[str] | Refused:
        """The lines before line ``first`` that give it the same effect as in a full run."""
        modes = _Modes()
        sent: list[str] = []
        for line in lines[: first - 1]:
            if refused := _stores_place(line):
                return refused
            block = _block(line)
            if _only_stores(block):
                sent += [*modes.take(), line.text.strip()]
            modes.note(block)
        sent += modes.take()
        if modes.motion in ("G0", "G1"):
            sent.append(modes.motion)
        return _needs_its_start(lines[first - 1 :], modes) or sent

    def process_before(self, lines: Sequence[ProgramLine], first: int) -> tuple[Switched, ...]:
        """What the lines before ``first`` have switched on and not off again, in their order."""
        last = _last_switches(lines, first)
        on = [each for each in last.values() if not (_is_off(each) or each.analog)]
        return tuple(sorted(on, key=lambda each: each.line))

    def restoring(self, lines: Sequence[ProgramLine], first: int) -> list[str] | Refused:
        return self.going_on(lines, first, 0.0)

    def going_on(
        self, lines: Sequence[ProgramLine], first: int, along: float
    ) -> list[str] | Refused:
        """The lines that bring the robot ``along`` metres behind the start of line ``first``, and
        restore the process there.

        Of each group of lines between two moves that switched something, the part from that line
        on is sent again, with the waits that belong to it."""
        place = _start_of(lines, first, self.dialect)
        if place is None:
            return Refused(
                f"line {first} begins where an earlier line ends, and no line before it names that "
                "place in full: begin at an earlier line"
            )
        if along > 0.0:
            on_line = _place_along(lines, first, place, along)
            if isinstance(on_line, Refused):
                return on_line
            place = on_line
        words = " ".join(f"{letter}{number_text(value)}" for letter, value in place.items())
        blocks = [_block(line) for line in lines[: first - 1]]
        motions = [block.commands["motion"] for block in blocks if "motion" in block.commands]
        again = [each for each in motions[-1:] if each in ("G0", "G1")]
        return [f"G1 {words}", *_switching_lines(lines, first), *again]


# ── the start in the middle of a program ──────────────────────────────────────────────────────────


MODES: tuple[Group, ...] = (
    "units",
    "distance",
    "plane",
    "feed mode",
    "coordinates",
    "path",
    "retract",
    "overrides",
    "kinematics",
)
STORING: tuple[Group, ...] = ("tool", "tool offset", "scaling")
HERE = ("G92", "G28.1", "G30.1")
"""Commands that store the position of the robot."""
RELATIVE_G10 = 20.0


class _Modes:
    """The modes so far, and those that were not sent yet. F is kept with its units."""

    def __init__(self) -> None:
        self.motion = ""
        self.codes: dict[Group, str] = {}
        self._unsent: dict[Group, str] = {}
        self._feed: tuple[str, float] | None = None

    def note(self, block: Block) -> None:
        for group in MODES:
            if group in block.commands:
                self.codes[group] = self._unsent[group] = block.commands[group]
        self.motion = block.commands.get("motion", self.motion)
        if "F" in block.values and self.codes.get("feed mode") != "G93":
            self._feed = self.codes.get("units", ""), block.values["F"]

    def take(self) -> list[str]:
        """Lines for the modes that were not sent yet."""
        lines = []
        if self._feed is not None:
            units, feed = self._feed
            lines.append(f"{units} F{number_text(feed)}".strip())
            if units:
                self._unsent["units"] = self.codes["units"]
        if self._unsent:
            lines.append(" ".join(self._unsent.values()))
        self._unsent, self._feed = {}, None
        return lines


def _block(line: ProgramLine) -> Block:
    assert isinstance(line.block, Block), "a program is checked before it starts"
    return line.block


def _only_stores(block: Block) -> bool:
    groups = set(block.commands)
    storing = groups & set(STORING) or block.commands.get("nonmodal") == "G10"
    others = groups - set(STORING) - set(MODES) - {"nonmodal"}
    selects = "T" in block.values and not groups
    return bool(storing and not others) or selects


def _moves(block: Block) -> bool:
    return block.axis in ("motion", "") and any(letter in block.values for letter in "XYZABCUVW")


def _stores_place(line: ProgramLine) -> Refused | None:
    block = _block(line)
    code = block.commands.get("nonmodal", "")
    if code in HERE or (code == "G10" and block.values.get("L") == RELATIVE_G10):
        place = f"line {line.number}: {code} stores the position of the robot at that line"
        return Refused(f"{place}; begin at that line or before it")
    return None


def _needs_its_start(lines: Iterable[ProgramLine], modes: _Modes) -> Refused | None:
    """Refuses a first move that depends on the end of the line before it: an arc, or relative."""
    for line in lines:
        block = _block(line)
        modes.note(block)
        if not _moves(block):
            continue
        relative = modes.codes.get("distance") == "G91"
        if relative or modes.motion in ARCS:
            what = "is relative (G91)" if relative else "is an arc"
            return Refused(
                f"line {line.number} {what} and needs its starting point; "
                "begin at a straight line to an absolute target"
            )
        return None
    return None


# ── process: what the earlier lines have switched on ──

AXES = "XYZABCUVW"
OUTPUT_ON, OUTPUT_OFF = ("M62", "M64"), ("M63", "M65")
ANALOG_OUTPUTS = ("M67", "M68")
PROGRAM_ENDS, SWITCHED_OFF_AT_END = ("M2", "M30"), ("spindle", "M7", "M8")
OFF = ("M5", "M9", *OUTPUT_OFF)
PROCESS_GROUPS: tuple[Group, ...] = ("spindle", "coolant", "io")


def _place_along(
    lines: Sequence[ProgramLine], first: int, start: dict[str, float], along: float
) -> dict[str, float] | Refused:
    """The place at a distance (m) from the start of a straight line."""
    units = [_block(line).commands.get("units", "") for line in lines[:first]]
    scale = (
        MM_PER_INCH * MM if next((each for each in reversed(units) if each), "G21") == "G20" else MM
    )
    target = {letter: v for letter, v in _block(lines[first - 1]).values.items() if letter in start}
    ends = start | target
    length = dist([start[letter] for letter in "XYZ"], [ends[letter] for letter in "XYZ"]) * scale
    if any(ends[letter] != start[letter] for letter in "ABCUVW" if letter in start):
        return Refused(f"line {first} turns the tool: begin at its start")
    if length <= 0.0:
        return Refused(f"line {first} is no straight line of the tool: begin at its start")
    share = min(along / length, 1.0)
    return {letter: at + (ends[letter] - at) * share for letter, at in start.items()}


def _last_switches(lines: Sequence[ProgramLine], first: int) -> dict[str, Switched]:
    """The last command of each channel: spindle, mist, flood, and every output."""
    last: dict[str, Switched] = {}
    for line in lines[: first - 1]:
        block = _block(line)
        if block.commands.get("flow") in PROGRAM_ENDS:
            last = {key: each for key, each in last.items() if key not in SWITCHED_OFF_AT_END}
        for channel, switched in _switches(block, line.number):
            last[channel] = switched
    return last


def _switches(block: Block, line: int) -> Iterator[tuple[str, Switched]]:
    spindle, coolant = block.commands.get("spindle"), block.commands.get("coolant")
    if spindle:
        yield "spindle", Switched(spindle, line)
    if coolant:
        for channel in ("M7", "M8") if coolant == "M9" else (coolant,):
            yield channel, Switched(coolant, line)
    command, values = block.commands.get("io", ""), block.values
    if command in (*OUTPUT_ON, *OUTPUT_OFF):
        pin = int(values.get("P", 0))
        yield f"output {pin}", Switched(f"{command} P{pin}", line, pin)
    elif command in ANALOG_OUTPUTS:
        port = int(values.get("E", 0))
        yield f"analog {port}", Switched(f"{command} E{port}", line, analog=True)


def _switching_lines(lines: Sequence[ProgramLine], first: int) -> list[str]:
    last = _last_switches(lines, first).values()
    effective = {each.line for each in last if not _is_off(each)}
    sent: list[str] = []
    follows = False  # a line that switched something, with no move since
    for line in lines[: first - 1]:
        block = _block(line)
        if moves := _moves(block) or _goes_home(block):
            follows = False
        if line.number in effective:
            sent.append(_switch_words(block) if moves else line.text.strip())
            follows = not moves
        elif follows and ("io" in block.commands or block.commands.get("nonmodal") == "G4"):
            sent.append(line.text.strip())
    return sent


def _is_off(switched: Switched) -> bool:
    return switched.word.split()[0] in OFF


def _goes_home(block: Block) -> bool:
    return block.commands.get("nonmodal") in ("G28", "G30")


def _switch_words(block: Block) -> str:
    """The switching words of a line that also moves."""
    words = [block.commands[group] for group in PROCESS_GROUPS if group in block.commands]
    letters = "SPEQ" if "io" in block.commands else "S"
    words += [
        f"{each}{number_text(block.values[each])}" for each in letters if each in block.values
    ]
    return " ".join(words)


def _start_of(
    lines: Sequence[ProgramLine], first: int, dialect: Dialect
) -> dict[str, float] | None:
    """The place where line ``first`` begins: X, Y, Z and the other words that the program uses, or
    all joints; None if the lines before it do not name it in full."""
    place: dict[str, float] = {}
    used: set[str] = set()
    frame, kinematics, relative = "", "", False
    for line in lines[: first - 1]:
        block = _block(line)
        commands = block.commands
        kinematics = commands.get("kinematics", kinematics)
        relative = commands.get("distance", "G91" if relative else "G90") == "G91"
        if _moves_zero(block) or _goes_home(block):
            place = {}
        if not _moves(block):
            continue
        now = _frame_of(block, kinematics, dialect)
        if relative or now != frame or commands.get("nonmodal") == "G53":
            place, frame = {}, now
        if not relative and commands.get("nonmodal") != "G53":
            named = {letter: block.values[letter] for letter in AXES if letter in block.values}
            place |= named
            used |= set(named) if now == "tool" else set()
        if commands.get("motion", "").startswith("G38"):
            place = {}
    wanted = set("ABCUVW") if frame == "joints" else {*"XYZ", *used}
    return place if wanted <= set(place) else None


def _frame_of(block: Block, kinematics: str, dialect: Dialect) -> str:
    """Whether axis words are the tool's pose or joints, in a dialect that has both."""
    if not dialect.two_frames or any(letter in block.values for letter in "XYZ"):
        return "tool"
    if any(letter in block.values for letter in "UVW"):
        return "joints"
    return "tool" if kinematics == "M429" else "joints"


def _moves_zero(block: Block) -> bool:
    """Whether coordinates mean another place afterwards: units, offsets or tool have changed."""
    groups: tuple[Group, ...] = ("units", "coordinates", "tool", "tool offset", "scaling")
    return any(group in block.commands for group in groups) or block.commands.get(
        "nonmodal", ""
    ).startswith(("G10", "G92"))
