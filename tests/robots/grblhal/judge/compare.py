"""Plays a session to two partners, and finds the first step that they answer differently."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from tests.robots.grblhal.face.sessions import ANSWER, FULL_STATUS, Wire, same_line
from tests.robots.grblhal.judge import masks
from tests.robots.grblhal.judge.partners import FirmwareHangsError

Partner = Callable[[], AbstractContextManager[Wire]]
TOGGLE = b"@"
"""A step that toggles an input: `@` and the key of the firmware's PC program."""
RESETS = (b"\x18", b"\x03")
REPORTS = (b"?", b"\x05", b"\x80", FULL_STATUS)
MOVING = ("Run", "Jog", "Home", "Hold:1", "Door:2", "Door:4")
WAITING = ("Hold:0", "Door:0", "Door:1", "Tool", "Sleep", "Alarm")
"""States in which a line may wait for its answer; in a dwell the state is Idle."""
POLLS, MANY_POLLS = 300, 100
NEVER = "(never at rest)"
"""The last line of an answer to which the machine moves on for very long."""
CALM_REPORTS = 12
SAME_REPORTS = 3
DRIVER = re.compile(
    r"\[(DRIVER|DRIVER VERSION|NVS STORAGE|BOARD|IDE|COMPILED|PLUGIN|NEWOPT|FREE MEM):?"
)
"""Lines of `$I` that name the driver, not the firmware."""


DESCRIPTIONS = re.compile(
    r"(?<=\[SETTINGDESCR:)(\d+\|).*"
    r"|^(\"\d+\",\"[^\"]*\",\"[^\"]*\",).*"
    r"|^(\d+\t(?:[^\t]*\t){4}).*"
)
"""Descriptions of settings in `$SED`, `$ESG` and `$ESH`: ours are our own sentences."""
LISTED = re.compile(r"[\"$<]|ok$|\d+\t|\[SETTINGDESCR:")
"""Beginnings of lines in these lists; others continue a description."""


AUTOMATIC = "|AR:"
"""The field of a report that tells of automatic reports."""
RPM_LIMITS = re.compile(rb"\$3[01]=")
SPINDLE_SPEED = re.compile(r"(?<=FS:)(\d+),\d+|(?<=spindle\|)[\d.,]+(?=])")
"""The firmware's PC program never learns the limits of the spindle ($30, $31); boards do."""


class Chat(NamedTuple):
    """A session: its steps, and the lines that answered each of them."""

    steps: list[bytes]
    answers: list[list[str]]

    def as_json(self) -> str:
        return json.dumps(
            {"steps": [s.decode("latin-1") for s in self.steps], "answers": self.answers}
        )

    @classmethod
    def from_json(cls, text: str) -> "Chat":
        read = json.loads(text)
        return cls([step.encode("latin-1") for step in read["steps"]], read["answers"])


class Difference(NamedTuple):
    """The firmware's answer to a step, ours, and the steps up to it; ``documented``: the reason,
    if the difference is one that remains on purpose."""

    steps: tuple[bytes, ...]
    expected: tuple[str, ...]
    actual: tuple[str, ...]
    documented: str = ""

    @property
    def kind(self) -> str:
        """What is alike in many differences: the words of the step, and the two lines without
        their numbers."""
        sent = self.steps[-1].decode("latin-1").strip() or repr(self.steps[-1])
        words = re.findall(r"\$[A-Z$#*+]*\d*|[GM]\d+(?:\.\d)?", sent.upper())
        want, have = self.lines
        return f"{' '.join(words) or sent[:12]!r}: {_plain(want)} / {_plain(have)}"

    @property
    def lines(self) -> tuple[str, str]:
        """The first pair of lines that differ."""
        longest = max(len(self.expected), len(self.actual))
        want = [*self.expected, *["(nothing)"] * (longest - len(self.expected))]
        have = [*self.actual, *["(nothing)"] * (longest - len(self.actual))]
        return next(p for p in zip(want, have, strict=True) if not same_line(*p))


def answers(wire: Wire, steps: Iterable[bytes]) -> Iterable[list[str]]:
    """The answers to each step; between two steps the machine comes to rest."""
    poll(wire)
    for step in steps:
        if step.startswith(TOGGLE):
            wire.toggle(step.removeprefix(TOGGLE))
        else:
            wire.write(step)
        yield [line for line in _answer(wire, step) if not DRIVER.match(line)]


def _answer(wire: Wire, step: bytes) -> list[str]:
    if step in RESETS:
        return [*wire.banner(), *_without_answer(wire)]
    if step.endswith(b"\n"):
        return _with_answer(wire)
    return _without_answer(wire, reports=step in REPORTS)


def _with_answer(wire: Wire) -> list[str]:
    """The answer, and the report of the machine at rest. A line that the controller keeps, for
    instance in a hold, has no answer: then the state stays the same for many reports."""
    got: list[str] = []
    calm, before = 0, ""
    for _ in range(POLLS):
        if any(map(ANSWER.match, got)) or calm >= CALM_REPORTS:
            break
        lines, state = poll(wire)
        got += lines[:-1]
        calm = calm + 1 if state == before and state.startswith(WAITING) else 0
        before = state
        if calm == 0:
            wire.run(0.5)
    return [*got, *_without_answer(wire)]


def _without_answer(wire: Wire, *, reports: bool = False) -> list[str]:
    """Lines until some full reports in a row are the same and show no motion; then the last one.
    Other reports are kept only if they were asked for."""
    got: list[str] = []
    calm, before = 0, ""
    for polls in range(POLLS):
        lines, state = poll(wire)
        got += [line for line in lines[:-1] if reports or not line.startswith("<")]
        calm = calm + 1 if lines[-1] == before and state not in MOVING else 0
        if calm == SAME_REPORTS:
            return [*got, lines[-1]]
        moves_in_tool_change = state == "Tool" and before not in ("", lines[-1])
        before = lines[-1]
        if state in MOVING or moves_in_tool_change:
            wire.run(1.0 if polls < MANY_POLLS else 10.0)
    return [*got, NEVER]


def poll(wire: Wire) -> tuple[list[str], str]:
    """The lines up to a full report, with it, and the state in it."""
    wire.run(0.05)
    wire.write(FULL_STATUS)
    lines = wire.until(lambda line: line.startswith("<") and "|FW:" in line, 1, 3.0)
    return lines, re.split(r"[|>]", lines[-1][1:])[0]


def play(steps: Sequence[bytes], partner: Partner) -> Chat:
    """A session with the answers of one partner; it ends early if the firmware hangs or moves for
    very long."""
    chat = Chat([], [])
    with partner() as wire:
        try:
            for step, lines in zip(steps, answers(wire, steps), strict=True):
                if lines[-1] == NEVER:
                    break
                chat.steps.append(step)
                chat.answers.append(lines)
        except FirmwareHangsError:
            pass
    return chat


def first_difference(chat: Chat, ours: Partner) -> Difference | None:
    """Compares a session of the firmware with our machine."""
    limited = False
    with ours() as simulated:
        pairs = zip(chat.answers, answers(simulated, chat.steps), strict=True)
        for index, (expected, actual) in enumerate(pairs, 1):
            step = chat.steps[index - 1]
            limited = limited or RPM_LIMITS.match(step) is not None
            expected = _comparable(step, masks.whole_lines(expected), limited)
            actual = _comparable(step, actual, limited)
            same = len(expected) == len(actual) and all(map(same_line, expected, actual))
            if same:
                continue
            in_report = all(map(same_line, expected[:-1], actual[:-1]))
            played = masks.Played(
                chat.steps[:index], chat.answers[:index], in_report and len(expected) == len(actual)
            )
            return Difference(
                tuple(chat.steps[:index]), tuple(expected), tuple(actual), masks.reason(played)
            )
    return None


def _comparable(step: bytes, lines: Sequence[str], limited: bool = False) -> list[str]:
    """The lines without descriptions of settings and without reports that nobody asked for; when
    automatic reports ($481) come depends on wall time. ``limited``: the limits of the spindle were
    changed, and its speed is left out."""
    if limited:
        lines = [SPINDLE_SPEED.sub(r"\1", line) for line in lines]
    if step not in REPORTS and (step not in RESETS or AUTOMATIC in lines[-1]):
        lines = [*(line for line in lines[:-1] if not line.startswith("<")), *lines[-1:]]
    if any(map(DESCRIPTIONS.search, lines)):
        lines = [line for line in lines if LISTED.match(line)]
    return [DESCRIPTIONS.sub(lambda hit: "".join(filter(None, hit.groups())), s) for s in lines]


def shrunk(found: Difference, judge: Partner, ours: Partner) -> Difference:
    """The same kind of difference with as few steps as can be left out one after the other."""
    index = 0
    while index < len(found.steps) - 1:
        fewer = found.steps[:index] + found.steps[index + 1 :]
        again = first_difference(play(fewer, judge), ours)
        if again is not None and again.kind == found.kind:
            found = again
        else:
            index += 1
    return found


def _plain(line: str) -> str:
    if line.startswith("<"):
        return "report"
    return re.sub(r"-?\d+\.\d+", "0.0", line)[:60]
