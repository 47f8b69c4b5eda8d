"""Forward kinematics and Jacobians, against pinocchio and against plain products of matrices."""

import numpy as np
import pinocchio
import pytest
from tests.space.arm_models import catalog_text, gantry, seven_axes, spherical_wrist_arm, urdf_text

from understudy.space.kinematics.chain import Chain, Frames, chain
from understudy.space.model.urdf import read
from understudy.space.pose import Pose
from understudy.space.transform import matrix, rotation_about


def plain_links(arm: Chain, q: np.ndarray) -> list[np.ndarray]:
    """The oracle of joint_frames, the oracle of flange_frames and the oracle of tip_points: one
    product after the other."""
    here, found, moved = np.eye(4), [np.eye(4)], iter(q)
    for joint in arm.model.joints_to_tip():
        here = here @ matrix(joint.origin)
        if joint.moves:
            move, value = np.eye(4), next(moved)
            if joint.kind == "prismatic":
                move[:3, 3] = value * np.array(joint.axis)
            else:
                move[:3, :3] = rotation_about(joint.axis, value)
            here = here @ move
            found.append(here)
    return [*found, here]


def plain_jacobian(arm: Chain, q: np.ndarray) -> np.ndarray:
    """The oracle of jacobians: central differences of the flange's pose."""
    step, columns = 1e-6, []
    for j in range(arm.dof):
        d = step * np.eye(arm.dof)[j]
        one, other, here = arm.flange(q - d), arm.flange(q + d), arm.flange(q)
        spin = (other - one)[:3, :3] / (2 * step) @ here[:3, :3].T
        moved = (other - one)[:3, 3] / (2 * step)
        columns.append([*moved, spin[2, 1], spin[0, 2], spin[1, 0]])
    return np.array(columns).T


def some(arm: Chain, count: int = 40) -> np.ndarray:
    return np.random.default_rng(7).uniform(arm.lower, arm.upper, (count, arm.dof))


@pytest.mark.parametrize("name", ["g60", "kr6_r900"])
def test_agrees_with_pinocchio(name: str) -> None:
    arm = chain(read(catalog_text(name)))
    model = pinocchio.buildModelFromXML(catalog_text(name))
    data = model.createData()
    tip = model.getFrameId(arm.model.tip)
    Q = some(arm)
    flanges, links, jacobians = arm.flanges(Q), arm.links_of(Q), arm.jacobians(Q)
    for k, q in enumerate(Q):
        pinocchio.computeJointJacobians(model, data, q)
        pinocchio.updateFramePlacements(model, data)
        expected = pinocchio.getFrameJacobian(model, data, tip, pinocchio.LOCAL_WORLD_ALIGNED)
        np.testing.assert_allclose(flanges[k], data.oMf[tip].homogeneous, atol=1e-9)
        np.testing.assert_allclose(jacobians[k], expected, atol=1e-9)
        for i in range(1, arm.dof + 1):
            np.testing.assert_allclose(links[k, i], data.oMi[i].homogeneous, atol=1e-9)


@pytest.mark.parametrize(
    "arm", [gantry(), seven_axes(), spherical_wrist_arm(3)], ids=["gantry", "seven", "strange"]
)
def test_agrees_with_plain_products(arm: Chain) -> None:
    for q in some(arm, 10):
        plain = plain_links(arm, q)
        np.testing.assert_allclose(arm.links(q), plain[:-1], atol=1e-12)
        np.testing.assert_allclose(arm.flange(q), plain[-1], atol=1e-12)
        np.testing.assert_allclose(arm.jacobian(q), plain_jacobian(arm, q), atol=1e-8)


def test_tool_and_base(g60: Chain) -> None:
    frames = Frames(matrix(Pose(0.5, -0.2, 0.1, 0, 0, 1.0)), matrix(Pose(0, 0.1, 0.15, 0.5, 0, 0)))
    Q = some(g60, 5)
    tcp = g60.flanges(Q, frames)
    np.testing.assert_allclose(tcp, frames.tcp(g60.flanges(Q)), atol=1e-12)
    np.testing.assert_allclose(frames.flange(tcp), g60.flanges(Q), atol=1e-12)


def test_jacobian_of_a_tool(g60: Chain) -> None:
    tool = matrix(Pose(0.1, 0.0, 0.2, 0, 0, 0))
    q = np.array([0.1, -0.2, 0.3, 0.4, 0.5, 0.6])
    lever = (g60.flange(q) @ tool)[:3, 3] - g60.flange(q)[:3, 3]
    bare = g60.jacobian(q)
    np.testing.assert_allclose(
        g60.jacobian(q, tool)[:3], bare[:3] + np.cross(bare[3:].T, lever).T, atol=1e-12
    )


def test_one_joint_is_a_robot() -> None:
    arm = chain(read(urdf_text([((0, 0, 1), (0, 0, 1))], matrix(Pose(1, 0, 1, 0, 0, 0)))))
    np.testing.assert_allclose(arm.flange([np.pi / 2])[:3, 3], [0, 1, 1], atol=1e-12)


@pytest.mark.parametrize(
    "arm", [spherical_wrist_arm(1), seven_axes(), gantry()], ids=["wrist", "seven", "gantry"]
)
def test_tips_are_the_positions_of_the_flanges(arm: Chain) -> None:
    base, tool = (matrix(Pose(*values)) for values in np.random.default_rng(5).normal(size=(2, 6)))
    for frames in (Frames(np.eye(4), np.eye(4)), Frames(base, tool)):
        wanted = [frames.tcp(plain_links(arm, q)[-1])[:3, 3] for q in some(arm, 100)]
        np.testing.assert_allclose(arm.tips(some(arm, 100), frames), wanted, atol=1e-12)
