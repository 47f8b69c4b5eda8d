"""A cell whose arm has a servo gripper with a part between its fingers; a device without cell."""

from typing import Any

import msgspec

from understudy.app.build import build_cell
from understudy.config import CellConfig, read_config
from understudy.devices.gripper.controller import GripperController
from understudy.devices.gripper.modbus.assembly import MAKES, VirtualDevice
from understudy.devices.gripper.modbus.fingers import Fingers
from understudy.devices.gripper.modbus.server import respond
from understudy.errors import Refused
from understudy.protocol.modbus import Frame, build_frame, frame_reader
from understudy.simulation.workpieces.config import WorkpieceConfig
from understudy.simulation.workpieces.workpieces import Workpieces
from understudy.units import NS_PER_SECOND
from understudy.wire.exchange import InProcessCell

HEIGHT = 995.0
"""Of the tool point at rest, mm."""
PEDESTAL = {
    "name": "pedestal", "type": "box", "position_mm": [770.0, 0.0, 487.5],
    "dimensions_mm": [10.0, 10.0, 975.0],
}  # fmt: skip


def config_of(make: str = "robotiq_2f85", **keys: Any) -> CellConfig:
    """``keys``: of the gripper; `servo`, `scenario` and `faces` go where they belong."""
    servo = {"make": make, **keys.pop("servo", {})}
    cell = {key: keys.pop(key) for key in ("scenario",) if key in keys}
    robot = {
        "kind": "arm", "model": "g60", "tool": 1, "faces": keys.pop("faces", {}),
        "tools": {1: {"name": "gripper", "tcp_mm_deg": [0, 0, 150, 0, 0, 0]}},
        "gripper": {"type": "ELECTRIC_SERVO", "servo": servo, **keys},
    }  # fmt: skip
    content = {
        "robots": {"g60": robot},
        "environment": {"objects": [PEDESTAL]},
        **cell,
    }
    return read_config(msgspec.yaml.encode(content).decode(), "servo.yaml")


class ServoCell:
    """A cell on virtual time, in seconds, with an activated gripper. ``width``: of the part that is
    then put between the fingers, mm; 0: none."""

    def __init__(self, make: str = "robotiq_2f85", *, width: float = 16.0, **keys: Any) -> None:
        self.cell = build_cell(config_of(make, **keys))
        self.run = InProcessCell(self.cell)
        self.ended: list[str] = []
        self.lost: list[float] = []
        self.gripper.on_finished(
            lambda ticket, refused, now: self.ended.append(refused.reason if refused else "done")
        )
        self.gripper.on_lost(lambda now: self.lost.append(now / NS_PER_SECOND))
        self.advance(3.0)
        if width:
            put = WorkpieceConfig(
                name="part", dimensions_mm=(20.0, width, 40.0), position_mm=(770.0, 0.0, HEIGHT)
            )
            assert self.parts.add(put, self.cell.now) is None

    @property
    def gripper(self) -> GripperController:
        found = self.cell.components["g60.gripper"]
        assert isinstance(found, GripperController)
        return found

    @property
    def parts(self) -> Workpieces:
        found = self.cell.components["parts"]
        assert isinstance(found, Workpieces)
        return found

    @property
    def state(self) -> str:
        return self.gripper.status(self.cell.now).state

    def advance(self, seconds: float) -> "ServoCell":
        self.run.advance(seconds)
        return self

    def grip(self) -> str:
        """How the command ended."""
        return self._end_of(self.gripper.start_grip(self.cell.now))

    def release(self) -> str:
        return self._end_of(self.gripper.start_release(self.cell.now))

    def _end_of(self, ticket: object) -> str:
        assert not isinstance(ticket, Refused), ticket
        before = len(self.ended)
        self.run.run_while(lambda: len(self.ended) == before)
        return self.ended[-1]


class FakeJaws:
    """`Jaws` with a part of a width that the test sets; m."""

    def __init__(self, width: float | None = None, *, strong: bool = True) -> None:
        self.part = width
        self.held = False
        self.strong = strong

    def width(self, opening: float, now: int) -> float | None:
        return self.part if self.part is not None and self.part <= opening else None

    def take(self, opening: float, force: float, now: int) -> bool:
        self.held = self.strong
        return self.held

    def let_go(self, now: int) -> None:
        self.held = False

    def holds(self) -> bool:
        return self.held

    def remove(self) -> None:
        self.part, self.held = None, False


class Bench:
    """A virtual device without a cell: registers by RTU frames, time in seconds."""

    def __init__(self, make: Any = "robotiq_2f85", jaws: FakeJaws | None = None) -> None:
        row = MAKES[make]
        self.jaws = jaws or FakeJaws()
        self.fingers = Fingers(row.profile.limits.stroke, self.jaws)
        self.device: VirtualDevice = row.device(row.profile.unit, self.fingers)
        self.now = 0

    def at(self, seconds: float) -> "Bench":
        """Runs to this time."""
        until = round(seconds * NS_PER_SECOND)
        while (due := self.fingers.next_wake()) is not None and due <= until:
            self.fingers.wake(due)
        self.now = until
        return self

    def after(self, seconds: float) -> "Bench":
        return self.at(self.now / NS_PER_SECOND + seconds)

    def ask(self, text: str) -> str:
        """The answer to a frame, in hex."""
        [frame] = frame_reader("rtu", "requests").feed(bytes.fromhex(text))
        pdu = respond(self.device, "rtu", frame, self.now, fails=False)
        return "" if pdu is None else build_frame("rtu", frame._replace(pdu=pdu)).hex(" ").upper()

    def pdu(self, text: str) -> str:
        """The PDU of the answer to a PDU, in hex."""
        frame = Frame(self.device.unit, 0, bytes.fromhex(text))
        pdu = respond(self.device, "rtu", frame, self.now, fails=False)
        return "" if pdu is None else pdu.hex(" ")

    def write(self, address: int, *values: int) -> int:
        return self.device.write(address, values, self.now)

    def read(self, address: int, count: int = 1) -> list[int]:
        values = self.device.read(address, count, self.now)
        assert not isinstance(values, int), f"exception {values}"
        return list(values)
