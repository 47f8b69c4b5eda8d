"""How cost grows with size: CPU time at sizes a decade apart, and the exponent of the last two.

An exponent of 1 is proportional to the size; n log n has about 1.1 here, so more than 1.15 is a
finding. Each ladder is measured in one process, the fastest of some rounds. Where a line stays
flat, the size does not matter: obstacles out of reach, triangles that a query never visits.

    python -m benchmarks.bench_growth --plot docs/pictures/growth.svg
"""

import math
import sys
import tempfile
from collections.abc import Callable, Sequence
from math import log10
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np
import trimesh

from benchmarks import Row
from benchmarks.bench_collision import free_moves
from benchmarks.bench_fleet import LOAD, driving
from benchmarks.bench_log import cpu_seconds, programs
from benchmarks.bench_validate import dense
from benchmarks.cells import g60
from understudy import load_cell
from understudy.app.validate import validate_text
from understudy.config import load_config
from understudy.doors.log.file import LogFile, marks_of
from understudy.robots.text_robot.face import DECODER
from understudy.space.collision.detector import CollisionDetector
from understudy.space.collision.sweep import Sweeper
from understudy.space.model.robot import Box
from understudy.space.model.shapes import TriangleMesh, as_object
from understudy.space.transform import translation
from understudy.units import NS_PER_MS
from understudy.wire.connection import Event
from understudy.wire.journal import WireJournal

LARGEST_EXPONENT = 1.15
SHORTEST_S = 2e-3
"""CPU times below this are those of the fixed part, and of the clock."""


class Ladder(NamedTuple):
    """What grows, its sizes, and a function that prepares a size and returns the work."""

    what: str
    sizes: Sequence[int]
    prepared: Callable[[int], Callable[[], object]]
    rounds: int = 3


class Grown(NamedTuple):
    """CPU seconds for each size of a ladder."""

    ladder: Ladder
    seconds: list[float]

    @property
    def exponent(self) -> float:
        """The slope of the line through the last two decades, in logarithms; 0 if none counts."""
        pairs = [
            (log10(size), log10(took))
            for size, took in zip(self.ladder.sizes, self.seconds, strict=True)
            if took > SHORTEST_S and size >= self.ladder.sizes[-1] / 100
        ]
        if len(pairs) < 2:
            return 0.0
        sizes, times = np.array(pairs).T
        return float(np.polyfit(sizes, times, 1)[0])


def climbed(ladder: Ladder) -> Grown:
    seconds = []
    for size in ladder.sizes:
        work = ladder.prepared(size)
        work()
        times = []
        for _ in range(ladder.rounds):
            begun = process_time()
            work()
            times.append(process_time() - begun)
        seconds.append(min(times))
    return Grown(ladder, seconds)


# ── what grows ────────────────────────────────────────────────────────────────────────────────────


def program_lines(size: int) -> Callable[[], object]:
    config, text = load_config("g60_welding"), dense(size)
    return lambda: validate_text(text, config)


def sweep_among(detector: CollisionDetector) -> Callable[[], object]:
    """Sweeps of moves that are free without the obstacles; some end at a contact."""
    arm = detector.chain
    assert arm is not None
    plans = free_moves(arm, CollisionDetector(arm), np.random.default_rng(1))
    sweeper = Sweeper(detector)
    return lambda: [sweeper.sweep(plan.path.shape, plan.path.length) for plan in plans]


def obstacles(size: int) -> Callable[[], object]:
    """Boxes of 20 mm spread over a hall; the number of those within reach grows with all."""
    rng, detector = np.random.default_rng(0), CollisionDetector(g60())
    places = rng.uniform((-5, -5, 0), (5, 5, 3), (4 * size, 3))
    far = places[np.linalg.norm(places[:, :2], axis=1) > 0.6][:size]
    for k, place in enumerate(far):
        detector.add_object(as_object(f"box{k}", Box((0.02, 0.02, 0.02)), translation(*place)))
    return sweep_among(detector)


def triangles(size: int) -> Callable[[], object]:
    """One ball beside the arm, of ever smaller triangles."""
    level = round(math.log(size / 20, 4))
    ball = trimesh.creation.icosphere(level, 0.3)
    mesh = TriangleMesh(np.array(ball.vertices), np.array(ball.faces, dtype=np.int64))
    detector = CollisionDetector(g60())
    detector.add_object(as_object("ball", mesh, translation(0.9, 0.3, 0.6)))
    return sweep_among(detector)


def mobile_robots(size: int) -> Callable[[], object]:
    """A second of robots that drive, with 13 messages a second each."""
    fleet = driving(size, dict(LOAD))
    return lambda: fleet.run(1.0)


def clients(size: int) -> Callable[[], object]:
    """A request of every client of one text robot, and its answer."""
    cell = load_cell("text_robot")
    peers = [cell.connect("bench.text_tcp") for _ in range(size)]

    def ask() -> None:
        for peer in peers:
            peer.say(b"GET_POS\n")
        cell.advance(0.01)
        for peer in peers:
            assert peer.received()

    return ask


def journal(size: int) -> Callable[[], object]:
    """Messages that pass a journal, and its last entries."""
    event = Event(NS_PER_MS, "bench.text", "1", ">", b"GET_POS\n")

    def note() -> None:
        kept = WireJournal({"bench.text": DECODER})
        for _ in range(size):
            kept.note(event)
        assert kept.entries("bench.text")

    return note


def log_minutes(size: int) -> Callable[[], object]:
    """Opens the log of so many minutes of the default cell, with its marks."""
    folder = tempfile.TemporaryDirectory()
    file = Path(folder.name, "run.mcap")
    cpu_seconds(load_config("default"), programs, file, size)

    def look() -> None:
        assert folder.name
        log = LogFile(file)
        log.look()
        marks_of(log)

    return look


LADDERS = (
    Ladder(
        "validate, lines of a program", (100, 1_000, 10_000, 100_000, 1_000_000), program_lines, 1
    ),
    Ladder("40 certified sweeps, obstacles of a hall", (1, 10, 100, 1_000, 10_000), obstacles),
    Ladder(
        "40 certified sweeps, triangles of a mesh", (80, 320, 5_120, 81_920, 1_310_720), triangles
    ),
    Ladder("a second of driving mobile robots", (1, 10, 100, 1_000, 10_000), mobile_robots),
    Ladder("a request of every client", (1, 10, 100, 1_000), clients),
    Ladder("messages in the journal", (100, 1_000, 10_000, 100_000, 1_000_000), journal, 1),
    Ladder("open a log, minutes", (1, 3, 10), log_minutes),
)


def rows() -> list[Row]:
    return [row(climbed(ladder)) for ladder in LADDERS]


def row(grown: Grown) -> Row:
    sizes, seconds = grown.ladder.sizes, grown.seconds
    figures = ", ".join(f"{s:,}: {_time(t)}" for s, t in zip(sizes, seconds, strict=True))
    verdict = "" if grown.exponent <= LARGEST_EXPONENT else "more than n log n"
    return Row(grown.ladder.what, figures, f"n^{grown.exponent:.2f}", "", "≤ n log n", verdict)


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def plot(grown: Sequence[Grown]) -> str:
    """SVG: CPU time over size, both logarithmic; a dashed line is proportional to the size."""
    width, height, left, top = 560, 380, 60, 20
    x0, x1, y0, y1 = 0.0, 6.2, -5.0, 2.0

    def at(size: float, seconds: float) -> str:
        x = left + (log10(size) - x0) / (x1 - x0) * width
        y = top + (y1 - log10(max(seconds, 1e-5))) / (y1 - y0) * height
        return f"{x:.1f},{y:.1f}"

    colors = ("#1b6ca8", "#c0392b", "#27864a", "#8e44ad", "#b9770e", "#117a65", "#555")
    parts = []
    for decade in range(-5, 3):
        x, y = at(1, 10.0**decade).split(",")
        parts.append(f'<path d="M{x} {y}h{width}" stroke="#ddd"/>')
        parts.append(
            f'<text x="{left - 6}" y="{float(y) + 4}" text-anchor="end">{10.0**decade:g} s</text>'
        )
    for decade in range(7):
        x, y = at(10.0**decade, 10.0**y0).split(",")
        parts.append(f'<text x="{x}" y="{float(y) + 16}" text-anchor="middle">10^{decade}</text>')
    proportional = f"{at(1, 1e-5)} {at(1e6, 10)}"
    parts.append(f'<polyline points="{proportional}" stroke="#999" stroke-dasharray="4"/>')
    for k, (ladder, seconds) in enumerate(grown):
        points = " ".join(at(s, t) for s, t in zip(ladder.sizes, seconds, strict=True))
        color, row_y = colors[k % len(colors)], top + 20 + 18 * k
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts.append(
            f'<text x="{left + width + 14}" y="{row_y}" fill="{color}">{ladder.what}</text>'
        )
    box = f"0 0 {left + width + 300} {top + height + 40}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" font-family="sans-serif" '
        f'font-size="12"><rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )


if __name__ == "__main__":
    measured = [climbed(ladder) for ladder in LADDERS]
    for each in measured:
        print(*row(each), sep="  ")
    if "--plot" in sys.argv:
        Path(sys.argv[sys.argv.index("--plot") + 1]).write_text(plot(measured))
