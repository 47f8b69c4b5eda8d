"""What wires with a broker or a bus ask about the message faces of a cell."""

from typing import Any

from understudy.ports import LeavesWill, TimedCell, WireMessage


class CellFaces:
    """`FaceFacts` of a cell."""

    def __init__(self, timed_cell: TimedCell) -> None:
        self.timed_cell = timed_cell

    def addresses(self, endpoint: str) -> list[str]:
        face: Any = self.timed_cell.faces[endpoint]
        return list(face.addresses())

    def last_will(self, endpoint: str) -> WireMessage | None:
        face = self.timed_cell.faces[endpoint]
        return face.last_will() if isinstance(face, LeavesWill) else None
