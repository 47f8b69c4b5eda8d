"""A program begun in the middle: what the lines before it have put in force, as lines to send.

Lines that only choose or store are sent as they are; of lines that move or switch only their modes
are kept. Arc, gas, spindle and outputs stay as they are: none of them comes on by itself.
"""

from collections.abc import Iterable, Sequence

from understudy.errors import Refused
from understudy.gcode.blocks import ARCS, Block, Group, number_text
from understudy.gcode.program import ProgramLine

MODES: tuple[Group, ...] = (
    "units", "distance", "plane", "feed mode", "coordinates", "path", "retract", "overrides",
    "kinematics",
)  # fmt: skip
STORING: tuple[Group, ...] = ("tool", "tool offset", "scaling")
HERE = ("G92", "G28.1", "G30.1")
"""What is stored depends on where the robot stands."""
RELATIVE_G10 = 20.0


class _Modes:
    """The modes so far, and those that were not sent yet. F is kept with the units it came in."""

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
        """The modes that are not in force yet."""
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


def opening(lines: Sequence[ProgramLine], first: int) -> list[str] | Refused:
    """The lines to send before line ``first``, for it to mean what it means in the program."""
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


def _block(line: ProgramLine) -> Block:
    assert isinstance(line.block, Block), "a program is read before it is begun"
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
        place = f"line {line.number}: {code} stores where the robot stands there"
        return Refused(f"{place}; begin at that line or before it")
    return None


def _needs_its_start(lines: Iterable[ProgramLine], modes: _Modes) -> Refused | None:
    """An arc and a relative move begin where the line before them has ended."""
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
                "begin at a line that goes straight to an absolute target"
            )
        return None
    return None
