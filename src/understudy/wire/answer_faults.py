"""What rules do to the answers on a wire: lose, delay, repeat, garble, or let them drip out.

Answers keep their order, as on any stream: one that is late holds up those behind it.
"""

from understudy.ports import ActiveFault, FaultSource
from understudy.units import NS_PER_MS, NS_PER_SECOND


class AnswerFaults:
    """The fate of one endpoint's answers."""

    def __init__(self, fault_source: FaultSource, endpoint: str) -> None:
        self._fault_source = fault_source
        self._endpoint = endpoint

    def schedule(self, data: bytes, now: int, after: int) -> list[tuple[int, bytes]]:
        """When which bytes go out instead; not before ``after``, when the last one does."""
        if self._strike("message_loss", now):
            return []
        due = max(now, after)
        if delay := self._strike("message_delay", now):
            due = max(due, now + round(delay.parameters["delay_ms"] * NS_PER_MS))
        if slow := self._strike("slow_client", now):
            due += round(len(data) * NS_PER_SECOND / slow.parameters["bytes_per_s"])
        if garble := self._strike("message_garble", now):
            place, change = self._fault_source.deviations(garble, 2)
            data = garbled(data, place, change)
        copies = 2 if self._strike("message_duplicate", now) else 1
        return [(due, data)] * copies

    def _strike(self, fault: str, now: int) -> ActiveFault | None:
        return self._fault_source.draw_fault(fault, self._endpoint, now)


def garbled(data: bytes, place: float, change: float) -> bytes:
    """One byte is another; ``place`` and ``change`` in [-1, 1) choose which and how."""
    at = min(int((place + 1.0) / 2.0 * len(data)), len(data) - 1)
    other = data[at] ^ (1 + int((change + 1.0) / 2.0 * 254))
    return data[:at] + bytes([other]) + data[at + 1 :]
