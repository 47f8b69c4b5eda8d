"""Reach maps of six-axis arms without a closed form here: cobots with offset wrists."""

import math
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from understudy.cli.reach import Progress
from understudy.space.kinematics.chain import Chain, Frames, chain
from understudy.space.kinematics.ik import closed_form, solve_all
from understudy.space.model.urdf import read
from understudy.space.pose import Pose
from understudy.space.reach.reach_map import ReachabilityAnalyzer, directions
from understudy.space.transform import matrix

ROBOTS = Path(__file__).parents[1] / "model" / "public"
FRAMES = Frames(
    matrix(Pose(0.1, 0.2, 0.3, 0.1, 0.2, 0.3)), matrix(Pose(0.0, 0.02, 0.1, 0.1, 0.2, 0.3))
)


def arm(name: str) -> Chain:
    found = chain(read((ROBOTS / f"{name}.urdf").read_text()))
    assert closed_form(found) is None
    return found


@pytest.mark.parametrize("name", ["ur20", "crx"])
def test_the_map_agrees_with_single_poses(name: str) -> None:
    """Every 47th point: nothing is reached that cannot be, and 97 % of the directions that
    can be reached are found."""
    model = arm(name)
    found = ReachabilityAnalyzer(model, frames=FRAMES).generate_map(200.0, orientations=6)
    ours = exact = wrong = 0
    for k in range(0, len(found.points), 47):
        targets = directions(6)
        targets[:, :3, 3] = found.points[k]
        solved = solve_all(model, targets, frames=FRAMES)
        count = int((~np.isnan(solved[:, :, 0])).any(axis=1).sum())
        ours, exact = ours + int(found.orientations[k]), exact + count
        wrong += found.orientations[k] > count
    assert wrong == 0
    assert exact > 50
    assert ours >= 0.97 * exact


def test_configurations_are_inside_the_limits() -> None:
    model = arm("ur20")
    limited = replace(model, lower=np.full(6, -0.3), upper=np.full(6, 0.3))
    everywhere = ReachabilityAnalyzer(model).generate_map(200.0)
    narrow_map = ReachabilityAnalyzer(limited).generate_map(200.0)
    assert len(narrow_map.reachable_points) < 0.2 * len(everywhere.reachable_points)


def test_a_part_of_the_space_is_as_in_the_whole_map() -> None:
    analyzer = ReachabilityAnalyzer(arm("ur20"))
    found = analyzer.generate_map(100.0, (0.8, 0.3, 0.4), extent=0.1)
    assert found.orientations.min() >= 10


def test_progress_is_said_at_every_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    ReachabilityAnalyzer(arm("ur20")).generate_map(300.0, progress=Progress())
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == "reach: 100 %"
    assert 5 <= len(said) <= 10


@pytest.mark.soak
@pytest.mark.parametrize("name", ["ur20", "crx"])
def test_the_default_resolution_takes_20_s_of_one_core(name: str) -> None:
    analyzer = ReachabilityAnalyzer(arm(name))
    analyzer.generate_map(500.0)  # compiles
    begun = time.process_time()
    found, _ = analyzer.generate_maps()
    assert time.process_time() - begun < 20.0
    assert len(found.reachable_points) > 10_000
    assert math.isfinite(found.workspace_max.max())
