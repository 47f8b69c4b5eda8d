"""Continue from snapshots in any process; print a hash of the later events of each.

python restored.py CELL SNAPSHOT...
"""

import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.parts import part

from understudy.app.build import load_cell
from understudy.devices.welder.welder import Welder
from understudy.robots.arm.controller import ArmController
from understudy.simulation.cell import read_snapshot
from understudy.simulation.collision.watch import CollisionWatch
from understudy.simulation.io.virtual_io import VirtualIO
from understudy.wire.exchange import InProcessCell

END = 12_000_000_000


class Transcript:
    """Every edge of a pin, every phase of the welder, every contact, with its time."""

    def __init__(self, cell: InProcessCell) -> None:
        self.lines: list[str] = []
        io = part(cell, "g60.io", VirtualIO)
        io.on_change(lambda change: self._note(change.at, "pin", change))
        welder = part(cell, "g60.welder", Welder)
        welder.on_phase(lambda phase, now: self._note(now, "weld", phase))
        watch = part(cell, "g60.collision", CollisionWatch)
        watch.on_collision(lambda c: self._note(c.at, "touch", c.text()))
        arm = part(cell, "g60", ArmController)
        arm.on_status(lambda status: self._note(0, "arm", status))

    def _note(self, at: int, kind: str, what: object) -> None:
        self.lines.append(f"{at} {kind} {what}")

    def digest(self, cell: InProcessCell) -> str:
        end: Any = cell.snapshot()
        return sha256(repr((self.lines, end.parts)).encode()).hexdigest()


def run_on(cell: str, snapshot: Path) -> str:
    virtual_cell = load_cell(cell)
    virtual_cell.restore(read_snapshot(snapshot.read_bytes()))
    transcript = Transcript(virtual_cell)
    virtual_cell.advance_to(END)
    return transcript.digest(virtual_cell)


if __name__ == "__main__":
    for name in sys.argv[2:]:
        print(run_on(sys.argv[1], Path(name)))
