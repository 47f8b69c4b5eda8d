"""The simulated two-finger gripper: stroke, sensors, part, force, faults."""

import math

import pytest
from tests.devices.gripper.gripper_bench import Bench, box

from understudy.devices.gripper.controller import MISSED
from understudy.simulation.scenario import Rule

CLOSE, OPEN = 8, 9
CLOSED, OPENED, PART = 8, 9, 10
FORCE = 6e5 * math.pi * 0.006**2
"""6 bar on a piston of 12 mm."""


def test_pneumatic_grip_and_release_cycle() -> None:
    bench = Bench(box())
    assert bench.status.state == "OPENED"
    assert bench.grip() == ""
    assert bench.ended == [(165.0, "")], "10 valve, 40 mm at 400 mm/s, 5 sensor, 50 settle"
    assert bench.parts.log == [("take cube", 110.0)]
    assert bench.status.state == "GRIPPING"
    assert bench.status.opening == pytest.approx(0.040)
    assert bench.release() == ""
    assert bench.parts.log[1:] == [("drop cube", 1010.0)]
    assert bench.status.state == "OPENED"
    assert bench.ended[1][0] == 1000 + 10 + 98.75 + 50, "opened within 0.5 mm of the end"
    assert bench.edges("DO", CLOSE) == [(0, True), (165, False)]
    assert bench.edges("DO", OPEN) == [(1000, True), (1158.75, False)]


def test_part_detection_sensor() -> None:
    bench = Bench(box())
    bench.grip()
    assert bench.edges("DI", PART) == [(115.0, True)]
    assert bench.edges("DI", OPENED) == [(0, True), (11.25, False)]
    assert bench.edges("DI", CLOSED) == []
    bench.release()
    assert bench.edges("DI", PART)[1:] == [(1010.0, False)]


def test_grip_time_out_handling() -> None:
    bench = Bench(box())
    assert bench.inject("valve_stuck") is None
    said = "no part and not closed within 500 ms: the fingers are still open"
    assert bench.grip() == said
    assert (bench.status.state, bench.status.error) == ("ERROR", said)
    assert bench.gripper.active_faults() == (
        f"gripper fault: {said}", "gripper fault: the valve is stuck"
    )  # fmt: skip
    bench.gripper.reset(bench.now)
    assert bench.on(200).status.state == "OPENED"
    assert bench.grip() == ""


def test_no_part_is_missed() -> None:
    bench = Bench()
    assert bench.grip() == MISSED
    assert bench.status.state == "CLOSED"
    assert bench.ended == [(10 + 198.75 + 50, MISSED)]
    assert bench.release() == ""


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (box(size_mm=(40, 90, 40)), "the fingers are still open"),
        (box(at=(400, 30, 100, 0, 0, 0)), "the fingers are still open"),
        (box(at=(400, 0, 50, 0, 0, 0)), "MISSED"),
        (box(at=(440, 0, 100, 0, 0, 0)), "MISSED"),
        (box(size_mm=(40, 79, 40)), ""),
        (box(size_mm=(40, 12, 40)), ""),
    ],
    ids=["too wide", "under a finger", "too low", "beside", "just fits", "thin"],
)
def test_which_part_can_be_gripped(part: object, said: str) -> None:
    bench = Bench(part)  # type: ignore[arg-type]
    assert said in bench.grip()
    assert bool(bench.parts.log) == (said == "")


def test_a_part_thinner_than_the_closed_fingers_is_missed() -> None:
    assert Bench(box(size_mm=(40, 12, 40)), fingers={"closed_mm": 15}).grip() == MISSED


def test_a_turned_part_is_as_wide_as_its_corners() -> None:
    bench = Bench(box(at=(400, 0, 100, 0, 0, 45)))
    assert bench.grip() == ""
    assert bench.status.opening == pytest.approx(0.040 * math.sqrt(2.0))


def test_fingers_along_x() -> None:
    bench = Bench(box(size_mm=(30, 100, 40)), fingers={"axis": "x"})
    assert bench.grip() == ""
    assert bench.status.opening == pytest.approx(0.030)


def test_the_force_rises_after_the_contact() -> None:
    bench = Bench(box())
    bench.gripper.start_grip(0)
    assert bench.run(110).status.force_n == 0.0
    assert bench.run(125).status.force_n == pytest.approx(FORCE * (1.0 - math.exp(-1.0)))
    assert bench.run(400).status.force_n == pytest.approx(FORCE)
    assert bench.io.analog_input(4, bench.now) == pytest.approx(FORCE / 10.0), "10 V are 100 N"
    assert bench.release() == ""
    assert bench.status.force_n == 0.0


def test_the_calibration_is_used_both_ways() -> None:
    bench = Bench(box(), calibration={"force_n_per_v": 25, "force_zero_v": 0.5})
    bench.grip()
    assert bench.io.analog_input(4, bench.now) == pytest.approx(FORCE / 25.0 + 0.5)
    assert bench.status.force_n == pytest.approx(FORCE)


# ── loads ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("mass", "acceleration", "held"),
    [
        (0.3, 49.0, True),
        (6.9, 0.01, True),
        (7.0, 0.01, False),
        (3.0, 12.0, True),
        (3.0, 13.5, False),
    ],
)
def test_a_part_slips_when_friction_does_not_carry_it(
    mass: float, acceleration: float, held: bool
) -> None:
    """2 µ F = 67.9 N must be at least m (g + a)."""
    bench = Bench(box(mass=mass))
    assert bench.grip() == "", "on the table it needs no force"
    assert bench.on(5000).lost == []
    bench.raise_tool(acceleration)
    bench.on(1000)
    assert (bench.lost == []) == held
    assert bool(bench.parts.held_by("g60")) == held


def test_a_light_part_needs_no_watch() -> None:
    bench = Bench(box(mass=1.0))
    bench.grip()
    assert bench.gripper.next_wake() is None


# ── faults ──────────────────────────────────────────────────────────────────────────────────────


def test_a_slip_is_a_lost_part_and_the_fingers_close() -> None:
    bench = Bench(box())
    refused = bench.inject("slip")
    assert refused.reason == "the gripper holds no part"
    bench.grip()
    bench.inject("slip")
    bench.on(0)
    assert bench.lost == [1000]
    assert bench.on(200).status.state == "CLOSED"
    assert bench.gripper.active_faults() == ("gripper fault: the part was lost",)


def test_a_grip_miss_is_drawn_per_attempt() -> None:
    rules = {"unlucky": Rule(fault="grip_miss", on="g60.gripper", times=2)}
    bench = Bench(box(), rules=rules)
    for _ in range(2):
        assert bench.grip() == MISSED
        assert bench.release() == ""
    assert bench.grip() == ""


def test_without_air_the_fingers_stand_and_a_lifted_part_slips() -> None:
    bench = Bench(box(mass=0.5))
    bench.grip()
    bench.raise_tool(0.05)
    bench.on(1000).inject("air_lost")
    bench.on(10_000)
    (lost,) = bench.lost
    carried = 0.5 * (9.80665 + 0.05) / FORCE
    assert lost == pytest.approx(2000 - 500 * math.log(carried), abs=11)
    assert "no part and not closed" in bench.grip()
    bench.gripper.reset(bench.now)
    bench.on(500)
    assert bench.status.state == "CLOSED", "the valve still stands at close"


@pytest.mark.parametrize(
    ("fault", "value", "grips", "releases"),
    [
        ("closed_sensor_stuck", 1.0, "at the same time", "at the same time"),
        ("closed_sensor_stuck", 0.0, "", ""),
        ("opened_sensor_stuck", 1.0, "the fingers are still open", ""),
        ("opened_sensor_stuck", 0.0, "", "the fingers did not open in time"),
        ("part_sensor_stuck", 0.0, "no part and not closed", ""),
    ],
)
def test_stuck_sensors(fault: str, value: float, grips: str, releases: str) -> None:
    bench = Bench(box())
    bench.inject(fault, value=value)
    said = bench.grip()
    assert (said == "") == (grips == "")
    assert grips in said
    said = bench.release()
    assert (said == "") == (releases == "")
    assert releases in said
    bench.gripper.reset(bench.now)
    assert bench.release() == ""
    assert bench.status.state == "OPENED"


def test_a_part_sensor_that_is_stuck_on_is_found_before_the_grip() -> None:
    bench = Bench()
    bench.inject("part_sensor_stuck", value=1.0)
    refused = bench.gripper.start_grip(bench.now)
    assert "part sensor is on while the fingers are open" in str(refused)


# ── hold ────────────────────────────────────────────────────────────────────────────────────────


def test_both_coils_leave_the_valve_where_it_is() -> None:
    bench = Bench(box())
    bench.grip()
    bench.io.set_digital_output(OPEN, True, bench.now)
    bench.io.set_digital_output(CLOSE, True, bench.now)
    assert bench.on(1000).lost == []


def test_a_reset_and_a_dead_coil_hold_the_part() -> None:
    bench = Bench(box())
    bench.gripper.start_grip(0)
    bench.run(130)
    bench.io.reset(bench.now)
    bench.gripper.reset(bench.now)
    assert bench.run(5000).ended == [(165.0, "")]
    assert bench.parts.held_by("g60") == "cube"


def test_the_emergency_release_is_a_command_of_its_own() -> None:
    bench = Bench(box())
    bench.grip()
    bench.gripper.actions()["gripper_emergency_release"].run(bench.now)
    bench.on(500)
    assert bench.parts.held_by("g60") == ""
    assert bench.lost == [], "released, not lost"
