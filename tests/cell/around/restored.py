"""Run on from snapshots, in whatever process: what happened after each of them, as a hash.

python restored.py CELL SNAPSHOT...
"""

import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.parts import part

from understudy.app import load_cell
from understudy.cell.arm import VirtualController
from understudy.cell.cell import read_snapshot
from understudy.cell.collision.watch import CollisionWatch
from understudy.cell.io import VirtualIO
from understudy.cell.welder import Welder
from understudy.wire.rehearsal import Rehearsal

END = 12_000_000_000


class Transcript:
    """Every edge of a pin, every phase of the welder, every contact, with its moment."""

    def __init__(self, cell: Rehearsal) -> None:
        self.lines: list[str] = []
        io = part(cell, "g60.io", VirtualIO)
        io.on_change(lambda change: self._note(change.at, "pin", change))
        welder = part(cell, "g60.welder", Welder)
        welder.on_phase(lambda phase, now: self._note(now, "weld", phase))
        watch = part(cell, "g60.collision", CollisionWatch)
        watch.on_collision(lambda c: self._note(c.at, "touch", c.told()))
        arm = part(cell, "g60", VirtualController)
        arm.on_status(lambda status: self._note(0, "arm", status))

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
