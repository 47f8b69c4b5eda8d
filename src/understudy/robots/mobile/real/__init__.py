"""REAL mobile robots behind devices with registers: a PLC (Modbus TCP), or lines at a serial port.

`registers` has the map of the registers, `driver_registers` the connection with its codecs,
`hardware` the motors, inputs, outputs and sensors as the runtime uses them.
"""

from understudy.robots.mobile.real.hardware import RealHardware

__all__ = ["RealHardware"]
