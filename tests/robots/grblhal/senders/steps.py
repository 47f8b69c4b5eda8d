"""Sessions of senders as steps that are played without the sender, on virtual time.

A step is what the sender wrote at one moment. The next one follows after as many answers as in the
recorded session, so that a real-time byte comes between the same lines, at whatever time that is.

    {"send": "G1X1\\n", "answers": 1, "got": ["ok"]}     the lines that came before the next step
    {"hex": "18", "banner": true, "got": ["", "GrblHAL …"]}
    {"report": "<Hold:0|MPos:*>"}      polls until the machine is in this state

Of the sender's polls only those are kept that showed another state or other overrides, with the
position if the machine was at rest. Settings (`$$`) are left out: they belong to the cell.
"""

import re
from collections.abc import Iterable, Iterator

from tests.robots.grblhal.face.sessions import (
    ANSWER,
    BANNER,
    CellWire,
    Step,
    Wire,
    outgoing,
    same_line,
)
from tests.robots.grblhal.senders.machine import CELL, ENDPOINT

from understudy.app.build import load_cell
from understudy.wire.chat import Event

SETTING = re.compile(r"\$\d+=")
POLL = b"?"
AT_REST = ("Idle", "Tool")
POLL_S, PATIENCE_S = 0.02, 120.0


# ── from a transcript ──


class Distiller:
    """Makes the steps of a transcript with one client."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._state = self._overrides = ""
        self._homeless = False
        self._rest = ""

    def read(self, events: Iterable[Event]) -> list[Step]:
        for event in events:
            if event.kind == ">":
                self._sent(event.data.replace(POLL, b""))
            elif event.kind == "<" and self.steps:
                *whole, self._rest = (self._rest + event.data.decode("latin-1")).split("\r\n")
                for line in whole:
                    self._came(line)
        return self.steps

    def _sent(self, data: bytes) -> None:
        if data:
            text = {"send": data.decode()} if data.isascii() and data != b"\x18" else None
            self.steps.append({**(text or {"hex": data.hex()}), "got": []})
        elif not self.steps:
            self.steps.append({"send": "", "got": []})

    def _came(self, line: str) -> None:
        if line.startswith("<"):
            self._report(line)
        elif not SETTING.match(line):
            step = self._last_sent()
            step["got"].append(line)
            if ANSWER.match(line):
                step["answers"] = step.get("answers", 0) + 1
            if line.startswith(BANNER):
                step["banner"] = True
            self._homeless |= line.startswith("ALARM:")

    def _last_sent(self) -> Step:
        """The step that lines belong to; a poll after them does not change that."""
        if "report" in self.steps[-1]:
            self.steps.append({"send": "", "got": []})
        return self.steps[-1]

    def _report(self, line: str) -> None:
        state, *fields = line.strip("<>").split("|")
        values = dict(field.partition(":")[::2] for field in fields)
        overrides = values.get("Ov", self._overrides)
        if (state, overrides) == (self._state, self._overrides):
            return
        where = values["MPos"] if state in AT_REST and not self._homeless else "*"
        shown = [state, f"MPos:{where}"]
        if overrides != self._overrides:
            shown.append(f"Ov:{overrides}")
        self._state, self._overrides = state, overrides
        self.steps.append({"report": f"<{'|'.join(shown)}>"})


# ── to a machine ──


def differences_of(steps: Iterable[Step]) -> list[str]:
    """Plays a recorded session to the shipped machine, in process."""
    virtual_cell = load_cell(CELL)
    wire = CellWire(virtual_cell, virtual_cell.connect(ENDPOINT))
    wire.listen(0.0)  # a sender flushes what waits in the port before it begins
    return list(play_steps(wire, steps))


def play_steps(wire: Wire, steps: Iterable[Step]) -> Iterator[str]:
    """Plays the steps; yields each difference from the recorded session."""
    expected: list[str] = []
    got: list[str] = []
    due = 0
    for number, step in enumerate(steps, 1):
        if "report" in step:
            *lines, report = _poll(wire, step["report"])
            got += lines
            if not same_line(step["report"], report):
                yield f"step {number}: expected {step['report']!r}, got {report!r}"
            continue
        expected += step["got"]
        due += step.get("answers", 0)
        wire.write(outgoing(step))
        got += wire.banner() if step.get("banner") else []
        got += wire.answers(max(0, due - sum(map(_is_answer, got))), PATIENCE_S)
    yield from _different(expected, [line for line in got if not _is_left_out(line)])


def _is_answer(line: str) -> bool:
    return ANSWER.match(line) is not None


def _is_left_out(line: str) -> bool:
    """A setting, or the report that the firmware sends without a poll after a tool change."""
    return SETTING.match(line) is not None or _is_report(line)


def _is_report(line: str) -> bool:
    return line.startswith("<")


def _poll(wire: Wire, wanted: str) -> list[str]:
    """Polls until a report has this state and these fields; returns other lines, and the report.

    The firmware adds `Ov` and `WCO` to some reports only.
    """
    end, lines, report = wire.now + PATIENCE_S, [], "(no report)"
    while _shape(report) != _shape(wanted) and wire.now < end:
        wire.write(POLL)
        came = wire.listen(POLL_S)
        lines += [line for line in came if not _is_report(line)]
        report = _fields_of(wanted, next(filter(_is_report, came), report))
    return [*lines, report]


def _fields_of(wanted: str, report: str) -> str:
    """The state, and the fields that ``wanted`` has."""
    state, *fields = report.strip("<>").split("|")
    kept = [field for field in fields if field.partition(":")[0] in _shape(wanted)[1:]]
    return f"<{'|'.join([state, *kept])}>"


def _shape(report: str) -> list[str]:
    """The state and the names of the fields."""
    state, *fields = report.strip("<>").split("|")
    return [state, *(field.partition(":")[0] for field in fields)]


def _different(expected: list[str], got: list[str]) -> Iterator[str]:
    for number, (want, have) in enumerate(zip(expected, got, strict=False), 1):
        if not same_line(want, have):
            yield f"line {number}: expected {want!r}, got {have!r}"
            return
    if len(expected) != len(got):
        yield f"{len(got)} lines instead of {len(expected)}"
