"""How things move: decide once on the time axis, then sample. Plans, look-ahead, braking, torques.

A plan is a *path* (where, and how fast each piece may be run) with a *law* (which piece, how far
along it, when). Hold, stop and override cut the law and never touch the path.
"""
