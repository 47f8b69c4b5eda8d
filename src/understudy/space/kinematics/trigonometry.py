"""Vectorised sine, cosine and arctangent: loops that the compiler turns into SIMD instructions.

The polynomials are interpolated at Chebyshev nodes with 60 digits, so that only rounding errors
remain. No mathematics library is called: results do not depend on which one is installed.
"""

import math

import numpy as np

from understudy.space.compiled import compiled
from understudy.space.transform import Array

QUARTER, HALF, FULL = math.pi / 4, math.pi / 2, math.pi
TAN_EIGHTH = math.sqrt(2.0) - 1.0
PER_HALF = 1.0 / HALF
HALF_HIGH = 1.570796325802803
HALF_LOW = 9.920935796805404e-10
"""π/2 in two parts; the first has 29 bits, so that small multiples of it are exact."""


@compiled
def arctan2(y: Array, x: Array, out: Array) -> None:  # kernel
    """out[i] = atan2(y[i], x[i]) to within 1e-15 of its value; 0 where both are 0.

    The quotient is reduced to ±tan(π/8), where atan(t) = t + t³·P(t²).
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


@compiled
def sincos(angle: Array, sin: Array, cos: Array) -> None:  # kernel
    """Sines and cosines, to within 1e-15 for angles up to a thousand turns.

    The angle is reduced by quarter turns to r within ±π/4, where sin(r) = r + r³·S(r²) and
    cos(r) = 1 - r²/2 + r⁴·C(r²).
    """
    for i in range(angle.shape[0]):
        quarters = np.floor(angle[i] * PER_HALF + 0.5)
        r = (angle[i] - quarters * HALF_HIGH) - quarters * HALF_LOW
        z = r * r
        s = 1.5918129294866608e-10
        s = s * z - 2.5051131845003624e-08
        s = s * z + 2.755731610255244e-06
        s = s * z - 0.00019841269836758574
        s = s * z + 0.008333333333330948
        s = s * z - 0.16666666666666666
        s = r + r * z * s
        c = -1.1382632425521717e-11
        c = c * z + 2.08761462684032e-09
        c = c * z - 2.7557317271729793e-07
        c = c * z + 2.480158729876569e-05
        c = c * z - 0.0013888888888887398
        c = c * z + 0.041666666666666664
        c = 1.0 - (0.5 * z - z * z * c)
        place = quarters - 4.0 * np.floor(0.25 * quarters)
        odd = place == 1.0 or place == 3.0
        up, along = (c if odd else s), (s if odd else c)
        sin[i] = -up if place >= 2.0 else up
        cos[i] = -along if place == 1.0 or place == 2.0 else along
