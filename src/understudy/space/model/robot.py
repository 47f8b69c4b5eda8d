"""What a robot is made of: links, joints, shapes, masses. Plain frozen values, numpy-free."""

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
    """Along z; ``length`` is the straight part, the two half spheres come on top."""

    radius: float
    length: float


@dataclass(frozen=True, slots=True)
class Mesh:
    """A reference; whoever needs the triangles is given a loader."""

    filename: str
    scale: Vector = (1.0, 1.0, 1.0)


Geometry = Box | Sphere | Cylinder | Capsule | Mesh


@dataclass(frozen=True, slots=True)
class Solid:
    """A shape at its place in the frame of its link."""

    geometry: Geometry
    origin: Pose = ORIGIN
    name: str = ""
    color: tuple[float, float, float, float] | None = None


# ── links and joints ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Inertial:
    """Mass, and the tensor about the centre of mass in the axes of ``origin``."""

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
    """The number under which collision pairs name this link; None: its place in the chain."""


@dataclass(frozen=True, slots=True)
class Joint:
    """Limits are in rad (m), rad/s, rad/s², rad/s³ and Nm (N); infinite where none is stated."""

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

    @property
    def moves(self) -> bool:
        return self.kind != "fixed"


@dataclass(frozen=True, slots=True)
class RobotModel:
    """A tree of links of which one serial arm, from ``base`` to ``tip``, can move."""

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    base: str
    tip: str

    def link(self, name: str) -> Link:
        return next(link for link in self.links if link.name == name)

    def way(self) -> tuple[Joint, ...]:
        """The joints from base to tip, fixed ones included."""
        leads_to = {joint.child: joint for joint in self.joints}
        found: list[Joint] = []
        name = self.tip
        while name != self.base:
            found.append(leads_to[name])
            name = leads_to[name].parent
        return tuple(reversed(found))

    def moving(self) -> tuple[Joint, ...]:
        return tuple(joint for joint in self.way() if joint.moves)
