"""Random programs, nearly singular on purpose: limits, speeds and torques against pinocchio."""

from pathlib import Path

import numpy as np
import pytest
from tests.offline.validate.limits_oracle import flaws, random_case

from understudy.app.build import build_cell
from understudy.app.validate import validate_text
from understudy.config import load_config
from understudy.motion.dynamics import Dynamics
from understudy.robots.arm.controller import ArmController
from understudy.units import seconds


def found_flaws(seed: int, folder: Path) -> list[str]:
    case = random_case(np.random.default_rng(seed))
    file = folder / "cell.yaml"
    file.write_text(case.cell)
    return list(flaws(case, load_config(str(file))))


@pytest.mark.parametrize("seed", [*range(8), 464])  # 464: holding takes more than braking
def test_the_oracle_agrees(seed: int, tmp_path: Path) -> None:
    assert found_flaws(seed, tmp_path) == []


@pytest.mark.soak
def test_the_oracle_agrees_on_many_programs(tmp_path: Path) -> None:
    wrong = {seed: found for seed in range(100, 600) if (found := found_flaws(seed, tmp_path))}
    assert wrong == {}


def test_a_bound_of_the_torques_hides_no_overload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports are those of torques that are sampled everywhere."""
    file, overloaded = tmp_path / "cell.yaml", 0
    for seed in range(600, 640):
        case, documents = random_case(np.random.default_rng(seed)), []
        file.write_text(case.cell)
        for sampled in (False, True):
            with monkeypatch.context() as patch:
                if sampled:
                    patch.setattr(Dynamics, "may_overload", lambda arm, plan, times: True)
                documents.append(validate_text(case.program, load_config(str(file))).document())
        for document in documents:
            del document["wall_s"], document["times_real_time"]
        assert documents[0] == documents[1], seed
        overloaded += any(found["kind"] == "torque" for found in documents[0]["violations"])
    assert 10 < overloaded < 35


CELL = """
robots:
  g60: {kind: arm, model: g60, start_deg: [30, -48, 68, -127, 0, 42], collision: {enable: false},
        simulation: {command_delay_ms: 0, feedback_delay_ms: 0}}
"""
BESIDE = "G21 G90 G94\nG0 A30 B-48 C68 U-127 V%s W42\nG91 G1 Y60 Z-20 F6000\nM2\n"


def test_a_line_beside_a_singular_pose_is_a_violation_and_one_from_it_a_warning(
    tmp_path: Path,
) -> None:
    """Half a degree beside the singular pose the wrist turns on the line, without excuse."""
    file = tmp_path / "cell.yaml"
    file.write_text(CELL)
    beside = validate_text(BESIDE % "0.5", load_config(str(file)))
    (found,) = beside.violations
    assert (found.kind, found.joint) == ("singularity", "J4")
    assert found.factor > 3.0
    assert f"({found.factor:.1f} times)" in found.message
    inside = validate_text(BESIDE % "0.01", load_config(str(file)))
    assert inside.passed
    (said,) = inside.warnings
    assert said.factor > 3.0
    assert "the controller slows down to" in said.message


@pytest.mark.parametrize("beside", ["0.01", "0.5", "3"])
def test_the_running_robot_takes_the_time_of_the_report(beside: str, tmp_path: Path) -> None:
    file = tmp_path / "cell.yaml"
    file.write_text(CELL)
    config = load_config(str(file))
    robot = build_cell(config).components["g60"]
    assert isinstance(robot, ArmController)
    assert robot.connect(0) is robot.enable(0) is None
    program = BESIDE % beside
    for line in program.splitlines():
        assert robot.send_gcode(line, 0) is None
    now = 0
    while robot.busy() and (wake := robot.next_wake()) is not None:
        now = wake
        robot.wake(now)
    report = validate_text(program, config)
    assert seconds(now) == pytest.approx(report.total_s, abs=1e-6)
