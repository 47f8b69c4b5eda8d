"""Mobile robots at the operator's table: map, details, commands, tasks, traffic and events."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.benches import Bench

from understudy.config.files import shipped_robot_files
from understudy.operator.doors.state import LENGTH, state_face
from understudy.robots.mobile.face import FleetFace
from understudy.robots.mobile.robot import MobileRobot

CELL = """
nats: {port: 0}
fleet: {markers: [{code: DOCK, x_m: 1, y_m: 2}]}
robots:
  a: {kind: mobile, file: amr.json, pose: [1, 1, 0]}
  b: {kind: mobile, file: amr.json, pose: [1, 4, 90], battery_percent: 40}
  arm: {kind: text_robot}
environment:
  objects:
    - {name: wall, type: box, position_mm: [8000, 3000, 500], dimensions_mm: [200, 6000, 1000]}
    - {name: post, type: cylinder, radius_mm: 300, height_mm: 900, position_mm: [3000, 5000, 450]}
"""


@pytest.fixture
def floor(bench_of: Callable[[str], Bench], tmp_path: Path) -> Bench:
    file = tmp_path / "cell.yaml"
    file.write_text(CELL)
    return connected(bench_of(str(file)))


def connected(bench: Bench) -> Bench:
    """NATS is there, though nobody takes what the robots send."""
    face = bench.live._cell.faces["nats"]
    assert isinstance(face, FleetFace)
    face.open("nats", 0)
    bench.forward(0.1)
    return bench


def details(bench: Bench, robot: str = "a") -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(bench.do("fleet_robot", robot=robot))
    return found


def frame(bench: Bench) -> dict[str, Any]:
    """The robots as the state socket sends them."""
    session = state_face(bench.live.watch).open("page", 0)
    request = msgspec.msgpack.encode({"want": "fleet"})
    session.receive(LENGTH.pack(len(request)) + request, 0)
    found: dict[str, Any] = msgspec.msgpack.decode(session.take(1 << 20)[LENGTH.size :])
    return found


def column(found: dict[str, Any], name: str, dtype: str = "<f4") -> Any:
    return np.frombuffer(found[name], dtype).reshape(found["count"], -1)


def test_the_map_has_outlines_markers_and_obstacles(floor: Bench) -> None:
    shown = msgspec.to_builtins(floor.do("fleet"))
    assert [robot["name"] for robot in shown["robots"]] == ["a", "b"]
    assert (shown["robots"][0]["length"], shown["robots"][0]["width"]) == (0.9, 0.65)
    assert shown["markers"] == [{"code": "DOCK", "x": 1.0, "y": 2.0}]
    assert shown["circles"] == [[3.0, 5.0, pytest.approx(0.3)]]
    sides = {x for line in shown["lines"] for x in line[::2]}
    assert sorted(sides) == pytest.approx([7.9, 8.1])
    assert shown["link"]["connected"]


def test_one_frame_has_all_robots_as_arrays(floor: Bench) -> None:
    found = frame(floor)
    assert column(found, "pose").tolist() == [
        [1.0, 1.0, 0.0],
        [1.0, 4.0, pytest.approx(math.pi / 2)],
    ]
    assert column(found, "battery", "u1").ravel().tolist() == [100, 40]
    assert np.isnan(column(found, "goal")).all()
    statuses = floor.do("fleet")["statuses"]
    assert [statuses[code] for code in found["status"]] == ["RUNNING", "RUNNING"]
    assert found["floor"] == floor.do("fleet")["version"]
    floor.do("remove_object", name="post")
    assert frame(floor)["floor"] != found["floor"]


def test_a_command_drives_a_robot_and_is_in_its_queue(floor: Bench) -> None:
    goal = {"x": 3.0, "y": 1.0, "yaw": 1.0}
    floor.do("fleet_command", robot="a", command="MOVE_TO_POSE", parameters=goal)
    floor.do("fleet_command", robot="a", command="MOVE_TO_POSE", parameters={"x": 2.0, "y": 1.0})
    floor.forward(0.5)
    queue = details(floor)["queue"]
    assert [(each["command"], each["running"]) for each in queue] == [
        ("MOVE_TO_POSE", True),
        ("MOVE_TO_POSE", False),
    ]
    found = frame(floor)
    assert column(found, "goal")[0].tolist() == pytest.approx([3.0, 1.0, 1.0])
    assert column(found, "speed")[0, 0] > 0.1
    floor.forward(10.0)
    assert details(floor)["queue"] == []
    assert details(floor)["true_pose"][:2] == pytest.approx((2.0, 1.0), abs=0.05)
    done = [event.type for event in floor.do("fleet_events")["events"] if event.robot == "a"]
    assert done.count("command.done") == 2


def test_a_task_takes_a_route_around_obstacles_and_can_be_cancelled(floor: Bench) -> None:
    floor.do("fleet_task", robot="a", x_m=6.0, y_m=5.0, yaw_deg=90)
    floor.forward(3.0)
    found = details(floor)
    (task,) = found["tasks"]
    assert (task["running"], task["x"], task["y"]) == (True, 6.0, 5.0)
    assert found["route"][-1] == pytest.approx((6.0, 5.0))
    floor.do("fleet_cancel_task", robot="a", task=task["task"])
    floor.forward(0.5)
    assert details(floor)["tasks"] == []
    assert "not under way" in floor.refusal("fleet_cancel_task", robot="a", task=task["task"])


def test_the_end_of_a_task_is_among_the_events_with_the_reason_of_a_failure(floor: Bench) -> None:
    floor.do("fleet_task", robot="a", x_m=3.0, y_m=5.0)
    floor.do("fleet_task", robot="b", x_m=1.0, y_m=4.5)
    floor.forward(8.0)
    assert details(floor)["tasks"] == details(floor, "b")["tasks"] == []
    events = floor.do("fleet_events")["events"]
    (failed,) = [event for event in events if event.type == "task.failed"]
    assert failed.robot == "a"
    assert failed.reason.startswith("ROUTE_NOT_FOUND: "), "the place is inside the post"
    assert failed.reason.split(": ", 1)[1] in failed.text
    assert [event.robot for event in events if event.type == "task.done"] == ["b"]


def test_traffic_holds_a_robot_and_its_task_goes_on_afterwards(floor: Bench) -> None:
    floor.do("fleet_task", robot="a", x_m=4.0, y_m=1.0)
    floor.forward(3.0)
    floor.do("fleet_traffic", robot="a", hold=True)
    floor.forward(3.0)
    held = details(floor)
    assert (held["status"], held["stop"]) == ("PAUSED", "TRAFFIC_HOLD")
    assert held["hold"]["standing"]
    assert held["velocity"][0] == pytest.approx(0.0, abs=1e-3)
    refused = floor.refusal(
        "fleet_command", robot="a", command="MOVE_TO_POSE", parameters={"x": 1, "y": 1}
    )
    assert refused.startswith("SAFETY_STOP_ACTIVE: ")
    floor.do("fleet_traffic", robot="a", hold=False)
    floor.forward(15.0)
    assert details(floor)["true_pose"][:2] == pytest.approx((4.0, 1.0), abs=0.05)


def test_a_hold_is_flagged_while_an_emergency_stop_hides_it(floor: Bench) -> None:
    floor.do("fleet_traffic", robot="a", hold=True)
    floor.do("emergency_stop", robot="a")
    floor.forward(0.1)
    floors, found = floor.do("fleet"), frame(floor)
    assert floors["stops"][found["stop"][0]] == "ESTOP"
    held = 1 << floors["flags"].index("held")
    assert [bool(flags & held) for flags in found["flags"]] == [True, False]
    floor.do("fleet_traffic", robot="a", hold=False)
    floor.forward(0.1)
    assert not frame(floor)["flags"][0] & held


def test_a_robot_in_emergency_stop_gets_no_task(floor: Bench) -> None:
    floor.do("emergency_stop", robot="a")
    floor.forward(0.1)
    refused = floor.refusal("fleet_task", robot="a", x_m=2.0, y_m=1.0)
    assert refused.startswith("SAFETY_STOP_ACTIVE: ")
    floor.do("reset", robot="a")
    floor.forward(3.0)
    assert details(floor)["true_pose"][:2] == pytest.approx((1.0, 1.0), abs=1e-6)
    floor.do("fleet_task", robot="a", x_m=2.0, y_m=1.0)


def test_emergency_stop_and_reset_of_one_robot(floor: Bench) -> None:
    floor.do("emergency_stop", robot="a")
    floor.forward(0.1)
    stops = floor.do("fleet")["stops"]
    found = frame(floor)
    assert [stops[code] for code in found["stop"]] == ["ESTOP", ""]
    assert found["flags"][0] & 1
    floor.do("reset", robot="a")
    floor.forward(0.1)
    assert [stops[code] for code in frame(floor)["stop"]] == ["", ""]


def test_details_have_motors_signals_and_what_the_lidar_sees(floor: Bench) -> None:
    found = details(floor, "b")
    assert [motor["id"] for motor in found["motors"]] == ["drive_left", "drive_right", "lift"]
    assert {each["id"]: each["on"] for each in found["inputs"]}["lift_low"]
    assert [each["id"] for each in found["devices"]] == ["lidar", "scanner"]
    distances = [math.hypot(x - 3.0, y - 5.0) for x, y in found["lidar"]]
    assert min(distances) == pytest.approx(0.3, abs=1e-6), "a ray ends on the post"
    assert found["battery"] == pytest.approx(40.0, abs=0.1)


def test_what_cannot_be_is_refused_with_its_reason(floor: Bench) -> None:
    assert "no mobile robot" in floor.refusal("fleet_robot", robot="arm")
    assert "did you mean" in floor.refusal("fleet_robot", robot="aa")
    wrong = {"x": "there", "y": 0}
    refused = floor.refusal("fleet_command", robot="a", command="MOVE_TO_POSE", parameters=wrong)
    assert "INVALID_PARAMETERS" in refused
    assert "give hold" in floor.refusal("fleet_traffic", robot="a")
    floor.do("stop")
    stopped = floor.refusal("fleet_task", robot="a", x_m=2, y_m=2)
    assert "stopped" in stopped


def test_a_cell_without_mobile_robots_has_no_map(bench_of: Callable[[str], Bench]) -> None:
    bench = bench_of("text_robot")
    assert "unknown command" in bench.refusal("fleet")
    assert "no mobile robots" in frame(bench)["error"]["message"]


def test_a_request_that_waits_is_in_a_snapshot(floor: Bench) -> None:
    floor.do("fleet_command", robot="a", command="MOVE_TO_POSE", parameters={"x": 2.0, "y": 1.0})
    saved = floor.live._cell.snapshot()
    floor.forward(5.0)
    there = details(floor)["true_pose"]
    floor.live._cell.restore(saved)
    floor.do("fleet_command", robot="a", command="SET_SPEED_LIMIT", parameters={"maxSpeedMps": 9.0})
    floor.forward(5.0)
    assert details(floor)["true_pose"] == there


def test_all_robots_are_drawn_as_each_of_them_is(floor: Bench) -> None:
    floor.do("fleet_command", robot="a", command="MOVE_TO_POSE", parameters={"x": 3.0, "y": 1.0})
    floor.do("emergency_stop", robot="b")
    floor.forward(0.7)
    parts, now = floor.live._cell.components, floor.live._cell.now
    drawn = floor.live.watch.look().robots
    assert list(drawn) == ["arm", "a", "b"]
    for name in ("a", "b"):
        part = parts[name]
        assert isinstance(part, MobileRobot)
        assert drawn[name] == part.view(now)
    assert (drawn["a"].moving, drawn["b"].state) == (True, "PAUSED")
    body = floor.do("scene")["robots"]["a"]["vehicle"]
    assert body == pytest.approx({"length": 0.9, "width": 0.65, "height": 0.35, "ahead": 0.0})


def test_an_operator_sets_an_input_and_a_fault_does_too(floor: Bench) -> None:
    def limit() -> bool:
        floor.forward(0.1)
        return bool(
            next(each["on"] for each in details(floor)["inputs"] if each["role"] == "LIMIT_MAX")
        )

    name = next(each["id"] for each in details(floor)["inputs"] if each["role"] == "LIMIT_MAX")
    assert not limit()
    floor.do("fleet_input", robot="a", input=name, on=True)
    assert limit()
    floor.do("fleet_input", robot="a", input=name)
    assert not limit()
    floor.do("inject", fault="input_on", on="a", parameters={"io": name})
    assert limit()
    assert "it has: " in floor.refusal("fleet_input", robot="a", input="nowhere", on=True)


# ── several robots at once ──────────────────────────────────────────────────────────────────────


def test_one_order_reaches_several_robots_and_names_who_refused(floor: Bench) -> None:
    places = [[1.0, 2.0, None], [1.0, 5.0, 90.0]]
    answer = floor.do("fleet_order", robots=["a", "b"], order="drive", places=places)
    assert answer == {"done": 2, "refused": []}
    floor.forward(12.0)
    assert details(floor)["pose"][:2] == pytest.approx([1.0, 2.0], abs=0.05)
    assert details(floor, "b")["pose"] == pytest.approx([1.0, 5.0, math.pi / 2], abs=0.05)
    floor.do("fleet_order", robots=["a"], order="estop")
    floor.forward(0.1)
    answer = floor.do("fleet_order", robots=["a", "b", "arm", "c"], order="hold")
    assert answer["done"] == 2
    assert [each["robot"] for each in answer["refused"]] == ["arm", "c"]
    floor.forward(0.1)
    answer = floor.do("fleet_order", robots=["a", "b"], order="drive", places=places)
    assert answer["done"] == 0
    assert "SAFETY_STOP_ACTIVE" in answer["refused"][0]["reason"]
    floor.do("fleet_order", robots=["a", "b"], order="release")
    assert floor.do("fleet_order", robots=["a"], order="reset")["done"] == 1
    floor.forward(0.1)
    assert details(floor)["status"] == details(floor, "b")["status"] == "RUNNING"


def test_places_belong_to_drive_and_task_one_for_each_robot(floor: Bench) -> None:
    for order, places in (("drive", []), ("task", [[1, 1, None]]), ("stop", [[1, 1, None]] * 2)):
        refusal = floor.refusal("fleet_order", robots=["a", "b"], order=order, places=places)
        assert f"{len(places)} places for 2 robots" in refusal


def test_tasks_of_all_robots_are_listed_and_one_that_waits_is_canceled(floor: Bench) -> None:
    places = [[3.0, 1.0, None], [1.0, 2.0, None]]
    for _ in range(2):
        floor.do("fleet_order", robots=["a", "b"], order="task", places=places)
    floor.forward(1.5)
    listed = floor.do("fleet_tasks")
    assert listed["count"] == 4
    assert [(each["robot"], each["running"]) for each in listed["tasks"]] == [
        ("a", True), ("a", False), ("b", True), ("b", False)
    ]  # fmt: skip
    waiting = listed["tasks"][3]
    floor.do("fleet_cancel_task", robot="b", task=waiting["task"])
    floor.forward(0.1)
    assert floor.do("fleet_tasks")["count"] == 3


def test_what_a_robot_cannot_do_is_not_offered(
    bench_of: Callable[[str], Bench], tmp_path: Path
) -> None:
    document = json.loads(shipped_robot_files()["amr"].read_text())
    document["capabilities"] = {
        "supportedCommands": ["MOVE_VELOCITY", "STOP"],
        "supportedModules": ["RobotCore", "TaskComm"],
    }
    document["io"]["digitalInputs"] = []
    (tmp_path / "plain.json").write_text(json.dumps(document))
    (tmp_path / "cell.yaml").write_text(CELL.replace("file: amr.json", "file: plain.json", 1))
    plain, whole = bench_of(str(tmp_path / "cell.yaml")).do("fleet")["robots"]
    assert plain["orders"] == ["stop", "reset"]
    assert whole["orders"] == ["drive", "task", "stop", "hold", "estop", "reset"]
