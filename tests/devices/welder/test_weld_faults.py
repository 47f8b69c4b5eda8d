"""What goes wrong with a weld: by hand, by script, by chance; and how it is put right."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.devices.welder.weld_bench import Stand

from understudy.errors import Refused
from understudy.simulation.scenario import Rule


def welding(**settings: Any) -> Stand:
    """The arc has burned steadily for a while."""
    stand = Stand(**settings).start().run(1000)
    assert stand.welder.phase == "Weld"
    return stand


# ── arc ─────────────────────────────────────────────────────────────────────────────────────────


@given(st.floats(0.0, 0.2))
def test_an_arc_lost_for_a_moment_comes_back(duration: float) -> None:
    stand = welding()
    assert stand.inject("arc_fault", duration_s=duration) is None
    stand.run(1000 + duration * 1e3 + 1e-3)
    assert stand.welder.status(stand.now).arc_on
    stand.run(1300)
    assert stand.welder.phase == "Weld"
    assert stand.edges("WELD_ERROR") == []


@pytest.mark.parametrize("duration", [0.200000001, 0.25, 10.0])
def test_an_arc_lost_for_longer_is_a_fault_at_that_moment(duration: float) -> None:
    stand = welding()
    stand.inject("arc_fault", duration_s=duration)
    stand.run(20_000)
    assert stand.phases[-1] == (1200.0, "Fault")
    assert stand.welder.status(stand.now).fault == "arc"
    assert stand.welder.reason == "the arc was lost"
    assert not stand.welder.status(stand.now).arc_on, "it does not come back by itself"


@pytest.mark.parametrize(
    ("ms", "told"),
    [
        (10, []),
        (49.999, []),
        (50, [(1050, False), (1070, True)]),
        (120, [(1050, False), (1140, True)]),
        (300, [(1050, False)]),
    ],
)
def test_arc_ok_is_debounced(ms: float, told: list[tuple[float, bool]]) -> None:
    """20 ms on, 50 ms off."""
    stand = welding()
    stand.inject("arc_fault", duration_s=ms / 1e3)
    stand.run(5000)
    assert stand.edges("ARC_OK")[1:] == told


def test_an_arc_that_goes_out_at_once_after_the_strike_was_no_arc() -> None:
    stand = Stand().start().run(460)
    stand.inject("arc_fault", duration_s=0.1)
    stand.run(1000)
    assert stand.edges("ARC_OK") == [(580, True)]
    assert stand.phases[1:] == [(400, "Ignition"), (580, "Stabilize"), (780, "Weld")]


@pytest.mark.parametrize("at", [5200, 5550])
def test_an_arc_lost_in_crater_or_burnback_does_not_haunt_post_flow(at: int) -> None:
    stand = Stand().start().turn(5000, "ARC_START", False).run(at)
    stand.inject("arc_fault", duration_s=0.15)
    stand.run(20_000)
    assert stand.phases[-2:] == [(5580, "PostFlow"), (6580, "Idle")]
    assert not stand.welder.status(stand.now).arc_on


def test_only_an_arc_that_burns_can_be_lost() -> None:
    stand = Stand()
    assert stand.inject("arc_fault") == Refused("there is no arc to lose")
    stand.start().run(1000)
    stand.inject("arc_fault", duration_s=0.1)
    assert isinstance(stand.inject("arc_fault"), Refused)


# ── wire, gas, ignition ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("at", [0, 200, 430, 500, 1000, 5200, 5550, 6000])
def test_a_stuck_wire_is_a_fault_in_every_phase(at: float) -> None:
    stand = Stand()
    if at:
        stand.start()
    if at > 5000:
        stand.turn(5000, "ARC_START", False)
    stand.run(at)
    stand.inject("wire_fault")
    assert stand.phases[-1] == (at, "Fault")
    assert (stand.welder.status(stand.now).fault, stand.welder.reason) == (
        "wire",
        "the wire is stuck",
    )
    assert stand.edges("WIRE_STUCK") == [(at, True)]
    assert not stand.welder.status(stand.now).arc_on
    assert stand.welder.status(stand.now).wire_speed_m_min == 0.0
    stand.turn(at, "WIRE_INCH", True)
    assert not stand.welder.status(stand.now).wire_feeding


def test_gas_lost_in_a_weld_is_a_fault() -> None:
    stand = welding()
    stand.inject("gas_fault")
    status = stand.welder.status(stand.now)
    assert (status.phase, status.fault, status.gas_flowing) == ("Fault", "gas", False)
    assert stand.edges("GAS_OK") == [(100, True), (1000, False)]
    assert stand.issues == ["gas"]


def test_gas_that_is_gone_beforehand_is_found_missing_when_pre_flow_ends() -> None:
    stand = Stand()
    stand.inject("gas_fault")
    assert stand.welder.phase == "Idle", "nobody has asked for gas yet"
    stand.start().run(5000)
    assert stand.phases == [(0, "PreFlow"), (400, "Fault")]
    assert stand.welder.reason == "there is no gas"


@pytest.mark.parametrize("at", [0, 200, 430])
def test_a_source_that_cannot_ignite_faults_after_its_tries(at: int) -> None:
    """Also when the next draw_fault was on its way already."""
    stand = Stand().start().run(at)
    stand.inject("ignition_fault")
    stand.run(20_000)
    assert stand.phases[-1] == (6400.0, "Fault")
    assert stand.welder.status(stand.now).fault == "ignition"


# ── reset ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("fault", ["arc_fault", "wire_fault", "gas_fault", "ignition_fault"])
def test_fault_reset_clears_the_fault_and_its_cause(fault: str) -> None:
    stand = Stand(rules={}).turn(0, "GAS", True)
    if fault == "ignition_fault":
        stand.inject(fault)
        stand.turn(0, "ARC_START", True)
    else:
        stand.turn(0, "ARC_START", True).run(1000)
        stand.inject(fault)
    stand.run(10_000)
    assert stand.phase() == "Fault"
    stand.turn(10_000, "ARC_START", False).turn(10_000, "FAULT_RESET", True)
    status = stand.welder.status(stand.now)
    assert (status.phase, status.fault, status.reason) == ("Idle", "", "")
    inputs = {name: stand.io.digital_input(name) for name in ("WELD_ERROR", "WIRE_STUCK", "READY")}
    assert inputs == {"WELD_ERROR": False, "WIRE_STUCK": False, "READY": True}
    stand.turn(11_000, "ARC_START", True).run(12_000)
    assert stand.phase() == "Weld"


def test_only_the_rising_edge_resets() -> None:
    stand = Stand().turn(0, "FAULT_RESET", True)
    stand.inject("wire_fault")
    stand.turn(1, "FAULT_RESET", False)
    assert stand.phase() == "Fault"
    stand.turn(2, "FAULT_RESET", True)
    assert stand.phase() == "Idle"


def test_a_reset_lights_no_arc_though_it_is_still_wanted() -> None:
    stand = welding()
    stand.inject("wire_fault")
    stand.turn(2000, "FAULT_RESET", True).run(20_000)
    assert stand.phase() == "Idle"
    stand.turn(20_000, "ARC_START", False).turn(20_001, "ARC_START", True).run(21_000)
    assert stand.phase() == "Weld"


def test_a_fault_has_no_arc_and_takes_no_orders() -> None:
    stand = welding()
    stand.inject("wire_fault")
    stand.turn(1100, "ARC_START", False).turn(1200, "ARC_START", True).run(5000)
    assert stand.phases[-1] == (1000.0, "Fault")


# ── by script, by chance ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fault", "at_s", "phase"),
    [
        ("arc_fault", 2.0, (2200, "Fault")),
        ("wire_fault", 2.0, (2000, "Fault")),
        ("gas_fault", 2.0, (2000, "Fault")),
        ("ignition_fault", 0.2, (6400, "Fault")),
    ],
)
def test_faults_come_by_script(fault: str, at_s: float, phase: tuple[float, str]) -> None:
    stand = Stand(rules={"script": Rule(fault, "torch", at_s=at_s)}).start().run(10_000)
    assert stand.phases[-1] == phase


def test_faults_come_by_chance_each_with_its_own_luck() -> None:
    """Half of all ignition tries miss: half of the welds begin at once, a quarter one later …"""
    rules = {"dud": Rule("ignition_failure", "torch", probability=0.5)}
    late = []
    for seed in range(60):
        stand = Stand(rules=rules, seed=seed).start().run(6500)
        late.append(stand.phases[2][0])
    counts = {at: late.count(at) for at in sorted(set(late))}
    assert list(counts) == [470, 2470, 4470, 6400]
    assert 20 <= counts[470] <= 40
    assert 8 <= counts[2470] <= 24
    again = [Stand(rules=rules, seed=s).start().run(6500).phases[2][0] for s in range(60)]
    assert again == late


def test_a_scripted_fault_may_be_a_matter_of_chance_too() -> None:
    rule = Rule("wire_fault", "torch", at_s=1.0, every_s=1.0, probability=0.25, until_s=20.0)
    first = [Stand(rules={"jam": rule}, seed=s).start().run(20_000).phases[-1] for s in range(20)]
    assert {phase for _, phase in first} <= {"Fault", "Weld"}
    assert len({at for at, _ in first}) > 3
