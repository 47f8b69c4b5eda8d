"""REAL motors, inputs and outputs by CiA 402 over CAN.

`services` has the messages of CANopen, `cia402` the states and objects of a drive, `node` one node
with its configuration and its process data, `bus` the driver of all nodes of a bus, `devices` what
`driver.config` says of a motor, an input or an output.
"""
