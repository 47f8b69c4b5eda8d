"""Distances and contacts of shapes, and proofs that a motion is free of collisions.

solids      shapes as arrays              gjk          distance of convex shapes
segments    distance of line segments     meshes       distance to triangle meshes
distance    distance of any two shapes    contact      contact point and penetration depth
world       arm and objects as arrays     assembly     builds a world
mounting    parts where no tool belongs
detector    `CollisionDetector`           self_pairs   links that can touch each other
certify     kernel of the sweep           motion_bound how far a shape can move
sweep       `Sweeper`                     arm_pair     two arms against each other
pair_store  known results of self_pairs
"""
