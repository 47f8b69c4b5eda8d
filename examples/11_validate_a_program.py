"""Validates a program before a robot runs it: violations by line, and the proven clearance."""

import understudy

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
