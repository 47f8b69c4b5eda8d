"""Traffic control of a mobile robot: holds at nodes, and speeds."""

from typing import Any

from tests.robots.mobile.runtime.recorded_robot import RecordedRobot

ROUTE = [
    {"type": "MOVE", "x": float(n), "y": 0.0, "nodeId": name} for n, name in enumerate("abc", 1)
]


def on_a_route() -> RecordedRobot:
    robot = RecordedRobot()
    place = {"x": 3.0, "y": 0.0}
    robot.receive("task.assign", {"taskId": "t", "taskType": "MOVE_TO_POINT", "moveToPoint": place})
    robot.receive("route.response", {"routeId": "r", "steps": ROUTE})
    assert len(robot.commands) == 1
    return robot


def is_held(robot: RecordedRobot) -> bool:
    return robot.stop_reason == "TRAFFIC_HOLD"


def control(robot: RecordedRobot, **keys: Any) -> None:
    robot.receive("traffic.control", keys)


def test_the_robot_is_held_at_a_node_ahead_until_it_is_released() -> None:
    robot = on_a_route()
    control(robot, holdAtNodeId="b")
    assert robot.log[-1] == 'traffic.hold.pending {"nodeId": "b"}'
    assert not is_held(robot)
    robot.finish()
    assert not is_held(robot)
    robot.finish()
    assert is_held(robot)
    assert robot.orchestration.progress.node_id == "b"
    robot.wait(100)
    assert robot.commands == []
    control(robot, releaseHold=True)
    assert not is_held(robot)
    robot.tick()
    assert robot.commands == [("MOVE_TO_POSE", {"x": 3.0, "y": 0.0})]
    robot.finish()
    assert robot.last("task.done") == {"taskId": "t"}


def test_a_hold_at_the_last_node_comes_at_once() -> None:
    robot = on_a_route()
    robot.finish()
    control(robot, holdAtNodeId="a")
    assert is_held(robot)
    assert len(robot.commands) == 1, "the step goes on when the hold is released"
    control(robot, holdAtNodeId="a")
    assert sum("traffic.hold.active" in line for line in robot.log) == 1


def test_a_hold_moves_to_another_node() -> None:
    robot = on_a_route()
    robot.finish()
    control(robot, holdAtNodeId="a")
    control(robot, holdAtNodeId="b")
    assert not is_held(robot)
    robot.finish()
    assert is_held(robot)
    control(robot, releaseHold=True, holdAtNodeId="c")
    assert not is_held(robot)
    robot.tick()
    robot.finish()
    assert is_held(robot)


def test_a_pending_hold_is_released_before_it_begins() -> None:
    robot = on_a_route()
    control(robot, holdAtNodeId="b")
    control(robot, releaseHold=True)
    assert robot.log[-1] == 'traffic.hold.released {"nodeId": "b"}'
    robot.finish()
    robot.finish()
    assert not is_held(robot)
    before = len(robot.log)
    control(robot, releaseHold=True)
    assert len(robot.log) == before, "nothing to release"


def test_a_node_of_a_later_route_can_be_named_before() -> None:
    robot = RecordedRobot()
    control(robot, holdAtNodeId="x")
    steps = [{"type": "MOVE", "x": 1.0, "y": 0.0, "nodeId": "x"}, {"type": "TURN", "yaw": 1.0}]
    task = {"taskId": "m", "taskType": "MISSION", "mission": {"steps": steps}}
    robot.receive("task.assign", task)
    robot.finish()
    assert is_held(robot)
    assert robot.commands == []


def test_a_hold_that_was_delivered_twice_does_not_come_back() -> None:
    robot = on_a_route()
    robot.receive("traffic.control", {"holdAtNodeId": "a"}, messageId="hold")
    robot.finish()
    control(robot, releaseHold=True)
    robot.receive("traffic.control", {"holdAtNodeId": "a"}, messageId="hold")
    assert not is_held(robot)


def test_speeds_stay_until_they_change() -> None:
    robot = on_a_route()
    control(robot, maxSpeedMps=0.5)
    control(robot, targetSpeedMps=0.3)
    control(robot, holdAtNodeId="b")
    control(robot, targetSpeedMps=0.8)
    control(robot, maxSpeedMps=None)
    control(robot, targetSpeedMps=None)
    control(robot, maxSpeedMps=0.0)
    assert robot.limits == [0.5, 0.3, 0.5, 0.8, None, 0.0]


def test_a_speed_of_0_holds_the_robot_where_it_is() -> None:
    robot = on_a_route()
    control(robot, maxSpeedMps=0)
    assert is_held(robot)
    assert len(robot.commands) == 1, "the step goes on when the hold is released"
    control(robot, releaseHold=True)
    assert is_held(robot), "no node is released"
    control(robot, maxSpeedMps=0.3)
    assert not is_held(robot)


def test_a_robot_is_held_as_long_as_one_of_two_reasons_is_left() -> None:
    robot = on_a_route()
    robot.finish()
    control(robot, maxSpeedMps=0)
    control(robot, holdAtNodeId="a")
    control(robot, maxSpeedMps=None)
    assert is_held(robot)
    control(robot, maxSpeedMps=0)
    control(robot, releaseHold=True)
    assert is_held(robot)
    control(robot, targetSpeedMps=0, maxSpeedMps=None)
    assert is_held(robot)
    control(robot, targetSpeedMps=None)
    assert not is_held(robot)
