"""Validates a program before a robot runs it: violations by line, and the proven clearance."""

import math

import understudy
from understudy.app.validate_several import own_programs
from understudy.config import load_config

SOUND = """
G21 G90 G94
G0 X450 Y-100 Z450 A180 B0 C0
G1 Z350 F6000
G1 Y100 F600
G0 Z450
"""

report = understudy.validate(SOUND, "g60_welding")
assert report.passed
assert report.least_clearance is not None
print(f"{report.total_s:.1f} s, at least {report.least_clearance * 1000:.0f} mm from everything")

report = understudy.validate(SOUND.replace("Z350", "Z300"), "g60_welding")
assert not report.passed
for found in report.violations:
    print(found.kind, "-", found.message)

# Two arms at one post: their clearance in every timing that the handshakes of their programs allow.
config = load_config("two_arms")
for report in understudy.validate_together(own_programs(config), config, timing_s=math.inf):
    assert report.passed
    print(report.robots[0].text())

# A drilling program on a machine under grblHAL; a feed above the maximum of an axis is a warning.
report = understudy.validate("drill_plate.gcode", "grblhal_6axis")
assert report.passed
print(f"{report.total_s:.1f} s, {len(report.warnings)} warnings")
report = understudy.validate("G21 G90 G94\nG1 X100 F20000\n", "grblhal_6axis")
assert report.passed
for found in report.warnings:
    print(found.kind, "-", found.message)
