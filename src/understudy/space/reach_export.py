"""A reach map as text and arrays; writing files is somebody else's."""

import numpy as np
from numpy.typing import NDArray

from understudy.space.reach import ReachabilityMap
from understudy.units import MM

CELL = 8
"""Pixels of one grid cell in the picture."""
COLD, WARM = np.array([226, 232, 240]), np.array([234, 88, 12])


def csv(found: ReachabilityMap) -> str:
    """x_mm, y_mm, z_mm, reachable, orientations, manipulability; a row per point."""
    rows = ["x_mm,y_mm,z_mm,reachable,orientations,manipulability"]
    columns = zip(found.points / MM, found.orientations, found.manipulability, strict=True)
    rows += [f"{x:.1f},{y:.1f},{z:.1f},{int(n > 0)},{n},{m:.6g}" for (x, y, z), n, m in columns]
    return "\n".join(rows) + "\n"


def arrays(found: ReachabilityMap) -> dict[str, NDArray[np.generic]]:
    """What an .npz file holds; metres."""
    return {
        "points": found.points,
        "orientations": found.orientations,
        "manipulability": found.manipulability,
        "resolution": np.array(found.resolution),
        "tried": np.array(found.tried),
    }


def svg(found: ReachabilityMap, along: int = 1) -> str:
    """Looks through the map along one axis (0 x, 1 y, 2 z): the most directions on each ray."""
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
