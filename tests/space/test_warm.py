"""Warming up calls every kernel for every arm and compiles each of them once."""

import subprocess
import sys

from tests.space.arm_models import seven_axes, three_parallel

from understudy.space.warm import warm_collisions, warm_kinematics

# In a process of its own: kernels compiled by other tests must not count.
COUNT = """
from understudy.config.files import shipped_robots
from understudy.space.collision import distance, self_pairs, solids, sweep, world
from understudy.space.kinematics import chain as chains, follow, ik
from understudy.space.reach import neighbours, reach_map
from understudy.space.kinematics.chain import chain
from understudy.space.model.urdf import read
from understudy.space.warm import warm_collisions, warm_kinematics, warm_reach
for file in shipped_robots().values():
    arm = chain(read(file.read_text()))
    warm_kinematics(arm)
    warm_collisions(arm)
    warm_reach(arm)
kernels = (
    chains.flange_frames, chains.joint_frames, chains.jacobians, ik.all_branches,
    ik.limited_branches, follow.follow_branches, ik.search,
    sweep.certify_and_measure, solids.core_depth, distance.distance, reach_map.reach_points,
    neighbours.fill,
    self_pairs.look, self_pairs.divide, world.contact_in, world.contacts,
    world.least_distance, world.pose,
)
print({kernel.__name__ for kernel in kernels if len(kernel.signatures) != 1} or {})
"""


def test_every_kernel_is_compiled_for_one_combination_of_types() -> None:
    done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "{}"


def test_arms_without_closed_form_are_warmed_too() -> None:
    for arm in (seven_axes(), three_parallel()):
        warm_kinematics(arm)
        warm_collisions(arm)
