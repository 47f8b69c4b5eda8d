"""The report as one HTML page: a 3D view of the path that can be turned, and lines to click on.

The page is one file without references to other files, so that it can be mailed and archived.
"""

from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from typing import Any

import msgspec
import numpy as np

from understudy.errors import ConfigError
from understudy.html_page import UNKNOWN, Origin, html_page
from understudy.motion.path import Floats, Ints
from understudy.offline.robot import Arm
from understudy.offline.validate.report import Report, finding_document, line_document
from understudy.space.kinematics.chain import Body, Chain
from understudy.space.model.environment import Environment, Read
from understudy.space.model.robot import Box, Capsule, Cylinder, Geometry, Mesh, Solid, Sphere
from understudy.space.model.shapes import (
    CollisionObject,
    Hull,
    ObjectType,
    Shape,
    TriangleMesh,
    bounds_of,
    box_corners,
    hull_triangles,
    mesh_from_bytes,
)
from understudy.space.transform import matrix

ROUND = 24
"""Corners of the polygon that stands for a circle."""
EDGES = [(a, b) for a in range(8) for b in range(a) if (a ^ b).bit_count() == 1]
"""The corners of a box (`box_corners`) that its edges join."""

MOST_ROWS = 5000
"""Rows of the table of lines; the JSON report has all lines."""
MOST_FINDINGS = 2000
"""Violations, and warnings, on the page; the JSON report has all of them."""


Figures = Callable[[str, int], dict[str, Any] | None]
"""Bodies of a robot with a tool (see `figure`); None for a robot without a body."""


def page(
    reports: Sequence[Report],
    environment: Environment,
    figures: Figures,
    origin: Origin = UNKNOWN,
) -> str:
    """The HTML text; several programs are in one list to choose from."""
    things = [
        _thing(each, number, zone=environment.is_zone(each.name))
        for number, each in enumerate(environment.everything())
    ]
    used = {(each.robot, tool) for each in reports for tool in each.course.tools.tolist()}
    drawn = {f"{robot}/{tool}": figures(robot, tool) for robot, tool in sorted(used)}
    data = {
        "reports": [_report(report) for report in reports],
        "things": things,
        "figures": {name: found for name, found in drawn.items() if found is not None},
    }
    # A "</script>" inside a program's comment must not end the data.
    text = msgspec.json.encode(data).decode().replace("<", "\\u003c")
    body = (
        '<header><h1>Validation</h1><select id="program" aria-label="program"></select>'
        f'<b id="verdict"></b><span id="facts"></span>{origin.html()}</header>\n'
        '<main><section id="view"><canvas id="canvas" tabindex="0" aria-label="the path">'
        '</canvas><footer><button id="play" aria-label="play">▶</button>'
        '<input id="time" type="range" min="0" value="0" aria-label="time">'
        '<output id="clock"></output><label><input id="solid" type="checkbox" checked> solid'
        "</label></footer></section>"
        '<section id="side"><ul id="findings"></ul><details id="notes"><summary></summary><ul></ul>'
        "</details><table><thead><tr><th>line</th><th>from s</th>"
        "<th>proven mm</th><th>seen mm</th><th>text</th></tr></thead>"
        '<tbody id="lines"></tbody></table></section></main>\n'
        f'<script id="data" type="application/json">{text}</script>\n'
    )
    style, script = _file("report_page.css"), _file("report_page.js")
    what = reports[0].program if len(reports) == 1 else f"{len(reports)} programs"
    return html_page(f"Validation: {what}", [body], style=style, script=script)


def _report(report: Report) -> dict[str, Any]:
    """Data of one program for the page; rounded to 0.01 mm."""
    shown = {"program", "cell", "robot", "verdict", "cycle_time"}
    document = {key: value for key, value in report.listed_document().items() if key in shown}
    course = report.course
    findings = [
        {**finding_document(each), "level": level}
        for level, found in (("violation", report.violations), ("warning", report.warnings))
        for each in found[:MOST_FINDINGS]
    ]
    omitted = len(report.violations) + len(report.warnings) - len(findings)
    points = [[round(v, 5) for v in row] for row in course.points[:, -1:].reshape(-1, 3).tolist()]
    joints = [[round(v, 5) for v in row] for row in course.joints.tolist()]
    return {
        **document,
        "lines": [line_document(row) for row in report.lines[:MOST_ROWS]],
        "omitted": max(len(report.lines) - MOST_ROWS, 0),
        "findings": findings,
        "notes": [
            *([f"{omitted} more findings are not shown: --json has them all"] if omitted else []),
            *report.notes,
            *(f"not compared, {each}" for each in report.left_out_notes()),
        ],
        "tips": points,
        "joints": joints,
        "tools": course.tools.tolist(),
        "at": course.lines.tolist(),
        "times": [round(time, 3) for time in course.times.tolist()],
    }


def _file(name: str) -> str:
    return files("understudy.offline.validate").joinpath(name).read_text(encoding="utf-8")


# ── objects of the environment: edges, and triangles where they are solid ───────────────────────


def _thing(thing: CollisionObject, number: int, *, zone: bool) -> dict[str, Any]:
    """A zone has edges only: a robot may be inside it."""
    found = {"name": thing.name, "zone": zone, "lines": wireframe(thing)}
    if not zone:
        color = THING_GREYS[number % len(THING_GREYS)]
        found |= _encoded(_placed(_triangles(thing.shape), thing.place), color)
    return found


def wireframe(thing: CollisionObject) -> list[list[list[float]]]:
    """Polylines in metres, in the cell's frame; a mesh is drawn as its bounding box."""
    lines = _lines(thing)
    turn, shift = thing.transform[:3, :3], thing.transform[:3, 3]
    return [(line @ turn.T + shift).tolist() for line in lines]


def _lines(thing: CollisionObject) -> list[Floats]:
    if thing.type is ObjectType.SPHERE:
        return [_circle(thing.radius, axis, 0.0) for axis in range(3)]
    if thing.type in (ObjectType.CYLINDER, ObjectType.CAPSULE):
        return _barrel(thing.radius, 0.5 * thing.height)
    low, high = bounds_of(thing.shape)
    half = 0.5 * (high - low)
    corners = 0.5 * (low + high) + box_corners(-half, half)
    return [corners[[a, b]] for a, b in EDGES]


def _barrel(radius: float, half: float) -> list[Floats]:
    ends = [_circle(radius, 2, z) for z in (-half, half)]
    stride = ROUND // 4
    return [*ends, *(np.stack([ends[0][k], ends[1][k]]) for k in range(0, ROUND, stride))]


def _circle(radius: float, axis: int, along: float) -> Floats:
    angles = np.linspace(0.0, 2.0 * np.pi, ROUND + 1)
    out = np.full((ROUND + 1, 3), along)
    first, second = (k for k in range(3) if k != axis)
    out[:, first], out[:, second] = radius * np.cos(angles), radius * np.sin(angles)
    return out


# ── bodies of an arm as triangles ───────────────────────────────────────────────────────────────
#
# Positions are whole tenths of a millimetre in the frame of the link that carries the body; the
# page computes the frames from the joints.


Triangles = tuple[Floats, Ints]
"""Corners (n, 3) in metres, and triangles (m, 3) of corner numbers."""

TENTH_MM = 1e-4
MOST_TRIANGLES = 1500
"""Triangles of one shape; a finer mesh is simplified."""
COARSEST = 0.2
RINGS = 8
GREY, TOOL_GREY = "#9aa7b4", "#5b6673"
THING_GREYS = ("#e2dccf", "#cdd6dc", "#d9cdb8")
"""Used in turn, so that things beside each other differ."""


def figure(arm: Arm, read: Read) -> dict[str, Any]:
    """Joints and bodies of an arm with its tool; bodies whose files cannot be read are left out."""
    way = arm.chain.model.joints_to_tip()
    carriers = [-1, *(k for k, joint in enumerate(way) if joint.moves)]
    shapes = [
        {"name": body.name, "joint": joint, **shape}
        for body, joint in zip(arm.chain.bodies, carriers, strict=True)
        for shape in _drawn(body, read)
    ]
    for thing in arm.tool_shapes:
        triangles = _placed(_triangles(thing.shape), thing.place)
        shapes.append({"name": thing.name, "joint": len(way) - 1, **_encoded(triangles, TOOL_GREY)})
    return {"base": arm.foot.reshape(-1).tolist(), "joints": _joints(arm.chain), "shapes": shapes}


def _joints(chain: Chain) -> list[dict[str, Any]]:
    """All joints from base to flange: T = T · origin · turn (or shift) on the axis."""
    return [
        {
            "origin": matrix(joint.origin).reshape(-1).tolist(),
            "axis": joint.axis,
            "kind": joint.kind,
        }
        for joint in chain.model.joints_to_tip()
    ]


def _drawn(body: Body, read: Read) -> Iterator[dict[str, Any]]:
    """The shapes for the eye; those for collisions if there are none or they cannot be read."""
    for solids in (body.visual, body.collision):
        try:
            found = [(_placed(_of(s.geometry, read), matrix(s.origin)), _color(s)) for s in solids]
        except ConfigError:
            continue
        if found:
            yield from (_encoded(triangles, color) for triangles, color in found)
            return


def _color(solid: Solid) -> str:
    if solid.color is None:
        return GREY
    return "#" + "".join(f"{round(255 * min(max(part, 0.0), 1.0)):02x}" for part in solid.color[:3])


def _encoded(triangles: Triangles, color: str) -> dict[str, Any]:
    corners, faces = simplified(*triangles)
    places = np.round(corners / TENTH_MM).astype(int)
    return {"color": color, "at": places.reshape(-1).tolist(), "of": faces.reshape(-1).tolist()}


def simplified(corners: Floats, faces: Ints) -> Triangles:
    """A mesh of at most MOST_TRIANGLES: corners in one cell of a grid become one."""
    size = float(np.ptp(corners, axis=0).max()) / 200.0 if len(faces) > MOST_TRIANGLES else 0.0
    found: Triangles = corners, faces
    while len(found[1]) > MOST_TRIANGLES and size < COARSEST * 2:
        cells = np.round(corners / size).astype(np.int64)
        _, first, number = np.unique(cells, axis=0, return_index=True, return_inverse=True)
        merged = number.reshape(-1)[faces]
        a, b, c = merged.T
        kept = merged[(a != b) & (b != c) & (a != c)]
        found, size = (corners[first], np.unique(kept, axis=0)), 1.4 * size
    return found


def _placed(triangles: Triangles, at: Floats) -> Triangles:
    corners, faces = triangles
    return corners @ at[:3, :3].T + at[:3, 3], faces


def _of(geometry: Geometry, read: Read) -> Triangles:
    if not isinstance(geometry, Mesh):
        return _triangles(geometry)
    found = mesh_from_bytes(read(geometry.filename), geometry.filename.rsplit(".", 1)[-1])
    return found.vertices * np.array(geometry.scale), np.asarray(found.triangles, dtype=np.int64)


def _triangles(shape: Shape) -> Triangles:
    match shape:
        case Box(size=size):
            return _box(-0.5 * np.array(size), 0.5 * np.array(size))
        case Sphere(radius=radius):
            return _turned(*_quarter(radius, 0.0))
        case Capsule(radius=radius, length=length):
            return _turned(*_quarter(radius, 0.5 * length))
        case Cylinder(radius=radius, length=length):
            # Several rings: the page sorts triangles by depth, which short ones suit better.
            along = np.linspace(-0.5 * length, 0.5 * length, RINGS)
            ends = ([0.0, 0.5 * radius], [0.5 * radius, 0.0])
            heights = np.concatenate([along[[0, 0]], along, along[[-1, -1]]])
            return _turned(np.concatenate([ends[0], np.full(RINGS, radius), ends[1]]), heights)
        case Hull(points=points):
            return _hull(points)
        case TriangleMesh():
            return shape.vertices, np.asarray(shape.triangles, dtype=np.int64)


def _quarter(radius: float, half: float) -> tuple[Floats, Floats]:
    """The outline of a sphere, or of a capsule with a straight part: radii and heights."""
    angles = np.linspace(-0.5 * np.pi, 0.5 * np.pi, 2 * RINGS)
    return radius * np.cos(angles), radius * np.sin(angles) + np.copysign(half, angles)


def _turned(radii: Floats, heights: Floats) -> Triangles:
    """An outline turned around z."""
    angles = np.linspace(0.0, 2.0 * np.pi, ROUND, endpoint=False)
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    corners = np.concatenate(
        [
            np.column_stack([r * ring, np.full(ROUND, z)])
            for r, z in zip(radii, heights, strict=True)
        ]
    )
    k = np.arange(ROUND)
    after = (k + 1) % ROUND
    faces = [
        np.concatenate(
            [
                np.stack([n + k, n + after, n + ROUND + k], 1),
                np.stack([n + after, n + ROUND + after, n + ROUND + k], 1),
            ]
        )
        for n in range(0, ROUND * (len(radii) - 1), ROUND)
    ]
    return corners, np.concatenate(faces)


SIDES = ((0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5))
"""Corners of the cube's sides, in order around each."""


def _box(low: Floats, high: Floats) -> Triangles:
    faces = [half for a, b, c, d in SIDES for half in ((a, b, c), (a, c, d))]
    return box_corners(low, high), np.array(faces, dtype=np.int64)


def _hull(points: Floats) -> Triangles:
    """The convex hull; else the bounding box."""
    faces = hull_triangles(points)
    if faces is None:
        return _box(points.min(axis=0), points.max(axis=0))
    return np.asarray(points, dtype=np.float64), faces
