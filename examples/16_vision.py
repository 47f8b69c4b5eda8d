"""Pick & place through pixels: what vision finds in a rendered picture, and what is there.

The cell is rendered by its virtual camera; the server of the vision process looks at the picture in
this process. `understudy run sorting --vision process` does the same with a process of its own.
"""

import math

import understudy
from understudy.jobs.arm_motion import ControllerMotion
from understudy.jobs.pick_place.manager import PickPlaceManager
from understudy.ports.object_finder import FoundObjects
from understudy.robots.arm.controller import ArmController
from understudy.simulation.cell import Cell
from understudy.simulation.workpieces.workpieces import Workpieces
from understudy.space.transform import matrix
from understudy.vision.bridge import ProcessVision

cell = understudy.load_cell("sorting", vision="process")
assert isinstance(cell.timed_cell, Cell)
found = cell.timed_cell.components
robot, motion, parts = found["g60"], found["g60.motion"], found["parts"]
job, vision = found["g60.pick_place"], found["g60.vision"]
assert isinstance(robot, ArmController)
assert isinstance(motion, ControllerMotion)
assert isinstance(job, PickPlaceManager)
assert isinstance(vision, ProcessVision)
assert isinstance(parts, Workpieces)
robot.connect(0)
robot.enable(0)
assert job.start(0, max_cycles=1) is None
results = list[FoundObjects | understudy.Refused]()
vision.on_result(lambda ticket, result, now: results.append(result))
cell.run_while(lambda: not results)

result = results[0]
assert isinstance(result, FoundObjects)
camera = matrix(vision.camera(motion.flange(result.exposed_at)))
true = {name: parts.reading(name, result.exposed_at).pose for name in parts.names()}
for seen in result.objects:
    x, y, z = (camera @ matrix(seen.pose))[:3, 3]
    name, off = min(
        ((name, math.dist((x, y, z), at[:3]) * 1000.0) for name, at in true.items()),
        key=lambda row: row[1],
    )
    print(f"{seen.class_name:6} {seen.confidence:.2f} is {name}, {off:.3f} mm from where it is")
    assert name.startswith(seen.class_name)
    assert off < 0.5

cell.run_while(job.is_running)
status = job.status(cell.timed_cell.now)
print(f"sorted: {status.statistics.by_class}, {status.statistics.last_s:.1f} s; {status.reason}")
assert status.reason == "DONE"
