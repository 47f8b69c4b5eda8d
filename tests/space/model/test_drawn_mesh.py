"""Meshes as pages draw them: colours, units, fewer triangles."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from tests.config.own_arms import write_mesh

from understudy.errors import ConfigError
from understudy.space.model.drawn_mesh import MOST_TRIANGLES, drawn_meshes, merged
from understudy.space.model.shapes import MOST_CORNERS, TriangleMesh, mesh_from_bytes


@pytest.mark.parametrize("ending", ["dae", "glb"])
def test_a_mesh_keeps_its_colour(tmp_path: Path, ending: str) -> None:
    (found,) = drawn_meshes(write_mesh(tmp_path / f"a.{ending}").read_bytes(), ending)
    assert found.color == (1.0, 0.0, 0.0, 1.0)
    assert len(found.mesh.triangles) == 12


@pytest.mark.parametrize("ending", ["stl", "obj"])
def test_a_mesh_without_colours_has_none(tmp_path: Path, ending: str) -> None:
    (found,) = drawn_meshes(write_mesh(tmp_path / f"a.{ending}").read_bytes(), ending)
    assert found.color is None


def test_colours_of_faces_are_meshes_of_their_own() -> None:
    ply = b"""ply
format ascii 1.0
element vertex 4
property float x
property float y
property float z
element face 2
property list uchar int vertex_indices
property uchar red
property uchar green
property uchar blue
property uchar alpha
end_header
0 0 0
1 0 0
0 1 0
0 0 1
3 0 1 2 255 0 0 255
3 0 1 3 0 0 255 255
"""
    found = drawn_meshes(ply, "ply")
    assert {mesh.color for mesh in found} == {(1.0, 0.0, 0.0, 1.0), (0.0, 0.0, 1.0, 1.0)}
    assert [len(mesh.mesh.triangles) for mesh in found] == [1, 1]


def test_a_dae_file_states_its_unit(tmp_path: Path) -> None:
    data = write_mesh(tmp_path / "a.dae").read_bytes()
    inches = data.replace(b"<asset>", b'<asset><unit name="inch" meter="0.0254"/>')
    assert inches != data
    metres, smaller = mesh_from_bytes(data, "dae"), mesh_from_bytes(inches, "dae")
    np.testing.assert_allclose(smaller.bounds(), np.array(metres.bounds()) * 0.0254)


def grid(side: int) -> TriangleMesh:
    x, y = np.meshgrid(np.linspace(0, 1, side), np.linspace(0, 1, side))
    vertices = np.stack([x.ravel(), y.ravel(), np.sin(3 * x).ravel()], axis=1)
    first = (np.arange(side - 1)[:, None] * side + np.arange(side - 1)).ravel()
    halves = [(first, first + 1, first + side), (first + 1, first + side + 1, first + side)]
    return TriangleMesh(vertices, np.concatenate([np.stack(half, axis=1) for half in halves]))


def test_a_fine_mesh_is_drawn_coarser_and_stays_in_place() -> None:
    fine = grid(150)
    assert len(fine.triangles) > MOST_TRIANGLES
    whole = import_module("trimesh").Trimesh(fine.vertices, fine.triangles, process=False)
    (found,) = drawn_meshes(whole.export(file_type="stl"), "stl")
    assert 1000 < len(found.mesh.triangles) <= MOST_TRIANGLES
    np.testing.assert_allclose(found.mesh.bounds(), fine.bounds(), atol=0.02)


def test_merged_vertices_lie_in_their_cell() -> None:
    fine = grid(40)
    coarse = merged(fine, 10)
    away = np.abs(coarse.vertices[:, None] - fine.vertices[None]).max(axis=2).min(axis=1)
    assert away.max() <= 0.1
    assert len(coarse.vertices) < len(fine.vertices)


def test_a_file_that_is_no_mesh() -> None:
    with pytest.raises(ConfigError, match="the mesh has no triangles"):
        drawn_meshes(b"nothing", "stl")


def test_an_outer_hull_contains_its_mesh() -> None:
    """Also where a simpler hull stands for one with many corners: sound for proofs."""
    ball = import_module("trimesh").creation.icosphere(subdivisions=4, radius=0.3)
    mesh = TriangleMesh(np.array(ball.vertices), np.array(ball.faces))
    hull = mesh.outer_hull
    assert len(hull.points) < MOST_CORNERS * 2 < len(mesh.vertices)
    directions = np.random.default_rng(3).normal(size=(2000, 3))
    assert ((mesh.vertices @ directions.T).max(0) <= (hull.points @ directions.T).max(0)).all()
    assert np.linalg.norm(hull.points, axis=1).max() < 0.33
