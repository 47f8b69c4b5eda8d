"""Rendered pictures: corners lie where the lens projects them, near faces hide far ones."""

import cv2
import numpy as np
import pytest

from understudy.sight.faces import Face, box_faces, cylinder_faces, marker_face, mesh_faces, plain
from understudy.sight.lens import Lens
from understudy.sight.render import Light, draw_face, lens_rays, pixel_means, render
from understudy.space.pose import Pose
from understudy.space.transform import Array, matrix

LENS = Lens(320, 240, 300.0, 302.0, 160.5, 119.0, (-0.12, 0.08, 0.001, -0.0005, 0.0))
EVEN = Light(ambient=1.0)
DOWN = Pose(0.02, -0.01, 0.5, np.pi, 0.05, 0.3)
CHESS = np.array([[(0, 0, 0), (255, 255, 255)], [(255, 255, 255), (0, 0, 0)]], dtype=np.uint8)


def seen_colors(faces: list[Face], lens: Lens, camera: Array) -> tuple[Array, Array]:
    """The oracle of draw_face: for every pixel's centre the nearest face, by 3×3 systems."""
    shape = lens.height, lens.width
    colors, depth = np.full((*shape, 3), 90.0), np.full(shape, np.inf)
    x, y = lens_rays(lens, 1)
    rays = np.stack([x, y, np.ones(shape)], axis=-1) @ camera[:3, :3].T
    for face in faces:
        edges = np.broadcast_to(-np.stack([face.across, face.down], axis=1), (*shape, 3, 2))
        columns = np.concatenate([rays[..., None], edges], axis=-1)
        towards = rays @ np.cross(face.across, face.down) < -1e-15
        columns = np.where(towards[..., None, None], columns, np.eye(3))
        right = (face.corner - camera[:3, 3])[:, None]
        t, u, v = np.moveaxis(np.linalg.solve(columns, right)[..., 0], -1, 0)
        inside = (u >= 0) & (u <= 1) & (v >= 0) & (v <= 1) & ((u + v <= 1) | (not face.triangle))
        nearer = towards & inside & (t > 0) & (t < depth)
        rows, width, _ = face.pattern.shape
        cell = (np.minimum(v * rows, rows - 1), np.minimum(u * width, width - 1))
        row, column = (np.where(nearer, each, 0).astype(int) for each in cell)
        colors = np.where(nearer[..., None], face.pattern[row, column], colors)
        depth = np.where(nearer, t, depth)
    return colors, depth


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


def test_every_pixel_shows_the_nearest_face() -> None:
    small = Lens(64, 48, 60.0, 60.4, 32.0, 23.5, LENS.distortion)
    camera = matrix(DOWN)
    picture = render(scene(), small, camera, light=EVEN, samples=1)
    colors, depth = seen_colors(scene(), small, camera)
    np.testing.assert_allclose(picture.depth, depth, rtol=1e-6)
    same = (np.abs(picture.light - colors) < 0.5).all(axis=2)
    assert same.mean() > 0.999  # rays that meet a border may fall on either side


def test_the_compiled_kernels_are_their_python_functions() -> None:
    x, y = lens_rays(Lens(40, 30, 40.0, 40.0, 20.0, 15.0), 2)
    results = []
    for draw in (draw_face, draw_face.py_func):  # type: ignore[attr-defined]
        depth, color = np.full(x.shape, np.inf), np.zeros((*x.shape, 3), dtype=np.uint8)
        plane = np.array([0.0, 0.0, 1.0, 0.5, 2.0, 0.1, 0.0, -0.4, 0.0, 2.0, 0.1, -0.5, 0.0])
        draw(x, y, depth, color, np.array([0, *x.shape[:1], 0, x.shape[1]]), plane, CHESS)
        results.append((depth, color))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


def test_a_pixel_is_the_mean_of_its_rays() -> None:
    """The oracle of pixel_means."""
    color = np.random.default_rng(1).integers(0, 256, (12, 18, 3), dtype=np.uint8)
    expected = color.reshape(4, 3, 6, 3, 3).mean(axis=(1, 3))
    np.testing.assert_allclose(pixel_means(color, 3), expected, rtol=1e-6)


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
