"""An arm on a rail: its first joint slides, so its unit is the millimetre everywhere."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from tests.benches import Bench
from tests.robots.arm.bench import run

from understudy import VirtualController
from understudy.app.validate import validate_text
from understudy.config import CellConfig, load_config
from understudy.errors import ConfigError
from understudy.offline.cycle_time import CycleTimeEstimator
from understudy.offline.motion_simulator import MotionSimulator
from understudy.offline.waypoints import Waypoint
from understudy.robots.arm.offline import motion_setup
from understudy.robots.arm.real import JointLines
from understudy.units import DEG

RAIL = (
    'lower="-2.9670597283903604" upper="2.9670597283903604" velocity="2.0943951023931953"',
    'lower="-0.5" upper="1.5" velocity="1.0"',
)
CELL = """
robots:
  g60:
    kind: arm
    model: rail.urdf
    home_deg: [250, 0, 0, 0, 0, 0]
    max_velocity_deg_s: [800, 120, 120, 190, 190, 350]
    collision: {enable: false}
    simulation: {command_delay_ms: 0, feedback_delay_ms: 0}
"""


@pytest.fixture
def cell(tmp_path: Path) -> Path:
    text = (files("understudy") / "catalog" / "robots" / "g60.urdf").read_text()
    first, rest = text.split('<joint name="J1" type="revolute">')
    here, after = rest.split("</joint>", 1)
    here = here.replace(*RAIL).replace('acceleration="8.726646259971648"', 'acceleration="5"')
    assert 'upper="1.5"' in here
    rail = f'{first}<joint name="J1" type="prismatic">{here}</joint>{after}'
    (tmp_path / "rail.urdf").write_text(rail)
    (tmp_path / "cell.yaml").write_text(CELL)
    return tmp_path / "cell.yaml"


@pytest.fixture
def config(cell: Path) -> CellConfig:
    return load_config(str(cell))


@pytest.fixture
def robot(cell: Path) -> VirtualController:
    controller = VirtualController(str(cell.parent / "rail.urdf"), home_deg=[250, 0, 0, 0, 0, 0])
    assert controller.connect() is controller.enable() is None
    return controller


def test_a_word_of_the_joint_is_in_millimetres(robot: VirtualController) -> None:
    run(robot, "G1 A50 F6000")
    assert robot.joint_state().positions == pytest.approx((0.05, 0, 0, 0, 0, 0))
    run(robot, "G91 G1 A25 B10")
    assert robot.joint_state().positions == pytest.approx((0.075, 10 * DEG, 0, 0, 0, 0))
    run(robot, "G90 G20 G0 A1", "G21")
    assert robot.joint_state().positions[0] == pytest.approx(0.0254)


def test_home_is_in_millimetres(robot: VirtualController) -> None:
    assert robot.home() is None
    robot.run_until_idle()
    assert robot.joint_state().positions[0] == pytest.approx(0.25)


def test_the_limit_is_told_in_millimetres(robot: VirtualController) -> None:
    assert robot.send_gcode("G0 A1600") is None
    robot.run_until_idle()
    told = robot.status().error_message
    assert "J1 = 1600.0 mm is outside -500.0 mm…1500.0 mm" in told


def test_a_feed_counts_millimetres(config: CellConfig) -> None:
    setup = motion_setup(config)
    assert CycleTimeEstimator(setup).estimate("G1 A300 F6000\n").total_s == pytest.approx(
        300 / 100 + 0.1 / 5.0, abs=1e-9
    )
    turned = CycleTimeEstimator(setup).estimate("G1 A30 B40 F600\n").total_s
    assert turned == pytest.approx(50 / 10, abs=0.05)
    wire = motion_setup(config, dialect="grblhal")
    turn = CycleTimeEstimator(wire).estimate("G90 G0 X100 Y0\nG17 G2 X100 Y0 I-50 J0 F600\n")
    assert turn.violations == ()
    assert turn.lines[-1].seconds == pytest.approx(2 * np.pi * 50 / 10, rel=0.03)


def test_validation_names_millimetres(config: CellConfig) -> None:
    fast = validate_text("G1 A900 F60000\n", config)
    (found,) = [each for each in fast.violations if each.kind == "velocity"]
    assert "J1 would need 1000 mm/s at this feed, 800 are allowed (1.3 times)" in found.message


def test_waypoints_are_planned_where_they_are(config: CellConfig) -> None:
    there = (0.4, 10 * DEG, 0.0, 0.0, 20 * DEG, 0.0)
    result = MotionSimulator(motion_setup(config)).dry_run([Waypoint(there)])
    assert result.trajectory_log[-1].positions == pytest.approx(there)


def test_joint_lines_for_a_real_controller_are_in_millimetres(config: CellConfig) -> None:
    written = JointLines(motion_setup(config)).written("G1 A50 B10 F1200", 1)
    assert isinstance(written, list)
    assert "X50Y10Z0A0B0C0F1200" in written[-1]


def test_a_kuka_has_axes_that_turn(cell: Path) -> None:
    cell.write_text("robots: {k: {kind: kuka, model: rail.urdf}}\n")
    with pytest.raises(ConfigError, match="J1 slides"):
        validate_text("G1 X10\n", load_config(str(cell)))


@pytest.fixture
def bench(cell: Path) -> Iterator[Bench]:
    bench = Bench(str(cell))
    yield bench
    bench.close()


def test_the_operator_sees_and_moves_millimetres(bench: Bench) -> None:
    joint = bench.facts("g60")["joints"][0]
    assert (joint["unit"], joint["upper_deg"]) == ("mm", pytest.approx(1500.0))
    bench.do("enable", robot="g60")
    bench.do("move_to", robot="g60", joints_deg=[120, 0, 0, 0, 10, 0])
    bench.forward(10.0)
    assert bench.row("g60")["joints_deg"] == pytest.approx([120, 0, 0, 0, 10, 0])
    bench.do("jog", robot="g60", frame="joint", axis=0, speed=100.0, step=30.0)
    bench.forward(5.0)
    assert bench.row("g60")["joints_deg"][0] == pytest.approx(150.0)
    bench.do("jog", robot="g60", frame="joint", axis=0, speed=100.0)
    bench.forward(0.2)
    bench.do("stop_jog", robot="g60")
    bench.forward(2.0)
    assert 160.0 < bench.row("g60")["joints_deg"][0] < 200.0
