"""A plain six-axis machine under grblHAL."""

from understudy.robots.grblhal.machine.machine import Config, Machine, build

__all__ = ["Config", "Machine", "build"]
