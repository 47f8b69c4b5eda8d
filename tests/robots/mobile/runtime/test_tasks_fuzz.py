"""Whatever comes in whatever order, every task that was assigned ends once."""

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.robots.mobile.runtime.recorded_robot import RecordedRobot

NAMES = st.sampled_from("abcdef")
NUMBERS = st.one_of(st.none(), st.floats(-5, 5))
STEPS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["MOVE", "TURN", "WAIT", "ARRIVE_ACTIONS"])},
        optional={
            "x": NUMBERS,
            "y": NUMBERS,
            "yaw": NUMBERS,
            "nodeId": NAMES,
            "seconds": st.one_of(st.none(), st.floats(0, 3)),
            "actions": st.lists(
                st.sampled_from([{}, {"motorId": "act_1", "targetPosition": 0.01}]), max_size=2
            ),
        },
    ),
    max_size=4,
)
TASKS = st.fixed_dictionaries(
    {"taskId": NAMES, "taskType": st.sampled_from(["MOVE_TO_POINT", "MISSION", "CUSTOM"])},
    optional={
        "priority": st.integers(-2, 2),
        "moveToPoint": st.fixed_dictionaries({"x": st.floats(-5, 5), "y": st.floats(-5, 5)}),
        "mission": st.fixed_dictionaries({"steps": STEPS}),
    },
)
ROUTES = st.fixed_dictionaries({"routeId": NAMES, "steps": STEPS}, optional={"taskId": NAMES})
CONTROLS = st.fixed_dictionaries(
    {},
    optional={
        "holdAtNodeId": NAMES,
        "releaseHold": st.booleans(),
        "maxSpeedMps": st.sampled_from([0, 1]),
    },
)
ACTIONS = st.one_of(
    st.tuples(st.just("task.assign"), TASKS),
    st.tuples(st.just("task.cancel"), st.fixed_dictionaries({"taskId": NAMES})),
    st.tuples(st.just("route.response"), ROUTES),
    st.tuples(st.just("traffic.control"), CONTROLS),
    st.tuples(st.just("finish"), st.sampled_from([None, "SAFETY_STOP", "CANCELED"])),
    st.tuples(st.just("wait"), st.floats(0.02, 12)),
    st.tuples(st.sampled_from(["stop", "restart"]), st.none()),
)


def act(robot: RecordedRobot, name: str, value: Any) -> None:
    if "." in name:
        robot.receive(name, value)
    elif name == "finish":
        if robot.running:
            robot.finish(value)
    elif name == "wait":
        robot.wait(value)
    else:
        getattr(robot, name)()


@settings(max_examples=80, deadline=None)
@given(st.lists(ACTIONS, max_size=25))
def test_every_task_ends_once(actions: list[tuple[str, Any]]) -> None:
    robot = RecordedRobot()
    for name, value in actions:
        act(robot, name, value)
    robot.receive("traffic.control", {"releaseHold": True, "maxSpeedMps": None})
    for _ in range(100):
        while robot.running:
            robot.finish()
        if all(module.next_wake() is None for module in robot.modules):
            break
        robot.wait(4)
    assigned = {value["taskId"] for name, value in actions if name == "task.assign"}
    ended = Counter(
        payload["taskId"] for kind, payload, _ in robot.sent if kind in ("task.done", "task.failed")
    )
    assert ended == dict.fromkeys(assigned, 1)
    assert [module.next_wake() for module in robot.modules] == [None] * 3
