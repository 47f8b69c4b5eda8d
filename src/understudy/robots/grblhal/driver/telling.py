"""What a real controller is said to be at, and who is told when that changes."""

from understudy.errors import Refused
from understudy.ports import ControllerStatus
from understudy.ports.controller import JointListener, StatusListener
from understudy.robots.grblhal.driver.link import Link


class Telling:
    """Reads the line and the picture of what is behind it."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._picture = link.picture
        self._status: list[StatusListener] = []
        self._joints: list[JointListener] = []
        self._told: tuple[object, ...] = ()
        link.report_listeners.append(self._tell_joints)

    def on_status(self, listener: StatusListener) -> None:
        self._status.append(listener)

    def on_joints(self, listener: JointListener) -> None:
        self._joints.append(listener)

    def alarm(self) -> Refused | None:
        return self._link.stopped or self._link.alarm

    def status(self, now: int, accepted: int) -> ControllerStatus:
        link, picture = self._link, self._picture
        error = self.alarm() or link.error or link.trouble
        moving = self._moving()
        return ControllerStatus(
            connected=link.connected(),
            enabled=link.enabled,
            moving=moving,
            error=error is not None,
            homed=picture.homed,
            error_message=error.reason if error else "",
            error_code=error.code if error else 0,
            buffer_available=picture.machine.blocks - picture.used_blocks,
            buffer_used=picture.used_blocks,
            state=self._state(moving),
            line=picture.line if moving else 0,
            accepted=accepted,
            stops=link.stops,
            at=now,
        )

    def tell(self, now: int, accepted: int) -> None:
        """Whoever listens, if something is different now."""
        if not self._status:
            return
        status = self.status(now, accepted)
        flags = (status.connected, status.enabled, status.moving, status.error, status.homed)
        if (*flags, status.state) != self._told:
            self._told = (*flags, status.state)
            for listener in self._status:
                listener(status)

    def _tell_joints(self, now: int) -> None:
        for listener in self._joints:
            listener(self._picture.joints())

    def _moving(self) -> bool:
        """Something goes on by itself; a hold that stands waits for the operator."""
        if self.alarm():
            return False
        if self._picture.waits_for_operator and not self._link.recovering():
            return False
        return self._picture.moves or self._link.under_way()

    def _state(self, moving: bool) -> str:
        if self.alarm():
            return "Alarm"
        if not self._link.jogging.over:
            return "Jog"
        state = self._picture.state
        return "Run" if state == "Idle" and moving else state
