"""Geometry: poses, robot models, kinematics, collision, reach. No module here knows about time.

pose, transform   poses and 4×4 matrices        model        URDF, shapes, cell environment
kinematics        forward, inverse, following   collision    distances, contacts, sweeps
reach             reachability maps             compiled     decorators for kernels
warm              compiles all kernels
"""
