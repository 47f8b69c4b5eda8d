"""Compiles all kernels of `space` by calling each once, so that later processes load them."""

from dataclasses import replace

import numpy as np

from understudy.space.collision.arm_pair import ArmPair, PlacedArm
from understudy.space.collision.detector import CollisionDetector
from understudy.space.collision.sweep import greatest_slopes, straight, sweep
from understudy.space.collision.two_robots import TimedRobot, prove_apart, timed_path
from understudy.space.collision.world import arm_parts
from understudy.space.kinematics.chain import Chain, Frames
from understudy.space.kinematics.follow import follow
from understudy.space.kinematics.ik import closed_form, refined, solve, solve_all
from understudy.space.model.robot import Box, Capsule, Cylinder, Sphere
from understudy.space.model.shapes import Hull, Shape, TriangleMesh, as_object
from understudy.space.reach.neighbours import solved_by_direction
from understudy.space.reach.reach_map import ReachabilityAnalyzer
from understudy.space.transform import translation


def warm_kinematics(chain: Chain) -> None:
    """Compiles the kernels of kinematics; those of an arm with a closed form serve every arm."""
    q = np.clip(np.full(chain.dof, 0.1), chain.lower, chain.upper)
    target = chain.flange(q)
    chain.links(q)
    chain.tips(q[None])
    chain.jacobian(q)
    refined(chain, target[None], q[None])
    if closed_form(chain) is not None:
        solve(chain, target)
        solve_all(chain, target[None])
        follow(chain, q, target[None])


def warm_collisions(chain: Chain) -> None:
    """Compiles the kernels of collision and sweep; they are the same for every arm."""
    corners = np.vstack([np.zeros(3), np.eye(3)]) * 0.1
    mesh = TriangleMesh(corners, np.array([(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]))
    shapes: tuple[Shape, ...] = (
        Box((0.1, 0.1, 0.1)),
        Sphere(0.1),
        Cylinder(0.1, 0.1),
        Hull(corners),
        mesh,
    )
    detector = CollisionDetector(chain)
    detector.attach(as_object("tool", Capsule(0.01, 0.1), translation(0.0, 0.0, 0.1)))
    for k, shape in enumerate((*shapes, *shapes)):
        detector.add_object(as_object(str(k), shape, translation(0.5 + 0.02 * k, 0.0, 0.5)))
    q = np.clip(np.full(chain.dof, 0.1), chain.lower, chain.upper)
    detector.check_objects()
    detector.check_collision(q)
    detector.collides(q[None])
    detector.get_min_distance(q)
    sweep(detector, *straight(q, q + 0.01))
    greatest_slopes(np.ones((1, 4, chain.dof)), np.ones(1))
    figure = PlacedArm(chain, np.eye(4), arm_parts(chain, {}), chain.velocity)
    opposite = replace(figure, foot=translation(2.0, 0.0, 0.0))
    ArmPair(figure, opposite).distance(q, q)
    one, other = (
        TimedRobot(timed_path(q, []), [(0.0, each)], np.zeros(1)) for each in (figure, opposite)
    )
    prove_apart(one, other, shift=0.1)


def warm_reach(chain: Chain) -> None:
    """Compiles the kernels of reach maps, also those of arms without a closed form."""
    if closed_form(chain) is not None:
        ReachabilityAnalyzer(chain).generate_map(500.0, extent=0.5)
    if chain.dof == 6:
        frames, point = Frames(np.eye(4), np.eye(4)), np.zeros((1, 3))
        next(solved_by_direction(chain, frames, point, np.eye(4)[None], step=1.0))
