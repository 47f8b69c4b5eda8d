"""Rows for plots: recorded on the cell's time, whether or not anyone asks for them."""

from collections.abc import Callable
from itertools import pairwise
from math import hypot
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec import structs
from tests.benches import Bench

from understudy.operator import history
from understudy.operator.history import (
    BURST_SECONDS,
    COARSE_PERIOD,
    KEPT,
    PERIOD,
    SHARE,
    Budget,
    thinned,
)
from understudy.ports.operation import AxisReading
from understudy.robots.mobile.face import FleetFace
from understudy.robots.mobile.robot import MobileActions, MobileRobot
from understudy.robots.mobile.runtime.fleet import Ticker
from understudy.units import seconds

FOREVER = 86_400.0


def rows(bench: Bench, robot: str, **parameters: Any) -> list[dict[str, Any]]:
    wanted = {"seconds_back": FOREVER, "count": KEPT} | parameters
    found: list[dict[str, Any]] = as_json(bench.do("sample", robot=robot, **wanted)["rows"])
    return found


def as_json(value: Any) -> Any:
    """A value as a client gets it: many rows are written in slices."""
    return msgspec.json.decode(msgspec.json.encode(value))


def times(found: list[dict[str, Any]]) -> list[float]:
    return [round(row["time_s"], 6) for row in found]


def test_a_motion_is_recorded_though_nobody_asks_for_rows(arm: Bench) -> None:
    arm.do("send_gcode", robot="g60", line="G1 A5 F600")
    arm.forward(60.0)
    found = [row for row in rows(arm, "g60") if row["time_s"] < 0.9]
    assert {round(b - a, 6) for a, b in pairwise(times(found))} == {seconds(PERIOD)}
    assert max(row["velocities_deg_s"][0] for row in found) == pytest.approx(10.0, abs=0.01)
    assert found[-1]["joints_deg"][0] == pytest.approx(5.0)
    assert ["gap" in row for row in found] == [True] + [False] * (len(found) - 1)


def test_the_rows_do_not_depend_on_who_asks_and_when(bench_of: Callable[[str], Bench]) -> None:
    alone, asked = bench_of("g60_welding"), bench_of("g60_welding")
    for bench in (alone, asked):
        bench.do("enable", robot="g60")
        bench.do("send_gcode", robot="g60", line="G1 A20 F600")
    alone.forward(2.0)
    for _ in range(20):
        asked.forward(0.1)
        rows(asked, "g60", count=1)
    assert rows(asked, "g60") == rows(alone, "g60")


def test_nothing_is_recorded_at_rest_and_the_last_value_holds(arm: Bench) -> None:
    arm.forward(1.0)
    at_rest = len(rows(arm, "g60"))
    arm.forward(3600.0)
    found = rows(arm, "g60")
    assert len(found) == at_rest
    assert found[-1]["time_s"] == pytest.approx(3601.0)
    arm.do("send_gcode", robot="g60", line="G1 A5 F600")
    arm.forward(0.1)
    begin = next(row for row in rows(arm, "g60") if row["time_s"] >= 3601.0)
    assert begin["time_s"] == pytest.approx(3601.0)
    assert begin["joints_deg"] == found[-1]["joints_deg"], "the motion begins here, not before"


def test_a_span_begins_with_the_value_that_held_before_it(arm: Bench) -> None:
    """A robot that has stood still for longer than the span has a line in the plots."""
    arm.forward(3600.0)
    first, last = rows(arm, "g60", seconds_back=60.0)
    assert (first["time_s"], last["time_s"]) == (pytest.approx(3540.0), pytest.approx(3600.0))
    assert first["joints_deg"] == last["joints_deg"]
    assert "gap" not in last
    arm.do("send_gcode", robot="g60", line="G1 A5 F600")
    arm.forward(2.0)
    found = rows(arm, "g60", seconds_back=60.0)
    assert found[0] == {**first, "time_s": pytest.approx(3542.0)}
    assert len(rows(arm, "g60", seconds_back=60.0, count=10)) <= 10


def test_a_jump_is_a_gap_and_not_a_slope(arm: Bench) -> None:
    arm.forward(10.0)
    before = rows(arm, "g60")[-1]
    arm.forward(10.0)
    arm.do("set_joint_positions", robot="g60", joints_deg=[30, 0, 37, 0, 53, 0])
    arm.forward(10.0)
    held, jumped = [row for row in rows(arm, "g60") if row["time_s"] == 20.0]
    assert held["joints_deg"] == before["joints_deg"]
    assert jumped["joints_deg"][0] == pytest.approx(30.0)
    assert jumped["gap"]
    assert jumped["tool_speed_mm_s"] == 0.0


def test_the_current_is_recorded_while_the_arc_burns_at_rest(arm: Bench) -> None:
    for line in ("M7", "M3 S150", "G4 P3", "M5"):
        arm.do("send_gcode", robot="g60", line=line)
    arm.forward(10.0)
    found = rows(arm, "g60")
    burning = [row for row in found if row["current_amps"] > 100.0]
    assert burning[-1]["time_s"] - burning[0]["time_s"] > 2.0
    assert found[-1]["current_amps"] == 0.0


@pytest.mark.parametrize("robot", ["bench", "kuka"])
def test_robots_that_report_no_speeds_have_them_in_the_plots(bench: Bench, robot: str) -> None:
    x, *others = bench.pose(robot)
    bench.do("move_to", robot=robot, pose_mm_deg=[x + 50, *others])
    bench.forward(5.0)
    found = rows(bench, robot)
    assert max(row["tool_speed_mm_s"] for row in found) > 20.0
    assert found[-1]["tool_speed_mm_s"] == 0.0
    ends = zip(found[0]["joints_deg"], found[-1]["joints_deg"], strict=True)
    for axis, (begin, end) in enumerate(ends):
        fastest = max(abs(row["velocities_deg_s"][axis]) for row in found)
        assert (fastest > 0.01) == (abs(end - begin) > 0.01)


def test_the_axes_of_a_machine_have_their_own_units(bench_of: Callable[[str], Bench]) -> None:
    machine = bench_of("grblhal_6axis")
    name = machine.do("robots")["robots"][0]["name"]
    machine.do("jog", robot=name, frame="joint", axis=0, speed=20.0, step=10.0)
    machine.forward(5.0)
    answer = machine.do("sample", robot=name, seconds_back=FOREVER, count=KEPT)
    assert [axis["unit"] for axis in answer["axes"]] == ["mm"] * 3 + ["°"] * 3
    first, last = answer["rows"][0], answer["rows"][-1]
    assert last["joints_deg"][0] - first["joints_deg"][0] == pytest.approx(10.0)


def test_rows_later_than_a_time(arm: Bench) -> None:
    arm.do("send_gcode", robot="g60", line="G1 A5 F600")
    arm.forward(1.0)
    known = rows(arm, "g60")
    arm.forward(1.0)
    fresh = rows(arm, "g60", after_s=known[5]["time_s"])
    assert fresh[0]["time_s"] == known[6]["time_s"]


def test_a_restored_snapshot_begins_a_new_record(arm: Bench) -> None:
    snapshot = arm.do("snapshot")
    arm.do("send_gcode", robot="g60", line="G1 A5 F600")
    arm.forward(1.0)
    assert len(rows(arm, "g60")) > 10
    arm.do("restore", **snapshot)
    found = rows(arm, "g60")
    assert times(found) == [0.0]
    assert found[0]["gap"] is True


def test_the_record_is_bounded(arm: Bench) -> None:
    arm.do("send_gcode", robot="g60", line="G1 A5 F0.4")
    arm.forward(700.0)
    assert arm.facts("g60")["moving"]
    assert 700 <= len(rows(arm, "g60")) <= KEPT


def test_a_thinned_answer_keeps_the_gaps(arm: Bench) -> None:
    arm.do("send_gcode", robot="g60", line="G1 A5 F60")
    arm.forward(2.0)
    arm.live.operator.history.follow_real()  # as after a change to REAL and back
    arm.forward(2.0)
    assert sum("gap" in row for row in rows(arm, "g60")) == 2
    assert sum("gap" in row for row in rows(arm, "g60", count=8)) == 2


# ── mobile robots: what is drawn is what they did ──

Truth = list[tuple[float, float, float, float]]
"""Time, x and y in mm, speed in mm/s: a row for every tick."""


@pytest.fixture
def driven(
    bench_of: Callable[[str], Bench], monkeypatch: pytest.MonkeyPatch
) -> tuple[Bench, Truth]:
    """The fleet; robot-1 stands, then drives a way with a curve, and stands again."""
    bench = bench_of("fleet")
    truth: Truth = []
    fleet: Any = bench.live._cell.components["fleet"]
    robot = bench.live._cell.components["robot-1"]
    assert isinstance(robot, MobileRobot)
    tick, mock = Ticker.tick, robot._mock
    assert mock is not None

    def noted(ticker: Ticker, now: int) -> None:
        tick(ticker, now)
        x, y, _ = mock.pose(0)
        truth.append((seconds(now), x * 1e3, y * 1e3, hypot(*mock.velocity(0)[:2]) * 1e3))

    monkeypatch.setattr(Ticker, "tick", noted)
    face = bench.live._cell.faces["nats"]
    assert isinstance(face, FleetFace)
    face.open("nats", 0)
    bench.forward(10.0)
    for goal in ({"x": 5.0, "y": 2.0, "yaw": 0.0}, {"x": 5.0, "y": 4.0, "yaw": 1.57}):
        payload = {"commandType": "MOVE_TO_POSE", "parameters": goal, "requestedBy": "backend"}
        fleet.request(0, "command.request", payload, bench.live._cell.now)
        bench.forward(3.0)
    return bench, truth


def assert_true(found: list[dict[str, Any]], truth: Truth) -> None:
    """At each tick the curve is where the robot was, and as fast."""
    ticks = [tick for tick in truth if found[0]["time_s"] <= tick[0] <= found[-1]["time_s"]]
    curves = np.array([[r["time_s"], *r["pose_mm_deg"][:2], r["tool_speed_mm_s"]] for r in found])
    for column, most in ((1, 5.0), (2, 5.0), (3, 60.0)):
        drawn = np.interp([tick[0] for tick in ticks], curves[:, 0], curves[:, column])
        off = np.abs(drawn - [tick[column] for tick in ticks])
        assert off.max() < most, (column, ticks[int(off.argmax())], drawn[int(off.argmax())])


def test_the_curves_of_a_mobile_robot_are_its_way_though_nobody_looked(
    driven: tuple[Bench, Truth],
) -> None:
    bench, truth = driven
    bench.forward(10.0)
    found = rows(bench, "robot-1")
    assert max(tick[3] for tick in truth) > 500.0, "it drove"
    assert_true(found, truth)
    assert sum("gap" in row for row in found) == 1, "only the first row"


def test_queries_at_any_time_draw_no_faster_robot(driven: tuple[Bench, Truth]) -> None:
    """A page asks between the ticks of the robot."""
    bench, truth = driven
    goal = {"x": 9.0, "y": 4.0, "yaw": 0.0}
    bench.do("fleet_command", robot="robot-1", command="MOVE_TO_POSE", parameters=goal)
    for step in range(300):
        bench.forward(0.011 + 0.002 * (step % 5))
        rows(bench, "robot-1", count=1)
    found = rows(bench, "robot-1")
    fastest = max(tick[3] for tick in truth)
    assert max(row["tool_speed_mm_s"] for row in found) <= fastest + 1e-6
    assert_true(found, truth)


def test_what_nobody_recorded_is_a_gap(
    bench_of: Callable[[str], Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A robot of a large fleet drives before anyone looks: no line is drawn over this time."""
    monkeypatch.setattr(history, "MOST_FOLLOWED", 9)
    bench = bench_of("fleet")
    bench.forward(10.0)
    found = rows(bench, "robot-1")
    assert found[-1]["time_s"] == pytest.approx(10.0)
    assert found[-1]["gap"]


# ── cost ──


def test_reading_takes_a_bounded_share_of_the_wall_time() -> None:
    """Each reading takes 1 ms of a wall clock on which nothing else takes time."""
    wall = [0.0]
    budget = Budget(lambda: wall[0])
    fine = 0
    while budget.period() == PERIOD:
        with budget:
            wall[0] += 0.001
        fine += 1
    assert fine * 0.001 == pytest.approx(BURST_SECONDS / (1.0 - SHARE), rel=0.05)
    assert budget.period() == COARSE_PERIOD
    wall[0] += 1.0  # nothing is read for a while
    with budget:
        pass
    assert budget.period() == PERIOD


@pytest.mark.parametrize(("count", "most", "kept"), [(10, 5, 5), (10, 3, 3), (1, 9, 1), (0, 3, 0)])
def test_thinning_keeps_the_last_row(count: int, most: int, kept: int) -> None:
    found = thinned(range(count), most)
    assert len(found) == kept
    assert found[-1:] == list(range(count))[-1:]


def test_a_robot_of_a_large_fleet_that_drives_from_the_start_is_read_once(
    bench_of: Callable[[str], Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST_FOLLOWED", 9)
    readings: list[MobileActions] = []
    reading = MobileActions.axis_reading

    def driving(actions: MobileActions, now: int) -> AxisReading:
        readings.append(actions)
        found = reading(actions, now)
        return structs.replace(found, pose=found.pose._replace(x=float(len(readings))))

    monkeypatch.setattr(MobileActions, "axis_reading", driving)
    bench_of("fleet").forward(2.0)
    assert len(readings) == len(set(readings))


def test_a_large_fleet_is_read_only_when_somebody_looks(
    bench_of: Callable[[str], Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a mobile robot there is only the pose: a thousand of them must not be read at each tick
    and after each command."""
    monkeypatch.setattr(history, "MOST_FOLLOWED", 9)
    readings: list[MobileActions] = []
    reading = MobileActions.axis_reading

    def counted(actions: MobileActions, now: int) -> AxisReading:
        readings.append(actions)
        return reading(actions, now)

    monkeypatch.setattr(MobileActions, "axis_reading", counted)
    bench = bench_of("fleet")
    bench.forward(1.0)
    readings.clear()
    bench.do("stop", robot="robot-2")
    bench.forward(1.0)
    assert not readings
    assert rows(bench, "robot-1")[-1]["pose_mm_deg"][0] == pytest.approx(2000.0)
    bench.do("stop", robot="robot-2")
    bench.forward(1.0)
    assert len(set(readings)) == 1, "from the first query on the robot is read"
    assert len(readings) > 1
