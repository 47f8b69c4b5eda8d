"""Cycle time of a program, line by line, without running it."""

from understudy.offline.cycle_time import CycleTimeEstimator
from understudy.robots.grblhal.offline import machine_of

MACHINE = """
$110=6000
$111=6000
$120=500
$121=500
$11=0.02
"""

PROGRAM = """G21 G90
G0 X40 Y10
M3 S100
G1 X90 F900
G3 X90 Y40 J15
G1 X40
M5
G4 P0.5
G0 X0 Y0
"""

cycle = CycleTimeEstimator(machine_of(MACHINE)).estimate(PROGRAM)
for row in cycle.lines:
    print(f"{row.start_s:7.3f} … {row.end_s:7.3f} s  {row.kind:8} {row.text}")
print(
    f"travel {cycle.motion_s:.3f} s, process {cycle.process_s:.3f} s, total {cycle.total_s:.3f} s"
)
assert cycle.dwell_s == 0.5
assert not cycle.violations
