"""Scenario rules that lose, delay, repeat or garble requests and answers of an endpoint."""

from typing import Literal

import msgspec

from understudy.ports import ActiveFault, FaultSource, WireMessage
from understudy.units import NS_PER_MS, NS_PER_SECOND

Data = bytes | WireMessage


class MessageFaults:
    """Loses, delays, repeats or garbles what goes one way through an endpoint, as rules say.

    ``way``: `message` for answers, `request` for what is received. Both keep their order, as on any
    stream: a late one delays those behind it.
    """

    def __init__(
        self, fault_source: FaultSource, endpoint: str, way: Literal["message", "request"]
    ) -> None:
        self._fault_source = fault_source
        self._endpoint = endpoint
        self._way = way

    def schedule(self, data: Data, now: int, after: int) -> list[tuple[int, Data]]:
        """What passes in place of ``data``, with times; not before ``after``, the last time."""
        if self._draw("loss", now):
            return []
        due = max(now, after)
        if delay := self._draw("delay", now):
            due = max(due, now + round(delay.parameters["delay_ms"] * NS_PER_MS))
        if self._way == "message" and (slow := self._slow(now)):
            due += round(size_of(data) * NS_PER_SECOND / slow.parameters["bytes_per_s"])
        if garble := self._draw("garble", now):
            place, change = self._fault_source.deviations(garble, 2)
            if isinstance(data, bytes):
                data = garbled(data, place, change)
            elif data.payload:
                payload = garbled(data.payload, place, change)
                data = msgspec.structs.replace(data, payload=payload)
        copies = 2 if self._draw("duplicate", now) else 1
        return [(due, data)] * copies

    def _slow(self, now: int) -> ActiveFault | None:
        return self._fault_source.draw_fault("slow_client", self._endpoint, now)

    def _draw(self, fault: str, now: int) -> ActiveFault | None:
        return self._fault_source.draw_fault(f"{self._way}_{fault}", self._endpoint, now)


def garbled(data: bytes, place: float, change: float) -> bytes:
    """``data`` with one byte changed; ``place`` and ``change`` in [-1, 1) choose which and how."""
    at = min(int((place + 1.0) / 2.0 * len(data)), len(data) - 1)
    other = data[at] ^ (1 + int((change + 1.0) / 2.0 * 254))
    return data[:at] + bytes([other]) + data[at + 1 :]


def size_of(data: Data) -> int:
    """Number of payload bytes."""
    return len(data) if isinstance(data, bytes) else data.size
