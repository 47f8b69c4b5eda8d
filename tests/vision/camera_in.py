"""The camera of the arm of a cell, as its section `vision` and its calibration file have it."""

import logging

from understudy.config import CellConfig
from understudy.sight.lens import CameraModel
from understudy.vision import VISION
from understudy.vision.assembly import camera_of_robot
from understudy.vision.config import VisionConfig


def camera_in(config: CellConfig, robot: str = "g60") -> CameraModel:
    section = config.robots[robot].sections.get(VISION) or VisionConfig()
    warn = logging.getLogger("understudy").warning
    return camera_of_robot(robot, section, config.document.file, warn)
