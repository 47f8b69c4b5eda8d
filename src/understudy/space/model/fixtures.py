"""A URDF that stands in the cell: a fixture, a table, another arm at rest; every link an object."""

from collections.abc import Mapping

import numpy as np

from understudy.errors import ConfigError
from understudy.space.model.robot import Geometry, Joint, Mesh
from understudy.space.model.shapes import CollisionObject, Meshes, Shape, as_object, loaded
from understudy.space.model.urdf import elements
from understudy.space.transform import Array, about, matrix, translation


def fixture(
    text: str,
    name: str = "",
    *,
    at: Array | None = None,
    values: Mapping[str, float] | None = None,
    meshes: Meshes | None = None,
    file: str = "",
) -> tuple[CollisionObject, ...]:
    """The collision shapes of all links as objects ``name.link`` (``name.link.2`` …).

    at: where its root stands (4×4); values: of joints that are not at zero (rad, m).
    """
    called, links, joints = elements(text, file=file)
    name = name or called
    places = _places({link.name for link in links}, joints, values or {}, file)
    root = np.eye(4) if at is None else at
    found = []
    for link in links:
        for number, solid in enumerate(link.collision, start=1):
            shape = _shape(solid.geometry, meshes or {}, link.name)
            label = f"{name}.{link.name}" + (f".{number}" if number > 1 else "")
            place = root @ places[link.name] @ matrix(solid.origin)
            found.append(as_object(label, shape, place))
    return tuple(found)


def _shape(geometry: Geometry, meshes: Meshes, link: str) -> Shape:
    return loaded(geometry, meshes, f"link '{link}'") if isinstance(geometry, Mesh) else geometry


def _places(
    names: set[str], joints: tuple[Joint, ...], values: Mapping[str, float], file: str
) -> dict[str, Array]:
    """Where every link is, seen from the root."""
    children = {joint.child for joint in joints}
    places = {name: np.eye(4) for name in names - children}
    waiting = list(joints)
    while waiting:
        ready = [joint for joint in waiting if joint.parent in places]
        if not ready:
            raise ConfigError(
                "hangs on no link of this file", file=file, key=f"joint '{waiting[0].name}'"
            )
        for joint in ready:
            moved = _moved(joint, values.get(joint.name, 0.0))
            places[joint.child] = places[joint.parent] @ matrix(joint.origin) @ moved
            waiting.remove(joint)
    return places


def _moved(joint: Joint, value: float) -> Array:
    if joint.kind == "prismatic":
        x, y, z = (value * part for part in joint.axis)
        return translation(x, y, z)
    turn = np.eye(4)
    if joint.moves:
        turn[:3, :3] = about(joint.axis, value)
    return turn
