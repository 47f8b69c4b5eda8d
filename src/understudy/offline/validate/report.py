"""The report of a validation: values, and the JSON document."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

import numpy as np
from msgspec import Struct, to_builtins
from numpy.typing import NDArray

from understudy.motion.path import Floats, Ints
from understudy.offline.cycle_time import JobRows, ReadOnDemand, Row
from understudy.offline.json_stream import Listed
from understudy.space.collision.detector import LeftOut
from understudy.space.collision.sweep import EPS
from understudy.units import MM

FindingKind = Literal[
    "syntax",
    "unsupported",
    "joint_limit",
    "unreachable",
    "singularity",
    "velocity",
    "acceleration",
    "jerk",
    "torque",
    "self_collision",
    "collision",
    "zone",
    "process",
    "io",
]
KINDS: tuple[FindingKind, ...] = get_args(FindingKind)
Bools = NDArray[np.bool_]
CLEARANCE = EPS
"""Clearance in metres that is proven if no larger one is asked for."""


MOST_FINDINGS = 100_000
"""Violations, and warnings, that a report has at most unless more are asked for; memory."""


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """How strictly a program is judged. Metres.

    `clearance`: what every line must keep; None: contact is a violation, closeness a warning.
    `with_stops`: also check a stop at any time. `most_violations`: violations in the report;
    further ones are counted. None: MOST_FINDINGS. `strict`: every warning is a violation.
    """

    clearance: float | None = None
    with_stops: bool = False
    most_violations: int | None = None
    strict: bool = False


@dataclass(frozen=True, slots=True)
class PartContact:
    """Two parts that touch or come too close: point (m, in the cell), depth and time."""

    objects: tuple[str, str]
    point: tuple[float, float, float]
    depth: float
    time_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Meeting:
    """The other robot of a finding: its line and time there, and by how many seconds it is later
    than planned, relative to this robot; negative: earlier."""

    robot: str
    program: str
    line: int
    time_s: float
    shift_s: float


@dataclass(frozen=True, slots=True)
class RobotClearance:
    """What is proven about another robot, in metres and seconds.

    `timing_s`: None, the planned timing; infinite, any timing. `clearance`: proven at all times;
    None if something is undecided. `seen`: the smallest distance that was computed, between
    `objects`, on these lines. `handshakes`: those that limit the timing.
    """

    robot: str
    program: str
    timing_s: float | None
    clearance: float | None
    seen: float
    objects: tuple[str, str]
    line: int
    other_line: int
    handshakes: int = 0

    def text(self) -> str:
        """The proof as a note of a report."""
        if self.timing_s is None:
            when = "in the planned timing"
        else:
            any_time = "in any timing"
            when = (
                any_time if np.isinf(self.timing_s) else f"{any_time} within ±{self.timing_s:g} s"
            )
        if self.handshakes:
            plural = "s" if self.handshakes > 1 else ""
            when += f" that {self.handshakes} handshake{plural} allow{'' if plural else 's'}"
        what = f"{self.robot} ({self.program})" if self.program else f"{self.robot}, which stands,"
        if self.clearance is None:
            return f"clearance to {what} is not proven {when}"
        lines = f"line {self.line}" + (f", its line {self.other_line}" if self.program else "")
        return (
            f"clearance to {what} {when}: {max(self.clearance, 0.0) / MM:.1f} mm proven, smallest "
            f"distance seen {max(self.seen, 0.0) / MM:.1f} mm: {self.objects[0]} and "
            f"{self.robot}.{self.objects[1]} ({lines})"
        )

    def document(self) -> dict[str, Any]:
        timing = "planned" if self.timing_s is None else self.timing_s
        return {
            "robot": self.robot,
            "program": self.program,
            "timing_s": "any" if timing == np.inf else timing,
            "clearance_mm": None if self.clearance is None else self.clearance / MM,
            "seen_mm": self.seen / MM,
            "objects": [self.objects[0], f"{self.robot}.{self.objects[1]}"],
            "line": self.line,
            "other_line": self.other_line,
            "handshakes": self.handshakes,
        }


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation, or a warning that does not change the verdict.

    `last`: the line on which it ends. `contact`: the first contact; `also`: contacts of other parts
    with the same object. `excess`: size of a sampled finding; the worst of a line is reported.
    `factor`: what a joint needs (speed, acceleration, torque) over what it has. `code`: number of a
    firmware's error or alarm. `meeting`: of a contact with another robot.
    """

    line: int
    kind: FindingKind
    message: str
    time_s: float = 0.0
    last: int | None = None
    joint: str = ""
    contact: PartContact | None = None
    also: tuple[PartContact, ...] = ()
    excess: float = 0.0
    factor: float = 0.0
    code: int = 0
    meeting: Meeting | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """The path for pictures, in columns: joints, positions of the axes (m, in the cell), line, time
    and tool of each sample."""

    joints: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    points: Floats = field(default_factory=lambda: np.zeros((0, 0, 3)))
    lines: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    times: Floats = field(default_factory=lambda: np.zeros(0))
    tools: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Course) and all(
            np.array_equal(getattr(self, column.name), getattr(other, column.name))
            for column in fields(Course)
        )

    __hash__ = None  # type: ignore[assignment]


class LineReport(Struct, frozen=True, gc=False):
    """A line of the program. `clearance`: what is proven, `seen`: the smallest distance that was
    computed, in metres; None if nothing moves or can touch. The true clearance lies between the
    two. `moves`: the robot moves on this line."""

    line: int
    text: str
    start_s: float
    end_s: float
    clearance: float | None
    seen: float | None
    proven: bool
    kind: str
    moves: bool = False


class LineTable(ReadOnDemand[LineReport]):
    """The lines of a report. nan: no clearance."""

    def __init__(
        self, rows: Sequence[Row], clearance: Floats, seen: Floats, proven: Bools, moves: Bools
    ) -> None:
        self._rows = rows
        self._clearance = clearance
        self._seen = seen
        self._proven = proven
        self._moves = moves

    @staticmethod
    def of(lines: Iterable[LineReport]) -> "LineTable":
        """A table of lines that are known one by one."""
        known = list(lines)
        rows = [Row(n.line, n.text, n.start_s, n.end_s, n.kind) for n in known]  # type: ignore[arg-type]
        return LineTable(
            rows,
            np.array([n.clearance for n in known], dtype=np.float64),
            np.array([n.seen for n in known], dtype=np.float64),
            np.array([n.proven for n in known], dtype=np.bool_),
            np.array([n.moves for n in known], dtype=np.bool_),
        )

    def __len__(self) -> int:
        return len(self._rows)

    def _item(self, k: int) -> LineReport:
        row = self._rows[k]
        return LineReport(
            row.line,
            row.text,
            row.start_s,
            row.end_s,
            _known(self._clearance[k]),
            _known(self._seen[k]),
            bool(self._proven[k]),
            row.kind,
            bool(self._moves[k]),
        )

    def _items(self, chosen: range) -> list[LineReport]:
        part = np.arange(chosen.start, chosen.stop, chosen.step)
        clearance, seen = (
            [None if value != value else value for value in column[part].tolist()]
            for column in (self._clearance, self._seen)
        )
        proven, moves = self._proven[part].tolist(), self._moves[part].tolist()
        rows = map(self._rows.__getitem__, chosen)
        return [
            LineReport(
                row.line, row.text, row.start_s, row.end_s, near, far, sure, row.kind, moving
            )
            for row, near, far, sure, moving in zip(
                rows, clearance, seen, proven, moves, strict=True
            )
        ]

    # ── sums ──

    @property
    def moving(self) -> int:
        """Number of lines on which the robot moves."""
        return int(self._moves.sum())

    @property
    def unproven(self) -> int:
        return len(self) - int(self._proven.sum())

    @property
    def least_clearance(self) -> float | None:
        return _least(self._clearance)

    @property
    def least_seen(self) -> float | None:
        return _least(self._seen)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _least(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.min()) if len(known) else None


@dataclass(frozen=True, slots=True)
class Report:
    """The report on a program.

    `wall_s` is filled in by the caller, which has a clock. `omitted`: number of violations that are
    not in the report; `unkept`: those of them that were not kept in memory either, by kind.
    """

    program: str
    cell: str
    robot: str
    cycle_time: dict[str, float]
    distance_m: float
    gcodes_executed: int
    lines: Sequence[LineReport]
    violations: tuple[Finding, ...]
    warnings: tuple[Finding, ...] = ()
    omitted: int = 0
    notes: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    wall_s: float = 0.0
    course: Course = field(default_factory=Course)
    unkept: Mapping[str, int] = field(default_factory=dict)
    job: JobRows | None = None
    """What a job adds, if it is not a program that was checked."""
    robots: tuple[RobotClearance, ...] = ()
    """What is proven about the other robots that were checked with this one."""

    @property
    def table(self) -> LineTable:
        return self.lines if isinstance(self.lines, LineTable) else LineTable.of(self.lines)

    @property
    def passed(self) -> bool:
        return not self.violations and not self.omitted

    @property
    def total_s(self) -> float:
        return self.cycle_time["total_s"]

    @property
    def least_clearance(self) -> float | None:
        """Smallest proven clearance of all moving lines, in metres; None if a line is not
        proven."""
        table = self.table
        return None if table.unproven else table.least_clearance

    @property
    def least_seen(self) -> float | None:
        """Smallest distance that was computed on all moving lines, in metres."""
        return self.table.least_seen

    def left_out_notes(self) -> list[str]:
        """The pairs of parts that were not compared, a text for each reason."""
        groups: dict[str, list[str]] = {}
        for pair in self.left_out:
            groups.setdefault(pair.reason, []).append(" - ".join(pair.objects))
        return [f"{reason}: {', '.join(pairs)}" for reason, pairs in groups.items()]

    def document(self) -> dict[str, Any]:
        """The report as plain values: the JSON of the command line."""
        return self._document([to_builtins(line_document(row)) for row in self.lines])

    def listed_document(self) -> dict[str, Any]:
        """The same with its lines as `Listed`, to be written piece by piece."""
        return self._document(Listed(self.lines, line_document))

    def _document(self, lines: list[dict[str, Any]] | Listed) -> dict[str, Any]:
        return (self.job.document() if self.job else {}) | {
            "program": self.program,
            "cell": self.cell,
            "robot": self.robot,
            "verdict": "pass" if self.passed else "fail",
            "cycle_time": self.cycle_time,
            "distance_mm": self.distance_m / MM,
            "gcodes_executed": self.gcodes_executed,
            "wall_s": self.wall_s,
            "times_real_time": self.total_s / self.wall_s if self.wall_s > 0.0 else 0.0,
            "lines": lines,
            "violations": [finding_document(each) for each in self.violations],
            "violations_omitted": self.omitted,
            "warnings": [finding_document(each) for each in self.warnings],
            **({"robots": [each.document() for each in self.robots]} if self.robots else {}),
            "notes": list(self.notes),
            "pairs_not_checked": [
                {"objects": list(pair.objects), "reason": str(pair.reason)}
                for pair in self.left_out
            ],
        }


class LineDocument(Struct, frozen=True, gc=False):
    """A line in the JSON report."""

    line: int
    text: str
    start_s: float
    end_s: float
    clearance_mm: float | None
    seen_mm: float | None
    proven: bool


def line_document(row: LineReport) -> LineDocument:
    return LineDocument(
        row.line,
        row.text,
        row.start_s,
        row.end_s,
        None if row.clearance is None else row.clearance / MM,
        None if row.seen is None else row.seen / MM,
        row.proven,
    )


def finding_document(found: Finding) -> dict[str, Any]:
    document: dict[str, Any] = {
        "line": found.line,
        "kind": found.kind,
        "message": found.message,
        "time_s": found.time_s,
    }
    if found.last is not None:
        document["last_line"] = found.last
    if found.code:
        document["code"] = found.code
    if found.joint:
        document["joint"] = found.joint
    if found.factor:
        document["factor"] = found.factor
    if found.contact is not None:
        document |= _contact(found.contact)
    if found.meeting is not None:
        document["meeting"] = asdict(found.meeting)
    if found.also:
        document["also"] = [_contact(each) | {"time_s": each.time_s} for each in found.also]
    return document


def _contact(contact: PartContact) -> dict[str, Any]:
    return {
        "objects": list(contact.objects),
        "point_mm": [value / MM for value in contact.point],
        "depth_mm": contact.depth / MM,
    }
