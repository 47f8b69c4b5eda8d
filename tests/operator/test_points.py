"""Point commands, points in snapshots, TCP and work frame from points."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.benches import Bench

from understudy.simulation import points


def names(bench: Bench, robot: str = "g60") -> list[str]:
    return [point["name"] for point in bench.do("points", robot=robot)["points"]]


def test_a_robot_goes_back_to_a_taught_point(arm: Bench) -> None:
    arm.do("teach_point", robot="g60", name="start")
    before = arm.joints("g60")
    for line in (False, True):
        arm.do("jog", robot="g60", frame="joint", axis=0, speed=30, step=20)
        arm.forward(2.0)
        arm.do("go_to_point", robot="g60", name="start", line=line)
        arm.forward(5.0)
        assert arm.joints("g60") == pytest.approx(before, abs=1e-3)


def test_points_are_touched_up_renamed_and_deleted(arm: Bench) -> None:
    for name in ("a", "b", "c"):
        arm.do("teach_point", robot="g60", name=name)
    arm.do("rename_point", robot="g60", name="b", to="middle")
    assert names(arm) == ["a", "middle", "c"]
    arm.do("set_joint_positions", robot="g60", joints_deg=[5, 0, 37, 0, 53, 0])
    touched = arm.do("touch_up", robot="g60", name="middle")["points"][1]
    assert touched["joints_deg"][0] == pytest.approx(5.0)
    arm.do("delete_point", robot="g60", name="a")
    assert names(arm) == ["middle", "c"]


def test_robots_without_joint_targets_go_to_points(bench: Bench) -> None:
    for robot in ("bench", "kuka"):
        bench.do("teach_point", robot=robot, name="here")
        before = bench.pose(robot)
        bench.do("jog", robot=robot, frame="base", axis=2, speed=50, step=20)
        bench.forward(3.0)
        bench.do("go_to_point", robot=robot, name="here", speed_mm_s=50)
        bench.forward(3.0)
        assert bench.pose(robot) == pytest.approx(before, abs=1e-2)


def test_a_machine_goes_to_a_point_in_its_own_units(bench_of: Callable[[str], Bench]) -> None:
    """Its axes are millimetres and degrees: X 40 mm is 0.04 m, and was taken for 0.04 rad."""
    machine = bench_of("grblhal_6axis")
    machine.do("send_gcode", robot="machine", line="G1 X40 Y-5 A30 F1200")
    machine.forward(10.0)
    point = machine.do("teach_point", robot="machine", name="here")["points"][0]
    assert point["joints_deg"] == pytest.approx([40, -5, 0, 30, 0, 0])
    machine.do("move_to", robot="machine", joints_deg=[0, 0, 0, 0, 0, 0])
    machine.forward(10.0)
    machine.do("go_to_point", robot="machine", name="here")
    machine.forward(10.0)
    assert machine.pose("machine") == pytest.approx([40, -5, 0, 30, 0, 0])


def test_a_snapshot_holds_the_points(arm: Bench) -> None:
    arm.do("teach_point", robot="g60", name="kept")
    snapshot = arm.do("snapshot")["snapshot"]
    arm.do("delete_point", robot="g60", name="kept")
    arm.do("restore", snapshot=snapshot)
    assert names(arm) == ["kept"]


@pytest.mark.parametrize(
    ("name", "parameters", "says"),
    [
        ("teach_point", {"name": "taken"}, "a point 'taken' already; touch_up moves it"),
        ("teach_point", {"name": "  "}, "is not a name"),
        ("teach_point", {"name": "x" * 65}, "at most 64"),
        ("touch_up", {"name": "take"}, "did you mean 'taken'?"),
        ("rename_point", {"name": "taken", "to": "taken"}, "already"),
        ("delete_point", {"name": "nothing"}, "unknown point of g60"),
        ("go_to_point", {"name": "nothing"}, "unknown point of g60"),
        ("frame_by_three_points", {"points": ["taken"]}, "three points are needed, there are 1"),
        ("tcp_by_four_points", {"points": ["taken"] * 4}, "rotate the tool"),
        ("tcp_by_four_points", {"joints_deg": [[1, 2]]}, "6 joints"),
    ],
)
def test_wrong_point_commands_are_refused_with_a_reason(
    arm: Bench, name: str, parameters: dict[str, Any], says: str
) -> None:
    arm.do("teach_point", robot="g60", name="taken")
    assert says in arm.refusal(name, robot="g60", **parameters)


def test_the_number_of_points_is_limited(arm: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert points.MOST_POINTS == 1000
    monkeypatch.setattr(points, "MOST_POINTS", 20)
    for number in range(20):
        arm.do("teach_point", robot="g60", name=f"p{number}")
    assert "20 points already" in arm.refusal("teach_point", robot="g60", name="more")


# ── what points show ──


def test_four_points_give_the_tcp(arm: Bench) -> None:
    """The torch of the cell: 150 mm along z; it is rotated about its tip."""
    for number in range(4):
        arm.do("teach_point", robot="g60", name=f"t{number}")
        if number < 3:
            arm.do("jog", robot="g60", frame="tool", axis=3 + number, speed=20, step=15)
            arm.forward(3.0)
    found = arm.do("tcp_by_four_points", robot="g60", points=[f"t{n}" for n in range(4)])
    assert found["tcp_mm_deg"] == pytest.approx([0, 0, 150, 0, 0, 0], abs=0.01)
    assert found["point_mm"] == pytest.approx(arm.pose("g60")[:3], abs=0.01)
    assert found["residual_mm"] < 0.01


def test_three_points_give_a_work_frame(bench: Bench) -> None:
    poses = [[100, 50, 10, 0, 0, 0], [100, 150, 10, 0, 0, 0], [0, 60, 10, 0, 0, 0]]
    found = bench.do("frame_by_three_points", robot="bench", poses_mm_deg=poses)
    assert found["frame_mm_deg"] == pytest.approx([100, 50, 10, 0, 0, 90])
    assert "no arm" in bench.refusal("tcp_by_four_points", robot="bench")


# ── typed coordinates and undo ──


def test_typed_coordinates_move_a_point_and_the_arm_goes_there(arm: Bench) -> None:
    arm.do("teach_point", robot="g60", name="P1")
    pose = list(arm.do("points", robot="g60")["points"][0]["pose_mm_deg"])
    pose[2] += 25.0
    [point] = arm.do("set_point", robot="g60", name="P1", pose_mm_deg=pose)["points"]
    assert point["pose_mm_deg"] == pytest.approx(pose)
    for line in (False, True):
        arm.do("go_to_point", robot="g60", name="P1", line=line)
        arm.forward(10.0)
        assert arm.pose("g60") == pytest.approx(pose, abs=1e-3)


def test_typed_joints_give_the_pose_of_the_tool(arm: Bench) -> None:
    arm.do("teach_point", robot="g60", name="P1")
    joints = [10, -5, 40, 5, 50, 20]
    [point] = arm.do("set_point", robot="g60", name="P1", joints_deg=joints)["points"]
    arm.do("set_joint_positions", robot="g60", joints_deg=joints)
    arm.forward(0.1)
    assert point["pose_mm_deg"] == pytest.approx(arm.row("g60")["pose_mm_deg"], abs=1e-6)


def test_coordinates_that_no_joints_reach_are_refused(arm: Bench) -> None:
    arm.do("teach_point", robot="g60", name="P1")
    before = arm.do("points", robot="g60")["points"]
    far = [9000, 0, 300, 180, 0, 0]
    assert "reach" in arm.refusal("set_point", robot="g60", name="P1", pose_mm_deg=far)
    assert "6 joints" in arm.refusal("set_point", robot="g60", name="P1", joints_deg=[1.0])
    assert "either" in arm.refusal("set_point", robot="g60", name="P1")
    assert arm.do("points", robot="g60")["points"] == before


@pytest.mark.parametrize("robot", ["bench", "kuka"])
def test_robots_without_joint_targets_keep_the_typed_pose(bench: Bench, robot: str) -> None:
    bench.do("teach_point", robot=robot, name="P1")
    pose = [100.0, 20.0, 150.0, 0.0, 0.0, 45.0]
    [point] = bench.do("set_point", robot=robot, name="P1", pose_mm_deg=pose)["points"]
    assert (point["pose_mm_deg"], point["joints_deg"]) == (pytest.approx(pose), [])


def test_changes_of_points_are_undone_one_by_one(arm: Bench) -> None:
    arm.do("teach_point", robot="g60", name="P1")
    taught = arm.do("points", robot="g60")["points"]
    arm.do("set_joint_positions", robot="g60", joints_deg=[10, 0, 37, 0, 53, 0])
    arm.do("touch_up", robot="g60", name="P1")
    touched = arm.do("points", robot="g60")["points"]
    assert touched != taught
    arm.do("rename_point", robot="g60", name="P1", to="A")
    after = arm.do("delete_point", robot="g60", name="A")
    assert after == {"points": [], "undo": {"command": "delete_point", "name": "A"}}
    assert [p["name"] for p in arm.do("undo_point", robot="g60")["points"]] == ["A"]
    assert arm.do("undo_point", robot="g60")["points"] == touched
    assert arm.do("undo_point", robot="g60")["points"] == taught
    assert arm.do("undo_point", robot="g60") == {"points": [], "undo": None}
    assert "undone" in arm.refusal("undo_point", robot="g60")
