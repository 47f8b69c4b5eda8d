"""Queries of a cell: robots, scene, events, rows for plots, the command table."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.benches import Bench

from understudy.operator.events import EventLog


def as_json(value: Any) -> Any:
    """The value as JSON, as doors send it."""
    return json.loads(msgspec.json.encode(value))


# ── the table ──


def test_the_table_describes_itself(bench: Bench) -> None:
    table = {each["name"]: each for each in as_json(bench.do("commands"))}
    assert table["jog"]["role"] == "operator"
    assert table["scene"]["role"] == "viewer"
    schema = table["jog"]["parameters"]
    body = schema["$defs"][schema["$ref"].rsplit("/", 1)[-1]]
    assert set(body["required"]) == {"robot", "frame", "axis", "speed"}
    assert all(each["doc"] for each in table.values())


def test_every_answer_can_be_encoded_as_json(bench: Bench) -> None:
    for each in bench.do("commands"):
        if each["role"] == "viewer":
            answer = bench.ask(each["name"], robot="g60")
            msgspec.json.encode(answer if isinstance(answer, dict | list) else str(answer))


# ── robots ──


def test_the_query_robots_describes_every_robot(bench: Bench) -> None:
    arm, point, kuka, mobile, _ = as_json(bench.do("robots"))["robots"]
    assert (mobile["name"], mobile["kind"], mobile["dof"]) == ("robot-1", "mobile", 0)
    assert (arm["kind"], arm["model"], arm["mode"], arm["dof"]) == ("arm", "g60", "SIMULATION", 6)
    assert arm["joints"][1]["lower_deg"] == pytest.approx(-120.0)
    torch = {"name": "torch", "tcp_mm_deg": [0, 0, 150, 0, 0, 0], "measured": False}
    assert arm["tools"]["1"] == torch
    assert {"program", "jog_joint", "jog_cartesian", "io", "home", "override"} <= set(
        arm["capabilities"]
    )
    assert (point["dof"], point["frames"]) == (0, ["base"])
    assert "program" in kuka["capabilities"]
    held = ["jog_held" in robot["capabilities"] for robot in (arm, point, kuka)]
    assert held == [True, False, False], "the others jog in steps only"


# ── scene ──


def flange(robot: dict[str, Any], q: list[float]) -> np.ndarray:
    """Forward kinematics as a browser does it."""
    at, values = np.array(robot["base"]).reshape(4, 4), iter(q)
    for joint in robot["joints"]:
        at = at @ np.array(joint["origin"]).reshape(4, 4)
        if joint["type"] == "fixed":
            continue
        turn, (x, y, z), angle = np.eye(4), joint["axis"], next(values)
        cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        turn[:3, :3] += np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross
        at = at @ turn
    return at


def test_forward_kinematics_of_the_scene_agree_with_the_cell(arm: Bench) -> None:
    robot = as_json(arm.do("scene"))["robots"]["g60"]
    q = [np.radians(value) for value in arm.row("g60")["joints_deg"]]
    tip = flange(robot, q) @ np.array(robot["tools"][str(robot["tool"])]["tcp"]).reshape(4, 4)
    assert (tip[:3, 3] * 1e3).tolist() == pytest.approx(arm.pose("g60")[:3], abs=1e-2)


def test_the_scene_has_bodies_tools_and_colours(bench: Bench) -> None:
    scene = as_json(bench.do("scene"))
    g60 = scene["robots"]["g60"]
    assert [link["joint"] for link in g60["links"]][:2] == [-1, 0]
    assert all(link["joint"] < len(g60["joints"]) for link in g60["links"])
    shapes = [shape for link in g60["links"] for shape in link["shapes"]]
    assert {shape["type"] for shape in shapes} <= {"box", "sphere", "cylinder", "capsule", "mesh"}
    assert all(len(shape["origin"]) == 16 for shape in shapes)
    assert scene["robots"]["bench"]["joints"] == []
    assert scene["visualization"]["weld_color"] == 0xFFD700
    assert "floor" in [thing["name"] for thing in scene["environment"]]


def test_a_machine_has_three_prismatic_and_three_revolute_joints(
    bench_of: Callable[[str], Bench],
) -> None:
    machine = as_json(bench_of("grblhal_6axis").do("scene"))["robots"]["machine"]
    kinds = [joint["type"] for joint in machine["joints"]]
    assert kinds == ["prismatic"] * 3 + ["revolute"] * 3


# ── events ──


def events(bench: Bench, since: int = 0) -> list[tuple[str, str, str]]:
    found = bench.do("events", since=since)["events"]
    return [(event.kind, event.robot, event.text) for event in found]


def test_events_have_states_and_alarms_with_advice(arm: Bench) -> None:
    arm.do("send_gcode", robot="g60", line="G1 A5 F600")
    arm.forward(2.0)
    arm.do("emergency_stop", robot="g60")
    found = arm.do("events")["events"]
    assert [e.text for e in found] == [
        "Idle → Run",
        "Run → Idle",
        "Idle → Alarm",
        "emergency stop: reset first",
    ]
    assert found[-1].kind == "alarm"
    assert found[-1].code == 10
    assert "Release the emergency stop" in found[-1].what_to_do
    assert found[1].time_s == pytest.approx(0.51, abs=0.1)


def test_events_have_weld_phases_and_a_weld_fault(arm: Bench) -> None:
    for line in ("M7", "G4 P0.5", "M3", "G1 A10 F60"):
        arm.do("send_gcode", robot="g60", line=line)
    arm.forward(3.0)
    arm.do("inject", fault="gas_fault", on="g60.welder")
    arm.forward(1.0)
    texts = [text for _, _, text in events(arm)]
    phases = [t for t in texts if t in ("PreFlow", "Ignition", "Stabilize", "Weld")]
    assert phases == ["PreFlow", "Ignition", "Stabilize", "Weld"]
    assert "injected: gas_fault" in texts
    gas = [event for event in arm.do("events")["events"] if event.kind == "alarm"]
    assert [event.text for event in gas] == ["weld fault: there is no gas"]
    assert gas[0].what_to_do.startswith("No shielding gas")


def test_an_alarm_in_a_program_has_the_line_of_its_file(arm: Bench) -> None:
    for _ in range(3):
        arm.do("send_gcode", robot="g60", line="G4 P0.1")
    arm.forward(1.0)
    arm.do("load_program", robot="g60", text="M7\nG4 P0.5\nM3\nG1 A10 F60\n", name="arc")
    arm.do("run_program", robot="g60")
    arm.forward(3.0)
    arm.do("inject", fault="gas_fault", on="g60.welder")
    arm.forward(1.0)
    reported = "line 4: weld fault: there is no gas"
    assert [text for kind, _, text in events(arm) if kind == "alarm"] == [reported]
    assert arm.do("robots")["robots"][0]["error"] == reported


def test_states_of_robots_that_report_no_events_are_compared(bench: Bench) -> None:
    assert events(bench) == []
    bench.do("emergency_stop", robot="bench")
    bench.do("emergency_stop", robot="kuka")
    assert events(bench) == [
        ("message", "kuka", "emergency stop"),
        ("state", "bench", "Idle → EmergencyStopped"),
        ("alarm", "bench", "Robot in emergency stop state"),
        ("state", "kuka", "Idle → EmergencyStopped"),
        ("alarm", "kuka", "emergency stop: reset first"),
    ]


def test_the_log_continues_from_a_number_and_counts_lost_events() -> None:
    log = EventLog()
    for number in range(2600):
        log.note("message", "r", f"{number}", 0)
    first = log.since(0)
    assert [first["lost"], first["last"], first["more"]] == [600, 1100, 1500]
    assert [log.since(1100)["lost"], log.since(2600)["events"]] == [0, []]
    assert log.since(2599)["events"][0].text == "2599"


# ── plots ──


def test_a_row_has_joints_speeds_torques_and_the_values_of_devices(arm: Bench) -> None:
    first = arm.row("g60")
    assert first["joints_deg"][2] == pytest.approx(37.0)
    assert {"velocities_deg_s", "torques_nm", "current_amps", "voltage_volts"} <= first.keys()
    answer = arm.do("sample", robot="g60", count=10)
    assert len(answer["rows"]) == 1, "time has stood"
    assert answer["axes"][0]["unit"] == "°"


# ── the docs ──


def test_the_docs_name_every_command(bench: Bench) -> None:
    pages = "".join(page.read_text() for page in (Path(__file__).parents[2] / "docs").rglob("*.md"))
    table = bench.live.operator.commands()
    assert [each.name for each in table if f"`{each.name}`" not in pages] == []
