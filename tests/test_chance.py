"""Draws are a function of seed, name and index."""

from collections import Counter
from itertools import pairwise
from statistics import fmean

import pytest

from understudy.chance import draw, symmetric_draws
from understudy.simulation.scenario import Rule, Scenario


def test_a_draw_depends_on_seed_name_and_index_and_on_nothing_else() -> None:
    keys = [(seed, name, index) for seed in (0, 1) for name in ("a", "b") for index in (0, 1)]
    draws = [draw(*key) for key in keys]
    assert len(set(draws)) == len(keys)
    assert [draw(*key) for key in reversed(keys)] == draws[::-1]


def test_similar_keys_give_different_draws() -> None:
    assert draw(1, "1/1", 1) != draw(1, "1", 1)
    assert draw(11, "a", 1) != draw(1, "1a", 1)


def test_draws_are_uniform_and_successive_ones_unrelated() -> None:
    count = 20_000
    draws = [draw(7, "rule", index) for index in range(count)]
    assert all(0.0 <= value < 1.0 for value in draws)
    tenths = Counter(int(value * 10) for value in draws)
    assert all(0.9 * count / 10 < tenths[tenth] < 1.1 * count / 10 for tenth in range(10))
    products = [(a - 0.5) * (b - 0.5) for a, b in pairwise(draws)]
    assert abs(fmean(products)) < 0.003  # four standard errors


def test_symmetric_draws_fill_the_amplitude_on_both_sides() -> None:
    values = [
        v for n in range(2000) for v in symmetric_draws(7, "noise", n, count=6, amplitude=0.1)
    ]
    assert min(values) >= -0.1
    assert max(values) < 0.1
    assert min(values) < -0.099
    assert max(values) > 0.099
    assert fmean(values) == pytest.approx(0.0, abs=0.002)


def test_the_draws_of_one_index_differ() -> None:
    assert len(set(symmetric_draws(7, "noise", 3, count=6, amplitude=1.0))) == 6


def _struck(rules: dict[str, Rule]) -> list[bool]:
    """Requests, of a thousand, in which the fault `lost` occurs."""
    scenario = Scenario(rules, seed=5)
    struck = []
    for now in range(1000):
        before = scenario.status(now)["lost"].strikes
        scenario.draw_fault("communication_timeout", "bench.text_tcp", now)
        struck.append(scenario.status(now)["lost"].strikes > before)
    return struck


LOST = Rule("communication_timeout", "bench.text_tcp", probability=0.3)


@pytest.mark.parametrize(
    "other",
    [
        Rule("position_noise", "bench"),
        Rule("communication_timeout", "bench.text_tcp", probability=0.5),
    ],
    ids=["elsewhere", "in the same place"],
)
def test_adding_a_rule_changes_no_other_rules_draws(other: Rule) -> None:
    alone = _struck({"lost": LOST})
    assert 200 < sum(alone) < 400
    assert _struck({"other": other, "lost": LOST}) == alone
    assert _struck({"lost": LOST, "other": other}) == alone
