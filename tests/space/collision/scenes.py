"""Shapes, poses and cells for the collision tests, and the same scenes for coal."""

import coal
import numpy as np
import trimesh

from understudy.space.collision.detector import CollisionDetector
from understudy.space.collision.distance import distance, scratch
from understudy.space.collision.solids import Part, Solids
from understudy.space.collision.world import (
    Placement,
    ShapeContact,
    assembled,
    placement,
    pose,
    shape_contact,
)
from understudy.space.kinematics.chain import Chain
from understudy.space.model.robot import Box, Capsule, Cylinder, Sphere
from understudy.space.model.shapes import Hull, Shape, TriangleMesh, as_object
from understudy.space.transform import Array, rotation_about, translation

KINDS = ("box", "sphere", "cylinder", "capsule", "hull", "mesh")


def any_turn(rng: np.random.Generator) -> Array:
    axis = rng.normal(size=3)
    return rotation_about(axis / np.linalg.norm(axis), rng.uniform(-np.pi, np.pi))


def any_place(rng: np.random.Generator, spread: float) -> Array:
    place = np.eye(4)
    place[:3, :3], place[:3, 3] = any_turn(rng), rng.uniform(-spread, spread, 3)
    return place


def ball(radius: float = 0.25, fineness: int = 2, waves: float = 0.1) -> TriangleMesh:
    """A closed mesh that is not convex."""
    sphere = trimesh.creation.icosphere(fineness, 1.0)
    points = np.array(sphere.vertices)
    points *= radius * (1.0 + waves * np.sin(7.0 * points[:, :1]))
    return TriangleMesh(points, np.array(sphere.faces, dtype=np.int64))


def sheet(width: float, depth: float) -> TriangleMesh:
    """Two triangles, without thickness."""
    x, y = width / 2, depth / 2
    points = np.array([(-x, -y, 0.0), (x, -y, 0.0), (x, y, 0.0), (-x, y, 0.0)])
    return TriangleMesh(points, np.array([(0, 1, 2), (0, 2, 3)]))


def tube(length: float = 1.0, radius: float = 0.1) -> TriangleMesh:
    """The side of a cylinder about z, open at both ends."""
    whole = trimesh.creation.cylinder(radius, length, sections=24)
    side = np.abs(whole.face_normals[:, 2]) < 0.5
    return TriangleMesh(np.array(whole.vertices), np.array(whole.faces[side], dtype=np.int64))


def any_shape(kind: str, rng: np.random.Generator) -> Shape:
    a, b, c = rng.uniform(0.02, 0.3, 3)
    match kind:
        case "box":
            return Box((a, b, c))
        case "sphere":
            return Sphere(a)
        case "cylinder":
            return Cylinder(a, 3 * b)
        case "capsule":
            return Capsule(a, 3 * b)
        case "hull":
            return Hull(rng.uniform(-0.3, 0.3, (rng.integers(4, 20), 3)))
    return ball(a)


# ── ours ────────────────────────────────────────────────────────────────────────────────────────


def pair(a: Shape, at_a: Array, b: Shape, at_b: Array) -> tuple[Solids, Placement]:
    world = assembled(None, (), [Part("a", a, at_a), Part("b", b, at_b)])
    return world.solids, placement(world)


def our_distance(a: Shape, at_a: Array, b: Shape, at_b: Array, *, enough: float = np.inf) -> float:
    solids, at = pair(a, at_a, b, at_b)
    return distance(solids, at.placed, at.ends, 0, 1, enough, np.inf, -1, True, scratch())[0]


def our_contact(a: Shape, at_a: Array, b: Shape, at_b: Array) -> ShapeContact:
    solids, at = pair(a, at_a, b, at_b)
    return shape_contact(solids, at, 0, 1, scratch())


# ── coal ────────────────────────────────────────────────────────────────────────────────────────


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
        case Hull(points=points):
            hull = trimesh.convex.convex_hull(points)
            corners, faces = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
            for point in hull.vertices:
                corners.append(point)
            for face in hull.faces:
                faces.append(coal.Triangle(*(int(k) for k in face)))
            return coal.Convex(corners, faces)
    model = coal.BVHModelOBBRSS()
    model.beginModel(len(shape.triangles), len(shape.vertices))
    for corners in shape.corners():
        model.addTriangle(*corners)
    model.endModel()
    return model


def moved(place: Array) -> coal.Transform3s:
    return coal.Transform3s(place[:3, :3], place[:3, 3])


def coal_distance(a: Shape, at_a: Array, b: Shape, at_b: Array) -> float:
    """coal: oracle of distance, oracle of line_distance, oracle of core_distance."""
    request = coal.DistanceRequest()
    request.gjk_tolerance, request.enable_signed_distance = 1e-9, False
    found: float = coal.distance(
        as_coal(a), moved(at_a), as_coal(b), moved(at_b), request, coal.DistanceResult()
    )
    return found


def coal_depth(a: Shape, at_a: Array, b: Shape, at_b: Array) -> float | None:
    """coal: oracle of core_depth. None where the shapes are apart, or coal found no depth."""
    request, result = coal.CollisionRequest(), coal.CollisionResult()
    request.epa_max_iterations, request.epa_tolerance = 200, 1e-8
    if not coal.collide(as_coal(a), moved(at_a), as_coal(b), moved(at_b), request, result):
        return None
    depth: float = result.getContact(0).penetration_depth
    return abs(depth)


# ── cells ───────────────────────────────────────────────────────────────────────────────────────


def with_tools(arm: Chain) -> CollisionDetector:
    """The arm with a torch of three capsules."""
    detector = CollisionDetector(arm)
    for k, (z, radius, length) in enumerate(((0.06, 0.025, 0.06), (0.14, 0.02, 0.06))):
        detector.attach(as_object(f"torch{k}", Capsule(radius, length), translation(0, 0, z)))
    tip = translation(0.02, 0.0, 0.22)
    detector.attach(as_object("tip", Capsule(0.006, 0.06), tip))
    return detector


def crowd(detector: CollisionDetector, rng: np.random.Generator, count: int = 12) -> None:
    """Objects of all kinds around the arm: thin ones, meshes and sheets among them."""
    for k in range(count):
        place = any_place(rng, 0.0)
        angle, radius = rng.uniform(-np.pi, np.pi), rng.uniform(0.35, 1.1)
        place[:3, 3] = radius * np.cos(angle), radius * np.sin(angle), rng.uniform(-0.2, 1.4)
        shape = (
            lambda: any_shape(KINDS[rng.integers(6)], rng),
            lambda: Box((0.0002, rng.uniform(0.1, 0.5), rng.uniform(0.1, 0.5))),
            lambda: Cylinder(0.0005, rng.uniform(0.2, 0.8)),
            lambda: sheet(rng.uniform(0.1, 0.4), rng.uniform(0.1, 0.4)),
        )[(0, 0, 1, 2, 3, 0)[k % 6]]()
        detector.add_object(as_object(f"thing{k}", shape, place))
        if detector.foot_contact.collision:
            detector.remove_object(f"thing{k}")


class Coal:
    """The whole world of a detector in coal: every pair, one configuration at a time."""

    def __init__(self, detector: CollisionDetector) -> None:
        self.world, self.at = detector.world, placement(detector.world)
        parts = detector._built_now().parts
        self.shapes = [as_coal(part.shape) for part in parts]
        ours = range(self.world.foot, self.world.moving)
        self.pairs = [(i, j) for i in ours for j in range(self.world.moving, len(parts))]
        self.pairs += [(int(i), int(j)) for i, j in self.world.partners]
        self.request = coal.CollisionRequest()

    def _places(self, q: Array) -> list[coal.Transform3s]:
        pose(self.world, q, self.at)
        return [coal.Transform3s(row[:9].reshape(3, 3), row[9:]) for row in self.at.placed]

    def contact(self, q: Array) -> tuple[int, int] | None:
        """The first pair that touches at q: oracle of least_distance."""
        places = self._places(q)
        for i, j in self.pairs:
            result = coal.CollisionResult()
            if coal.collide(
                self.shapes[i], places[i], self.shapes[j], places[j], self.request, result
            ):
                return i, j
        return None

    def least(self, q: Array) -> float:
        places = self._places(q)
        request = coal.DistanceRequest()
        request.enable_signed_distance = False
        return min(
            float(
                coal.distance(
                    self.shapes[i],
                    places[i],
                    self.shapes[j],
                    places[j],
                    request,
                    coal.DistanceResult(),
                )
            )
            for i, j in self.pairs
        )
