"""Parts of the validation: stretches, feed, courses, wireframes, poses."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.offline.validate.cases import PROGRAMS, cell, header

from understudy.app.reach import program_poses, program_reach
from understudy.app.validate import subject_of, validate_text
from understudy.motion.plan import Plan
from understudy.offline.robot import Arm, Subject
from understudy.offline.validate.clearance import LINES_AT_ONCE, SAMPLES_AT_ONCE, Stretch, stretches
from understudy.offline.validate.html_report import wireframe
from understudy.offline.validate.judge import MOST_POINTS, Courses, feed_findings
from understudy.offline.walk import PlannedMotion, walk
from understudy.robots.arm.offline import arm_subject, motion_setup
from understudy.space.kinematics.follow import distances
from understudy.space.model.shapes import CollisionObject, ObjectType


def arm_in(subject: Subject, tool: int) -> Arm:
    arm = subject.arm(tool)
    assert isinstance(arm, Arm)
    return arm


ARM = arm_in(arm_subject("", cell("bare"), "g60"), 1)
READY = "G21 G90 G94\nG0 X450 Y-100 Z450 A180 B0 C0\n"


def plan_of(text: str) -> Plan:
    """The plan of the last motion of a program."""
    runs = [
        event
        for event in walk(text, motion_setup(cell("bare")))
        if isinstance(event, PlannedMotion)
    ]
    return runs[-1].plan


@pytest.fixture(scope="module")
def swings() -> Plan:
    """A plan with more lines than a stretch has."""
    lines = (f"G1 A{k % 7} B{k % 5} F3000" for k in range(2 * LINES_AT_ONCE + 50))
    return plan_of("\n".join(lines))


def test_stretches_cover_a_plan_in_order(swings: Plan) -> None:
    parts = list(stretches(swings))
    assert len(parts) == 3
    assert [part.first for part in parts[1:]] == [part.last for part in parts[:-1]]
    assert (parts[0].first, parts[-1].last) == (0, len(swings.path))
    assert [part.begins for part in parts[1:]] == [part.ends for part in parts[:-1]]
    assert (parts[0].begins, parts[-1].ends) == (swings.begins, swings.ends)


def test_no_line_is_cut_by_a_stretch(swings: Plan) -> None:
    seen = [set(part.path.line.tolist()) for part in stretches(swings)]
    assert not seen[0] & seen[1] | seen[1] & seen[2]


def test_each_grid_starts_where_the_last_one_ended(swings: Plan) -> None:
    for part in stretches(swings):
        grids = list(part.grids())
        assert all(len(times) <= SAMPLES_AT_ONCE for times in grids)
        whole = np.concatenate([grids[0], *(times[1:] for times in grids[1:])])
        assert whole[0] == part.begins
        assert whole[-1] == pytest.approx(part.ends)
        assert np.diff(whole).max() <= 0.01 + 1e-12
        for before, after in itertools.pairwise(grids):
            assert before[-1] == after[0]


@given(st.floats(0.0, 1.0))
def test_time_at_is_the_inverse_of_place(share: float) -> None:
    plan = plan_of(READY + "G1 Y0 F3000\nG1 X500\nG0 A0 B0 C0 U0 V0 W0\n")
    t = plan.begins + share * plan.duration
    place = plan.place(t)
    for part in stretches(plan):
        if part.first <= place.piece < part.last:
            back = part.time_at(place.piece - part.first, place.s)
            assert plan.place(back).s == pytest.approx(place.s, abs=1e-9)
            assert back == pytest.approx(t, abs=1e-3)


def needed(stretch: Stretch) -> float:
    """The greatest share of a joint's speed at the programmed feed, from dense samples."""
    path, most = stretch.path, 0.0
    for piece in np.flatnonzero(~path.rapid).tolist():
        for s in np.linspace(0.0, path.length[piece], 20):
            speed = np.abs(path.tangent(piece, float(s))) * path.feed[piece]
            most = max(most, float((speed / ARM.limits.velocity).max()))
    return most


@given(st.floats(-200, 200), st.floats(-80, 120), st.floats(1e3, 2e5))
def test_a_feed_is_a_violation_exactly_when_a_joint_cannot_follow(
    y: float, z: float, feed: float
) -> None:
    plan = plan_of(f"{READY}G1 Y{y:.3f} Z{450 + z:.3f} F{feed:.0f}\n")
    parts = list(stretches(plan))
    assert len(parts) == 1
    assume(distances(ARM.chain, plan.path.end[~plan.path.rapid]).min(initial=1.0) >= 0.1)
    share = needed(parts[0])
    reported = [found.kind for found in feed_findings(parts[0], ARM).violations]
    if share > 1.01:
        assert reported == ["velocity"]
    elif share < 0.99:
        assert "velocity" not in reported


def test_a_course_is_bounded_and_keeps_its_order() -> None:
    courses = Courses()
    for k in range(50):
        times = np.linspace(k, k + 1, 500)
        q = np.zeros((500, 6))
        q[:, 0] = times
        rows = courses.choose(500)
        courses.add(q[rows], times[rows], np.full(500, k)[rows], ARM)
    course = courses.course()
    assert MOST_POINTS <= len(course.times) <= 2 * MOST_POINTS
    assert list(course.times) == sorted(course.times)
    assert len(course.points[0]) == 8
    tip = ARM.chain.flange(np.array(course.joints[3])) @ ARM.frames.tool
    assert course.points[3][-1] == pytest.approx(tip[:3, 3])


@pytest.mark.parametrize(
    ("thing", "corner"),
    [
        (
            CollisionObject(type=ObjectType.BOX, name="box", dimensions=(2.0, 4.0, 6.0)),
            (1.0, 2.0, 3.0),
        ),
        (CollisionObject(type=ObjectType.SPHERE, name="ball", radius=2.0), (2.0, 2.0, 2.0)),
        (
            CollisionObject(type=ObjectType.CYLINDER, name="can", radius=1.0, height=4.0),
            (1.0, 1.0, 2.0),
        ),
        (
            CollisionObject(type=ObjectType.CONVEX, name="wedge", vertices=np.eye(3) - 0.5),
            (0.5, 0.5, 0.5),
        ),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_wireframe_has_the_size_of_the_object(
    thing: CollisionObject, corner: tuple[float, float, float]
) -> None:
    points = np.concatenate(wireframe(thing))
    assert points.max(axis=0).tolist() == pytest.approx(corner)
    assert points.min(axis=0).tolist() == pytest.approx([-value for value in corner])


def test_program_poses_are_the_targets_of_the_program() -> None:
    text = READY + "G1 Z5000 F600\nG0 A0 B0 C0 U0 V0 W0\nG2 X700 Y0 I-30 J0 F600\n"
    poses = program_poses(text, motion_setup(cell("bare")))
    assert [pose.line for pose in poses] == [2, 3]
    assert poses[1].pose.z == pytest.approx(5.0)
    assert poses[0].pose.rx == pytest.approx(math.pi)


@pytest.mark.parametrize("name", ["square", "two_seams", "kuka_square"])
def test_no_sample_is_closer_than_the_proven_clearance(name: str) -> None:
    program = PROGRAMS / "sound" / f"{name}.gcode"
    config = cell(header(program, "cell"))
    report = validate_text(program.read_bytes(), config)
    robot = config.robots[report.robot].config
    detector = arm_in(subject_of("", config, report.robot), robot.tool).detector
    proven = {row.line: row.clearance for row in report.lines}
    for q, line in list(zip(report.course.joints, report.course.lines, strict=True))[::20]:
        clearance = proven[line]
        assert clearance is not None
        assert detector.get_min_distance(q) >= clearance - 1e-9


def test_the_reach_of_a_pose_is_checked_with_the_active_tool() -> None:
    """The bare flange gets 922 mm in front of the arm at this height, the torch 150 mm further."""
    pose = "G0 X1000 Y0 Z1100 A0 B90 C0\n"
    found = program_reach(f"{pose}T0 M6\n{pose}T1 M6\n{pose}", cell("default"))
    assert [(each.line, each.result.reachable) for each in found] == [
        (1, True), (3, False), (5, True),
    ]  # fmt: skip
