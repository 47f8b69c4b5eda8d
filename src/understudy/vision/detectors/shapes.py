"""Detector `shapes`: parts without markers, by colour and outline, on a level surface (2.5D).

A part is a box or a cylinder of known size that stands on a surface of known height in the frame of
the robot's base. Its colour gives a region of the picture; the edges of this region, to a fraction
of a pixel, give x, y and the rotation about z. Edges of the top and of the sides are separated by
the model: each has its own height, so there is no parallax error.

    - kind: shapes
      plane_z_mm: 0
      classes:
        - {name: cube, color: "#c82820", shape: box, size_mm: [40, 40, 40]}
        - {name: can, color: {hue: [200, 240]}, shape: cylinder, size_mm: [30, 50]}
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import cv2
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from understudy.errors import ConfigError
from understudy.sight.lens import Lens
from understudy.sight.silhouette import (
    FITTED,
    Fit,
    Shape,
    Solid,
    common_share,
    distances,
    evenly,
    fit,
    on_plane,
    outline,
    picture_points,
    standing,
)
from understudy.space.transform import Array, inverse
from understudy.units import MM
from understudy.vision.detectors.sizes import Millimetres, Name, check_names, solid_of
from understudy.vision.interface import DetectionError, ReadFile, Seen, View

Bits = NDArray[np.uint16]
MOST_COLORS = 16
"""Different colours of a detector: bits of a table entry."""
LEVELS = 64
SHIFT = 2
DARKEST, BRIGHTEST = 0.4, 1.3
"""Shades of a hex colour that are the colour, as shares of its brightness."""

HexColor = Annotated[str, Meta(pattern="^#[0-9a-fA-F]{6}$")]
Hue = Annotated[float, Meta(ge=0, le=360)]
Share = Annotated[float, Meta(ge=0, le=1)]


class HsvRange(Struct, frozen=True, forbid_unknown_fields=True):
    """Hue in degrees, from the first to the second, also across 0; saturation and value 0 … 1."""

    hue: tuple[Hue, Hue] = (0.0, 360.0)
    saturation: tuple[Share, Share] = (0.3, 1.0)
    value: tuple[Share, Share] = (0.15, 1.0)


Mask = NDArray[np.uint8]

LEAST_REGION = 0.3
MOST_REGION = 8.0
"""Areas of a region as shares of the expected one: others are noise, or something else."""
MOST_REGIONS = 200
"""Regions of one colour that are looked at, the largest first."""
EDGE_SPACING = 2.0
EDGE_HALF = 6.0
EDGE_STEP = 0.5
"""Pixels: between the places where the edge is measured, and the profile across it."""
PLATEAU = (2.0, 4.0)
"""Pixels from an edge where the brightness of its sides is read."""
CORNER_GAP = 4.0
"""Pixels next to a corner where no edge is measured."""
LEAST_CONTRAST = 10.0
GOOD_EDGE = 1.0
"""Pixels: an edge point this near to the outline agrees with it, besides the tolerance in mm."""
LEAST_EDGE_POINTS = 12
PIXEL_NOISE = 0.05
"""Pixels: the least spread of edge points."""
ROUNDS = 2
"""Measurements of the edges, each at the outline of the one before."""
ROUGH = 2e-5
"""Metres and radians: ends a fit to the border of a region."""
MOST_BORDER_POINTS = 80
MOST_EDGE_POINTS = 200
SQUARE = 1.02
"""A box whose sides differ by less looks the same after a quarter turn."""


class PartClass(Struct, frozen=True, forbid_unknown_fields=True):
    """A class of parts. `size_mm`: of a box along x, y and z; of a cylinder diameter and height.
    `tolerance`: how far a colour may be from `color`, as a share of the brightness (hex colours
    only)."""

    name: Name
    color: HexColor | HsvRange
    size_mm: tuple[Millimetres, ...]
    shape: Shape = "box"
    tolerance: Annotated[float, Meta(gt=0, le=1)] = 0.2

    def __post_init__(self) -> None:
        solid_of(self.shape, self.size_mm)


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """A detector of parts by colour and outline. `plane_z_mm`: height of the surface on which the
    parts stand, in the frame of the base. `size_tolerance_mm`: by which the sides of a part may
    differ from its class. `min_confidence`: objects below it are not reported."""

    classes: Annotated[tuple[PartClass, ...], Meta(min_length=1, max_length=64)]
    plane_z_mm: Annotated[float, Meta(ge=-100_000, le=100_000)] = 0.0
    size_tolerance_mm: Annotated[float, Meta(ge=0, le=1000)] = 0.3
    min_confidence: Share = 0.3

    def __post_init__(self) -> None:
        check_names([each.name for each in self.classes])
        if len(self.colors()) > MOST_COLORS:
            raise ConfigError(f"more than {MOST_COLORS} different colours", key="classes")

    def colors(self) -> list[tuple[HexColor | HsvRange, float]]:
        """The different colours with their tolerances."""
        return list(dict.fromkeys((each.color, each.tolerance) for each in self.classes))


def build(config: Config, read_file: ReadFile) -> "ShapeDetector":
    return ShapeDetector(config)


@dataclass(frozen=True)
class Candidate:
    """A class fitted to a region. `place`: in the frame of the base."""

    name: str
    confidence: float
    place: Array


@dataclass(frozen=True)
class Region:
    """Connected pixels of one colour: `mask` is the part of the picture at `corner` (x, y)."""

    mask: Mask
    corner: tuple[int, int]
    area: float
    cut: bool

    def border(self) -> Array:
        """(n, 2): pixels of its outer border."""
        found, _ = cv2.findContours(self.mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
        longest: Any = max(found, key=len)
        return np.asarray(longest[:, 0, :] + self.corner, dtype=np.float64)


class ShapeDetector:
    """`Detector` of the kind `shapes`."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._plane = config.plane_z_mm * MM
        self._solids = {each.name: solid_of(each.shape, each.size_mm) for each in config.classes}
        colors = config.colors()
        self._table = color_bits(colors)
        self._classes = [
            [each.name for each in config.classes if (each.color, each.tolerance) == color]
            for color in colors
        ]

    def detect(self, view: View) -> Sequence[Seen]:
        if view.camera is None:
            raise DetectionError(
                "the detector shapes needs the place of the camera: the pose of the flange in the"
                " request or the frame, and the calibration of the camera"
            )
        camera = view.camera
        met = met_colors(view.frame.picture, self._table)
        found = []
        for bit, names in enumerate(self._classes):
            mask = np.asarray((met >> np.uint16(bit)) & np.uint16(1), dtype=np.uint8)
            if not mask.any():
                continue
            smallest = min(self._expected_area(name, view.lens, camera) for name in names)
            for region in regions(mask, LEAST_REGION * smallest):
                best = self._best(region, names, view, camera)
                if best is not None and best.confidence >= self._config.min_confidence:
                    found.append(seen(best, region, camera))
        return sorted(found, key=lambda each: -each.confidence)

    def _expected_area(self, name: str, lens: Lens, camera: Array) -> float:
        """Pixels of the top of a part, roughly."""
        solid = self._solids[name]
        far = max(camera[2, 3] - self._plane - solid.size[2], 0.01)
        area = solid.size[0] * solid.size[1] * (1.0 if solid.shape == "box" else 0.785)
        tilt = max(abs(float(camera[2, 2])), 0.2)
        return float(area * lens.fx * lens.fy / far**2 * tilt)

    def _best(
        self, region: Region, names: Sequence[str], view: View, camera: Array
    ) -> Candidate | None:
        """The class that fits best to a region."""
        candidates = [
            self._fitted(region, name, view, camera)
            for name in names
            if region.area < MOST_REGION * self._expected_area(name, view.lens, camera)
        ]
        found = [each for each in candidates if each is not None]
        return max(found, key=lambda each: each.confidence, default=None)

    def _fitted(self, region: Region, name: str, view: View, camera: Array) -> Candidate | None:
        """The class at the best of the rotations that the region suggests, fitted to the edges."""
        solid, lens = self._solids[name], view.lens
        border = lens.rays(evenly(region.border(), MOST_BORDER_POINTS))
        middle = self._plane + 0.5 * solid.size[2]
        spots = on_plane(border, camera, middle)
        if len(spots) < LEAST_EDGE_POINTS or np.isnan(spots).any():
            return None
        model = Model(solid, middle, inverse(camera), lens)
        starts = [model.fitted(start, border, ROUGH) for start in model.starts(spots)]
        rough = min(starts, key=lambda each: float(np.abs(each.residuals).mean()))
        allowed = self._config.size_tolerance_mm * MM
        fine, agreeing = model.at_edges(rough, view.frame.picture, allowed)
        confidence = model.overlap(fine.values, region) * agreeing
        if region.cut:
            confidence *= 0.5
        return Candidate(name, confidence, standing(fine.values, middle))


@dataclass(frozen=True)
class Model:
    """A solid that stands with its middle at `height`, seen by a camera. `to_camera`: 4×4."""

    solid: Solid
    height: float
    to_camera: Array
    lens: Lens

    def starts(self, spots: Array) -> list[Array]:
        """x, y and yaw to begin a fit with, from a region's border at the middle's height."""
        origin = spots.mean(axis=0)
        scaled = np.asarray((spots - origin) / MM, dtype=np.float32)
        (x, y), _, angle = cv2.minAreaRect(scaled)
        at = origin + np.array([x, y]) * MM
        if self.solid.shape == "cylinder":
            return [np.array([*at, 0.0])]
        long, short = sorted(self.solid.size[:2], reverse=True)
        turns = (0.0, 45.0) if long < SQUARE * short else (0.0, 90.0)
        return [np.array([*at, np.deg2rad(angle + turn)]) for turn in turns]

    def outline(self, values: Array) -> Array:
        place = self.to_camera @ standing(values, self.height)
        return outline(self.solid.corners @ place[:3, :3].T + place[:3, 3])

    def fitted(self, start: Array, border: Array, until: float = FITTED) -> Fit:
        """Fitted to points at z = 1; residuals in pixels."""
        free = 2 if self.solid.shape == "cylinder" else 3

        def residuals(values: Array) -> Array:
            whole = np.append(values, start[free:])
            return distances(self.outline(whole), border) * self.lens.fx

        found = fit(residuals, start[:free], least=PIXEL_NOISE, fitted=until)
        return Fit(np.append(found.values, start[free:]), found.residuals)

    def at_edges(self, rough: Fit, picture: Any, allowed: float) -> tuple[Fit, float]:
        """Fitted to the edges in the picture, and the share of the outline that agrees; with
        ``allowed``, the tolerance of the part's size."""
        best, share = rough, 0.0
        far = float((self.to_camera @ standing(rough.values, self.height))[2, 3])
        good = GOOD_EDGE + allowed * self.lens.fx / max(far, 1e-3)
        for _ in range(ROUNDS):
            spots, normals = along(picture_points(self.lens, self.outline(best.values)))
            spots, normals = (evenly(each, MOST_EDGE_POINTS) for each in (spots, normals))
            points = edge_points(picture, spots, normals)
            if len(points) < LEAST_EDGE_POINTS:
                return best, 0.0
            best = self.fitted(best.values, self.lens.rays(points))
            share = float((np.abs(best.residuals) < good).sum()) / len(spots)
        return best, min(share, 1.0)

    def overlap(self, values: Array, region: Region) -> float:
        """Agreement of the region with the model: 1 for equal areas, 0 at 70 % and below."""
        polygon = picture_points(self.lens, self.outline(values))
        share = common_share(polygon, region.mask, region.corner)
        return float(np.clip((share - 0.7) / 0.25, 0.0, 1.0))


def regions(mask: Mask, least: float) -> Iterator[Region]:
    """The connected regions of a mask, without specks and holes, the largest first."""
    clean = cv2.morphologyEx(mask, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    _, labels, stats, _ = cv2.connectedComponentsWithStats(clean, connectivity=4)
    height, width = mask.shape
    order = np.argsort(-stats[1:, cv2.CC_STAT_AREA], kind="stable") + 1
    for label in order[:MOST_REGIONS].tolist():
        x, y, w, h, area = (int(each) for each in stats[label])
        if area < max(least, 16.0):
            return
        cut = x <= 0 or y <= 0 or x + w >= width or y + h >= height
        piece = (labels[y : y + h, x : x + w] == label).astype(np.uint8)
        found, _ = cv2.findContours(piece, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
        filled = np.zeros((h, w), dtype=np.uint8)
        cv2.drawContours(filled, found, -1, 1, thickness=cv2.FILLED)
        yield Region(filled, (x, y), float(np.count_nonzero(filled)), cut)


def along(polygon: Array) -> tuple[Array, Array]:
    """Points on the border of a convex polygon of pixels, and the normals outwards."""
    ends = np.roll(polygon, -1, axis=0)
    middle = polygon.mean(axis=0)
    spots, normals = [], []
    many = len(polygon) > 12  # a round outline has no corners to keep away from
    for start, end in zip(polygon, ends, strict=True):
        length = float(np.hypot(*(end - start)))
        gap = 0.0 if many else CORNER_GAP
        if length <= 2.0 * gap + 1e-6:
            continue
        count = max(1, int((length - 2.0 * gap) / EDGE_SPACING))
        way = (end - start) / length
        normal = np.array([way[1], -way[0]])
        normal *= np.sign(normal @ (start - middle)) or 1.0
        share = gap + (np.arange(count) + 0.5) * (length - 2.0 * gap) / count
        spots.append(start + share[:, None] * way)
        normals.append(np.broadcast_to(normal, (count, 2)))
    if not spots:
        return np.zeros((0, 2)), np.zeros((0, 2))
    return np.vstack(spots), np.vstack(normals)


def edge_points(picture: Any, spots: Array, normals: Array) -> Array:
    """(n, 2): where the brightness across the outline is half-way between its two sides. Spots
    without contrast, or near the border of the picture, give none."""
    offsets = np.arange(-EDGE_HALF, EDGE_HALF + 1e-9, EDGE_STEP)
    if not len(spots):
        return np.zeros((0, 2))
    x0, y0 = np.maximum(np.floor(spots.min(axis=0) - EDGE_HALF - 2).astype(int), 0)
    x1, y1 = np.ceil(spots.max(axis=0) + EDGE_HALF + 3).astype(int)
    window = picture[y0:y1, x0:x1].astype(np.float32)
    if min(window.shape[:2]) < 3:
        return np.zeros((0, 2))
    across = spots[:, None, :] + offsets[None, :, None] * normals[:, None, :] - (x0, y0)
    maps = across.astype(np.float32)
    rows = cv2.remap(
        window, maps[..., 0], maps[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    ).astype(np.float64)
    near, far = PLATEAU
    inside = rows[:, (offsets >= -far) & (offsets <= -near)].mean(axis=1)
    outside = rows[:, (offsets >= near) & (offsets <= far)].mean(axis=1)
    step = outside - inside
    contrast = np.linalg.norm(step, axis=1)
    # along the line between the two colours: 0 inside, 1 outside
    level = ((rows - inside[:, None]) * step[:, None]).sum(axis=2) / np.maximum(
        contrast[:, None] ** 2, 1e-9
    )
    crossing = _crossings(level, offsets)
    good = (contrast > LEAST_CONTRAST) & np.isfinite(crossing)
    return np.asarray(spots[good] + crossing[good, None] * normals[good])


def _crossings(level: Array, offsets: Array) -> Array:
    """For each row where it rises through 0.5, nearest to the offset 0; NaN if nowhere."""
    below, above = level[:, :-1], level[:, 1:]
    rises = (below < 0.5) & (above >= 0.5)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (0.5 - below) / (above - below)
    at = np.where(rises, offsets[:-1] + share * EDGE_STEP, np.inf)
    nearest = np.abs(at).argmin(axis=1)
    chosen = at[np.arange(len(at)), nearest]
    return np.asarray(np.where(np.isfinite(chosen), chosen, np.nan))


def seen(best: Candidate, region: Region, camera: Array) -> Seen:
    height, width = region.mask.shape
    x, y = region.corner
    return Seen(
        class_name=best.name,
        confidence=round(best.confidence, 4),
        place=np.asarray(inverse(camera) @ best.place),
        bbox=(x, y, width, height),
    )


# ── colours of parts ──────────────────────────────────────────────────────────────────────────────

# A table over all colours, 6 bits per channel, makes the search one look-up per pixel.


def color_bits(colors: Sequence[tuple[HexColor | HsvRange, float]]) -> Bits:
    """(LEVELS³,): bit k of an entry is set where the k-th colour, with its tolerance, is met."""
    steps = np.arange(LEVELS, dtype=np.float32) * (1 << SHIFT) + (1 << SHIFT) / 2
    rgb = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
    table = np.zeros(len(rgb), dtype=np.uint16)
    for k, (color, tolerance) in enumerate(colors):
        met = _in_range(rgb, color) if isinstance(color, HsvRange) else _near(rgb, color, tolerance)
        table[met] |= np.uint16(1 << k)
    return table


def _near(rgb: Any, color: HexColor, tolerance: float) -> Any:
    """Shades of a colour: near to the line from black through it, as a share of the brightness."""
    goal = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)], dtype=np.float32)
    length = max(float(np.linalg.norm(goal)), 1.0)
    along = rgb @ (goal / length)
    aside = np.linalg.norm(rgb - along[:, None] * (goal / length), axis=1)
    if length < 60.0:  # a dark colour has no direction
        return np.linalg.norm(rgb - goal, axis=1) <= tolerance * 255.0
    bright = (along >= DARKEST * length) & (along <= BRIGHTEST * length)
    return bright & (aside <= tolerance * along)


def _in_range(rgb: Any, color: HsvRange) -> Any:
    hsv = cv2.cvtColor((rgb / np.float32(255.0)).reshape(-1, 1, 3), cv2.COLOR_RGB2HSV)
    hue, saturation, value = hsv.reshape(-1, 3).T
    first, last = color.hue
    inside = (hue >= first) & (hue <= last)
    if first > last:
        inside = (hue >= first) | (hue <= last)
    for values, (low, high) in ((saturation, color.saturation), (value, color.value)):
        inside &= (values >= low) & (values <= high)
    return inside


def met_colors(picture: NDArray[np.uint8], table: Bits) -> Bits:
    """(height, width): the colours of each pixel, as bits."""
    index = cv2.transform(
        (picture >> SHIFT).astype(np.float32), np.array([[LEVELS * LEVELS, LEVELS, 1.0]])
    )
    return np.asarray(np.take(table, index.astype(np.int32)))
