"""Pick & place: four blocks from a table to a pallet, and where they really are.

The job works with the gripper's sensors and with what vision reports. The places of the parts in
the cell are the ground truth to compare it with.
"""

import understudy
from understudy.jobs.pick_place.manager import PickPlaceManager
from understudy.robots.arm.controller import ArmController
from understudy.simulation.cell import Cell
from understudy.simulation.workpieces.workpieces import Workpieces

cell = understudy.load_cell("pick_place")
assert isinstance(cell.timed_cell, Cell)
found = cell.timed_cell.components
robot, job, parts = found["g60"], found["g60.pick_place"], found["parts"]
assert isinstance(robot, ArmController)
assert isinstance(job, PickPlaceManager)
assert isinstance(parts, Workpieces)
robot.connect(0)
robot.enable(0)
job.on_cycle(lambda number, success, now: print(f"{now / 1e9:8.3f} s  cycle {number}: {success}"))

assert job.start(0, max_cycles=4) is None
cell.run_while(job.is_running)

status = job.status(cell.timed_cell.now)
print(f"{status.success_count} parts, {status.statistics.mean_s:.2f} s for each; {status.reason}")
assert (status.success_count, status.reason) == (4, "DONE")
placed = [part for part in parts.status(cell.timed_cell.now).parts if part.pose[1] < 0.15]
for part in placed:
    x, y, z = (value * 1000 for value in part.pose[:3])
    print(f"{part.name:10} {part.state} at {x:.1f} {y:.1f} {z:.1f} mm")
assert len(placed) == 4
