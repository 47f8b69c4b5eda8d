"""Contacts between two arms of one cell are reported when they begin."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.parts import components_of

from understudy.app.build import load_cell
from understudy.space.collision.arm_pair import ArmPair, PlacedArm
from understudy.space.collision.world import arm_parts
from understudy.units import DEG, MM, nanoseconds
from understudy.wire.exchange import InProcessCell

CELL = """
robots:
  left: {{kind: arm, collision: {{on_collision: {how}}}}}
  right: {{kind: {kind}, base_mm_deg: [{x}, 0, 0, 0, 0, 180], collision: {{on_collision: {how}}}}}
"""
REACH = "G1 B30 F1200"
"""Joints from home forward and down: hands that are 60 mm apart touch."""


class Two:
    """Two arms that face each other; their flanges are 60 mm apart."""

    def __init__(self, folder: Path, how: str = "report", kind: str = "arm", x: int = 1300) -> None:
        (folder / "cell.yaml").write_text(CELL.format(how=how, kind=kind, x=x))
        self.cell: InProcessCell = load_cell(str(folder / "cell.yaml"))
        self.arms: list[Any] = [self.part("left"), self.part("right")]
        for arm in self.arms if kind == "arm" else self.arms[:1]:
            arm.connect(0)
            arm.enable(0)

    def part(self, name: str) -> Any:
        return components_of(self.cell)[name]

    @property
    def now(self) -> int:
        return self.cell.timed_cell.now

    def send(self, arm: int, *lines: str) -> None:
        for line in lines:
            assert self.arms[arm].send_gcode(line, self.now) is None

    def touching(self) -> list[tuple[str, str]]:
        status = self.part("encounters").status(self.now)
        return [(f"{a}.{i}", f"{b}.{j}") for a, b, i, j in status.touching]

    def contacts(self) -> list[Any]:
        return list(self.part("left.collision").contacts())

    def metrics(self) -> Any:
        return self.part("engine").status(self.now).metrics


@pytest.fixture
def two(tmp_path: Path) -> Two:
    return Two(tmp_path)


def apart(two: Two) -> float:
    """The present distance, computed anew."""
    figures = []
    for arm in two.arms:
        body = arm.collision.body
        parts = arm_parts(body.chain, body.meshes)
        figures.append(PlacedArm(body.chain, body.foot, parts, body.chain.velocity))
    one, other = (np.array(arm.view(two.now).q) for arm in two.arms)
    return ArmPair(*figures).distance(one, other)


def test_a_contact_of_two_arms_is_reported_when_it_begins(two: Two) -> None:
    two.send(0, REACH)
    two.send(1, REACH)
    while not two.contacts():
        two.cell.advance(0.001)
        assert apart(two) > -2 * MM, "reported within two milliseconds"
    contact, *others = two.contacts()
    assert contact.object.startswith("right.")
    assert "collides with right." in contact.text()
    assert contact.line == 1
    assert 0.0 < contact.depth < 2 * MM
    assert two.metrics().collisions_detected == 1 + len(others), "one of each pair of shapes"
    two.cell.advance(0.2)
    assert two.contacts()


def test_a_lasting_contact_is_reported_once(two: Two) -> None:
    two.send(0, "G1 B15 F1200", "G4 P1", "G1 B-20 F1200")
    two.cell.advance(1.0)
    assert two.touching() == []
    two.send(1, "G1 B15 F1200", "G4 P1", "G1 B-20 F1200")
    two.cell.advance(1.0)
    reported = two.metrics().collisions_detected
    assert two.touching()
    two.cell.advance(4.0)
    assert two.touching() == []
    assert two.contacts() == []
    assert two.metrics().collisions_detected == reported
    assert two.part("encounters").next_wake() is None, "no arm moves: no comparison is due"


def test_both_arms_stop_if_configured(tmp_path: Path) -> None:
    two = Two(tmp_path, how="stop")
    two.send(0, REACH)
    two.send(1, REACH)
    two.cell.advance(3.0)
    for arm in two.arms:
        assert "collides with right." in arm.status(two.now).error_message
        assert not arm.is_enabled()
    assert -2 * MM < apart(two) <= 0.0
    assert two.part("engine").state(two.now) == "ERROR"
    two.part("engine").reset(two.now)
    assert two.part("engine").state(two.now) == "RUNNING"
    for arm in two.arms:
        arm.enable(two.now)
    two.send(0, "G1 B-30 F1200")
    two.cell.advance(3.0)
    assert not two.arms[0].status(two.now).error, (
        "a contact that exists already does not stop the arm that moves away"
    )
    assert two.touching() == []


def test_a_held_arm_is_watched_again_when_it_continues(two: Two) -> None:
    two.send(0, REACH)
    two.send(1, REACH)
    two.cell.advance(0.1)
    for arm in two.arms:
        arm.hold(two.now)
    two.cell.advance(5.0)
    assert (two.touching(), two.part("encounters").next_wake()) == ([], None)
    for arm in two.arms:
        arm.cycle_start(two.now)
    two.cell.advance(2.0)
    assert two.touching()


@pytest.mark.parametrize("slices", [2, 7])
def test_slices_of_time_and_a_snapshot_make_no_difference(tmp_path: Path, slices: int) -> None:
    def met(two: Two, cut: int) -> list[int]:
        two.send(0, REACH)
        two.send(1, REACH)
        for _ in range(cut):
            two.cell.advance_to(two.now + nanoseconds(2.1) // cut)
            two.cell.restore(two.cell.snapshot())
        two.cell.advance_to(nanoseconds(2.1))
        return [contact.at for contact in two.contacts()]

    whole = met(Two(tmp_path), 1)
    assert whole
    assert met(Two(tmp_path), slices) == whole


def test_an_arm_and_a_kuka(tmp_path: Path) -> None:
    two = Two(tmp_path, kind="kuka", x=1500)
    start = apart(two)
    assert start > 0.0
    two.send(0, "G1 B60 C20 F1200")
    two.cell.advance(4.0)
    assert bool(two.touching()) == (apart(two) <= 0.0)


def test_robots_with_the_same_base_are_not_compared(tmp_path: Path) -> None:
    assert "encounters" not in components_of(Two(tmp_path, x=0).cell)


def test_an_arm_without_environment_checks_is_not_compared(tmp_path: Path) -> None:
    text = CELL.format(how="report, check_environment: false", kind="arm", x=1300)
    (tmp_path / "cell.yaml").write_text(text)
    assert "encounters" not in components_of(load_cell(str(tmp_path / "cell.yaml")))


def test_a_turn_of_the_first_joint_increases_the_distance(two: Two) -> None:
    before = apart(two)
    assert before == pytest.approx(60 * MM, abs=1e-6)
    two.arms[0].set_joint_positions([90 * DEG, 0, 0, 0, 0, 0], two.now)
    assert apart(two) > 300 * MM
