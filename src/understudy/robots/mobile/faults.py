"""Faults of mobile robots that a scenario rule or an operator brings about."""

from understudy.ports.faults import EMERGENCY_STOP, Fault, Faults, Figure

MOTOR = {"motor": Figure(0.0, 0.0, 63.0)}
DEVICE = {"device": Figure(0.0, 0.0, 63.0)}
INPUT = {"io": Figure(0.0, 0.0, 255.0)}
FAULTS: Faults = {
    **EMERGENCY_STOP,
    "motor_fault": Fault("brought", "a motor fails until it is reset", MOTOR),
    "drive_fault": Fault("brought", "all DRIVE motors fail until they are reset"),
    "device_disconnected": Fault("brought", "a sensor is not connected any more", DEVICE),
    "input_on": Fault("brought", "a digital input is on", INPUT),
    "input_off": Fault("brought", "a digital input is off", INPUT),
    "input_released": Fault("brought", "a limit input follows its axis again", INPUT),
    "device_connected": Fault("brought", "a sensor is connected again", DEVICE),
}
"""`motor`, `device` and `io`: their place in the robot's file, from 0, or their id."""
