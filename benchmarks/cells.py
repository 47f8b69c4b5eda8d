"""The dense cell that collision checks are measured in: ours, and the same for pinocchio."""

from pathlib import Path

import coal
import numpy as np
import pinocchio
import trimesh

from understudy.space.collision.detector import CollisionDetector
from understudy.space.collision.solids import Part
from understudy.space.kinematics.chain import Chain, chain
from understudy.space.model.robot import Box, Capsule, Cylinder, Sphere
from understudy.space.model.shapes import Shape, TriangleMesh, as_object
from understudy.space.model.urdf import read
from understudy.space.transform import Array, rotation_about, translation

ROBOTS = Path(__file__).parents[1] / "src" / "understudy" / "catalog" / "robots"
TOOL = ((0.05, 0.03, 0.06), (0.14, 0.02, 0.08), (0.22, 0.008, 0.06))
"""Place along the flange's z, radius and length of the tool's capsules."""


def g60() -> Chain:
    return chain(read((ROBOTS / "g60.urdf").read_text()))


def dense_cell(arm: Chain, seed: int) -> tuple[CollisionDetector, np.random.Generator]:
    """Ten moving shapes, twenty fixed ones around them, and a mesh of 5,120 triangles."""
    rng = np.random.default_rng(seed)
    detector = CollisionDetector(arm)
    for k, (z, radius, length) in enumerate(TOOL):
        tool = as_object(f"tool{k}", Capsule(radius, length), translation(0.02 * k, 0, z))
        detector.attach(tool)
    while len(detector.objects) < 20:
        k = len(detector.objects)
        detector.add_object(as_object(f"thing{k}", _shape(k, rng), _around(rng)))
        if detector.foot_contact.collision:
            detector.remove_object(f"thing{k}")
    ball = trimesh.creation.icosphere(4, 0.2)
    points = np.array(ball.vertices)
    points *= 1.0 + 0.1 * np.sin(45.0 * points[:, :1])
    mesh = TriangleMesh(points, np.array(ball.faces, dtype=np.int64))
    detector.add_object(as_object("mesh", mesh, translation(0.7, -0.5, 0.3)))
    return detector, rng


def _shape(k: int, rng: np.random.Generator) -> Shape:
    a, b, c = rng.uniform(0.05, 0.2, 3)
    shapes = (Box((a, b, c)), Cylinder(a / 2, b), Sphere(a / 2), Capsule(a / 2, b))
    return shapes[k % 4]


def _around(rng: np.random.Generator) -> Array:
    axis = rng.normal(size=3)
    angle, away = rng.uniform(-np.pi, np.pi), rng.uniform(0.35, 1.1)
    place = np.eye(4)
    place[:3, :3] = rotation_about(axis / np.linalg.norm(axis), rng.uniform(0, 3))
    place[:3, 3] = away * np.cos(angle), away * np.sin(angle), rng.uniform(-0.2, 1.4)
    return place


def as_coal(shape: Shape) -> coal.CollisionGeometry:
    match shape:
        case Box(size=size):
            return coal.Box(*size)
        case Sphere(radius=r):
            return coal.Sphere(r)
        case Cylinder(radius=r, length=length):
            return coal.Cylinder(r, length)
        case Capsule(radius=r, length=length):
            return coal.Capsule(r, length)
    assert isinstance(shape, TriangleMesh), f"no peer is made of {shape}"
    model = coal.BVHModelOBBRSS()
    model.beginModel(len(shape.triangles), len(shape.vertices))
    for corners in shape.corners():
        model.addTriangle(*corners)
    model.endModel()
    return model


class Pinocchio:
    """The same cell behind pinocchio's broad phase (sorted sweep and prune)."""

    def __init__(self, detector: CollisionDetector) -> None:
        self.model = pinocchio.buildModelFromXML((ROBOTS / "g60.urdf").read_text())
        self.data = self.model.createData()
        self.geometry = pinocchio.GeometryModel()
        world, parts = detector.world, detector._built_now().parts
        for k, part in enumerate(parts):
            self.geometry.addGeometryObject(self._object(detector, part, k))
        pairs = [
            (i, j) for i in range(world.foot, world.moving) for j in range(world.moving, len(parts))
        ]
        pairs += [(int(i), int(j)) for i, j in world.partners]
        for i, j in pairs:
            self.geometry.addCollisionPair(pinocchio.CollisionPair(i, j))
        self.geometry_data = pinocchio.GeometryData(self.geometry)
        self.manager = pinocchio.BroadPhaseManager_SSaPCollisionManager(
            self.model, self.geometry, self.geometry_data
        )
        self.callback = pinocchio.CollisionCallBackDefault(self.geometry, self.geometry_data)

    def _object(self, detector: CollisionDetector, part: Part, k: int) -> pinocchio.GeometryObject:
        turn = np.eye(4)
        if part.body > 0:
            assert detector.chain is not None
            turn[:3, :3] = detector.chain.align[part.body - 1].T
        place = pinocchio.SE3(turn @ part.place)
        joint = max(part.body, 0)
        return pinocchio.GeometryObject(f"{k}", joint, place, as_coal(part.shape))

    def collides(self, q: Array) -> bool:
        pinocchio.updateGeometryPlacements(
            self.model, self.data, self.geometry, self.geometry_data, q
        )
        self.manager.update(False)
        return bool(pinocchio.computeCollisions(self.manager, self.callback))
