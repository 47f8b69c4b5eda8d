"""The arc tangent of many quotients at once, written so that the compiler runs it in lanes."""

import math

from understudy.space.compiled import compiled
from understudy.space.transform import Array

QUARTER, HALF, FULL = math.pi / 4, math.pi / 2, math.pi
TAN_EIGHTH = math.sqrt(2.0) - 1.0


@compiled
def arctan2(y: Array, x: Array, out: Array) -> None:  # kernel
    """out[i] = atan2(y[i], x[i]) to within 2 units in the last place; 0 where both are 0.

    The quotient is brought into ±tan(π/8). There atan(t) = t + t³·P(t²), with P interpolated at
    eleven Chebyshev nodes of 0…tan²(π/8) in 60 digits.
    """
    for i in range(y.shape[0]):
        ax, ay = abs(x[i]), abs(y[i])
        small, large = min(ax, ay), max(ax, ay)
        steep = small > TAN_EIGHTH * large
        above = small - large if steep else small
        below = small + large if steep else large
        t = above / (below if below > 0.0 else 1.0)
        z = t * t
        p = -0.019176887119062257
        p = p * z + 0.03923165829558719
        p = p * z - 0.0508544973794026
        p = p * z + 0.0585814891280221
        p = p * z - 0.06664511447381948
        p = p * z + 0.07692183190826087
        p = p * z - 0.09090904578123903
        p = p * z + 0.11111111015256361
        p = p * z - 0.14285714284666542
        p = p * z + 0.1999999999999552
        p = p * z - 0.3333333333333333
        a = t + t * z * p
        a = a + QUARTER if steep else a
        a = HALF - a if ay > ax else a
        a = FULL - a if x[i] < 0.0 else a
        out[i] = -a if y[i] < 0.0 else a
