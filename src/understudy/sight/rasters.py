"""Kernels of the renderer: which pixels a face covers, and what the rays of the others meet.

A *node* is a corner of a pixel; its ray meets the plane of a face at a depth t and at the shares u
and v of its edges. A pixel, and a block of pixels, is the convex hull of its nodes, and so are
their places on a plane: what is true of all nodes is true of everything between them.
"""

import numpy as np
from numpy.typing import NDArray

from understudy.space.compiled import compiled
from understudy.space.transform import Array

Ray = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Floats32 = NDArray[np.float32]
Bytes = NDArray[np.uint8]
NEAR = 1e-3
"""Nothing nearer to the camera is seen, metres."""
BLOCK = 16
"""Pixels of a block along each direction."""
EDGE_POINTS = 9
"""Points of an edge whose pixels bound a face: with distortion an edge is a curve."""
BORDER = 2
"""Pixels around these bounds that are looked at too."""
TOUCHING = 1e-6
"""Metres by which a face may be behind the one that covers a pixel and still count as met."""
BEHIND = -64
"""The code of a node whose ray does not meet the plane. Other negative codes: -1 minus a sum of 1
(u < 0), 2 (u > 1), 4 (v < 0), 8 (v > 1) and 16 (beyond the third edge of a triangle)."""


@compiled
def clip_polygon(points: Array, count: int, wall: Array, out: Array) -> int:  # kernel
    """Cuts a convex polygon: what is left has wall · (x, y, z, 1) ≥ 0. Returns its corners."""
    kept = 0
    for k in range(count):
        a, b = points[k], points[(k + 1) % count]
        at = wall[0] * a[0] + wall[1] * a[1] + wall[2] * a[2] + wall[3]
        to = wall[0] * b[0] + wall[1] * b[1] + wall[2] * b[2] + wall[3]
        if at >= 0.0:
            out[kept, 0], out[kept, 1], out[kept, 2] = a[0], a[1], a[2]
            kept += 1
        if (at >= 0.0) != (to >= 0.0):
            share = at / (at - to)
            for d in range(3):
                out[kept, d] = a[d] + share * (b[d] - a[d])
            kept += 1
    return kept


@compiled
def show_point(x: float, y: float, lens: Array) -> tuple[float, float]:  # kernel
    """The pixel of a ray; ``lens``: fx fy cx cy k1 k2 p1 p2 k3."""
    k1, k2, p1, p2, k3 = lens[4], lens[5], lens[6], lens[7], lens[8]
    r2 = x * x + y * y
    radial = 1.0 + r2 * (k1 + r2 * (k2 + r2 * k3))
    u = x * radial + 2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x)
    v = y * radial + p1 * (r2 + 2.0 * y * y) + 2.0 * p2 * x * y
    return u * lens[0] + lens[2], v * lens[1] + lens[3]


@compiled
def find_bounds(  # kernel
    edges: Array, facts: Ints, lens: Array, limits: Array, height: int, width: int
) -> Ints:
    """First and last row and column of the pixels that can meet each face; all 0 if none can.

    The face is cut at the pyramid around the picture first: a lens is known only there. ``limits``:
    lowest and highest x, lowest and highest y of the rays.
    """
    out = np.zeros((len(edges), 4), dtype=np.int64)
    walls = np.array(
        [
            [0.0, 0.0, 1.0, -NEAR],
            [1.0, 0.0, -limits[0], 0.0],
            [-1.0, 0.0, limits[1], 0.0],
            [0.0, 1.0, -limits[2], 0.0],
            [0.0, -1.0, limits[3], 0.0],
        ]
    )
    bent = np.any(lens[4:] != 0.0)
    steps = EDGE_POINTS - 1 if bent else 1
    one, other = np.empty((12, 3)), np.empty((12, 3))
    for f in range(len(edges)):
        count = 3 if facts[f, 0] else 4
        for d in range(3):
            corner, u, v = edges[f, 0, d], edges[f, 1, d], edges[f, 2, d]
            one[0, d], one[1, d], one[count - 1, d] = corner, corner + u, corner + v
            if count == 4:
                one[2, d] = corner + u + v
        for k in range(5):
            within = 0
            for c in range(count):
                away = walls[k, 0] * one[c, 0] + walls[k, 1] * one[c, 1] + walls[k, 2] * one[c, 2]
                within += away + walls[k, 3] >= 0.0
            if within == 0:
                count = 0
                break
            if within < count:
                count = clip_polygon(one, count, walls[k], other)
                one, other = other, one
        if count == 0:
            continue
        top, left, bottom, right = np.inf, np.inf, -np.inf, -np.inf
        for k in range(count):
            to = (k + 1) % count
            for step in range(steps):
                share = step / steps
                z = one[k, 2] + share * (one[to, 2] - one[k, 2])
                px = (one[k, 0] + share * (one[to, 0] - one[k, 0])) / z
                py = (one[k, 1] + share * (one[to, 1] - one[k, 1])) / z
                column, row = show_point(px, py, lens)
                left, right = min(left, column), max(right, column)
                top, bottom = min(top, row), max(bottom, row)
        out[f, 0] = max(0, int(np.floor(top)) - BORDER)
        out[f, 1] = min(height, int(np.ceil(bottom)) + BORDER + 1)
        out[f, 2] = max(0, int(np.floor(left)) - BORDER)
        out[f, 3] = min(width, int(np.ceil(right)) + BORDER + 1)
        if out[f, 1] <= out[f, 0] or out[f, 3] <= out[f, 2]:
            out[f] = 0
    return out


@compiled
def meet_plane(  # kernel
    plane: Array, triangle: int, rows: int, columns: int, x: float, y: float
) -> tuple[int, float]:
    """Where the ray of a node meets a face: the cell of its pattern, or a negative code, and t."""
    t = plane[3] / (plane[0] * x + plane[1] * y + plane[2])
    if not (NEAR < t < 1e30):
        return BEHIND, 0.0
    u = t * (plane[4] * x + plane[5] * y + plane[6]) - plane[7]
    v = t * (plane[8] * x + plane[9] * y + plane[10]) - plane[11]
    outside = 0
    if u < 0.0:
        outside += 1
    elif u > 1.0:
        outside += 2
    if v < 0.0:
        outside += 4
    elif v > 1.0:
        outside += 8
    if triangle and u + v > 1.0:
        outside += 16
    if outside:
        return -1 - outside, t
    row, column = min(int(v * rows), rows - 1), min(int(u * columns), columns - 1)
    return row * columns + column, t


@compiled
def judge_nodes(a: int, b: int, c: int, d: int) -> int:  # kernel
    """Of four codes: the cell that all are in; -1 if a face is not there; -2 if it is met."""
    if a >= 0 and a == b and a == c and a == d:
        return a
    common = (-1 - a) & (-1 - b) & (-1 - c) & (-1 - d) if max(a, b, c, d) < 0 else 0
    some_behind = min(a, b, c, d) == BEHIND
    if common and (not some_behind or max(a, b, c, d) == BEHIND):
        return -1
    return -2


@compiled
def plane_depth(plane: Array, x: float, y: float) -> float:  # kernel
    """The depth by which faces hide each other: a sheet counts as a little nearer than it is."""
    depth: float = plane[3] / (plane[0] * x + plane[1] * y + plane[2]) - plane[12]
    return depth


@compiled
def compare_depths(  # kernel
    one: Array, other: Array, x: Ray, y: Ray, top: int, left: int, bottom: int, right: int
) -> int:
    """Whether one plane hides another at all four nodes (1), at none (-1), or at some (0)."""
    hides = 0
    for i in (top, bottom):
        for j in (left, right):
            if plane_depth(one, x[i, j], y[i, j]) < plane_depth(other, x[i, j], y[i, j]):
                hides += 1
    return 1 if hides == 4 else (-1 if hides == 0 else 0)


@compiled
def note_pair(pairs: Ints32, used: int, pixel: int, f: int) -> int:  # kernel
    """Notes that a pixel meets a face; returns the number of notes, also if there is no room."""
    if used < len(pairs):
        pairs[used, 0], pairs[used, 1] = pixel, f
    return used + 1


@compiled
def cover_block(  # kernel
    planes: Array,
    f: int,
    cell: int,
    x: Ray,
    y: Ray,
    cover: Ints32,
    pairs: Ints32,
    used: int,
    top: int,
    left: int,
    bottom: int,
    right: int,
) -> int:
    """A face covers these pixels with one cell, where nothing is in front of it. Where it crosses
    what covers them, both are noted. Returns the number of notes."""
    last, known = -1, 1
    for i in range(top, bottom):
        for j in range(left, right):
            there = cover[0, i, j]
            if there != last:
                last, known = there, 1
                if there >= 0:
                    known = compare_depths(planes[f], planes[there], x, y, top, left, bottom, right)
            decided = known
            if decided == 0:
                decided = compare_depths(planes[f], planes[there], x, y, i, j, i + 1, j + 1)
            if decided == 1:
                cover[0, i, j], cover[1, i, j] = f, cell
            elif decided == 0:
                pixel = i * cover.shape[2] + j
                used = note_pair(pairs, used, pixel, there)
                used = note_pair(pairs, used, pixel, f)
    return used


@compiled
def mark_block(  # kernel
    planes: Array,
    fact: Ints,
    f: int,
    x: Ray,
    y: Ray,
    cover: Ints32,
    pairs: Ints32,
    used: int,
    top: int,
    left: int,
    bottom: int,
    right: int,
) -> int:
    """As `mark_pixels`, for one face and one block of pixels."""
    codes, depths = np.empty((2, BLOCK + 1), dtype=np.int64), np.empty((2, BLOCK + 1))
    plane, triangle, first, rows, columns = planes[f], fact[0], fact[2], fact[3], fact[4]
    for i in range(top, bottom + 1):
        own, before = i & 1, 1 - (i & 1)
        for j in range(left, right + 1):
            code, t = meet_plane(plane, triangle, rows, columns, x[i, j], y[i, j])
            codes[own, j - left], depths[own, j - left] = code, t - plane[12]
        if i == top:
            continue
        for j in range(left, right):
            k = j - left
            found = judge_nodes(
                codes[before, k], codes[before, k + 1], codes[own, k], codes[own, k + 1]
            )
            if found == -1:
                continue
            there, pixel, hides = cover[0, i - 1, j], (i - 1) * cover.shape[2] + j, 4
            if there >= 0:
                other, hides, k, east = planes[there], 0, k + 1, j + 1
                hides += depths[before, k - 1] < plane_depth(other, x[i - 1, j], y[i - 1, j])
                hides += depths[own, k - 1] < plane_depth(other, x[i, j], y[i, j])
                hides += depths[before, k] < plane_depth(other, x[i - 1, east], y[i - 1, east])
                hides += depths[own, k] < plane_depth(other, x[i, east], y[i, east])
            if hides == 0:
                continue
            if found == -2:
                used = note_pair(pairs, used, pixel, f)
            elif hides == 4:
                cover[0, i - 1, j], cover[1, i - 1, j] = f, first + found
            else:
                used = note_pair(pairs, used, pixel, there)
                used = note_pair(pairs, used, pixel, f)
    return used


@compiled
def mark_pixels(  # kernel
    planes: Array, facts: Ints, bounds: Ints, x: Ray, y: Ray, cover: Ints32, pairs: Ints32
) -> int:
    """Of every pixel the face and the cell that cover it, as far as one does. Notes the pixels (row
    · width + column) that are met otherwise, with the faces. Returns the number of these notes: if
    there are more than rows for them, some are missing. Near faces should come first: what is
    behind one that covers a whole block is not looked at."""
    height, width, used = cover.shape[1], cover.shape[2], 0
    fronts = np.full((height // BLOCK + 1, width // BLOCK + 1), -1, dtype=np.int32)
    for f in range(len(planes)):
        plane, fact = planes[f], facts[f]
        begin, end, left, right = bounds[f, 0], bounds[f, 1], bounds[f, 2], bounds[f, 3]
        for row in range(begin // BLOCK, (end + BLOCK - 1) // BLOCK):
            for column in range(left // BLOCK, (right + BLOCK - 1) // BLOCK):
                top, bottom = max(row * BLOCK, begin), min((row + 1) * BLOCK, end)
                west, east = max(column * BLOCK, left), min((column + 1) * BLOCK, right)
                a, ta = meet_plane(plane, fact[0], fact[3], fact[4], x[top, west], y[top, west])
                b, tb = meet_plane(plane, fact[0], fact[3], fact[4], x[top, east], y[top, east])
                c, tc = meet_plane(
                    plane, fact[0], fact[3], fact[4], x[bottom, west], y[bottom, west]
                )
                d, td = meet_plane(
                    plane, fact[0], fact[3], fact[4], x[bottom, east], y[bottom, east]
                )
                whole, front = judge_nodes(a, b, c, d), fronts[row, column]
                if whole == -1:
                    continue
                ahead = front >= 0 and min(ta, tb, tc, td) > 0.0
                if (
                    ahead
                    and compare_depths(plane, planes[front], x, y, top, west, bottom, east) == -1
                ):
                    continue
                if whole == -2:
                    used = mark_block(
                        planes, fact, f, x, y, cover, pairs, used, top, west, bottom, east
                    )
                    continue
                before = used
                used = cover_block(
                    planes, f, fact[2] + whole, x, y, cover, pairs, used, top, west, bottom, east
                )
                full = bottom == min((row + 1) * BLOCK, height) and top == row * BLOCK
                full &= east == min((column + 1) * BLOCK, width) and west == column * BLOCK
                if full and used == before:
                    fronts[row, column] = f
    return used


@compiled
def group_pairs(pairs: Ints32, pixels: int) -> tuple[Ints32, Ints32]:  # kernel
    """The faces that each pixel meets: those of pixel p are faces[begins[p]:begins[p + 1]]."""
    begins = np.zeros(pixels + 1, dtype=np.int32)
    for k in range(len(pairs)):
        begins[pairs[k, 0] + 1] += 1
    for p in range(pixels):
        begins[p + 1] += begins[p]
    faces, at = np.empty(len(pairs), dtype=np.int32), begins.copy()
    for k in range(len(pairs)):
        pixel = pairs[k, 0]
        faces[at[pixel]] = pairs[k, 1]
        at[pixel] += 1
    return begins, faces


@compiled
def follow_rays(  # kernel
    plane: Array,
    fact: Ints,
    f: int,
    i: int,
    j: int,
    x: Ray,
    y: Ray,
    spots: Array,
    rays: Array,
    hits: Ints,
) -> None:
    """Of each ray of a pixel: depth (as `plane_depth`), face and cell of what it meets first, after
    this face. As `meet_plane`; between the corners of a pixel everything but the division is
    bilinear. ``spots``: where the rays are in the pixel, as shares across and down."""
    rows, columns, third = fact[3], fact[4], 1.0 if fact[0] else 3.0
    corners = np.empty((3, 4))
    for k in range(4):
        s, e = i + k // 2, j + k % 2
        for part in range(3):
            at = 4 * part
            corners[part, k] = plane[at] * x[s, e] + plane[at + 1] * y[s, e] + plane[at + 2]
    for k in range(len(rays)):
        across, down = spots[k, 0], spots[k, 1]
        ne, se = (1.0 - down) * across, down * across
        nw, sw = 1.0 - down - ne, down - se
        n = nw * corners[0, 0] + ne * corners[0, 1] + sw * corners[0, 2] + se * corners[0, 3]
        t = plane[3] / n
        if not NEAR < t < rays[k] + plane[12]:
            continue
        p = nw * corners[1, 0] + ne * corners[1, 1] + sw * corners[1, 2] + se * corners[1, 3]
        q = nw * corners[2, 0] + ne * corners[2, 1] + sw * corners[2, 2] + se * corners[2, 3]
        u, v = t * p - plane[7], t * q - plane[11]
        if u < 0.0 or v < 0.0 or u > 1.0 or v > 1.0 or u + v > third:
            continue
        row, column = min(int(v * rows), rows - 1), min(int(u * columns), columns - 1)
        rays[k], hits[k, 0], hits[k, 1] = t - plane[12], f, fact[2] + row * columns + column


@compiled
def paint(  # kernel
    planes: Array,
    facts: Ints,
    cells: Bytes,
    shades: Array,
    cover: Ints32,
    begins: Ints32,
    faces: Ints32,
    x: Ray,
    y: Ray,
    spots: Array,
    background: Bytes,
    out: Floats32,
    depth: Floats32,
    with_depth: bool,
) -> None:
    """The colour and the depth of every pixel; of one that meets several faces, or several cells,
    the mean colour of its rays and the depth of the middle one. ``spots``: of the rays."""
    height, width = depth.shape
    count = len(spots)
    rays, hits = np.empty(count), np.empty((count, 2), dtype=np.int64)
    share = np.float32(1.0 / count)
    last_face, last_cell = -1, -1
    red, green, blue = background[0] * 1.0, background[1] * 1.0, background[2] * 1.0
    for i in range(height):
        for j in range(width):
            f, cell, pixel = cover[0, i, j], cover[1, i, j], i * width + j
            begin, end = begins[pixel], begins[pixel + 1]
            if begin == end:
                if f != last_face or cell != last_cell:
                    last_face, last_cell = f, cell
                    red, green, blue = (
                        background[0] * 1.0,
                        background[1] * 1.0,
                        background[2] * 1.0,
                    )
                    if f >= 0:
                        red = np.floor(cells[cell, 0] * shades[f])
                        green = np.floor(cells[cell, 1] * shades[f])
                        blue = np.floor(cells[cell, 2] * shades[f])
                out[i, j, 0], out[i, j, 1], out[i, j, 2] = red, green, blue
                if not with_depth:
                    continue
                depth[i, j] = np.inf
                if f >= 0:
                    middle_x = 0.25 * (x[i, j] + x[i, j + 1] + x[i + 1, j] + x[i + 1, j + 1])
                    middle_y = 0.25 * (y[i, j] + y[i, j + 1] + y[i + 1, j] + y[i + 1, j + 1])
                    depth[i, j] = plane_depth(planes[f], middle_x, middle_y) + planes[f, 12]
                continue
            rays[:], hits[:] = np.inf, -1
            for k in range(begin, end):
                met = faces[k]
                follow_rays(planes[met], facts[met], met, i, j, x, y, spots, rays, hits)
            if f >= 0:
                follow_rays(planes[f], facts[f], f, i, j, x, y, spots, rays, hits)
            for k in range(3):
                total = 0
                for ray in range(count):
                    if hits[ray, 0] < 0:
                        total += background[k]
                    else:
                        total += int(cells[hits[ray, 1], k] * shades[hits[ray, 0]])
                out[i, j, k] = np.float32(total) * share
            if with_depth:
                f = hits[count // 2, 0]
                depth[i, j] = rays[count // 2] + (planes[f, 12] if f >= 0 else 0.0)
