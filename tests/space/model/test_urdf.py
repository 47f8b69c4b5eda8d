"""URDF: what is read, and what an error says."""

import math

import numpy as np
import pytest

from understudy.errors import ConfigError
from understudy.space.kinematics.chain import chain
from understudy.space.model.robot import Box, Capsule, Cylinder, Inertial, Mesh, Solid, Sphere
from understudy.space.model.urdf import read
from understudy.space.pose import Pose

JOINT = """<joint name="j" type="revolute"><parent link="a"/><child link="b"/>
  <origin xyz="1 2 3" rpy="0 0 1"/><axis xyz="0 0 2"/>
  <limit lower="-1" upper="2" velocity="3" effort="4"/>
  <dynamics damping="0.5" friction="0.25"/>
  <understudy acceleration="6" jerk="30"/></joint>"""
LINKS = '<link name="a"/><link name="b"/>'


def robot(body: str) -> str:
    return f'<robot name="r">{body}</robot>'


def test_a_joint() -> None:
    model = read(robot(LINKS + JOINT))
    (joint,) = model.joints
    assert joint.axis == (0.0, 0.0, 1.0)
    assert joint.origin == Pose(1, 2, 3, 0, 0, 1)
    assert (joint.lower, joint.upper, joint.velocity, joint.effort) == (-1, 2, 3, 4)
    assert (joint.acceleration, joint.jerk, joint.damping, joint.friction) == (6, 30, 0.5, 0.25)
    assert (model.name, model.base, model.tip) == ("r", "a", "b")


def test_defaults_of_missing_values() -> None:
    text = robot(LINKS + JOINT).replace('effort="4"', 'effort="0"')
    text = text.replace('<understudy acceleration="6" jerk="30"/>', "")
    model = read(text)
    assert model.joints[0].effort == math.inf
    arm = chain(model)
    assert (arm.acceleration[0], arm.jerk[0]) == (6.0, 30.0)


def test_a_continuous_joint_has_no_limits() -> None:
    text = JOINT.replace("revolute", "continuous").replace('lower="-1" upper="2" ', "")
    (joint,) = read(robot(LINKS + text)).joints
    assert (joint.lower, joint.upper) == (-math.inf, math.inf)


def test_shapes() -> None:
    link = """<link name="a">
      <inertial><origin xyz="0 0 1"/><mass value="2"/>
        <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
      <collision><geometry><box size="1 2 3"/></geometry></collision>
      <collision><geometry><sphere radius="1"/></geometry></collision>
      <collision name="c"><geometry><cylinder radius="1" length="2"/></geometry></collision>
      <collision name="d"><geometry><cylinder radius="1" length="2"/></geometry></collision>
      <collision><geometry><capsule radius="1" length="2"/></geometry></collision>
      <collision_checking><capsule name="d"/></collision_checking>
      <visual><origin xyz="1 0 0"/><geometry><mesh filename="m.stl" scale="1 1 2"/></geometry>
        <material name="red"/></visual>
      <understudy index="5"/></link><link name="b"/>
      <material name="red"><color rgba="1 0 0 1"/></material>"""
    link_a = read(robot(link + JOINT)).link("a")
    assert [solid.geometry for solid in link_a.collision] == [
        Box((1, 2, 3)), Sphere(1), Cylinder(1, 2), Capsule(1, 2), Capsule(1, 2),
    ]  # fmt: skip
    shape = Mesh("m.stl", (1, 1, 2))
    assert link_a.visual == (Solid(shape, Pose(1, 0, 0, 0, 0, 0), "", (1, 0, 0, 1)),)
    assert link_a.inertial == Inertial(2, Pose(0, 0, 1, 0, 0, 0), 1, 0, 0, 1, 0, 1)
    assert link_a.index == 5


def test_fixed_links_become_one_body() -> None:
    """Two balls of 1 kg, one hanging on the other by a fixed joint, half a metre away."""
    ball = """<inertial><mass value="1"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
      <collision><geometry><sphere radius="0.1"/></geometry></collision>"""
    text = f"""<link name="a"/><link name="b">{ball}</link><link name="c">{ball}</link>{JOINT}
      <joint name="f" type="fixed"><parent link="b"/><child link="c"/>
      <origin xyz="0.5 0 0"/></joint>"""
    arm = chain(read(robot(text)))
    foot, body = arm.bodies
    assert (foot.mass, body.mass) == (0.0, 2.0)
    np.testing.assert_allclose(body.com, [0.25, 0, 0])
    np.testing.assert_allclose(np.diag(body.inertia), [2, 2 + 2 * 0.25**2, 2 + 2 * 0.25**2])
    assert [solid.origin.x for solid in body.collision] == [0.0, 0.5]


def test_frames_off_the_arm_do_not_confuse_the_tip() -> None:
    """A foot frame and a camera, as many files have them, beside the arm itself."""
    text = (
        LINKS
        + JOINT
        + """<link name="world_frame"/><link name="tool"/>
      <joint name="w" type="fixed"><parent link="a"/><child link="world_frame"/></joint>
      <joint name="t" type="fixed"><parent link="b"/><child link="tool"/></joint>"""
    )
    assert read(robot(text)).tip == "tool"
    assert read(robot(text), tip="b").tip == "b"


def test_a_named_part_of_the_tree() -> None:
    text = (
        LINKS
        + JOINT
        + """<link name="world"/>
      <joint name="w" type="fixed"><parent link="world"/><child link="a"/>
      <origin xyz="0 0 9"/></joint>"""
    )
    from_world, from_a = chain(read(robot(text))), chain(read(robot(text), base="a"))
    assert from_world.flange([0.0])[2, 3] == 12.0
    assert from_a.flange([0.0])[2, 3] == 3.0


def wrong(find: str, put: str) -> str:
    text = robot(LINKS + JOINT)
    assert find in text
    return text.replace(find, put)


def shaped(shape: str) -> str:
    solid = f"<collision><geometry>{shape}</geometry></collision>"
    return wrong('<link name="a"/>', f'<link name="a">{solid}</link>')


MALFORMED = {
    "not XML": ("<robot", "not XML"),
    "another document": ("<sdf/>", "not a URDF (got '<sdf>'); allowed: <robot>"),
    "entities": ("<!DOCTYPE x><robot/>", "document types and entities are not allowed"),
    "kind": (wrong("revolute", "planar"), "joint 'j': unknown joint type (got 'planar')"),
    "no limit": (wrong("<limit", "<limits"), "joint 'j': not supported (got '<limits>')"),
    "did you mean": (wrong("<limit", "<limits"), "did you mean 'limit'?"),
    "velocity": (wrong('velocity="3"', 'velocity="-1"'), "joint 'j': limit (got 'velocity -1"),
    "order": (wrong('lower="-1"', 'lower="5"'), "allowed: lower < upper"),
    "number": (wrong('lower="-1"', 'lower="low"'), "<limit> lower (got 'low'); allowed: a number"),
    "infinite": (wrong('lower="-1"', 'lower="-inf"'), "joint 'j': <limit> lower (got '-inf')"),
    "vector": (wrong('"1 2 3"', '"1 2"'), "<origin> xyz (got '1 2'); allowed: 3 numbers"),
    "axis": (wrong("0 0 2", "0 0 0"), "joint 'j': an axis needs a direction"),
    "parent": (wrong('link="a"', 'link="z"'), "joint 'j': parent is not a link of this robot"),
    "mimic": (wrong("<dynamics", "<mimic joint='x'/><dynamics"), "joint 'j': follows joint 'x'"),
    "extension": (wrong("acceleration", "accel"), "joint 'j': unknown attribute (got 'accel')"),
    "twice": (wrong('name="b"', 'name="a"'), "link 'a': the name is used twice"),
    "no name": (wrong('<link name="a"/>', "<link/>"), "a link: <link> without name"),
    "loop": (
        wrong("</joint>", "</joint>" + JOINT.replace('"j"', '"k"')),
        "joint 'k': link 'b' already hangs on joint 'j'; loops are not supported",
    ),
    "two feet": (wrong('<link name="a"/>', '<link name="a"/><link name="z"/>'), "no parent"),
    "nothing moves": (
        robot(LINKS + JOINT.replace("revolute", "fixed")),
        "robot: no joint moves between 'a' and 'b'",
    ),
    "shape": (
        shaped("<cone/>"),
        "link 'a': unknown shape (got 'cone'); allowed: box sphere cylinder capsule mesh",
    ),
    "flat": (
        shaped('<sphere radius="0"/>'),
        "link 'a': <sphere> radius (got 0.0); allowed: above 0",
    ),
    "no mass": (
        wrong('<link name="a"/>', '<link name="a"><inertial/></link>'),
        "link 'a': <mass> is missing",
    ),
    "no links": ("<robot/>", "robot: no links"),
}  # fmt: skip


@pytest.mark.parametrize("case", MALFORMED)
def test_errors_name_the_wrong_element(case: str) -> None:
    text, said = MALFORMED[case]
    with pytest.raises(ConfigError) as caught:
        read(text, file="own.urdf")
    assert said in str(caught.value)
    assert str(caught.value).startswith("own.urdf:")


FINGER = JOINT.replace('"j"', '"finger"').replace('"b"', '"c"')


def test_moving_joints_outside_the_arm_stay_at_zero_or_the_limit_next_to_it() -> None:
    text = robot(LINKS + '<link name="c"/>' + JOINT + FINGER)
    with pytest.raises(ConfigError, match="tip: several links could be the tip: name one; allowed"):
        read(text)
    model = read(text, tip="b")
    assert [joint.name for joint in model.moving()] == ["j"]
    finger = model.joints[1]
    assert (finger.kind, finger.origin) == ("fixed", Pose(1, 2, 3, 0, 0, 1))
    open_only = text.replace(FINGER, FINGER.replace('lower="-1"', 'lower="0.5"'))
    held = read(open_only, tip="b").joints[1].origin
    np.testing.assert_allclose(held, Pose(1, 2, 3, 0, 0, 1.5), atol=1e-12)


def test_the_tip_is_tool0_where_several_links_could_be_it() -> None:
    frames = "".join(
        f"""<link name="{name}"/><joint name="to_{name}" type="fixed">
          <parent link="b"/><child link="{name}"/></joint>"""
        for name in ("ee_link", "tool0")
    )
    assert read(robot(LINKS + JOINT + frames)).tip == "tool0"


def test_a_joint_can_be_fixed_at_a_value() -> None:
    second = JOINT.replace('"j"', '"k"').replace('"b"', '"c"').replace('"a"', '"b"')
    text = robot(LINKS + '<link name="c"/>' + JOINT + second)
    whole, less = chain(read(text)), chain(read(text, fixed={"j": 0.7}))
    assert less.names == ("k",)
    np.testing.assert_allclose(less.flange([0.3]), whole.flange([0.7, 0.3]), atol=1e-12)
    with pytest.raises(ConfigError, match=r"unknown moving joint \(got 'x'\); allowed: j, k"):
        read(text, fixed={"x": 0.0})


def test_elements_of_other_programs_are_ignored_and_misspelt_ones_are_not() -> None:
    own = '<self_collision_checking/><link name="a"><contact_coefficients/></link><link name="b"/>'
    assert read(robot(own + JOINT)).tip == "b"
    with pytest.raises(ConfigError, match="did you mean 'collision'"):
        read(robot('<link name="a"><colision/></link><link name="b"/>' + JOINT))


def test_a_material_may_be_defined_where_it_is_first_used() -> None:
    shape = "<geometry><sphere radius='1'/></geometry>"
    grey = "<material name='grey'><color rgba='0.5 0.5 0.5 1'/></material>"
    text = f"""<link name="a"><visual>{shape}<material name="grey"/></visual></link>
      <link name="b"><visual>{shape}{grey}</visual></link>{JOINT}"""
    links = read(robot(text)).links
    assert [link.visual[0].color for link in links] == [(0.5, 0.5, 0.5, 1.0)] * 2


def test_an_unknown_tip() -> None:
    with pytest.raises(ConfigError, match="tip: no such link"):
        read(robot(LINKS + JOINT), tip="hand")


# ── arms of public files ──


def arm(count: int, *more: str, velocity: str = "3", effort: str = "50", names: str = "j{}") -> str:
    """A serial arm of links l0 … with 2 kg and 0.3 m each."""
    mass = '<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    links = "".join(f'<link name="l{n}">{mass}</inertial></link>' for n in range(count + 1))
    limit = f'<limit lower="-1" upper="2" velocity="{velocity}" effort="{effort}"/>'
    joints = "".join(
        f"""<joint name="{names.format(n)}" type="revolute"><parent link="l{n}"/>
          <child link="l{n + 1}"/><origin xyz="0 0 0.3"/>{limit}</joint>"""
        for n in range(count)
    )
    return robot(links + joints + "".join(more))


def hangs_on(parent: str, name: str, kind: str = "fixed", extra: str = "") -> str:
    limit = '<limit lower="0" upper="0.04" velocity="0.1" effort="20"/>' if kind != "fixed" else ""
    return f"""<link name="{name}"/><joint name="to_{name}" type="{kind}"><parent link="{parent}"/>
      <child link="{name}"/>{limit}{extra}</joint>"""


@pytest.mark.parametrize("velocity", ["0", "1000"])
def test_a_speed_that_is_no_limit_is_replaced_and_named(velocity: str) -> None:
    model = read(arm(6, velocity=velocity))
    assert {joint.velocity for joint in model.moving()} == {np.pi}
    (doubt,) = model.doubts
    assert doubt.startswith(f"velocity of j0 ({velocity}), j1")
    assert "limits: {velocity_deg_s" in doubt


def test_a_file_without_a_speed_is_read() -> None:
    text = arm(6).replace(' velocity="3"', "")
    assert {joint.velocity for joint in read(text).moving()} == {np.pi}


def test_an_effort_that_cannot_hold_the_arm_is_no_limit() -> None:
    weak = read(arm(6, effort="1"))
    assert {joint.effort for joint in weak.moving()} == {np.inf}
    assert weak.doubts[0].startswith("effort of all joints: 1 Nm")
    strong = read(arm(6, effort="50"))
    assert ({joint.effort for joint in strong.moving()}, strong.doubts) == ({50.0}, ())


JAW = hangs_on("l6", "left", "prismatic")
MIMIC = '<mimic joint="to_left"/>'


@pytest.mark.parametrize(
    "gripper",
    [
        JAW + hangs_on("l6", "right", "prismatic"),
        JAW + hangs_on("l6", "right", "prismatic", MIMIC),
        JAW + hangs_on("left", "right", "prismatic", MIMIC),
        hangs_on("l6", "hand") + hangs_on("hand", "only_finger", "prismatic"),
    ],
    ids=["two", "mimic", "in a row", "by name"],
)
def test_the_jaws_of_a_gripper_are_no_axes(gripper: str) -> None:
    model = read(arm(6, gripper))
    assert [joint.name for joint in model.moving()] == [f"j{n}" for n in range(6)]


def test_six_axes_are_the_whole_arm_also_where_the_sixth_slides() -> None:
    model = read(arm(5, hangs_on("l5", "slide", "prismatic")))
    assert [joint.name for joint in model.moving()][-1] == "to_slide"


@pytest.mark.parametrize("name", ["flange", "arm_ee_link", "my_tool0"])
def test_a_tip_is_known_by_its_name(name: str) -> None:
    frames = "".join(hangs_on("l6", each) for each in ("camera_frame", name, "cable"))
    assert read(arm(6, frames)).tip == name
