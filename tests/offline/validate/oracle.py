"""Oracle of the clearances of a validation: pinocchio and coal, by branch and bound.

It shares nothing with the sweep but the planned path: frames come from pinocchio's model of the
URDF, distances from coal, and the bound of the motion between two samples is the plain one: the
travel of every joint times the longest lever that the links behind it can have.
"""

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from itertools import combinations, pairwise

import coal
import numpy as np
import pinocchio
from tests.space.collision.scenes import as_coal

from understudy.config import CellConfig
from understudy.motion.path import Path
from understudy.offline.robot import NO_RULES, offline_robot
from understudy.offline.walk import PlannedMotion
from understudy.space.model.shapes import CollisionObject
from understudy.space.transform import Array

TOLERANCE = 0.01
"""Share of the smallest distance that the branch and bound leaves open."""
CONTACT = 1e-7
SAMPLES = 3
"""Places on a piece at which every pair is measured before the search begins."""


@dataclass(frozen=True)
class Placed:
    """A shape on a link of the arm (frame 0: in the world)."""

    name: str
    link: str
    joint: int
    geometry: coal.CollisionGeometry
    place: pinocchio.SE3
    levers: Array
    """Per joint, the largest distance that its points can have from the joint's axis."""


class Oracle:
    """An arm of a cell with one tool, its self-collision pairs except ``left_out``."""

    def __init__(
        self, config: CellConfig, robot: str, left_out: set[frozenset[str]] | None = None
    ) -> None:
        own = config.robots[robot].config
        text = config.read_file(own.model).decode()
        self.model = pinocchio.buildModelFromXML(text)
        self.data = self.model.createData()
        self._lengths = [float(np.linalg.norm(p.translation)) for p in self.model.jointPlacements]
        tree = ET.fromstring(text)
        tip = tree.findall("link")[-1].get("name", "")
        self.moving = [shape for link in tree.findall("link") for shape in self._of_link(link)]
        for each in own.tools[own.tool].shapes:
            thing = each.build(config.read_file)
            named = f"{own.tools[own.tool].name}.{thing.name}"
            self.moving.append(self._on(tip, named, thing.place, as_coal(thing.shape)))
        self.standing = [self._object(thing) for thing in config.environment().everything()]
        self._joined = {
            frozenset((j.find("parent").get("link"), j.find("child").get("link")))  # type: ignore[union-attr]
            for j in tree.findall("joint")
        }
        self.pairs = self._all_pairs(left_out or set())
        self._config, self._robot = config, robot

    def _of_link(self, link: ET.Element) -> list[Placed]:
        round_ = {each.get("name") for each in link.findall("collision_checking/capsule")}
        found = []
        for shape in link.findall("collision"):
            origin, form = shape.find("origin"), shape.find("geometry")
            assert form is not None
            place = np.eye(4)
            if origin is not None:
                xyz, rpy = (
                    np.array(origin.get(key, "0 0 0").split(), float) for key in ("xyz", "rpy")
                )
                place[:3, :3], place[:3, 3] = pinocchio.rpy.rpyToMatrix(*rpy), xyz
            geometry = _geometry(form[0], shape.get("name") in round_)
            found.append(self._on(link.get("name", ""), link.get("name", ""), place, geometry))
        return found

    def _on(self, link: str, name: str, place: Array, shape: coal.CollisionGeometry) -> Placed:
        frame = self.model.frames[self.model.getFrameId(link, pinocchio.BODY)]
        put = frame.placement * pinocchio.SE3(place)
        shape.computeLocalAABB()
        levers = np.zeros(self.model.njoints - 1)
        far = float(np.linalg.norm(put.act(shape.aabb_center))) + shape.aabb_radius
        for k in range(frame.parentJoint, 0, -1):
            levers[k - 1] = far
            far += self._lengths[k]
        return Placed(name, link, frame.parentJoint, shape, put, levers)

    def _object(self, thing: CollisionObject) -> Placed:
        geometry = as_coal(thing.shape)
        geometry.computeLocalAABB()
        return Placed(
            thing.name,
            "",
            0,
            geometry,
            pinocchio.SE3(thing.place),
            np.zeros(self.model.njoints - 1),
        )

    def _all_pairs(self, left_out: set[frozenset[str]]) -> list[tuple[Placed, Placed]]:
        around = [(a, b) for a in self.moving if a.joint > 0 for b in self.standing]
        own = [
            (a, b)
            for b, a in combinations(self.moving, 2)
            if a.link != b.link
            and (
                frozenset((a.link, b.link)) not in self._joined
                or a.name != a.link
                or b.name != b.link
            )
            and frozenset((a.name, b.name)) not in left_out
        ]
        return around + own

    def paths(self, text: str) -> dict[int, Path]:
        """The planned path of every moving line."""
        found: dict[int, Path] = {}
        for event in offline_robot(self._config, self._robot).events(text, "", NO_RULES):
            if isinstance(event, PlannedMotion):
                path = event.plan.path
                for line in np.unique(path.line).tolist():
                    first, last = np.searchsorted(path.line, [line, line + 1]).tolist()
                    found[line] = path.rows(first, last)
        return found

    def least(self, path: Path, ceiling: float) -> float:
        """Smallest distance of all pairs on a path: at most ``TOLERANCE`` of it above the true one.

        0 if there is a contact. Distances above ``ceiling`` are not searched further: if the
        result is above it, so is the true one.
        """
        best = np.inf
        waiting = []
        for piece, length in enumerate(path.length.tolist()):
            edges = np.linspace(0.0, length, SAMPLES)
            waiting += [(piece, a, b, self.pairs) for a, b in pairwise(edges.tolist())]
        for piece, a, b, _ in waiting:
            best = min(best, self._least_at(path, piece, a), self._least_at(path, piece, b))
        while waiting and best > CONTACT:
            piece, a, b, pairs = waiting.pop()
            travel, middle = self._slopes(path, piece) * (b - a) / 2, (a + b) / 2
            self._pose(path, piece, middle)
            left = []
            for one, other in pairs:
                # Joints that carry both do not change their distance.
                moved = float(travel[other.joint : one.joint] @ one.levers[other.joint : one.joint])
                enough = min(best * (1.0 - TOLERANCE), ceiling) + moved
                if self._spheres(one, other) > enough:
                    continue
                d = self._distance(one, other)
                best = min(best, d)
                if d < enough:
                    left.append((one, other))
            if left:
                waiting += [(piece, a, middle, left), (piece, middle, b, left)]
        return 0.0 if best <= CONTACT else best

    def _least_at(self, path: Path, piece: int, s: float) -> float:
        self._pose(path, piece, s)
        return min((self._distance(*pair) for pair in self.pairs), default=np.inf)

    def _slopes(self, path: Path, piece: int) -> Array:
        rows, h = path.shape[piece], float(path.length[piece])
        return np.asarray(sum(n * np.abs(rows[n]) * h ** (n - 1) for n in range(1, len(rows))))

    def _pose(self, path: Path, piece: int, s: float) -> None:
        q = np.asarray(s ** np.arange(path.shape.shape[1]) @ path.shape[piece])
        pinocchio.forwardKinematics(self.model, self.data, q)

    def _frame(self, one: Placed) -> pinocchio.SE3:
        return self.data.oMi[one.joint] * one.place if one.joint else one.place

    def _spheres(self, a: Placed, b: Placed) -> float:
        """Lower bound of the distance, from bounding spheres."""
        p = self._frame(a).act(a.geometry.aabb_center) - self._frame(b).act(b.geometry.aabb_center)
        return float(np.linalg.norm(p) - a.geometry.aabb_radius - b.geometry.aabb_radius)

    def _distance(self, a: Placed, b: Placed) -> float:
        request = coal.DistanceRequest()
        request.enable_signed_distance, request.gjk_tolerance = False, 1e-9
        p, r = self._frame(a), self._frame(b)
        return max(
            float(
                coal.distance(
                    a.geometry,
                    coal.Transform3s(p.rotation, p.translation),
                    b.geometry,
                    coal.Transform3s(r.rotation, r.translation),
                    request,
                    coal.DistanceResult(),
                )
            ),
            0.0,
        )


def _geometry(form: ET.Element, round_: bool) -> coal.CollisionGeometry:
    if form.tag == "box":
        return coal.Box(*(float(x) for x in form.get("size", "").split()))
    radius = float(form.get("radius", ""))
    if form.tag == "sphere":
        return coal.Sphere(radius)
    length = float(form.get("length", ""))
    return coal.Capsule(radius, length) if round_ else coal.Cylinder(radius, length)
