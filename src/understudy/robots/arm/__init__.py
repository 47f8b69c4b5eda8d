"""A simulated arm: the controller a real grblHAL-driven one would be."""

from understudy.robots.arm.build import arm_of, build
from understudy.robots.arm.config import Config
from understudy.robots.arm.controller import VirtualController

__all__ = ["Config", "VirtualController", "arm_of", "build"]
