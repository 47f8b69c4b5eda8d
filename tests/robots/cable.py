"""A driver and a simulated cell in one process, on virtual time, with a cable between them."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from understudy.ports import UNLIMITED, Caller
from understudy.units import nanoseconds
from understudy.wire.exchange import Client, InProcessCell

Result = TypeVar("Result")


class Cable:
    """Carries bytes both ways. `reachable`: a connection can be made; `mute`: answers are lost.

    ``cut``: the pieces in which received bytes reach the driver. ``sent``: called with all bytes
    that the driver sends.
    """

    def __init__(
        self,
        caller: Caller,
        cell: InProcessCell,
        endpoint: str = "",
        *,
        cut: Callable[[bytes], Iterable[bytes]] = lambda data: [data],
        sent: Callable[[bytes], None] = lambda data: None,
    ) -> None:
        self.caller = caller
        self.virtual_cell = cell
        self.reachable = True
        self.mute = False
        self.client: Client | None = None
        self._endpoint = endpoint
        self._cut = cut
        self._sent = sent
        self._call: int | None = None

    @property
    def now(self) -> int:
        return self.virtual_cell.timed_cell.now

    def do(self, action: Callable[[int], Result]) -> Result:
        result = action(self.now)
        self.carry()
        return result

    def advance(self, duration: float) -> None:
        to = self.now + nanoseconds(duration)
        self.carry()
        while (at := self._next_wake()) is not None and at <= to:
            self.virtual_cell.advance_to(max(at, self.now))
            if (wake := self.caller.next_wake()) is not None and wake <= self.now:
                self.caller.wake(self.now)
            self.carry()
        self.virtual_cell.advance_to(to)

    def pull(self) -> None:
        """Cuts the connection; both sides notice."""
        if self.client is not None:
            self.client.leave()
            self.client = self._call = None
            self.caller.lost(self.now, "the cable was pulled")

    def carry(self) -> None:
        """Carries bytes until both sides are silent."""
        self._connect()
        while self._carry_out() or self._carry_in():
            self._connect()
        self._connect()

    def _carry_out(self) -> bool:
        data = self.caller.take(UNLIMITED)
        if not data:
            return False
        assert self.client is not None, "bytes are sent without a connection"
        self._sent(data)
        self.client.say(data)
        return True

    def _carry_in(self) -> bool:
        data = self.client.received() if self.client else b""
        for piece in self._cut(data) if data and not self.mute else ():
            if self.caller.wanted() == self._call:
                self.caller.receive(piece, self.now)
        return bool(data)

    def _connect(self) -> None:
        wanted = self.caller.wanted()
        if self.client is not None and self._call != wanted:
            self.client.leave()
            self.client = self._call = None
        if wanted is None or self.client is not None:
            return
        if not self.reachable:
            self.caller.lost(self.now, "no route to host")
            return
        self._call, self.client = wanted, self.virtual_cell.connect(self._endpoint)
        self.caller.connected(self.now)

    def _next_wake(self) -> int | None:
        wakes = (self.virtual_cell.exchange.next_wake(), self.caller.next_wake())
        return min((at for at in wakes if at is not None), default=None)
