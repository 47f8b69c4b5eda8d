"""Machines with hidden settings are recorded on virtual time, and fitted."""

from random import Random

import pytest
from tests.offline.fit.noisy_link import NoisyLink
from tests.robots.grblhal.hidden_machines import (
    KNOWN,
    exercise,
    hidden_settings,
    machine,
    other_program,
    recording,
)

from understudy.app.build import build_cell
from understudy.app.validate import cycle_time
from understudy.offline.fit.cell_file import with_values
from understudy.offline.fit.estimate import Fit, fit
from understudy.registry import module_of
from understudy.robots.grblhal.numbers import Realtime
from understudy.units import nanoseconds
from understudy.wire.exchange import InProcessCell

WIDEST = 0.02
CYCLE_WITHIN = 0.01


def fitted(rng: Random) -> tuple[dict[int, float], float, Fit]:
    settings = hidden_settings(rng)
    chat, delay_ms = recording(settings, rng, exercise(rng))
    recorded = module_of("robots", "machine").recorded(machine(KNOWN), "mill", chat)
    return settings, delay_ms, fit(recorded)


def trial(seed: int) -> list[str]:
    """What is wrong with the fit of a hidden machine."""
    rng = Random(seed)
    settings, delay_ms, found = fitted(rng)
    truth = {f"robots.mill.settings.{number}": value for number, value in settings.items()}
    truth["scenario.rules.answer_delay.parameters.delay_ms"] = delay_ms
    del truth["robots.mill.settings.30"]
    by_key = {each.key: each for each in found.visible}
    wrong = [f"{key} is not visible" for key in truth if key not in by_key]
    for key in truth.keys() & by_key.keys():
        each = by_key[key]
        if not each.low <= truth[key] <= each.high:
            wrong.append(f"{key}: {truth[key]} is outside {each.low}…{each.high}")
        if each.width > WIDEST:
            wrong.append(f"{key}: the interval is {each.width:.1%} wide")
    program, real = other_program(rng), machine(settings)
    own = {key: each.value for key, each in by_key.items() if key in truth}
    values = {key: value for key, value in own.items() if key.startswith("robots.")}
    true_s = cycle_time(program, real).total_s
    fitted_s = cycle_time(program, with_values(real, values)).total_s
    if abs(fitted_s / true_s - 1.0) > CYCLE_WITHIN:
        wrong.append(f"another program takes {true_s:.3f} s, not {fitted_s:.3f} s")
    return wrong


@pytest.mark.parametrize("count", [10, pytest.param(100, marks=pytest.mark.soak)])
def test_the_intervals_contain_hidden_settings(count: int) -> None:
    failed = {seed: wrong for seed in range(count) if (wrong := trial(seed))}
    assert len(failed) <= count // 20, failed


def test_the_period_of_reports_that_come_by_themselves() -> None:
    rng = Random(5)
    for hidden in (120, 217):
        cell = InProcessCell(build_cell(machine({**KNOWN, 481: hidden})))
        link = NoisyLink(cell, "mill.grblhal", delay_s=0.006, jitter_s=0.0004, rng=rng)
        link.say(bytes([Realtime.AUTO_REPORT]) + b"G0 X50\nG0 X0\n")
        link.after(20.0, lambda: None)
        ends = link.now + nanoseconds(20.0)
        link.run(lambda link=link, ends=ends: link.now < ends)  # type: ignore[misc]
        recorded = module_of("robots", "machine").recorded(machine(KNOWN), "mill", link.chat())
        (found,) = (e for e in fit(recorded).visible if e.meaning == "period of reports")
        assert found.key == "robots.mill.settings.481"
        assert found.low < hidden <= found.high
        assert found.high - found.low <= 1.0


def test_a_recording_without_reports_says_so() -> None:
    link = NoisyLink(
        InProcessCell(build_cell(machine(KNOWN))),
        "mill.grblhal",
        delay_s=0.006,
        jitter_s=0.0004,
        rng=Random(1),
    )
    link.say(b"G0 X50\n")
    link.run(lambda: not any(event.data == b"ok\r\n" for event in link.events))
    found = fit(module_of("robots", "machine").recorded(machine(KNOWN), "mill", link.chat()))
    assert not found.visible
    assert "no status reports" in found.notes[0]
