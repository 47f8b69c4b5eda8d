"""Torques compared with pinocchio, without and with a payload; overloads."""

import numpy as np
import pinocchio as pin
import pytest
from tests.motion.arms import G60, robot_text

from understudy.motion.dynamics import Payload, dynamics
from understudy.motion.plan import Motion
from understudy.space.kinematics.chain import chain
from understudy.space.model.urdf import read

SAMPLES = Motion(*np.random.default_rng(3).normal(size=(3, 50, 6)))
SLIDER = """<robot name="slider">
<link name="foot"/>
<link name="sledge"><inertial><origin xyz="0.1 0.2 0.3" rpy="0.1 0.2 0.3"/><mass value="2"/>
<inertia ixx="0.1" ixy="0.01" ixz="0" iyy="0.2" iyz="0.02" izz="0.3"/></inertial></link>
<link name="arm"><inertial><origin xyz="0.3 0 0.1"/><mass value="1.5"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.3"/></inertial></link>
<joint name="turn" type="revolute"><parent link="foot"/><child link="sledge"/>
<origin xyz="0 0 0.2" rpy="0.3 0 0"/><axis xyz="0 1 0"/>
<limit lower="-3" upper="3" velocity="1" effort="10"/></joint>
<joint name="slide" type="prismatic"><parent link="sledge"/><child link="arm"/>
<origin xyz="0.1 0 0.2" rpy="0 0.4 0"/><axis xyz="1 0 0"/>
<limit lower="-3" upper="3" velocity="1" effort="10"/></joint>
</robot>"""


def pinocchio_torques(text: str, motion: Motion, payload: Payload | None = None) -> np.ndarray:
    """The oracle of newton_euler: pinocchio's implementation of the same equations."""
    model = pin.buildModelFromXML(text)
    if payload is not None:
        held = pin.Inertia(payload.mass, np.array(payload.com), np.array(payload.inertia))
        tip = pin.SE3(G60.tip)
        # Our last frame has its z along the axis; the model's has the link's own axes.
        axes = pin.SE3(G60.align[-1], np.zeros(3)).inverse()
        model.inertias[6] += (axes * tip).act(held)
    data = model.createData()
    return np.array([pin.rnea(model, data, *row) for row in zip(*motion, strict=True)])


@pytest.mark.parametrize("name", ["g60", "kr6_r900"])
def test_torques_are_those_of_pinocchio(name: str) -> None:
    text = robot_text(name)
    found = dynamics(chain(read(text))).torques(SAMPLES)
    assert found == pytest.approx(pinocchio_torques(text, SAMPLES), abs=1e-9)


def test_a_sliding_joint_counts_too() -> None:
    motion = Motion(*(part[:, :2] for part in SAMPLES))
    found = dynamics(chain(read(SLIDER))).torques(motion)
    assert found == pytest.approx(pinocchio_torques(SLIDER, motion), abs=1e-9)


def test_the_payload_counts() -> None:
    load = Payload(5.0, (0.02, 0.03, 0.15), np.diag([0.02, 0.03, 0.01]))
    found = dynamics(G60, payload=load).torques(SAMPLES)
    wanted = pinocchio_torques(robot_text("g60"), SAMPLES, load)
    assert found == pytest.approx(wanted, abs=1e-9)


def test_joint_inertia_and_friction_are_added() -> None:
    bare = dynamics(G60).torques(SAMPLES)
    real = dynamics(G60, joint_inertia=[1, 1, 0.5, 0.1, 0.1, 0.05], joint_friction=0.1)
    added = SAMPLES.acceleration * [1, 1, 0.5, 0.1, 0.1, 0.05] + 0.1 * SAMPLES.velocity
    assert real.torques(SAMPLES) - bare == pytest.approx(added, abs=1e-9)


def test_without_gravity_rest_needs_no_torque() -> None:
    still = Motion(SAMPLES.position, np.zeros((50, 6)), np.zeros((50, 6)))
    assert not dynamics(G60, gravity=(0, 0, 0)).torques(still).any()


def test_an_overload_names_joint_time_and_torque() -> None:
    arm = dynamics(G60, payload=Payload(60.0, (0.0, 0.0, 0.3)))
    times = np.array([0.0, 1.0, 2.0])
    still = Motion(np.zeros((3, 6)), np.zeros((3, 6)), np.zeros((3, 6)))
    still.position[1, 1] = 1.0
    found = arm.overloads(times, arm.torques(still))
    assert "J2" in [overload.joint for overload in found]
    worst = next(overload for overload in found if overload.joint == "J2")
    assert abs(worst.torque) > worst.limit == 550.0
    assert "550.0 Nm are allowed" in str(worst)
    assert dynamics(G60).overloads(times, dynamics(G60).torques(still)) == []
