"""The pytest plugin: mobile robots as fixtures."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from understudy.app.stand_in import StandIn
from understudy.errors import ConfigError
from understudy.robots.mobile.client import FleetClient, NoAnswerError
from understudy.robots.mobile.stand_in import FleetStandIn, MobileRobot

WELL = ("ACKED", "RUNNING", "DONE")
DOCS = Path(__file__).parents[3] / "docs"


def example(page: str, name: str) -> Callable[[MobileRobot], None]:
    """A test function that a page shows."""
    blocks = re.findall(
        r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL
    )
    functions: dict[str, Any] = {}
    exec(next(block for block in blocks if f"def {name}(" in block), functions)
    found: Callable[[MobileRobot], None] = functions[name]
    return found


@pytest.mark.parametrize(
    ("page", "name"),
    [
        ("robots/mobile.md", "test_an_emergency_stop"),
        ("pytest.md", "test_what_my_client_does_in_an_emergency_stop"),
    ],
)
def test_the_examples_of_the_pages(page: str, name: str, mobile_robot: MobileRobot) -> None:
    example(page, name)(mobile_robot)


def test_a_wrong_kind_of_message_is_named_at_once(mobile_robot: MobileRobot) -> None:
    with pytest.raises(ConfigError, match=r"'task\.asign'.*did you mean 'task\.assign'"):
        mobile_robot.send("task.asign", {})
    with pytest.raises(ConfigError, match=r"'task\.don'.*did you mean 'task\.done'"):
        mobile_robot.wait("task.don")


def test_a_wait_ends_at_its_deadline_while_other_messages_come(fleet: FleetStandIn) -> None:
    robot = fleet.robot(fleet.robots[0])
    with pytest.raises(NoAnswerError, match=r"no such message in 0\.5 s; came: .*state \(\d+\)"):
        robot.wait("task.done", within_s=0.5)


def test_a_wait_in_steps_ends_at_its_simulated_deadline(mobile_robot: MobileRobot) -> None:
    before = mobile_robot.now
    with pytest.raises(NoAnswerError, match=r"no such message in 5 s; came: .*state"):
        mobile_robot.wait("task.done", within_s=5.0)
    assert mobile_robot.now - before == pytest.approx(5.0, abs=0.3)


def test_a_command_ends_at_its_deadline(mobile_robot: MobileRobot) -> None:
    before = mobile_robot.now
    with pytest.raises(NoAnswerError, match=r"no such message in 2 s; came: .*command\.ack \(2\)"):
        mobile_robot.command("MOVE_VELOCITY", linear=0.1, durationSeconds=60, within_s=2.0)
    assert mobile_robot.now - before == pytest.approx(2.0, abs=0.3)


@pytest.mark.understudy(cell="fleet", robots=3)
def test_the_number_of_robots(fleet: FleetStandIn) -> None:
    assert fleet.robots == ("robot-1", "robot-2", "robot-3")


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("understudy.robots.mobile.stand_in.find_spec", lambda name: None)
    with StandIn("text_robot") as cell, pytest.raises(ConfigError, match=r"understudy\[nats\]"):
        FleetStandIn(cell)


def test_a_cell_without_mobile_robots_is_named() -> None:
    with StandIn("text_robot") as cell, pytest.raises(ConfigError, match="not on NATS"):
        FleetStandIn(cell)


def test_a_command_lets_time_pass_until_it_has_ended(mobile_robot: MobileRobot) -> None:
    done = mobile_robot.command("MOVE_TO_POSE", x=3.0, y=1.0)
    assert (done.status, done.reason, done.statuses) == ("DONE", "", WELL)
    pose = mobile_robot.state["pose"]
    assert math.hypot(pose["x"] - 3.0, pose["y"] - 1.0) <= 0.03
    assert 2.0 < mobile_robot.now < 10.0


def test_time_stands_while_nothing_is_awaited(mobile_robot: MobileRobot) -> None:
    before = mobile_robot.now
    assert mobile_robot.command("MOVE_VELOCITY", linear=0.4).status == "RUNNING"
    assert mobile_robot.now - before <= 0.2
    mobile_robot.forward(seconds=2)
    assert mobile_robot.now - before == pytest.approx(2.0, abs=0.2)
    stopped = mobile_robot.command("STOP")
    assert stopped.statuses == WELL


def test_a_task_goes_around_the_post(mobile_robot: MobileRobot) -> None:
    done = mobile_robot.task(x=6.5, y=5.0)
    assert done.status == "DONE", done
    assert done.statuses[-1] == "task.done"
    ways = [each.payload["pose"] for each in mobile_robot.messages if each.kind == "state"]
    assert len(ways) > 20
    assert all(abs(way["x"] - 4.0) > 0.2 or abs(way["y"] - 3.0) > 0.2 for way in ways)


def test_two_runs_are_the_same(mobile_robot: MobileRobot) -> None:
    texts = [way_there(mobile_robot)]
    from understudy.app.stand_in import StandIn

    with StandIn("mobile_robot") as cell, FleetStandIn(cell) as fleet:
        texts.append(way_there(fleet.robot("robot-1")))
    assert texts[0] == texts[1]
    assert len(texts[0]) > 20


def way_there(robot: MobileRobot) -> list[str]:
    """What the robot says on its way; its answers name the message of the test, which is new."""
    robot.command("MOVE_TO_POSE", x=2.0, y=1.5, yaw=1.0)
    return [each.text for each in robot.messages if each.kind in ("state", "telemetry")]


def test_faults_on_demand(mobile_robot: MobileRobot) -> None:
    mobile_robot.command("MOVE_VELOCITY", linear=0.4)
    mobile_robot.forward(seconds=1)
    mobile_robot.inject("emergency_stop")
    assert mobile_robot.wait("command.ack", status="FAILED")["reason"] == "SAFETY_STOP"
    assert mobile_robot.wait("state", status="PAUSED")["safetyStopReason"] == "ESTOP"
    refused = mobile_robot.command("MOVE_VELOCITY", linear=0.4)
    assert (refused.status, refused.reason) == ("REJECTED", "SAFETY_STOP_ACTIVE")


def test_what_never_comes_is_not_waited_for(mobile_robot: MobileRobot) -> None:
    with pytest.raises(NoAnswerError, match=r"robot-1: no such message in 5 s"):
        mobile_robot.wait("task.done", within_s=5)
    assert mobile_robot.now >= 5.0


def test_a_backend_of_ones_own(fleet: FleetStandIn) -> None:
    assert fleet.robots[:3] == ("robot-1", "robot-2", "robot-3")
    robot = fleet.robot("robot-3")
    with FleetClient(fleet.server) as backend:
        place = {"x": 5.6, "y": 2.2}
        task = {"taskId": "t", "taskType": "MOVE_TO_POINT", "moveToPoint": place}
        backend.send("robot-3", "task.assign", task)
        robot.wait("task.done", taskId="t")
    assert robot.state["pose"]["y"] == pytest.approx(2.2, abs=0.03)
    with pytest.raises(ValueError, match="robot 'robot-11'; there are: robot-1"):
        fleet.robot("robot-11")
