"""What a grblHAL says, read; and what it is told, written.

    ok                                     Verdict(0)
    error:9                                Verdict(9)
    ALARM:3                                Alarm(3)
    <Run|MPos:1.0,…|Bf:99,1023|FS:100,0>   Report("Run", 0, {"MPos": "1.0,…", …})
    [GC:G0 G54 …]                          Info("GC", "G0 G54 …")
    $110=6000.000                          Setting(110, "6000.000")
    GrblHAL 1.1f ['$' or '$HELP' for help] Banner()

Whatever else comes is Other: a plug-in's words, or noise on the line.
"""

import re
from typing import NamedTuple

from understudy.errors import Refused
from understudy.gcode.error_numbers import BAD_LETTER, TOO_LONG
from understudy.robots.grblhal.numbers import ALARMS, ERRORS, LONGEST_LINE

AXIS_LETTERS = "XYZABC"
HOLD, START, RESET, STOP, JOG_CANCEL = b"!", b"~", b"\x18", b"\x19", b"\x85"
STATUS, FULL_STATUS, OPTIONAL_STOP = b"?", b"\x87", b"\x88"
RAPID = {100: b"\x95", 50: b"\x96", 25: b"\x97"}
FEED_100, FEED_UP_10, FEED_DOWN_10, FEED_UP_1, FEED_DOWN_1 = (bytes([0x90 + n]) for n in range(5))

MOST_LINE_NUMBER = 10_000_000
NUMBER_ROOM = len(f"N{MOST_LINE_NUMBER - 1}")

_VERDICT = re.compile(r"error:(\d{1,4})")
_ALARM = re.compile(r"ALARM:(\d{1,4})")
_SETTING = re.compile(r"\$(\d{1,4})=(.*)")
_INFO = re.compile(r"\[([^:\]]+):(.*)\]")
_REPORT = re.compile(r"<([A-Z][A-Za-z]*)(?::(\d{1,3}))?((?:\|[^|<>]*)*)>")
_NUMBER = re.compile(r"[+-]?\d{1,12}(?:\.\d{0,9})?")
_COMMENT = re.compile(r"\((?!\s*(?:MSG|PRINT|DEBUG)\s*,)[^)]*\)|;.*", re.IGNORECASE)
_OWN_NUMBER = re.compile(r"[Nn]\s*\d+(?:\.0*)?\s*")
_SAYABLE = re.compile(r"[ -~]*")
_AT_ONCE = re.compile(r"[?!~]")


class Verdict(NamedTuple):
    """A line was taken (0) or refused."""

    code: int


class Alarm(NamedTuple):
    code: int


class Report(NamedTuple):
    state: str
    substate: int
    fields: dict[str, str]


class Info(NamedTuple):
    name: str
    text: str


class Setting(NamedTuple):
    number: int
    text: str


class Banner(NamedTuple):
    """The controller has begun anew."""


class Other(NamedTuple):
    text: str


Word = Verdict | Alarm | Report | Info | Setting | Banner | Other


def read_line(data: bytes) -> Word:
    text = data.decode("latin-1").strip()
    if text == "ok":
        return Verdict(0)
    if found := _VERDICT.fullmatch(text):
        return Verdict(int(found[1]))
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
    """Numbers between commas; None if one of them is none."""
    pieces = text.split(",")
    if not all(_NUMBER.fullmatch(piece) for piece in pieces):
        return None
    return tuple(map(float, pieces))


def whole(text: str) -> int | None:
    values = numbers(text)
    return int(values[0]) if values and len(values) == 1 else None


# ── refusals ────────────────────────────────────────────────────────────────────────────────────


def refusal(code: int, line: str) -> Refused:
    """An `error:N` in words."""
    words = ERRORS.get(code) or "the controller does not say why"
    return Refused(f"error:{code} ({line}): {words}", code)


def alarm(code: int) -> Refused:
    words = ALARMS.get(code) or "the controller does not say why"
    return Refused(f"ALARM:{code}: {words}", code)


# ── lines ───────────────────────────────────────────────────────────────────────────────────────


def sayable(text: str) -> str | Refused:
    """A line as it goes out: without remarks, and without bytes that act at once."""
    line = _COMMENT.sub("", text).strip()
    if not _SAYABLE.fullmatch(line):
        return Refused(f"{text!r}: a line is printable ASCII, and one line", BAD_LETTER)
    if found := _AT_ONCE.search(line):
        reason = f"{found[0]!r} acts at once on the wire and cannot stand in a line: {text.strip()}"
        return Refused(reason, BAD_LETTER)
    if len(line) + NUMBER_ROOM > LONGEST_LINE:
        longest = LONGEST_LINE - NUMBER_ROOM
        return Refused(f"{len(line)} characters, {longest} are allowed in a line", TOO_LONG)
    return line


def numbered(line: str, number: int) -> str:
    """The line under this number, so that reports (Ln) tell which one is being run."""
    bare = _OWN_NUMBER.sub("", line, count=1) if line[:1] in "Nn" else line
    if not bare[:1].isalpha() or bare[0] in "Oo":
        return line
    return f"N{number % MOST_LINE_NUMBER}{bare}"


def decimal(value: float) -> str:
    """Four decimals at most, the shortest way to write it."""
    text = f"{value:.4f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def feed_override(percent: int, told: int | None) -> bytes:
    """Bytes that bring the feed override from what it is (None: nobody knows) to ``percent``."""
    known = told is not None and percent != 100
    said, ahead = (b"", percent - (told or 0)) if known else (FEED_100, percent - 100)
    tens = round(ahead / 10)
    ones = ahead - 10 * tens
    said += (FEED_UP_10 if tens > 0 else FEED_DOWN_10) * abs(tens)
    return said + (FEED_UP_1 if ones > 0 else FEED_DOWN_1) * abs(ones)
