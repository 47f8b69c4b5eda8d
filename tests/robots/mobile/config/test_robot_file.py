"""robot_config.json: what is read, and which mistakes are named."""

import json
from pathlib import Path
from typing import Any

import pytest

from understudy.errors import ConfigError
from understudy.robots.mobile.config.robot_file import (
    LidarConfig,
    ResetPolicy,
    RobotFile,
    is_robot_file,
    read_robot_file,
)

EXAMPLE = Path(__file__).with_name("robot_config.json")
PROFILE = "runtime.simulationProfile"


def changed(path: str, value: Any) -> str:
    """The example with one value replaced, added (`…+` appends to a list) or deleted (`...`)."""
    document = json.loads(EXAMPLE.read_text())
    *parents, last = path.split(".")
    place: Any = document
    for key in parents:
        place = place[int(key)] if isinstance(place, list) else place.setdefault(key, {})
    if value is ...:
        del place[last]
    elif last == "+":
        place.append(value)
    else:
        place[int(last) if isinstance(place, list) else last] = value
    return json.dumps(document, indent=1)


def error(path: str, value: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        read_robot_file(changed(path, value), "robot_config.json")
    return str(caught.value)


def test_the_example_of_the_design_document_is_read() -> None:
    robot = read_robot_file(EXAMPLE.read_text(), str(EXAMPLE))
    assert robot.identity.robot_id == "robot-1"
    assert robot.runtime.mode == "MOCK"
    assert [motor.role for motor in robot.motors] == ["DRIVE", "DRIVE", "FUNCTIONAL"]
    profile = robot.runtime.simulation_profile
    assert profile is not None
    assert profile.world.obstacles[0].radius_meters == 0.3
    assert [rule.value for rule in profile.fault_injection.rules] == [30.0, "MOVE_TO_POSE"]
    assert profile.fault_injection.rules[1].fault_code == "SIM_FAULT"


def test_limits_are_in_si_units() -> None:
    gripper = read_robot_file(EXAMPLE.read_text(), "f").motors[2].limits.si
    figures = gripper.max_speed, gripper.max_acceleration, gripper.max_deceleration
    assert figures == pytest.approx((0.05, 0.1, 0.12))
    assert (gripper.lowest, gripper.highest) == pytest.approx((0.0, 0.08))


def test_a_file_that_is_no_json_is_named_so() -> None:
    with pytest.raises(ConfigError, match=r"robot_config\.json:1: not JSON: "):
        read_robot_file('{"schemaVersion": 1,,}', "robot_config.json")


def test_the_same_file_is_valid_for_the_real_robot() -> None:
    assert read_robot_file(changed("runtime.mode", "REAL"), "f").runtime.mode == "REAL"


def test_what_is_left_out_has_defaults() -> None:
    text = json.dumps(
        {
            "identity": {"robotId": "r", "robotCode": "R", "name": "R"},
            "runtime": {"mode": "MOCK"},
            "dimensions": {"lengthMm": 900, "widthMm": 650, "heightMm": 350},
            "motors": [],
        }
    )
    robot = read_robot_file(text, "f")
    assert isinstance(robot, RobotFile)
    assert robot.safety.obstacle_stop_distance_meters == 0.6
    assert (robot.streams.heartbeat_hz, robot.streams.state_hz) == (1.0, 10.0)
    assert robot.runtime.simulation_profile is None


def test_the_keys_of_a_sensor_are_those_of_its_type() -> None:
    lidar = read_robot_file(EXAMPLE.read_text(), "f").io.devices[0].settings
    assert lidar == LidarConfig(rays=36)
    assert "did you mean 'rays'" in error("io.devices.0.config", {"ray": 3})


def test_an_unknown_key_is_named_with_its_line_and_the_nearest_valid_one() -> None:
    text = error("safety.obstacleStopDistanceMetres", 1)
    assert "robot_config.json:" in text
    assert "safety.obstacleStopDistanceMetres" in text
    assert "did you mean 'obstacleStopDistanceMeters'?" in text


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("identity.robotId", "robot 1", "identity.robotId"),
        ("identity.robotId", ..., "identity.robotId: this key is missing"),
        ("identity.robotId", "a.b>c", "identity.robotId"),
        ("runtime.mode", "SIM", "allowed: MOCK, REAL"),
        ("runtime.tickHz", 20, "runtime.tickHz: out of range (got 20)"),
        ("dimensions.lengthMm", 0, "dimensions.lengthMm: out of range"),
        ("streams.stateHz", -1, "streams.stateHz: out of range"),
        ("safety.obstacleWarnDistanceMeters", 0.2, "stop before it warns (got 0.2)"),
        ("motors.1.motorId", "drive_left", "two entries have this motorId (got 'drive_left')"),
        ("motors.0.driver.type", "CAN", "did you mean 'CANOPEN'?"),
        ("motors.0.limits.maxSpeed.unit", "m/s2", "allowed: m/s mm/s"),
        ("motors.0.limits.maxSpeed.value", 0, "allowed: > 0"),
        ("motors.2.limits.positionMin.unit", "deg", "allowed: m mm"),
        ("motors.2.limits.positionMin.value", 90, "not below the upper one (got 90"),
        ("io.digitalInputs.1.motorId", ..., "io.digitalInputs.1.motorId: this key is missing"),
        ("io.digitalInputs.1.motorId", "act_2", "did you mean 'act_1'?"),
        ("io.digitalOutputs.0.ioId", "estop", "two entries have this ioId"),
        (f"{PROFILE}.world.obstacles.0.radiusMeters", ..., "a circle has radiusMeters"),
        (f"{PROFILE}.world.obstacles.0.shape", "box", "a box has lengthMeters, widthMeters"),
        (f"{PROFILE}.world.boundaries", [[[0, 0]]], "a wall needs two corners or more"),
        (f"{PROFILE}.faultInjection.rules.0.value", "STOP", "allowed: a number of seconds"),
        (f"{PROFILE}.faultInjection.rules.1.value", 5, "allowed: a command type"),
        (f"{PROFILE}.faultInjection.rules.0.target", "motor:act_3", "did you mean 'act_1'?"),
        (f"{PROFILE}.faultInjection.rules.0.target", "wheel", "faultInjection.rules.0.target"),
        (f"{PROFILE}.ioOverrides.estopScript.1.atSeconds", 3, "earlier than the entry before it"),
        (
            f"{PROFILE}.scripts.obstacles",
            [{"atSeconds": 1, "action": "move", "id": "pots", "x": 1, "y": 2}],
            "no such obstacle at this time (got 'pots'); allowed: post",
        ),
        (
            f"{PROFILE}.scripts.obstacles",
            [
                {"atSeconds": 1, "action": "remove", "id": "post"},
                {"atSeconds": 2, "action": "remove", "id": "post"},
            ],
            "scripts.obstacles.1.id: no such obstacle at this time",
        ),
        (
            f"{PROFILE}.scripts.obstacles",
            [{"atSeconds": 1, "action": "spawn", "obstacle": {"id": "post", "x": 0, "y": 0}}],
            "this obstacle is already there",
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(path: str, value: Any, expected: str) -> None:
    assert expected in error(path, value)


@pytest.mark.parametrize(
    ("path", "value", "found"),
    [
        (
            "runtime.startupPolicy.settingsBootstrapMode",
            "ROBOT_WINS",
            lambda file: file.runtime.startup_policy.settings_bootstrap_mode == "LOCAL",
        ),
        (
            "runtime.startupPolicy.settingsBootstrapMode",
            "BACKEND_WINS",
            lambda file: file.runtime.startup_policy.settings_bootstrap_mode == "BACKEND",
        ),
        (
            "motors.2.resetPolicy",
            {"supportsReset": False, "resetCooldownMs": 2500},
            lambda file: file.motors[2].reset_policy == ResetPolicy(False, 2.5),
        ),
        (
            "io.digitalInputs",
            [{"ioId": "stop", "type": "ESTOP"}, {"ioId": "door", "type": "DIGITAL_INPUT"}],
            lambda file: [p.role for p in file.io.digital_inputs] == ["ESTOP", "GENERAL"],
        ),
        (
            "io.digitalOutputs",
            [{"ioId": "power", "type": "MOTOR_ENABLE"}],
            lambda file: file.io.digital_outputs[0].role == "MOTOR_ENABLE",
        ),
        (
            "capabilities.supportedModules",
            {"RobotCoreModule": True, "TaskComm": True, "RouteComm": False},
            lambda file: file.capabilities.supported_modules == ("RobotCore", "TaskComm"),
        ),
        (
            "nats.timeouts",
            {"connectTimeoutMs": 1500},
            lambda file: file.nats.timeouts.connect_seconds == 1.5,
        ),
        ("nats.connectTimeoutMs", 1500, lambda file: file.nats.timeouts.connect_seconds == 1.5),
    ],
)
def test_names_of_the_original_file_are_accepted(path: str, value: Any, found: Any) -> None:
    document = json.loads(changed(path, value))
    if path.startswith("nats.connect"):
        document["nats"].pop("timeouts", None)
    assert found(read_robot_file(json.dumps(document), "f"))


@pytest.mark.parametrize(
    ("path", "value", "key"),
    [
        ("motors.2.resetPolicy", {"supportsReset": 1}, "allowReset"),
        ("motors.2.resetPolicy", {"supportsReset": True, "allowReset": True}, "mean the same"),
        ("nats.timeouts", {"connectTimeoutMs": "soon"}, "connectSeconds"),
        ("io.digitalInputs", [{"ioId": "a", "type": "BELL"}], "role"),
        ("capabilities.supportedModules", {"Dancing": True}, "Dancing"),
        ("capabilities.supportedModules", {"TaskComm": 1}, "supportedModules"),
    ],
)
def test_mistakes_under_the_original_names_are_named(path: str, value: Any, key: str) -> None:
    assert key in error(path, value)


def test_a_robot_file_is_known_by_its_keys() -> None:
    assert is_robot_file(EXAMPLE.read_text())
    assert is_robot_file('{"motors": 1}')
    assert not is_robot_file('{"robots": {}}')
    assert not is_robot_file("[motors]")


@pytest.mark.parametrize("timeouts", [5, [], "long"])
def test_timeouts_that_are_no_mapping_are_named(timeouts: Any) -> None:
    with pytest.raises(ConfigError, match=r"nats\.timeouts: this does not fit"):
        read_robot_file(changed("nats.timeouts", timeouts), "robot_config.json")
