"""The design document's checklist where it is about contacts, and stops that act at once."""

import numpy as np
import pytest
from tests.parts import components_of
from tests.simulation.collision.around_bench import POST, arm, hits, names, send

from understudy.app.build import load_cell
from understudy.app.stand_in import StandIn
from understudy.space.pose import Pose
from understudy.space.reach.reach_map import ReachabilityAnalyzer
from understudy.units import DEG, MM


class TestCollisionDetection:
    """10.2, Collision Detection."""

    def test_self_collision_detection(self) -> None:
        controller = arm()
        found = hits(controller)
        send(controller, "G0 B60 C165")
        controller.run_until_idle()
        assert {contact.kind for contact in found} == {"self_collision"}

    def test_environment_collision(self) -> None:
        controller = arm(POST)
        send(controller, "G0 A90")
        controller.run_until_idle()
        assert ("flange", "post") in names(controller)
        assert controller.tally().collisions_detected == 2

    def test_collision_visualization(self) -> None:
        """Values for a page: objects, and a contact with its place in millimetres."""
        with StandIn("default") as cell:
            things = {thing["name"] for thing in cell.do("scene")["environment"]}
            cell.do("enable", robot="g60")
            cell.do("send_gcode", robot="g60", line="G0 X500 Y0 Z20 A180 B0 C0")
            cell.forward(20.0)
            status = cell.do("status")["parts"]["g60.collision"]
            view = cell._call(lambda live: live.watch.look())
        assert {"floor", "table", "fixture"} <= things
        contact = next(each for each in status.contacts if each.object == "table")
        assert contact.link.startswith("torch")
        assert contact.point_mm[:2] == pytest.approx((500.0, 0.0), abs=20.0)
        assert contact.point_mm[2] == pytest.approx(50.0, abs=1.0), "on the top of the table"
        assert {"robot": "g60", "link": contact.link, "object": "table"} in view.contacts

    def test_reachability_check(self) -> None:
        analyzer = ReachabilityAnalyzer(arm()._inner.arm.movers[0].chain)
        near = Pose(400 * MM, 0.0, 500 * MM, 180 * DEG, 0.0, 0.0)
        assert analyzer.check_pose(near).reachable
        assert not analyzer.check_pose(near._replace(x=3.0)).reachable


def test_an_emergency_stop_does_not_wait_for_a_link() -> None:
    controller = arm(io={"links": [{"output": 5, "input": 6, "delay_ms": 500}]})
    send(controller, "M64 P5", "M66 P6 L3 Q5", "G0 A90")
    controller.advance(0.2)
    controller.emergency_stop()
    assert not controller.is_enabled()
    assert not controller.status().moving
    controller.advance(1.0)
    assert controller.digital_io().inputs >> 6 & 1, "the wire between the pins goes on"
    assert np.allclose(controller.joint_state().positions, 0.0)


def test_a_held_program_is_not_busy() -> None:
    """At rate `max` time must not run on while nothing can happen."""
    controller = arm()
    send(controller, *(f"G1 A{k % 2 * 20} F3000" for k in range(150)))
    controller.advance(0.5)
    assert controller._inner.busy()
    controller.hold()
    controller.run_until_idle()
    stood = controller.simulation_time()
    assert stood < 2.0
    assert not controller._inner.busy()
    controller.cycle_start()
    assert controller._inner.busy()


def test_the_base_of_an_arm_is_configurable() -> None:
    """Poses are in the frame of the cell, whatever the base of the arm is."""
    plain, raised = arm(), arm(base_mm_deg=[100, 0, 500, 0, 0, 0])
    assert raised.tcp().z == pytest.approx(plain.tcp().z + 500 * MM)
    assert raised.tcp().x == pytest.approx(plain.tcp().x + 100 * MM)
    send(raised, "G0 X500 Y0 Z900 A180 B0 C0")
    raised.run_until_idle()
    assert raised.status().error_message == ""
    assert raised.tcp()[:3] == pytest.approx([0.5, 0.0, 0.9])


@pytest.mark.parametrize("cell", ["default", "g60_welding", "kuka_eki"])
def test_every_shipped_cell_has_an_environment(cell: str) -> None:
    virtual_cell = load_cell(cell)
    parts = components_of(virtual_cell)
    assert "environment" in parts
    assert any(name.endswith(".collision") for name in parts)
