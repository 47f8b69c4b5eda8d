"""The renderer without shortcuts: every ray of every pixel, face by face, with numpy.

The kernels of `sight/rasters.py` together give the picture that it gives. It is the
    oracle of clip_polygon
    oracle of show_point
    oracle of find_bounds
    oracle of meet_plane
    oracle of judge_nodes
    oracle of plane_depth
    oracle of compare_depths
    oracle of note_pair
    oracle of cover_block
    oracle of mark_block
    oracle of mark_pixels
    oracle of group_pairs
    oracle of follow_rays
    oracle of paint
"""

from collections.abc import Sequence

import numpy as np

from understudy.sight.faces import Color, Face
from understudy.sight.lens import Lens
from understudy.sight.rasters import NEAR
from understudy.sight.render import SAMPLES, SLACK, Light, Picture, lens_rays
from understudy.space.transform import Array


def plain_render(
    faces: Sequence[Face],
    lens: Lens,
    camera: Array,
    *,
    light: Light | None = None,
    background: Color = (90, 90, 90),
    samples: int = SAMPLES,
) -> Picture:
    lamp = light or Light()
    x, y = lens_rays(lens, samples)
    depth, color = np.full(x.shape, np.inf), np.empty((*x.shape, 3), dtype=np.uint8)
    color[:] = background
    rays = np.stack([x, y, np.ones_like(x)], axis=-1) @ camera[:3, :3].T
    eye = camera[:3, 3]
    for face in faces:
        normal = np.cross(face.across, face.down)
        if (eye - face.corner) @ normal <= 0.0:
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (face.corner - eye) @ normal / (rays @ normal)
            points = eye + t[..., None] * rays - face.corner
        square = normal @ normal
        u = points @ np.cross(face.down, normal) / square
        v = points @ np.cross(normal, face.across) / square
        inside = (u >= 0) & (v >= 0) & (u <= 1) & (v <= 1)
        if face.triangle:
            inside &= u + v <= 1
        met = inside & (t > NEAR) & (t < depth + (SLACK if face.sheet else 0.0))
        rows, columns, _ = face.pattern.shape
        row = np.minimum(np.where(met, v, 0.0) * rows, rows - 1).astype(int)
        column = np.minimum(np.where(met, u, 0.0) * columns, columns - 1).astype(int)
        shade = float(lamp.shade(normal / np.sqrt(square)))
        color[met] = (face.pattern * shade).astype(np.uint8)[row, column][met]
        depth[met] = t[met]
    height, width, middle = lens.height, lens.width, samples // 2
    means = color.reshape(height, samples, width, samples, 3).mean(axis=(1, 3), dtype=np.float64)
    return Picture(
        means.astype(np.float32), depth[middle::samples, middle::samples].astype(np.float32)
    )
