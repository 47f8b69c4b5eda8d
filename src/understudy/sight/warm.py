"""Compiles the kernels of `sight` by calling each once, so that later processes load them."""

import numpy as np

from understudy.sight.faces import marker_face, plain
from understudy.sight.image_sensor import expose, noisy_depth
from understudy.sight.lens import Lens
from understudy.sight.render import render
from understudy.space.pose import Pose
from understudy.space.transform import matrix


def warm() -> None:
    camera = matrix(Pose(0.0, 0.0, 0.5, np.pi, 0.0, 0.0))
    sheet = marker_face(plain((1, 2, 3)), 1.0, 1.0)
    picture = render([sheet], Lens(8, 6, 8.0, 8.0, 4.0, 3.0), camera)
    expose(picture.light, 1.0, 2.0, 1)
    noisy_depth(picture.depth, 0.001, 1)
