"""The driver of a CAN bus: it carries frames between the bus and its nodes.

Each cycle sends the process data of all nodes that run, and then SYNC; the nodes answer with
theirs. Our heartbeat is sent by the cycles: when they end, the drives stop. A cycle is left out
while frames of the one before wait for the bus.
"""

from collections.abc import Callable

from understudy.protocol.can_frames import LARGEST_STANDARD, SIZE, CanFrame, unpack
from understudy.protocol.client import DeviceCaller
from understudy.robots.mobile.real.canopen import services
from understudy.robots.mobile.real.canopen.node import BEAT_MS, MASTER, CanNode
from understudy.units import NS_PER_MS, NS_PER_SECOND

OPENED_WITHIN = 10 * NS_PER_SECOND
"""Some adapters start slowly."""
MOST_UNSENT = 1024
"""Frames that wait for the bus."""
BEAT = BEAT_MS * NS_PER_MS


class CanopenDriver(DeviceCaller):
    """`Caller` of one bus. ``where``: its address."""

    def __init__(self, where: str, log: Callable[[str], None]) -> None:
        super().__init__(where, log, OPENED_WITHIN)
        self.nodes: dict[int, CanNode] = {}
        self._unsent = bytearray()
        self._received = b""
        self._next_beat = 0

    def node(self, number: int) -> CanNode:
        """The node with this number; it is made if there is none yet."""
        if number not in self.nodes:
            self.nodes[number] = CanNode(
                number, self._send, lambda text: self._log(f"{self.where}: node {number}: {text}")
            )
        return self.nodes[number]

    def begin_cycle(self, now: int) -> None:
        """Exchanges process data once more, unless the bus has not taken the last ones yet."""
        if len(self._unsent) > MOST_UNSENT * SIZE:
            self._fail(now, "it takes no frames")
        if self._schedule.state != "connected" or self._unsent:
            return
        self._cycles += 1
        if now >= self._next_beat:
            self._next_beat = now + BEAT
            self._send(services.heartbeat(MASTER))
        for node in self.nodes.values():
            node.cycle(now)
        if any(node.running for node in self.nodes.values()):
            self._send(services.sync())
        self._tell(now)

    # ── time ──

    def _next_due(self) -> int | None:
        dues = (node.next_wake() for node in self.nodes.values())
        return min((due for due in dues if due is not None), default=None)

    def _due(self, now: int) -> None:
        for node in self.nodes.values():
            node.wake(now)
        self._tell(now)

    # ── the wire ──

    def connected(self, now: int) -> None:
        super().connected(now)
        for node in self.nodes.values():
            node.restart(now)
        self._tell(now)

    def receive(self, data: bytes, now: int) -> None:
        self._received += data
        whole = len(self._received) // SIZE * SIZE
        frames, self._received = self._received[:whole], self._received[whole:]
        for frame in unpack(frames):
            node = self.nodes.get(frame.id & services.NODE)
            if node is not None and frame.id <= LARGEST_STANDARD:
                self._schedule.answered()
                node.receive(frame.id & ~services.NODE, frame.data, now)
        if self._unsent:
            self._tell(now)

    def take(self, room: int) -> bytes:
        size = min(len(self._unsent), room) // SIZE * SIZE
        data = bytes(self._unsent[:size])
        del self._unsent[:size]
        return data

    # ── inside ──

    def _send(self, frame: CanFrame) -> None:
        self._unsent += frame.pack()

    def _drop(self, now: int) -> None:
        self._unsent.clear()
        self._received = b""
        for node in self.nodes.values():
            node.bus_lost(now)
