"""A gripper for tests: the design document's blocking calls, which let simulated time pass."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from understudy.errors import Refused, unknown
from understudy.ports import Ticket
from understudy.ports.hand import HandStatus

if TYPE_CHECKING:
    from understudy.app.stand_in import StandIn
    from understudy.devices.gripper.controller import GripperController

STEP_S = 0.005
LONGEST_S = 3600.0


class GripperStandIn:
    """The gripper of a cell in lock-step (`rate="step"`); of the only one if no name is given.

    ``reason``: why the last call returned False.
    """

    def __init__(self, cell: "StandIn", name: str = "") -> None:
        self._cell = cell
        self._name = name or _only(cell)
        self._ended: dict[Ticket, Refused | None] = {}
        self.reason = ""
        self._act(lambda gripper, now: gripper.on_finished(self._note))

    def grip(self, timeout_ms: float = 0.0) -> bool:
        """Closes and waits until a part is held, or until the grip has failed."""
        return self._wait(lambda gripper, now: gripper.start_grip(now, timeout_ms=timeout_ms))

    def release(self, timeout_ms: float = 0.0) -> bool:
        """Opens and waits until the part is free."""
        return self._wait(lambda gripper, now: gripper.start_release(now, timeout_ms=timeout_ms))

    def has_part(self) -> bool:
        return self.status().part_detected

    def is_ready(self) -> bool:
        """Opened, without a part."""
        return self.status().state == "OPENED"

    def status(self) -> HandStatus:
        found: HandStatus = self._act(lambda gripper, now: gripper.status(now))
        return found

    def _wait(self, start: "Callable[[GripperController, int], Ticket | Refused]") -> bool:
        ticket = self._act(start)
        if isinstance(ticket, Refused):
            self.reason = ticket.reason
            return False
        ends = self._cell.now + LONGEST_S
        while ticket not in self._ended:
            if self._cell.now > ends:
                raise TimeoutError(f"{self._name} did not end within {LONGEST_S:g} simulated s")
            self._cell.forward(STEP_S)
        result = self._ended.pop(ticket)
        self.reason = result.reason if result else ""
        return result is None

    def _note(self, ticket: Ticket, result: Refused | None, now: int) -> None:
        self._ended[ticket] = result

    def _act(self, action: "Callable[[GripperController, int], Any]") -> Any:
        return self._cell.on_component(self._name, action)


def _only(cell: "StandIn") -> str:
    names = [row["name"] for row in cell.do("devices") if row["kind"] == "gripper"]
    if len(names) != 1:
        raise unknown("gripper", "", names)
    return str(names[0])
