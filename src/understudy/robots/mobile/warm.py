"""Compiles all kernels of mobile robots by letting some of them drive for a moment."""

from typing import Any

import msgspec

from understudy.ports import Epoch, WireMessage
from understudy.robots.mobile.config.fleet_keys import PlannerConfig
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.config.robot_file import RobotFile
from understudy.robots.mobile.hardware import MockHardware, Surroundings
from understudy.robots.mobile.planner.built_in import BuiltInPlanner
from understudy.robots.mobile.runtime.fleet import Fleet
from understudy.robots.mobile.runtime.messages import MoveToPoint
from understudy.robots.mobile.runtime.messages import Pose as Place
from understudy.robots.mobile.world import Circle, Polygon
from understudy.units import NS_PER_MS

TICK_HZ = 50
TICKS = 60
LIMITS = {
    "maxSpeed": {"unit": "m/s", "value": 1.0},
    "maxAcceleration": {"unit": "m/s2", "value": 1.0},
    "maxDeceleration": {"unit": "m/s2", "value": 1.0},
}
SIZES = {"lengthMm": 900, "widthMm": 600, "heightMm": 300, "wheelBaseMm": 500, "trackWidthMm": 500}
INPUTS = [{"ioId": "estop", "role": "ESTOP"}, {"ioId": "hold", "role": "TRAFFIC_HOLD"}]
DEVICES = [
    {"deviceId": "lidar", "type": "LIDAR"},
    {"deviceId": "scanner", "type": "BARCODE_SCANNER"},
]
MARKER = {"code": "M", "x": 0.0, "y": 0.0}
PROFILES: dict[str, dict[str, Any]] = {
    "differential": {},
    "mecanum": {"driveModel": "mecanum"},
    "ackermann": {"driveModel": "ackermann"},
    "late": {"driveResponse": {"delayMs": 60, "lagMs": 40, "speedNoiseMps": 0.001}},
}
"""Simulation profiles of the robots by their names. REAL robots answer late, too."""
SOLIDS = (Circle("post", 5.0, 5.0, 0.1), Polygon("wall", ((-9.0, -3.0), (9.0, -3.0))))


def warm(see_each_other: bool = False) -> None:
    """Compiles the kernels of the hardware, the runtime and the planner; of robots that see each
    other only if asked: a cell with such robots compiles them when it is built."""
    layout = Layout([_robot(name) for name in PROFILES])
    around = [Surroundings((0.0, 2.0 * n, 0.0), SOLIDS) for n in range(len(PROFILES))]
    hardware = MockHardware(layout, around, range(len(PROFILES)), see_each_other=see_each_other)
    planner = BuiltInPlanner(PlannerConfig(), layout, hardware, None)
    fleet = Fleet(layout, hardware, run_id="warm", epoch=Epoch(0), planner=planner)
    fleet.set_connected(True, 0)
    for tick in range(TICKS):
        now = tick * 1000 * NS_PER_MS // TICK_HZ
        fleet.wake(now)
        if tick == 1:
            for name in PROFILES:
                _command(fleet, name, "MOVE_TO_POSE", {"x": 1.0, "y": 0.5}, now)
        if tick == TICKS - 5:
            hardware.inject_fault(0, "drive", "SIM_FAULT")
        if tick == TICKS // 2:
            for name in PROFILES:
                _command(fleet, name, "STOP", {}, now)
                _command(
                    fleet, name, "EXECUTE_ACTION", {"motorId": "lift", "targetPosition": 0.1}, now
                )
    hardware.sensors.ranges(0)
    hardware.clearance(0)
    planner.plan("differential", Place(0.0, 0.0, 0.0), MoveToPoint(x=7.0, y=7.0), TICKS)


def _command(fleet: Fleet, robot: str, name: str, parameters: dict[str, Any], now: int) -> None:
    payload = {"commandType": name, "parameters": parameters}
    message = {"messageId": f"{name}-{robot}", "robotId": robot, "payload": payload}
    subject = f"robot.{robot}.command.request"
    fleet.receive(WireMessage(subject, msgspec.json.encode(message), ""), now)


def _robot(name: str) -> RobotFile:
    """A robot with everything that has a kernel."""
    driver = {"type": "MOCK"}
    motors = [
        {"motorId": name, "role": "DRIVE", "functionKey": name, "driver": driver, "limits": LIMITS}
        for name in ("front_left", "front_right", "rear_left", "rear_right")
    ]
    lift = {"motorId": "lift", "role": "FUNCTIONAL", "functionKey": "LIFT", "driver": driver}
    document = {
        "identity": {"robotId": name, "robotCode": name, "name": name},
        "runtime": {
            "mode": "MOCK",
            "tickHz": TICK_HZ,
            "simulationProfile": {**PROFILES[name], "world": {"barcodeMarkers": [MARKER]}},
        },
        "dimensions": SIZES,
        "motors": [*motors, {**lift, "limits": LIMITS}],
        "io": {"digitalInputs": INPUTS, "devices": DEVICES},
    }
    return msgspec.convert(document, RobotFile)
