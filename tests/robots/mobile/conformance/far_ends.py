"""The devices at the far end of the connections of a REAL robot, on virtual time."""

from typing import Protocol

from tests.robots.mobile.real.virtual_device import LineDevice, ModbusDevice, VirtualDevice
from tests.robots.mobile.real.virtual_drive import VirtualDrive, WiredNetwork

from understudy.ports import UNLIMITED, Caller
from understudy.protocol.can_frames import CanFrame, unpack

ADDRESSES = (0, 100, 200)
"""First registers of the motors."""
NODES = (1, 2, 3)
COUNTS = (20_000, 20_000, 1_000_000)
"""Counts of a drive in a metre."""
LIDAR, SCANNER, BATTERY = 300, 310, 340
DEVICE_FAULT, DRIVE_FAULT = 17, 0x7305


class FarEnd(Protocol):
    """``motor``: its number in the robot's file."""

    def run(self, seconds: float) -> None: ...

    def exchange(self, driver: Caller, now: int) -> None:
        """Carries everything that either side has to say to the other one."""
        ...

    def fail(self, motor: int, *, lasting: bool) -> None: ...

    def set_input(self, bit: int, value: bool) -> None: ...

    def output(self, bit: int) -> bool: ...

    def power_on(self) -> None:
        """The device starts again."""
        ...


class RegisterEnd:
    """`FarEnd`: a device with registers."""

    def __init__(self, device: VirtualDevice) -> None:
        self.device = device

    def run(self, seconds: float) -> None:
        self.device.run(seconds)

    def exchange(self, driver: Caller, now: int) -> None:
        while request := driver.take(UNLIMITED):
            answer = self.device.answer(request)
            for at in range(0, len(answer), 7):  # an answer may come in pieces
                driver.receive(answer[at : at + 7], now)

    def fail(self, motor: int, *, lasting: bool) -> None:
        self.device.fail(ADDRESSES[motor], DEVICE_FAULT)
        self.device.lasting_fault = lasting

    def set_input(self, bit: int, value: bool) -> None:
        self.device.discrete[bit] = value

    def output(self, bit: int) -> bool:
        return bool(self.device.coils[bit])

    def power_on(self) -> None:
        """Its registers are kept."""


class CanEnd:
    """`FarEnd`: drives at a CAN bus. Inputs and outputs are those of the first one."""

    def __init__(self) -> None:
        self.network = WiredNetwork()
        self.drives = [VirtualDrive(self.network, node) for node in NODES]
        self.power_on()

    def run(self, seconds: float) -> None:
        self.network.run(seconds)
        for drive in self.drives:
            drive.run(seconds)

    def exchange(self, driver: Caller, now: int) -> None:
        while True:
            data = driver.take(UNLIMITED)
            for frame in unpack(data):
                self.network.notify(frame.id, bytearray(frame.data), now / 1e9)
            sent, self.network.sent = self.network.sent, []
            if not data and not sent:
                return
            frames = b"".join(CanFrame(*each).pack() for each in sent)
            for at in range(0, len(frames), 5):  # frames may come in pieces
                driver.receive(frames[at : at + 5], now)

    def fail(self, motor: int, *, lasting: bool) -> None:
        self.drives[motor].fail(DRIVE_FAULT)
        self.drives[motor].lasting_fault = lasting

    def set_input(self, bit: int, value: bool) -> None:
        self.drives[0].inputs = (self.drives[0].inputs & ~(1 << bit)) | value << bit

    def output(self, bit: int) -> bool:
        drive = self.drives[0]
        return bool(drive.get(0x60FE, 1) & drive.get(0x60FE, 2) & 1 << bit)

    def power_on(self) -> None:
        for drive in self.drives:
            drive.boot()


SENSORS = ((LIDAR, 3), (SCANNER, 19), (BATTERY, 2))


def far_end(where: str) -> FarEnd:
    """What answers at an address."""
    if where.startswith("can:"):
        return CanEnd()
    if where.startswith("serial:"):
        return RegisterEnd(LineDevice(ADDRESSES, SENSORS))
    return RegisterEnd(ModbusDevice(ADDRESSES, SENSORS))
