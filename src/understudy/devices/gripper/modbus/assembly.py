"""Builds the driver of a servo gripper, and the virtual gripper behind it unless it is REAL.

Bytes need time on the cable between them: ten bits each. The device acts when the last byte of a
request has arrived, and its answer follows after a short pause.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, Protocol

import msgspec
from msgspec import Meta, Struct, structs

from understudy.devices.gripper import FAULTS, Config
from understudy.devices.gripper.modbus import FAULTS as SERVO_FAULTS
from understudy.devices.gripper.modbus import Make, ServoConfig, dh, onrobot, robotiq
from understudy.devices.gripper.modbus.dh import VirtualDh
from understudy.devices.gripper.modbus.driver import ServoDriver, ServoSettings
from understudy.devices.gripper.modbus.fingers import Fingers, FingerState, PartJaws
from understudy.devices.gripper.modbus.interface import (
    Block,
    Limits,
    Piece,
    Profile,
    Registers,
    Word,
)
from understudy.devices.gripper.modbus.onrobot import VirtualOnRobot
from understudy.devices.gripper.modbus.robotiq import VirtualRobotiq
from understudy.devices.gripper.modbus.server import MOST_READ, respond
from understudy.errors import Refused
from understudy.ports import UNLIMITED, FaultSource
from understudy.ports.device import Mount
from understudy.ports.faults import Faults
from understudy.ports.state import load, saved
from understudy.protocol.modbus import Kind, build_frame, frame_reader
from understudy.units import MM, NS_PER_MS, NS_PER_SECOND, ms_to_ns, nanoseconds

BITS_OF_A_BYTE = 10
ANSWER_PAUSE = NS_PER_MS
KIND: Kind = "rtu"
OWN_FAULTS: Faults = {name: FAULTS[name] for name in (*SERVO_FAULTS, "slip", "grip_miss")}


class VirtualDevice(Registers, Protocol):
    """The registers of a make, with faults and a state in the snapshot."""

    def fail(self, now: int) -> None:
        """The drive switches off."""
        ...

    def repair(self, now: int) -> None: ...

    def problem(self) -> str:
        """The fault that is active, in words; empty: none."""
        ...


class Freezing:
    """`VirtualDevice` around another one: when its registers are frozen, reads of the block that
    the driver reads give the values of that time, and writes are acknowledged and ignored, as of a
    controller that hangs behind its bus interface."""

    def __init__(self, device: VirtualDevice, status: Block) -> None:
        self.unit = device.unit
        self.device = device
        self._status = status
        self.frozen: list[Word] = []

    @property
    def functions(self) -> Collection[int]:
        return self.device.functions

    def read(self, address: int, count: int, now: int) -> Sequence[int] | int:
        values = self.device.read(address, count, now)
        if not self.frozen or isinstance(values, int):
            return values
        kept = dict(enumerate(self.frozen, self._status.address))
        return [kept.get(each, value) for each, value in enumerate(values, address)]

    def write(self, address: int, values: Sequence[int], now: int) -> int:
        return 0 if self.frozen else self.device.write(address, values, now)

    def freeze(self, now: int) -> None:
        values = self.read(self._status.address, self._status.size, now)
        assert not isinstance(values, int), "every make has its status"
        self.frozen = list(values)

    def fail(self, now: int) -> None:
        self.device.fail(now)

    def repair(self, now: int) -> None:
        self.frozen = []
        if self.device.problem():
            self.device.repair(now)

    def problem(self) -> str:
        return "the registers are frozen" if self.frozen else self.device.problem()


class Transfer(Struct):
    """Bytes on the cable; `due`: when the last one arrives."""

    due: int
    data: Piece
    to_device: bool


class CableState(Struct):
    """The state of the cable in a snapshot. `connection`: number of the one that exists.
    `cut_until`: end of a fault."""

    connection: int | None = None
    transfers: Annotated[list[Transfer], Meta(max_length=100)] = []
    part: Piece = b""
    cut_until: int = 0


class Cable:
    """Carries bytes between a driver and a device."""

    def __init__(
        self,
        name: str,
        baud: int,
        driver: ServoDriver,
        device: Registers,
        fault_source: FaultSource,
    ) -> None:
        self._name = name
        self._byte = BITS_OF_A_BYTE * NS_PER_SECOND // baud
        self._driver = driver
        self._device = device
        self._fault_source = fault_source
        self._ready = False
        self.state = CableState()
        driver.on_ready(self._driver_ready)

    def cut(self, until: int) -> None:
        self.state.cut_until = until
        self.state.transfers = []

    def next_wake(self) -> int | None:
        if self._ready:
            return self._driver.ready_at
        return min((each.due for each in self.state.transfers), default=None)

    def wake(self, now: int) -> None:
        self._ready = False
        self._connect(now)
        while data := self._driver.take(UNLIMITED):
            self._send(data, now, to_device=True)
        arrived = [each for each in self.state.transfers if each.due <= now]
        self.state.transfers = [each for each in self.state.transfers if each.due > now]
        for each in arrived:
            if each.to_device:
                self._answer(each.data, now)
            else:
                self._driver.receive(each.data, now)

    def load(self, state: CableState) -> None:
        self.state = state
        self._ready = self._driver.has_unsent() or self._driver.wanted() != state.connection

    # ── inside ──

    def _driver_ready(self) -> None:
        self._ready = True

    def _connect(self, now: int) -> None:
        wanted = self._driver.wanted()
        if wanted != self.state.connection:
            self.state.connection, self.state.transfers, self.state.part = wanted, [], b""
            if wanted is not None:
                self._driver.connected(now)

    def _send(self, data: bytes, now: int, *, to_device: bool) -> None:
        if now >= self.state.cut_until:
            due = now + len(data) * self._byte
            self.state.transfers.append(Transfer(due, data, to_device))

    def _answer(self, data: bytes, now: int) -> None:
        reader = frame_reader(KIND, "requests", self.state.part)
        for frame in reader.feed(data):
            pdu = respond(self._device, KIND, frame, now, fails=False)
            lost = self._fault_source.draw_fault("answer_lost", self._name, now) is not None
            if pdu is not None and not lost:
                answer = build_frame(KIND, frame._replace(pdu=pdu))
                self._send(answer, now + ANSWER_PAUSE, to_device=False)
        self.state.part = reader.part


class SavedGripper(Struct):
    """Snapshot of a virtual gripper."""

    fingers: FingerState
    device: Any
    cable: CableState
    frozen: Annotated[list[Word], Meta(max_length=MOST_READ)] = []


class VirtualGripper:
    """`Hardware`: fingers, registers and cable."""

    def __init__(self, device: Freezing, fingers: Fingers, cable: Cable) -> None:
        self.device = device
        self._fingers = fingers
        self._cable = cable

    def opening(self, now: int) -> float:
        return self._fingers.opening(now)

    def registers(self) -> Registers:
        return self.device

    # ── time ──

    def next_wake(self) -> int | None:
        times = (self._fingers.next_wake(), self._cable.next_wake())
        return min((at for at in times if at is not None), default=None)

    def wake(self, now: int) -> None:
        at = self._fingers.next_wake()
        if at is not None and at <= now:
            self._fingers.wake(now)
        self._cable.wake(now)

    # ── faults ──

    def faults(self) -> Faults:
        return OWN_FAULTS

    def inject(self, fault: str, parameters: Mapping[str, float], now: int) -> Refused | None:
        if fault == "finger_blocked":
            if not self._fingers.moving:
                return Refused("the fingers do not move")
            self._fingers.block(now)
        elif fault == "drive_fault":
            self.device.fail(now)
        elif fault == "registers_frozen":
            self.device.freeze(now)
        elif fault == "slip":
            self._fingers.drop(now)
        elif fault == "cable_cut":
            self._cable.cut(now + nanoseconds(parameters["duration_s"]))
        else:
            return Refused(f"{fault} cannot be injected into a servo gripper; write a rule")
        return None

    def reset(self, now: int) -> None:
        if self.device.problem():
            self.device.repair(now)
        self._cable.state.cut_until = 0

    def active_faults(self) -> Sequence[str]:
        problem = self.device.problem()
        return (f"servo gripper: {problem}",) if problem else ()

    # ── snapshot ──

    def save(self) -> SavedGripper:
        return SavedGripper(
            self._fingers.state,
            saved(self.device.device),
            self._cable.state,
            list(self.device.frozen),
        )

    def load(self, state: Any) -> None:
        loaded = msgspec.convert(state, SavedGripper)
        load(self._fingers, loaded.fingers)
        load(self.device.device, loaded.device)
        self.device.frozen = loaded.frozen
        self._cable.load(loaded.cable)


# ── assembly ──────────────────────────────────────────────────────────────────────────────────────

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
    servo = structs.replace(config.servo, real=None) if mount.has_real else config.servo
    driver = servo_driver(name, config, servo)
    if servo.real:
        return driver, None
    row = MAKES[servo.make]
    unit = row.profile.unit if servo.unit is None else servo.unit
    fingers = Fingers(row.profile.limits.stroke, PartJaws(name, config, mount))
    device = Freezing(row.device(unit, fingers), row.profile.status)
    cable = Cable(name, servo.baud, driver, device, mount.fault_source)
    return driver, VirtualGripper(device, fingers, cable)


def servo_driver(name: str, config: Config, servo: ServoConfig) -> ServoDriver:
    settings = ServoSettings(
        force=config.grip_force_n,
        speed=config.grip_speed_mm_s * MM,
        close_timeout=ms_to_ns(config.close_timeout_ms),
        open_timeout=ms_to_ns(config.open_timeout_ms),
        settle=ms_to_ns(config.settle_time_ms),
    )
    where = servo.real.to if servo.real else name
    return ServoDriver(where, framing_of(servo), MAKES[servo.make].profile, servo, settings)


def framing_of(servo: ServoConfig) -> Kind:
    if servo.framing != "auto":
        return servo.framing if servo.real else "rtu"
    serial = servo.real is None or servo.real.to.startswith(SERIAL)
    return "rtu" if serial else "tcp"
