"""Faults of mobile robots that a scenario rule or an operator brings about."""

from understudy.ports.faults import EMERGENCY_STOP, Fault, Faults, Figure

MOTOR = {"motor": Figure(0.0, 0.0, 63.0)}
DEVICE = {"device": Figure(0.0, 0.0, 63.0)}
FAULTS: Faults = {
    **EMERGENCY_STOP,
    "motor_fault": Fault("brought", "a motor fails until it is reset", MOTOR),
    "drive_fault": Fault("brought", "all DRIVE motors fail until they are reset"),
    "device_disconnected": Fault("brought", "a sensor is not connected any more", DEVICE),
    "device_connected": Fault("brought", "a sensor is connected again", DEVICE),
}
"""`motor` and `device`: their place in the robot's file, from 0, or their id."""
