"""Robot models from URDF, shapes, and the environment of a cell."""
