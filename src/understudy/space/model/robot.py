"""Robot model: links, joints, shapes and masses as frozen values; no numpy."""

import math
from dataclasses import dataclass

from understudy.space.pose import ORIGIN, Pose

Vector = tuple[float, float, float]


# ── shapes, each centred in its own frame ───────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Box:
    size: Vector


@dataclass(frozen=True, slots=True)
class Sphere:
    radius: float


@dataclass(frozen=True, slots=True)
class Cylinder:
    """Along z."""

    radius: float
    length: float


@dataclass(frozen=True, slots=True)
class Capsule:
    """Along z; ``length`` is the straight part, without the two half spheres at its ends."""

    radius: float
    length: float


@dataclass(frozen=True, slots=True)
class Mesh:
    """Reference to a mesh file; `shapes.shape_of` looks up its triangles."""

    filename: str
    scale: Vector = (1.0, 1.0, 1.0)


Geometry = Box | Sphere | Cylinder | Capsule | Mesh


@dataclass(frozen=True, slots=True)
class Solid:
    """A shape and its pose in the frame of its link."""

    geometry: Geometry
    origin: Pose = ORIGIN
    name: str = ""
    color: tuple[float, float, float, float] | None = None


# ── links and joints ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Inertial:
    """Mass, and inertia tensor about the centre of mass in the axes of ``origin``."""

    mass: float
    origin: Pose = ORIGIN
    ixx: float = 0.0
    ixy: float = 0.0
    ixz: float = 0.0
    iyy: float = 0.0
    iyz: float = 0.0
    izz: float = 0.0


@dataclass(frozen=True, slots=True)
class Link:
    name: str
    inertial: Inertial = Inertial(0.0)
    collision: tuple[Solid, ...] = ()
    visual: tuple[Solid, ...] = ()
    index: int | None = None
    """Number of this link in lists of collision pairs; None: its position in the chain."""


@dataclass(frozen=True, slots=True)
class Joint:
    """Limits are in rad (m), rad/s, rad/s², rad/s³ and Nm (N); infinite where none is given."""

    name: str
    kind: str  # revolute, continuous, prismatic or fixed
    parent: str
    child: str
    origin: Pose = ORIGIN
    axis: Vector = (1.0, 0.0, 0.0)
    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf
    effort: float = math.inf
    acceleration: float = math.inf
    jerk: float = math.inf
    damping: float = 0.0
    friction: float = 0.0
    mimics: str = ""
    """Joint that this one follows."""

    @property
    def moves(self) -> bool:
        return self.kind != "fixed"


@dataclass(frozen=True, slots=True)
class RobotModel:
    """A tree of links; only the joints of one serial arm, from ``base`` to ``tip``, can move."""

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    base: str
    tip: str
    doubts: tuple[str, ...] = ()
    """Limits that the file does not have, and what stands in their place."""

    def link(self, name: str) -> Link:
        return next(link for link in self.links if link.name == name)

    def joints_to_tip(self) -> tuple[Joint, ...]:
        """The joints from base to tip, fixed ones included."""
        leads_to = {joint.child: joint for joint in self.joints}
        found: list[Joint] = []
        name = self.tip
        while name != self.base:
            found.append(leads_to[name])
            name = leads_to[name].parent
        return tuple(reversed(found))

    def moving(self) -> tuple[Joint, ...]:
        return tuple(joint for joint in self.joints_to_tip() if joint.moves)
