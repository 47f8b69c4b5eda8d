"""grblHAL's firmware around a program: states, alarms, overrides, settings; no axes of its own."""

from understudy.robots.grblhal.firmware.firmware import Firmware
from understudy.robots.grblhal.firmware.plant import Plant

__all__ = ["Firmware", "Plant"]
