"""Kinematics of serial arms.

chain          `Chain`, an arm built from a robot model, and the kernels of its frames
ik             inverse kinematics                     closed_form    its kernels
follow         along a tool path                      singular       distances from singular poses
teach          TCP and base by points                 trigonometry   vectorised sine, arctangent
"""
