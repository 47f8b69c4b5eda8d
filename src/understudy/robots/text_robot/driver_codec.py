"""What a client of the text robot says, and how it understands the answers: strictly."""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from understudy.errors import Refused
from understudy.robots.text_robot.face import (
    DONE,
    EXPECTED,
    PARAMETER_ERROR,
    TIMEOUT_ERROR,
    numbers,
)
from understudy.space.pose import Pose
from understudy.units import DEG, MM

ENVELOPE_ERROR, STATE_ERROR, LOST_ERROR = 2, 4, 5
LONGEST_MESSAGE = 200
LONGEST_QUOTE = 40

AGREED = DONE | {"STOP": "OK Emergency stop executed", "RESET": "OK Error reset"}
CODES = {
    "Communication timeout": TIMEOUT_ERROR,
    "Target outside work envelope": ENVELOPE_ERROR,
    "Invalid parameters": PARAMETER_ERROR,
    "Robot in emergency stop state": STATE_ERROR,
}
CONDITION = re.compile(
    rb"OK (Idle|Moving|Homing|EmergencyStopped),([+-]?\d{1,4}(?:\.\d{1,6})?),(\d{1,4}),(\d{1,3})"
)
STOPPED = Refused("Robot in emergency stop state", code=STATE_ERROR)


class Condition(NamedTuple):
    """The answer to GET_STATUS."""

    state: str
    temperature_c: float
    error_code: int
    load_percent: int


Answer = Pose | Condition | Refused | str
"""Where it is, how it is, why not, or the agreed words."""


def request_of(verb: str, values: Sequence[float] = ()) -> bytes:
    """A command; lengths in millimetres, angles in degrees."""
    words = [verb, ",".join(map(decimal, values))] if values else [verb]
    return " ".join(words).encode("ascii") + b"\n"


def decimal(value: float) -> str:
    """Two decimals as the robot's own client writes, up to six where they tell something."""
    text = f"{value:.6f}"
    text = text[:-4] + text[-4:].rstrip("0")
    return "0.00" if text == "-0.00" else text


def unspeakable(verb: str, values: Sequence[float]) -> Refused | None:
    """Why these values cannot be said, if so; in the words in which the robot would refuse them."""
    if all(map(math.isfinite, values)):
        return None
    return Refused(f"Invalid parameters (expected: {EXPECTED[verb]})", code=PARAMETER_ERROR)


def read_answer(verb: str, line: bytes) -> Answer | None:
    """What the robot answers to ``verb``, or None if this is no answer to it."""
    if line.startswith(b"ERROR "):
        message = plain(line[len("ERROR ") :].decode("latin-1"))
        return Refused(message, code_of(message))
    if verb == "GET_POS":
        return _pose(line)
    if verb == "GET_STATUS":
        return _condition(line)
    agreed = AGREED[verb]
    return agreed if line == agreed.encode("ascii") else None


def code_of(message: str) -> int:
    """The error code that goes with a refusal; 0 for words that are not in the contract."""
    return next((code for words, code in CODES.items() if message.startswith(words)), 0)


def plain(text: str) -> str:
    """As every dialect can say it: printable ASCII of bounded length."""
    return "".join(c if " " <= c <= "~" else "?" for c in text[:LONGEST_MESSAGE])


def quoted(line: bytes) -> str:
    return f"'{plain(line[:LONGEST_QUOTE].decode('latin-1'))}'"


def _pose(line: bytes) -> Pose | None:
    values = numbers(line[len("OK ") :], count=6) if line.startswith(b"OK ") else None
    if values is None:
        return None
    units = (MM, MM, MM, DEG, DEG, DEG)
    return Pose(*(value * unit for value, unit in zip(values, units, strict=True)))


def _condition(line: bytes) -> Condition | None:
    match = CONDITION.fullmatch(line)
    if match is None:
        return None
    state, temperature, code, load = (group.decode("ascii") for group in match.groups())
    return Condition(state, float(temperature), int(code), int(load))
