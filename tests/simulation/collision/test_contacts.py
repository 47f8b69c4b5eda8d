"""Contacts of an arm that moves among objects are reported when they begin."""

import math
from itertools import pairwise

import numpy as np
import pytest
from tests.simulation.collision.around_bench import POST, arm, hits, names, send

from understudy import VirtualController
from understudy.errors import Refused
from understudy.robots.arm.controller import ArmController as Inner
from understudy.units import DEG, MM, seconds

SWING = "G1 A120 F3000"
TORCH = {
    1: {
        "name": "torch",
        "shapes": [
            {"name": "tube", "type": "cylinder", "radius_mm": 10.0, "height_mm": 150.0,
             "position_mm": [0.0, 0.0, 75.0]},
        ],
    },
}  # fmt: skip
FAR_POST = {**POST, "position_mm": [0.0, 740.0, 995.0]}
"""Out of the flange's reach, but not of the torch's."""


def inner(controller: VirtualController) -> Inner:
    return controller._inner


def turned(controller: VirtualController) -> float:
    """True position of the first joint in degrees."""
    return math.degrees(controller.joint_state().positions[0])


# ── contacts ────────────────────────────────────────────────────────────────────────────────────


def test_a_contact_has_names_point_and_time() -> None:
    controller = arm(POST)
    found = hits(controller)
    send(controller, SWING)
    controller.run_until_idle()
    first = found[0]
    assert first.names == ("wrist_2", "post")
    assert (first.kind, first.line) == ("collision", 1)
    assert np.hypot(first.point[0], first.point[1] - 0.62) == pytest.approx(20 * MM, abs=5 * MM)
    assert 0.0 < first.depth < 60 * MM
    assert first.text().startswith("wrist_2 collides with post at (")
    assert first.text().endswith(f"line 1, {seconds(first.at):.3f} s")


def test_a_contact_is_reported_at_its_first_touch() -> None:
    """Compared with samples every half millisecond of another detector."""
    controller = arm(POST)
    found = hits(controller)
    send(controller, SWING)
    controller.run_until_idle()
    watch = inner(controller).collision
    assert watch is not None
    detector = watch.body.detector(controller.surroundings.environment, 0)
    touching = [f"{name}" for name in ("wrist_2", "flange")]
    again = arm()
    send(again, SWING)
    again.advance(seconds(found[0].at) - 0.0005)
    assert not detector.check_collision(again.joint_state().positions).collision
    again.advance(0.001)
    seen = detector.check_collision(again.joint_state().positions)
    assert seen.collision
    assert seen.object1_name in touching


def test_a_contact_counts_once_until_the_arm_has_left() -> None:
    controller = arm(POST)
    found = hits(controller)
    # Into the post, three lines inside it, out on the other side, and back through it.
    send(controller, "G1 A88 F3000", "G1 A89", "G1 A90", "G1 A92", "G1 A120", "G1 A0")
    controller.run_until_idle()
    assert [contact.names[0] for contact in found] == ["wrist_2", "flange"] * 2
    assert [contact.line for contact in found] == [1, 1, 6, 6]
    assert controller.tally().collisions_detected == 4
    assert controller.contacts() == ()


def test_by_default_nothing_stops() -> None:
    controller = arm(POST)
    send(controller, SWING)
    controller.run_until_idle()
    assert turned(controller) == pytest.approx(120.0)
    assert not controller.status().error


def test_present_contacts_can_be_read_and_cleared() -> None:
    controller = arm(POST)
    send(controller, "G1 A90 F3000")
    controller.run_until_idle()
    assert names(controller) == [("wrist_2", "post"), ("flange", "post")]
    watch = inner(controller).collision
    assert watch is not None
    shown = watch.status(0).contacts
    assert [contact.object for contact in shown] == ["post", "post"]
    watch.clear()
    assert controller.contacts() == ()
    send(controller, "G1 A91", "G1 A120")
    controller.run_until_idle()
    assert controller.tally().collisions_detected == 2


def test_self_collisions_and_zones_have_their_own_kinds() -> None:
    controller = arm(zones=[{**POST, "name": "aisle"}])
    found = hits(controller)
    send(controller, SWING, "G0 A0 B60 C165")
    controller.run_until_idle()
    assert found[0].kind == "zone"
    assert found[0].text().startswith("wrist_2 reaches into zone aisle")
    assert found[-1].kind == "self_collision"


def test_checks_can_be_disabled() -> None:
    fold = "G0 B60 C165"
    for keys, expected in (
        ({"enable": False}, set()),
        ({"check_environment": False}, {"self_collision"}),
        ({"check_self_collision": False}, {"collision"}),
    ):
        controller = arm(POST, collision=keys)
        found = hits(controller)
        send(controller, SWING, "G1 A0", fold)
        controller.run_until_idle()
        assert {contact.kind for contact in found} == expected, keys


# ── stop ────────────────────────────────────────────────────────────────────────────────────────


def test_a_contact_stops_the_arm_which_can_move_out_after_reset() -> None:
    free, controller = arm(POST), arm(POST, collision={"on_collision": "stop"})
    found = hits(free)
    send(free, SWING)
    free.run_until_idle()
    send(controller, SWING, "G1 A0")
    controller.run_until_idle()
    assert turned(controller) == pytest.approx(85.277, abs=0.01)
    status = controller.status()
    assert (status.error_code, status.enabled, status.state) == (1, False, "Alarm")
    assert status.error_message == f"{found[0].text()}: reset first"
    refusal = controller.enable()
    assert isinstance(refusal, Refused)
    assert "reset first" in refusal.reason
    controller.reset()
    controller.enable()
    send(controller, "G1 A0 F3000")
    controller.run_until_idle()
    assert not controller.status().error, "what it touched already does not stop it"
    assert controller.tally().collisions_detected == 1
    assert controller.contacts() == ()


# ── the same path at another time ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("change", ["hold", "override", "both"])
def test_hold_and_override_change_the_time_and_not_the_place(change: str) -> None:
    plain, controller = arm(POST), arm(POST)
    first, second = hits(plain), hits(controller)
    for each in (plain, controller):
        send(each, SWING)
        each.advance(0.7)
    if change != "override":
        controller.hold()
        controller.advance(2.0)
        controller.cycle_start()
    if change != "hold":
        controller.override_feed(30.0)
    plain.run_until_idle()
    controller.run_until_idle()
    assert [(c.names, c.point) for c in first] == [(c.names, c.point) for c in second]
    assert all(b.at > a.at + 10**9 for a, b in zip(first, second, strict=True))


def test_a_path_cut_off_by_a_stop_has_no_contacts() -> None:
    controller = arm(POST)
    found = hits(controller)
    send(controller, SWING)
    controller.advance(1.0)
    controller.stop()
    controller.run_until_idle()
    assert turned(controller) < 85.0
    send(controller, "G1 A0 F3000", "G4 P1")
    controller.run_until_idle()
    assert found == []
    send(controller, "G1 A90 F3000")
    controller.run_until_idle()
    assert found[0].line == 4


def test_jogs_are_checked() -> None:
    controller = arm(POST, collision={"on_collision": "stop"})
    found = hits(controller)
    controller.jog(0, 0.5)
    controller.advance(1.0)
    controller.jog(5, 0.2)
    controller.run_until_idle()
    assert (found[0].names, found[0].line) == (("wrist_2", "post"), 0)
    assert turned(controller) == pytest.approx(85.277, abs=0.01)


# ── changes during motion ───────────────────────────────────────────────────────────────────────


def test_a_tool_has_its_shape_once_it_is_mounted() -> None:
    controller = arm(FAR_POST, tools=TORCH)
    found = hits(controller)
    send(controller, SWING, "G1 A0", "M6 T1", SWING)
    controller.run_until_idle()
    assert [(contact.link, contact.line) for contact in found] == [("torch.tube", 4)]


def test_an_object_added_on_the_path_is_a_contact() -> None:
    controller, plain = arm(), arm(POST)
    found, expected = hits(controller), hits(plain)
    for each in (controller, plain):
        send(each, SWING)
        each.advance(0.5)
    post = plain.surroundings.environment.objects
    controller.surroundings.add(post, controller._now)
    controller.run_until_idle()
    plain.run_until_idle()
    assert [c.names for c in found] == [c.names for c in expected]
    assert all(abs(a.at - b.at) < 10**5 for a, b in zip(found, expected, strict=True))


def test_an_object_added_at_the_arm_is_a_contact_until_the_arm_leaves() -> None:
    controller = arm()
    found = hits(controller)
    thing = arm({**POST, "position_mm": [620.0, 0.0, 995.0]}).surroundings.environment.objects
    controller.surroundings.add(thing, controller._now)
    controller.advance(0.0)
    assert {contact.names[0] for contact in found} == {"wrist_2", "flange"}
    controller.surroundings.remove("post", controller._now)
    controller.advance(0.0)
    assert controller.contacts() == ()


def test_setting_the_joints_inside_an_object_is_a_contact() -> None:
    controller = arm(POST)
    found = hits(controller)
    controller.set_joint_positions(np.array([90.0, 0, 0, 0, 0, 0]) * DEG)
    controller.advance(0.0)
    assert {contact.names[0] for contact in found} == {"wrist_2", "flange"}


def test_a_held_part_is_a_part_of_the_arm() -> None:
    controller = arm(FAR_POST)
    found = hits(controller)
    watch = inner(controller).collision
    assert watch is not None
    bar = arm({"name": "bar", "type": "box", "position_mm": [0, 0, 75],
               "dimensions_mm": [20, 20, 150]}).surroundings.environment.objects[0]  # fmt: skip
    assert watch.attach(bar, 0) is None
    refusal = watch.attach(bar, 0)
    assert isinstance(refusal, Refused)
    assert "held already" in refusal.reason
    send(controller, SWING)
    controller.run_until_idle()
    assert [contact.link for contact in found] == ["bar"]
    watch.detach("bar", controller._now)
    send(controller, "G1 A0")
    controller.run_until_idle()
    assert len(found) == 1


# ── cost ────────────────────────────────────────────────────────────────────────────────────────


def test_before_the_first_motion_nothing_is_computed() -> None:
    controller = arm(POST)
    controller.advance(3600.0)
    controller.reset()
    watch = inner(controller).collision
    assert watch is not None
    assert "detector" not in watch._scene.__dict__


@pytest.mark.parametrize("lines", [1_000, pytest.param(20_000, marks=pytest.mark.soak)])
def test_a_long_program_is_swept_in_few_stretches(lines: int) -> None:
    controller = arm(POST)
    watch = inner(controller).collision
    assert watch is not None
    send(controller, *(f"G1 A{i % 40} B{-(i % 7)} F6000" for i in range(lines)))
    controller.run_until_idle(1e6)
    looks = watch._scene.sweeper.configurations
    assert looks < 2 * lines
    assert watch.detected == 0


# ── time and snapshots ──────────────────────────────────────────────────────────────────────────


def crowded() -> VirtualController:
    controller = arm(POST, tools=TORCH)
    send(controller, "G1 A95 F3000", "M6 T1", "G1 A100", "G4 P0.2", "G1 A60", "G1 A0 B-20")
    return controller


def test_slices_of_time_change_nothing() -> None:
    whole, sliced = crowded(), crowded()
    first, second = hits(whole), hits(sliced)
    whole.run_until_idle()
    while sliced.status().moving:
        sliced.advance(0.0137)
        sliced.contacts()
    assert first == second != []


@pytest.mark.parametrize("at", [0.3, 1.76, 1.9, 2.1, 2.5])
def test_a_snapshot_is_invisible(at: float) -> None:
    plain, controller = crowded(), crowded()
    expected = hits(plain)
    plain.run_until_idle()
    controller.advance(at)
    snapshot = controller.snapshot()
    before = len([c for c in expected if seconds(c.at) <= at])
    for other in (controller, arm(POST, tools=TORCH)):
        other.restore(snapshot)
        found = hits(other)
        other.run_until_idle()
        assert found == expected[before:]
        assert other.snapshot() == plain.snapshot()


def test_contact_times_increase() -> None:
    controller = crowded()
    found = hits(controller)
    controller.run_until_idle()
    assert all(a.at <= b.at for a, b in pairwise(found))
