"""Moves for jobs, on a simulated arm."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from understudy.agenda import advance
from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.errors import Refused
from understudy.jobs.arm_motion import ControllerMotion
from understudy.jobs.pick_place.moves import line
from understudy.ports import TimedComponent
from understudy.ports import state as snapshots
from understudy.ports.operation import Target
from understudy.registry import module_of
from understudy.space.pose import pose_of
from understudy.space.transform import inverse, matrix
from understudy.units import nanoseconds

CELL = """
robots:
  g60:
    kind: arm
    tool: 1
    base_mm_deg: [100, 0, 0, 0, 0, 0]
    tools: {1: {name: gripper, tcp_mm_deg: [0, 0, 80, 0, 0, 0]}}
"""
SCAN = pose_of((400.0, 0.0, 500.0, 180.0, 0.0, 0.0))
PICK = pose_of((450.0, 100.0, 160.0, 180.0, 0.0, 30.0))
TO_SCAN = Target(None, SCAN, False, 0.5)


class Bench:
    """A cell with one arm and its `ControllerMotion`."""

    def __init__(self, folder: Path) -> None:
        file = folder / "cell.yaml"
        file.write_text(CELL)
        self.cell = build_cell(load_config(str(file)))
        robot: Any = self.cell.components["g60"]
        self.robot = robot
        arm = module_of("robots", "arm").job_arm(robot)
        self.reach = arm.reach
        self.motion = ControllerMotion(arm.controller, arm.move_to, arm.flange)
        self.ends: list[Any] = []
        self.faults: list[Any] = []
        self.motion.on_finished(lambda *end: self.ends.append(end))
        self.motion.on_fault(lambda *fault: self.faults.append(fault))
        self.now = 0
        robot.connect(0)
        robot.enable(0)

    def run(self, seconds: float) -> None:
        before, self.now = self.now, self.now + nanoseconds(seconds)
        timed = [part for part in self.cell.components.values() if isinstance(part, TimedComponent)]
        advance([*timed, self.motion], self.now, since=before)

    def move(self, target: Target) -> Any:
        return self.motion.move(target, self.now)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_ticket_ends_when_the_arm_rests_at_the_target(bench: Bench) -> None:
    ticket = bench.move(TO_SCAN)
    assert bench.ends == []
    bench.run(10)
    (ended, refused, at) = bench.ends.pop()
    assert (ended, refused) == (ticket, None)
    assert bench.robot.tcp(at)[:3] == pytest.approx(SCAN[:3], abs=1e-6)
    assert not bench.robot.status(at).moving
    second = bench.move(line(PICK, 100.0))
    assert second == ticket + 1
    assert isinstance(bench.move(TO_SCAN), Refused)
    bench.run(10)
    assert bench.ends[0][:2] == (second, None)


def test_the_flange_is_the_tool_without_the_gripper(bench: Bench) -> None:
    bench.move(TO_SCAN)
    bench.run(10)
    tool = matrix(bench.motion.tool(bench.now))
    assert (inverse(matrix(bench.motion.flange(bench.now))) @ tool)[:3, 3] == pytest.approx(
        [0, 0, 0.08], abs=1e-9
    )


def test_a_hold_keeps_the_ticket_and_resume_goes_on(bench: Bench) -> None:
    bench.move(TO_SCAN)
    bench.run(0.3)
    bench.motion.hold(bench.now)
    bench.run(20)
    assert bench.ends == []
    assert bench.motion.status(bench.now).held
    bench.motion.resume(bench.now)
    bench.run(10)
    assert bench.ends[0][1] is None


@pytest.mark.parametrize("held", [False, True])
def test_a_stop_ends_the_ticket_when_the_arm_rests(bench: Bench, held: bool) -> None:
    bench.move(TO_SCAN)
    bench.run(0.3)
    if held:
        bench.motion.hold(bench.now)
        bench.run(2)
    bench.motion.stop(bench.now)
    assert bench.ends == []
    bench.run(2)
    (_, refused, at) = bench.ends[0]
    assert refused.reason == "the move was stopped"
    assert not bench.robot.status(at).moving
    assert bench.robot.joint_state(at).velocities == pytest.approx([0.0] * 6, abs=1e-2)
    assert bench.motion.at_rest(bench.now)
    bench.move(TO_SCAN)
    bench.run(10)
    assert bench.ends[1][1] is None


def test_a_stop_of_another_client_ends_the_ticket(bench: Bench) -> None:
    bench.move(TO_SCAN)
    bench.run(0.3)
    bench.robot.stop(bench.now)
    bench.run(2)
    assert bench.ends[0][1].reason == "the move was stopped"


def test_an_emergency_stop_is_reported_with_and_without_a_move(bench: Bench) -> None:
    bench.move(TO_SCAN)
    bench.run(0.3)
    bench.robot.emergency_stop(bench.now)
    bench.run(0)
    assert "emergency stop" in bench.ends[0][1].reason
    assert "emergency stop" in bench.faults[0][0].reason
    assert isinstance(bench.move(TO_SCAN), Refused)
    bench.robot.reset(bench.now)
    bench.robot.enable(bench.now)
    bench.run(1)
    assert bench.motion.unready(bench.now) is None
    bench.robot.emergency_stop(bench.now)
    bench.run(0)
    assert len(bench.faults) == 2
    assert bench.faults[1][1] == bench.now


def test_an_arm_without_drives_takes_no_move(bench: Bench) -> None:
    bench.robot.disable(0)
    assert bench.move(TO_SCAN) == Refused("the drives are not enabled", 9)


def test_a_snapshot_in_a_move_goes_on_alike(bench: Bench, tmp_path: Path) -> None:
    bench.move(TO_SCAN)
    bench.run(0.3)
    motion = msgspec.to_builtins(snapshots.saved(bench.motion))
    robot = msgspec.json.decode(msgspec.json.encode(bench.robot.save()))
    bench.run(10)
    again = Bench(tmp_path)
    again.robot.load(robot)
    snapshots.load(again.motion, motion)
    again.now = nanoseconds(0.3)
    again.run(10)
    assert again.ends == bench.ends
    assert snapshots.saved(again.motion) == snapshots.saved(bench.motion)


def test_the_reach_check_follows_the_moves_without_moving(bench: Bench) -> None:
    bench.move(TO_SCAN)
    bench.run(10)
    before = bench.robot.save()
    chain = [line(PICK, 500.0), line(SCAN, 500.0)]
    assert bench.reach.check(chain, bench.now) is None
    far = pose_of((4000.0, 0.0, 500.0, 180.0, 0.0, 0.0))
    refused = bench.reach.check([*chain, line(far, 500.0)], bench.now)
    assert refused is not None
    assert refused.reason.startswith("move 3 of 3: ")
    assert msgspec.json.encode(bench.robot.save()) == msgspec.json.encode(before)
