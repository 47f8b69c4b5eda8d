"""Weld faults: injected by an operator, by rules, at random; and their reset."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.devices.welder.weld_bench import WelderBench

from understudy.errors import Refused
from understudy.simulation.scenario import Rule


def welding(**settings: Any) -> WelderBench:
    """The arc has burned steadily for a while."""
    bench = WelderBench(**settings).start().run(1000)
    assert bench.welder.phase == "Weld"
    return bench


# ── arc ─────────────────────────────────────────────────────────────────────────────────────────


@given(st.floats(0.0, 0.2))
def test_an_arc_lost_for_a_short_time_comes_back(duration: float) -> None:
    bench = welding()
    assert bench.inject("arc_fault", duration_s=duration) is None
    bench.run(1000 + duration * 1e3 + 1e-3)
    assert bench.welder.status(bench.now).arc_on
    bench.run(1300)
    assert bench.welder.phase == "Weld"
    assert bench.edges("WELD_ERROR") == []


@pytest.mark.parametrize("duration", [0.200000001, 0.25, 10.0])
def test_an_arc_lost_for_longer_is_a_fault_at_the_limit(duration: float) -> None:
    bench = welding()
    bench.inject("arc_fault", duration_s=duration)
    bench.run(20_000)
    assert bench.phases[-1] == (1200.0, "Fault")
    assert bench.welder.status(bench.now).fault == "arc"
    assert bench.welder.reason == "the arc was lost"
    assert not bench.welder.status(bench.now).arc_on, "it does not come back by itself"


@pytest.mark.parametrize(
    ("ms", "reported"),
    [
        (10, []),
        (49.999, []),
        (50, [(1050, False), (1070, True)]),
        (120, [(1050, False), (1140, True)]),
        (300, [(1050, False)]),
    ],
)
def test_arc_ok_is_debounced(ms: float, reported: list[tuple[float, bool]]) -> None:
    """20 ms on, 50 ms off."""
    bench = welding()
    bench.inject("arc_fault", duration_s=ms / 1e3)
    bench.run(5000)
    assert bench.edges("ARC_OK")[1:] == reported


def test_an_arc_that_goes_out_right_after_ignition_does_not_count() -> None:
    bench = WelderBench().start().run(460)
    bench.inject("arc_fault", duration_s=0.1)
    bench.run(1000)
    assert bench.edges("ARC_OK") == [(580, True)]
    assert bench.phases[1:] == [(400, "Ignition"), (580, "Stabilize"), (780, "Weld")]


@pytest.mark.parametrize("at", [5200, 5550])
def test_an_arc_lost_in_crater_or_burnback_is_no_fault_in_post_flow(at: int) -> None:
    bench = WelderBench().start().turn(5000, "ARC_START", False).run(at)
    bench.inject("arc_fault", duration_s=0.15)
    bench.run(20_000)
    assert bench.phases[-2:] == [(5580, "PostFlow"), (6580, "Idle")]
    assert not bench.welder.status(bench.now).arc_on


def test_only_an_arc_that_burns_can_be_lost() -> None:
    bench = WelderBench()
    assert bench.inject("arc_fault") == Refused("there is no arc")
    bench.start().run(1000)
    bench.inject("arc_fault", duration_s=0.1)
    assert isinstance(bench.inject("arc_fault"), Refused)


# ── wire, gas, ignition ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("at", [0, 200, 430, 500, 1000, 5200, 5550, 6000])
def test_a_stuck_wire_is_a_fault_in_every_phase(at: float) -> None:
    bench = WelderBench()
    if at:
        bench.start()
    if at > 5000:
        bench.turn(5000, "ARC_START", False)
    bench.run(at)
    bench.inject("wire_fault")
    assert bench.phases[-1] == (at, "Fault")
    assert (bench.welder.status(bench.now).fault, bench.welder.reason) == (
        "wire",
        "the wire is stuck",
    )
    assert bench.edges("WIRE_STUCK") == [(at, True)]
    assert not bench.welder.status(bench.now).arc_on
    assert bench.welder.status(bench.now).wire_speed_m_min == 0.0
    bench.turn(at, "WIRE_INCH", True)
    assert not bench.welder.status(bench.now).wire_feeding


def test_gas_lost_in_a_weld_is_a_fault() -> None:
    bench = welding()
    bench.inject("gas_fault")
    status = bench.welder.status(bench.now)
    assert (status.phase, status.fault, status.gas_flowing) == ("Fault", "gas", False)
    assert bench.edges("GAS_OK") == [(100, True), (1000, False)]
    assert bench.issues == ["gas"]


def test_missing_gas_is_a_fault_at_the_end_of_pre_flow() -> None:
    bench = WelderBench()
    bench.inject("gas_fault")
    assert bench.welder.phase == "Idle", "no gas was requested yet"
    bench.start().run(5000)
    assert bench.phases == [(0, "PreFlow"), (400, "Fault")]
    assert bench.welder.reason == "there is no gas"


@pytest.mark.parametrize("at", [0, 200, 430])
def test_a_source_that_cannot_ignite_faults_after_its_tries(at: int) -> None:
    """Also when the next ignition was pending already."""
    bench = WelderBench().start().run(at)
    bench.inject("ignition_fault")
    bench.run(20_000)
    assert bench.phases[-1] == (6400.0, "Fault")
    assert bench.welder.status(bench.now).fault == "ignition"


# ── reset ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("fault", ["arc_fault", "wire_fault", "gas_fault", "ignition_fault"])
def test_fault_reset_clears_the_fault_and_its_cause(fault: str) -> None:
    bench = WelderBench(rules={}).turn(0, "GAS", True)
    if fault == "ignition_fault":
        bench.inject(fault)
        bench.turn(0, "ARC_START", True)
    else:
        bench.turn(0, "ARC_START", True).run(1000)
        bench.inject(fault)
    bench.run(10_000)
    assert bench.phase() == "Fault"
    bench.turn(10_000, "ARC_START", False).turn(10_000, "FAULT_RESET", True)
    status = bench.welder.status(bench.now)
    assert (status.phase, status.fault, status.reason) == ("Idle", "", "")
    inputs = {name: bench.io.digital_input(name) for name in ("WELD_ERROR", "WIRE_STUCK", "READY")}
    assert inputs == {"WELD_ERROR": False, "WIRE_STUCK": False, "READY": True}
    bench.turn(11_000, "ARC_START", True).run(12_000)
    assert bench.phase() == "Weld"


def test_only_the_rising_edge_resets() -> None:
    bench = WelderBench().turn(0, "FAULT_RESET", True)
    bench.inject("wire_fault")
    bench.turn(1, "FAULT_RESET", False)
    assert bench.phase() == "Fault"
    bench.turn(2, "FAULT_RESET", True)
    assert bench.phase() == "Idle"


def test_a_reset_does_not_ignite_a_requested_arc() -> None:
    bench = welding()
    bench.inject("wire_fault")
    bench.turn(2000, "FAULT_RESET", True).run(20_000)
    assert bench.phase() == "Idle"
    bench.turn(20_000, "ARC_START", False).turn(20_001, "ARC_START", True).run(21_000)
    assert bench.phase() == "Weld"


def test_in_a_fault_there_is_no_arc_and_arc_start_is_ignored() -> None:
    bench = welding()
    bench.inject("wire_fault")
    bench.turn(1100, "ARC_START", False).turn(1200, "ARC_START", True).run(5000)
    assert bench.phases[-1] == (1000.0, "Fault")


# ── scenario rules ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fault", "at_s", "phase"),
    [
        ("arc_fault", 2.0, (2200, "Fault")),
        ("wire_fault", 2.0, (2000, "Fault")),
        ("gas_fault", 2.0, (2000, "Fault")),
        ("ignition_fault", 0.2, (6400, "Fault")),
    ],
)
def test_rules_inject_faults_at_their_times(
    fault: str, at_s: float, phase: tuple[float, str]
) -> None:
    bench = WelderBench(rules={"script": Rule(fault, "torch", at_s=at_s)}).start().run(10_000)
    assert bench.phases[-1] == phase


def test_random_faults_follow_their_probability_and_seed() -> None:
    """Half of all ignition tries miss: half of the welds begin at once, a quarter one later …"""
    rules = {"dud": Rule("ignition_failure", "torch", probability=0.5)}
    late = []
    for seed in range(60):
        bench = WelderBench(rules=rules, seed=seed).start().run(6500)
        late.append(bench.phases[2][0])
    counts = {at: late.count(at) for at in sorted(set(late))}
    assert list(counts) == [470, 2470, 4470, 6400]
    assert 20 <= counts[470] <= 40
    assert 8 <= counts[2470] <= 24
    again = [WelderBench(rules=rules, seed=s).start().run(6500).phases[2][0] for s in range(60)]
    assert again == late


def test_an_injected_fault_may_have_a_probability() -> None:
    rule = Rule("wire_fault", "torch", at_s=1.0, every_s=1.0, probability=0.25, until_s=20.0)
    first = [
        WelderBench(rules={"jam": rule}, seed=s).start().run(20_000).phases[-1] for s in range(20)
    ]
    assert {phase for _, phase in first} <= {"Fault", "Weld"}
    assert len({at for at, _ in first}) > 3
