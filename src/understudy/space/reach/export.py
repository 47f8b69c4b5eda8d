"""Reach maps as CSV, HTML, SVG and arrays; the caller writes the files."""

from html import escape

import numpy as np
from numpy.typing import NDArray

from understudy.space.reach.reach_map import ReachabilityMap
from understudy.units import MM

CELL = 8
"""Pixels per grid cell of the SVG."""
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


def html(found: ReachabilityMap, title: str) -> str:
    """One self-contained page with three views of the map."""
    name = escape(title)
    low, high = found.workspace_min / MM, found.workspace_max / MM
    spans = ", ".join(
        f"{axis} {a:.0f}…{b:.0f}" for axis, a, b in zip("xyz", low, high, strict=True)
    )
    views = "".join(
        f"<figure>{svg(found, along)}<figcaption>seen along {'xyz'[along]}</figcaption></figure>"
        for along in (1, 0, 2)
    )
    share = len(found.reachable_points) / len(found.points)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{name}</title><style>body{{font:14px system-ui,sans-serif;margin:1em}}"
        "figure{display:inline-block;margin:1em}</style></head>\n"
        f"<body><h1>{name}</h1><p>{len(found.reachable_points)} of {len(found.points)} points "
        f"({share:.0%}) every {found.resolution / MM:g} mm; reachable in mm: {spans}. "
        f"The darker a cell, the more of {found.tried} tool directions are reachable.</p>{views}"
        "</body></html>\n"
    )


def svg(found: ReachabilityMap, along: int = 1) -> str:
    """View along one axis (0 x, 1 y, 2 z): the largest number of directions on each ray."""
    across, up = (axis for axis in range(3) if axis != along)
    grid = np.round((found.points - found.points.min(axis=0)) / found.resolution).astype(int)
    width, height = grid[:, across].max() + 1, grid[:, up].max() + 1
    most = np.zeros((width, height), dtype=np.int64)
    np.maximum.at(most, (grid[:, across], grid[:, up]), found.orientations)
    cells = [
        f'<rect x="{x * CELL}" y="{(height - 1 - y) * CELL}" width="{CELL}" height="{CELL}" '
        f'fill="{_color(most[x, y] / found.tried)}"/>'
        for x, y in zip(*np.nonzero(most), strict=True)
    ]
    size = f'width="{width * CELL}" height="{height * CELL}"'
    title = f"<title>Reach, seen along {'xyz'[along]}: directions of {found.tried}</title>"
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{title}{"".join(cells)}</svg>'


def _color(share: float) -> str:
    red, green, blue = (COLD + share * (WARM - COLD)).astype(int)
    return f"#{red:02x}{green:02x}{blue:02x}"
