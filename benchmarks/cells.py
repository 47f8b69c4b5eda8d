"""The dense cell that collision checks are measured in: ours, and the same for pinocchio."""

from pathlib import Path

import coal
import numpy as np
import pinocchio
import trimesh

from benchmarks import Case
from understudy.app.reach import arm_with_initial_tool
from understudy.config import load_config
from understudy.space.collision.detector import CollisionDetector
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


def scene_of(case: Case) -> tuple[CollisionDetector, np.random.Generator]:
    """The dense cell of this seed, or the arm and the environment of a cell file."""
    seed = 1 if case.seed is None else case.seed
    if not case.scene:
        return dense_cell(g60(), seed)
    _, arm = arm_with_initial_tool(load_config(case.scene))
    return arm.detector, np.random.default_rng(seed)


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


def checked_pairs(detector: CollisionDetector) -> list[tuple[int, int]]:
    """Indices of parts that are checked against each other: the arm's own, then with objects."""
    world, count = detector.world, len(detector._built_now().parts)
    own = [(int(i), int(j)) for i, j in world.partners]
    return own + [
        (i, j) for i in range(world.foot, world.moving) for j in range(world.moving, count)
    ]


class Pinocchio:
    """The same cell behind pinocchio's broad phase (sorted sweep and prune)."""

    def __init__(self, detector: CollisionDetector) -> None:
        world, parts = detector.world, detector._built_now().parts
        self.model = pinocchio.Model()
        for k, (row, slides) in enumerate(zip(world.rest, world.slides, strict=True)):
            kind = pinocchio.JointModelPZ() if slides else pinocchio.JointModelRZ()
            place = pinocchio.SE3(row[:9].reshape(3, 3), row[9:])
            self.model.addJoint(k, kind, place, f"joint{k + 1}")
        self.data = self.model.createData()
        self.geometry = pinocchio.GeometryModel()
        for k, part in enumerate(parts):
            self.geometry.addGeometryObject(
                pinocchio.GeometryObject(
                    f"{k}", max(part.body, 0), pinocchio.SE3(part.place), as_coal(part.shape)
                )
            )
        for i, j in checked_pairs(detector):
            self.geometry.addCollisionPair(pinocchio.CollisionPair(i, j))
        self.geometry_data = pinocchio.GeometryData(self.geometry)
        self.manager = pinocchio.BroadPhaseManager_SSaPCollisionManager(
            self.model, self.geometry, self.geometry_data
        )
        self.callback = pinocchio.CollisionCallBackDefault(self.geometry, self.geometry_data)

    def places(self, q: Array, parts: range) -> list[pinocchio.SE3]:
        """Frames of these parts."""
        pinocchio.updateGeometryPlacements(
            self.model, self.data, self.geometry, self.geometry_data, q
        )
        return [self.geometry_data.oMg[k] for k in parts]

    def collides(self, q: Array) -> bool:
        self.places(q, range(0))
        self.manager.update(False)
        return bool(pinocchio.computeCollisions(self.manager, self.callback))
