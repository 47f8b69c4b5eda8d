"""Detectors of the vision process, one module per kind: markers, shapes, point clouds, networks."""
