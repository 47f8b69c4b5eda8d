"""Cycle time of a program, line by line, without running it.

A job, unlike a program, has rows of its own: how long each workpiece takes, how long each state of
its cycle lasts. The report offers the place (`JobRows`), the job's module fills it.
"""

import re
from abc import abstractmethod
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, get_args, overload

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from understudy.gcode.program import PlainLines, ProgramLine
from understudy.motion.dynamics import Dynamics, Overload
from understudy.motion.path import Floats, Ints
from understudy.motion.plan import Plan
from understudy.offline.json_stream import Listed
from understudy.offline.setup import Setup
from understudy.offline.walk import (
    Event,
    OutputSet,
    PlannedMotion,
    PoseMotion,
    Standstill,
    Violation,
    line_spans,
    walk,
)
from understudy.offline.waypoints import Waypoint, follow
from understudy.space.compiled import compiled
from understudy.space.given import shown
from understudy.units import MM

Bytes = NDArray[np.uint8]
Bools = NDArray[np.bool_]


class JobTable(NamedTuple):
    """A table for the terminal. `columns`: those with a ">" in front of their name are figures."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


class JobRows(Protocol):
    """The rows of a job in its report."""

    def document(self) -> dict[str, Any]:
        """Keys and plain values for the JSON document."""
        ...

    def summary(self) -> str:
        """One line that follows the cycle time in the report of a validation."""
        ...

    def tables(self) -> Sequence[JobTable]:
        """Tables that follow the times in the report of the cycle time."""
        ...


# ── lines with their times, in columns: some dozen bytes for each line ────────────────────────────


Item = TypeVar("Item", covariant=True)
RowKind = Literal["motion", "process", "dwell", "io", "refused", ""]
KINDS: tuple[RowKind, ...] = get_args(RowKind)
NUMBERS = {kind: number for number, kind in enumerate(KINDS)}


class Row(Struct, frozen=True, gc=False):
    """A line of the program, and when it is run.

    `kind`: what most of its time is; empty if the line only sets modes.
    """

    line: int
    text: str
    start_s: float
    end_s: float
    kind: RowKind

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s


class ReadOnDemand(Sequence[Item]):
    """Items in columns; each is made when it is read. Equal to any sequence of equal items."""

    @abstractmethod
    def _item(self, k: int) -> Item:
        """The item at index ``k``, which is in range."""

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...

    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            return [self._item(k) for k in range(*index.indices(len(self)))]
        return self._item(range(len(self))[index])

    def __iter__(self) -> Iterator[Item]:
        return (self._item(k) for k in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"<{len(self)} lines>"


class Rows(ReadOnDemand[Row]):
    """Rows in the order of the program. The last ones are open: their times are not all known."""

    def __init__(self) -> None:
        self._line = array("q")
        self._start = array("d")
        self._end = array("d")
        self._kind = bytearray()
        self._text = bytearray()
        self._text_ends = array("q", [0])
        self._longest = array("d")
        """Of the open rows: the longest time of one kind so far; negative: none is known."""

    # ── adding rows, and their times ──

    def append(self, line: int, text: str, now: float) -> None:
        """Adds an open row."""
        self._text += text.encode("utf-8", "surrogatepass")
        self._text_ends.append(len(self._text))
        self._open(array("q", [line]), now)

    def extend(self, lines: PlainLines, now: float) -> None:
        """Adds an open row for each line."""
        begins, ends = int(lines.starts[0]), int(lines.stops[-1])
        source = np.frombuffer(lines.data, np.uint8)
        texts, stops = np.empty(ends - begins, np.uint8), np.empty(len(lines), np.int64)
        size = copy_texts(source, lines.starts, lines.stops, texts, stops)
        if size < 0:
            for line in lines:
                self.append(line.number, line.text.strip(), now)
            return
        stops += len(self._text)
        self._text += texts[:size].tobytes()
        self._text_ends.frombytes(stops.tobytes())
        self._open(lines.numbers, now)

    def _open(self, lines: "array[int] | Ints", now: float) -> None:
        self._line.frombytes(lines.tobytes())
        count = len(lines)
        for column, value in ((self._start, now), (self._end, now), (self._longest, -1.0)):
            column.extend([value] * count)
        self._kind += bytes([NUMBERS[""]]) * count

    def took(self, kind: RowKind, start_s: float, end_s: float) -> None:
        """The last row took this time."""
        if self._longest[-1] < 0.0:
            self._start[-1] = start_s
        self._end[-1] = end_s
        if end_s - start_s > self._longest[-1]:
            self._longest[-1] = end_s - start_s
            if KINDS[self._kind[-1]] != "refused":
                self.mark(kind)

    def mark(self, kind: RowKind) -> None:
        """The last row is of this kind."""
        self._kind[-1] = NUMBERS[kind]

    def ran(self, kind: RowKind, plan: Plan) -> None:
        """Sets the times of the open rows that a plan moves, or that are between them."""
        add_times(
            np.frombuffer(self._line, np.int64),
            np.frombuffer(self._start),
            np.frombuffer(self._end),
            np.frombuffer(self._kind, np.uint8),
            np.frombuffer(self._longest),
            (NUMBERS[kind], NUMBERS["refused"]),
            plan.begins,
            *line_spans(plan),
        )

    @property
    def open(self) -> int:
        """The number of open rows."""
        return len(self._longest)

    def open_before(self, line: int) -> int:
        """The number of open rows before a line."""
        closed = len(self) - self.open
        return bisect_left(self._line, line, lo=closed) - closed

    def close(self, count: int) -> None:
        """The times of the first open rows are known."""
        del self._longest[:count]

    # ── reading ──

    def __len__(self) -> int:
        return len(self._line)

    @property
    def numbers(self) -> Ints:
        """The line numbers."""
        return np.frombuffer(self._line, dtype=np.int64)

    @property
    def executed(self) -> int:
        """The number of lines that were not refused and that robots count: no comments."""
        counted = np.empty(len(self), np.uint8)
        find_executed(
            np.frombuffer(self._text, np.uint8),
            np.frombuffer(self._text_ends, np.int64),
            np.frombuffer(self._kind, np.uint8) == NUMBERS["refused"],
            counted,
        )
        left = np.flatnonzero(counted == NOT_ASCII).tolist()
        others = sum(not COMMENT.match(self._text_of(k)) for k in left)
        return int(np.count_nonzero(counted == EXECUTED)) + others

    def start_of(self, line: int) -> float:
        """When a line begins; 0 if there is no such line."""
        k = int(np.searchsorted(self.numbers, line))
        return self._start[k] if k < len(self) and self._line[k] == line else 0.0

    def _item(self, k: int) -> Row:
        kind = KINDS[self._kind[k]]
        return Row(self._line[k], self._text_of(k), self._start[k], self._end[k], kind)

    def _text_of(self, k: int) -> str:
        text = self._text[self._text_ends[k] : self._text_ends[k + 1]]
        return text.decode("utf-8", "surrogatepass")


COMMENT = re.compile(r"\s*(?:N\d+\s*)?(?:[(;%]|$)", re.IGNORECASE)
"""A line that no robot counts as executed."""
NOT_EXECUTED, EXECUTED, NOT_ASCII = range(3)
_OF_COMMENTS = (ord("("), ord(";"), ord("%"))
_N = (ord("N"), ord("n"))
_ZERO, _NINE = ord("0"), ord("9")


@compiled
def is_space(byte: int) -> bool:
    """White space in ASCII, as Python defines it."""
    return byte == 32 or 9 <= byte <= 13 or 28 <= byte <= 31


@compiled
def copy_texts(  # kernel
    source: Bytes, starts: Ints, stops: Ints, texts: Bytes, ends: Ints
) -> int:
    """Copies lines without white space around them, one behind the other, and sets where each
    ends; returns the size, -1 if they are not ASCII."""
    size = 0
    for line in range(len(starts)):
        start, stop = starts[line], stops[line]
        while start < stop and is_space(source[start]):
            start += 1
        while start < stop and is_space(source[stop - 1]):
            stop -= 1
        for at in range(start, stop):
            if source[at] > 127:
                return -1
            texts[size] = source[at]
            size += 1
        ends[line] = size
    return size


@compiled
def find_executed(text: Bytes, ends: Ints, refused: Bools, counted: Bytes) -> None:  # kernel
    """Sets for each line whether it counts as executed (`COMMENT`), or is not ASCII."""
    for line in range(len(counted)):
        at, stop = ends[line], ends[line + 1]
        ascii_only = True
        for k in range(at, stop):
            ascii_only &= text[k] < 128
        if at < stop and text[at] in _N:
            digits = at + 1
            while digits < stop and _ZERO <= text[digits] <= _NINE:
                digits += 1
            if digits > at + 1:
                at = digits
                while at < stop and is_space(text[at]):
                    at += 1
        executed = at < stop and text[at] not in _OF_COMMENTS
        counted[line] = EXECUTED if executed and not refused[line] else NOT_EXECUTED
        if not ascii_only and not refused[line]:
            counted[line] = NOT_ASCII


@compiled
def add_times(  # kernel
    rows: Ints,
    start: Floats,
    end: Floats,
    kind: Bytes,
    longest: Floats,
    kinds: tuple[int, int],
    begins: float,
    lines: Ints,
    starts: Floats,
    ends: Floats,
) -> None:
    """Adds the spans of some lines to the open rows, the last ones; a row without a span that took
    no time so far is where the row before it ends."""
    closed = len(rows) - len(longest)
    here, k = begins, 0
    for n in range(len(longest)):
        row = closed + n
        while k < len(lines) and lines[k] < rows[row]:
            k += 1
        if k < len(lines) and lines[k] == rows[row]:
            here = ends[k]
            if longest[n] < 0.0:
                start[row] = starts[k]
            end[row] = here
            if here - starts[k] > longest[n]:
                longest[n] = here - starts[k]
                if kind[row] != kinds[1]:
                    kind[row] = kinds[0]
        elif longest[n] < 0.0:
            start[row] = end[row] = here


# ── cycle time ────────────────────────────────────────────────────────────────────────────────────


EFFORT_STEP_S = 0.01
SAMPLES_AT_ONCE = 8192


@dataclass(frozen=True, slots=True)
class Wait:
    """A line that waits for an input for an unknown time, at most `timeout_s`."""

    line: int
    timeout_s: float


@dataclass(frozen=True, slots=True)
class CycleTime:
    """Seconds of motion, process (arc on), dwells and I/O, and the lines they consist of."""

    motion_s: float
    process_s: float
    dwell_s: float
    io_s: float
    blocks: int
    lines: Sequence[Row]
    waits: tuple[Wait, ...] = ()
    violations: tuple[Violation, ...] = ()
    overloads: tuple[Overload, ...] = ()
    """Overloaded joints, each at its worst time."""
    job: JobRows | None = None
    """What a job adds, if it is not a program that was timed."""
    interval_s: tuple[float, float] | None = None
    """Where the total lies if the cell has intervals from a fit to a real robot."""

    @property
    def total_s(self) -> float:
        return self.motion_s + self.process_s + self.dwell_s + self.io_s


class CycleTimeEstimator:
    """Plans a program as the controller does, and adds up the times."""

    def __init__(self, setup: Setup, start: Floats | None = None) -> None:
        self._setup = setup
        self._start = start

    def estimate(self, program: str | bytes) -> CycleTime:
        """Lines that cannot be run are left out, and listed.

        A wait for an input (M66) counts 0 s: without a scenario its time is unknown.
        """
        if not isinstance(program, str | bytes):
            raise ValueError(f"program: a text is needed, got {shown(program)}")
        return cycle_time_of(walk(program, self._setup, self._start), self._setup.dynamics)

    def estimate_waypoints(
        self,
        waypoints: Sequence[Waypoint],
        travel_speed_mm_s: float,
        process_speed_mm_s: float,
    ) -> CycleTime:
        """Speeds of the tool where a waypoint has none of its own."""
        speeds = (travel_speed_mm_s * MM, process_speed_mm_s * MM)
        return cycle_time_of(
            follow(waypoints, self._setup, speeds, self._start), self._setup.dynamics
        )


class Ledger:
    """Adds events up: how long a program takes, line by line."""

    def __init__(self, dynamics: Dynamics | None = None) -> None:
        self._dynamics = dynamics
        self._overloads: dict[str, Overload] = {}
        self.seconds: dict[str, float] = dict.fromkeys(("motion", "process", "dwell", "io"), 0.0)
        self.blocks = 0
        self.rows = Rows()
        self.waits: list[Wait] = []
        self.violations: list[Violation] = []
        self._now = 0.0

    def add(self, event: Event) -> None:
        if isinstance(event, ProgramLine):
            if text := event.text.strip():
                self.rows.append(event.number, text, self._now)
        elif isinstance(event, PlainLines):
            self.rows.extend(event, self._now)
        elif isinstance(event, PlannedMotion):
            self._run(event)
        elif isinstance(event, PoseMotion):
            self._took("motion", float(event.times[0]), float(event.times[-1]))
            self.blocks += 1
        elif isinstance(event, Standstill):
            self._stand(event)
        elif isinstance(event, OutputSet):
            self.rows.mark("io")
        elif isinstance(event, Violation):
            self.violations.append(event)
            self.rows.mark("refused")

    def result(self) -> CycleTime:
        self.rows.close(self.rows.open)
        return CycleTime(
            self.seconds["motion"],
            self.seconds["process"],
            self.seconds["dwell"],
            self.seconds["io"],
            self.blocks,
            self.rows,
            tuple(self.waits),
            tuple(self.violations),
            tuple(self._overloads.values()),
        )

    def _weigh(self, plan: Plan) -> None:
        """What the joints need along a run, looked at every 10 ms."""
        if self._dynamics is None or plan.duration <= 0.0:
            return
        count = int(np.ceil(plan.duration / EFFORT_STEP_S))
        for first in range(0, count, SAMPLES_AT_ONCE):
            steps = np.arange(first, min(first + SAMPLES_AT_ONCE, count))
            times = plan.begins + steps * EFFORT_STEP_S
            torques = self._dynamics.torques(plan.sample(times))
            for found in self._dynamics.overloads(times, torques):
                known = self._overloads.get(found.joint)
                if known is None or abs(found.torque) > abs(known.torque):
                    self._overloads[found.joint] = found

    def _run(self, run: PlannedMotion) -> None:
        kind: RowKind = "process" if run.process else "motion"
        plan = run.plan
        self.seconds[kind] += plan.duration
        self.blocks += int(plan.path.block[-1] - plan.path.block[0]) + 1
        self.rows.ran(kind, plan)
        self._now = plan.ends
        self._weigh(plan)
        last = int(plan.path.line[-1])
        # The last line of a plan may go on in the next part.
        self.rows.close(self.rows.open_before(last) if run.goes_on else self.rows.open - 1)

    def _stand(self, stand: Standstill) -> None:
        self._took(stand.kind, stand.begins, stand.ends)
        if stand.timeout is not None:
            self.waits.append(Wait(stand.line, stand.timeout))

    def _took(self, kind: RowKind, begins: float, ends: float) -> None:
        """Adds time to the current line."""
        self.rows.close(self.rows.open - 1)
        self.seconds[kind] += ends - begins
        self._now = ends
        self.rows.took(kind, begins, ends)


def cycle_time_of(events: Iterable[Event], dynamics: Dynamics | None = None) -> CycleTime:
    """Cycle time of the events of a program."""
    total = Ledger(dynamics)
    for event in events:
        total.add(event)
    return total.result()


def as_document(cycle: CycleTime) -> dict[str, Any]:
    """Plain values for JSON; the long lists as `Listed`, to be written piece by piece."""
    times = ("motion_s", "process_s", "dwell_s", "io_s", "total_s", "blocks")
    return (
        {name: getattr(cycle, name) for name in times}
        | ({"interval_s": cycle.interval_s} if cycle.interval_s else {})
        | (cycle.job.document() if cycle.job else {})
        | {
            "lines": Listed(cycle.lines, _fields),
            "waits": Listed(cycle.waits, _fields),
            "violations": Listed(cycle.violations, _fields),
            "overloads": [_fields(overload) for overload in cycle.overloads],
        }
    )


def _fields(value: Any) -> dict[str, Any]:
    names = getattr(value, "__struct_fields__", None) or value.__slots__
    return {name: getattr(value, name) for name in names}
