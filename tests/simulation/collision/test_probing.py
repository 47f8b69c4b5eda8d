"""G38.2 … G38.5 on an arm: the tip of the tool is the probe that touches objects."""

import pytest
from tests.simulation.collision.around_bench import arm, hits, send

from understudy import VirtualController
from understudy.app.build import build_cell
from understudy.config import read_config
from understudy.units import MM
from understudy.wire.exchange import InProcessCell

WALL = {
    "name": "wall", "type": "box", "position_mm": [800.0, 0.0, 900.0],
    "dimensions_mm": [100.0, 400.0, 400.0],
}  # fmt: skip
"""Its face is at x = 750 mm."""
TOOLS = {1: {"name": "contact_probe", "tcp_mm_deg": [0, 0, 100, 0, 0, 0]}}
TOUCH = 750.0
NEAR = 0.02


def probing() -> VirtualController:
    controller = arm(WALL, tools=TOOLS, tool=1)
    send(controller, "G0 X600 Y0 Z900 A0 B90 C0")
    controller.run_until_idle()
    return controller


def at_x(controller: VirtualController, line: str) -> tuple[float, int]:
    send(controller, line)
    controller.run_until_idle()
    return controller.tcp().x / MM, controller.status().error_code


def test_probing_toward_an_object_ends_at_its_surface() -> None:
    controller = probing()
    found = hits(controller)
    assert at_x(controller, "G38.2 X900 F600") == pytest.approx((TOUCH, 0), abs=NEAR)
    assert found == [], "to probe is not to collide"


def test_the_next_move_starts_from_the_contact() -> None:
    controller = probing()
    at_x(controller, "G38.3 X900 F600")
    assert at_x(controller, "G91 G1 X-10") == pytest.approx((740.0, 0), abs=NEAR)


def test_a_required_probe_without_contact_is_alarm_5() -> None:
    assert at_x(probing(), "G38.2 X700 F600") == pytest.approx((700.0, 5))
    assert at_x(probing(), "G38.3 X700 F600") == pytest.approx((700.0, 0))


def test_a_probe_triggered_before_the_move_is_alarm_4() -> None:
    controller = probing()
    at_x(controller, "G38.2 X900 F600")
    assert at_x(controller, "G38.2 X900 F600") == pytest.approx((TOUCH, 4), abs=NEAR)


def test_probing_away_ends_at_the_loss_of_contact() -> None:
    controller = probing()
    at_x(controller, "G38.2 X900 F600")
    assert at_x(controller, "G38.4 X600 F60") == pytest.approx((TOUCH, 0), abs=NEAR)
    again = at_x(controller, "G38.4 X600 F60")
    assert again == pytest.approx((TOUCH, 4), abs=NEAR), "it does not touch to begin with"


def test_joint_moves_can_probe() -> None:
    controller = probing()
    turned = controller.joint_state().positions
    x, code = at_x(controller, "G38.2 A0 B20 C0 U0 V0 W0 F600")
    assert code == 0
    assert x == pytest.approx(TOUCH, abs=NEAR)
    assert controller.joint_state().positions != turned


def test_a_snapshot_during_a_probing_move_is_invisible() -> None:
    plain, controller = probing(), probing()
    at_x(plain, "G38.2 X900 F600")
    send(controller, "G38.2 X900 F600")
    controller.advance(3.0)
    snapshot = controller.snapshot()
    again = arm(WALL, tools=TOOLS, tool=1)
    again.restore(snapshot)
    again.run_until_idle()
    assert again.snapshot() == plain.snapshot()


CELL = """
robots:
  arm:
    kind: arm
    faces: {grblhal: {}}
    tools: {1: {name: contact_probe, tcp_mm_deg: [0, 0, 100, 0, 0, 0]}}
    tool: 1
environment:
  objects:
    - {name: post, type: cylinder, position_mm: [0, 720, 995], radius_mm: 5, height_mm: 100}
"""


def test_over_the_wire_the_face_reports_the_joints_at_the_contact() -> None:
    cell = InProcessCell(build_cell(read_config(CELL, "post.yaml")))
    client = cell.connect("arm.grblhal")
    client.say(b"G38.2 X120 F3000\n")
    cell.advance(4.0)
    reported = client.received().decode()
    (report,) = [line for line in reported.splitlines() if line.startswith("[PRB:")]
    x, *others = report.removeprefix("[PRB:").partition(":")[0].split(",")
    assert float(x) == pytest.approx(89.6, abs=0.05)
    assert report.endswith(":1]")
    assert set(others) == {"0.000"}
    client.say(b"G38.2 X120 F3000\n")
    cell.advance(1.0)
    assert "ALARM:4" in client.received().decode()
