"""The rigid bodies of an arm: links that fixed joints hold together, as one piece each."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from understudy.space.model.robot import Inertial, Joint, RobotModel, Solid
from understudy.space.transform import Array, matrix, pose


@dataclass(frozen=True, eq=False)
class Body:
    """What moves with one joint (the first body with none), in the frame of its first link.

    ``inertia`` is the 3×3 tensor about the centre of mass ``com``, in the axes of the body.
    """

    name: str
    index: int
    mass: float
    com: Array
    inertia: Array
    collision: tuple[Solid, ...]
    visual: tuple[Solid, ...]


def bodies(model: RobotModel) -> tuple[Body, ...]:
    """Foot first, then one body for every moving joint on the way to the tip."""
    first_links = (model.base, *(joint.child for joint in model.moving()))
    return tuple(_body(model, name, place) for place, name in enumerate(first_links))


def _body(model: RobotModel, first: str, place: int) -> Body:
    placed = [(model.link(name), at) for name, at in _held(first, np.eye(4), model.joints)]
    mass, com, inertia = _together((link.inertial, at) for link, at in placed)
    stated = [link.index for link, _ in placed if link.index is not None]
    return Body(
        first,
        stated[0] if stated else place,
        mass,
        com,
        inertia,
        tuple(_moved(solid, at) for link, at in placed for solid in link.collision),
        tuple(_moved(solid, at) for link, at in placed for solid in link.visual),
    )


def _held(name: str, at: Array, joints: Iterable[Joint]) -> list[tuple[str, Array]]:
    """The link and all that fixed joints hang on it, with their places."""
    found = [(name, at)]
    for joint in joints:
        if joint.parent == name and not joint.moves:
            found += _held(joint.child, at @ matrix(joint.origin), joints)
    return found


def _moved(solid: Solid, at: Array) -> Solid:
    if np.array_equal(at, np.eye(4)):
        return solid
    return replace(solid, origin=pose(at @ matrix(solid.origin)))


def _together(parts: Iterable[tuple[Inertial, Array]]) -> tuple[float, Array, Array]:
    """Mass, centre of mass and tensor of several pieces (Steiner)."""
    pieces = []
    for inertial, at in parts:
        place = at @ matrix(inertial.origin)
        pieces.append((inertial.mass, place[:3, 3], _tensor(inertial, place[:3, :3])))
    mass = sum(m for m, _, _ in pieces)
    com = sum((m * c for m, c, _ in pieces), np.zeros(3)) / mass if mass else np.zeros(3)
    total = np.zeros((3, 3))
    for m, c, tensor in pieces:
        d = c - com
        total += tensor + m * (d @ d * np.eye(3) - np.outer(d, d))
    return mass, com, total


def _tensor(i: Inertial, turn: Array) -> Array:
    own = np.array([[i.ixx, i.ixy, i.ixz], [i.ixy, i.iyy, i.iyz], [i.ixz, i.iyz, i.izz]])
    return np.asarray(turn @ own @ turn.T)
