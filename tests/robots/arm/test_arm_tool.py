"""Lines and arcs of the tool's tip, and the frames they are given in."""

import numpy as np
import pytest
from tests.robots.arm.bench import READY, degrees, prompt_arm, refusal, run, send, tip_mm

from understudy import VirtualController
from understudy.units import DEG

MICROMETRE = 1e-3  # in mm
TORCH = {"name": "torch", "tcp_mm_deg": [0, 0, 150, 0, 0, 0]}
TILTED = {"name": "tilted", "tcp_mm_deg": [10, 0, 100, 0, 30, 0]}


def ready_arm(**settings: object) -> VirtualController:
    return prompt_arm(start_deg=READY, **settings)


def tips(controller: VirtualController, *lines: str, step: float = 5e-3) -> np.ndarray:
    """Positions of the tip during the lines, in mm."""
    send(controller, *lines)
    points = [tip_mm(controller)]
    while controller.status().moving:
        controller.advance(step)
        points.append(tip_mm(controller))
    assert controller.status().error_message == ""
    return np.array(points)


def words(letters: str, *values: float) -> str:
    return " ".join(f"{letter}{value:.6f}" for letter, value in zip(letters, values, strict=True))


def off_the_line(points: np.ndarray) -> float:
    """The greatest distance of any point from the line between the first and the last."""
    way = points[-1] - points[0]
    along = np.clip((points - points[0]) @ way / (way @ way), 0.0, 1.0)
    return float(np.linalg.norm(points - points[0] - along[:, None] * way, axis=1).max())


# ── lines ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", [(80, 0, 0), (0, 120, 0), (0, 0, -90), (60, -70, 50)])
def test_g1_takes_the_tip_along_a_straight_line(way: tuple[float, float, float]) -> None:
    controller = ready_arm()
    target = tip_mm(controller) + way
    points = tips(controller, f"G1 {words('XYZ', *target)} F6000")
    assert points[-1] == pytest.approx(target, abs=1e-5)
    assert off_the_line(points) < MICROMETRE


def test_g1_runs_at_its_feed_in_mm_per_minute() -> None:
    controller = ready_arm()
    x, y, z = tip_mm(controller)
    send(controller, f"G1 {words('XYZ', x, y + 100, z)} F3000")
    controller.advance(1.0)
    before = tip_mm(controller)
    controller.advance(0.1)
    assert np.linalg.norm(tip_mm(controller) - before) == pytest.approx(5.0, abs=MICROMETRE)


def test_g1_turns_the_tool_in_place() -> None:
    controller = ready_arm()
    run(controller, f"G0 {words('XYZ', *tip_mm(controller))}")
    points = tips(controller, "M429", "G91 G1 C25 F600")
    assert np.linalg.norm(points - points[0], axis=1).max() < MICROMETRE


def test_g0_to_a_pose_is_point_to_point() -> None:
    """The path is straight in the joints, not in space."""
    controller = ready_arm()
    start = np.array(degrees(controller))
    x, y, z = tip_mm(controller)
    target = (x - 80, y + 250, z - 120)
    send(controller, f"G0 {words('XYZ', *target)}")
    rows, points = [], []
    while controller.status().moving:
        controller.advance(5e-3)
        rows.append(degrees(controller))
        points.append(tip_mm(controller))
    assert points[-1] == pytest.approx(target, abs=1e-5)
    assert off_the_line(np.array(points)) > 1.0
    joints = np.array(rows) - start
    along = joints @ joints[-1] / (joints[-1] @ joints[-1])
    assert np.abs(joints - along[:, None] * joints[-1]).max() < 1e-6


def test_g0_leaves_home_though_home_is_singular() -> None:
    controller = prompt_arm()
    run(controller, "G0 X400 Y0 Z500 A180 B0 C0")
    assert tip_mm(controller) == pytest.approx((400, 0, 500), abs=1e-5)


def test_a_pose_out_of_reach_is_reported_and_nothing_moves() -> None:
    controller = ready_arm()
    send(controller, "G0 X2000 Y0 Z500")
    controller.run_until_idle()
    status = controller.status()
    assert status.error_code == 33
    assert status.error_message.endswith("(line 1: G0 X2000 Y0 Z500)")
    assert degrees(controller) == READY


def test_a_line_that_leaves_the_reach_is_reported_and_nothing_moves() -> None:
    controller = ready_arm()
    send(controller, "G1 X1400 F6000")
    controller.run_until_idle()
    assert "of the path) (line 1: G1 X1400 F6000)" in controller.status().error_message
    assert degrees(controller) == READY


# ── arcs ────────────────────────────────────────────────────────────────────────────────────────

PLANES = [("G17", "XY", "IJ", (0, 1)), ("G18", "ZX", "KI", (2, 0)), ("G19", "YZ", "JK", (1, 2))]


@pytest.mark.parametrize(("plane", "letters", "offsets", "axes"), PLANES, ids=lambda p: str(p)[:3])
@pytest.mark.parametrize("direction", ["G2", "G3"])
def test_a_half_circle(
    plane: str, letters: str, offsets: str, axes: tuple[int, int], direction: str
) -> None:
    """Round a centre given by its offsets; in the plane, on the circle, on the right side."""
    controller = ready_arm()
    start = tip_mm(controller)
    u, v = axes
    target, centre = start.copy(), start.copy()
    target[u] += 60.0
    centre[u] += 30.0
    ends = words(letters, target[u], target[v])
    points = tips(controller, f"{plane} {direction} {ends} {words(offsets, 30, 0)} F6000")
    assert points[-1] == pytest.approx(target, abs=1e-4)
    radius = np.linalg.norm(points - centre, axis=1)
    assert np.abs(radius - 30.0).max() < MICROMETRE
    assert np.abs(points[:, 3 - u - v] - start[3 - u - v]).max() < MICROMETRE
    # Clockwise from the left goes over the top, seen with the first axis to the right.
    side = points[len(points) // 2, v] - start[v]
    assert side * (1 if direction == "G2" else -1) > 25.0


@pytest.mark.parametrize(("plane", "letters", "offsets", "axes"), PLANES, ids=lambda p: str(p)[:3])
@pytest.mark.parametrize(("r", "longer"), [(40.0, False), (-40.0, True)])
def test_a_quarter_or_three_by_radius(
    plane: str, letters: str, offsets: str, axes: tuple[int, int], r: float, longer: bool
) -> None:
    controller = ready_arm()
    start = tip_mm(controller)
    u, v = axes
    target = start.copy()
    target[[u, v]] += 40.0
    points = tips(controller, f"{plane} G2 {words(letters, target[u], target[v])} R{r} F6000")
    assert points[-1] == pytest.approx(target, abs=1e-4)
    centre = start.copy()
    centre[v if longer else u] += 40.0
    assert np.abs(np.linalg.norm(points - centre, axis=1) - 40.0).max() < MICROMETRE
    length = np.linalg.norm(np.diff(points, axis=0), axis=1).sum()
    assert length == pytest.approx(np.pi / 2 * 40.0 * (3 if longer else 1), rel=1e-2)


def test_a_full_circle_ends_where_it_began() -> None:
    controller = ready_arm()
    start = tip_mm(controller)
    points = tips(controller, "G17 G3 I-25 J0 F6000")
    assert points[-1] == pytest.approx(start, abs=1e-4)
    assert np.linalg.norm(np.diff(points, axis=0), axis=1).sum() == pytest.approx(
        2 * np.pi * 25, rel=1e-2
    )


def test_a_helix_rises_evenly() -> None:
    controller = ready_arm()
    x, y, z = tip_mm(controller)
    ends = words("XYZ", x, y, z + 20)
    points = tips(controller, f"G17 G3 {ends} I20 J0 F6000")
    assert points[-1] == pytest.approx((x, y, z + 20), abs=1e-4)
    radius = np.linalg.norm(points[:, :2] - (x + 20, y), axis=1)
    assert np.abs(radius - 20.0).max() < MICROMETRE
    assert (np.diff(points[:, 2]) >= -1e-9).all()


# ── frames ──────────────────────────────────────────────────────────────────────────────────────


def test_increments_of_the_tool() -> None:
    controller = ready_arm()
    start = tip_mm(controller)
    run(controller, "G91 G1 X10 F6000", "G1 X10 Z-5")
    assert tip_mm(controller) == pytest.approx(np.add(start, (20, 0, -5)), abs=1e-5)


def test_inches() -> None:
    controller = ready_arm()
    start = tip_mm(controller)
    run(controller, "G20 G91 G1 X1 F200")
    assert tip_mm(controller) == pytest.approx(np.add(start, (25.4, 0, 0)), abs=1e-5)


def test_inches_do_not_change_degrees() -> None:
    controller = prompt_arm()
    run(controller, "G20 G1 A10 F600")
    assert degrees(controller)[0] == 10


def test_a_work_offset_shifts_the_zero() -> None:
    controller = ready_arm()
    x, y, z = tip_mm(controller)
    run(controller, f"G10 L2 P1 {words('XYZ', x, y, z)}", "G54", "G1 X0 Y30 Z-10 F6000")
    assert tip_mm(controller) == pytest.approx((x, y + 30, z - 10), abs=1e-5)
    run(controller, f"G53 G1 {words('XYZ', x, y, z)}")
    assert tip_mm(controller) == pytest.approx((x, y, z), abs=1e-5)


def test_other_work_offsets_are_other_zeros() -> None:
    controller = ready_arm()
    x, y, z = tip_mm(controller)
    run(controller, f"G10 L2 P2 {words('XYZ', x, y, z)}", "G55 G1 X0 Y20 Z0 F6000")
    run(controller, f"G54 G1 {words('XYZ', x, y, z)}")
    assert tip_mm(controller) == pytest.approx((x, y, z), abs=1e-5)


def test_g92_sets_the_coordinates_of_the_position() -> None:
    controller = ready_arm()
    start = tip_mm(controller)
    run(controller, "G92 X0 Y0 Z0", "G1 X15 Y0 Z0 F6000")
    assert tip_mm(controller) == pytest.approx(np.add(start, (15, 0, 0)), abs=1e-5)
    run(controller, "G92.1", f"G1 {words('XYZ', *start)}")
    assert tip_mm(controller) == pytest.approx(start, abs=1e-5)


def test_g43_1_shifts_z() -> None:
    controller = ready_arm()
    x, y, z = tip_mm(controller)
    run(controller, "G43.1 Z40", f"G1 {words('XYZ', x, y, z - 40)} F6000")
    assert tip_mm(controller) == pytest.approx((x, y, z), abs=1e-5)
    run(controller, "G49", f"G1 {words('XYZ', x, y, z - 40)}")
    assert tip_mm(controller) == pytest.approx((x, y, z - 40), abs=1e-5)


def test_g43_takes_lengths_from_the_tools_of_the_cell() -> None:
    """The tip of the mounted tool is in the kinematics: G43 adds what another length differs."""
    tools = {1: TORCH, 2: {"name": "pen", "tcp_mm_deg": [0, 0, 80, 0, 0, 0]}}
    controller = ready_arm(tools=tools, tool=1)
    x, y, z = tip_mm(controller)
    there = f"G1 {words('XYZ', x, y, z)} F6000"
    shifts = {"G43": 0.0, "G43 H1": 0.0, "G43 H2": -70.0, "G49": 0.0, "G10 L1 P1 Z155": 0.0}
    for line, shift in (shifts | {"G43 H01": 5.0}).items():
        run(controller, line, there)
        assert tip_mm(controller) == pytest.approx((x, y, z + shift), abs=1e-5), line


def test_g43_without_a_mounted_tool_keeps_the_length_free() -> None:
    controller = ready_arm(tools={1: TORCH})
    x, y, z = tip_mm(controller)
    run(controller, "G43 H1", f"G1 {words('XYZ', x, y, z - 150)} F6000")
    assert tip_mm(controller) == pytest.approx((x, y, z), abs=1e-5)


def test_g43_of_an_unknown_tool_is_refused() -> None:
    controller = ready_arm(tools={1: TORCH}, tool=1)
    send(controller, "G43 H7")
    controller.advance(0.01)
    status = controller.status()
    assert status.error_code == 38
    assert "there is no tool 7; there are: T0, T1" in status.error_message


# ── tools ───────────────────────────────────────────────────────────────────────────────────────


def test_m6_mounts_a_tool_and_moves_the_tip() -> None:
    controller = ready_arm(tools={1: TORCH})
    before = tip_mm(controller)
    run(controller, "M6 T1")
    assert tip_mm(controller) == pytest.approx(before - (0, 0, 150), abs=1e-6)
    assert degrees(controller) == READY, "no joint has moved"
    run(controller, "M6 T0")
    assert tip_mm(controller) == pytest.approx(before, abs=1e-9)


def test_a_line_of_a_tilted_tool_is_straight_as_well() -> None:
    controller = ready_arm(tools={2: TILTED})
    run(controller, "M6 T2")
    target = np.add(tip_mm(controller), (0, 90, -40))
    points = tips(controller, f"G1 {words('XYZ', *target)} F6000")
    assert points[-1] == pytest.approx(target, abs=1e-5)
    assert off_the_line(points) < MICROMETRE


def test_the_change_waits_for_the_motion_before_it() -> None:
    controller = ready_arm(tools={1: TORCH})
    x, y, z = tip_mm(controller)
    send(controller, f"G1 {words('XYZ', x, y + 50, z)} F3000", "M6 T1")
    send(controller, f"G1 {words('XYZ', x, y + 50, z)}")
    controller.run_until_idle()
    assert controller.status().error_message == ""
    assert tip_mm(controller) == pytest.approx((x, y + 50, z), abs=1e-5)
    assert np.abs(np.array(degrees(controller)) - READY).max() > 1.0, "the arm made room"


def test_an_unknown_tool_is_refused_and_the_mounted_one_stays() -> None:
    controller = ready_arm(tools={1: TORCH})
    run(controller, "M6 T1")
    before = tip_mm(controller)
    send(controller, "M6 T9")
    assert (
        "T9: is not a tool of this controller; there are: T0, T1"
        in controller.status().error_message
    )
    controller.restore(controller.snapshot())
    assert tip_mm(controller) == pytest.approx(before)
    run(controller, "", "M6 T1")


def test_a_cell_may_begin_with_a_tool() -> None:
    bare, torch = ready_arm(), ready_arm(tools={1: TORCH}, tool=1)
    assert tip_mm(torch) == pytest.approx(tip_mm(bare) - (0, 0, 150), abs=1e-6)


def test_in_the_wire_dialect_a_tool_changes_only_the_kinematics() -> None:
    controller = prompt_arm(dialect="grblhal", start_deg=READY, tools={1: TORCH})
    before = tip_mm(controller)
    run(controller, "M6 T1", "G1 X10 F600", "G1 X0")
    assert degrees(controller) == pytest.approx(READY, abs=1e-5)
    assert tip_mm(controller) == pytest.approx(before - (0, 0, 150), abs=1e-3)


# ── set_joint_positions ─────────────────────────────────────────────────────────────────────────


def test_set_joint_positions_sets_the_joints() -> None:
    controller = prompt_arm()
    assert controller.set_joint_positions(np.array(READY) * DEG) is None
    assert degrees(controller) == READY
    run(controller, "G91 G1 A5 F600")
    assert degrees(controller)[0] == 5


@pytest.mark.parametrize(
    ("positions", "reason"),
    [
        ([0.0] * 5, "6 joint positions are needed"),
        ([float("nan")] * 6, "joint positions must be finite numbers"),
        ([4.0, 0, 0, 0, 0, 0], "J1 = 229.2° is outside -170.0°…170.0°"),
    ],
)
def test_set_joint_positions_refuses_positions_beyond_the_limits(
    positions: list[float], reason: str
) -> None:
    assert refusal(prompt_arm().set_joint_positions(positions)).startswith(reason)


def test_set_joint_positions_is_refused_in_motion() -> None:
    controller = prompt_arm()
    send(controller, "G4 P1")
    assert refusal(controller.set_joint_positions([0.0] * 6)) == (
        "only a controller at rest can do that"
    )
