"""The lines of a report in columns, and the verdicts on lines while a program is checked."""

from array import array
from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from understudy.motion.path import Floats
from understudy.offline.rows import ReadOnDemand, Row, Rows

Bools = NDArray[np.bool_]


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


UNSURE, MOVES, UNPROVEN = 1, 2, 4
ROOM = 1024


class Verdicts:
    """What is known about each line, by its number."""

    def __init__(self) -> None:
        self._clearance, self._seen = array("d"), array("d")
        self._flags = bytearray()
        self.proofs = 0
        """Number of lines that were swept, or of their parts."""
        self.moves = False
        """Whether any line moves the robot."""

    def unsure(self, lines: ArrayLike) -> None:
        """These lines cannot be proven."""
        self._flag(lines, UNSURE)

    def moving(self, lines: ArrayLike) -> None:
        self._flag(lines, MOVES)
        self.moves = True

    def swept(self, line: int, clearance: float, seen: float, *, proven: bool) -> None:
        """A line, or the next part of it, was swept; infinite: nothing can touch."""
        if line >= len(self._flags):
            self._make_room(line)
        self.proofs += 1
        if not self._clearance[line] <= clearance:  # nan: not swept before
            self._clearance[line] = clearance
        if not self._seen[line] <= seen:
            self._seen[line] = seen
        if not proven:
            self._flags[line] |= UNPROVEN

    def table(self, rows: Rows) -> LineTable:
        """The lines of the report."""
        numbers = rows.numbers
        self._make_room(int(numbers.max(initial=0)))
        flags = np.frombuffer(self._flags, dtype=np.uint8)[numbers]
        clearance, seen = (
            np.frombuffer(column)[numbers] for column in (self._clearance, self._seen)
        )
        for column in (clearance, seen):
            column[np.isinf(column)] = np.nan
        proven, moves = (flags & (UNSURE | UNPROVEN)) == 0, (flags & MOVES) != 0
        return LineTable(rows, clearance, seen, proven, moves)

    def _flag(self, lines: ArrayLike, flag: int) -> None:
        numbers = np.asarray(lines, dtype=np.int64)
        self._make_room(int(numbers.max(initial=0)))
        np.frombuffer(self._flags, dtype=np.uint8)[numbers] |= flag

    def _make_room(self, line: int) -> None:
        """Makes room for the lines up to this number."""
        if line >= len(self._flags):
            more = max(line + 1, ROOM, len(self._flags) * 3 // 2) - len(self._flags)
            for column in (self._clearance, self._seen):
                column.frombytes(np.full(more, np.nan).tobytes())
            self._flags.extend(bytes(more))
