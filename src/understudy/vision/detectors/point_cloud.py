"""Detector `point_cloud`: boxes and cylinders in a depth image, in any pose (6D), for bin picking.

    - kind: point_cloud
      noise_mm: 0.1
      classes:
        - {name: block, shape: box, size_mm: [60, 40, 30]}
        - {name: bolt, shape: cylinder, size_mm: [20, 60]}      # diameter, height

The depth image is cut into smooth surfaces. A flat surface of the size of a face, or a curved one
with the radius of a cylinder, suggests a pose; the pose is fitted to all points on the part and to
its outline. A part that is hidden in part is found with a lower confidence.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated

import cv2
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from understudy.sight.cloud import cloud
from understudy.sight.lens import Lens
from understudy.sight.silhouette import (
    Shape,
    Solid,
    common_share,
    distances,
    drawn,
    evenly,
    fit,
    outline,
    picture_points,
)
from understudy.sight.surfaces import Surface, blurred, surfaces
from understudy.space.transform import Array, rotation_about
from understudy.units import MM
from understudy.vision.detectors.sizes import Millimetres, Name, check_names, solid_of
from understudy.vision.interface import DetectionError, ReadFile, Seen, View

Mask = NDArray[np.uint8]
Share = Annotated[float, Meta(ge=0, le=1)]
LEAST_WITHIN = 2e-4
"""Metres by which a point may be beside its surface, without noise."""
SIZE_SLACK = 0.1
"""Share by which the measured size of a surface may differ from that of a face."""
LEAST_VISIBLE = 0.35
"""Share of a face's length that must be seen."""
FEWEST_PIXELS = 60
MOST_POINTS = 200
MOST_OUTLINE = 500
STEPS = (1e-4, 1e-6)
"""Ends of the fits of a place, one after the other; metres and radians."""
EXPLAINED = 0.7
"""Confidence of a part whose surfaces are not looked at again."""
CERTAIN = 0.97
"""Confidence with which no other pose is tried."""
LEAST_OVERLAP = 0.3
RECTANGLE_POINTS = 6000
UPRIGHT = np.deg2rad(5.0)
"""Tilt up to which a part counts as upright."""
PIXEL_SPREAD = 0.3
"""Pixels: spread of the border of a surface about the true edge."""
AGREEING = 1.2
"""Pixels: a border point this near to the outline agrees with it."""


class PartClass(Struct, frozen=True, forbid_unknown_fields=True):
    """A class of parts. `size_mm`: of a box along x, y and z; of a cylinder diameter and height."""

    name: Name
    size_mm: tuple[Millimetres, ...]
    shape: Shape = "box"

    def __post_init__(self) -> None:
        solid_of(self.shape, self.size_mm)


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """A detector of parts in the depth image. `noise_mm`: standard deviation of the depth image.
    `upright`: the z axes of part and robot are parallel; a part that lies otherwise is left out."""

    classes: Annotated[tuple[PartClass, ...], Meta(min_length=1, max_length=32)]
    noise_mm: Annotated[float, Meta(ge=0, le=100)] = 0.0
    upright: bool = False
    min_confidence: Share = 0.3

    def __post_init__(self) -> None:
        check_names([each.name for each in self.classes])


def build(config: Config, read_file: ReadFile) -> "PointCloudDetector":
    return PointCloudDetector(config)


@dataclass(frozen=True)
class Match:
    """A part at a place in the frame of the camera."""

    name: str
    solid: Solid
    place: Array
    confidence: float
    bbox: tuple[int, int, int, int]


class PointCloudDetector:
    """`Detector` of the kind `point_cloud`."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._solids = {each.name: solid_of(each.shape, each.size_mm) for each in config.classes}

    def detect(self, view: View) -> Sequence[Seen]:
        """All parts, the highest in the base of the robot first; the nearest to the camera first
        if the place of the camera is not known."""
        if view.frame.depth is None:
            raise DetectionError("the detector point_cloud needs a camera with a depth image")
        if self._config.upright and view.camera is None:
            raise DetectionError(
                "upright needs the place of the camera: give the hand-eye calibration, and the"
                " pose of the flange in the frame or as params.T_base_flange"
            )
        up = np.array([0.0, 0.0, -1.0]) if view.camera is None else view.camera[2, :3]
        points = cloud(view.frame.depth, view.lens)
        scene = Scene.of(points, view.lens, self._config.noise_mm * MM)
        chosen: list[Match] = []
        for match in sorted(self._matches(scene), key=lambda each: -each.confidence):
            if all(_apart(match, other) for other in chosen):
                chosen.append(match)
        chosen.sort(key=lambda each: -_height(each, view.camera))
        return [
            Seen(each.name, round(each.confidence, 4), place, each.bbox)
            for each in chosen
            if (place := turned_up(each.place, up, exact=self._config.upright)) is not None
        ]

    def _matches(self, scene: "Scene") -> Iterator[Match]:
        """For each surface the class and pose that explain it best."""
        known: list[Match] = []
        for surface in scene.surfaces:
            if any(lies_on(surface, each.solid, each.place, scene.gate) for each in known):
                continue
            best = self._best(surface, scene)
            if best is None or best.confidence < self._config.min_confidence:
                continue
            yield best
            if best.confidence > EXPLAINED:
                known.append(best)

    def _best(self, surface: Surface, scene: "Scene") -> Match | None:
        best = None
        for name, solid in self._solids.items():
            for place in suggested(surface, solid, scene.within):
                match = scene.fitted(name, solid, place)
                if match is None or (best is not None and match.confidence <= best.confidence):
                    continue
                best = match
                if best.confidence > CERTAIN:
                    return best
        return best


def _apart(one: Match, other: Match) -> bool:
    """Whether two parts can both be there: their middles are not inside each other's core."""
    between = float(np.linalg.norm(one.place[:3, 3] - other.place[:3, 3]))
    return between > 0.6 * min(*one.solid.size, *other.solid.size)


def turned_up(place: Array, up: Array, *, exact: bool) -> Array | None:
    """The place of a box or cylinder with its z axis to the upper side: half a turn about x makes
    no difference to them. ``exact``: with its z axis along ``up``; None if it is far from it."""
    out = place.copy()
    if float(out[:3, 2] @ up) < 0.0:
        out[:3, 1:3] *= -1.0
    if not exact:
        return out
    axis = np.cross(out[:3, 2], up)
    sine = float(np.linalg.norm(axis))
    if sine > np.sin(UPRIGHT):
        return None
    if sine > 0.0:
        out[:3, :3] = rotation_about(axis / sine, float(np.arcsin(sine))) @ out[:3, :3]
    return out


def _height(match: Match, camera: Array | None) -> float:
    middle = match.place[:3, 3]
    return float(-middle[2] if camera is None else camera[2, :3] @ middle + camera[2, 3])


# ── poses that a surface suggests ───────────────────────────────────────────────────────────────


def suggested(surface: Surface, solid: Solid, within: float) -> Iterator[Array]:
    """Places of a solid, one of whose surfaces this may be."""
    if surface.spread < within:
        yield from _by_face(surface, solid)
    elif solid.shape == "cylinder":
        yield from _by_side(surface, solid)


def _by_face(surface: Surface, solid: Solid) -> Iterator[Array]:
    """A flat surface is one of the faces of a box, or the end of a cylinder."""
    normal = surface.normal
    across = np.cross(normal, (0.0, 1.0, 0.0) if abs(normal[1]) < 0.9 else (1.0, 0.0, 0.0))
    across /= np.linalg.norm(across)
    up = np.cross(normal, across)
    flat = (evenly(surface.points, RECTANGLE_POINTS) - surface.middle) @ np.stack(
        [across, up], axis=1
    )
    (x, y), (width, height), angle = cv2.minAreaRect((flat / MM).astype(np.float32))
    middle = surface.middle + x * MM * across + y * MM * up
    turn = np.deg2rad(angle)
    first = np.cos(turn) * across + np.sin(turn) * up
    second = np.cross(normal, first)
    for axes in _faces(solid):
        a, b = solid.size[axes[0]], solid.size[axes[1]]
        depth = solid.size[axes[2]]
        for w, h, along, aside in (
            (width * MM, height * MM, first, second),
            (height * MM, width * MM, second, -first),
        ):
            for shift in _shifts(w, h, a, b):
                at = middle + shift[0] * along + shift[1] * aside - 0.5 * depth * normal
                yield _place(axes, along, normal, at)


def _faces(solid: Solid) -> list[tuple[int, int, int]]:
    """Axes along, aside and out of each face that differs in its sizes from those before."""
    if solid.shape == "cylinder":
        return [(0, 1, 2)]
    found: dict[tuple[float, ...], tuple[int, int, int]] = {}
    for axes in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        sizes = (*sorted(solid.size[axis] for axis in axes[:2]), solid.size[axes[2]])
        found.setdefault(sizes, axes)
    return list(found.values())


def _place(axes: tuple[int, int, int], along: Array, normal: Array, at: Array) -> Array:
    """4×4: the body's axes[0] points along, its axes[2] along the normal. ``axes`` is an even
    permutation, so that the third axis is their cross product."""
    out = np.eye(4)
    out[:3, axes[0]], out[:3, axes[2]] = along, normal
    out[:3, axes[1]] = np.cross(normal, along)
    out[:3, 3] = at
    return out


def _shifts(width: float, height: float, a: float, b: float) -> list[tuple[float, float]]:
    """Where the middle of a face a × b can be if width × height of it is seen, from the middle of
    what is seen; empty if the sizes do not fit."""
    options: list[tuple[float, ...]] = []
    for seen, whole in ((width, a), (height, b)):
        slack = SIZE_SLACK * whole + 1e-3
        if seen > whole + slack or seen < LEAST_VISIBLE * whole:
            return []
        rest = 0.5 * (whole - seen)
        options.append((0.0,) if whole - seen <= slack else (-rest, rest))
    return [(x, y) for x, y in product(*options)]


def _by_side(surface: Surface, solid: Solid) -> Iterator[Array]:
    """A curved surface is the side of a cylinder: its normals are at right angles to the axis."""
    good = np.isfinite(surface.normals).all(axis=1)
    points, normals = surface.points[good], surface.normals[good]
    if len(points) < FEWEST_PIXELS:
        return
    _, axes = np.linalg.eigh(normals.T @ normals)
    axis = axes[:, 0]
    radius, length = 0.5 * solid.size[0], solid.size[2]
    centres = points - radius * normals
    middle = np.median(centres - (centres @ axis)[:, None] * axis, axis=0)
    off = np.linalg.norm(np.cross(points - middle, axis), axis=1)
    if abs(float(np.median(off)) - radius) > SIZE_SLACK * radius + 2e-4:
        return
    low, high = np.percentile(points @ axis, [0.5, 99.5])
    seen, slack = high - low, SIZE_SLACK * length + 1e-3
    if seen > length + slack or seen < LEAST_VISIBLE * length:
        return
    aside = np.cross(axis, (1.0, 0.0, 0.0) if abs(axis[0]) < 0.9 else (0.0, 1.0, 0.0))
    aside /= np.linalg.norm(aside)
    rest = 0.5 * (length - seen)
    for shift in (0.0,) if length - seen <= slack else (-rest, rest):
        yield _place((0, 1, 2), aside, axis, middle + (0.5 * (low + high) + shift) * axis)


# ── fits ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Scene:
    """A cloud and its surfaces. `labels`: number of the surface of each pixel, -1 for none."""

    points: Array
    lens: Lens
    surfaces: tuple[Surface, ...]
    labels: NDArray[np.int32]
    within: float
    noise: float

    @staticmethod
    def of(points: Array, lens: Lens, noise: float) -> "Scene":
        far = points[..., 2][np.isfinite(points[..., 2])]
        pixel = float(np.median(far)) / lens.fx if far.size else 1e-3
        width = 1 + 2 * min(4, int(np.ceil(4.0 * noise / pixel)))
        within = LEAST_WITHIN + 4.0 * noise / width
        soft = blurred(points, width)
        found = tuple(surfaces(soft, within=within, fewest=FEWEST_PIXELS))
        labels = np.full(points.shape[:2], -1, dtype=np.int32)
        for number, surface in reversed(list(enumerate(found))):
            labels[surface.pixels[:, 0], surface.pixels[:, 1]] = number
        return Scene(points, lens, found, labels, within, noise)

    @property
    def gate(self) -> float:
        """Metres from a fitted solid within which a point belongs to it."""
        return 2.0 * self.within + 2e-4

    def fitted(self, name: str, solid: Solid, place: Array) -> Match | None:
        """A solid fitted to what is near to this place."""
        gate = 1.5e-3 + 4.0 * self.noise
        for end in STEPS:
            seen = self._part(solid, place, gate)
            if seen is None or self._overlap(solid, place, seen) <= LEAST_OVERLAP:
                return None
            place = self._fit(solid, place, seen, end)
            gate = self.gate
        seen = self._part(solid, place, gate)
        return None if seen is None else self._match(name, solid, place, seen)

    def _part(self, solid: Solid, place: Array, gate: float) -> "PartPixels | None":
        """The pixels whose points lie on a solid, but for those of surfaces that go on beyond."""
        height, width = self.labels.shape
        polygon = outline(solid.corners @ place[:3, :3].T + place[:3, 3])
        spots = picture_points(self.lens, polygon)
        x0, y0 = np.maximum(np.floor(spots.min(axis=0)).astype(int) - 3, 0)
        x1, y1 = np.minimum(np.ceil(spots.max(axis=0)).astype(int) + 4, (width, height))
        if x1 - x0 < 3 or y1 - y0 < 3:
            return None
        points, labels = self.points[y0:y1, x0:x1], self.labels[y0:y1, x0:x1]
        off = solid.distances((points.reshape(-1, 3) - place[:3, 3]) @ place[:3, :3])
        with np.errstate(invalid="ignore"):
            near = (np.abs(off) < gate).reshape(labels.shape)
        for number in np.unique(labels[near]).tolist():
            if number >= 0 and not lies_on(self.surfaces[number], solid, place, gate):
                near &= labels != number
        if np.count_nonzero(near) < FEWEST_PIXELS:
            return None
        mask = cv2.morphologyEx(near.astype(np.uint8), cv2.MORPH_CLOSE, np.ones((3, 3), np.uint8))
        return PartPixels(np.asarray(mask, dtype=np.uint8), (int(y0), int(x0)), points[near])

    def _border(self, seen: "PartPixels") -> Array:
        """(n, 2): points at z = 1 half-way between pixels of the mask and their neighbours outside
        it, except where the neighbour is nearer and hides the part."""
        mask, corner = seen.mask, seen.corner
        height, width = mask.shape
        far = self.points[corner[0] : corner[0] + height, corner[1] : corner[1] + width, 2]
        hidden = 2e-3 + 4.0 * self.noise
        spots = []
        for down, right in ((0, 1), (1, 0)):
            here, there = mask[: height - down, : width - right], mask[down:, right:]
            near, beyond = far[: height - down, : width - right], far[down:, right:]
            ahead = np.where(here > there, near - beyond, beyond - near)
            with np.errstate(invalid="ignore"):
                edge = (here != there) & ~(ahead > hidden)
            rows, columns = np.nonzero(edge)
            spots.append(np.column_stack([columns + 0.5 * right, rows + 0.5 * down]))
        pixels = np.vstack(spots).astype(np.float64) + np.array([corner[1], corner[0]])
        return self.lens.rays(evenly(pixels, MOST_OUTLINE))

    def _fit(self, solid: Solid, place: Array, seen: "PartPixels", end: float) -> Array:
        """Least squares over points on the surface and the outline. The rotation of a cylinder
        about its own axis is left as it is."""
        free = 5 if solid.shape == "cylinder" else 6
        on_surface = max(self.noise / 2.0, LEAST_WITHIN / 2.0)
        corners, border = solid.corners, self._border(seen)
        points = evenly(seen.points, MOST_POINTS)

        def residuals(values: Array) -> Array:
            there = moved(place, values)
            body = (points - there[:3, 3]) @ there[:3, :3]
            polygon = outline(corners @ there[:3, :3].T + there[:3, 3])
            return np.concatenate(
                [
                    solid.distances(body) / on_surface,
                    distances(polygon, border) * self.lens.fx / PIXEL_SPREAD,
                ]
            )

        return moved(place, fit(residuals, np.zeros(free), least=1.0, fitted=end).values)

    def _overlap(self, solid: Solid, place: Array, seen: "PartPixels") -> float:
        """Agreement of the pixels of part and model, 0 … 1. Pixels where the picture shows
        something behind the model speak against it; pixels where something hides it do not."""
        polygon = picture_points(self.lens, outline(solid.corners @ place[:3, :3].T + place[:3, 3]))
        row, column = seen.corner
        share = common_share(polygon, seen.mask, (column, row))
        height, width = seen.mask.shape
        inside = drawn(polygon, (height, width), (column, row)) > seen.mask
        behind = self.points[row : row + height, column : column + width][inside]
        behind = behind[np.isfinite(behind[:, 2])]
        through = int(np.count_nonzero(solid.entered(behind, place) < 1.0 - self.gate))
        empty = through / max(1, through + int(np.count_nonzero(seen.mask)))
        return float(share * max(0.0, 1.0 - 4.0 * empty))

    def _sunk(self, solid: Solid, place: Array, seen: "PartPixels") -> bool:
        """Whether the solid reaches through a larger flat surface beside it, as a table."""
        (row, column), (height, width) = seen.corner, seen.mask.shape
        around = self.labels[row : row + height, column : column + width]
        corners = solid.corners @ place[:3, :3].T + place[:3, 3]
        for number in np.unique(around[(around >= 0) & (seen.mask == 0)]).tolist():
            surface = self.surfaces[number]
            flat = surface.spread < self.within
            if not flat or len(surface.points) < 2 * np.count_nonzero(seen.mask):
                continue
            if float(((corners - surface.middle) @ surface.normal).min()) < -1e-3 - self.gate:
                return True
        return False

    def _match(self, name: str, solid: Solid, place: Array, seen: "PartPixels") -> Match:
        polygon = outline(solid.corners @ place[:3, :3].T + place[:3, 3])
        border = self._border(seen)
        off = np.abs(distances(polygon, border)) * self.lens.fx
        agreeing = float((off < AGREEING).mean()) if len(off) else 0.0
        overlap = np.clip((self._overlap(solid, place, seen) - 0.3) / 0.6, 0.0, 1.0)
        if self._sunk(solid, place, seen):
            overlap *= 0.5
        pixels = picture_points(self.lens, polygon)
        box = self.lens.bounding_box(pixels)
        return Match(name, solid, place, float(overlap) * agreeing, box)


@dataclass(frozen=True)
class PartPixels:
    """Pixels of a part. `mask`: in a window at `corner`, row and column; `points`: (n, 3)."""

    mask: Mask
    corner: tuple[int, int]
    points: Array


def lies_on(surface: Surface, solid: Solid, place: Array, gate: float) -> bool:
    """Whether most of a surface is one of the surfaces of a solid."""
    away = float(np.linalg.norm(surface.middle - place[:3, 3]))
    if away > float(np.linalg.norm(solid.size)):
        return False
    some = evenly(surface.points, MOST_POINTS)
    off = solid.distances((some - place[:3, 3]) @ place[:3, :3])
    return float((np.abs(off) < gate).mean()) > 0.7


def moved(place: Array, values: Array) -> Array:
    """A place, shifted by three numbers and turned in its own frame by two or three."""
    out = place.copy()
    turn = np.append(values[3:], np.zeros(6 - len(values)))
    angle = float(np.linalg.norm(turn))
    if angle > 0.0:
        out[:3, :3] = place[:3, :3] @ rotation_about(turn / angle, angle)
    out[:3, 3] = place[:3, 3] + values[:3]
    return out
