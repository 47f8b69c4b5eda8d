"""Plays a session to two partners, and finds the first step that they answer differently."""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from tests.robots.grblhal.face.sessions import FULL_STATUS, NO_ANSWER, Wire, same_line

Partner = Callable[[], AbstractContextManager[Wire]]
RESETS = (b"\x18", b"\x03")
REPORTS = (b"?", b"\x05", b"\x80", FULL_STATUS)
MOVING = ("Run", "Jog", "Home", "Hold:1", "Door:2", "Door:3")
POLLS = 2000
DRIVER = re.compile(
    r"\[(DRIVER|DRIVER VERSION|NVS STORAGE|BOARD|IDE|COMPILED|PLUGIN|NEWOPT|FREE MEM):?"
)
"""Lines of `$I` that name the driver, not the firmware."""


class Difference(NamedTuple):
    """The firmware's answer to a step, ours, and the steps up to it."""

    steps: tuple[bytes, ...]
    expected: tuple[str, ...]
    actual: tuple[str, ...]

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
    wire.run(0.1)
    wire.write(b"\x18")
    wire.banner()
    for step in steps:
        wire.write(step)
        yield [line for line in _answer(wire, step) if not DRIVER.match(line)]


def _answer(wire: Wire, step: bytes) -> list[str]:
    if step in RESETS:
        return [*wire.banner(), *rest(wire)]
    if step in REPORTS:
        return [*wire.report(), *rest(wire)]
    if not step.endswith(b"\n"):
        return rest(wire)
    got = wire.answers(1, 10.0)
    return got if got[-1] == NO_ANSWER else [*got, *rest(wire)]


def rest(wire: Wire) -> list[str]:
    """Full reports until two in a row are of the same state, which is no motion; the last one."""
    got: list[str] = []
    before = ""
    for _ in range(POLLS):
        wire.write(FULL_STATUS)
        answer = wire.report()
        got += [line for line in answer if not line.startswith("<")]
        if answer[-1] == NO_ANSWER:
            return got
        state = re.split(r"[|>]", answer[-1][1:])[0]
        if state == before and state not in MOVING:
            return [*got, answer[-1]]
        before = state
        wire.run(0.05)
    return [*got, "(never at rest)"]


def first_difference(steps: Sequence[bytes], judge: Partner, ours: Partner) -> Difference | None:
    with judge() as real, ours() as simulated:
        pairs = zip(answers(real, steps), answers(simulated, steps), strict=True)
        for index, (expected, actual) in enumerate(pairs, 1):
            same = len(expected) == len(actual) and all(map(same_line, expected, actual))
            if not same:
                return Difference(tuple(steps[:index]), tuple(expected), tuple(actual))
    return None


def shrunk(found: Difference, judge: Partner, ours: Partner) -> Difference:
    """The same kind of difference with as few steps as can be left out one after the other."""
    index = 0
    while index < len(found.steps) - 1:
        fewer = found.steps[:index] + found.steps[index + 1 :]
        again = first_difference(fewer, judge, ours)
        if again is not None and again.kind == found.kind:
            found = again
        else:
            index += 1
    return found


def _plain(line: str) -> str:
    if line.startswith("<"):
        return "report"
    return re.sub(r"-?\d+\.\d+", "0.0", line)[:60]
