"""Builds the driver of a servo gripper, and the virtual gripper behind it unless it is REAL."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from understudy.devices.gripper import Config
from understudy.devices.gripper.modbus import Make, ServoConfig, dh, onrobot, robotiq
from understudy.devices.gripper.modbus.dh import VirtualDh
from understudy.devices.gripper.modbus.driver import ServoDriver, ServoSettings
from understudy.devices.gripper.modbus.fingers import Fingers, PartJaws
from understudy.devices.gripper.modbus.interface import Limits, Profile
from understudy.devices.gripper.modbus.onrobot import VirtualOnRobot
from understudy.devices.gripper.modbus.robotiq import VirtualRobotiq
from understudy.devices.gripper.modbus.virtual_gripper import Cable, VirtualDevice, VirtualGripper
from understudy.ports.device import Mount
from understudy.protocol.modbus import Kind
from understudy.units import MM, NS_PER_MS

SERIAL = ("/", "serial:", "pty:")
"""How the address of a serial port begins."""


class MakeRow(NamedTuple):
    """A make of grippers: how a driver talks to it, and how a virtual one is made for a unit."""

    profile: Profile
    device: Callable[[int, Fingers], VirtualDevice]


def _robotiq(limits: Limits) -> MakeRow:
    profile = robotiq.RobotiqProfile(limits)
    return MakeRow(profile, lambda unit, fingers: VirtualRobotiq(unit, limits, fingers))


MAKES: Mapping[Make, MakeRow] = {
    "robotiq_2f85": _robotiq(robotiq.LIMITS_85),
    "robotiq_2f140": _robotiq(robotiq.LIMITS_140),
    "onrobot_rg2": MakeRow(onrobot.OnRobotProfile(), VirtualOnRobot),
    "dh_ag95": MakeRow(dh.DhProfile(), VirtualDh),
}


def build_servo(
    name: str, config: Config, mount: Mount
) -> tuple[ServoDriver, VirtualGripper | None]:
    """The driver, and the virtual gripper that it talks to; none for a REAL one."""
    servo = config.servo
    row = MAKES[servo.make]
    settings = ServoSettings(
        force=config.grip_force_n,
        speed=config.grip_speed_mm_s * MM,
        close_timeout=round(config.close_timeout_ms * NS_PER_MS),
        open_timeout=round(config.open_timeout_ms * NS_PER_MS),
        settle=round(config.settle_time_ms * NS_PER_MS),
    )
    where = servo.real.to if servo.real else name
    driver = ServoDriver(where, framing_of(servo), row.profile, servo, settings)
    if servo.real:
        return driver, None
    unit = row.profile.unit if servo.unit is None else servo.unit
    fingers = Fingers(row.profile.limits.stroke, PartJaws(name, config, mount))
    device = row.device(unit, fingers)
    cable = Cable(name, servo.baud, driver, device, mount.fault_source)
    return driver, VirtualGripper(device, fingers, cable)


def framing_of(servo: ServoConfig) -> Kind:
    if servo.framing != "auto":
        return servo.framing if servo.real else "rtu"
    serial = servo.real is None or servo.real.to.startswith(SERIAL)
    return "rtu" if serial else "tcp"
