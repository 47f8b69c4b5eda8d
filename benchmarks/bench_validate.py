"""Whole validation of a program against real time: from its text to the certified report."""

from math import cos, sin
from random import Random
from statistics import median
from time import perf_counter, process_time

from benchmarks import Row
from understudy.app.validate import Options, validate_text
from understudy.config import load_config
from understudy.config.cell import CellConfig

SEEDS = range(1, 6)
SEAMS = 40
DENSE_LINES, ROUNDS = 20_000, 3
SEAMS_AIM, DENSE_AIM = 10_000.0, 5_000.0


def program(seed: int, seams: int = SEAMS) -> str:
    """Seams of some lines each over the fixture of the welding cell, with air moves between."""
    random = Random(seed)
    lines = ["G21 G90 G94", "G28", "G0 X450 Y0 Z450 A180 B0 C0"]
    for _ in range(seams):
        x, y = random.uniform(420, 480), random.uniform(-100, 100)
        lines += [f"G0 X{x:.2f} Y{y:.2f} Z380", "M7", "G1 Z355 F6000", "M3"]
        for _ in range(random.randint(4, 12)):
            x, y = random.uniform(420, 480), random.uniform(-100, 100)
            lines.append(f"G1 X{x:.2f} Y{y:.2f} F{random.choice((300, 600, 900))}")
        lines += ["M5", "G4 P0.5", "M9", "G1 Z380 F6000"]
    return "\n".join([*lines, "G28", "M2", ""])


def dense(lines: int) -> str:
    """Short lines of the tool round and round, 1.7 mm each, as a CAM system writes a contour."""
    text = ["G21 G90 G94", "G28", "G0 X450 Y0 Z450 A180 B0 C0", "G1 Z380 F6000"]
    for k in range(lines):
        turn = 0.034 * k
        x, y, z = 450 + 50 * cos(turn), 50 * sin(turn), 380 + 10 * sin(turn / 7)
        text.append(f"G1 X{x:.3f} Y{y:.3f} Z{z:.3f} F3000")
    return "\n".join([*text, "G28", "M2", ""])


def rows() -> list[Row]:
    config = load_config("g60_welding")
    validate_text(program(0, 2), config)
    validate_text(dense(10), config)
    seams = [_ratio(program(seed), config) for seed in SEEDS]
    contour = dense(DENSE_LINES)
    short = [_ratio(contour, config) for _ in range(ROUNDS)]
    clock = [_by_clock(contour, config, 1) / _by_clock(contour, config, 0) for _ in range(ROUNDS)]
    return [
        _row(f"whole validation, {SEAMS} seams, seeds 1–5", seams, SEAMS_AIM),
        _row(f"whole validation, {DENSE_LINES:,} lines of 1.7 mm", short, DENSE_AIM),
        Row("the same on all cores, by the clock", f"{median(clock):.2f} × as fast", "", "", ""),
    ]


def _ratio(text: str, config: CellConfig) -> float:
    begun = process_time()
    report = validate_text(text, config, options=Options(workers=1))
    took = process_time() - begun
    assert report.passed, "the programs of the benchmark are sound"
    return report.total_s / took


def _by_clock(text: str, config: CellConfig, workers: int) -> float:
    """Seconds of a validation by the clock, which counts other work of the machine, too."""
    begun = perf_counter()
    validate_text(text, config, options=Options(workers=workers))
    return perf_counter() - begun


def _row(what: str, ratios: list[float], aim: float) -> Row:
    """There is no peer, so nothing that a run on another machine could be compared by."""
    spread = f"{median(ratios):,.0f} × real time ({min(ratios):,.0f}…{max(ratios):,.0f})"
    return Row(what, spread, "", "", f"≥ {aim:,.0f} ×")
