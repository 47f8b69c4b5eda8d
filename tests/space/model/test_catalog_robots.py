"""The shipped arms are what their tables say."""

import math
from itertools import pairwise

import coal
import numpy as np
import pinocchio
import pytest
from tests.space.arm_models import catalog_text

from understudy.space.kinematics.chain import Chain
from understudy.space.model.robot import Capsule, Cylinder, Geometry
from understudy.space.transform import matrix, pose, rotation_about
from understudy.units import DEG, MM

G60_TABLE = [  # a, alpha, d, theta offset, in mm and degrees
    (0, 0, 400, 0),
    (25, -90, 0, -90),
    (560, 0, 0, 0),
    (35, -90, 515, 0),
    (0, 90, 0, 0),
    (0, -90, 80, 0),
]


def craig(a: float, alpha: float, d: float, theta: float) -> np.ndarray:
    """Rx(α)·Tx(a)·Rz(θ)·Tz(d)."""
    out = np.eye(4)
    turn = rotation_about((1, 0, 0), alpha * DEG)
    out[:3, :3] = turn @ rotation_about((0, 0, 1), theta * DEG)
    out[:3, 3] = turn @ (a * MM, 0, d * MM)
    return out


def test_g60_matches_its_denavit_hartenberg_table(g60: Chain) -> None:
    q = np.random.default_rng(1).uniform(-180, 180, 6)
    here = np.eye(4)
    for link, (a, alpha, d, offset), angle in zip(
        g60.links(q * DEG)[1:], G60_TABLE, q, strict=True
    ):
        here = here @ craig(a, alpha, d, offset + angle)
        np.testing.assert_allclose(link, here, atol=1e-12)


def test_g60_at_zero(g60: Chain) -> None:
    flange = g60.flange(np.zeros(6))
    np.testing.assert_allclose(flange[:3, 3] / MM, [620, 0, 995], atol=1e-9)
    np.testing.assert_allclose(flange[:3, 2], [1, 0, 0], atol=1e-12)


def test_g60_limits(g60: Chain) -> None:
    np.testing.assert_allclose(g60.lower / DEG, [-170, -120, -80, -185, -120, -360])
    np.testing.assert_allclose(g60.upper / DEG, [170, 60, 165, 185, 120, 360])
    np.testing.assert_allclose(g60.velocity / DEG, [120, 120, 120, 190, 190, 250])
    np.testing.assert_allclose(g60.acceleration / DEG, [500, 500, 500, 800, 800, 1000])
    np.testing.assert_allclose(g60.jerk, 5 * g60.acceleration)


def test_kr6_limits(kr6: Chain) -> None:
    np.testing.assert_allclose(kr6.lower / DEG, [-170, -190, -120, -185, -120, -350])
    np.testing.assert_allclose(kr6.upper / DEG, [170, 45, 156, 185, 120, 350])
    np.testing.assert_allclose(kr6.velocity / DEG, [360, 300, 360, 381, 388, 615])
    np.testing.assert_allclose(kr6.acceleration, 2 * kr6.velocity)


def test_kr6_axes_rotate_as_on_the_real_arm(kr6: Chain) -> None:
    axes = kr6.axes_of(np.zeros((1, 6)))[0, 1:, :3, 2]
    x, y, z = np.eye(3)
    np.testing.assert_allclose(axes, [-z, y, y, -x, y, -x], atol=1e-12)
    elbow = kr6.links(np.zeros(6))[3, :3, 3]
    np.testing.assert_allclose(elbow / MM, [25 + 455, 0, 400], atol=1e-9)


def test_kr6_upright(kr6: Chain) -> None:
    """A2 -90°, A3 90°: upper arm up, forearm level, X 525 Z 890 A 0 B 90 C 0."""
    there = pose(kr6.flange(np.array([0, -90, 90, 0, 0, 0]) * DEG))
    assert there == pytest.approx((0.525, 0, 0.890, 0, math.pi / 2, 0), abs=1e-9)


def test_shapes_have_the_indices_used_in_pairs(arm: Chain) -> None:
    assert [body.index for body in arm.bodies] == [0, 1, 2, 3, 4, 5, 5]
    assert [body.name for body in arm.bodies] == [
        "base", "shoulder", "upper_arm", "forearm", "wrist_1", "wrist_2", "flange",
    ]  # fmt: skip
    assert all(len(body.collision) == 1 for body in arm.bodies)


def round_shape(geometry: Geometry) -> Capsule | Cylinder:
    assert isinstance(geometry, Capsule | Cylinder)
    return geometry


def test_g60_shapes(g60: Chain) -> None:
    shapes = {body.name: body.collision[0].geometry for body in g60.bodies}
    assert shapes["base"] == Cylinder(0.12, 0.4)
    assert shapes["upper_arm"] == Capsule(0.08, 0.56)
    slim = [round_shape(shapes[name]) for name in ("forearm", "wrist_1", "wrist_2", "flange")]
    assert [shape.radius for shape in slim] == [0.065, 0.05, 0.05, 0.04]


def placed(arm: Chain) -> list[tuple[coal.CollisionGeometry, coal.Transform3s]]:
    found = []
    for body, link in zip(arm.bodies, arm.links(np.zeros(6)), strict=True):
        (solid,) = body.collision
        geometry = round_shape(solid.geometry)
        make = coal.Capsule if isinstance(geometry, Capsule) else coal.Cylinder
        at = link @ matrix(solid.origin)
        shape = make(geometry.radius, geometry.length)
        found.append((shape, coal.Transform3s(at[:3, :3], at[:3, 3])))
    return found


def test_the_shapes_of_neighbouring_links_overlap(arm: Chain) -> None:
    for (one, here), (other, there) in pairwise(placed(arm)):
        result = coal.DistanceResult()
        assert coal.distance(one, here, other, there, coal.DistanceRequest(), result) <= 0.0


@pytest.mark.parametrize("name", ["g60", "kr6_r900"])
def test_masses_are_physical_and_equal_to_pinocchios(name: str, g60: Chain, kr6: Chain) -> None:
    arm = {"g60": g60, "kr6_r900": kr6}[name]
    model = pinocchio.buildModelFromXML(catalog_text(name))
    for body, inertia in zip(arm.bodies[1:], model.inertias[1:], strict=True):
        assert body.mass == pytest.approx(inertia.mass)
        np.testing.assert_allclose(body.com, inertia.lever, atol=1e-12)
        np.testing.assert_allclose(body.inertia, inertia.inertia, atol=1e-12)
        a, b, c = np.linalg.eigvalsh(body.inertia)
        assert a > 0
        assert a + b >= c


@pytest.mark.parametrize("name", ["g60", "kr6_r900"])
def test_the_drives_hold_six_kilograms_stretched_out(name: str, g60: Chain, kr6: Chain) -> None:
    arm = {"g60": g60, "kr6_r900": kr6}[name]
    model = pinocchio.buildModelFromXML(catalog_text(name))
    at = pinocchio.SE3(np.eye(3), np.array([0.0, 0.0, 0.15]))
    model.appendBodyToJoint(6, pinocchio.Inertia(6.0, np.zeros(3), 0.02 * np.eye(3)), at)
    data = model.createData()
    rng = np.random.default_rng(5)
    for q in rng.uniform(arm.lower, arm.upper, (200, 6)):
        torque = pinocchio.rnea(model, data, q, np.zeros(6), np.zeros(6))
        assert (np.abs(torque) < 0.7 * arm.effort).all()
