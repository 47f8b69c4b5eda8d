"""Run on from snapshots, in whatever process: what happened after each of them, as a hash.

python restored.py CELL SNAPSHOT...
"""

import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

from understudy.app import load_cell
from understudy.cell.cell import read_snapshot
from understudy.wire.rehearsal import Rehearsal

END = 12_000_000_000


class Transcript:
    """Every edge of a pin, every phase of the welder, every contact, with its moment."""

    def __init__(self, cell: Rehearsal) -> None:
        self.lines: list[str] = []
        parts: Any = cell.stage.parts  # type: ignore[attr-defined]
        parts["g60.io"].on_change(lambda change: self._note(change.at, "pin", change))
        parts["g60.welder"].on_phase(lambda phase, now: self._note(now, "weld", phase))
        parts["g60.collision"].on_collision(lambda c: self._note(c.at, "touch", c.told()))
        parts["g60"].on_status(lambda status: self._note(0, "arm", status))

    def _note(self, at: int, kind: str, what: object) -> None:
        self.lines.append(f"{at} {kind} {what}")

    def digest(self, cell: Rehearsal) -> str:
        end: Any = cell.snapshot()
        return sha256(repr((self.lines, end.parts)).encode()).hexdigest()


def run_on(cell: str, snapshot: Path) -> str:
    rehearsal = load_cell(cell)
    rehearsal.restore(read_snapshot(snapshot.read_bytes()))
    transcript = Transcript(rehearsal)
    rehearsal.advance_to(END)
    return transcript.digest(rehearsal)


if __name__ == "__main__":
    for name in sys.argv[2:]:
        print(run_on(sys.argv[1], Path(name)))
