"""Registers and functions of the virtual grippers, make by make: rows of the parity page."""

from collections.abc import Collection, Mapping
from functools import cache

from understudy.devices.gripper.modbus import dh, onrobot, robotiq
from understudy.ports.decoder import Evidence, Operation, Sections
from understudy.protocol.modbus import READ_HOLDING, READ_INPUT, READ_WRITE, WRITE, WRITE_ONE

FUNCTIONS: Mapping[int, str] = {
    READ_HOLDING: "read registers",
    READ_INPUT: "read input registers",
    WRITE_ONE: "write one register",
    WRITE: "write registers",
    READ_WRITE: "write, then read registers",
}
ROBOTIQ_TESTS = "tests/devices/gripper/modbus/test_robotiq.py"
OTHER_TESTS = "tests/devices/gripper/modbus/test_onrobot_and_dh.py"
ROBOTIQ: Mapping[int, str] = {
    robotiq.COMMAND: "action request: rACT, rGTO, rATR, rARD",
    robotiq.COMMAND + 1: "rPR: position",
    robotiq.COMMAND + 2: "rSP, rFR: speed and force",
    robotiq.STATUS: "gACT, gGTO, gSTA, gOBJ",
    robotiq.STATUS + 1: "gFLT, gPR: fault, position asked for",
    robotiq.STATUS + 2: "gPO, gCU: position, current",
}
DH: Mapping[int, str] = {
    dh.INITIALISE: "initialise (1), and calibrate (0xA5)",
    dh.FORCE: "force, %",
    dh.SPEED: "speed, %",
    dh.POSITION: "position, per mille",
    dh.SPEED_TOO: "speed, %: the manual's other address",
    dh.INIT_STATE: "whether it is initialised",
    dh.GRIP_STATE: "moving, reached, caught, lost",
    dh.ACTUAL: "position now, per mille",
}
IN_FRAMES_OF_DH = (dh.INITIALISE, dh.POSITION, dh.INIT_STATE, dh.GRIP_STATE, dh.ACTUAL)
"""Registers in the example frames of the manual."""
ONROBOT: Mapping[int, str] = {
    onrobot.TARGET_FORCE: "target force, 0.1 N",
    onrobot.TARGET_WIDTH: "target width, 0.1 mm",
    onrobot.CONTROL: "control: grip, stop, grip with fingertip offset",
    onrobot.OFFSET: "fingertip offset now",
    onrobot.DEPTH: "depth",
    onrobot.RELATIVE_DEPTH: "depth since the command",
    onrobot.WIDTH: "width now",
    onrobot.STATUS: "busy, gripped, safety switches",
    onrobot.TIP_WIDTH: "width with fingertip offset",
    onrobot.NEW_OFFSET: "fingertip offset to use",
}


def functions(known: Collection[int]) -> list[Operation]:
    """The functions of Modbus, those that a device does not know as refused."""
    return [
        Operation(f"FC{number:02d}", text, test=OTHER_TESTS)
        if number in known
        else Operation(f"FC{number:02d}", text, "refused", test=OTHER_TESTS, note="exception 1")
        for number, text in FUNCTIONS.items()
    ]


@cache
def operations() -> Sections:
    def rows(
        make: str, table: Mapping[int, str], test: str, of_manual: Collection[int]
    ) -> list[Operation]:
        def evidence(number: int) -> Evidence:
            return "vendor's manual" if number in of_manual else "us"

        return [
            Operation(f"{make} 0x{number:04X}", text, "emulated", evidence(number), test)
            for number, text in table.items()
        ]

    return {
        "Robotiq 2F-85 and 2F-140: registers": rows("2F", ROBOTIQ, ROBOTIQ_TESTS, ROBOTIQ),
        "Robotiq: functions": functions(robotiq.VirtualRobotiq.functions),
        "OnRobot RG2: registers": rows("RG2", ONROBOT, OTHER_TESTS, ()),
        "OnRobot RG2: functions": functions(onrobot.VirtualOnRobot.functions),
        "DH-Robotics AG-95: registers": rows("AG-95", DH, OTHER_TESTS, IN_FRAMES_OF_DH),
        "DH-Robotics AG-95: functions": functions(dh.VirtualDh.functions),
    }
