"""Surfaces of meshes: what encloses a volume, after the repair of winding and small gaps."""

import numpy as np
import pytest
import trimesh
from tests.space.collision.scenes import ball, our_distance, sheet, tube

from understudy.space.model.robot import Sphere
from understudy.space.model.shapes import TriangleMesh
from understudy.space.transform import translation

PROBE = Sphere(0.001)


def of(mesh: trimesh.Trimesh) -> TriangleMesh:
    return TriangleMesh(np.array(mesh.vertices), np.array(mesh.faces, dtype=np.int64))


def wound_at_random(mesh: TriangleMesh, seed: int) -> TriangleMesh:
    rng = np.random.default_rng(seed)
    triangles = mesh.triangles.copy()
    turned = rng.random(len(triangles)) < 0.5
    triangles[turned] = triangles[turned][:, ::-1]
    return TriangleMesh(mesh.vertices, triangles)


def joined(*meshes: TriangleMesh) -> TriangleMesh:
    starts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    triangles = [mesh.triangles + k for mesh, k in zip(meshes, starts[:-1], strict=True)]
    return TriangleMesh(np.vstack([mesh.vertices for mesh in meshes]), np.vstack(triangles))


def inside(mesh: TriangleMesh, x: float, y: float = 0.0, z: float = 0.0) -> bool:
    return our_distance(PROBE, translation(x, y, z), mesh, np.eye(4)) < 0.0


@pytest.mark.parametrize("seed", range(5))
def test_a_closed_mesh_with_mixed_winding_is_solid(seed: int) -> None:
    mesh = wound_at_random(ball(0.3), seed)
    assert mesh.closed
    for x, y, z in np.random.default_rng(seed).uniform(-0.35, 0.35, (40, 3)):
        assert inside(mesh, x, y, z) == inside(ball(0.3), x, y, z)


def test_two_overlapping_pieces_with_mixed_winding_are_one_solid() -> None:
    """The overlap is inside, whatever the number of surfaces that a ray crosses."""
    a, b = trimesh.creation.box((0.4, 0.2, 0.2)), trimesh.creation.box((0.2, 0.4, 0.2))
    b.apply_translation((0.1, 0.01, 0.02))
    mesh = wound_at_random(joined(of(a), of(b)), 3)
    assert inside(mesh, 0.1, 0.02, 0.03)
    assert inside(mesh, -0.15)
    assert not inside(mesh, -0.15, 0.15)


def test_a_cavity_stays_hollow_if_the_outer_side_is_repaired() -> None:
    hole = ball(0.1)
    hole = TriangleMesh(hole.vertices, hole.triangles[:, ::-1].copy())
    mesh = joined(wound_at_random(ball(0.3), 1), hole)
    assert not inside(mesh, 0.0)
    assert inside(mesh, 0.2)


def test_a_tube_and_a_bin_have_no_inside() -> None:
    assert not tube().closed
    assert not inside(tube(), 0.0)
    box = trimesh.creation.box((0.4, 0.4, 0.4))
    lid = box.face_normals[:, 2] > 0.5
    bin_ = TriangleMesh(np.array(box.vertices), np.array(box.faces[~lid], dtype=np.int64))
    assert not inside(bin_, 0.0)
    assert not inside(wound_at_random(bin_, 2), 0.0)


def test_a_loose_sheet_does_not_open_a_solid() -> None:
    mesh = joined(of(trimesh.creation.box((0.4, 0.4, 0.4))), sheet(0.1, 0.1))
    assert mesh.closed
    assert inside(mesh, 0.1, 0.1, 0.1)
    assert not inside(mesh, 0.0, 0.0, 0.25)


def test_a_vertex_on_the_edge_of_another_triangle_is_no_gap() -> None:
    """One side of a box divided along a diagonal, its neighbour with a vertex in the middle."""
    box = trimesh.creation.box((0.4, 0.4, 0.4))
    vertices, triangles = np.array(box.vertices), np.array(box.faces, dtype=np.int64)
    a, b, c = triangles[0]
    vertices = np.vstack([vertices, (vertices[a] + vertices[b]) / 2])
    middle = len(vertices) - 1
    triangles = np.vstack([triangles[1:], [(a, middle, c), (middle, b, c)]])
    mesh = TriangleMesh(vertices, triangles)
    assert mesh.closed
    assert inside(mesh, 0.1, 0.12, 0.07)
    assert not inside(mesh, 0.3)


def test_a_surface_with_one_side_has_no_inside() -> None:
    """A Möbius strip."""
    steps = 20
    turn = np.linspace(0.0, 2 * np.pi, steps, endpoint=False)
    rims = [
        np.stack(
            [
                (1 + w * np.cos(turn / 2)) * np.cos(turn),
                (1 + w * np.cos(turn / 2)) * np.sin(turn),
                w * np.sin(turn / 2),
            ],
            axis=1,
        )
        for w in (-0.2, 0.2)
    ]
    rows = []
    for k in range(steps):
        a, b, c, d = k, k + steps, (k + 1) % steps, (k + 1) % steps + steps
        if k == steps - 1:
            c, d = d, c
        rows += [(a, b, c), (b, d, c)]
    mesh = TriangleMesh(np.vstack(rims), np.array(rows))
    assert not mesh.closed
    assert not inside(mesh, 0.0)
