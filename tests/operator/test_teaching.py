"""Measured values in use: the TCP of the active tool, a work frame as G54 … G59."""

from typing import Any

import pytest
from tests.benches import Bench

BENT = [20, 10, 40, 0, 40, 0]


def tip(bench: Bench) -> list[float]:
    bench.forward(0.01)  # a row that is not from before
    pose: list[float] = bench.pose("g60")
    return pose


def test_set_tcp_moves_the_tip_of_the_active_tool(arm: Bench) -> None:
    before = arm.facts("g60")["tools"]["1"]["tcp_mm_deg"]
    arm.do("set_joint_positions", robot="g60", joints_deg=[0] * 6)
    stood, joints = tip(arm), arm.joints("g60")
    reported = arm.do("set_tcp", robot="g60", tcp_mm=[before[0], before[1], before[2] + 25.0])
    assert reported["tcp_mm_deg"] == pytest.approx([*before[:2], before[2] + 25.0, *before[3:]])
    assert reported["measured"]
    assert reported["cell_file"].startswith("robots.g60.tools.1.tcp_mm_deg: [")
    moved = [b - a for a, b in zip(stood[:3], tip(arm)[:3], strict=True)]
    assert sum(each**2 for each in moved) ** 0.5 == pytest.approx(25.0)
    assert arm.joints("g60") == pytest.approx(joints), "the arm has not moved"
    arm.do("set_tcp", robot="g60")
    assert tip(arm) == pytest.approx(stood)
    assert not arm.facts("g60")["tools"]["1"]["measured"]


def test_four_points_give_the_tip_whatever_tcp_was_set(arm: Bench) -> None:
    arm.do("set_joint_positions", robot="g60", joints_deg=BENT)
    true = arm.facts("g60")["tools"]["1"]["tcp_mm_deg"]
    for n, (axis, speed) in enumerate(((3, 20), (4, 20), (3, -20), (5, 20))):
        arm.do("teach_point", robot="g60", name=f"P{n}")  # turned about the tip, which stays
        arm.do("jog", robot="g60", frame="tool", axis=axis, speed=speed, step=25)
        arm.forward(3.0)
    arm.do("set_tcp", robot="g60", tcp_mm=[5, 5, 5])
    reported = arm.do("tcp_by_four_points", robot="g60", points=[f"P{n}" for n in range(4)])
    used = arm.do("set_tcp", robot="g60", tcp_mm=reported["tcp_mm_deg"][:3])
    assert used["tcp_mm_deg"] == pytest.approx(true, abs=1e-3)


def test_moves_use_the_measured_tip(arm: Bench) -> None:
    arm.do("set_joint_positions", robot="g60", joints_deg=BENT)
    arm.do("set_tcp", robot="g60", tcp_mm=[0, 0, 90])
    there = tip(arm)
    there[2] += 20.0
    arm.do("move_to", robot="g60", pose_mm_deg=there, line=True, speed_mm_s=100)
    arm.forward(3.0)
    assert tip(arm) == pytest.approx(there, abs=1e-3)


def test_g43_takes_the_measured_tip_as_length(arm: Bench) -> None:
    """The kinematics has the measured tip of the mounted tool, so its own G43 shifts nothing."""
    arm.do("set_joint_positions", robot="g60", joints_deg=BENT)
    arm.do("set_tcp", robot="g60", tcp_mm=[0, 0, 90])
    x, y, z, *_ = tip(arm)
    for line in ("G43 H1", f"G1 X{x} Y{y} Z{z + 20} F6000"):
        arm.do("send_gcode", robot="g60", line=line)
    arm.forward(3.0)
    assert tip(arm)[:3] == pytest.approx([x, y, z + 20], abs=1e-3)


def test_a_snapshot_holds_tip_and_frame(arm: Bench) -> None:
    arm.do("set_joint_positions", robot="g60", joints_deg=BENT)
    arm.do("set_tcp", robot="g60", tcp_mm=[1, 2, 93])
    arm.do("set_work_frame", robot="g60", system="G55", frame_mm_deg=[400, 0, 100, 0, 0, 0])
    arm.forward(0.5)
    stood, snapshot = tip(arm), arm.do("snapshot")["snapshot"]
    arm.do("set_tcp", robot="g60")
    arm.do("set_work_frame", robot="g60", system="G55", frame_mm_deg=[0] * 6)
    arm.forward(0.5)
    assert tip(arm) != pytest.approx(stood)
    arm.do("restore", snapshot=snapshot)
    assert tip(arm) == pytest.approx(stood)
    assert arm.facts("g60")["work_offsets_mm_deg"] == {"G55": [400, 0, 100, 0, 0, 0]}


def test_a_frame_becomes_the_zero_of_a_program_and_of_its_preview(arm: Bench) -> None:
    arm.do("set_joint_positions", robot="g60", joints_deg=BENT)
    here = tip(arm)
    reported = arm.do(
        "set_work_frame", robot="g60", system="G54", frame_mm_deg=[*here[:3], 0, 0, 0]
    )
    assert reported["origin_mm"] == pytest.approx(here[:3], abs=1e-5)
    arm.forward(0.5)
    turn = " ".join(f"{axis}{angle:.4f}" for axis, angle in zip("ABC", here[3:], strict=True))
    text = f"G21 G90 G94 G54\nG1 X0 Y0 Z15 {turn} F3000\n"
    way = arm.do("preview", robot="g60", text=text)
    assert way["violations"] == []
    assert [1000 * value for value in way["tcp"][-1]] == pytest.approx(
        [here[0], here[1], here[2] + 15.0], abs=0.01
    )
    arm.do("load_program", robot="g60", text=text)
    arm.do("run_program", robot="g60")
    arm.forward(5.0)
    assert tip(arm)[:3] == pytest.approx([here[0], here[1], here[2] + 15.0], abs=0.01)


def test_a_scene_shows_the_tip_and_the_frames(arm: Bench) -> None:
    arm.do("set_tcp", robot="g60", tcp_mm=[0, 0, 77])
    arm.do("set_work_frame", robot="g60", system="G54", frame_mm_deg=[100, 200, 300, 0, 0, 0])
    arm.forward(0.5)
    shown = arm.do("scene")["robots"]["g60"]
    assert shown["tools"]["1"]["tcp"][11] == pytest.approx(0.077)
    assert shown["tools"]["1"]["name"]
    assert [shown["frames"]["G54"][n] for n in (3, 7, 11)] == pytest.approx([0.1, 0.2, 0.3])


def test_a_rotated_work_frame_needs_origin_only(arm: Bench) -> None:
    frame = [400, 0, 100, 0, 0, 12.5]
    said = arm.refusal("set_work_frame", robot="g60", frame_mm_deg=frame)
    assert "turned by up to 12.5°" in said
    assert "origin_only" in said
    reported = arm.do("set_work_frame", robot="g60", frame_mm_deg=frame, origin_only=True)
    assert reported["origin_mm"] == [400, 0, 100]


@pytest.mark.parametrize(
    ("command", "parameters", "says"),
    [
        ("set_tcp", {"robot": "no_robot"}, "no_robot"),
        ("set_tcp", {"robot": "bench", "tcp_mm": [0, 0, 1]}, "no tool in hand"),
        ("set_tcp", {"robot": "g60", "tcp_mm": [0, 1]}, "tcp_mm"),
        ("set_work_frame", {"robot": "bench", "frame_mm_deg": [0] * 6}, "no work frames"),
        ("set_work_frame", {"robot": "g60", "frame_mm_deg": [0] * 6, "system": "G60"}, "G60"),
    ],
)
def test_wrong_tips_and_frames_are_refused_with_a_reason(
    bench: Bench, command: str, parameters: dict[str, Any], says: str
) -> None:
    assert says in bench.refusal(command, **parameters)


def test_the_tip_of_a_moving_arm_cannot_be_changed(arm: Bench) -> None:
    arm.do("jog", robot="g60", frame="joint", axis=0, speed=10, step=20)
    arm.forward(0.2)
    assert arm.refusal("set_tcp", robot="g60", tcp_mm=[0, 0, 50])
