"""What all drivers of REAL devices share: one connection, which is made again when it is lost."""

from collections.abc import Callable
from typing import NamedTuple

from understudy.ports import State
from understudy.protocol.client import ReconnectSchedule
from understudy.units import NS_PER_SECOND

NOT_YET = "not connected yet"
PAUSES = (NS_PER_SECOND, 2 * NS_PER_SECOND, 4 * NS_PER_SECOND)


class DeviceStatus(NamedTuple):
    """State of the connection, and why it is not there."""

    connection: str
    trouble: str
    cycles: int


class DeviceCaller:
    """The parts of a `Caller` that do not depend on the protocol.

    ``where``: address of the device; ``timeout``: for a connection attempt. A driver adds the
    bytes (`receive`, `take`), what is due while it is connected (`_next_due`, `_due`), and `_drop`.
    """

    def __init__(self, where: str, log: Callable[[str], None], timeout: int) -> None:
        self.where = where
        self._log = log
        self._schedule = ReconnectSchedule(timeout=timeout, pauses=PAUSES)
        self._listeners: list[Callable[[], None]] = []
        self._cycles = 0
        self._trouble = NOT_YET

    # ── the wire ──

    def wanted(self) -> int | None:
        return self._schedule.wanted()

    def connected(self, now: int) -> None:
        self._schedule.connected()
        self._trouble = ""
        self._log(f"{self.where}: connected")

    def lost(self, now: int, reason: str) -> None:
        if self._schedule.state != "waiting":
            self._fail(now, reason)

    def on_ready(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def _fail(self, now: int, reason: str) -> None:
        """The connection has ended; the next one is made after a pause."""
        self._trouble = reason
        self._log(f"{self.where}: the connection has ended: {reason}")
        self._drop(now)
        self._schedule.failed(now)
        self._tell(now)

    def _drop(self, now: int) -> None:
        """Forgets what was under way on the connection."""
        raise NotImplementedError

    def _tell(self, now: int) -> None:
        """There is something to send, or another connection is wanted."""
        for listener in self._listeners:
            listener()

    # ── time ──

    def next_wake(self) -> int | None:
        return self._next_due() if self._schedule.state == "connected" else self._schedule.due

    def wake(self, now: int) -> None:
        if self._schedule.state == "waiting":
            self._schedule.connect(now)
            self._tell(now)
        elif self._schedule.state == "connecting":
            self._fail(now, "no connection in time")
        else:
            self._due(now)

    def _next_due(self) -> int | None:
        """When `_due` is to be called, while the device is connected."""
        raise NotImplementedError

    def _due(self, now: int) -> None:
        """A request is late, or the next one is due."""
        raise NotImplementedError

    # ── component ──

    def busy(self) -> bool:
        return False

    def status(self, now: int) -> DeviceStatus:
        return DeviceStatus(self._schedule.state, self._trouble, self._cycles)

    def save(self) -> State:
        """A real device cannot be saved."""
        return None

    def load(self, state: State) -> None:
        """The connection goes on as it is."""
