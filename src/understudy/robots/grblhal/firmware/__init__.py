"""grblHAL's firmware: conditions, alarms, overrides and settings around a program."""

from understudy.robots.grblhal.firmware.core import IN_ALARM, ControlledAxes, SettingValues, State
from understudy.robots.grblhal.firmware.firmware import Firmware

__all__ = ["IN_ALARM", "ControlledAxes", "Firmware", "SettingValues", "State"]
