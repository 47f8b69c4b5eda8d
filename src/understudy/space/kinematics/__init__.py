"""Kinematics of serial arms.

chain          `Chain`, an arm built from a robot model    forward        kernels of frames
ik             inverse kinematics                          closed_form    its kernels
refine         iterative search for other arms             follow         along a tool path
singular       distances from singular poses               teach          TCP and base by points
trigonometry   vectorised sine, cosine, arctangent
"""
