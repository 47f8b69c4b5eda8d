"""Kinematics of serial arms.

chain          `Chain`, an arm built from a robot model, and the kernels of its frames
ik             inverse kinematics: in closed form, or by search
follow         along a tool path                      singular       distances from singular poses
teach          TCP and base by points                 trigonometry   vectorised sine, arctangent
"""
