"""REAL mobile robots: a PLC (Modbus TCP), lines at a serial port, CANopen drives at a CAN bus.

`hardware` has the motors, inputs, outputs and sensors as the runtime uses them, `channels` what
each family of devices gives it. `registers` has the devices behind a PLC or a serial port, `modbus`
what a PLC understands; `canopen/` has the CAN bus and its drives.
"""
