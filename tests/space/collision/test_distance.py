"""Distances: every pair of shapes against coal, every kernel against plain geometry."""

from functools import partial

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.space.collision.oracles import (
    along,
    nearest_of_grid,
    point_box,
    point_cylinder,
    point_segment,
    point_triangle,
)
from tests.space.collision.scenes import (
    KINDS,
    any_place,
    any_shape,
    ball,
    coal_distance,
    our_distance,
    pair,
)

from understudy.space.collision.distance import (
    core_mesh,
    distance,
    line_mesh,
    mesh_mesh,
    scratch,
    segment_box,
    segment_cylinder,
    segment_segment,
    segment_triangle,
)
from understudy.space.collision.solids import core_distance, support, triangle_weights
from understudy.space.model.robot import Box, Capsule, Cylinder, Sphere
from understudy.space.model.shapes import Hull
from understudy.space.transform import inverse

MICROMETRE = 1e-6
PAIRS = [(a, b) for i, a in enumerate(KINDS) for b in KINDS[i:]]
seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
@settings(max_examples=25)
@given(seed=seeds, spread=st.sampled_from((0.1, 0.3, 0.8)))
def test_agrees_with_coal(kinds: tuple[str, str], seed: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    a, b = (any_shape(kind, rng) for kind in kinds)
    at_a, at_b = any_place(rng, spread), any_place(rng, spread)
    ours, truth = our_distance(a, at_a, b, at_b), coal_distance(a, at_a, b, at_b)
    if ours > 0.0:
        assert ours == pytest.approx(truth, abs=MICROMETRE)
    elif "mesh" not in kinds:
        assert truth <= MICROMETRE
    # coal treats a mesh as a surface: a shape inside without contact has a positive distance.


@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
@settings(max_examples=10)
@given(seed=seeds)
def test_distance_is_symmetric_and_invariant_under_rigid_motion(
    kinds: tuple[str, str], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    a, b = (any_shape(kind, rng) for kind in kinds)
    at_a, at_b, shift = any_place(rng, 0.4), any_place(rng, 0.4), any_place(rng, 3.0)
    here = our_distance(a, at_a, b, at_b)
    there = our_distance(b, shift @ at_b, a, shift @ at_a)
    assert here == pytest.approx(there, abs=2e-9) or max(here, there) <= 0.0


@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_a_search_that_ends_early_returns_a_lower_bound(kinds: tuple[str, str]) -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        a, b = (any_shape(kind, rng) for kind in kinds)
        at_a, at_b = any_place(rng, 0.8), any_place(rng, 0.8)
        whole = our_distance(a, at_a, b, at_b)
        solids, at = pair(a, at_a, b, at_b)
        for enough, exact in ((0.3 * abs(whole), np.inf), (np.inf, 0.0), (np.inf, 0.02)):
            proven, _ = distance(
                solids, at.placed, at.ends, 0, 1, enough, exact, -1, True, scratch()
            )
            assert proven <= whole + 1e-9
            if whole > 0.0:
                assert proven >= min(0.7 * whole, enough) - 1e-9


@example(np.zeros(6).tolist())
@given(st.lists(st.floats(-1.0, 1.0), min_size=6, max_size=6))
def test_boxes_side_by_side(shift: list[float]) -> None:
    """Parallel edges and faces, a difficult case for searches."""
    x, y, z, a, b, c = shift
    at = np.eye(4)
    at[:3, 3] = x, y, z
    one, other = Box((0.5, 0.4, 0.3)), Box((0.1 + abs(a), 0.1 + abs(b), 0.1 + abs(c)))
    gap = np.abs(at[:3, 3]) - (np.array(one.size) + np.array(other.size)) / 2
    apart = float(np.linalg.norm(np.maximum(gap, 0.0)))
    assert our_distance(one, np.eye(4), other, at) == pytest.approx(apart, abs=1e-8)


def test_parallel_and_touching_capsules() -> None:
    at = np.eye(4)
    at[0, 3] = 0.2
    assert our_distance(Capsule(0.1, 0.5), np.eye(4), Capsule(0.1, 0.2), at) == pytest.approx(0.0)
    at[2, 3] = 0.35
    assert our_distance(Capsule(0.1, 0.5), np.eye(4), Sphere(0.1), at) == pytest.approx(
        np.hypot(0.2, 0.1) - 0.2
    )


# ── kernels ─────────────────────────────────────────────────────────────────────────────────────


def test_segments_against_plain_geometry() -> None:
    rng = np.random.default_rng(1)
    for k in range(60):
        p, u, q, v = rng.uniform(-1, 1, (4, 3)) * rng.choice([0.0, 1e-3, 1.0, 1.0], (4, 1))
        if k % 10 == 0:
            v = u * rng.uniform(-2, 2)
        square, s, t = segment_segment(tuple(p), tuple(u), tuple(q), tuple(v))
        wanted = along(partial(point_segment, a=q, b=q + v), p, u)
        assert np.sqrt(square) == pytest.approx(wanted, abs=1e-7)
        assert np.linalg.norm(p + s * u - q - t * v) == pytest.approx(np.sqrt(square), abs=1e-12)

        half = rng.uniform(0.01, 0.6, 3)
        square, _ = segment_box(tuple(p), tuple(u), tuple(half))
        wanted = along(partial(point_box, half=half), p, u)
        assert np.sqrt(square) == pytest.approx(wanted, abs=1e-7)

        square, _ = segment_cylinder(tuple(p), tuple(u), *half[::2])
        wanted = along(partial(point_cylinder, radius=half[0], half=half[2]), p, u)
        assert np.sqrt(square) == pytest.approx(wanted, abs=1e-7)

        corners = rng.uniform(-1, 1, (3, 3)) * rng.choice([0.05, 1.0])
        a, b, c = (tuple(corner) for corner in corners)
        square = segment_triangle(tuple(p), tuple(u), a, b, c, np.inf)
        wanted = along(partial(point_triangle, corners=corners), p, u)
        assert np.sqrt(square) == pytest.approx(wanted, abs=1e-6)
        enough = 0.25 * square
        assert segment_triangle(tuple(p), tuple(u), a, b, c, enough) == enough


def test_weights_of_a_triangle() -> None:
    rng = np.random.default_rng(2)
    for _ in range(100):
        corners = rng.uniform(-1, 1, (3, 3)) + rng.uniform(-0.5, 0.5, 3)
        weights = np.array(triangle_weights(*map(tuple, corners)))
        assert weights.min() >= 0.0
        assert weights.sum() == pytest.approx(1.0)
        found = np.linalg.norm(weights @ corners)
        grid = nearest_of_grid(corners)
        assert grid - 0.06 <= found <= grid + 1e-12


@pytest.mark.parametrize("kind", ["box", "capsule", "cylinder", "hull"])
def test_support_points(kind: str) -> None:
    """Plain geometry as the oracle of support: no point of the core is further along."""
    rng = np.random.default_rng(3)
    for _ in range(30):
        shape, place, d = any_shape(kind, rng), any_place(rng, 0.5), rng.normal(size=3)
        solids, at = pair(shape, place, Sphere(0.1), np.eye(4))
        shapes = (solids.traits, solids.sizes, at.placed, solids.points)
        found = np.array(support(shapes, 0, -1, *d))
        inner = inverse(place)[:3, :3] @ (found - place[:3, 3])
        match shape:
            case Box(size=size):
                samples = rng.uniform(-0.5, 0.5, (200, 3)) * size
                assert np.allclose(np.abs(inner), np.array(size) / 2)
            case Capsule(length=length):
                samples = np.outer(np.linspace(-0.5, 0.5, 50), (0, 0, length))
                assert np.allclose(inner[:2], 0.0)
            case Cylinder(radius=r, length=length):
                turn = rng.uniform(-np.pi, np.pi, 200)
                height = rng.uniform(-0.5, 0.5, 200) * length
                samples = np.stack([r * np.cos(turn), r * np.sin(turn), height], axis=1)
                assert np.hypot(*inner[:2]) == pytest.approx(r)
            case Hull(points=points):
                samples = points
                assert np.isclose(points, inner).all(axis=1).any()
        world = samples @ place[:3, :3].T + place[:3, 3]
        assert (world @ d).max() <= found @ d + 1e-9


def test_meshes_triangle_by_triangle() -> None:
    """All triangles, one by one: oracle of line_mesh, oracle of core_mesh, oracle of mesh_mesh."""
    rng = np.random.default_rng(4)
    mesh = ball(0.3, 1)
    stack, gaps, simplex = scratch()
    for _ in range(15):
        other = ball(0.1, 1)
        place = any_place(rng, 0.6)
        for shape in (Capsule(0.0001, rng.uniform(0.0, 0.5)), any_shape("box", rng), other):
            solids, at = pair(shape, place, mesh, np.eye(4))
            shapes = (solids.traits, solids.sizes, at.placed, solids.points)
            first, count = solids.traits[1, 1] // 3, solids.traits[1, 2] // 3
            begins = solids.traits[0, 1] // 3
            triangles = range(begins, begins + other.triangles.shape[0])
            own = triangles if shape is other else (-1,)
            each = {
                t: min(core_distance(shapes, 0, 1, a, t, np.inf, simplex)[1] for a in own)
                for t in range(first, first + count)
            }
            wanted = min(each.values())
            line = (*at.ends[0, :3], *(at.ends[0, 3:] - at.ends[0, :3]))
            trees = (solids.nodes, solids.children)
            if isinstance(shape, Capsule):
                found, nearest = line_mesh(
                    solids.points, *trees, solids.traits[1, 3], line, np.inf, -1, np.inf,
                    (stack, gaps),
                )  # fmt: skip
            elif isinstance(shape, Box):
                found, nearest = core_mesh(
                    shapes, *trees, 0, 1, line, solids.sizes[0, 4], np.inf, np.inf,
                    (stack, gaps), simplex,
                )  # fmt: skip
            else:
                found, _, nearest = mesh_mesh(shapes, *trees, 0, 1, np.inf, np.inf, simplex)
            assert found == pytest.approx(wanted, abs=1e-8)
            assert each[nearest] == pytest.approx(wanted, abs=1e-8)
