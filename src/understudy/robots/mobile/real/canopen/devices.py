"""Motors, inputs and outputs at the drives of a CAN bus: CANOPEN, and its `driver.config`."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from understudy.config.typed import read
from understudy.errors import ConfigError, located_at
from understudy.robots.mobile.config.profile import Camel
from understudy.robots.mobile.config.robot_file import Driver, Motor
from understudy.robots.mobile.hardware_interface import MotorFault
from understudy.robots.mobile.real.canopen.axis import Axis, Counts
from understudy.robots.mobile.real.canopen.bus import CanopenDriver
from understudy.robots.mobile.real.canopen.cia402 import error_text
from understudy.robots.mobile.real.canopen.node import MASTER, CanNode
from understudy.robots.mobile.real.channels import Input, Log, MotorCommand, MotorStatus

Interface = Annotated[str, Meta(pattern=r"^[a-z0-9_]{1,32}\Z")]
Channel = Annotated[str, Meta(pattern=r"^[^\s@]{1,200}\Z")]
Bitrate = Annotated[int, Meta(ge=10_000, le=1_000_000)]
Node = Annotated[int, Meta(ge=1, le=MASTER - 1)]
Scale = Annotated[float, Meta(gt=0, le=1e9)]


class BusKeys(Camel, frozen=True):
    """A node of a bus. `interface` and `channel`: as python-can names them."""

    channel: Channel
    node: Node
    interface: Interface = "socketcan"
    bitrate: Bitrate | None = None

    def where(self) -> str:
        rate = f"@{self.bitrate}" if self.bitrate is not None else ""
        return f"can:{self.interface}:{self.channel}{rate}"


class MotorKeys(BusKeys, frozen=True, kw_only=True):
    """A drive at a node. `countsPerUnit`: in a metre or radian. The other two are those of the
    drive's velocity and acceleration, if it has other units for them."""

    counts_per_unit: Scale
    velocity_counts_per_unit: Scale | None = None
    acceleration_counts_per_unit: Scale | None = None
    reversed: bool = False

    def counts(self) -> Counts:
        sign = -1.0 if self.reversed else 1.0
        return Counts(
            sign * self.counts_per_unit,
            sign * (self.velocity_counts_per_unit or self.counts_per_unit),
            self.acceleration_counts_per_unit or self.counts_per_unit,
        )


class BitKeys(BusKeys, frozen=True, kw_only=True):
    """A bit of the inputs (60FDh) or outputs (60FEh:1) of a drive."""

    bit: Annotated[int, Meta(ge=0, le=31)]


class CanBuses:
    """`DeviceFamily`; one connection for each bus."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.drivers: dict[str, CanopenDriver] = {}

    def motor(self, driver: Driver, motor: Motor, key: str) -> "CanMotor":
        with located_at(f"{key}.config"):
            keys = read(driver.config, MotorKeys)
            node = self._node(keys)
            if node.axis is not None:
                raise ConfigError("this node has a motor already", key="node", value=keys.node)
        node.axis = Axis(motor, keys.counts())
        return CanMotor(node, node.axis)

    def input(self, driver: Driver, key: str) -> "CanInput":
        with located_at(f"{key}.config"):
            keys = read(driver.config, BitKeys)
            node = self._node(keys)
        node.uses_inputs = True
        return CanInput(node, keys.bit)

    def output(self, driver: Driver, key: str) -> "CanOutput":
        with located_at(f"{key}.config"):
            keys = read(driver.config, BitKeys)
            node = self._node(keys)
        node.output_mask |= 1 << keys.bit
        return CanOutput(node, keys.bit)

    def sensor(self, driver: Driver, count: int, key: str) -> Input:
        raise ConfigError(
            "a drive has no sensor of this kind",
            key=f"{key}.type",
            value=driver.type,
            allowed="in REAL mode: PLC, SERIAL",
        )

    def _node(self, keys: BusKeys) -> CanNode:
        where = keys.where()
        for other in self.drivers:
            if other != where and other.partition("@")[0] == where.partition("@")[0]:
                problem = f"this bus has another bit rate elsewhere: {other}"
                raise ConfigError(problem, key="bitrate", value=keys.bitrate)
        if where not in self.drivers:
            self.drivers[where] = CanopenDriver(where, self._log)
        return self.drivers[where].node(keys.node)


class CanMotor:
    """`MotorChannel`."""

    def __init__(self, node: CanNode, axis: Axis) -> None:
        self._node = node
        self._axis = axis

    def put(self, command: MotorCommand) -> None:
        self._axis.command = command

    def status(self, now: int) -> MotorStatus | None:
        return self._axis.status() if self._node.connected(now) else None

    def fault(self, number: int) -> MotorFault:
        return MotorFault(f"DEVICE_{number:04X}", error_text(number))


class CanInput:
    """`Input`: a bit of the inputs of a drive."""

    def __init__(self, node: CanNode, bit: int) -> None:
        self._node = node
        self._bit = bit

    def answer(self, now: int) -> Sequence[int] | None:
        bits = self._node.inputs(now)
        return None if bits is None else (bits >> self._bit & 1,)


class CanOutput:
    """`Output`: a bit of the outputs of a drive."""

    def __init__(self, node: CanNode, bit: int) -> None:
        self._node = node
        self._bit = 1 << bit

    def put(self, value: bool) -> None:
        self._node.outputs = (self._node.outputs & ~self._bit) | self._bit * value
