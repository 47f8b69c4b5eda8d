"""Drives, stops, lines, jogs and moves of every kind of robot."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.benches import Bench

READY = [0.0, 0.0, 37.0, 0.0, 53.0, 0.0]


# ── an arm ──


def test_drives_are_enabled_and_disabled(bench: Bench) -> None:
    assert bench.facts("g60")["connected"] is False
    assert bench.refusal("send_gcode", robot="g60", line="G0 A1").startswith("the controller is")
    assert bench.do("enable", robot="g60")["enabled"] is True
    assert bench.do("disable", robot="g60")["enabled"] is False


def test_a_line_is_run_and_a_wrong_one_is_refused(arm: Bench) -> None:
    assert arm.do("send_gcode", robot="g60", line="G1 A10 F6000")["moving"] is True
    arm.forward(1.0)
    assert arm.joints("g60")[0] == 10.0
    assert "column" in arm.refusal("send_gcode", robot="g60", line="G1 A")


@pytest.mark.parametrize("axis", range(6))
@pytest.mark.parametrize("sign", [1, -1])
def test_a_joint_is_jogged_by_a_step(arm: Bench, axis: int, sign: int) -> None:
    arm.do("jog", robot="g60", frame="joint", axis=axis, speed=30 * sign, step=5)
    arm.forward(1.0)
    expected = list(READY)
    expected[axis] += 5 * sign
    assert arm.joints("g60") == expected


def test_a_joint_is_jogged_until_it_is_stopped(arm: Bench) -> None:
    arm.do("jog", robot="g60", frame="joint", axis=0, speed=-10)
    arm.forward(1.0)
    assert arm.do("robots")["robots"][0]["state"] == "Jog"
    arm.do("stop_jog", robot="g60")
    arm.forward(1.0)
    assert -10.5 < arm.joints("g60")[0] < -9.5


@pytest.mark.parametrize("axis", range(6))
def test_the_tool_is_jogged_by_a_step_in_the_base(arm: Bench, axis: int) -> None:
    before = arm.pose("g60")
    arm.do("jog", robot="g60", frame="base", axis=axis, speed=20, step=10)
    arm.forward(2.0)
    after = arm.pose("g60")
    if axis < 3:
        before[axis] += 10.0
        assert after == pytest.approx(before, abs=0.01)
    else:
        assert after[:3] == pytest.approx(before[:3], abs=0.01)
        assert after[3:] != pytest.approx(before[3:], abs=1.0)


def test_the_tool_is_jogged_along_its_own_axis(arm: Bench) -> None:
    before = arm.pose("g60")
    arm.do("jog", robot="g60", frame="tool", axis=2, speed=50, step=25)
    arm.forward(2.0)
    assert arm.pose("g60") == pytest.approx(_shifted(before, 2, -25.0), abs=0.01)


@pytest.mark.parametrize(("frame", "axis"), [("base", 0), ("base", 2), ("tool", 1), ("tool", 5)])
def test_the_tool_is_jogged_until_it_is_stopped(arm: Bench, frame: str, axis: int) -> None:
    before = arm.pose("g60")
    arm.do("jog", robot="g60", frame=frame, axis=axis, speed=20)
    arm.forward(1.0)
    arm.do("stop_jog", robot="g60")
    arm.forward(1.0)
    after = arm.pose("g60")
    way = sum((a - b) ** 2 for a, b in zip(after[:3], before[:3], strict=True)) ** 0.5
    assert way == pytest.approx(20.0 if axis < 3 else 0.0, abs=1.0)
    assert arm.facts("g60")["state"] == "Idle"
    assert arm.facts("g60")["error"] == ""


def test_a_held_jog_ends_where_the_arm_cannot_follow(arm: Bench) -> None:
    """There, and not at the next shorter of some round distances."""
    start = arm.pose("g60")[0]
    arm.do("jog", robot="g60", frame="base", axis=0, speed=1000)
    arm.forward(5.0)
    assert arm.facts("g60")["error"] == ""
    assert arm.pose("g60")[0] - start > 510.0
    refused = arm.refusal("jog", robot="g60", frame="base", axis=0, speed=50)
    assert "cannot move further" in refused


def test_a_jog_ignores_work_offsets_and_inches(arm: Bench) -> None:
    for line in ("G10 L2 P1 X100 Z-50", "G54", "G20 G91"):
        arm.do("send_gcode", robot="g60", line=line)
    arm.forward(0.1)
    before = arm.pose("g60")
    arm.do("jog", robot="g60", frame="base", axis=1, speed=20, step=10)
    arm.forward(2.0)
    assert arm.pose("g60") == pytest.approx(_shifted(before, 1, 10.0), abs=0.01)


def test_moves_to_joints_and_to_poses(arm: Bench) -> None:
    arm.do("move_to", robot="g60", joints_deg=[10, -30, 70, 5, 40, 20])
    arm.forward(3.0)
    assert arm.joints("g60") == [10.0, -30.0, 70.0, 5.0, 40.0, 20.0]
    own: dict[str, Any]
    for y, own in ((-50.0, {"speed_mm_s": 1}), (50.0, {"line": True, "speed_mm_s": 200})):
        there = [450.0, y, 400.0, 180.0, 0.0, 0.0]
        arm.do("move_to", robot="g60", pose_mm_deg=there, **own)
        arm.forward(3.0)
        assert arm.pose("g60")[:3] == pytest.approx(there[:3], abs=0.01)
        assert abs(arm.pose("g60")[3]) == pytest.approx(180.0, abs=0.01)


def test_hold_cycle_start_and_override(arm: Bench) -> None:
    arm.do("send_gcode", robot="g60", line="G1 A60 F600")
    arm.forward(1.0)
    arm.do("hold", robot="g60")
    arm.forward(1.0)
    held = arm.joints("g60")[0]
    arm.forward(5.0)
    assert arm.joints("g60")[0] == held
    arm.do("override", robot="g60", feed_percent=200)
    arm.do("cycle_start", robot="g60")
    arm.forward(2.0)
    assert arm.joints("g60")[0] > held + 35.0
    assert "10…200 %" in arm.refusal("override", robot="g60", feed_percent=5)
    assert "feed_percent or" in arm.refusal("override", robot="g60")


def test_home_one_axis_and_all(arm: Bench) -> None:
    arm.do("home", robot="g60", axis=2)
    arm.forward(5.0)
    assert arm.joints("g60") == [0.0, 0.0, 0.0, 0.0, 53.0, 0.0]
    arm.do("home", robot="g60")
    arm.forward(10.0)
    assert arm.joints("g60") == [0.0] * 6


def test_a_tool_is_set_and_an_unknown_one_refused(bench: Bench) -> None:
    bench.do("enable", robot="g60")
    bench.do("set_tool", robot="g60", tool=2)
    bench.forward(0.1)
    assert bench.facts("g60")["tool"] == 2
    assert "T0, T1, T2" in bench.refusal("set_tool", robot="g60", tool=7)


def test_stop_of_one_robot_leaves_the_others(bench: Bench) -> None:
    bench.do("enable", robot="g60")
    bench.do("send_gcode", robot="g60", line="G1 A60 F600")
    bench.do("move_to", robot="bench", pose_mm_deg=[100, 0, 100, 0, 0, 0])
    bench.forward(0.1)
    bench.do("stop", robot="g60")
    bench.forward(0.6)
    assert bench.facts("g60")["state"] == "Idle"
    assert bench.joints("g60")[0] < 3.0
    assert bench.pose("bench") == [100.0, 0.0, 100.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("robot", ["g60", "bench", "kuka"])
def test_the_emergency_stop_of_one_robot_and_its_reset(bench: Bench, robot: str) -> None:
    bench.do("emergency_stop", robot=robot)
    errors = {each["name"]: each["error"] for each in bench.do("robots")["robots"]}
    assert [name for name, error in errors.items() if error] == [robot]
    bench.do("reset", robot=robot)
    assert bench.facts(robot)["error"] == ""


def test_stop_and_reset_without_a_name_act_on_every_robot(bench: Bench) -> None:
    bench.do("emergency_stop")
    assert all(each["error"] for each in bench.do("robots")["robots"])
    bench.do("reset")
    assert not any(each["error"] for each in bench.do("robots")["robots"])


# ── robots without drives ──


def test_the_text_robot_is_moved_and_jogged(bench: Bench) -> None:
    bench.do("move_to", robot="bench", pose_mm_deg=[10, 20, 30, 0, 0, 90])
    bench.forward(1.0)
    bench.do("jog", robot="bench", frame="base", axis=0, speed=-1, step=5)
    bench.forward(1.0)
    bench.do("jog", robot="bench", frame="base", axis=5, speed=1, step=10)
    bench.forward(1.0)
    assert bench.pose("bench") == [5.0, 20.0, 30.0, 0.0, 0.0, 100.0]
    bench.do("home", robot="bench")
    bench.forward(2.0)
    assert bench.pose("bench") == [0.0, 0.0, 100.0, 0.0, 0.0, 0.0]


def test_the_kuka_is_moved_jogged_and_stopped(bench: Bench) -> None:
    bench.do("move_to", robot="kuka", pose_mm_deg=[20, 0, 30, 0, 0, 0], line=True, speed_mm_s=50)
    bench.forward(3.0)
    assert bench.pose("kuka") == [20.0, 0.0, 30.0, 0.0, 0.0, 0.0]
    bench.do("jog", robot="kuka", frame="base", axis=2, speed=10, step=50)
    bench.forward(1.0)
    bench.do("stop", robot="kuka")
    stands = bench.pose("kuka")
    assert 35.0 < stands[2] < 45.0
    bench.forward(5.0)
    assert bench.pose("kuka") == stands
    bench.do("jog", robot="kuka", frame="tool", axis=0, speed=20, step=10)
    bench.forward(2.0)
    assert bench.pose("kuka")[:3] == pytest.approx([stands[0] + 10.0, 0.0, stands[2]], abs=0.02)
    bench.do("home", robot="kuka")
    bench.forward(20.0)
    assert bench.joints("kuka") == [0.0, -90.0, 90.0, 0.0, 45.0, 0.0]


@pytest.mark.parametrize(("frame", "axis", "speed"), [("joint", 1, 20), ("base", 2, -100)])
def test_a_collision_ends_a_held_jog_and_the_next_one_leads_out(
    arm: Bench, frame: str, axis: int, speed: float
) -> None:
    arm.do("on_collision", reaction="report")
    arm.do("jog", robot="g60", frame=frame, axis=axis, speed=speed)
    arm.forward(20.0)
    assert [(each["link"], each["object"]) for each in arm.do("contacts")] == [
        ("torch.nozzle", "fixture")
    ]
    height = arm.pose("g60")[2]
    assert not arm.facts("g60")["moving"]
    arm.do("jog", robot="g60", frame=frame, axis=axis, speed=-speed)
    arm.forward(1.0)
    assert arm.pose("g60")[2] > height + 10.0


def test_the_machine_is_moved_by_lines_jogs_and_move_to(bench_of: Callable[[str], Bench]) -> None:
    bench = bench_of("grblhal_6axis")
    bench.do("send_gcode", robot="machine", line="G1 X10 F600")
    bench.forward(5.0)
    bench.do("jog", robot="machine", frame="joint", axis=1, speed=10, step=5)
    bench.forward(5.0)
    bench.do("move_to", robot="machine", joints_deg=[1, 2, 3, 0, 0, 0])
    bench.forward(5.0)
    assert bench.pose("machine") == [1.0, 2.0, 3.0, 0.0, 0.0, 0.0]
    assert "error:" in bench.refusal("send_gcode", robot="machine", line="G1 X")
    bench.do("emergency_stop", robot="machine")
    assert bench.facts("machine")["state"] == "Alarm"
    bench.do("reset", robot="machine")
    assert bench.facts("machine")["state"] == "Idle"


# ── what makes no sense ──


@pytest.mark.parametrize(
    ("name", "parameters", "says"),
    [
        ("home", {"robot": "g6"}, "did you mean 'g60'?"),
        (
            "enable",
            {"robot": "bench"},
            "bench (text_robot, SIMULATION) knows no enable; it has: home",
        ),
        ("jog", {"robot": "g60", "frame": "joint", "axis": 6, "speed": 1}, "axis"),
        ("jog", {"robot": "g60", "frame": "joint", "axis": 0, "speed": 0}, "goes nowhere"),
        ("jog", {"robot": "g60", "frame": "world", "axis": 0, "speed": 1}, "frame"),
        ("jog", {"robot": "bench", "frame": "base", "axis": 0, "speed": 1}, "steps only"),
        ("move_to", {"robot": "g60"}, "either joints_deg or pose_mm_deg"),
        ("move_to", {"robot": "g60", "joints_deg": [1, 2]}, "6 joints, joints_deg has 2"),
        ("move_to", {"robot": "g60", "pose_mm_deg": [1, 2, 3]}, "pose_mm_deg"),
        ("move_to", {"robot": "kuka", "joints_deg": [0] * 6}, "along lines only"),
        ("move_to", {"robot": "bench", "joints_deg": []}, "no joints: give pose_mm_deg"),
        ("set_joint_positions", {"robot": "kuka", "joints_deg": [0] * 6}, "knows no set_joint"),
        ("send_gcode", {"robot": "g60", "line": "G" * 300}, "line"),
        ("home", {"robot": "bench", "axis": 1}, "homes as a whole"),
    ],
)
def test_wrong_motion_commands_are_refused_with_a_reason(
    bench: Bench, name: str, parameters: dict[str, Any], says: str
) -> None:
    bench.do("enable", robot="g60")
    assert says in bench.refusal(name, **parameters)


def _shifted(pose: list[float], axis: int, way: float) -> list[float]:
    return [value + way if at == axis else value for at, value in enumerate(pose)]
