"""Whole validation of a program against real time: from its text to the certified report."""

from random import Random
from statistics import median
from time import process_time

from benchmarks import Row
from understudy.app import load_config
from understudy.proving import validate_text

SEEDS = range(1, 6)
SEAMS = 40
AIM = 1000.0


def program(seed: int, seams: int = SEAMS) -> str:
    """Seams of some lines each over the fixture of the welding cell, with air moves between."""
    luck = Random(seed)
    lines = ["G21 G90 G94", "G28", "G0 X450 Y0 Z450 A180 B0 C0"]
    for _ in range(seams):
        x, y = luck.uniform(420, 480), luck.uniform(-100, 100)
        lines += [f"G0 X{x:.2f} Y{y:.2f} Z380", "M7", "G1 Z355 F6000", "M3"]
        for _ in range(luck.randint(4, 12)):
            x, y = luck.uniform(420, 480), luck.uniform(-100, 100)
            lines.append(f"G1 X{x:.2f} Y{y:.2f} F{luck.choice((300, 600, 900))}")
        lines += ["M5", "G4 P0.5", "M9", "G1 Z380 F6000"]
    return "\n".join([*lines, "G28", "M2", ""])


def rows() -> list[Row]:
    config = load_config("g60_welding")
    validate_text(program(0, 2), config)
    ratios, verdicts = [], []
    for seed in SEEDS:
        text, begun = program(seed), process_time()
        report = validate_text(text, config)
        ratios.append(report.total_s / (process_time() - begun))
        verdicts.append(report.passed)
    assert all(verdicts), "the programs of the benchmark are sound"
    spread = f"{min(ratios):,.0f}…{max(ratios):,.0f}"
    times = median(ratios)
    what = f"whole validation, {SEAMS} seams, seeds 1–5"
    return [Row(what, f"{times:,.0f} × real time", spread, f"{times / AIM:.1f}", "≥ 1,000 ×")]
