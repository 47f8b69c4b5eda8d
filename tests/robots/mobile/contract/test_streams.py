"""Contract: streams, envelope, and what robots send by themselves."""

import uuid
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from tests.robots.mobile.command_line.scripted_fleet import FROM_ROBOT, TO_ROBOT
from tests.robots.mobile.contract.backend import Backend
from tests.robots.mobile.contract.robots import PROFILES

NEWEST_COUNTS = ("heartbeat", "state", "telemetry", "traffic.state")
MOTOR_KEYS = {"connected", "mode", "position", "velocity"}


@pytest.mark.parametrize(("name", "kinds"), [("ROBOT_IN", FROM_ROBOT), ("ROBOT_OUT", TO_ROBOT)])
def test_the_streams_have_their_subjects_one_by_one(
    backend: Backend, name: str, kinds: tuple[str, ...]
) -> None:
    config = backend.call(backend.streams.stream_info(name)).config
    assert sorted(config.subjects or []) == sorted(f"robot.*.{kind}" for kind in kinds)
    assert config.duplicate_window == 600.0
    assert str(config.retention) == "limits"


def test_one_consumer_serves_all_robots(backend: Backend) -> None:
    (consumer,) = backend.call(backend.streams.consumers_info("ROBOT_OUT"))
    assert consumer.config.durable_name


def test_every_message_has_the_envelope(backend: Backend) -> None:
    for robot in PROFILES:
        backend.wait(robot, "telemetry")
    messages = list(backend.messages)
    for got in messages:
        envelope = got.envelope
        assert envelope["payloadVersion"] == 1
        assert str(uuid.UUID(envelope["messageId"])) == envelope["messageId"]
        assert (envelope["robotId"], envelope["robotCode"]) == (got.robot, "AMR")
        assert envelope["ts"].endswith("Z")
        assert datetime.fromisoformat(envelope["ts"]).utcoffset() == timedelta(0)
        if got.kind not in NEWEST_COUNTS:
            assert got.headers["Nats-Msg-Id"] == envelope["messageId"]
    ids = [got.envelope["messageId"] for got in messages]
    assert len(ids) == len(set(ids))


def test_the_time_of_a_robot_never_goes_back(backend: Backend) -> None:
    backend.wait("mover", "heartbeat", lambda p: p["seq"] >= 6)
    times = [datetime.fromisoformat(got.envelope["ts"]) for got in backend.of("mover", "state")]
    assert times == sorted(times)
    assert (times[-1] - times[0]).total_seconds() > 1.0


def test_a_robot_reports_that_it_is_simulated(backend: Backend) -> None:
    started = backend.event("mover", "simulation.started")
    assert started["profileName"] == "test hall"
    assert isinstance(started["seed"], int)
    state = backend.state("mover")
    assert (state["runtimeMode"], state["simulationProfileName"]) == ("MOCK", "test hall")
    marker = backend.wait("mover", "telemetry").payload["stateJson"]
    assert marker == {"runtimeMode": "MOCK", "simulationProfileName": "test hall"}


def test_settings_are_reported_at_the_start(backend: Backend) -> None:
    reported = backend.wait("mover", "settings.reported").payload
    assert set(reported["effectiveMotors"]) == {"drive_left", "drive_right", "act_1"}
    assert reported["effectiveMotors"]["drive_left"]["maxSpeed"] == pytest.approx(1.2)
    assert "effectiveIo" in reported
    assert "appliedFromCorrelationId" not in reported


def test_heartbeats_count(backend: Backend) -> None:
    backend.wait("stopper", "heartbeat", lambda p: p["uptimeSeconds"] >= 4)
    beats = [got.payload for got in backend.of("stopper", "heartbeat")]
    assert len({beat["bootId"] for beat in beats}) == 1
    numbers = [beat["seq"] for beat in beats]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    regular = [beat["uptimeSeconds"] for beat in beats if beat["uptimeSeconds"] >= 1]
    assert [b - a for a, b in pairwise(regular)] == pytest.approx([1.0] * (len(regular) - 1))
    assert (beats[0]["firmwareVersion"], beats[0]["runtimeMode"]) == ("1.4.0", "MOCK")
    assert beats[0]["status"] in ("RUNNING", "OFFLINE")


def test_the_state_has_its_keys(backend: Backend) -> None:
    state = backend.state("mover", lambda p: p["status"] == "RUNNING")
    assert set(state) >= {
        "pose",
        "velocity",
        "batteryPercent",
        "localizationStatus",
        "faultLevel",
        "faults",
        "status",
        "estopPressed",
        "safetyStopActive",
        "safetyStopReason",
        "motors",
    }
    assert set(state["pose"]) == {"x", "y", "yaw"}
    assert set(state["velocity"]) == {"linear", "angular"}
    assert (state["localizationStatus"], state["faultLevel"], state["faults"]) == ("OK", "NONE", [])
    assert (state["estopPressed"], state["safetyStopActive"]) == (False, False)
    assert state["safetyStopReason"] is None
    assert set(state["motors"]) == {"drive_left", "drive_right", "act_1"}
    assert all(set(motor) >= MOTOR_KEYS for motor in state["motors"].values())


def test_the_telemetry_has_its_keys(backend: Backend) -> None:
    telemetry = backend.wait(
        "post", "telemetry", lambda p: p["lidar"]["nearestObstacleMeters"] is not None
    ).payload
    assert 0 < telemetry["battery"]["percent"] <= 100
    assert set(telemetry["motors"]) == {"drive_left", "drive_right", "act_1"}
    lidar = telemetry["lidar"]
    assert lidar["connected"] is True
    assert lidar["nearestObstacleMeters"] == pytest.approx(2.7, abs=0.5)
    health = telemetry["health"]
    assert (health["natsConnected"], health["simulatedHardwareOk"]) == (True, True)
    assert "localization" in telemetry


def test_traffic_state_tells_the_braking_distance(backend: Backend) -> None:
    cause = backend.command("traffic", "MOVE_VELOCITY", linear=0.5, durationSeconds=8)
    found = backend.wait("traffic", "traffic.state", lambda p: p["velocityMps"] > 0.49).payload
    assert found["brakingDistanceMeters"] >= 0.5**2 / 2 / 1.0 - 1e-6
    assert found["pose"]["x"] > 0
    assert backend.ended("traffic", cause)[-1] == ("DONE", None)
