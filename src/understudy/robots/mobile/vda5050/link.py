"""A robot of a fleet as the face of its master control uses it."""

from collections.abc import Callable

from understudy.ports import RETAINED, WireMessage
from understudy.robots.mobile.hardware_interface import MasterSettings
from understudy.robots.mobile.runtime.fleet import Fleet
from understudy.robots.mobile.vda5050.master import MasterControl
from understudy.robots.mobile.vda5050.outgoing import Identity, MasterMessages


class MasterOfRobot:
    """`ports.mobile.MasterLink`. ``row``: of the robot in the layout."""

    def __init__(self, fleet: Fleet, row: int, settings: MasterSettings, epoch: int) -> None:
        robot = fleet.robot(row)
        identity = Identity(settings.manufacturer, settings.serial_number, settings.map_id, epoch)
        self._master = MasterControl(
            robot,
            MasterMessages(identity, robot.file, robot.reports.state),
            state_s=settings.state_s,
            picture_hz=settings.visualization_hz,
        )
        fleet.add_module(row, self._master)
        self._woken: Callable[[int], None] = lambda now: fleet.wake_modules(row, now)

    def set_connected(self, connected: bool, now: int) -> None:
        self._master.set_connected(connected, now)
        self._woken(now)

    def receive(self, message: WireMessage, now: int) -> None:
        self._master.receive(message.address, message.payload)
        self._woken(now)

    def credit(self) -> int:
        return self._master.credit()

    def take(self) -> WireMessage | None:
        message = self._master.outgoing.take()
        if message is None:
            return None
        return WireMessage(message.topic, message.payload, RETAINED if message.retained else "")

    def waiting(self) -> bool:
        return self._master.outgoing.waiting()

    def last_will(self) -> bytes:
        return self._master.outgoing.last_will()
