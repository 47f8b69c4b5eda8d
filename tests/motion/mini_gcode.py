"""Just enough G-code to read the golden programs: G0–G4, G93, G94, F, modal, absolute, XY arcs."""

import re
from dataclasses import dataclass, field
from pathlib import Path as FilePath

import numpy as np

from understudy.motion.arcs import chords
from understudy.motion.lines import lines
from understudy.motion.path import Limits, Path, dwell_path, joined

GOLDEN = FilePath(__file__).parents[1] / "golden" / "grblhal"
AXES = "XYZABC"


@dataclass
class Settings:
    """The firmware's $ settings that the planner uses."""

    limits: Limits
    steps: np.ndarray
    deviation: float
    tolerance: float
    window: int


def settings(name: str) -> Settings:
    text = (GOLDEN / "settings" / f"{name}.txt").read_text()
    values = {int(key): float(value) for key, value in re.findall(r"\$(\d+)=([\d.]+)", text)}

    def row(first: int) -> np.ndarray:
        return np.array([values[first + i] for i in range(6)])

    limits = Limits.of(row(110) / 60.0, row(120))
    return Settings(limits, row(100), values[11], values[12], int(values[398]))


@dataclass
class Blocks:
    """Targets between two dwells, with the modal state of each."""

    targets: list[list[float]] = field(default_factory=list)
    feed: list[float] = field(default_factory=list)
    rapid: list[bool] = field(default_factory=list)
    inverse: list[bool] = field(default_factory=list)
    line: list[int] = field(default_factory=list)


def read(text: str, tolerance: float) -> list[Blocks | float]:
    """Runs of blocks, with the seconds of a dwell between them."""
    motion, inverse, feed, position = 1, False, 1.0, [0.0] * 6
    runs: list[Blocks | float] = [Blocks()]
    for number, line in enumerate(text.splitlines(), start=1):
        words = [(letter, float(value)) for letter, value in re.findall(r"([A-Z])([-\d.]+)", line)]
        codes = [value for letter, value in words if letter == "G"]
        others = {letter: value for letter, value in words if letter != "G"}
        inverse = (inverse or 93 in codes) and 94 not in codes
        motion = next((int(code) for code in codes if code in (0, 1, 2, 3)), motion)
        feed = others.get("F", feed * 60.0) / 60.0
        if 4 in codes:
            runs += [others["P"], Blocks()]
            continue
        if not set(others) & set(AXES):
            continue
        target = [others.get(axis, before) for axis, before in zip(AXES, position, strict=True)]
        points = [target]
        if motion in (2, 3):
            centre = (position[0] + others.get("I", 0.0), position[1] + others.get("J", 0.0))
            turns = 1 if motion == 3 else -1
            points = chords(position, target, centre, tolerance=tolerance, turns=turns).tolist()
        run = runs[-1]
        assert isinstance(run, Blocks)
        for point in points:
            run.targets.append(point)
            run.feed.append(feed)
            run.rapid.append(motion == 0)
            run.inverse.append(inverse)
            run.line.append(number)
        position = target
    return runs


def path_of(text: str, machine: Settings) -> Path:
    """The whole program as one path."""
    here, parts = np.zeros(6), []
    for run in read(text, machine.tolerance):
        if isinstance(run, float):
            parts.append(dwell_path(here, run))
        elif run.targets:
            part = lines(
                here,
                run.targets,
                machine.limits,
                feed=run.feed,
                rapid=run.rapid,
                inverse_time=run.inverse,
                deviation=machine.deviation,
                steps=machine.steps,
                line=run.line,
            )
            here = part.end[-1]
            parts.append(part)
    return joined(parts)
