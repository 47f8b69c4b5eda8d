"""Rendered pictures: corners lie where the lens projects them, near faces hide far ones."""

from collections.abc import Iterable, Sequence

import cv2
import numpy as np
import pytest
from tests.sight.plain_render import plain_render

from understudy.sight import rasters
from understudy.sight import render as render_module
from understudy.sight.faces import (
    Color,
    Face,
    box_faces,
    cylinder_faces,
    marker_face,
    plain,
    shape_faces,
)
from understudy.sight.lens import Lens
from understudy.sight.render import SAMPLES, Light, lens_rays, render
from understudy.space.model.shapes import Hull
from understudy.space.pose import Pose
from understudy.space.transform import Array, matrix, translation


def mesh_faces(vertices: Array, triangles: Iterable[Sequence[int]], color: Color) -> list[Face]:
    """The triangles of a mesh, whose corners are counter-clockwise seen from outside."""
    body = plain(color)
    return [
        Face(vertices[a], vertices[b] - vertices[a], vertices[c] - vertices[a], body, triangle=True)
        for a, b, c in triangles
    ]


LENS = Lens(320, 240, 300.0, 302.0, 160.5, 119.0, (-0.12, 0.08, 0.001, -0.0005, 0.0))
EVEN = Light(ambient=1.0)
DOWN = Pose(0.02, -0.01, 0.5, np.pi, 0.05, 0.3)
CHESS = np.array([[(0, 0, 0), (255, 255, 255)], [(255, 255, 255), (0, 0, 0)]], dtype=np.uint8)


def scene() -> list[Face]:
    table = marker_face(CHESS, 0.6, 0.5)
    box = [each.moved(matrix(Pose(0.05, 0.02, 0.02, 0, 0, 0.4))) for each in
           box_faces((0.06, 0.08, 0.04), (200, 30, 20), CHESS)]  # fmt: skip
    can = [each.moved(matrix(Pose(-0.08, 0.0, 0.03, 0.2, 0, 0))) for each in
           cylinder_faces(0.03, 0.06, (10, 90, 200))]  # fmt: skip
    corners = np.vstack([np.zeros(3), 0.08 * np.eye(3)])
    corners[:, 1] -= 0.12
    wedge = mesh_faces(corners, [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)], (20, 160, 40))
    return [table, *box, *can, *wedge]


def random_scene(seed: int) -> list[Face]:
    """Boxes, cans and sheets that stand, lie in and cross each other, large and tiny ones."""
    dice = np.random.default_rng(seed)
    table = marker_face(dice.integers(0, 256, (3, 4, 3), dtype=np.uint8), 0.6, 0.5)
    faces = [*box_faces((0.7, 0.6, 0.02), (120, 110, 100)), table.moved(lifted(0.01))]
    for _ in range(12):
        at, turn = dice.uniform((-0.2, -0.2, 0.0), 0.2), dice.uniform(-3.0, 3.0, 3)
        place = matrix(Pose(*at.tolist(), *turn.tolist()))
        size = dice.uniform(0.001, 0.15, 3).tolist()
        color = tuple(dice.integers(0, 256, 3).tolist())
        pattern = dice.integers(0, 256, (*dice.integers(1, 9, 2), 3), dtype=np.uint8)
        sheet = marker_face(pattern, 0.8 * size[0], 0.8 * size[1]).moved(lifted(0.5 * size[2]))
        body = box_faces(size, color)
        if dice.random() < 0.3:
            body = cylinder_faces(size[0], size[2], color)
        faces += [each.moved(place) for each in (*body, sheet)]
    return faces


def lifted(height: float) -> Array:
    return translation(0.0, 0.0, height)


def random_view(seed: int) -> tuple[Lens, Array]:
    dice = np.random.default_rng(seed)
    bend = (-0.25, 0.09, 0.002, -0.001, 0.0) if seed % 2 else (0.0,) * 5
    lens = Lens(67, 49, 55.0 + 60.0 * dice.random(), 61.0, 31.0, 26.0, bend)
    x, y = dice.uniform(-0.2, 0.2, 2)
    tilt = dice.uniform(-0.9, 0.9, 3)
    return lens, matrix(Pose(x, y, dice.uniform(0.05, 0.6), np.pi + tilt[0], tilt[1], 3 * tilt[2]))


def check_same(faces: list[Face], lens: Lens, camera: Array, samples: int = SAMPLES) -> None:
    found = render(faces, lens, camera, samples=samples)
    plain = plain_render(faces, lens, camera, samples=samples)
    away = np.abs(found.light - plain.light).max(axis=2)
    # A ray that meets a border may fall on either side of it.
    assert (away > 1e-3).mean() < 0.003, (away > 1e-3).sum()
    # These lenses are bent within a pixel 20 times as much as a real one of 1280 pixels.
    same = np.isclose(found.depth, plain.depth, rtol=1e-2) | (found.depth == plain.depth)
    assert same.mean() > 0.99


@pytest.mark.parametrize("seed", range(6))
def test_the_picture_is_that_of_all_rays(seed: int) -> None:
    check_same(random_scene(seed), *random_view(seed), samples=1 if seed == 4 else SAMPLES)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(6, 400))
def test_many_pictures_are_those_of_all_rays(seed: int) -> None:
    check_same(random_scene(seed), *random_view(seed))


def test_a_scene_of_all_shapes() -> None:
    check_same(scene(), Lens(80, 60, 75.0, 75.5, 40.1, 29.7, LENS.distortion), matrix(DOWN))


def test_a_sheet_hides_the_face_it_lies_on() -> None:
    """From far away, where depths differ by less than their rounding."""
    body = [
        *box_faces((0.4, 0.4, 0.1), (200, 0, 0)),
        marker_face(CHESS, 0.4, 0.4).moved(lifted(0.05)),
    ]
    for height in (0.3, 3.0, 30.0):
        lens = Lens(64, 48, 64.0 * height, 64.0 * height, 31.5, 23.5)
        turned = matrix(Pose(0.0, 0.0, 0.05 + height, np.pi, 0.01, 0.0))
        red = render(body, lens, turned, light=EVEN).light
        assert np.abs(red[16:32, 20:44, 0] - red[16:32, 20:44, 1]).max() == 0.0


def test_an_empty_scene_is_background() -> None:
    picture = render([], LENS, matrix(DOWN), background=(1, 2, 3))
    assert (picture.light == (1, 2, 3)).all()
    assert np.isinf(picture.depth).all()


def test_the_compiled_kernels_are_their_python_functions() -> None:
    lens = Lens(20, 15, 20.0, 20.0, 9.0, 7.0, (-0.1, 0.0, 0.0, 0.0, 0.0))
    faces, camera = random_scene(3)[:20], matrix(DOWN)
    expected = render(faces, lens, camera)
    kernels = [name for name in dir(rasters) if hasattr(getattr(rasters, name), "py_func")]
    assert len(kernels) >= 12
    with pytest.MonkeyPatch.context() as patch:
        for name in kernels:
            plain_function = getattr(rasters, name).py_func
            patch.setattr(rasters, name, plain_function)
            if hasattr(render_module, name):
                patch.setattr(render_module, name, plain_function)
        with np.errstate(all="ignore"):
            found = render(faces, lens, camera)
    np.testing.assert_array_equal(found.light, expected.light)
    np.testing.assert_array_equal(found.depth, expected.depth)


def test_borders_lie_where_the_lens_projects_them() -> None:
    camera = matrix(DOWN)
    sheet = marker_face(CHESS, 0.2, 0.2)
    picture = render([sheet], LENS, camera, light=EVEN)
    gray = picture.light.mean(axis=2).astype(np.float32)
    expected = LENS.pixels((np.linalg.inv(camera) @ [0.0, 0.0, 0.0, 1.0])[None, :3])[0]
    guess = expected.astype(np.float32).reshape(1, 1, 2) + 0.4
    stop = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_COUNT, 100, 1e-4)
    found = cv2.cornerSubPix(gray.astype(np.uint8), guess, (5, 5), (-1, -1), stop)
    np.testing.assert_allclose(found.reshape(2), expected, atol=0.05)


def test_the_depth_of_a_table_is_exact() -> None:
    camera = matrix(DOWN)
    picture = render([marker_face(plain((9, 9, 9)), 5.0, 5.0)], LENS, camera)
    x, y = lens_rays(LENS, 1)
    rays = np.stack([x, y, np.ones_like(x)], axis=-1) @ camera[:3, :3].T
    np.testing.assert_allclose(picture.depth, -camera[2, 3] / rays[..., 2], rtol=1e-6)


@pytest.mark.parametrize("angle", [0.0, np.pi / 2, np.pi])
def test_light_from_the_side_makes_faces_darker(angle: float) -> None:
    lamp = Light((np.sin(angle), 0.0, np.cos(angle)), ambient=0.5)
    picture = render(
        [marker_face(plain((200, 200, 200)), 5.0, 5.0)], LENS, matrix(DOWN), light=lamp
    )
    expected = 200 * (0.5 + 0.5 * max(0.0, np.cos(angle)))
    assert abs(float(picture.light.mean()) - expected) <= 1.0


def test_a_face_partly_behind_the_camera_is_drawn() -> None:
    level = matrix(Pose(0.0, 0.0, 0.1, -np.pi / 2, 0.0, 0.0))  # looks along +y
    picture = render([marker_face(plain((255, 0, 0)), 4.0, 4.0)], LENS, level, light=EVEN)
    assert (picture.light[-1, :, 0] > 250).all()
    assert np.isinf(picture.depth[0]).all()


def test_the_faces_of_a_hull_show_outwards_wherever_it_is() -> None:
    corners = np.array([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 2.0)])
    for shift in (0.0, 5.0, -5.0):
        edges = shape_faces(Hull(corners + shift), (1, 2, 3)).edges
        middles = edges[:, 0] + (edges[:, 1] + edges[:, 2]) / 3.0
        outward = middles - corners.mean(axis=0) - shift
        normals = np.cross(edges[:, 1], edges[:, 2])
        assert (np.einsum("ij,ij->i", normals, outward) > 0.0).all()
