"""After the kernels are warm, a fleet compiles nothing more. One robot answers late, as REAL ones
do."""

import os
import subprocess
import sys

SCRIPT = """
import sys
from tests.robots.mobile.runtime.driven_fleet import DrivenFleet, robot_file
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.graph import build_driver_graph
from understudy.robots.mobile.hardware import Surroundings
from understudy.robots.mobile.warm import warm

def loaded():
    modules = [module for name, module in sys.modules.items() if name.startswith("understudy.")]
    kernels = {k for module in modules for k in vars(module).values() if hasattr(k, "py_func")}
    return {(k.py_func.__qualname__, str(each)) for k in kernels for each in k.signatures}

warm()
before = loaded()
assert any("move_bodies" in name for name, _ in before)
rule = {"trigger": "AFTER_SECONDS", "value": 9, "target": "drive"}
profile = {
    "world": {
        "obstacles": [{"id": "o", "x": 9, "y": 9, "radiusMeters": 1}],
        "barcodeMarkers": [{"code": "M", "x": 1, "y": 0}],
        "boundaries": [[[-20, -20], [20, -20], [20, 20], [-20, 20]]],
    },
    "faultInjection": {"rules": [rule]},
}
late = {**profile, "driveResponse": {"delayMs": 100, "positionNoiseMm": 1}}
profiles = {"r1": profile, "r2": late}
files = [robot_file(name, runtime__simulationProfile=each) for name, each in profiles.items()]
layout = Layout(files)
hardware = build_driver_graph(layout, [Surroundings()] * 2, print)
fleet = DrivenFleet(layout, hardware)
fleet.run(0.5)
for robot in ("r1", "r2"):
    fleet.command("MOVE_TO_POSE", robot=robot, x=2, y=0, yaw=1)
fleet.command("EXECUTE_ACTION", motorId="act_1", targetPosition=0.05)
fleet.run(11)
assert "EXECUTE_ACTION:DONE" in fleet.acks(), fleet.acks()
assert "motor.fault" in fleet.events(), fleet.events()
hardware.sensors.ranges(0)
hardware.mock.clearance(0)
for name, signature in sorted(loaded() - before):
    print("compiled later:", name, signature)
"""


def test_a_fleet_after_warm_compiles_nothing() -> None:
    """In a process of its own: here other tests have loaded kernels."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
