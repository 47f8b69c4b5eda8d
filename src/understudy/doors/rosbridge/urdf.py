"""The description of a robot for ROS: URDF from the scene of a cell.

Its links are called as the frames of `/tf`: `g60/base`, `g60/joint_1` …, so that rviz shows the
robot without a prefix. A mesh is shown as the box around it: a URDF names files, and the viewer has
not those of the cell.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

import numpy as np
from msgspec import Raw
from msgspec.json import decode

from understudy.space.transform import pose

SPEED = 1.0
"""Of a joint, in rad/s or m/s, for viewers; the limits of the cell are in the query `robots`."""


def description(robot: str, facts: Mapping[str, Any]) -> str:
    """``facts``: of the robot in the query `scene`."""
    root = Element("robot", name=robot)
    bodies: dict[int, list[Any]] = {}
    for link in facts["links"]:
        bodies.setdefault(link["joint"], []).extend(link["shapes"])
    base = f"{robot}/base"
    _link(root, base, bodies.get(-1, ()))
    above = base
    for number, joint in enumerate(facts["joints"]):
        frame = f"{robot}/{joint['name']}"
        _joint(root, joint, above, frame)
        _link(root, frame, bodies.get(number, ()))
        above = frame
    fixed = {"name": "flange", "type": "fixed", "axis": (0, 0, 1), "origin": np.eye(4).tolist()}
    _joint(root, fixed, above, f"{robot}/flange")
    _link(root, f"{robot}/flange", ())
    return tostring(root, encoding="unicode")


def _joint(root: Element, joint: Mapping[str, Any], above: str, below: str) -> None:
    own = SubElement(root, "joint", name=joint["name"], type=joint["type"])
    SubElement(own, "parent", link=above)
    SubElement(own, "child", link=below)
    _origin(own, joint["origin"])
    SubElement(own, "axis", xyz=_words(joint["axis"]))
    if joint["type"] != "fixed":
        far = math.tau if joint["type"] == "revolute" else 10.0
        lower, upper = (joint.get(side) for side in ("lower", "upper"))
        SubElement(
            own,
            "limit",
            lower=f"{-far if lower is None else lower:g}",
            upper=f"{far if upper is None else upper:g}",
            effort="0",
            velocity=f"{SPEED:g}",
        )


def _link(root: Element, name: str, shapes: Any) -> None:
    own = SubElement(root, "link", name=name)
    for shape in shapes:
        for place, kind, sizes in _plain(shape):
            visual = SubElement(own, "visual")
            _origin(visual, place)
            SubElement(SubElement(visual, "geometry"), kind, sizes)


def _plain(shape: Mapping[str, Any]) -> Iterator[tuple[Any, str, dict[str, str]]]:
    """A shape as those that URDF has: place, kind, sizes."""
    kind, place = str(shape["type"]).lower(), shape["origin"]
    if kind == "box":
        yield place, "box", {"size": _words(shape["dimensions"])}
    elif kind == "sphere":
        yield place, "sphere", {"radius": f"{shape['radius']:g}"}
    elif kind in ("cylinder", "capsule"):
        length = shape.get("length") or shape["height"]
        yield place, "cylinder", {"radius": f"{shape['radius']:g}", "length": f"{length:g}"}
    elif "vertices" in shape:
        rows = shape["vertices"]
        corners = np.array(decode(rows) if isinstance(rows, Raw) else rows).reshape(-1, 3)
        if len(corners):
            low, high = corners.min(axis=0), corners.max(axis=0)
            middle = np.eye(4)
            middle[:3, 3] = (low + high) / 2.0
            whole = np.asarray(place, dtype=float).reshape(4, 4) @ middle
            yield whole, "box", {"size": _words(high - low)}


def _origin(of: Element, rows: Any) -> None:
    """rx, ry, rz of the house are roll, pitch and yaw of URDF: both turn about fixed axes x y z."""
    x, y, z, roll, pitch, yaw = pose(np.asarray(rows, dtype=float).reshape(4, 4))
    SubElement(of, "origin", xyz=_words((x, y, z)), rpy=_words((roll, pitch, yaw)))


def _words(values: Any) -> str:
    return " ".join(f"{float(value):.9g}" for value in values)
