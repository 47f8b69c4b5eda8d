"""Scenario rules: fault, place, time, number of actions, and refused rules."""

import re
from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.agenda import advance
from understudy.errors import ConfigError, Refused
from understudy.ports.faults import Faults
from understudy.simulation.scenario import Config, Rule, Scenario, When, build, find_fault
from understudy.units import nanoseconds

FACE = "bench.text_tcp"


class Target:
    """Records the faults that are injected into it."""

    def __init__(self, *faults: str) -> None:
        self._faults = faults
        self.injected: list[tuple[str, int]] = []

    def faults(self) -> Faults:
        return {name: find_fault(name) for name in self._faults}

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        self.injected.append((fault, now))
        return None


class Pendulum(Target):
    """Its tool moves along X from 0 to 100 mm and back in two seconds, without end."""

    def busy(self) -> bool:
        return True

    def tcp(self, now: int) -> tuple[float, ...]:
        phase = now / 1e9 % 2.0
        return (0.1 * min(phase, 2.0 - phase), 0.0, 0.0, 0.0, 0.0, 0.0)


def put_together(**rules: Rule) -> tuple[Scenario, Target]:
    scenario = build(Config(rules), seed=1)
    bench = Target("position_noise", "temperature_noise", "emergency_stop", "overheat")
    scenario.act_on({"bench": bench, FACE: Target("communication_timeout")})
    return scenario, bench


def injected(rule: Rule, until_s: float) -> list[float]:
    """The seconds at which a rule injects its fault."""
    scenario, bench = put_together(rule=rule)
    advance([scenario], nanoseconds(until_s))
    return [now / 1e9 for _, now in bench.injected]


# ── faults that parts query ──


@pytest.mark.parametrize(("probability", "strikes"), [(0.0, 0), (1.0, 500)])
def test_probability_0_and_1(probability: float, strikes: int) -> None:
    rule = Rule("communication_timeout", FACE, probability=probability)
    scenario, _ = put_together(lost=rule)
    hits = [scenario.draw_fault("communication_timeout", FACE, now) for now in range(500)]
    assert sum(hit is not None for hit in hits) == strikes
    assert scenario.status(0)["lost"].tries == 500


def test_a_probability_is_met_in_the_long_run() -> None:
    scenario, _ = put_together(lost=Rule("communication_timeout", FACE, probability=0.05))
    for now in range(10_000):
        scenario.draw_fault("communication_timeout", FACE, now)
    assert 400 < scenario.status(0)["lost"].strikes < 600


def test_a_window_begins_with_from_and_ends_before_until() -> None:
    rule = Rule("communication_timeout", FACE, from_s=1.0, until_s=2.0)
    scenario, _ = put_together(lost=rule)
    moments = (0, 999_999_999, 1_000_000_000, 1_999_999_999, 2_000_000_000)
    hits = [scenario.draw_fault("communication_timeout", FACE, now) is not None for now in moments]
    assert hits == [False, False, True, True, False]


def test_a_rule_acts_only_with_its_fault_at_its_place() -> None:
    scenario, _ = put_together(lost=Rule("communication_timeout", FACE))
    assert scenario.draw_fault("communication_timeout", "bench", 0) is None
    assert scenario.draw_fault("position_noise", FACE, 0) is None
    assert scenario.status(0)["lost"].tries == 0


def test_an_active_fault_has_given_or_default_parameters() -> None:
    rule = Rule("position_noise", "bench", parameters={"amplitude_mm": 2.5})
    scenario, _ = put_together(noise=rule)
    draw_fault = scenario.draw_fault("position_noise", "bench", 0)
    assert draw_fault is not None
    assert draw_fault.parameters == {"amplitude_mm": 2.5, "amplitude_deg": 0.1}
    deviations = scenario.deviations(draw_fault, 6)
    assert len(set(deviations)) == 6
    assert all(-1.0 <= value < 1.0 for value in deviations)


def test_each_active_fault_has_its_own_deviations() -> None:
    scenario, _ = put_together(noise=Rule("position_noise", "bench"))
    first, second = (scenario.draw_fault("position_noise", "bench", 0) for _ in range(2))
    assert first is not None
    assert second is not None
    assert scenario.deviations(first, 6) != scenario.deviations(second, 6)
    assert scenario.deviations(first, 6) == scenario.deviations(first, 6)


def test_every_matching_rule_draws_and_the_first_hit_acts() -> None:
    never = Rule("communication_timeout", FACE, probability=0.0)
    always = Rule("communication_timeout", FACE)
    scenario, _ = put_together(never=never, first=always, second=always)
    hits = [scenario.draw_fault("communication_timeout", FACE, now) for now in range(3)]
    assert [hit and (hit.rule, hit.index) for hit in hits] == [("first", n) for n in range(3)]
    counts = scenario.status(0)
    assert {name: (count.tries, count.strikes) for name, count in counts.items()} == {
        "never": (3, 0),
        "first": (3, 3),
        "second": (3, 3),
    }


def test_an_ambient_fault_changes_once_per_period_within_its_window() -> None:
    rule = Rule("position_noise", "bench", from_s=1.0, parameters={"amplitude_mm": 2.5})
    scenario, _ = put_together(noise=rule)
    moments = (999_999_999, 1_000_000_000, 1_009_999_999, 1_010_000_000)
    found = [scenario.ambient("position_noise", "bench", now) for now in moments]
    assert [fault and (fault.rule, fault.index) for fault in found] == [
        None,
        ("noise", 100),
        ("noise", 100),
        ("noise", 101),
    ]
    assert found[1] is not None
    assert found[1].parameters["amplitude_mm"] == 2.5
    assert scenario.ambient("temperature_noise", "bench", moments[1]) is None
    assert scenario.ambient("position_noise", FACE, moments[1]) is None


def test_rules_with_faults_of_messages_disturb_their_endpoint() -> None:
    rules = {"loss": Rule("message_loss", FACE), "noise": Rule("position_noise", "bench")}
    assert build(Config(rules), seed=1).disturbs() == {FACE}


# ── injected by a rule ──


def test_a_rule_acts_at_its_time() -> None:
    assert injected(Rule("emergency_stop", "bench", at_s=1.5), 10) == [1.5]


def test_a_periodic_rule_acts_until_its_end() -> None:
    rule = Rule("emergency_stop", "bench", at_s=1.0, every_s=0.5)
    assert injected(rule, 3) == [1.0, 1.5, 2.0, 2.5, 3.0]
    until = msgspec.structs.replace(rule, until_s=2.0)
    assert injected(until, 3) == [1.0, 1.5]


def test_a_period_does_not_drift() -> None:
    rule = Rule("emergency_stop", "bench", at_s=0.1, every_s=0.1)
    scenario, bench = put_together(rule=rule)
    advance([scenario], nanoseconds(1000))
    assert bench.injected[-1] == ("emergency_stop", nanoseconds(1000))
    assert len(bench.injected) == 10_000


def test_an_injecting_rule_may_have_a_probability() -> None:
    rule = Rule("emergency_stop", "bench", at_s=0.0, every_s=1.0, probability=0.5)
    assert 400 < len(injected(rule, 999)) < 600


def test_rules_due_at_the_same_time_act_in_the_order_of_the_file() -> None:
    scenario, bench = put_together(
        second=Rule("overheat", "bench", at_s=1.0), first=Rule("emergency_stop", "bench", at_s=1.0)
    )
    advance([scenario], nanoseconds(1))
    assert [fault for fault, _ in bench.injected] == ["overheat", "emergency_stop"]


# ── triggered by the tool near a point ──


def swinging() -> tuple[Scenario, Pendulum]:
    """The tool comes within 10 mm of the point at 0.405 s, 1.395 s, 2.405 s, …; another rule wakes
    the scenario at 0.4053 s."""
    near = Rule("emergency_stop", "arm", when=When("arm", near_mm=(50.5, 0.0, 0.0)))
    scenario = build(Config({"near": near, "timed": Rule("overheat", "arm", at_s=0.4053)}), seed=1)
    arm = Pendulum("emergency_stop", "overheat")
    scenario.act_on({"arm": arm})
    return scenario, arm


def stops(arm: Target) -> list[float]:
    return [now / 1e9 for fault, now in arm.injected if fault == "emergency_stop"]


def test_each_approach_of_the_tool_triggers_once_at_the_next_check() -> None:
    scenario, arm = swinging()
    advance([scenario], nanoseconds(3))
    assert stops(arm) == [0.41, 1.4, 2.41], "checked every 10 ms, whatever else wakes the scenario"


def test_a_tool_that_was_near_in_the_snapshot_triggers_at_its_next_approach() -> None:
    scenario, _ = swinging()
    advance([scenario], nanoseconds(0.5))
    other, arm = swinging()
    other.load(msgspec.json.decode(msgspec.json.encode(scenario.save())))
    advance([other], nanoseconds(2))
    assert stops(arm) == [1.4]


# ── refused rules ──

WRONG = {
    "unknown fault": (
        Rule("emergency_stp", "bench", at_s=1.0),
        "scenario.rules.rule.fault: unknown fault (got 'emergency_stp')",
        "did you mean 'emergency_stop'?",
    ),
    "unknown place": (
        Rule("emergency_stop", "banch", at_s=1.0),
        "scenario.rules.rule.on: unknown robot or face (got 'banch')",
        f"allowed: bench, {FACE}; did you mean 'bench'?",
    ),
    "wrong place": (
        Rule("communication_timeout", "bench"),
        "scenario.rules.rule.on: communication_timeout cannot act there (got 'bench')",
        "allowed: position_noise, temperature_noise, emergency_stop, overheat",
    ),
    "injected without a time": (
        Rule("emergency_stop", "bench"),
        "scenario.rules.rule.at_s: emergency_stop is injected and needs either at_s or",
        "",
    ),
    "asked with a time": (
        Rule("position_noise", "bench", at_s=1.0),
        "scenario.rules.rule.at_s: position_noise acts whenever the robot or face queries it",
        "use from_s and until_s (got 1.0)",
    ),
    "a period without a beginning": (
        Rule("position_noise", "bench", every_s=1.0),
        "scenario.rules.rule.every_s: every_s needs at_s (got 1.0)",
        "",
    ),
    "a window around a time": (
        Rule("emergency_stop", "bench", at_s=1.0, from_s=0.5),
        "scenario.rules.rule.from_s: emergency_stop begins at at_s (got 0.5)",
        "",
    ),
    "a window that is never open": (
        Rule("position_noise", "bench", from_s=2.0, until_s=2.0),
        "scenario.rules.rule.until_s: the rule ends before it begins (got 2.0)",
        "allowed: more than 2",
    ),
    "a script that ends before it begins": (
        Rule("emergency_stop", "bench", at_s=3.0, until_s=1.0),
        "scenario.rules.rule.until_s: the rule ends before it begins (got 1.0)",
        "allowed: more than 3",
    ),
    "unknown parameter": (
        Rule("position_noise", "bench", parameters={"amplitude": 1.0}),
        "scenario.rules.rule.parameters.amplitude: unknown parameter of position_noise",
        "did you mean 'amplitude_mm'?",
    ),
    "parameter out of range": (
        Rule("position_noise", "bench", parameters={"amplitude_mm": 1001.0}),
        "scenario.rules.rule.parameters.amplitude_mm: out of range (got 1001.0)",
        "allowed: 0…1000",
    ),
}


@pytest.mark.parametrize(("rule", "begins", "teaches"), WRONG.values(), ids=WRONG)
def test_a_rule_that_cannot_act_is_refused_with_its_place(
    rule: Rule, begins: str, teaches: str
) -> None:
    with pytest.raises(ConfigError, match="^" + re.escape(begins)) as caught:
        put_together(rule=rule)
    assert teaches in str(caught.value)


# ── injected by an operator ──


def test_a_fault_is_injected_by_an_operator() -> None:
    scenario, bench = put_together()
    assert scenario.inject("emergency_stop", "bench", {}, 5) is None
    assert bench.injected == [("emergency_stop", 5)]


@pytest.mark.parametrize(
    ("fault", "on", "parameters", "reason"),
    [
        ("emergency", "bench", {}, "unknown fault (got 'emergency')"),
        ("emergency_stop", "kuka", {}, "unknown robot or face (got 'kuka')"),
        ("emergency_stop", FACE, {}, "cannot act there"),
        ("position_noise", "bench", {}, "acts only by a scenario rule"),
        ("overheat", "bench", {"to_c": 90.0}, "unknown parameter of overheat"),
    ],
)
def test_a_fault_that_cannot_be_injected_is_refused(
    fault: str, on: str, parameters: dict[str, float], reason: str
) -> None:
    scenario, bench = put_together()
    refused = scenario.inject(fault, on, parameters, 0)
    assert isinstance(refused, Refused)
    assert reason in refused.reason
    assert bench.injected == []


# ── snapshots ──

RULES = {
    "lost": Rule("communication_timeout", FACE, probability=0.4),
    "stop": Rule("emergency_stop", "bench", at_s=0.5, every_s=1.0, probability=0.5),
}


def _go_on(scenario: Scenario, bench: Target, *, start: int, end: int) -> list[object]:
    bench.injected.clear()
    hits: list[object] = []
    for second in range(start, end):
        advance([scenario], nanoseconds(second))
        hits.append(scenario.draw_fault("communication_timeout", FACE, nanoseconds(second)))
    return [*hits, *bench.injected]


@given(st.integers(0, 30))
def test_a_snapshot_is_invisible(moment: int) -> None:
    scenario, bench = put_together(**RULES)
    _go_on(scenario, bench, start=0, end=moment)
    saved = msgspec.json.decode(msgspec.json.encode(scenario.save()))
    expected = _go_on(scenario, bench, start=moment, end=40)
    other, victim = put_together(**RULES)
    other.load(saved)
    assert _go_on(other, victim, start=moment, end=40) == expected


@pytest.mark.parametrize(
    ("state", "reported"),
    [
        ({"counts": {}}, "the snapshot has counts of other rules: none"),
        (
            {"counts": {"lost": {}, "stop": {}, "more": {}}},
            "the snapshot has counts of other rules: lost, stop, more",
        ),
        ({"counts": {"lost": 1}}, "Expected `object`, got `int`"),
        ({}, "missing required field `counts`"),
        (None, "Expected `object`, got `null`"),
    ],
)
def test_a_snapshot_with_other_rules_is_refused(state: object, reported: str) -> None:
    scenario, _ = put_together(**RULES)
    with pytest.raises(msgspec.ValidationError, match=reported):
        scenario.load(state)
