"""Inputs of robots in MOCK mode: scripts, operators, limit switches, and what telemetry shows."""

from typing import Any

import pytest
from tests.robots.mobile.runtime.test_fleet_mock import Mock

from understudy.errors import ConfigError

INPUTS = [
    {"ioId": "estop", "role": "ESTOP"},
    {"ioId": "act_1_min", "role": "LIMIT_MIN", "motorId": "act_1"},
    {"ioId": "act_1_max", "role": "LIMIT_MAX", "motorId": "act_1"},
    {"ioId": "hold", "role": "TRAFFIC_HOLD"},
    {"ioId": "door", "role": "GENERAL"},
]


def robot(**overrides: Any) -> Mock:
    changes: dict[str, Any] = {"io__digitalInputs": INPUTS}
    return Mock({**changes, "runtime__simulationProfile": {"ioOverrides": overrides}}).run(0.1)


def telemetry(fleet: Mock) -> dict[str, bool]:
    found: dict[str, bool] = fleet.run(0.5).payloads("telemetry")[-1]["inputs"]
    return found


def set_input(fleet: Mock, name: str, value: bool | None) -> None:
    assert fleet.mock.set_input(0, name, value) is None
    fleet.fleet.poke(0, fleet.now)


def test_telemetry_has_the_values_of_all_inputs() -> None:
    fleet = robot()
    assert telemetry(fleet) == {
        "estop": False,
        "act_1_min": True,
        "act_1_max": False,
        "hold": False,
        "door": False,
    }
    set_input(fleet, "door", True)
    assert telemetry(fleet)["door"]


def test_telemetry_of_a_robot_with_a_fault_has_them_too() -> None:
    fleet = robot()
    fleet.mock.inject_fault(0, "motor:act_1", "BROKEN")
    fleet.fleet.poke(0, fleet.now)
    assert telemetry(fleet)["act_1_min"]


def test_a_script_holds_the_robot_by_its_traffic_input() -> None:
    fleet = robot(
        inputScript=[
            {"atSeconds": 1.0, "ioId": "hold", "value": True},
            {"atSeconds": 2.0, "ioId": "hold"},
        ]
    )
    assert fleet.run(1.4).state()["safetyStopReason"] == "TRAFFIC_HOLD"
    assert fleet.run(1.0).state()["safetyStopReason"] is None


def test_a_script_names_an_input_that_the_robot_has() -> None:
    with pytest.raises(ConfigError, match="dor"):
        robot(inputScript=[{"atSeconds": 1.0, "ioId": "dor", "value": True}])


def test_a_limit_input_that_is_on_stops_its_axis() -> None:
    fleet = robot()
    set_input(fleet, "act_1_max", True)
    fleet.command("EXECUTE_ACTION", motorId="act_1", targetPosition=0.06)
    fleet.run(3.0)
    assert fleet.acks()[-1] == "EXECUTE_ACTION:FAILED:LIMIT_SWITCH_ACTIVE"
    assert fleet.state()["motors"]["act_1"]["position"] < 0.01
    set_input(fleet, "act_1_max", None)
    fleet.command("EXECUTE_ACTION", motorId="act_1", targetPosition=0.08)
    assert fleet.run(4.0).acks()[-1] == "EXECUTE_ACTION:DONE"
    assert telemetry(fleet)["act_1_max"]


def test_an_axis_drives_away_from_a_limit_input_that_is_on() -> None:
    fleet = robot()
    fleet.command("EXECUTE_ACTION", motorId="act_1", targetPosition=0.06)
    fleet.run(3.0)
    set_input(fleet, "act_1_max", True)
    fleet.command("EXECUTE_ACTION", motorId="act_1", targetPosition=0.02)
    assert fleet.run(3.0).acks()[-1] == "EXECUTE_ACTION:DONE"


def test_noise_of_limit_inputs_is_seen_and_stops_no_axis() -> None:
    fleet = robot(limitSensorNoise={"enabled": True, "probability": 0.05})
    fleet.command("EXECUTE_ACTION", motorId="act_1", targetPosition=0.06)
    assert fleet.run(4.0).acks()[-1] == "EXECUTE_ACTION:DONE"
    fleet.run(60.0)
    seen = {payload["inputs"]["act_1_max"] for payload in fleet.payloads("telemetry")}
    assert seen == {True, False}
