"""Parts of a cell: things that robots pick, carry, place, stack and drop.

config      the keys `parts` and `part_rules` of a cell file
footprint   convex shapes in the plane: overlap, contact area, stability
layout      where a part comes to rest, without a clock
sequence    the same parts step by step, for offline checks
workpieces  the part `parts` of a cell: resting, held and falling parts on the time axis
"""
