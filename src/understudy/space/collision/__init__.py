"""Distances and contacts of shapes, and proofs that a motion is free of collisions.

solids      shapes as arrays; distance and depth of convex shapes
distance    distance of any two shapes, and of line segments
world       arm and objects as arrays: configurations, contacts, bounds of motion
detector    `CollisionDetector`           self_pairs   links that can touch each other
sweep       `Sweeper` and its kernel      arm_pair     two arms against each other
pair_store  known results of self_pairs
"""
