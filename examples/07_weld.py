"""A seam of 200 mm: the welding job on the simulated cell, and its result.

The job sends the same lines to a real controller. It waits for the arc with M66, and sends the
seam only when the arc burns.
"""

import understudy
from understudy.devices.welder.welder import Welder
from understudy.jobs.weld.sequencer import WeldingSequencer, WeldSettings
from understudy.robots.arm.controller import ArmController
from understudy.simulation.cell import Cell

cell = understudy.load_cell("g60_welding")
assert isinstance(cell.timed_cell, Cell)
robot, welder = cell.timed_cell.components["g60"], cell.timed_cell.components["g60.welder"]
assert isinstance(robot, ArmController)
assert isinstance(welder, Welder)
robot.connect(0)
robot.enable(0)
welder.on_phase(lambda phase, now: print(f"{now / 1e9:8.3f} s  {phase}"))

robot.send_gcode("G0 X450 Y-100 Z350 A180 B0 C0", 0)
cell.run_while_busy()

job = WeldingSequencer(robot, WeldSettings(wire_speed_m_min=8.0, voltage_volts=22.0))
job.start(["G1 Y100 F600"], cell.timed_cell.now)
while job.busy() and (poll := job.next_wake()) is not None:
    cell.advance_to(min(cell.timed_cell.next_wake() or poll, poll))
    job.wake(cell.timed_cell.now)

weld = welder.status(cell.timed_cell.now)
print(f"{weld.total_weld_length_mm:.2f} mm in {weld.arc_on_time_s:.2f} s of arc", job.status(0))
assert f"{weld.total_weld_length_mm:.2f}" == "200.00"
assert welder.issues() == ()
assert not robot.io.digital_input("ARC_OK")
