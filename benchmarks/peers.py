"""Other collision libraries with the dense cell of ``cells``: what each of them needs to answer
"does this configuration collide?" for the same pairs of shapes.

Each peer is a class with `collides(q)`, called from Python as its users call it. They are
installed by `make bench`; one that is not installed is named in the table instead of measured.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from benchmarks.cells import Pinocchio, checked_pairs
from understudy.space.collision.detector import CollisionDetector
from understudy.space.model.robot import Box, Capsule, Cylinder, Sphere
from understudy.space.model.shapes import Shape, TriangleMesh
from understudy.space.transform import Array


class Peer(NamedTuple):
    """A library to compare with: its package, its cell, and what it does differently."""

    name: str
    package: str
    cell: Callable[[CollisionDetector], Any]
    caveat: str = ""

    @property
    def installed(self) -> bool:
        return find_spec(self.package) is not None


class Bodies:
    """Parts of a detector, the pairs of them that are checked, and the frames of the joints."""

    def __init__(self, detector: CollisionDetector) -> None:
        world, parts = detector.world, detector._built_now().parts
        self.shapes = [part.shape for part in parts]
        self.places = [part.place for part in parts]
        self.bodies = [max(part.body, 0) for part in parts]
        self.fixed = range(world.moving, len(parts))
        self.moving = range(world.foot, world.moving)
        self.own = [(int(i), int(j)) for i, j in world.partners]
        self.slides = [bool(slides) for slides in world.slides]
        self.joints = [
            np.vstack([np.column_stack([row[:9].reshape(3, 3), row[9:]]), np.eye(4)[3]])
            for row in world.rest
        ]


class Mujoco:
    """MuJoCo: robot and fixed shapes collide by their groups, pairs of the robot are listed."""

    def __init__(self, detector: CollisionDetector) -> None:
        import mujoco

        bodies = Bodies(detector)
        spec = mujoco.MjSpec()
        at = [spec.worldbody]
        kinds = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
        for place, slides in zip(bodies.joints, bodies.slides, strict=True):
            made = at[-1].add_body(pos=place[:3, 3], quat=_quaternion(place), mass=1.0)
            made.inertia = [1.0, 1.0, 1.0]
            made.explicitinertial = True
            made.add_joint(type=kinds[slides], axis=[0, 0, 1])
            at.append(made)
        for k, (body, place) in enumerate(zip(bodies.bodies, bodies.places, strict=True)):
            at[body].add_geom(
                name=f"{k}",
                pos=place[:3, 3],
                quat=_quaternion(place),
                contype=int(k in bodies.moving),
                conaffinity=int(k in bodies.fixed),
                **_mujoco_form(mujoco, spec, k, bodies.shapes[k]),
            )
        for i, j in bodies.own:
            spec.add_pair(geomname1=f"{i}", geomname2=f"{j}")
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        self.place, self.collide = mujoco.mj_kinematics, mujoco.mj_collision

    def collides(self, q: Array) -> bool:
        self.data.qpos[:] = q
        self.place(self.model, self.data)
        self.collide(self.model, self.data)
        return bool(self.data.ncon)


def _mujoco_form(mujoco: Any, spec: Any, k: int, shape: Shape) -> dict[str, Any]:
    kinds = mujoco.mjtGeom
    match shape:
        case Box(size=size):
            return {"type": kinds.mjGEOM_BOX, "size": np.array(size) / 2}
        case Sphere(radius=r):
            return {"type": kinds.mjGEOM_SPHERE, "size": [r, 0, 0]}
        case Cylinder(radius=r, length=length):
            return {"type": kinds.mjGEOM_CYLINDER, "size": [r, length / 2, 0]}
        case Capsule(radius=r, length=length):
            return {"type": kinds.mjGEOM_CAPSULE, "size": [r, length / 2, 0]}
    assert isinstance(shape, TriangleMesh)
    spec.add_mesh(
        name=f"mesh{k}",
        uservert=shape.vertices.ravel().tolist(),
        userface=shape.triangles.ravel().tolist(),
    )
    return {"type": kinds.mjGEOM_MESH, "meshname": f"mesh{k}"}


class Fcl:
    """python-fcl with two dynamic trees of boxes; pinocchio places the links."""

    def __init__(self, detector: CollisionDetector) -> None:
        import fcl

        self.fcl, self.pin = fcl, Pinocchio(detector)
        bodies = Bodies(detector)
        self.objects = [
            fcl.CollisionObject(_fcl_form(fcl, shape), fcl.Transform(place[:3, :3], place[:3, 3]))
            for shape, place in zip(bodies.shapes, bodies.places, strict=True)
        ]
        self.robot, self.fixed = (fcl.DynamicAABBTreeCollisionManager() for _ in range(2))
        self.robot.registerObjects([self.objects[i] for i in bodies.moving])
        self.fixed.registerObjects([self.objects[i] for i in bodies.fixed])
        self.robot.setup()
        self.fixed.setup()
        self.moving, self.own = bodies.moving, bodies.own

    def collides(self, q: Array) -> bool:
        fcl = self.fcl
        for k, place in zip(self.moving, self.pin.places(q, self.moving), strict=True):
            self.objects[k].setTransform(fcl.Transform(place.rotation, place.translation))
        self.robot.update()
        found = fcl.CollisionData()
        self.robot.collide(self.fixed, found, fcl.defaultCollisionCallback)
        if found.result.is_collision:
            return True
        return any(fcl.collide(self.objects[i], self.objects[j]) for i, j in self.own)


def _fcl_form(fcl: Any, shape: Shape) -> Any:
    match shape:
        case Box(size=size):
            return fcl.Box(*size)
        case Sphere(radius=r):
            return fcl.Sphere(r)
        case Cylinder(radius=r, length=length):
            return fcl.Cylinder(r, length)
        case Capsule(radius=r, length=length):
            return fcl.Capsule(r, length)
    assert isinstance(shape, TriangleMesh)
    made = fcl.BVHModel()
    made.beginModel(len(shape.vertices), len(shape.triangles))
    made.addSubModel(shape.vertices, shape.triangles)
    made.endModel()
    return made


class Drake:
    """Drake's SceneGraph; pairs that are not checked are filtered out."""

    def __init__(self, detector: CollisionDetector) -> None:
        from pydrake.geometry import CollisionFilterDeclaration, GeometrySet
        from pydrake.math import RigidTransform
        from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, CoulombFriction
        from pydrake.multibody.tree import (
            FixedOffsetFrame,
            PrismaticJoint,
            RevoluteJoint,
            SpatialInertia,
        )
        from pydrake.systems.framework import DiagramBuilder

        bodies = Bodies(detector)
        builder = DiagramBuilder()
        plant, scene = AddMultibodyPlantSceneGraph(builder, time_step=0.0)
        at = [plant.world_body()]
        for k, (place, slides) in enumerate(zip(bodies.joints, bodies.slides, strict=True)):
            body = plant.AddRigidBody(f"link{k}", SpatialInertia.SolidSphereWithMass(1.0, 0.1))
            start = FixedOffsetFrame(f"place{k}", at[-1].body_frame(), RigidTransform(place))
            joint = PrismaticJoint if slides else RevoluteJoint
            frames = plant.AddFrame(start), body.body_frame()
            plant.AddJoint(joint(f"joint{k}", *frames, [0, 0, 1]))
            at.append(body)
        forms = zip(bodies.bodies, bodies.places, bodies.shapes, strict=True)
        friction = CoulombFriction(1.0, 1.0)
        ids = [
            plant.RegisterCollisionGeometry(
                at[body], RigidTransform(place), _drake_form(shape), f"{k}", friction
            )
            for k, (body, place, shape) in enumerate(forms)
        ]
        plant.Finalize()
        wanted = {frozenset(pair) for pair in checked_pairs(detector)}
        rules = scene.collision_filter_manager()
        for i, one in enumerate(ids):
            others = [ids[j] for j in range(i) if frozenset((i, j)) not in wanted]
            if others:
                rules.Apply(
                    CollisionFilterDeclaration().ExcludeBetween(
                        GeometrySet(one), GeometrySet(others)
                    )
                )
        diagram = builder.Build()
        self.whole = diagram.CreateDefaultContext()
        self.plant = plant
        self.context = plant.GetMyMutableContextFromRoot(self.whole)
        self.scene_context = scene.GetMyContextFromRoot(self.whole)
        self.query = scene.get_query_output_port()

    def collides(self, q: Array) -> bool:
        self.plant.SetPositions(self.context, q)
        return bool(self.query.Eval(self.scene_context).HasCollisions())


def _drake_form(shape: Shape) -> Any:
    from pydrake import geometry

    match shape:
        case Box(size=size):
            return geometry.Box(*size)
        case Sphere(radius=r):
            return geometry.Sphere(r)
        case Cylinder(radius=r, length=length):
            return geometry.Cylinder(r, length)
        case Capsule(radius=r, length=length):
            return geometry.Capsule(r, length)
    assert isinstance(shape, TriangleMesh)
    return geometry.Convex(shape.vertices.T, "mesh")


class Tesseract:
    """The discrete Bullet manager of tesseract; pinocchio places the links."""

    def __init__(self, detector: CollisionDetector) -> None:
        from tesseract_robotics import tesseract_collision, tesseract_common, tesseract_geometry

        self.common, self.collision = tesseract_common, tesseract_collision
        bodies, self.pin = Bodies(detector), Pinocchio(detector)
        self.factory = tesseract_collision.ContactManagersPluginFactory(
            TESSERACT_PLUGINS, tesseract_common.GeneralResourceLocator()
        )
        self.manager = self.factory.createDiscreteContactManager("BulletDiscreteBVHManager")
        for k, shape in enumerate(bodies.shapes):
            shapes = tesseract_geometry.GeometriesConst()
            shapes.append(_tesseract_form(tesseract_common, tesseract_geometry, shape))
            inside = tesseract_common.VectorIsometry3d()
            inside.append(tesseract_common.Isometry3d(np.eye(4)))
            assert self.manager.addCollisionObject(f"{k}", 0, shapes, inside)
            place = tesseract_common.Isometry3d(bodies.places[k])
            self.manager.setCollisionObjectsTransform(f"{k}", place)
        wanted = {frozenset(pair) for pair in checked_pairs(detector)}
        config = tesseract_collision.ContactManagerConfig()
        allowed = tesseract_common.AllowedCollisionMatrix()
        for i in range(len(bodies.shapes)):
            for j in range(i):
                if frozenset((i, j)) not in wanted:
                    allowed.addAllowedCollision(f"{i}", f"{j}", "not checked")
        config.acm = allowed
        config.acm_override_type = tesseract_collision.ACMOverrideType_ASSIGN
        self.names = tesseract_common.VectorString()
        self.moving = range(bodies.fixed.start)
        for k in self.moving:
            self.names.append(f"{k}")
        self.manager.setActiveCollisionObjects([f"{k}" for k in self.moving])
        self.manager.applyContactManagerConfig(config)
        self.manager.setDefaultCollisionMarginData(0.0)
        self.first = tesseract_collision.ContactRequest(tesseract_collision.ContactTestType_FIRST)

    def collides(self, q: Array) -> bool:
        places = self.common.VectorIsometry3d()
        for place in self.pin.places(q, self.moving):
            places.append(self.common.Isometry3d(place.homogeneous))
        self.manager.setCollisionObjectsTransform(self.names, places)
        found = self.collision.ContactResultMap()
        self.manager.contactTest(found, self.first)
        return bool(found.size())


TESSERACT_PLUGINS = """
contact_manager_plugins:
  search_libraries: [tesseract_collision_bullet_factories]
  discrete_plugins:
    default: BulletDiscreteBVHManager
    plugins:
      BulletDiscreteBVHManager: {class: BulletDiscreteBVHManagerFactory}
"""


def _tesseract_form(common: Any, geometry: Any, shape: Shape) -> Any:
    match shape:
        case Box(size=size):
            return geometry.Box(*size)
        case Sphere(radius=r):
            return geometry.Sphere(r)
        case Cylinder(radius=r, length=length):
            return geometry.Cylinder(r, length)
        case Capsule(radius=r, length=length):
            return geometry.Capsule(r, length)
    assert isinstance(shape, TriangleMesh)
    corners = common.VectorVector3d()
    for corner in shape.vertices:
        corners.append(np.array(corner))
    faces = np.insert(shape.triangles, 0, 3, axis=1)
    return geometry.Mesh(corners, faces.ravel().astype(np.int32))


def _quaternion(place: Array) -> Array:
    import pinocchio

    x, y, z, w = pinocchio.Quaternion(place[:3, :3]).coeffs()
    return np.array([w, x, y, z])


PEERS: tuple[Peer, ...] = (
    Peer("pinocchio + coal SSaP", "pinocchio", Pinocchio),
    Peer("MuJoCo", "mujoco", Mujoco, "replaces meshes by their convex hulls"),
    Peer("python-fcl", "fcl", Fcl, "links placed by pinocchio"),
    Peer("Drake", "pydrake", Drake, "replaces meshes by their convex hulls"),
    Peer("tesseract", "tesseract_robotics", Tesseract, "links placed by pinocchio"),
)
