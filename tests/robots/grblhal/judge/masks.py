"""Differences from the firmware that remain on purpose: docs/robots/grblhal.md lists them.

A session is not compared any further after one of them.
"""

import re
from collections.abc import Callable, Sequence

DOOR_INPUT = re.compile(r"\|Pn:[A-Z]*D")
INCHES = re.compile(r"\|MPos:-?\d+\.\d{4},")
RESTARTS = re.compile(r"GrblHAL |<Check")
LOST = {"k": "ok", "[S:iabe]": "[MSG:Disabled]"}
"""Lines of which the firmware's PC program loses characters: it resets itself while it sends."""


def whole_lines(lines: Sequence[str]) -> list[str]:
    """The firmware's lines with the characters that its PC program has lost."""
    return [LOST.get(line, line) for line in lines]


def remains(steps: Sequence[bytes], expected: Sequence[str]) -> bool:
    """Whether the answer to the last step differs for a known reason."""
    return any(mask(steps, expected) for mask in MASKS)


def _inverts_door(steps: Sequence[bytes], expected: Sequence[str]) -> bool:
    """$14 inverts the input of the door, which is then on; no machine of ours has this input."""
    return DOOR_INPUT.search(expected[-1]) is not None


def _keeps_inches(steps: Sequence[bytes], expected: Sequence[str]) -> bool:
    """After `$RST` the firmware goes on with reports in inches although $13 is 0."""
    restored = _last(steps, rb"(?i)\$RST=[$*]")
    return INCHES.search(expected[-1]) is not None and restored > _last(steps, rb"\$13=[01]\s")


def _drops_motion(steps: Sequence[bytes], expected: Sequence[str]) -> bool:
    """Of lines that waited in a hold or a tool change, `$RST` and `$C` act in the firmware before
    the motion of the others has begun, which is lost; the machine carries it out first."""
    return steps[-1] in (b"~", b"\x81") and any(map(RESTARTS.match, expected))


def _last(steps: Sequence[bytes], pattern: bytes) -> int:
    """Number of the last step like this; 0 if there is none."""
    return max((n for n, step in enumerate(steps, 1) if re.match(pattern, step)), default=0)


MASKS: tuple[Callable[[Sequence[bytes], Sequence[str]], bool], ...] = (
    _inverts_door,
    _keeps_inches,
    _drops_motion,
)
