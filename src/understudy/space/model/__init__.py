"""Robots and surroundings as data: URDF, shapes, environment files."""
