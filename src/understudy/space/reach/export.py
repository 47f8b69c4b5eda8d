"""Reach maps as CSV, HTML, SVG and arrays; the caller writes the files."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.html_page import STYLE, UNKNOWN, Origin, html_page
from understudy.space.reach.reach_map import ReachabilityMap
from understudy.units import MM

CELL = 8
"""Pixels per grid cell of the SVG."""
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 10, 42
"""Margins of the SVG for the axes."""
SCALE_WIDTH, SCALE_STEPS = 320, 40
ROUND_STEPS = [factor * 10.0**power for power in range(-3, 4) for factor in (1.0, 2.0, 5.0)]
"""Distances of the figures on an axis, in metres."""
OWN_STYLE = "figcaption{text-align:center}.scale{display:block;font-size:12px;fill:#475569}"
COLD, WARM = np.array([226, 232, 240]), np.array([234, 88, 12])


def csv(found: ReachabilityMap, free: ReachabilityMap | None = None) -> str:
    """CSV: x_mm, y_mm, z_mm, reachable, orientations, manipulability; one row per point.

    ``free``: the map with collisions avoided, for a last column collision_free.
    """
    head = "x_mm,y_mm,z_mm,reachable,orientations,manipulability"
    columns = zip(found.points / MM, found.orientations, found.manipulability, strict=True)
    rows = [f"{x:.1f},{y:.1f},{z:.1f},{int(n > 0)},{n},{m:.6g}" for (x, y, z), n, m in columns]
    if free is not None:
        head += ",collision_free"
        clear = (free.orientations > 0).astype(int)
        rows = [f"{row},{is_free}" for row, is_free in zip(rows, clear, strict=True)]
    return "\n".join([head, *rows]) + "\n"


def arrays(
    found: ReachabilityMap, free: ReachabilityMap | None = None
) -> dict[str, NDArray[np.generic]]:
    """Contents of an .npz file, in metres. ``free`` as in `csv`."""
    known: dict[str, NDArray[np.generic]] = {
        "points": found.points,
        "orientations": found.orientations,
        "manipulability": found.manipulability,
        "resolution": np.array(found.resolution),
        "tried": np.array(found.tried),
    }
    return known if free is None else known | {"collision_free": free.orientations > 0}


def html(found: ReachabilityMap, title: str, origin: Origin = UNKNOWN) -> str:
    """One self-contained page with three views of the map, with axes in mm and a colour scale."""
    count = len(found.reachable_points)
    corners = zip("xyz", found.workspace_min / MM, found.workspace_max / MM, strict=True)
    spans = ", ".join(f"{axis} {a:.0f}…{b:.0f}" for axis, a, b in corners) if count else "nothing"
    views = "".join(
        f"<figure>{svg(found, along)}<figcaption>seen along {'xyz'[along]}</figcaption></figure>"
        for along in (1, 0, 2)
    )
    body = (
        f"<p>{count} of {len(found.points)} points ({count / len(found.points):.0%}) every "
        f"{found.resolution / MM:g} mm; reachable in mm: {spans}. "
        f"A cell has the colour of the largest number of tool directions, of {found.tried} that "
        f"were tried, that can be reached on the line of sight.</p>{scale(found.tried)}"
        f'<div class="figures">{views}</div>'
    )
    return html_page(title, [body], origin=origin, style=STYLE + OWN_STYLE)


def scale(tried: int) -> str:
    """The colour scale: from one tool direction to all that were tried."""
    steps = np.linspace(1.0 / tried, 1.0, SCALE_STEPS)
    colors = "".join(
        f'<rect x="{20 + k * SCALE_WIDTH / SCALE_STEPS:g}" y="18" '
        f'width="{SCALE_WIDTH / SCALE_STEPS + 0.5:g}" height="14" fill="{_color(share)}"/>'
        for k, share in enumerate(steps)
    )
    marks = sorted({1, round(tried / 4) or 1, round(tried / 2) or 1, round(0.75 * tried), tried})
    texts = "".join(
        f'<text x="{20 + SCALE_WIDTH * (n - 1) / max(tried - 1, 1):g}" y="46" '
        f'text-anchor="middle">{n}</text>'
        for n in marks
    )
    return (
        f'<svg class="scale" width="{SCALE_WIDTH + 40}" height="52">'
        f'<text x="20" y="12">reachable tool directions</text>{colors}{texts}</svg>'
    )


def svg(found: ReachabilityMap, along: int = 1) -> str:
    """View along one axis (0 x, 1 y, 2 z): the largest number of directions on each ray; the axes
    are in mm."""
    across, up = (axis for axis in range(3) if axis != along)
    reached = found.orientations > 0
    shown = found.points[reached] if reached.any() else found.points
    origin = shown.min(axis=0)
    grid = np.round((shown - origin) / found.resolution).astype(int)
    width, height = (int(grid[:, axis].max()) + 1 for axis in (across, up))
    most = np.zeros((width, height), dtype=np.int64)
    directions = found.orientations[reached] if reached.any() else found.orientations
    np.maximum.at(most, (grid[:, across], grid[:, up]), directions)
    view = _View(width, height, (float(origin[across]), float(origin[up])), found.resolution)
    cells = [
        f'<rect x="{LEFT + x * CELL}" y="{TOP + (height - 1 - y) * CELL}" width="{CELL}" '
        f'height="{CELL}" class="cell" fill="{_color(most[x, y] / found.tried)}">'
        f"<title>{view.place(x, y)}: {most[x, y]} of {found.tried}</title></rect>"
        for x, y in zip(*np.nonzero(most), strict=True)
    ]
    title = f"<title>Reach, seen along {'xyz'[along]}: directions of {found.tried}</title>"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {view.size()} font-family="sans-serif" '
        f'font-size="12" fill="#475569">{title}{view.axes("xyz"[across], "xyz"[up])}'
        f"{''.join(cells)}{view.foot()}</svg>"
    )


@dataclass(frozen=True, slots=True)
class _View:
    """The frame of a view: cells across and up, the first cell's place (m), and the grid (m)."""

    width: int
    height: int
    origin: tuple[float, float]
    resolution: float

    def size(self) -> str:
        wide, high = LEFT + self.width * CELL + RIGHT, TOP + self.height * CELL + BOTTOM
        return f'width="{wide}" height="{high}"'

    def place(self, x: int, y: int) -> str:
        """The middle of a cell, in mm."""
        a, b = self.origin[0] + x * self.resolution, self.origin[1] + y * self.resolution
        return f"{a / MM:.0f}, {b / MM:.0f} mm"

    def pixel(self, across: float, up: float) -> tuple[float, float]:
        """Where a place (m) is drawn."""
        x = (across - self.origin[0]) / self.resolution + 0.5
        y = (up - self.origin[1]) / self.resolution + 0.5
        return LEFT + x * CELL, TOP + (self.height - y) * CELL

    def axes(self, across: str, up: str) -> str:
        """Lines and figures at round distances, and the names of the axes."""
        right, below = LEFT + self.width * CELL, TOP + self.height * CELL
        parts = [
            f'<rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{below - TOP}" '
            'fill="none" stroke="#94a3b8"/>'
        ]
        for value in self._marks(self.origin[0], self.width):
            x, _ = self.pixel(value, 0.0)
            parts.append(f'<path d="M{x:g} {TOP}V{below}" stroke="#e2e8f0"/>')
            parts.append(
                f'<text x="{x:g}" y="{below + 15}" text-anchor="middle">{value / MM:.0f}</text>'
            )
        for value in self._marks(self.origin[1], self.height):
            _, y = self.pixel(0.0, value)
            parts.append(f'<path d="M{LEFT} {y:g}H{right}" stroke="#e2e8f0"/>')
            parts.append(
                f'<text x="{LEFT - 6}" y="{y + 4:g}" text-anchor="end">{value / MM:.0f}</text>'
            )
        middle = TOP + 0.5 * (below - TOP)
        parts.append(
            f'<text x="{0.5 * (LEFT + right):g}" y="{below + 33}" text-anchor="middle">{across} '
            f'in mm</text><text x="14" y="{middle:g}" text-anchor="middle" '
            f'transform="rotate(-90 14 {middle:g})">{up} in mm</text>'
        )
        return "".join(parts)

    def _marks(self, first: float, count: int) -> list[float]:
        """Round values on an axis, not closer than 48 pixels."""
        last = first + (count - 1) * self.resolution
        step = next(step for step in ROUND_STEPS if step / self.resolution * CELL >= 48)
        return [k * step for k in range(math.ceil(first / step), math.floor(last / step) + 1)]

    def foot(self) -> str:
        """A cross at the origin of the frame, if it is in the view."""
        x, y = self.pixel(0.0, 0.0)
        inside = LEFT <= x <= LEFT + self.width * CELL and TOP <= y <= TOP + self.height * CELL
        path = f"M{x - 6:g} {y:g}h12M{x:g} {y - 6:g}v12"
        return f'<path d="{path}" stroke="#0f172a" stroke-width="2"/>' if inside else ""


def _color(share: float) -> str:
    red, green, blue = (COLD + share * (WARM - COLD)).astype(int)
    return f"#{red:02x}{green:02x}{blue:02x}"
