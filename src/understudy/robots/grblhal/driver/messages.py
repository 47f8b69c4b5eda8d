"""Messages of a grblHAL controller, and the lines and bytes that are sent to it.

    ok                                     Answer(0)
    error:9                                Answer(9)
    ALARM:3                                Alarm(3)
    <Run|MPos:1.0,…|Bf:99,1023|FS:100,0>   Report("Run", 0, {"MPos": "1.0,…", …})
    [GC:G0 G54 …]                          Info("GC", "G0 G54 …")
    $110=6000.000                          Setting(110, "6000.000")
    GrblHAL 1.1f ['$' or '$HELP' for help] Banner()

Everything else is Other: messages of a plug-in, or noise on the line.
"""

import re
from typing import NamedTuple

from understudy.errors import Refused
from understudy.gcode.error_numbers import BAD_LETTER, TOO_LONG
from understudy.robots.grblhal.numbers import ALARMS, ERRORS, LONGEST_LINE, Realtime

RAPID_BYTES = {100: Realtime.RAPID_100, 50: Realtime.RAPID_50, 25: Realtime.RAPID_25}
"""Rapid overrides in per cent that have a byte."""
MOST_LINE_NUMBER = 10_000_000
NUMBER_ROOM = len(f"N{MOST_LINE_NUMBER - 1}")
"""Characters that a line number needs."""

_ANSWER = re.compile(r"error:(\d{1,4})")
_ALARM = re.compile(r"ALARM:(\d{1,4})")
_SETTING = re.compile(r"\$(\d{1,4})=(.*)")
_INFO = re.compile(r"\[([^:\]]+):(.*)\]")
_REPORT = re.compile(r"<([A-Z][A-Za-z]*)(?::(\d{1,3}))?((?:\|[^|<>]*)*)>")
_NUMBER = re.compile(r"[+-]?\d{1,12}(?:\.\d{0,9})?")
_COMMENT = re.compile(r"\((?!\s*(?:MSG|PRINT|DEBUG)\s*,)[^)]*\)|;.*", re.IGNORECASE)
_OWN_NUMBER = re.compile(r"[Nn]\s*\d+(?:\.0*)?\s*")
_PRINTABLE = re.compile(r"[ -~]*")
_REALTIME = re.compile(r"[?!~]")


class LineAnswer(NamedTuple):
    """The controller accepts a line (0) or refuses it."""

    code: int


class Alarm(NamedTuple):
    """The controller has locked itself: `ALARM:N`."""

    code: int


class Report(NamedTuple):
    """A status report; ``fields`` by name, without the state."""

    state: str
    substate: int
    fields: dict[str, str]


class Info(NamedTuple):
    """A message in brackets: `[NAME:TEXT]`."""

    name: str
    text: str


class Setting(NamedTuple):
    """A setting that the controller has printed: `$NUMBER=TEXT`."""

    number: int
    text: str


class Banner(NamedTuple):
    """The controller has restarted."""


class Other(NamedTuple):
    """A line without a known form."""

    text: str


Message = LineAnswer | Alarm | Report | Info | Setting | Banner | Other


def read_line(data: bytes) -> Message:
    text = data.decode("latin-1").strip()
    if text == "ok":
        return LineAnswer(0)
    if found := _ANSWER.fullmatch(text):
        return LineAnswer(int(found[1]))
    if found := _ALARM.fullmatch(text):
        return Alarm(int(found[1]))
    if found := _REPORT.fullmatch(text):
        fields = (field.partition(":") for field in found[3].split("|")[1:])
        return Report(found[1], int(found[2] or 0), {name: value for name, _, value in fields})
    if found := _INFO.fullmatch(text):
        return Info(found[1], found[2])
    if found := _SETTING.fullmatch(text):
        return Setting(int(found[1]), found[2])
    return Banner() if text.lower().startswith("grbl") else Other(text)


def numbers(text: str) -> tuple[float, ...] | None:
    """Numbers between commas; None if one of them is not a number."""
    pieces = text.split(",")
    if not all(_NUMBER.fullmatch(piece) for piece in pieces):
        return None
    return tuple(map(float, pieces))


def whole(text: str) -> int | None:
    """A single number without its decimals; None if there is none or more than one."""
    values = numbers(text)
    return int(values[0]) if values and len(values) == 1 else None


# ── refusals ────────────────────────────────────────────────────────────────────────────────────


def refusal(code: int, line: str) -> Refused:
    """The refusal for `error:N`, with its text."""
    words = ERRORS.get(code) or "no reason given"
    return Refused(f"error:{code} ({line}): {words}", code)


def alarm(code: int) -> Refused:
    """The refusal for `ALARM:N`, with its text."""
    words = ALARMS.get(code) or "no reason given"
    return Refused(f"ALARM:{code}: {words}", code)


# ── lines ───────────────────────────────────────────────────────────────────────────────────────


def sendable(text: str) -> str | Refused:
    """The line without comments; refused if it contains a byte that acts at once."""
    line = _COMMENT.sub("", text).strip()
    if not _PRINTABLE.fullmatch(line):
        return Refused(f"{text!r}: a line must be printable ASCII without a line break", BAD_LETTER)
    if found := _REALTIME.search(line):
        reason = (
            f"{found[0]!r} acts at once on the wire and is not allowed in a line: {text.strip()}"
        )
        return Refused(reason, BAD_LETTER)
    if len(line) + NUMBER_ROOM > LONGEST_LINE:
        longest = LONGEST_LINE - NUMBER_ROOM
        return Refused(f"{len(line)} characters in a line; allowed: {longest}", TOO_LONG)
    return line


def numbered(line: str, number: int) -> str:
    """The line with this number, so that `Ln` in the reports shows which line is executed."""
    bare = _OWN_NUMBER.sub("", line, count=1) if line[:1] in "Nn" else line
    if not bare[:1].isalpha() or bare[0] in "Oo":
        return line
    return f"N{number % MOST_LINE_NUMBER}{bare}"


def decimal(value: float) -> str:
    """The shortest text with at most four decimals."""
    text = f"{value:.4f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def feed_override(percent: int, present: int | None) -> bytes:
    """Bytes that change the feed override from ``present`` (None: unknown) to ``percent``."""
    known = present is not None and percent != 100
    first, rest = ([], percent - (present or 0)) if known else ([Realtime.FEED_100], percent - 100)
    tens = round(rest / 10)
    ones = rest - 10 * tens
    steps = [Realtime.FEED_UP_10 if tens > 0 else Realtime.FEED_DOWN_10] * abs(tens)
    steps += [Realtime.FEED_UP_1 if ones > 0 else Realtime.FEED_DOWN_1] * abs(ones)
    return bytes(first + steps)
