"""Warming up calls every kernel, whatever the arm."""

from own_arms import seven_axes, three_parallel

from understudy.space import (
    branches,
    certify,
    depth,
    follow,
    forward,
    pairs,
    reach,
    refine,
    selfpairs,
    world,
)
from understudy.space.chain import Chain
from understudy.space.warm import warm, warm_collisions

KERNELS = (
    forward.flange_frames, forward.joint_frames, forward.jacobians, branches.all_branches,
    branches.limited_branches, follow.follow_branches, refine.search,
)  # fmt: skip


def test_after_it_every_kernel_is_compiled(arm: Chain) -> None:
    warm(arm)
    assert all(len(kernel.signatures) == 1 for kernel in KERNELS)


def test_arms_without_closed_form() -> None:
    warm(seven_axes())
    warm(three_parallel())
    assert all(len(kernel.signatures) <= 1 for kernel in KERNELS)


def test_collisions(arm: Chain) -> None:
    warm_collisions(arm)
    kernels = (
        certify.certify, depth.core_depth, pairs.distance, reach.reach_points,
        selfpairs.extremes, selfpairs.apart_everywhere, world.contact_at, world.contacts,
        world.least_distance, world.pose,
    )  # fmt: skip
    assert all(len(kernel.signatures) == 1 for kernel in kernels)
