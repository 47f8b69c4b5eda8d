"""Tasks of a mobile robot: their queue, their steps, their routes and how they end."""

from typing import Any

import msgspec
import pytest
from tests.robots.mobile.runtime.recorded_robot import TICK, RecordedRobot

from understudy.errors import Refused
from understudy.ports.state import load, saved
from understudy.robots.mobile.config.robot_file import MODULES
from understudy.robots.mobile.runtime.tasks import (
    ERRORS,
    QUEUE,
    REMEMBERED,
    STEPS_AT_ONCE,
    error_of,
)

GRIP = {"functionKey": "GRIPPER", "targetPosition": 0.04}
STEPS: list[dict[str, Any]] = [
    {"type": "MOVE", "x": 1.0, "y": 0.0, "nodeId": "a"},
    {"type": "TURN", "yaw": 1.5},
    {"type": "WAIT", "seconds": 2.0},
    {"type": "ARRIVE_ACTIONS", "actions": [GRIP, GRIP]},
]


def mission(name: str, steps: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"taskId": name, "taskType": "MISSION", "mission": {"steps": steps}} | more


def go_to(name: str, x: float = 3.0, y: float = 1.0) -> dict[str, Any]:
    return {"taskId": name, "taskType": "MOVE_TO_POINT", "moveToPoint": {"x": x, "y": y}}


def route(name: str, steps: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"routeId": name, "steps": steps} | more


def move(name: str, x: float = 1.0) -> dict[str, Any]:
    return mission(name, [{"type": "MOVE", "x": x, "y": 0.0}])


def failure(robot: RecordedRobot) -> tuple[str, str]:
    failed = robot.last("task.failed")
    return failed["taskId"], failed["errorCode"]


def where(robot: RecordedRobot) -> tuple[str | None, str | None]:
    progress = robot.orchestration.progress
    return progress.route_id, progress.node_id


# ── missions ────────────────────────────────────────────────────────────────────────────────────


def test_the_steps_of_a_mission_are_commands_in_order() -> None:
    robot = RecordedRobot()
    robot.receive("task.assign", mission("t", STEPS), correlationId="c")
    assert robot.commands == [("MOVE_TO_POSE", {"x": 1.0, "y": 0.0})]
    robot.finish()
    assert robot.commands == [("MOVE_TO_POSE", {"x": 1.0, "y": 0.0, "yaw": 1.5})]
    robot.finish()
    robot.wait(1.98)
    assert robot.commands == []
    robot.tick()
    assert robot.commands == [("EXECUTE_ACTION", GRIP)]
    robot.finish()
    assert robot.commands == [("EXECUTE_ACTION", GRIP)]
    assert "task.done" not in robot.kinds_sent()
    robot.finish()
    assert robot.kinds_sent() == ["task.progress"] * 5 + ["task.done"]
    counted = [(p["step"], p["steps"], p["progress"]) for k, p, _ in robot.sent if "step" in p]
    assert counted == [(n, 4, n / 4) for n in range(5)]
    assert {cause for _, _, cause in robot.sent} == {"c"}
    assert robot.log[0] == 'task.accepted {"taskId": "t", "ahead": 0}'


def test_a_custom_task_has_the_steps_of_a_mission_or_is_refused() -> None:
    robot = RecordedRobot()
    robot.receive("task.assign", {"taskId": "t", "taskType": "CUSTOM"})
    assert failure(robot) == ("t", "TASK_TYPE_NOT_SUPPORTED")
    robot.receive("task.assign", mission("u", STEPS, taskType="CUSTOM"))
    assert robot.commands == [("MOVE_TO_POSE", {"x": 1.0, "y": 0.0})]


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"type": "MOVE", "x": 1.0}, "steps.1 (MOVE): y is missing"),
        ({"type": "TURN"}, "steps.1 (TURN): yaw is missing"),
        ({"type": "WAIT"}, "steps.1 (WAIT): seconds is missing"),
        ({"type": "ARRIVE_ACTIONS"}, "steps.1 (ARRIVE_ACTIONS): actions is missing"),
        (
            {"type": "ARRIVE_ACTIONS", "actions": [GRIP, {"targetPosition": 1.0}]},
            "steps.1 (ARRIVE_ACTIONS): INVALID_PARAMETERS: give motorId or functionKey, "
            "one of them",
        ),
    ],
)
def test_a_wrong_step_is_named_before_the_robot_moves(step: dict[str, Any], said: str) -> None:
    robot = RecordedRobot()
    robot.receive("task.assign", mission("t", [STEPS[0], step]))
    assert robot.last("task.failed") == {
        "taskId": "t",
        "errorCode": "INVALID_TASK",
        "errorMessage": said,
    }
    robot.receive("task.assign", go_to("u"))
    robot.receive("route.response", route("r", [STEPS[0], step]))
    assert robot.last("task.failed") == {
        "taskId": "u",
        "errorCode": "INVALID_ROUTE",
        "errorMessage": said,
    }
    assert robot.commands == []


@pytest.mark.parametrize("kind", ["MOVE_TO_POINT", "MISSION"])
def test_a_task_lacks_what_its_type_needs(kind: str) -> None:
    robot = RecordedRobot()
    robot.receive("task.assign", {"taskId": "t", "taskType": kind})
    assert failure(robot) == ("t", "INVALID_TASK")


def test_steps_that_take_no_time_do_not_all_end_at_one_tick() -> None:
    robot = RecordedRobot()
    robot.receive("task.assign", mission("t", [{"type": "WAIT", "seconds": 0.0}] * 100))
    assert robot.last("task.progress")["step"] == STEPS_AT_ONCE
    robot.tick(10)
    assert robot.kinds_sent()[-1] == "task.done"


# ── the queue ───────────────────────────────────────────────────────────────────────────────────


def test_higher_priorities_come_first_and_the_running_task_goes_on() -> None:
    robot = RecordedRobot()
    for name, priority in [("a", 0), ("b", 0), ("c", 5), ("d", 5), ("e", 9)]:
        robot.receive("task.assign", move(name) | {"priority": priority})
    order = []
    for _ in range(5):
        order.append(robot.last("task.progress")["taskId"])
        robot.finish()
    assert order == ["a", "e", "c", "d", "b"]
    assert robot.kinds_sent().count("task.done") == 5
    assert [m.next_wake() for m in robot.modules] == [None, None, None]


def test_a_full_queue_refuses_a_task() -> None:
    robot = RecordedRobot()
    for number in range(QUEUE + 1):
        robot.receive("task.assign", move(f"t{number}"))
    assert "task.failed" not in robot.kinds_sent()
    robot.receive("task.assign", move("one more"))
    assert failure(robot) == ("one more", "QUEUE_FULL")


def test_a_task_is_carried_out_once() -> None:
    robot = RecordedRobot()
    robot.receive("task.assign", move("t"), messageId="m")
    robot.receive("task.assign", move("t"), messageId="m")
    assert sum(line.startswith("task.ignored") for line in robot.log) == 0
    robot.receive("task.assign", move("t"), messageId="another")
    ignored = 'task.ignored {"kind": "task.assign", "taskId": "t", "reason": "KNOWN_TASK"}'
    assert robot.log[-1] == ignored
    robot.finish()
    robot.receive("task.assign", move("t"), messageId="m")
    robot.receive("task.assign", move("t"), messageId="a third")
    assert robot.commands == []
    assert robot.kinds_sent().count("task.done") == 1
    assert robot.log.count(ignored) == 2


def test_the_memory_of_ended_tasks_is_bounded() -> None:
    robot = RecordedRobot()
    for number in range(REMEMBERED + 5):
        robot.receive("task.assign", mission(f"t{number}", []))
    assert robot.kinds_sent().count("task.done") == REMEMBERED + 5
    state = saved(robot.orchestration.modules["TaskComm"])
    assert len(state["ended"]) == REMEMBERED


@pytest.mark.parametrize("status", ["OFFLINE", "ERROR", "PAUSED"])
def test_a_task_begins_when_the_robot_is_ready(status: Any) -> None:
    robot = RecordedRobot()
    robot.status = status
    robot.receive("task.assign", move("t"))
    robot.wait(1)
    assert robot.commands == []
    robot.status = "WARNING"
    robot.tick()
    assert len(robot.commands) == 1


# ── how tasks end ───────────────────────────────────────────────────────────────────────────────


def test_a_running_task_is_canceled_and_the_next_one_begins() -> None:
    robot = RecordedRobot()
    robot.receive("task.assign", move("a"))
    robot.receive("task.assign", move("b", x=2.0))
    robot.receive("task.cancel", {"taskId": "a"})
    assert failure(robot) == ("a", "CANCELED")
    assert robot.commands == [("MOVE_TO_POSE", {"x": 2.0, "y": 0.0})]
    robot.finish()
    assert robot.last("task.done") == {"taskId": "b"}


def test_a_queued_task_is_canceled() -> None:
    robot = RecordedRobot()
    for name in "abc":
        robot.receive("task.assign", move(name))
    robot.receive("task.cancel", {"taskId": "b"})
    assert failure(robot) == ("b", "CANCELED")
    robot.finish()
    assert robot.last("task.progress")["taskId"] == "c"


def test_a_task_that_waits_for_its_route_is_canceled() -> None:
    robot = RecordedRobot()
    robot.receive("task.assign", go_to("t"))
    robot.receive("task.cancel", {"taskId": "t"})
    assert failure(robot) == ("t", "CANCELED")
    robot.receive("route.response", route("r", STEPS, taskId="t"))
    assert robot.log[-1].startswith("route.ignored")
    assert "NOT_REQUESTED" in robot.log[-1]
    assert robot.commands == []


def test_a_cancel_without_effect_is_an_event() -> None:
    robot = RecordedRobot()
    robot.receive("task.cancel", {"taskId": "t"})
    assert "UNKNOWN_TASK" in robot.log[-1]
    robot.receive("task.assign", mission("t", []))
    robot.receive("task.cancel", {"taskId": "t"})
    assert "ENDED_TASK" in robot.log[-1]
    assert robot.kinds_sent() == ["task.progress", "task.done"]


@pytest.mark.parametrize("waits", [True, False])
def test_a_stop_command_ends_all_tasks(waits: bool) -> None:
    robot = RecordedRobot()
    steps = [{"type": "WAIT", "seconds": 5.0}, STEPS[0]]
    robot.receive("task.assign", mission("a", steps) if waits else move("a"))
    robot.receive("task.assign", move("b"))
    robot.stop()
    failed = [(p["taskId"], p["errorCode"]) for k, p, _ in robot.sent if k == "task.failed"]
    assert failed == [("a", "STOPPED"), ("b", "STOPPED")]
    robot.wait(10)
    assert robot.commands == []


@pytest.mark.parametrize(
    ("reason", "code", "message"),
    [
        ("SAFETY_STOP", "SAFETY_STOP", None),
        ("TIMEOUT", "TIMEOUT", None),
        ("ROBOT_NOT_READY", "ROBOT_NOT_READY", None),
        ("CANCELED", "STOPPED", "a command of the task was canceled"),
        ("axis blocked", "STEP_FAILED", "axis blocked"),
    ],
)
def test_a_step_that_fails_ends_its_task_alone(reason: str, code: str, message: str | None) -> None:
    robot = RecordedRobot()
    robot.receive("task.assign", mission("t", STEPS))
    robot.receive("task.assign", move("next"))
    robot.finish(reason)
    failed = robot.last("task.failed")
    assert (failed["errorCode"], failed.get("errorMessage")) == (code, message)
    assert robot.last("task.progress")["taskId"] == "next"


def test_a_step_that_is_refused_ends_its_task() -> None:
    robot = RecordedRobot()
    robot.refusal = Refused("INVALID_PARAMETERS: y")
    robot.receive("task.assign", move("t"))
    assert robot.last("task.failed") == {
        "taskId": "t",
        "errorCode": "INVALID_PARAMETERS",
        "errorMessage": "y",
    }


def test_after_a_safety_stop_queued_tasks_wait() -> None:
    robot = RecordedRobot()
    robot.receive("task.assign", move("a"))
    robot.receive("task.assign", move("b"))
    robot.stop_reason = "OBSTACLE"
    robot.finish("SAFETY_STOP")
    robot.wait(5)
    assert failure(robot) == ("a", "SAFETY_STOP")
    assert robot.commands == []
    robot.stop_reason = None
    robot.tick()
    assert len(robot.commands) == 1


def test_every_reason_becomes_a_known_code() -> None:
    for code in ERRORS:
        if code != "CANCELED":
            assert error_of(Refused(code)) == (code, "")
    assert error_of(Refused("CANCELED: by task.cancel")) == ("CANCELED", "by task.cancel")


# ── routes ──────────────────────────────────────────────────────────────────────────────────────


def test_a_route_is_requested_and_followed() -> None:
    robot = RecordedRobot()
    robot.receive("task.assign", go_to("t"), messageId="m")
    assert robot.sent == [
        (
            "route.request",
            {
                "start": {"x": 0.0, "y": 0.0, "yaw": 0.0},
                "destination": {"x": 3.0, "y": 1.0},
                "taskId": "t",
            },
            "m",
        )
    ]
    robot.receive("route.response", route("r", STEPS[:1], taskId="t", etaSecondsTotal=8.0))
    progress = robot.last("task.progress")
    assert (progress["routeId"], progress["etaSeconds"]) == ("r", 8.0)
    assert where(robot) == ("r", None)
    robot.wait(2)
    robot.finish()
    assert robot.last("task.progress")["etaSeconds"] == pytest.approx(8.0 - 2.02)
    assert robot.kinds_sent()[-1] == "task.done"
    assert where(robot) == (None, "a")


def test_a_request_is_repeated_once_and_then_the_task_fails() -> None:
    robot = RecordedRobot()
    robot.receive("task.assign", go_to("t"))
    began = robot.now
    robot.wait(9.98)
    assert robot.kinds_sent() == ["route.request"]
    robot.tick()
    assert robot.kinds_sent() == ["route.request"] * 2
    assert robot.now - began == 500 * TICK
    robot.wait(9.98)
    assert "task.failed" not in robot.kinds_sent()
    robot.tick(2)
    assert failure(robot) == ("t", "ROUTE_TIMEOUT")
    robot.receive("route.response", route("r", STEPS, taskId="t"))
    assert "NOT_REQUESTED" in robot.log[-1]


@pytest.mark.parametrize("reference", ["m", "sent-1", "sent-2", None])
def test_a_response_without_task_fits_by_its_correlation(reference: str | None) -> None:
    robot = RecordedRobot()
    robot.receive("task.assign", go_to("t"), messageId="m")
    robot.wait(10.0)
    cause = {} if reference is None else {"correlationId": reference}
    robot.receive("route.response", route("r", STEPS), **cause)
    assert len(robot.commands) == 1


def test_responses_for_others_are_ignored_with_an_event() -> None:
    robot = RecordedRobot()
    robot.receive("task.assign", go_to("t"))
    robot.receive("route.response", route("r", STEPS, taskId="u"))
    assert robot.log[-1] == (
        'route.ignored {"routeId": "r", "reason": "OTHER_TASK", "taskId": "u"}'
    )
    robot.receive("route.response", route("r", STEPS), correlationId="x")
    assert "OTHER_REQUEST" in robot.log[-1]
    assert robot.commands == []
    robot.receive("route.response", route("r", STEPS), messageId="good")
    assert len(robot.commands) == 1
    before = len(robot.log)
    robot.receive("route.response", route("r", STEPS), messageId="good")
    assert len(robot.log) == before


def test_an_empty_route_is_right_only_at_the_destination() -> None:
    robot = RecordedRobot()
    robot.receive("task.assign", go_to("far"))
    robot.receive("route.response", route("r", []))
    assert failure(robot) == ("far", "ROUTE_EMPTY")
    robot.receive("task.assign", go_to("near", 0.03, 0.0))
    robot.receive("route.response", route("r", []))
    assert robot.last("task.progress")["progress"] == 1.0
    assert robot.last("task.done") == {"taskId": "near"}


def test_without_the_module_there_are_no_routes() -> None:
    robot = RecordedRobot(modules=tuple(each for each in MODULES if each != "RouteComm"))
    robot.receive("task.assign", go_to("t"))
    assert failure(robot) == ("t", "ROUTE_UNAVAILABLE")
    assert set(robot.orchestration.modules) == {"TaskComm", "TrafficComm"}


# ── snapshots ───────────────────────────────────────────────────────────────────────────────────


def script(robot: RecordedRobot, part: int) -> None:
    """One of several things that happen one after the other."""
    match part:
        case 0:
            robot.receive("task.assign", mission("a", STEPS), messageId="a")
        case 1:
            robot.receive("task.assign", go_to("b"), messageId="b")
            robot.receive("task.assign", go_to("c") | {"priority": 1}, messageId="c")
        case 2:
            robot.receive("traffic.control", {"holdAtNodeId": "a", "maxSpeedMps": 0.4})
        case 3 | 4 | 7 | 8 | 12 | 15:
            robot.finish()
        case 5 | 6:
            robot.wait(1.5)
        case 9 | 14:
            robot.receive("route.response", route("r", STEPS[:1], etaSecondsTotal=3.0))
        case 10:
            robot.receive("traffic.control", {"releaseHold": True}, messageId="release")
        case 11:
            robot.receive("traffic.control", {"releaseHold": True}, messageId="release")
            robot.receive("task.assign", mission("a", STEPS), messageId="a")
        case 13:
            robot.wait(11)


def lines(restart_after: int | None) -> list[str]:
    robot = RecordedRobot()
    for part in range(16):
        if part in (3, 4, 7, 8, 12, 15) and not robot.running:
            robot.receive("traffic.control", {"releaseHold": True})
            robot.tick()
        if robot.running or part not in (3, 4, 7, 8, 12, 15):
            script(robot, part)
        if part == restart_after:
            robot.restart()
    assert robot.kinds_sent().count("task.done") == 3
    return robot.log


@pytest.mark.parametrize("part", range(16))
def test_a_snapshot_changes_nothing(part: int) -> None:
    assert lines(part) == lines(None)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["steps", "done"], 9),
        (["steps", "order"], -1),
        (["steps", "steps"], [{"type": "MOVE"}]),
        (["steps", "until"], -5),
        (["queue"], [{}]),
        (["phase"], "other"),
        (["more"], 1),
    ],
)
def test_a_snapshot_that_makes_no_sense_is_refused(path: list[str], value: Any) -> None:
    robot = RecordedRobot()
    robot.receive("task.assign", mission("t", STEPS))
    module = robot.orchestration.modules["TaskComm"]
    state = saved(module)
    load(module, state)
    place = state
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(msgspec.ValidationError):
        load(module, state)
