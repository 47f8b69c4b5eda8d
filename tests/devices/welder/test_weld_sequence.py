"""Idle … PostFlow, to the nanosecond, with the figures for steel."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.devices.welder.weld_bench import GOOD_WELD, MS, WelderBench

from understudy.devices.welder import TRANSITIONS
from understudy.simulation.io.virtual_io import Link
from understudy.simulation.scenario import Rule

NEVER_IGNITES = {"dud": Rule("ignition_failure", "torch")}


def misses(count: int) -> dict[str, Rule]:
    """The given number of first tries fails: the first begins 0.4 s after M3, the next 2 s later
    …"""
    return (
        {"dud": Rule("ignition_failure", "torch", until_s=0.41 + 2.0 * (count - 1))}
        if count
        else {}
    )


# ── a good weld ─────────────────────────────────────────────────────────────────────────────────


def test_a_good_weld_to_the_nanosecond() -> None:
    bench = WelderBench().start().turn(5000, "ARC_START", False).run(10_000)
    assert bench.phases == GOOD_WELD
    assert bench.edges("ARC_OK") == [(470, True), (5630, False)]
    assert bench.edges("GAS_OK") == [(100, True)], "the gas is the program's"
    assert bench.edges("WELD_ERROR") == []
    assert bench.edges("READY") == [(0, True)]
    assert bench.welder.status(bench.now).arc_on_time_s == pytest.approx(5.58 - 0.45, abs=1e-12)


@pytest.mark.parametrize("links", [[], [Link(0, 0, 50), Link(1, 1, 100)]])
def test_the_delay_is_that_of_a_link_or_else_the_configured_one(
    links: list[Link],
) -> None:
    bench = WelderBench(links=links).start().run(1000)
    assert bench.phases == GOOD_WELD[:4]


def test_the_delay_follows_the_link() -> None:
    bench = WelderBench(links=[Link(0, 0, 10), Link(1, 1, 250)]).start().run(2000)
    assert bench.phases == [(0, "PreFlow"), (550, "Ignition"), (580, "Stabilize"), (780, "Weld")]
    assert bench.edges("GAS_OK") == [(250, True)]


def test_a_changed_link_acts_from_the_next_edge_on() -> None:
    bench = WelderBench()
    bench.io.link("ARC_START", "ARC_OK", 200, 0)
    bench.start().run(2000)
    assert bench.phases[1:3] == [(400, "Ignition"), (620, "Stabilize")]


def test_every_time_is_a_setting() -> None:
    bench = WelderBench(
        links=[],
        pre_flow_s=0.5,
        ignition_time_s=0.1,
        stabilize_s=0.3,
        crater_s=0.7,
        burnback_s=0.2,
        post_flow_s=2.0,
        arc_ok_on_ms=5,
        arc_ok_off_ms=7,
        gas_delay_ms=40,
    )
    bench.start().turn(3000, "ARC_START", False).run(10_000)
    assert [at for at, _ in bench.phases] == [0, 540, 645, 945, 3000, 3700, 3900, 5900]
    assert bench.edges("ARC_OK") == [(645, True), (3907, False)]


def test_all_times_may_be_zero() -> None:
    times = (
        "pre_flow_s",
        "ignition_time_s",
        "stabilize_s",
        "crater_s",
        "burnback_s",
        "post_flow_s",
    )
    delays = ("arc_ok_on_ms", "arc_ok_off_ms", "gas_delay_ms")
    none: dict[str, Any] = dict.fromkeys((*times, *delays), 0)
    bench = WelderBench(links=[], **none).start(1).turn(2, "ARC_START", False).run(3)
    assert [phase for _, phase in bench.phases] == [phase for _, phase in GOOD_WELD]
    assert {at for at, _ in bench.phases} == {1, 2}


# ── gas ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("lead", "ignition"), [(0, 400), (50, 350), (100, 300), (250, 150), (400, 0), (5000, 0)]
)
def test_pre_flow_counts_from_gas_ok(lead: int, ignition: int) -> None:
    bench = WelderBench().turn(0, "GAS", True).turn(lead, "ARC_START", True).run(lead + 400)
    assert bench.phases[:2] == [(lead, "PreFlow"), (lead + ignition, "Ignition")]


def test_the_arc_with_the_gas_closed_is_a_gas_fault() -> None:
    bench = WelderBench().turn(0, "ARC_START", True)
    assert bench.phases == [(0, "Fault")]
    assert (bench.welder.status(0).fault, bench.issues) == ("gas", ["gas"])
    assert bench.welder.reason == "the arc was started with the gas closed"
    assert bench.edges("WELD_ERROR") == [(0, True)]
    assert bench.edges("READY") == [(0, True), (0, False)]


@pytest.mark.parametrize("closed", [200, 430, 600, 1000])
def test_the_gas_closed_before_the_arc_is_out_is_a_gas_fault(closed: float) -> None:
    """In PreFlow, Ignition, Stabilize, Weld."""
    bench = WelderBench().start().turn(closed, "GAS", False)
    assert bench.phases[-1] == (closed, "Fault")
    assert not bench.welder.status(bench.now).arc_on
    assert bench.issues == ["gas"]


@pytest.mark.parametrize("closed", [5000, 5300, 5570, 6000])
def test_post_flow_keeps_the_gas_on_after_m9(closed: int) -> None:
    bench = WelderBench().start().turn(5000, "ARC_START", False).turn(closed, "GAS", False)
    bench.run(6579)
    assert bench.welder.status(bench.now).gas_flow_l_min == 15.0
    bench.run(6580)
    assert bench.welder.status(bench.now).gas_flow_l_min == 0.0
    assert bench.phases == GOOD_WELD
    assert bench.edges("GAS_OK") == [(100, True), (6580, False)]


def test_an_arc_wanted_again_in_post_flow_with_m9_given_is_a_gas_fault() -> None:
    bench = WelderBench().start().turn(5000, "ARC_START", False).turn(5100, "GAS", False)
    bench.turn(6000, "ARC_START", True).run(20_000)
    assert bench.phases[-1] == (6000.0, "Fault")
    wake = bench.welder.next_wake()
    assert wake is None or wake > bench.now


def test_auto_gas_opens_and_closes_it() -> None:
    bench = WelderBench(auto_gas=True).turn(0, "ARC_START", True).turn(5000, "ARC_START", False)
    bench.run(10_000)
    assert bench.phases == GOOD_WELD
    assert bench.edges("GAS_OK") == [(100, True), (6580, False)]


def test_gas_below_the_minimum_is_no_gas() -> None:
    bench = WelderBench(gas_flow_l_min=4.9).start().run(1000)
    assert bench.phases == [(0, "PreFlow"), (400, "Fault")]
    assert bench.edges("GAS_OK") == []
    assert bench.welder.status(bench.now).gas_flow_l_min == 4.9
    assert WelderBench(gas_flow_l_min=5.0).start().run(1000).welder.phase == "Weld"


# ── ignition ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("missed", [0, 1, 2])
def test_a_try_that_misses_is_repeated_after_two_seconds(missed: int) -> None:
    bench = WelderBench(rules=misses(missed)).start().run(10_000)
    late = 2000 * missed
    assert bench.phases[1:] == [(400, "Ignition"), (470 + late, "Stabilize"), (670 + late, "Weld")]


def test_after_three_tries_it_is_a_fault() -> None:
    bench = WelderBench(rules=NEVER_IGNITES).start().run(20_000)
    assert bench.phases == [(0, "PreFlow"), (400, "Ignition"), (6400, "Fault")]
    assert bench.welder.status(bench.now).fault == "ignition"
    assert bench.welder.reason == "no arc after 3 tries of 2 s"
    assert bench.fault_source.status(0)["dud"].tries == 3
    assert bench.edges("ARC_OK") == []


def test_an_arc_on_the_last_instant_of_a_try_counts() -> None:
    bench = WelderBench(links=[Link(0, 0, 2000)], rules=misses(2)).start().run(10_000)
    assert bench.edges("ARC_OK") == [(6420, True)]
    assert bench.phases[-1] == (6620, "Weld")


def test_an_arc_that_takes_longer_than_a_try_never_comes() -> None:
    bench = WelderBench(links=[Link(0, 0, 2000.001)]).start().run(10_000)
    assert bench.phases[-1] == (6400, "Fault")


@given(st.floats(0.0, 2000.0), st.integers(0, 2), st.floats(0.0, 1000.0))
def test_the_latest_ignition_is_after_6_47_s(takes: float, missed: int, lead: float) -> None:
    """From M3 to ARC_OK; so M66 with Q7 is long enough."""
    rules = {"dud": Rule("ignition_failure", "torch", until_s=lead / 1e3 + 0.41 + 2 * (missed - 1))}
    bench = WelderBench(links=[Link(0, 0, takes), Link(1, 1, 100)], rules=rules if missed else {})
    bench.turn(0, "GAS", True).turn(lead, "ARC_START", True).run(lead + 10_000)
    [(at, on)] = bench.edges("ARC_OK")
    assert on
    assert at - lead <= 6470.0


# ── arc off, and on again ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("off", [200, 420, 460, 500])
def test_an_arc_switched_off_before_it_is_steady_goes_to_post_flow(off: int) -> None:
    """In PreFlow, before and after ignition, in Stabilize."""
    bench = WelderBench().start().turn(off, "ARC_START", False)
    assert not bench.welder.status(bench.now).arc_on
    bench.run(10_000)
    assert bench.phases[-2:] == [(off, "PostFlow"), (off + 1000, "Idle")]
    assert not bench.welder.status(bench.now).arc_on, "and no draw_fault that was due comes late"
    on_edges = [at for at, on in bench.edges("ARC_OK") if on]
    assert on_edges == ([470] if off == 500 else [])


def test_an_arc_wanted_again_in_post_flow_needs_no_new_pre_flow() -> None:
    bench = (
        WelderBench().start().turn(5000, "ARC_START", False).turn(6000, "ARC_START", True).run(7000)
    )
    assert bench.phases[7:] == [
        (6000, "PreFlow"),
        (6000, "Ignition"),
        (6070, "Stabilize"),
        (6270, "Weld"),
    ]


@pytest.mark.parametrize("again", [5200, 5550])
def test_an_arc_wanted_again_before_it_is_out_comes_after_burnback(again: int) -> None:
    bench = WelderBench().start().turn(5000, "ARC_START", False).turn(again, "ARC_START", True)
    bench.run(7000)
    assert bench.phases[6:] == [
        (5580, "PostFlow"),
        (5580, "PreFlow"),
        (5580, "Ignition"),
        (5650, "Stabilize"),
        (5850, "Weld"),
    ]


def test_switching_an_active_arc_on_changes_nothing() -> None:
    bench = WelderBench().start().run(1000)
    bench.io.set_digital_output("ARC_START", True, bench.now)
    bench.turn(5000, "ARC_START", False).run(10_000)
    assert bench.phases == GOOD_WELD


# ── the table ───────────────────────────────────────────────────────────────────────────────────


def test_every_row_of_the_table_is_reached() -> None:
    """Runs through all of them in one test."""
    gone: set[tuple[str, str]] = set()
    for changes in (
        [(0, "GAS", True), (0, "ARC_START", True), (5000, "ARC_START", False)],
        [(0, "GAS", True), (0, "ARC_START", True), (200, "ARC_START", False)],
        [(0, "GAS", True), (0, "ARC_START", True), (420, "ARC_START", False)],
        [(0, "GAS", True), (0, "ARC_START", True), (500, "ARC_START", False)],
        [
            (0, "GAS", True),
            (0, "ARC_START", True),
            (500, "ARC_START", False),
            (900, "ARC_START", True),
        ],
        [(0, "ARC_START", True), (10, "FAULT_RESET", True)],
    ):
        bench = WelderBench()
        for change in changes:
            bench.turn(*change)
        bench.run(10_000)
        names = ["Idle", *(phase for _, phase in bench.phases)]
        gone |= set(pairwise(names))
    assert {(before, after) for (before, _), after in TRANSITIONS.items()} <= gone
    others = {pair for pair in gone if pair[1] != "Fault"}
    assert others == {(before, after) for (before, _), after in TRANSITIONS.items()}


# ── slices ──────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.integers(0, 8000 * MS), max_size=20))
def test_cutting_time_into_other_slices_changes_nothing(cuts: list[int]) -> None:
    rules = {"dud": Rule("ignition_failure", "torch", probability=0.5)}
    whole, cut = (WelderBench(rules=rules, seed=3).start() for _ in range(2))
    whole.run(8000)
    for moment in sorted(cuts):
        cut.run(moment / MS)
        cut.welder.status(cut.now)
        cut.io.analog(cut.now)
    cut.run(8000)
    assert whole.phases == cut.phases
    assert whole.io.history() == cut.io.history()
    assert whole.state == cut.state
