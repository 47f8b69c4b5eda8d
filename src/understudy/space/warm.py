"""Calls every kernel of the room's kinematics once, so that set-up fills the compiler's cache."""

import numpy as np

from understudy.space.chain import Chain
from understudy.space.follow import follow
from understudy.space.ik import closed_form, solve, solve_all
from understudy.space.refine import refined
from understudy.space.singular import manipulability


def warm(chain: Chain) -> None:
    """All kernels this arm needs; those of an arm with a closed form serve every arm."""
    q = np.clip(np.full(chain.dof, 0.1), chain.lower, chain.upper)
    target = chain.flange(q)
    chain.links(q)
    manipulability(chain, q)
    refined(chain, target[None], q[None])
    if closed_form(chain) is not None:
        solve(chain, target)
        solve_all(chain, target[None])
        follow(chain, q, target[None])
