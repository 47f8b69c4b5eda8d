"""Reachability of poses, programs and grids."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.space.arm_models import manipulability, seven_axes

from understudy.errors import Refused
from understudy.html_page import Origin
from understudy.space.collision.detector import CollisionDetector
from understudy.space.kinematics.chain import Chain, Frames
from understudy.space.kinematics.ik import solve
from understudy.space.model.robot import Box
from understudy.space.model.shapes import as_object
from understudy.space.pose import Pose
from understudy.space.reach.export import CELL, arrays, csv, html, svg
from understudy.space.reach.reach_map import ReachabilityAnalyzer, directions
from understudy.space.transform import matrix, translation

SCAN = Pose(0.4, 0.0, 0.5, math.pi, 0.0, 0.0)
PLACE = Pose(0.6, -0.2, 0.1, math.pi, 0.0, 0.0)


def test_a_pose_within_reach(g60: Chain) -> None:
    found = ReachabilityAnalyzer(g60, CollisionDetector(g60)).check_pose(SCAN)
    assert (found.reachable, found.has_solution, found.within_limits, found.collision_free) == (
        True, True, True, True,
    )  # fmt: skip
    assert g60.flange(found.joint_solution) == pytest.approx(matrix(SCAN), abs=1e-9)
    assert found.failure_reason == ""


@pytest.mark.parametrize("length", [0.0, 0.05, 0.1, 0.15])
def test_scan_and_place_are_reachable_with_any_tool(g60: Chain, length: float) -> None:
    frames = Frames(np.eye(4), translation(0.0, 0.0, length))
    both = ReachabilityAnalyzer(g60, frames=frames).check_program([SCAN, PLACE])
    assert [result.reachable for result in both] == [True, True]


def test_a_pose_too_far_away(g60: Chain) -> None:
    found = ReachabilityAnalyzer(g60).check_pose(Pose(3.0, 0.0, 0.5, 0.0, 0.0, 0.0))
    assert not found.has_solution
    assert found.failure_reason.startswith("out of reach")


def test_a_pose_beyond_the_limits(g60: Chain) -> None:
    stiff = replace(g60, lower=0.1 * g60.lower, upper=0.1 * g60.upper)
    found = ReachabilityAnalyzer(stiff).check_pose(SCAN)
    assert not found.reachable
    assert found.has_solution
    assert not found.within_limits
    assert found.failure_reason.startswith("outside joint limits: J")


def test_a_pose_in_which_every_configuration_collides(g60: Chain) -> None:
    wall = as_object("wall", Box((0.1, 1.0, 1.0)), translation(0.4, 0.0, 0.5))
    found = ReachabilityAnalyzer(g60, CollisionDetector(g60, [wall])).check_pose(SCAN)
    assert (found.reachable, found.within_limits, found.collision_free) == (False, True, False)
    assert "wall" in found.failure_reason
    assert len(found.joint_solution) == 6


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1))
def test_the_map_agrees_with_single_poses(g60: Chain, seed: int) -> None:
    """Pose by pose through solve: oracle of reach_points."""
    rng = np.random.default_rng(seed)
    analyzer = ReachabilityAnalyzer(g60)
    center = rng.uniform(-1, 1, 3) + np.array([0, 0, 0.5])
    found = analyzer.generate_map(100.0, center, extent=0.1)
    turns = directions(14)
    for k in rng.choice(len(found.points), 3):
        turns[:, :3, 3] = found.points[k]
        solved = [solve(g60, turn) for turn in turns]
        assert found.orientations[k] == sum(not isinstance(q, Refused) for q in solved)
        if found.orientations[k] == 0:
            assert found.manipulability[k] == 0.0


def test_the_map_of_the_whole_arm(g60: Chain) -> None:
    found = ReachabilityAnalyzer(g60).generate_map(200.0)
    assert len(found.points) == len(found.reachable_points) + len(found.unreachable_points)
    assert (found.workspace_max[:2] > 0.9).all()
    assert (found.workspace_min[:2] < -0.5).all()
    assert np.linalg.norm(found.reachable_points - (0, 0, 0.4), axis=1).max() < 1.3
    assert (found.manipulability >= 0).all()
    assert found.orientations.max() <= found.tried == 14


def test_manipulability_is_yoshikawas(g60: Chain) -> None:
    analyzer = ReachabilityAnalyzer(g60)
    found = analyzer.generate_map(100.0, (0.5, 0.0, 0.5), extent=0.1)
    counts, q = analyzer._tried(found.points, directions(14))
    for k in np.flatnonzero(counts)[:10]:
        assert found.manipulability[k] == pytest.approx(manipulability(g60, q[k]), abs=1e-9)


def test_a_map_that_avoids_collisions_has_fewer_points(g60: Chain) -> None:
    wall = as_object("wall", Box((0.1, 2.0, 2.0)), translation(0.45, 0.0, 0.5))
    analyzer = ReachabilityAnalyzer(g60, CollisionDetector(g60, [wall]))
    center = (0.5, 0.0, 0.6)
    free = analyzer.generate_map(100.0, center, extent=0.3)
    careful = analyzer.generate_map(100.0, center, extent=0.3, avoid_collisions=True)
    assert 0 <= len(careful.reachable_points) < len(free.reachable_points)


def test_a_map_that_avoids_collisions_tries_every_configuration(g60: Chain) -> None:
    post = as_object("post", Box((0.1, 0.1, 1.0)), translation(0.4, 0.15, 0.5))
    analyzer = ReachabilityAnalyzer(g60, CollisionDetector(g60, [post]))
    turns = directions(6)
    careful = analyzer.generate_map(150.0, (0.5, 0.0, 0.6), 6, extent=0.3, avoid_collisions=True)
    free = []
    for point in careful.points:
        targets = turns.copy()
        targets[:, :3, 3] = point
        free.append(any(analyzer.check_pose(target).reachable for target in targets))
    assert (careful.orientations > 0).tolist() == free


def test_an_arm_without_closed_form() -> None:
    found = ReachabilityAnalyzer(seven_axes()).generate_map(400.0, (0.3, 0.0, 0.7), 2, extent=0.4)
    assert 0 < len(found.reachable_points) <= 27


def test_directions_are_rotations() -> None:
    turns = directions(14)
    assert len({tuple(np.round(turn[:3, 2], 6)) for turn in turns}) == 14
    for turn in turns:
        assert turn[:3, :3] @ turn[:3, :3].T == pytest.approx(np.eye(3))
        assert np.linalg.det(turn) == pytest.approx(1.0)


def test_export(g60: Chain) -> None:
    found = ReachabilityAnalyzer(g60).generate_map(300.0)
    lines = csv(found).splitlines()
    assert lines[0] == "x_mm,y_mm,z_mm,reachable,orientations,manipulability"
    assert len(lines) == 1 + len(found.points)
    assert arrays(found)["points"].shape == (len(found.points), 3)
    for along in range(3):
        picture = svg(found, along)
        assert picture.startswith("<svg")
        assert picture.count('class="cell"') > 10
        names = "xyz"[:along] + "xyz"[along + 1 :]
        assert all(f">{name} in mm</text>" in picture for name in names)


def test_nothing_reachable(g60: Chain) -> None:
    found = ReachabilityAnalyzer(g60).generate_map(100.0, (9.0, 0.0, 0.0), extent=0.1)
    assert np.isnan(found.workspace_min).all()
    assert svg(found).count('class="cell"') == 0
    assert "reachable in mm: nothing." in html(found, "far away")


def test_a_cell_is_drawn_where_the_axes_say(g60: Chain) -> None:
    found = ReachabilityAnalyzer(g60).generate_map(100.0)
    picture = svg(found, along=1)
    marks = re.findall(
        r'<text x="([\d.]+)" y="[\d.]+" text-anchor="middle">(-?\d+)</text>', picture
    )
    (x0, first), (x1, last) = ((float(x), float(mm)) for x, mm in (marks[0], marks[-1]))
    cells = re.findall(r'<rect x="(\d+)"[^>]*class="cell"[^>]*><title>(-?\d+),', picture)
    assert len(marks) >= 3
    for x, mm in cells:
        drawn = first + (float(x) + CELL / 2 - x0) * (last - first) / (x1 - x0)
        assert drawn == pytest.approx(float(mm), abs=1.0)


def test_the_page_has_a_colour_scale(g60: Chain) -> None:
    found = ReachabilityAnalyzer(g60).generate_map(300.0)
    text = html(found, "an <arm>")
    assert "an &lt;arm&gt;" in text
    assert "reachable tool directions" in text
    origin = Origin("bench", "understudy reach --cell bench", "2026-01-02 03:04 UTC", "9.8")
    made = html(found, "an <arm>", origin)
    assert "cell bench · 2026-01-02 03:04 UTC · Understudy 9.8" in made
    assert "<code>understudy reach --cell bench</code>" in made
    assert made.count("<h1>") == text.count("<h1>") == 1
    assert f'text-anchor="middle">{found.tried}</text>' in text
