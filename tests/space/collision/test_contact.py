"""Penetration depth, contact point, and shapes completely inside another."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.space.collision.oracles import shallowest, windings
from tests.space.collision.scenes import (
    any_place,
    any_shape,
    ball,
    coal_depth,
    our_contact,
    our_distance,
    pair,
    sheet,
)

from understudy.space.collision.distance import inside_mesh, scratch
from understudy.space.model.robot import Box, Capsule, Cylinder, Sphere
from understudy.space.model.shapes import Hull, Shape, TriangleMesh
from understudy.space.transform import translation

TOLERANCE = 1e-6
"""A micrometre; round bodies are searched to a tenth of it."""
CONVEX = ("box", "sphere", "cylinder", "capsule", "hull")
seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("kinds", [(a, b) for a in CONVEX for b in CONVEX], ids="-".join)
@settings(max_examples=15)
@given(seed=seeds)
def test_depth_agrees_with_coal(kinds: tuple[str, str], seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (any_shape(kind, rng) for kind in kinds)
    at_a, at_b = any_place(rng, 0.1), any_place(rng, 0.1)
    truth = coal_depth(a, at_a, b, at_b)
    found = our_contact(a, at_a, b, at_b)
    if truth is None:
        assert found.depth <= TOLERANCE
    elif found.depth > truth - TOLERANCE:
        assert found.depth == pytest.approx(truth, abs=TOLERANCE)
    else:
        # coal's search sometimes ends early; then a shift by our depth must separate the shapes.
        assert "cylinder" in kinds or "capsule" in kinds


@given(seed=seeds)
def test_the_depth_is_the_smallest_separating_shift(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-0.3, 0.3, (2, 10, 3))
    found = our_contact(Hull(a), np.eye(4), Hull(b), np.eye(4))
    if found.distance < 0.0:
        wanted = shallowest(a, b)
        assert wanted - 0.01 <= found.depth <= wanted + 1e-9


def test_concentric_shapes() -> None:
    inner, outer = Box((0.2, 0.2, 0.2)), Box((1.0, 0.8, 0.6))
    assert our_contact(inner, np.eye(4), outer, np.eye(4)).depth == pytest.approx(0.4)
    assert our_contact(Sphere(0.1), np.eye(4), outer, np.eye(4)).depth == pytest.approx(0.4)


def test_the_contact_point_is_between_both_surfaces() -> None:
    found = our_contact(Sphere(0.1), np.eye(4), Box((0.2, 1, 1)), translation(0.19, 0, 0))
    assert found.depth == pytest.approx(0.01)
    assert found.point == pytest.approx([0.095, 0, 0])
    apart = our_contact(Sphere(0.1), np.eye(4), Box((0.2, 1, 1)), translation(0.4, 0, 0))
    assert apart.depth == 0.0
    assert apart.point == pytest.approx([0.2, 0, 0])


# ── inside a mesh ───────────────────────────────────────────────────────────────────────────────


@given(seed=seeds)
def test_inside_agrees_with_the_winding_number(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mesh = ball(0.3, 1)
    solids, _ = pair(mesh, np.eye(4), Sphere(0.1), np.eye(4))
    for p in rng.uniform(-0.35, 0.35, (20, 3)):
        x, y, z = p
        found = inside_mesh(
            solids.traits, solids.points, solids.nodes, solids.children, 0, x, y, z, scratch()[0]
        )
        assert found == (abs(windings(mesh.corners(), p)) > 0.5)


@pytest.mark.parametrize(
    "shape", [Sphere(0.01), Capsule(0.01, 0.05), Box((0.02, 0.02, 0.02)), Cylinder(0.01, 0.03),
              Hull(np.eye(3) * 0.02), ball(0.02, 1)], ids=lambda s: type(s).__name__,
)  # fmt: skip
def test_a_shape_completely_inside_a_mesh_collides(shape: Shape) -> None:
    mesh = ball(0.3)
    assert our_distance(shape, translation(0.1, 0, 0), mesh, np.eye(4)) < -0.1
    assert our_distance(mesh, np.eye(4), shape, translation(0.1, 0, 0)) < -0.1
    assert our_distance(shape, translation(0.5, 0, 0), mesh, np.eye(4)) > 0.0


def test_rays_through_edges_and_corners_are_handled() -> None:
    """From the middle of a box many rays meet its corners and diagonals."""
    corners = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
    faces = [
        (0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1),
        (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3),
    ]  # fmt: skip
    box = TriangleMesh(corners, np.array(faces))
    assert box.closed
    rng = np.random.default_rng(0)
    for p in np.concatenate([np.zeros((1, 3)), rng.integers(-9, 10, (200, 3)) / 10.0]):
        assert our_distance(Sphere(1e-4), translation(*p), box, np.eye(4)) < 0.0


def test_a_mesh_with_a_crack_still_has_an_inside() -> None:
    whole = ball(0.3)
    cracked = TriangleMesh(whole.vertices, whole.triangles[3:])
    assert whole.closed
    assert cracked.closed
    assert our_distance(Sphere(0.01), np.eye(4), cracked, np.eye(4)) < 0.0


def test_a_sheet_has_no_inside() -> None:
    assert our_distance(Sphere(0.01), translation(0, 0, 0.02), sheet(1, 1), np.eye(4)) > 0.0
    assert our_distance(Sphere(0.01), translation(0, 0, -0.02), sheet(1, 1), np.eye(4)) > 0.0


def test_inside_out_and_nested_meshes() -> None:
    whole = ball(0.3)
    inverted = TriangleMesh(whole.vertices, whole.triangles[:, ::-1].copy())
    assert our_distance(Sphere(0.01), np.eye(4), inverted, np.eye(4)) < 0.0
    hole = ball(0.1)
    shell = TriangleMesh(
        np.vstack([whole.vertices, hole.vertices]),
        np.vstack([whole.triangles, hole.triangles[:, ::-1] + len(whole.vertices)]),
    )
    assert our_distance(Sphere(0.01), np.eye(4), shell, np.eye(4)) > 0.0
    assert our_distance(Sphere(0.01), translation(0.2, 0, 0), shell, np.eye(4)) < 0.0
