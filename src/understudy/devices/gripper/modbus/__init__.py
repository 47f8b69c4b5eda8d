"""Electric grippers with Modbus: Robotiq 2F-85 and 2F-140, OnRobot RG2, DH-Robotics AG-95."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from understudy.ports.faults import Fault, Faults, Figure

Make = Literal["robotiq_2f85", "robotiq_2f140", "onrobot_rg2", "dh_ag95"]
Framing = Literal["auto", "rtu", "tcp"]
Milliseconds = Annotated[float, Meta(ge=1, le=60_000)]


class Real(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the REAL gripper is, as in `understudy send --to`: `/dev/ttyUSB0`, `10.0.0.5:502`."""

    to: Annotated[str, Meta(min_length=1, max_length=1024)]


class ServoConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Key `servo` of a gripper of type ELECTRIC_SERVO.

    `unit`: the address on the bus; none: that of the make. `poll_ms`: period of the status while a
    command is under way, `idle_poll_ms` at other times. `timeout_ms`: for an answer; a request is
    repeated `retries` times. `activate_at_start`: else with the first command. `baud`: of the
    simulated line. `framing`: `auto` is RTU at a serial port and TCP elsewhere; `rtu` is for a
    converter that passes RTU frames through TCP. `real`: the REAL gripper.
    """

    make: Make = "robotiq_2f85"
    unit: Annotated[int, Meta(ge=1, le=247)] | None = None
    poll_ms: Milliseconds = 20.0
    idle_poll_ms: Milliseconds = 200.0
    timeout_ms: Milliseconds = 100.0
    retries: Annotated[int, Meta(ge=0, le=100)] = 2
    activate_at_start: bool = True
    baud: Annotated[int, Meta(ge=1200, le=4_000_000)] = 115_200
    framing: Framing = "auto"
    real: Real | None = None


FAULTS: Faults = {
    "finger_blocked": Fault("brought", "an obstacle stops the moving fingers of a servo gripper"),
    "drive_fault": Fault("brought", "the drive of a servo gripper is off until reset"),
    "registers_frozen": Fault(
        "brought",
        "a servo gripper freezes its registers until reset: its status keeps its values, and what "
        "is written is acknowledged and ignored",
    ),
    "answer_lost": Fault("asked", "an answer of a servo gripper does not reach its driver"),
    "cable_cut": Fault(
        "brought",
        "the cable between a servo gripper and its driver is cut",
        {"duration_s": Figure(10.0, 0.0, 3600.0)},
    ),
}
"""Of the simulated servo gripper, beside `slip` and `grip_miss` of every gripper."""
FACE_FAULTS: Faults = {
    "device_failure": Fault("asked", "a request is answered with exception 4, device failure"),
}
"""Of the face for clients of the virtual gripper."""
