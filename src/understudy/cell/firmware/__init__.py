"""grblHAL's firmware around a program: states, alarms, overrides, settings; no axes of its own."""

from understudy.cell.firmware.firmware import Firmware
from understudy.cell.firmware.plant import Plant

__all__ = ["Firmware", "Plant"]
