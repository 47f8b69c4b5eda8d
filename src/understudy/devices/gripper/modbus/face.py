"""The virtual Modbus gripper for clients: RTU on a pseudo-terminal or through TCP, and TCP.

    faces: {gripper: {rtu: {}, tcp: {port: 5020}, rtu_over_tcp: {port: 5021}}}

    > 09 03 07 D0 00 01 85 CF        read one register of unit 9
    < 09 03 02 31 00 4C 15

A request for another unit and a frame with a wrong CRC are not answered. Unit 0 is a broadcast on
RTU: writes act, nothing is answered. On TCP units 0 and 255 mean the device itself.
"""

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from understudy.devices.gripper.modbus import FACE_FAULTS
from understudy.errors import ConfigError
from understudy.ports import Deps, Endpoint
from understudy.ports.fault_reactions import Data, Reaction, Reactions, Seen, Talk, Trial, at_once
from understudy.ports.operation import components_of

if TYPE_CHECKING:
    from understudy.devices.gripper.modbus.server import ModbusFace
    from understudy.ports.decoder import Sections

ENDPOINTS = {
    "rtu": Endpoint(wires=("pty",), serial=False),
    "tcp": Endpoint(wires=("tcp",), defaults={"port": 5020}, enabled=False),
    "rtu_over_tcp": Endpoint(wires=("tcp",), defaults={"port": 5021}, enabled=False),
}
FAULTS = FACE_FAULTS
OF_DEVICE = True


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """The face has no settings of its own."""


def _request(trial: Trial, number: int) -> Data:
    """Reads a register of the gripper."""
    from understudy.protocol.modbus import READ_HOLDING, Frame, Kind, build_frame

    kind: Kind = "tcp" if trial.place.endswith(".tcp") else "rtu"
    unit = trial.own("gripper").registers().unit
    return build_frame(kind, Frame(unit, number, bytes([READ_HOLDING, 0x07, 0xD0, 0, 1])))


def _read(trial: Trial) -> None:
    """a client reads a register"""
    trial.endpoint_client().say(_request(trial, 1))
    trial.advance(0.5)


def _has_failed(trial: Trial) -> bool:
    heard = b"".join(data for _, data in trial.endpoint_client().heard if isinstance(data, bytes))
    return EXCEPTION_4 in heard


EXCEPTION_4 = b"\x83\x04"
"""Reading holding registers is answered with the exception 4."""
REACTIONS: Reactions = {
    "device_failure": Reaction(
        at_once, (Seen("the answer is the exception 4, device failure", _has_failed),), then=_read
    ),
}
TALKS = {"": Talk(_request)}


# The sessions are imported on first use: they need pymodbus, and every cell reads this module for
# its faults.


def OPERATIONS() -> "Sections":  # noqa: N802 - the name that all faces give it
    from understudy.devices.gripper.modbus.operations import operations

    return operations()


def build(name: str, config: Config, robot: Any, deps: Deps) -> "dict[str, ModbusFace]":
    """The faces of the gripper that is mounted on ``robot``, by endpoint."""
    from understudy.devices.gripper.modbus.interface import OffersRegisters

    gripper: Any = components_of(robot).get("gripper")
    device = gripper.registers() if isinstance(gripper, OffersRegisters) else None
    if device is None:
        raise ConfigError(
            "this robot has no simulated gripper with Modbus",
            allowed="`gripper: {type: ELECTRIC_SERVO}` of the robot, without `real`",
        )
    from understudy.devices.gripper.modbus.server import ModbusFace
    from understudy.protocol.modbus import Kind

    kinds: dict[str, Kind] = {"rtu": "rtu", "tcp": "tcp", "rtu_over_tcp": "rtu"}
    return {
        endpoint: ModbusFace(f"{name}.{endpoint}", kind, device, deps.fault_source)
        for endpoint, kind in kinds.items()
    }
