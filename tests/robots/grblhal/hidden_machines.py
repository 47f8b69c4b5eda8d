"""Machines with hidden figures, and the programs that they are recorded with."""

from random import Random

from tests.offline.fit.noisy_link import NoisyLink, Sender

from understudy.app.build import build_cell
from understudy.config import CellConfig, read_config
from understudy.wire.chat import Chat
from understudy.wire.exchange import InProcessCell

CELL = """description: a mill
robots:
  mill:
    kind: machine
    settings:
{settings}
    faces: {{grblhal: {{}}}}
"""
KNOWN = {
    11: 0.01,
    30: 24000,
    **dict.fromkeys((120, 121, 122), 500),
    **dict.fromkeys((110, 111, 112), 6000),
}
"""Settings of the cell file before the fit."""


def cell_text(settings: dict[int, float]) -> str:
    return CELL.format(settings="\n".join(f"      {n}: {v}" for n, v in settings.items()))


def machine(settings: dict[int, float]) -> CellConfig:
    return read_config(cell_text(settings), "mill.yaml")


def hidden_settings(rng: Random) -> dict[int, float]:
    """Deviation at corners, accelerations, rates and the delay of the spindle."""
    found = {
        11: round(rng.uniform(0.005, 0.05), 4),
        30: 24000,
        394: round(rng.uniform(3.0, 5.0), 2),
    }
    for axis in range(3):
        found[120 + axis] = round(rng.uniform(300.0, 1200.0), 2)
        found[110 + axis] = round(rng.uniform(3000.0, 9000.0), 1)
    return found


def exercise(rng: Random) -> list[str]:
    """Strokes of each axis, corners of all of them, and five starts of the spindle."""
    lines = ["G21", "G90"]
    for axis in "XYZ":
        strokes = [rng.uniform(100.0, 120.0), *(rng.uniform(3.0, 6.0) for _ in range(6))]
        for stroke in strokes:
            lines += [f"G0 {axis}{stroke:.2f}", f"G0 {axis}0"]
    for number in range(5):
        lines += [f"M3 S{1000 + number}", "M5"]
    lines.append("G1 F9000")
    for _ in range(3):
        place = [0.0, 0.0, 0.0]
        for _ in range(25):
            place = [p + rng.choice((-1, 1)) * rng.uniform(2.0, 6.0) for p in place]
            lines.append("X{:.2f} Y{:.2f} Z{:.2f}".format(*place))
        lines += ["G0 X0 Y0 Z0", "G4 P0.05"]
    return lines


def other_program(rng: Random) -> str:
    """A part that the recording does not show."""
    lines = ["G21", "G90"]
    for number in range(60):
        x, y, z = (rng.uniform(-40.0, 40.0) for _ in range(3))
        lines.append(f"G1 X{x:.2f} Y{y:.2f} Z{z:.2f} F{rng.choice((1000, 2500, 4000, 6000))}")
        lines += ["G0 Z10"] * (number % 10 == 0)
    return "\n".join(lines)


def recording(settings: dict[int, float], rng: Random, lines: list[str]) -> tuple[Chat, float]:
    """A recording of a machine, and the mean delay of its answers in ms; reports are rounded to
    steps and late, and the client asks for them at an uneven pace."""
    cell = InProcessCell(build_cell(machine(settings)))
    delay = rng.uniform(0.006, 0.012)
    link = NoisyLink(
        cell, "mill.grblhal", delay_s=delay, jitter_s=rng.uniform(0.0002, 0.0005), rng=rng
    )
    period = rng.uniform(0.05, 0.08)
    Sender(link, lines, period_s=period, jitter_s=0.15 * period, rng=rng).run()
    return link.chat(), 2e3 * delay
