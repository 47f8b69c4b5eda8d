"""Campaign files: which runs they describe, and what is wrong with them."""

from pathlib import Path

import pytest

from understudy.campaign.plan import Check, PlanFile, RunSpec, read_plan
from understudy.errors import ConfigError


def plan_of(text: str, folder: Path) -> PlanFile:
    return read_plan(str(folder / "campaign.yaml"), text)


def test_every_point_is_run_with_the_same_seeds(tmp_path: Path) -> None:
    text = """
        cell: text_robot
        runs: 3
        seed: 10
        grid: {robots.bench.move_abs_ms: [100, 200], robots.bench.home_ms: [300]}
    """
    specs = list(plan_of(text, tmp_path).plan.specs())
    assert [spec.number for spec in specs] == list(range(6))
    assert [spec.seed for spec in specs] == [10, 11, 12] * 2
    assert specs[0].point == {"robots.bench.move_abs_ms": 100, "robots.bench.home_ms": 300}
    assert specs[5].point == {"robots.bench.move_abs_ms": 200, "robots.bench.home_ms": 300}


def test_the_values_of_a_point_are_those_of_the_cell(tmp_path: Path) -> None:
    planned = plan_of("cell: text_robot\ngrid: {robots.bench.move_abs_ms: [123]}", tmp_path)
    config = planned.config(RunSpec(0, 5, {"robots.bench.move_abs_ms": 123}))
    assert config.robots["bench"].config.move_abs_ms == 123
    assert config.head.seed == 5


def test_rules_of_the_campaign_stand_beside_those_of_the_cell(tmp_path: Path) -> None:
    (tmp_path / "more.yaml").write_text("rules: {heat: {fault: overheat, on: bench, at_s: 2}}")
    text = """
        cell: text_robot
        scenario: more.yaml
        rules: {stop: {fault: emergency_stop, on: bench, at_s: 1}}
    """
    rules = plan_of(text, tmp_path).config(RunSpec(0, 0, {})).head.scenario.rules
    assert {"heat", "stop", "lost_commands"} <= set(rules)
    left = plan_of(text, tmp_path).config(RunSpec(0, 0, {}, ("heat",))).head.scenario.rules
    assert set(rules) - set(left) == {"heat"}


def test_a_cell_beside_the_campaign_is_found(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("robots: {one: {kind: text_robot}}")
    config = plan_of("cell: own.yaml\nfor_s: 1", tmp_path).config(RunSpec(0, 0, {}))
    assert list(config.robots) == ["one"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cell: text_robt", "text_robot"),
        ("cell: sorting\npick_place: {g61: 1}", "did you mean 'g60'"),
        ("cell: sorting\npick_place: {g60: 0}", "1 and more, or -1"),
        ("cell: text_robot\nprograms: {}\npick_place: {bench: 1}", "section `pickplace`"),
        ("cell: sorting\npick_place: {g60: 1}\nprograms: {g60: weld_block}", "program and a job"),
        ("cell: sorting", "for_s"),
        ("cell: text_robot\nrunz: 3", "did you mean 'runs'"),
        ("cell: text_robot\nruns: 0", "runs"),
        ("cell: text_robot\nprograms: {benc: text_square}", "programs.benc"),
        ("cell: text_robot\ngrid: {robots.bench.colour: [1]}", "colour"),
        ("cell: text_robot\ngrid: {robots.bench.kind.more: [1]}", "grid.robots.bench.kind.more"),
        ("cell: text_robot\ngrid: {seed: []}", "grid"),
        ("cell: text_robot\nruns: 10000000\ngrid: {seed: [1, 2]}", "too many runs"),
        ("cell: text_robot\nrules: {a: {fault: overheet, on: bench}}", "overheat"),
        ("cell: text_robot\nscript: [{at_s: 1, to: bench.text_tcp}]", "text or message"),
        ("cell: text_robot\nscript: [{at_s: 1, to: bench.tcp, text: x}]", "bench.text_tcp"),
        ("cell: [", "campaign.yaml"),
        ("cell: fleet", "for_s"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as problem:
        plan_of(text, tmp_path)
    assert says in str(problem.value)


@pytest.mark.parametrize(
    ("check", "value", "problem"),
    [
        (Check(at_most=5), 5.0, ""),
        (Check(at_most=5), 5.5, "t is 5.5, above 5"),
        (Check(at_least=2), 1, "t is 1, below 2"),
        (Check(at_least=1, at_most=3), 2, ""),
        (Check(equals="RUNNING"), "ERROR", "t is ERROR, not RUNNING"),
        (Check(equals=True), True, ""),
        (Check(at_most=1), None, "t is None, which is no number"),
        (Check(at_most=1), True, "t is True, which is no number"),
    ],
)
def test_a_check_says_what_does_not_hold(check: Check, value: object, problem: str) -> None:
    assert check.problem("t", value) == problem
