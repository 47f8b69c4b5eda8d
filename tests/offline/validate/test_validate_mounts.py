"""Torques of arms that stand, hang from the ceiling or are mounted on a wall."""

from importlib.resources import files
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from understudy.app.build import build_cell
from understudy.app.validate import subject_of, validate_text
from understudy.config import CellConfig, load_config
from understudy.motion.plan import Motion
from understudy.offline.motion_simulator import MotionSimulator
from understudy.offline.robot import Arm
from understudy.offline.waypoints import Waypoint
from understudy.robots.arm.controller import ArmController
from understudy.robots.arm.offline import motion_setup
from understudy.units import DEG

MOUNTS = [(0, 0, 0), (90, 0, 0), (0, 90, 0), (180, 0, 0), (30, -50, 110)]
SAMPLES = Motion(*np.random.default_rng(5).normal(size=(3, 40, 6)))
STRETCHED = (90 * DEG, 0.0, -80 * DEG, 0.0, -15 * DEG, 0.0)
MASS, COM = 40.0, (0.0, 0.0, 0.1)

ARM = """
robots:
  arm:
    kind: arm
    model: g60
    base_mm_deg: [0, 0, 0, {0}, {1}, {2}]
    tool: 1
    tools: {{1: {{mass_kg: 40, com_mm: [0, 0, 100]}}}}
    simulation: {{enable_dynamics: true}}
"""
KUKA = """
robots:
  arm:
    kind: kuka
    lowest_z_mm: -5000
    base_mm_deg: [0, 0, 0, {0}, {1}, {2}]
    tool_loads: {{1: {{mass_kg: 40, com_mm: [0, 0, 100]}}}}
"""
MODELS = {ARM: "g60", KUKA: "kr6_r900"}


def cell(folder: Path, text: str, mount: tuple[float, float, float]) -> CellConfig:
    file = folder / "mounted.yaml"
    file.write_text(text.format(*mount))
    return load_config(str(file))


def arm_of(config: CellConfig) -> Arm:
    arm = subject_of("", config, "arm").arm(1)
    assert isinstance(arm, Arm)
    return arm


def oracle(model_name: str, arm: Arm, mount: tuple[float, float, float]) -> np.ndarray:
    """pinocchio's torques with the base itself turned in the world; gravity stays the world's."""
    text = (files("understudy") / "catalog" / "robots" / f"{model_name}.urdf").read_text()
    model = pin.buildModelFromXML(text)
    turned = pin.SE3(pin.rpy.rpyToMatrix(*np.array(mount, dtype=float) * DEG), np.zeros(3))
    model.jointPlacements[1] = turned * model.jointPlacements[1]
    held = pin.Inertia(MASS, np.array(COM), np.zeros((3, 3)))
    axes = pin.SE3(arm.chain.align[-1], np.zeros(3)).inverse()
    model.inertias[6] += (axes * pin.SE3(arm.chain.tip)).act(held)
    data = model.createData()
    rows = zip(*SAMPLES, strict=True)
    return np.array([pin.rnea(model, data, *row) for row in rows])


@pytest.mark.parametrize("mount", MOUNTS)
@pytest.mark.parametrize("text", [ARM, KUKA], ids=["arm", "kuka"])
def test_torques_of_a_mounted_arm_are_those_of_pinocchio(
    text: str, mount: tuple[float, float, float], tmp_path: Path
) -> None:
    arm = arm_of(cell(tmp_path, text, mount))
    assert arm.dynamics is not None
    found = arm.dynamics.torques(SAMPLES)
    assert found == pytest.approx(oracle(MODELS[text], arm, mount), abs=1e-8)


UPRIGHT = "G0 A0 B-2 C-79 U0 V-17 W0\nG1 A20 F500\nM2\n"


def test_a_heavy_tool_passes_on_the_floor_and_not_on_the_wall(tmp_path: Path) -> None:
    """Above its foot an arm carries the weight with its bearings, beside its foot with its
    motors."""
    on_floor = validate_text(UPRIGHT, cell(tmp_path, ARM, (0, 0, 0)))
    on_wall = validate_text(UPRIGHT, cell(tmp_path, ARM, (0, 90, 0)))
    assert [each for each in on_floor.violations if each.kind == "torque" and each.line == 2] == []
    (found,) = [each for each in on_wall.violations if each.kind == "torque" and each.line == 2]
    assert found.joint == "J3"
    assert found.excess == pytest.approx(1.22, abs=0.01)


def test_live_and_simulated_torques_have_the_gravity_of_the_mount(tmp_path: Path) -> None:
    config = cell(tmp_path, ARM, (0, 90, 0))
    arm = arm_of(config)
    assert arm.dynamics is not None
    still = Motion(np.array([STRETCHED]), np.zeros((1, 6)), np.zeros((1, 6)))
    wanted = arm.dynamics.torques(still)[0]
    assert abs(wanted[0]) > 30.0  # on the floor joint 1 carries no weight

    robot = build_cell(config).components["arm"]
    assert isinstance(robot, ArmController)
    here = robot.joint_state(0)
    there = arm.dynamics.torques(
        Motion(np.array([here.positions]), np.zeros((1, 6)), np.zeros((1, 6)))
    )[0]
    assert here.torques == pytest.approx(tuple(there), abs=1e-9)

    result = MotionSimulator(motion_setup(config, "arm")).dry_run([Waypoint(STRETCHED)])
    assert result.trajectory_log[-1].torques == pytest.approx(tuple(wanted), abs=1e-6)
