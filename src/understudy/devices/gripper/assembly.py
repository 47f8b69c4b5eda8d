"""Builds a gripper: the controller, its actuator and the simulated hardware."""

from understudy.devices.gripper import Config
from understudy.devices.gripper.controller import GripperController
from understudy.devices.gripper.cup import CupHardware
from understudy.devices.gripper.fingers import FingerHardware
from understudy.devices.gripper.valves import FingerValve, VacuumValve
from understudy.errors import ConfigError, install_command
from understudy.ports.device import DevicePins, Mount


def build_gripper(name: str, config: Config, mount: Mount) -> GripperController:
    return BUILDERS[config.type](name, config, mount)


def _two_fingers(name: str, config: Config, mount: Mount) -> GripperController:
    pins, fingers = config.pins, config.fingers
    if fingers.closed_mm + 2.0 * fingers.sensor_mm >= fingers.open_mm:
        allowed = f"less than open_mm ({fingers.open_mm:g}) by more than twice sensor_mm"
        problem = "the fingers have no stroke"
        raise ConfigError(
            problem, key="fingers.closed_mm", value=fingers.closed_mm, allowed=allowed
        )
    io = _checked(mount, (pins.close, pins.open), (pins.closed, pins.opened, pins.part), pins.force)
    return GripperController(
        name, config, FingerValve(config, io), FingerHardware(name, config, mount)
    )


def _cup(name: str, config: Config, mount: Mount) -> GripperController:
    pins, threshold = config.pins, config.vacuum_threshold_kpa
    if config.cup.sealed_kpa >= threshold:
        allowed = f"below vacuum_threshold_kpa ({threshold:g})"
        problem = "the simulated ejector never reaches the threshold"
        raise ConfigError(
            problem, key="cup.sealed_kpa", value=config.cup.sealed_kpa, allowed=allowed
        )
    io = _checked(mount, (pins.vacuum_on, pins.blow_off), (pins.vacuum_ok,), pins.vacuum)
    io.retain(pins.vacuum_on)
    return GripperController(
        name, config, VacuumValve(config, io), CupHardware(name, config, mount)
    )


def _servo(name: str, config: Config, mount: Mount) -> GripperController:
    try:
        from understudy.devices.gripper.modbus.assembly import build_servo
    except ModuleNotFoundError as problem:
        if problem.name is None or not problem.name.startswith("pymodbus"):
            raise
        need = f"a servo gripper needs the package pymodbus: {install_command('pymodbus')}"
        raise ConfigError(need, key="type") from None
    driver, hardware = build_servo(name, config, mount)
    return GripperController(name, config, driver, hardware)


BUILDERS = {
    "PNEUMATIC_2FINGER": _two_fingers,
    "PNEUMATIC_VACUUM": _cup,
    "ELECTRIC_SERVO": _servo,
}


def _checked(
    mount: Mount, outputs: tuple[int, ...], inputs: tuple[int, ...], channel: int
) -> DevicePins:
    """The pins of the robot; a ConfigError if it lacks one of these, or if two are the same."""
    io = mount.needed_pins()
    for which, pins in (("output", outputs), ("input", inputs)):
        if len(set(pins)) < len(pins):
            raise ConfigError(f"each {which} needs a pin of its own", key="pins", value=list(pins))
    try:
        for pin in outputs:
            io.digital_output(pin)
        for pin in inputs:
            io.digital_input(pin)
        io.analog_input(channel, 0)
    except LookupError as problem:
        raise ConfigError(str(problem.args[0]), key="pins") from None
    return io
