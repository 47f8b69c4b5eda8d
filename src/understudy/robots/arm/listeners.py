"""Listeners to the status and the joints of an arm's controller."""

from collections.abc import Callable

from msgspec import Struct

from understudy.ports import ControllerStatus, JointState
from understudy.ports.controller import JointListener, StatusListener

Flags = tuple[bool, bool, bool, bool, bool, bool, str]


class ListenerState(Struct):
    """The last reported status, and the time of the next joint report."""

    flags: Flags | None = None
    beat: int | None = None


class Listeners:
    """Listeners to a controller: to its status when it changes, to its joints periodically.

    A snapshot holds only what was reported last, not the listeners.
    """

    def __init__(self, period: int) -> None:
        self._period = period
        self._status: list[StatusListener] = []
        self._joints: list[JointListener] = []
        self.state = ListenerState()

    def on_status(self, listener: StatusListener) -> None:
        self._status.append(listener)

    def on_joints(self, listener: JointListener, now: int) -> None:
        self._joints.append(listener)
        self.state.beat = self.state.beat or self._after(now)

    @property
    def next_beat(self) -> int | None:
        return self.state.beat if self._joints else None

    def report_status(self, read: Callable[[], ControllerStatus]) -> None:
        """Reports the status if it has changed."""
        if not self._status:
            return
        status = read()
        drives = (status.connected, status.enabled, status.inhibited)
        flags = (*drives, status.moving, status.error, status.homed, status.state)
        if flags != self.state.flags:
            self.state.flags = flags
            for listener in self._status:
                listener(status)

    def report_joints(self, now: int, read: Callable[[], JointState]) -> None:
        """Reports the joints if a report is due."""
        if self.next_beat is None or now < self.next_beat:
            return
        self.state.beat = self._after(now)
        joints = read()
        for listener in self._joints:
            listener(joints)

    def _after(self, now: int) -> int:
        return (now // self._period + 1) * self._period
