"""REAL mobile robots behind a PLC that speaks Modbus TCP.

`registers` has the map of the PLC's registers, `driver` the connection, `hardware` the motors,
inputs, outputs and sensors as the runtime uses them.
"""

from understudy.robots.mobile.plc.hardware import PlcHardware

__all__ = ["PlcHardware"]
