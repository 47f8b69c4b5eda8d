"""Hand-eye calibration: the arm looks at a board from several poses, and finds its camera.

The cell file knows only roughly where the camera is. The pictures are rendered with the true one;
the job plans the poses, moves, looks, computes, and checks the result with poses that it did not
use. `understudy calibrate hand-eye --cell calibration` does the same; docs/jobs/hand_eye.md has the
calibration of a REAL arm and of a camera that stands beside the robot.
"""

import numpy as np

import understudy
from understudy.devices.camera.camera import VirtualCamera
from understudy.jobs.hand_eye.job import HandEyeJob
from understudy.robots.arm.controller import ArmController
from understudy.simulation.cell import Cell
from understudy.space.transform import angle_between
from understudy.units import DEG, MM

cell = understudy.load_cell("calibration")
assert isinstance(cell.timed_cell, Cell)
parts = cell.timed_cell.components
robot, camera, job = parts["g60"], parts["g60.camera"], parts["g60.hand_eye"]
assert isinstance(robot, ArmController)
assert isinstance(camera, VirtualCamera)
assert isinstance(job, HandEyeJob)
robot.connect(0)
robot.enable(0)
assert job.start(0, poses=10) is None
cell.run_while(job.is_running)

status, result = job.status(cell.timed_cell.now), job.result
assert status.state == "DONE", status.error
assert result is not None
true = camera.model.at
missed = float(np.linalg.norm(result.camera[:3, 3] - true[:3, 3])) / MM
turned = angle_between(result.camera, true) / DEG
print(f"{status.captured} poses; residual {result.rms_mm:.3f} mm, {result.pixel_rms:.2f} px")
print(f"camera on the flange: {np.round(result.camera[:3, 3] / MM, 2)} mm")
print(f"missed by {missed:.3f} mm and {turned:.4f}°")
for check in status.checked:
    print(f"a pose that was not used: {check.distance_mm:.3f} mm")
assert missed < 0.1
assert turned < 0.02
document = job.document("2026-01-31")
assert isinstance(document, str)
print(document.splitlines()[0])
