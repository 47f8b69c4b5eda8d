"""The offline classes of the design document, built in one call."""

import math
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import understudy
from understudy import Pose, Waypoint
from understudy.units import DEG

BENT = (0.0, -20 * DEG, 30 * DEG, 0.0, 40 * DEG, 0.0)
PLACE = Pose(0.45, 0.0, 0.45, math.pi, 0.0, 0.0)
WAY = [Waypoint(BENT), Waypoint(PLACE, speed=0.1)]


def urdf(folder: Path) -> Path:
    text = (files("understudy") / "catalog" / "robots" / "g60.urdf").read_text()
    file = folder / "my_arm.urdf"
    file.write_text(text)
    return file


def test_the_cycle_time_of_waypoints_is_that_of_the_simulated_motion(tmp_path: Path) -> None:
    for source in ("g60", str(urdf(tmp_path)), understudy.VirtualController("g60")):
        found = understudy.CycleTimeEstimator(source).estimate(WAY)
        planned = understudy.MotionSimulator(source, travel_speed_mm_s=250.0).dry_run(WAY)
        assert found.violations == ()
        assert found.total_s == pytest.approx(planned.total_time_s)
    program = understudy.CycleTimeEstimator("g60_welding").estimate("G0 A10\nG4 P1\n")
    assert program.dwell_s == pytest.approx(1.0)


def test_a_virtual_controller_executes_what_is_planned_and_its_torques_are_logged() -> None:
    prompt = {"command_delay_ms": 0, "feedback_delay_ms": 0}
    arm = understudy.VirtualController("g60", simulation=prompt)
    assert arm.connect() is arm.enable() is None
    simulator = understudy.MotionSimulator(arm, rate_hz=100.0)
    planned = simulator.dry_run(WAY)
    before = arm.simulation_time()
    run = simulator.simulate_trajectory(WAY)
    assert run.success, run.error_message
    assert run.total_time_s == pytest.approx(planned.total_time_s, abs=0.005)
    assert arm.simulation_time() == pytest.approx(before + run.total_time_s)
    last = run.trajectory_log[-1]
    assert last.positions == pytest.approx(planned.trajectory_log[-1].positions, abs=1e-5)
    assert last.torques == pytest.approx(planned.trajectory_log[-1].torques, abs=0.5)
    assert max(map(abs, last.torques)) > 5.0


def test_collision_and_reach_of_a_cell_and_of_a_urdf(tmp_path: Path) -> None:
    below = Pose(0.6, 0.0, 0.02, math.pi, 0.0, 0.0)
    in_cell = understudy.ReachabilityAnalyzer("g60_welding").check_pose(below)
    alone = understudy.ReachabilityAnalyzer(urdf(tmp_path)).check_pose(PLACE)
    assert not in_cell.reachable
    assert alone.reachable
    cell = understudy.CollisionDetector("g60_welding")
    bare = understudy.CollisionDetector(urdf(tmp_path))
    into_the_table = np.array([0.0, 60 * DEG, 60 * DEG, 0.0, 0.0, 0.0])
    assert cell.check_collision(into_the_table).collision
    assert not bare.check_collision(np.array(BENT)).collision


def test_an_unknown_source_is_named() -> None:
    with pytest.raises(understudy.ConfigError, match="neither a cell nor a robot"):
        understudy.CollisionDetector("no_such_thing")
