"""Differences from the firmware that remain on purpose: docs/robots/grblhal.md lists them.

A session is not compared any further after one of them.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Played(NamedTuple):
    """The steps up to a difference with the firmware's answers; `in_report`: only the report at the
    end of the last answer differs."""

    steps: Sequence[bytes]
    answers: Sequence[Sequence[str]]
    in_report: bool

    @property
    def report(self) -> str:
        return self.answers[-1][-1]


DOOR_INPUT = re.compile(r"\|Pn:[A-Z]*D")
INCHES = re.compile(r"\|MPos:-?\d+\.\d{4},")
RESTARTS = re.compile(r"GrblHAL |<Check")
DOOR, ACKNOWLEDGED, STARTS = b"\x84", b"\xa3", (b"~", b"\x81")
LONG_LIST = 100
"""Lines; a list of all settings is longer."""
LOST = {"k": "ok", "[S:iabe]": "[MSG:Disabled]"}
"""Lines of which the firmware's PC program loses characters: it resets itself while it sends."""


def whole_lines(lines: Sequence[str]) -> list[str]:
    """The firmware's lines with the characters that its PC program has lost."""
    return [LOST.get(line, line) for line in lines]


def reason(played: Played) -> str:
    """The known reason why the answer to the last step differs; empty if there is none."""
    return next((text for text, holds in MASKS.items() if holds(played)), "")


def _inverts_door(played: Played) -> bool:
    """$14 inverts the input of the door, which is then on; no machine of ours has this input."""
    return DOOR_INPUT.search(played.report) is not None


def _keeps_inches(played: Played) -> bool:
    """After `$RST` the firmware goes on with reports in inches although $13 is 0."""
    restored = _last(played.steps, rb"(?i)\$RST=[$*]")
    return INCHES.search(played.report) is not None and restored > _last(
        played.steps, rb"\$13=[01]\s"
    )


def _drops_motion(played: Played) -> bool:
    """Of lines that waited in a hold or a tool change, `$RST` and `$C` act in the firmware before
    the motion of the others has begun, which is lost; the machine carries it out first."""
    starts = played.in_report and played.steps[-1] in STARTS
    return starts and any(map(RESTARTS.match, played.answers[-1]))


def _loses_tool_change(played: Played) -> bool:
    """A door that is opened during an M6 leaves the firmware without an ear for lines."""
    return _in_tool_change(played, DOOR)


def _forgets_new_tool(played: Played) -> bool:
    """After 0xA3 in a tool change and lines that were executed, the firmware keeps the old tool."""
    return played.in_report and _in_tool_change(played, ACKNOWLEDGED)


def _ends_motion_in_list(played: Played) -> bool:
    """The firmware waits while it sends a long list, and motion that has begun ends meanwhile; the
    machine sends the list at once, and refuses the lines after it."""
    return played.steps[-1] in STARTS and len(played.answers[-1]) > LONG_LIST


def _has_no_answer(played: Played) -> bool:
    """An arc with R whose end is straight above its start is never answered."""
    arc = re.search(rb"(?i)R-?[\d.]", played.steps[-1]) is not None
    return arc and played.report.startswith("<Idle") and len(played.answers[-1]) == 1


def _in_tool_change(played: Played, step: bytes) -> bool:
    """Whether this step came in a tool change."""
    changing = [answer[-1].startswith("<Tool") for answer in played.answers]
    return (step, True) in zip(played.steps[1:], changing, strict=False)


def _last(steps: Sequence[bytes], pattern: bytes) -> int:
    """Number of the last step like this; 0 if there is none."""
    return max((n for n, step in enumerate(steps, 1) if re.match(pattern, step)), default=0)


MASKS: dict[str, Callable[[Played], bool]] = {
    "$14 inverts the input of the door": _inverts_door,
    "reports in inches after $RST": _keeps_inches,
    "$RST or $C among lines that waited": _drops_motion,
    "a door in a tool change": _loses_tool_change,
    "0xA3 in a tool change": _forgets_new_tool,
    "a long list among lines that waited": _ends_motion_in_list,
    "an arc with R that is never answered": _has_no_answer,
}
