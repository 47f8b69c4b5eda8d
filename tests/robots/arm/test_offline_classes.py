"""The offline classes of the design document, built in one call."""

import math
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import understudy
from understudy import Pose, Waypoint
from understudy.robots.arm.offline_classes import arm_of
from understudy.units import DEG

BENT = (0.0, -20 * DEG, 30 * DEG, 0.0, 40 * DEG, 0.0)
PLACE = Pose(0.45, 0.0, 0.45, math.pi, 0.0, 0.0)
WAY = [Waypoint(BENT), Waypoint(PLACE, speed=0.1)]


@pytest.fixture(scope="module")
def detector() -> understudy.CollisionDetector:
    return understudy.CollisionDetector("g60_welding")


@pytest.fixture(scope="module")
def reach() -> understudy.ReachabilityAnalyzer:
    return understudy.ReachabilityAnalyzer("g60_welding")


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


API: Any = understudy
NAN = math.nan


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: d.check_collision([0.0] * 5), r"joints: 6 numbers .* shape \(5,\)"),
        (lambda d: d.check_collision(1.0), r"joints: 6 numbers .* shape \(\)"),
        (lambda d: d.check_collision("abcdef"), r"joints: 6 numbers are needed, got 'abcdef'"),
        (lambda d: d.check_collision([NAN] * 6), "joints: finite numbers"),
        (lambda d: d.check_collision(["a"] * 6), "joints: 6 numbers are needed, got"),
        (lambda d: d.check_trajectory([[0.0] * 7]), r"joints: 6 numbers .* shape \(1, 7\)"),
        (lambda d: d.collides(np.zeros((2, 3, 6))), r"joints: 6 numbers .* shape \(2, 3, 6\)"),
        (lambda d: d.collides([[math.inf] * 6]), "joints: finite numbers"),
        (lambda d: d.get_min_distance(None), "joints: "),
        (lambda d: d.get_min_distance(np.zeros((2, 6))), "joints: one row of 6"),
    ],
)
def test_wrong_joints_are_named(
    detector: understudy.CollisionDetector, call: Callable[[Any], Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call(detector)
    assert not detector.check_collision(np.array(BENT)).collision
    assert detector.check_trajectory([]) == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda r: r.check_pose([1, 2, 3]),
            r"pose: a Pose or a 4 x 4 matrix is needed, got \[1, 2",
        ),
        (lambda r: r.check_pose(Pose(NAN, 0, 0, 0, 0, 0)), "pose: finite numbers"),
        (lambda r: r.check_pose(PLACE, near=[0.0]), r"near: 6 numbers .* shape \(1,\)"),
        (
            lambda r: r.generate_map(resolution_mm=0),
            "resolution_mm: a number above 0 is needed, got 0",
        ),
        (lambda r: r.generate_map(resolution_mm="fine"), "resolution_mm: a number above 0"),
        (lambda r: r.generate_map(1.0, extent=2.0), "points, 20000000 are allowed"),
        (lambda r: r.generate_map(0.05), "at least 1 is needed, got 0.05: it is in millimetres"),
        (lambda r: r.generate_map(200.0, center=(1.0,)), "center: 3 numbers"),
        (lambda r: r.generate_map(200.0, extent=-1.0), "extent: a number above 0"),
    ],
)
def test_wrong_poses_and_grids_are_named(
    reach: understudy.ReachabilityAnalyzer, call: Callable[[Any], Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call(reach)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: API.CycleTimeEstimator("g60").estimate(None),
            "waypoints: a list of Waypoint",
        ),
        (
            lambda: API.CycleTimeEstimator("g60").estimate([BENT]),
            "waypoint 1: a Waypoint is",
        ),
        (
            lambda: API.CycleTimeEstimator("g60").estimate([API.Waypoint((0.0,) * 3)]),
            r"waypoint 1: target: 6 numbers .* shape \(3,\)",
        ),
        (
            lambda: API.CycleTimeEstimator("g60").estimate([Waypoint(BENT, speed=-1.0)]),
            "waypoint 1: speed: a number above 0 is needed, got -1.0",
        ),
        (lambda: API.CycleTimeEstimator("g60", travel_speed_mm_s=0), "travel_speed_mm_s: a"),
        (lambda: API.MotionSimulator("g60", rate_hz=0), "rate_hz: a number above 0"),
        (
            lambda: API.MotionSimulator("g60", process_speed_mm_s=NAN),
            "process_speed_mm_s: a",
        ),
        (lambda: API.MotionSimulator("g60").dry_run("G0"), "waypoints: a list of Waypoint"),
        (lambda: API.MotionSimulator("g60").simulate_trajectory(WAY), "there is no controller"),
        (
            lambda: API.MotionSimulator("g60").dry_run(WAY, start=np.zeros(2)),
            r"start: 6 numbers .* shape \(2,\)",
        ),
        (
            lambda: API.SimulationConfig(max_velocity=[1.0]),
            r"SimulationConfig: max_velocity: 6 numbers .* shape \(1,\)",
        ),
        (lambda: API.SimulationConfig(max_jerk=[-1.0] * 6), "max_jerk: no number below 0"),
        (lambda: API.SimulationConfig(joint_inertia="heavy"), "joint_inertia: 6 numbers"),
        (lambda: API.SimulationConfig(time_scale=0), "time_scale: a number above 0"),
        (lambda: API.SimulationConfig(update_rate_hz="fast"), "update_rate_hz: a number"),
    ],
)
def test_wrong_waypoints_and_settings_are_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_settings_may_be_arrays() -> None:
    config = API.SimulationConfig(max_velocity=np.ones(6), joint_friction=np.zeros(6))
    assert understudy.VirtualController("g60", config).connect() is None


def test_a_detector_of_a_cell_has_its_tool_its_objects_and_its_pairs(
    detector: understudy.CollisionDetector,
) -> None:
    known = arm_of("g60_welding").detector
    for mine, other in ((detector.carried, known.carried), (detector.objects, known.objects)):
        assert [thing.name for thing in mine] == [thing.name for thing in other]
    assert detector.self_collision_pairs == known.self_collision_pairs
    assert detector.left_out() == known.left_out()
    detector.collides(np.zeros((1, 6)))
    own = understudy.CollisionDetector("g60_welding")
    own.clear_environment()
    assert len(detector.objects) == len(known.objects) > 0


def test_a_source_of_another_type_is_named() -> None:
    with pytest.raises(understudy.ConfigError, match="neither a cell nor a robot"):
        API.CollisionDetector(7)


# ── one truth of cycle time ──

WELD = "G0 X450 Y-50 Z350 A180 B0 C0\nM8\nM3\nG1 Y50 F600\nM5\nG4 P0.5\nM9\nM30\n"


def test_the_cycle_time_of_a_program_is_that_of_the_running_cell() -> None:
    estimator = understudy.CycleTimeEstimator("g60_welding")
    found = estimator.estimate(WELD).total_s
    assert estimator.estimate(WELD).total_s == found, "each estimate begins anew"
    engine = understudy.SimulationEngine("g60_welding")
    engine.start()
    engine.controller.connect()
    engine.controller.enable()
    for line in WELD.splitlines():
        assert engine.controller.send_gcode(line) is None
    engine.run_until_idle()
    assert found == pytest.approx(engine.metrics().simulation_time_s, abs=0.005)
    assert understudy.CycleTimeEstimator(engine.controller).estimate(WELD).total_s == found


def test_a_dry_run_counts_the_waits_of_the_process_as_the_estimator_does() -> None:
    way = [Waypoint(BENT), Waypoint(PLACE, process=True)]
    for source in ("g60_welding", understudy.VirtualController("g60", welder={})):
        found = understudy.CycleTimeEstimator(source).estimate(way)
        planned = understudy.MotionSimulator(source).dry_run(way)
        assert found.process_s > 1.0
        assert planned.total_time_s == pytest.approx(found.total_s)
