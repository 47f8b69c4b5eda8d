"""Arms with hidden limits and valves are recorded behind their grblHAL wire, and fitted."""

from random import Random

import pytest
from tests.offline.fit.noisy_link import NoisyLink, Sender

from understudy.app.build import build_cell
from understudy.config import CellConfig, read_config
from understudy.offline.fit.cell_file import fitted_text
from understudy.offline.fit.estimate import Fit, fit
from understudy.registry import module_of
from understudy.wire.chat import Chat
from understudy.wire.exchange import InProcessCell

CELL = """robots:
  arm:
    kind: arm
{limits}    collision: {{enable: false}}
    io:
      links:
        - {{output: 3, input: 5, delay_ms: {valve}}}
        - {{output: 4, input: 6, delay_ms: {gripper}}}
    faces: {{grblhal: {{}}}}
"""
VELOCITY, ACCELERATION, JERK = "max_velocity_deg_s", "max_acceleration_deg_s2", "max_jerk_deg_s3"
WIDEST = 0.02
JOINTS = {"X": 0, "B": 4}
"""Joints that the program moves, by their letters."""


def cell_text(limits: dict[str, list[float]], valve: float = 0.0, gripper: float = 0.0) -> str:
    lines = "".join(f"    {name}: {values}\n" for name, values in limits.items())
    return CELL.format(limits=lines, valve=valve, gripper=gripper)


def arm(text: str) -> CellConfig:
    return read_config(text, "arm.yaml")


def hidden_limits(rng: Random) -> dict[str, list[float]]:
    def six(low: float, high: float) -> list[float]:
        return [round(rng.uniform(low, high), 2) for _ in range(6)]

    return {VELOCITY: six(80, 120), ACCELERATION: six(300, 600), JERK: six(5000, 12000)}


def exercise(rng: Random) -> list[str]:
    """Strokes that reach the top speed, the acceleration, and neither; switched outputs."""
    lines = ["G21", "G90"]
    for letter in JOINTS:
        for low, high, times in ((70, 90, 1), (12, 20, 3), (2, 4, 5)):
            for _ in range(times):
                lines += [f"G0 {letter}{rng.uniform(low, high):.2f}", f"G0 {letter}0"]
    for _ in range(5):
        lines += ["M64 P3", "M66 P5 L3 Q3", "M65 P3", "M66 P5 L4 Q3"]
        lines += ["M62 P4 G0 X2", "M66 P6 L3 Q3", "M63 P4 G0 X0", "M66 P6 L4 Q3"]
    return lines


def recording(text: str, rng: Random, lines: list[str]) -> Chat:
    cell = InProcessCell(build_cell(arm(text)))
    link = NoisyLink(
        cell, "arm.grblhal", delay_s=rng.uniform(0.004, 0.01), jitter_s=0.0003, rng=rng
    )
    Sender(link, lines, period_s=0.06, jitter_s=0.01, rng=rng).run()
    return link.chat()


def fitted(config: CellConfig, chat: Chat) -> Fit:
    return fit(module_of("robots", "arm").recorded(config, "arm", chat))


def trial(seed: int) -> list[str]:
    """What is wrong with the fit of a hidden arm."""
    rng = Random(seed)
    limits = hidden_limits(rng)
    valve, gripper = round(rng.uniform(150, 400), 1), round(rng.uniform(500, 900), 1)
    chat = recording(cell_text(limits, valve, gripper), rng, exercise(rng))
    found = fitted(arm(cell_text({})), chat)
    truth = {
        f"robots.arm.{name}.{joint}": values[joint]
        for name, values in limits.items()
        for joint in JOINTS.values()
    }
    truth |= {
        "robots.arm.io.links.0.delay_ms": valve,
        "robots.arm.io.links.1.delay_ms": gripper,
    }
    by_key = {each.key: each for each in found.visible}
    wrong = [f"{key} is not visible" for key in truth if key not in by_key]
    for key in truth.keys() & by_key.keys():
        each = by_key[key]
        if not each.low <= truth[key] <= each.high:
            wrong.append(f"{key}: {truth[key]} is outside {each.low}…{each.high}")
        if each.width > WIDEST:
            wrong.append(f"{key}: the interval is {each.width:.1%} wide")
    return wrong


@pytest.mark.parametrize("count", [1, pytest.param(20, marks=pytest.mark.soak)])
def test_the_intervals_contain_hidden_limits_and_delays(count: int) -> None:
    failed = {seed: wrong for seed in range(count) if (wrong := trial(seed))}
    assert len(failed) <= count // 20, failed


def test_the_jerk_of_an_arm_without_one_is_not_visible() -> None:
    rng = Random(1)
    limits = hidden_limits(rng)
    del limits[JERK]
    lines = ["G0 X80", "G0 X0", *["G0 X15", "G0 X0", "M64 P9", "M66 P9 L3 Q0.2"] * 3]
    text = cell_text(limits)
    found = fitted(arm(cell_text({})), recording(text, rng, lines))
    by_key = {each.key: each for each in found.estimates}
    assert not by_key[f"robots.arm.{JERK}.0"].visible
    each = by_key[f"robots.arm.{ACCELERATION}.0"]
    assert each.low <= limits[ACCELERATION][0] <= each.high


def test_lists_of_limits_are_written_whole() -> None:
    rng = Random(2)
    limits = hidden_limits(rng)
    chat = recording(cell_text(limits), rng, ["G0 X80", "G0 X0", *["G0 X15", "G0 X0", "G0 X3"] * 3])
    known = cell_text({})
    recorded = module_of("robots", "arm").recorded(arm(known), "arm", chat)
    text = fitted_text(known, fit(recorded), recorded, robot="arm", recording="a.chat")
    written = arm(text).robots["arm"].config
    assert written.max_acceleration_deg_s2[0] == pytest.approx(limits[ACCELERATION][0], rel=0.02)
    assert written.max_jerk_deg_s3[1:] == [2500.0, 2500.0, 4000.0, 4000.0, 5000.0]  # the model's
