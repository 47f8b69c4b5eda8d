"""The simulated vacuum cup: pressure, seal, part, faults."""

import math

import pytest
from tests.devices.gripper.gripper_bench import DOWN, Bench, box

from understudy.simulation.scenario import Rule
from understudy.space.pose import pose_of

VACUUM_ON, BLOW_OFF, VACUUM_OK, VACUUM = 10, 11, 11, 5
TOP = (400, 0, 80, 0, 0, 0)
"""A cube of 40 mm whose top face touches the cup at z = 100 mm."""
AREA = math.pi * 0.015**2


def cup(*parts: object, **keys: object) -> Bench:
    return Bench(*parts, type="PNEUMATIC_VACUUM", **keys)  # type: ignore[arg-type]


def test_vacuum_level_sensing() -> None:
    bench = cup(box(at=TOP))
    assert bench.grip() == ""
    reached = 10 + 80 * math.log(85 / 25)
    ((ended, _),), ((rises, level),) = bench.ended, bench.edges("DI", VACUUM_OK)
    assert ended == pytest.approx(reached, abs=1e-3)
    assert rises == ended
    assert level
    assert bench.status.vacuum_kpa == pytest.approx(-85.0, abs=0.01)
    assert bench.io.analog_input(VACUUM, bench.now) == pytest.approx(8.5, abs=1e-3)
    assert (bench.status.state, bench.parts.held_by("g60")) == ("GRIPPING", "cube")
    assert bench.edges("DO", VACUUM_ON) == [(0, True)], "the ejector stays on"


def test_the_part_is_lifted_as_soon_as_the_vacuum_carries_its_weight() -> None:
    bench = cup(box(at=TOP, mass=0.3))
    bench.grip()
    kpa = 0.3 * 9.80665 / AREA / 1e3
    ((_, taken),) = bench.parts.log
    assert taken == pytest.approx(10 + 80 * math.log(85 / (85 - kpa)), abs=0.01)


def test_a_release_blows_the_part_off() -> None:
    bench = cup(box(at=TOP))
    bench.grip()
    assert bench.release() == ""
    assert bench.ended[-1][0] == 1100, "blowoff_time_ms"
    (_, dropped) = bench.parts.log[1]
    kpa = 0.3 * 9.80665 / AREA / 1e3
    assert dropped == pytest.approx(1010 + 10 * math.log(85 / kpa), abs=0.01)
    assert bench.lost == []
    assert bench.status.state == "OPENED"


def test_without_blow_off_it_takes_longer() -> None:
    bench = cup(box(at=TOP))
    bench.grip()
    bench.gripper.disable_vacuum(bench.now)
    bench.on(2000)
    kpa = 0.3 * 9.80665 / AREA / 1e3
    assert bench.parts.log[1][1] == pytest.approx(1010 + 200 * math.log(85 / kpa), abs=0.1)


@pytest.mark.parametrize(
    ("part", "grips"),
    [
        (box(at=(400, 0, 77.1, 0, 0, 0)), True),
        (box(at=(400, 0, 76.9, 0, 0, 0)), False),
        (box(at=(404.9, 0, 80, 0, 0, 0)), True),
        (box(at=(405.1, 0, 80, 0, 0, 0)), False),
        (box(at=(400, 0, 80, 4, 0, 30)), True),
        (box(at=(400, 0, 80, 6, 0, 0)), False),
        (box(at=(400, 0, 80, 0, 90, 0)), True),
        (box(size_mm=(40, 29, 40), at=TOP), False),
    ],
    ids=["near", "far", "rim inside", "rim outside", "flat", "tilted", "on its side", "narrow"],
)
def test_what_seals_the_cup(part: object, grips: bool) -> None:
    bench = cup(part)
    said = bench.grip(1200)
    assert (said == "") == grips
    if not grips:
        assert said.startswith("MISSED: -8.0 kPa within 1000 ms, -60 kPa are needed")
        assert bench.parts.log == []
        assert not bench.io.digital().outputs


def test_a_cup_that_comes_down_with_its_vacuum_on_gets_the_part() -> None:
    bench = cup(box(at=TOP), tool=pose_of((400, 0, 200, 180, 0, 0)))
    bench.gripper.enable_vacuum(0)
    bench.run(2000)
    assert bench.status.state == "CLOSING"
    bench.tool = DOWN
    bench.run(3000)
    assert bench.parts.held_by("g60") == "cube"
    assert bench.grip() == ""


def test_a_part_too_heavy_to_lift_stays_where_it_is() -> None:
    bench = cup(box(at=TOP, mass=7.0))
    assert bench.grip() == "", "VACUUM_OK says nothing about the weight"
    assert bench.parts.log == []
    bench.raise_tool(1.0)
    bench.on(1000)
    assert len(bench.lost) == 1
    assert bench.parts.log == []


@pytest.mark.parametrize(("acceleration", "held"), [(9.0, True), (11.5, False)])
def test_a_hard_acceleration_tears_the_part_off(acceleration: float, held: bool) -> None:
    """85 kPa on 30 mm are 60.1 N; a part of 3 kg needs 3 (g + a)."""
    bench = cup(box(at=TOP, mass=3.0))
    bench.grip()
    bench.raise_tool(acceleration)
    bench.on(500)
    assert bool(bench.parts.held_by("g60")) == held
    assert (bench.lost == []) == held


# ── faults ──────────────────────────────────────────────────────────────────────────────────────


def test_a_leak_is_a_lost_part_at_the_hysteresis() -> None:
    bench = cup(box(at=TOP))
    bench.grip()
    bench.inject("vacuum_leak", share=0.3)
    assert bench.on(1000).lost == [], "-59.5 kPa is within the hysteresis"
    bench.inject("vacuum_leak", share=0.6)
    bench.on(1000)
    passed = 2000 + 80 * math.log((59.5 - 34.0) / (50.0 - 34.0))
    assert bench.lost == [pytest.approx(passed, abs=0.2)]
    assert bench.parts.held_by("g60") == "cube", "-34 kPa still carry it"
    assert bench.gripper.active_faults()[1] == "gripper fault: the cup leaks"
    bench.gripper.reset(bench.now)
    assert bench.on(1000).status.vacuum_kpa == pytest.approx(-85.0, abs=0.1)


def test_a_cup_that_leaks_all_lets_the_part_fall() -> None:
    bench = cup(box(at=TOP))
    bench.grip()
    bench.inject("vacuum_leak", share=1.0)
    bench.on(1000)
    assert [what for what, _ in bench.parts.log] == ["take cube", "drop cube"]
    assert len(bench.lost) == 1


def test_without_air_the_check_valve_holds_for_a_while() -> None:
    bench = cup(box(at=TOP))
    bench.grip()
    bench.inject("air_lost")
    assert bench.on(5000).lost == []
    bench.on(60_000)
    assert bench.lost == [pytest.approx(1000 + 20_000 * math.log(85 / 50), rel=1e-4)]
    assert [what for what, _ in bench.parts.log] == ["take cube", "drop cube"]


def test_slip_miss_and_stuck_switch() -> None:
    rules = {"unlucky": Rule(fault="grip_miss", on="g60.gripper", times=1)}
    bench = cup(box(at=TOP), rules=rules)
    assert "MISSED" in bench.grip(1200)
    assert bench.grip() == ""
    bench.inject("slip")
    bench.on(1000)
    assert len(bench.lost) == 1
    assert bench.release() == ""
    bench.inject("part_sensor_stuck", value=0.0)
    assert bench.grip() == "", "the analog sensor is beyond the threshold"
    assert bench.inject("closed_sensor_stuck") is not None


def test_a_stuck_valve_is_missed() -> None:
    bench = cup(box(at=TOP))
    bench.inject("valve_stuck")
    assert "MISSED: 0.0 kPa" in bench.grip(1200)


def test_a_reset_of_the_controller_keeps_the_vacuum() -> None:
    bench = cup(box(at=TOP))
    bench.grip()
    bench.io.reset(bench.now)
    bench.gripper.reset(bench.now)
    assert bench.on(5000).lost == []
    assert bench.status.state == "GRIPPING"
