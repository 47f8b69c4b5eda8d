"""Distances and contacts of shapes, and proofs that a motion is free of collisions.

solids      shapes as arrays              convex       distance and depth of convex shapes
distance    distance of any two shapes, and of line segments
world       arm and objects as arrays: configurations, contacts, bounds of motion
detector    `CollisionDetector`           self_pairs   links that can touch each other
certify     kernel of the sweep           sweep        `Sweeper`
arm_pair    two arms against each other   near         points near to shapes
pair_store  known results of self_pairs
"""
