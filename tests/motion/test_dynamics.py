"""Torques compared with pinocchio, without and with a payload; overloads; a first look at plans."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.motion.arms import AT_SCAN, G60, LIMITS, SCAN, robot_text

from understudy.motion.cartesian import joint_path
from understudy.motion.dynamics import Dynamics, Payload, dynamics
from understudy.motion.lines import lines
from understudy.motion.path import Path, dwell_path, joined
from understudy.motion.plan import Motion, Plan
from understudy.motion.profile import Profile
from understudy.motion.stream import planned
from understudy.motion.tool_path import ToolLine, tip_way
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


# ── a first look at the torques of a plan ────────────────────────────────────────────────────────


HEAVY = dynamics(
    G60,
    payload=Payload(8.0, (0.02, 0.0, 0.2)),
    joint_inertia=0.3,
    joint_friction=[4, 4, 3, 2, 2, 1],
)


def random_path(seed: int, feed: float) -> Path:
    """Lines of the tool, lines of the joints, and a dwell."""
    random, q, paths = np.random.default_rng(seed), AT_SCAN, []
    for _ in range(4):
        ends = G60.flange(q)
        ends[:3, 3] += random.uniform(-0.06, 0.06, 3)
        path = joint_path(G60, q, ToolLine(G60.flange(q), ends), limits=LIMITS, feed=feed)
        assert isinstance(path, Path)
        there = path.end[-1] + random.uniform(-0.3, 0.3, 6)
        paths += [path, dwell_path(path.end[-1], 0.2), lines(path.end[-1], there, LIMITS)]
        back = joint_path(G60, there, ToolLine(G60.flange(there), SCAN), limits=LIMITS, feed=feed)
        if not isinstance(back, Path):
            back = lines(there, AT_SCAN, LIMITS, feed=feed)
        paths.append(back)
        q = back.end[-1]
    return joined(paths)


def plain_overload(arm: Dynamics, plan: Plan, times: np.ndarray) -> bool:
    """The oracle of overload_possible: the torques at all times, and at the ends of segments."""
    ends = plan.law.begins
    when = np.concatenate([times, ends[:-1], np.nextafter(ends[1:], 0.0)])
    inside = when[(times[0] <= when) & (when <= times[-1])]
    return bool((arm.shares(arm.torques(plan.sample(inside))) > 1.0).any())


profiles: st.SearchStrategy[Profile] = st.sampled_from(["trapezoid", "jerk_limited"])


@given(
    st.integers(0, 2**32), st.floats(0.01, 1.0), profiles, st.floats(0.5, 1.5), st.floats(0, 0.5)
)
def test_no_overload_is_missed(
    seed: int, feed: float, profile: Profile, share: float, begins: float
) -> None:
    """The limits are a share of the greatest torque on the way."""
    plan = planned(random_path(seed, feed), profile=profile, at=3.0)
    times = np.arange(plan.begins + begins * plan.duration, plan.ends, 0.01)
    most = np.abs(HEAVY.torques(plan.sample(times))).max(axis=0)
    for only in range(-1, 6):  # all joints, and one of them
        close = np.where((only < 0) | (np.arange(6) == only), share * most, 1e6)
        arm = replace(HEAVY, effort=close)
        if plain_overload(arm, plan, times):
            assert arm.may_overload(plan, times)
    assert not replace(HEAVY, effort=1e6 * most).may_overload(plan, times)
    assert not replace(HEAVY, effort=np.zeros(6)).may_overload(plan, times)


def test_slow_motion_far_from_the_limits_is_bounded_without_samples() -> None:
    plan = planned(random_path(1, 0.01))
    assert not HEAVY.may_overload(plan, np.array([0.0, plan.ends]))


@given(st.integers(0, 2**32), st.integers(1, 400))
def test_the_way_of_the_tip_is_that_of_its_places(seed: int, count: int) -> None:
    """The oracle of tip_way: distances of the flanges."""
    plan = planned(random_path(seed, 0.2))
    times = np.linspace(plan.begins, plan.ends, count)
    wanted = np.diff(G60.flanges(plan.positions(times))[:, :3, 3], axis=0)
    arm = (G60.rest, G60.slides, np.ascontiguousarray(G60.tip[:3, 3]))
    found = tip_way(times, *plan.columns, arm)
    assert found == pytest.approx(np.linalg.norm(wanted, axis=1).sum(), abs=1e-12)
