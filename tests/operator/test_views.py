"""Views of every kind of robot; reading a view changes nothing."""

from typing import Any

import msgspec
import pytest

from understudy.app.build import load_cell
from understudy.devices.welder.welder import MOST_POINTS, Seam, SeamState
from understudy.simulation.cell import Cell
from understudy.units import nanoseconds
from understudy.wire.exchange import InProcessCell


def components_of(cell: InProcessCell) -> dict[str, Any]:
    assert isinstance(cell.timed_cell, Cell)
    return cell.timed_cell.components


def test_the_view_of_an_arm_has_its_pose_and_its_target() -> None:
    cell = load_cell("g60_welding")
    arm = components_of(cell)["g60"]
    rest = arm.view(0)
    assert (rest.state, rest.moving, rest.ghost, rest.tool) == ("Idle", False, None, 1)
    assert rest.tcp[:3] == pytest.approx((0.77, 0.0, 0.995))
    arm.connect(0)
    arm.enable(0)
    assert arm.send_gcode("G1 A90 F3000", 0) is None
    cell.advance(0.5)
    now = cell.timed_cell.now
    seen = arm.view(now)
    assert (seen.state, seen.moving, seen.line) == ("Run", True, 1)
    assert seen.ghost == pytest.approx([1.5708, 0, 0, 0, 0, 0], abs=1e-4)
    assert 0.0 < seen.q[0] < seen.ghost[0]
    tip = arm.tcp(now)
    assert seen.tcp == pytest.approx(tip)
    arm.emergency_stop(now)
    assert arm.view(now).state == "Alarm"


def test_the_view_of_a_kuka_has_its_axes() -> None:
    kuka = components_of(load_cell("kuka_eki"))["kuka"]
    seen = kuka.view(0)
    assert (seen.state, seen.moving, seen.ghost) == ("Idle", False, None)
    assert seen.q == pytest.approx(kuka.reading(0).axes)


def test_the_view_of_a_text_robot_has_no_joints() -> None:
    cell = load_cell("text_robot")
    (name,) = cell.timed_cell.faces
    client = cell.connect(name)
    client.say(b"MOVE_ABS 100,0,150,0,0,0\n")
    cell.advance(0.25)
    point = next(iter(components_of(cell).values()))
    seen = point.view(cell.timed_cell.now)
    assert (list(seen.q), seen.moving) == ([], True)
    assert seen.tcp[0] == pytest.approx(0.05)


def test_the_view_of_a_machine_has_three_lengths_and_three_angles() -> None:
    cell = load_cell("grblhal_6axis")
    client = cell.connect("machine.grblhal")
    client.ask(b"G0X10A90\n")
    cell.advance(60.0)
    seen = components_of(cell)["machine"].view(cell.timed_cell.now)
    assert seen.q == pytest.approx((0.01, 0.0, 0.0, 1.5708, 0.0, 0.0), abs=1e-4)
    assert (list(seen.linear), seen.ghost) == ([0, 1, 2], None)


@pytest.mark.parametrize("name", ["default", "g60_welding", "grblhal_6axis"])
def test_reading_a_view_changes_nothing(name: str) -> None:
    def run(*, looks: bool) -> bytes:
        cell = load_cell(name)
        for _ in range(20):
            cell.advance(0.05)
            for part in components_of(cell).values() if looks else ():
                if hasattr(part, "view"):
                    part.view(cell.timed_cell.now)
                if hasattr(part, "trail_since"):
                    part.trail_since(0)
        return msgspec.json.encode(cell.snapshot())

    assert run(looks=True) == run(looks=False)


# ── the trail ──


def seam(points: int) -> Seam:
    made = Seam(lambda times: times, 1.0)
    made.load(SeamState(trail=[(0.001 * n, 0.0, 0.0) for n in range(points)]))
    return made


def test_known_points_of_a_trail_are_not_sent_again() -> None:
    trail = seam(5)
    first, points, version = trail.trail_since(0)
    assert (first, len(points)) == (0, 5)
    assert trail.trail_since((3, version)) == (3, points[3:], version)
    assert trail.trail_since((5, version)) == (5, [], version)


def test_a_new_trail_is_sent_from_its_beginning() -> None:
    trail = seam(5)
    version = trail.trail_since(0)[2]
    trail.clear_trail(0)
    assert trail.trail_since((0, version))[:2] == (0, [])
    trail.load(SeamState(trail=[(1.0, 0.0, 0.0)] * 9))
    first, points, other = trail.trail_since((5, version))
    assert (first, len(points)) == (0, 9)
    assert other != version


@pytest.mark.parametrize("known", [-1, 6, (-1, 1), (6, 1), (2, 99)])
def test_a_request_with_unknown_points_gets_the_whole_trail(known: Any) -> None:
    assert seam(5).trail_since(known)[0] == 0


def test_a_thinned_trail_has_another_version() -> None:
    trail = seam(MOST_POINTS)
    version = trail.trail_since(0)[2]
    trail._path = lambda times: times[:, None] * [1.0, 0.0, 0.0] + [99.0, 0.0, 0.0]
    trail.watch(0, burning=True, wanted=True)
    trail.look(nanoseconds(1.0))
    first, points, other = trail.trail_since((MOST_POINTS, version))
    assert first == 0
    assert len(points) < MOST_POINTS
    assert other != version
