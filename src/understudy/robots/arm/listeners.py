"""Who listens to a controller: to its status when it changes, to its joints on a grid."""

from collections.abc import Callable

from msgspec import Struct

from understudy.ports import ControllerStatus, JointState
from understudy.ports.controller import JointListener, StatusListener

Told = tuple[bool, bool, bool, bool, bool, str]


class State(Struct):
    """What was told last of the status, and when joints are told next."""

    told: Told | None = None
    beat: int | None = None


class Listeners:
    """Listeners are wiring; what they were told is state."""

    def __init__(self, period: int) -> None:
        self._period = period
        self._status: list[StatusListener] = []
        self._joints: list[JointListener] = []
        self.state = State()

    def on_status(self, listener: StatusListener) -> None:
        self._status.append(listener)

    def on_joints(self, listener: JointListener, now: int) -> None:
        self._joints.append(listener)
        self.state.beat = self.state.beat or self._after(now)

    @property
    def next_beat(self) -> int | None:
        return self.state.beat if self._joints else None

    def tell_status(self, read: Callable[[], ControllerStatus]) -> None:
        """If something is different now."""
        if not self._status:
            return
        status = read()
        flags = (status.connected, status.enabled, status.moving, status.error, status.homed)
        if (*flags, status.state) != self.state.told:
            self.state.told = (*flags, status.state)
            for listener in self._status:
                listener(status)

    def tell_joints(self, now: int, read: Callable[[], JointState]) -> None:
        """If it is time to."""
        if self.next_beat is None or now < self.next_beat:
            return
        self.state.beat = self._after(now)
        joints = read()
        for listener in self._joints:
            listener(joints)

    def _after(self, now: int) -> int:
        return (now // self._period + 1) * self._period
