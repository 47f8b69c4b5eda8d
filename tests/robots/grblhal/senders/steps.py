"""Sessions of senders as steps that are played without the sender, on virtual time.

A step is what the sender wrote at one moment. The next one follows after as many answers as in the
recorded session, so that a real-time byte comes between the same lines, at whatever time that is.

    {"send": "G1X1\\n", "answers": 1, "got": ["ok"]}     the lines that came before the next step
    {"hex": "18", "banner": true, "got": ["", "GrblHAL …"]}
    {"report": "<Hold:0|MPos:*>"}      polls until the machine is in this state

Of the sender's polls only those are kept that showed another state, other overrides, or another
position at rest; a position in motion is not compared. Settings (`$$`) are left out: they belong to
the cell.
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
from understudy.wire.connection import Event

SETTING = re.compile(r"\$\d+=")
POLL, RESET = b"?", b"\x18"
AT_REST = ("Idle", "Tool")
POLL_S, PATIENCE_S = 0.02, 120.0


# ── from a transcript ──


class Distiller:
    """Makes the steps of a transcript with one client."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._poll: Step | None = None
        self._shown = self._overrides = self._rest = ""
        self._position_known = True

    def read(self, events: Iterable[Event]) -> list[Step]:
        for event in events:
            if event.kind == ">":
                self._sent(event.data)
            elif event.kind == "<" and self._steps:  # not the greeting, which the sender flushes
                *whole, self._rest = (self._rest + event.data.decode("latin-1")).split("\r\n")
                for line in whole:
                    self._came(line)
        return [step for step in self._steps if step]

    def _sent(self, data: bytes) -> None:
        """A step for the bytes, and an empty one for a poll before or after them."""
        bytes_ = data.replace(POLL, b"")
        poll: Step = {}
        said = {"hex": bytes_.hex()}
        if bytes_.isascii() and RESET not in bytes_:
            said = {"send": bytes_.decode()}
        steps = [{**said, "got": []}] if bytes_ else []
        steps.insert(0 if data.startswith(POLL) else 1, poll)
        self._steps += steps
        self._poll = poll if POLL in data else None

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
            self._position_known &= not line.startswith("ALARM:")

    def _last_sent(self) -> Step:
        """The step that lines belong to: the last bytes, or a pause after a report."""
        last = next((step for step in reversed(self._steps) if step), {"report": ""})
        if "report" in last:
            last = {"send": "", "got": []}
            self._steps.append(last)
        return last

    def _report(self, line: str) -> None:
        """Keeps a report at its poll, if it has news.

        The firmware answers a poll at once or, while homing, not at all. It reports the beginning
        of homing and the end of a tool change without a poll; these are left out.
        """
        poll, self._poll = self._poll, None
        if poll is None:
            return
        state, *fields = line.strip("<>").split("|")
        values = dict(field.partition(":")[::2] for field in fields)
        where = values["MPos"] if state in AT_REST and self._position_known else "*"
        shown, overrides = f"{state}|MPos:{where}", values.get("Ov", self._overrides)
        if overrides != self._overrides:
            poll["report"] = f"<{shown}|Ov:{overrides}>"
        elif shown != self._shown:
            poll["report"] = f"<{shown}>"
        self._shown, self._overrides = shown, overrides


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
