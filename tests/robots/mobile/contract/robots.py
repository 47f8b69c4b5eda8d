"""The cell of the contract tests: a cell file and the files of its robots."""

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any


def _motor(name: str, role: str, key: str, unit: str, *figures: float) -> dict[str, Any]:
    units = (unit + "/s", unit + "/s2", unit + "/s2", unit, unit)
    keys = ("maxSpeed", "maxAcceleration", "maxDeceleration", "positionMin", "positionMax")
    limits = {k: {"unit": u, "value": v} for k, u, v in zip(keys, units, figures, strict=False)}
    driver = {"type": "PLC", "config": {"unit": 1}}
    reset = {"allowReset": True, "cooldownSeconds": 0}
    return {
        "motorId": name,
        "role": role,
        "functionKey": key,
        "driver": driver,
        "limits": limits,
        "resetPolicy": reset,
    }


BASE: dict[str, Any] = {
    "schemaVersion": 1,
    "identity": {"robotId": "", "robotCode": "AMR", "name": "Carrier", "firmwareVersion": "1.4.0"},
    "runtime": {
        "mode": "MOCK",
        "tickHz": 50,
        "startupPolicy": {"settingsBootstrapMode": "LOCAL"},
        "healthPolicy": {"allowDriveInWarning": True, "requireNatsForMotion": True},
        "simulationProfile": {"profileName": "test hall", "randomSeed": 7},
    },
    "nats": {"servers": ["nats://127.0.0.1:4222"]},
    "dimensions": {
        "lengthMm": 900,
        "widthMm": 650,
        "heightMm": 350,
        "wheelBaseMm": 520,
        "trackWidthMm": 480,
    },
    "capabilities": {"flags": {}},
    "motors": [
        _motor("drive_left", "DRIVE", "LEFT_WHEEL", "m", 1.2, 0.8, 1.0),
        _motor("drive_right", "DRIVE", "RIGHT_WHEEL", "m", 1.2, 0.8, 1.0),
        _motor("act_1", "FUNCTIONAL", "GRIPPER", "mm", 50, 100, 120, 0, 80),
    ],
    "io": {
        "digitalInputs": [{"ioId": "estop", "role": "ESTOP"}],
        "digitalOutputs": [
            {"ioId": "motor_enable", "role": "MOTOR_ENABLE"},
            {"ioId": "horn", "role": "GENERAL"},
        ],
        "devices": [
            {"deviceId": "lidar_front", "type": "LIDAR", "config": {"rays": 36}},
            {"deviceId": "scanner", "type": "BARCODE_SCANNER"},
        ],
    },
    "streams": {"heartbeatHz": 1, "stateHz": 5, "telemetryHz": 1, "trafficHz": 1},
    "safety": {
        "stopOnEstop": True,
        "stopOnObstacle": True,
        "obstacleStopDistanceMeters": 0.6,
        "obstacleWarnDistanceMeters": 1.2,
    },
}

POST = {"id": "post", "shape": "circle", "x": 3, "y": 0, "radiusMeters": 0.3}
MARKER = {"code": "A-01", "x": 0.5, "y": 0, "type": "QR"}


def _fault(target: str) -> dict[str, Any]:
    rule = {"trigger": "AFTER_SECONDS", "value": 0.5, "target": target, "faultCode": "SIM_FAULT"}
    return {"faultInjection": {"rules": [rule]}}


def _presses(times: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    script = [{"atSeconds": at, "pressed": pressed} for at, pressed in times]
    return {"ioOverrides": {"estopScript": script}}


ALTERNATING = [(at, at % 8 == 6) for at in range(6, 4000, 2) if at % 8 in (0, 6)]
PROFILES: dict[str, dict[str, Any]] = {
    "mover": {},
    "stopper": {},
    "gripper": {},
    "hearer": {},
    "setter": {},
    "post": {"world": {"obstacles": [POST]}},
    "marker": {"world": {"barcodeMarkers": [MARKER]}},
    "pressed": _presses([(0.5, True)]),
    "pressing": _presses(ALTERNATING),
    "drive_down": _fault("drive"),
    "act_down": _fault("motor:act_1"),
    "pressed_and_drive_down": _presses([(0.5, True)]) | _fault("drive"),
    "pressed_and_act_down": _presses([(0.5, True)]) | _fault("motor:act_1"),
    "tasks": {},
    "planner": {"world": {"obstacles": [POST]}},
    "traffic": {},
    "simple": {},
    "waiting": {},
}
"""What is different about each robot; every test has robots of its own."""


def robot_file(name: str, profile: Mapping[str, Any]) -> dict[str, Any]:
    file = copy.deepcopy(BASE)
    file["identity"]["robotId"] = name
    file["runtime"]["simulationProfile"] |= profile
    if name == "simple":
        file["capabilities"]["supportedCommands"] = ["STOP", "MOVE_VELOCITY"]
    if name == "waiting":
        file["runtime"]["startupPolicy"]["settingsBootstrapMode"] = "BACKEND"
    return file


def write_cell(folder: Path, nats: Mapping[str, Any], names: Iterable[str] = PROFILES) -> Path:
    """Writes a cell file and its robots; returns its path."""
    robots = {}
    for name in names:
        (folder / f"{name}.json").write_text(json.dumps(robot_file(name, PROFILES[name])))
        robots[name] = {"kind": "mobile", "file": f"{name}.json"}
    cell = {"description": "contract", "nats": dict(nats), "robots": robots}
    path = folder / "contract.yaml"
    path.write_text(json.dumps(cell))
    return path
