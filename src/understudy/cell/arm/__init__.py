"""A simulated arm: the controller a real grblHAL-driven one would be."""

from understudy.cell.arm.build import arm_of, build
from understudy.cell.arm.config import Config
from understudy.cell.arm.controller import VirtualController

__all__ = ["Config", "VirtualController", "arm_of", "build"]
