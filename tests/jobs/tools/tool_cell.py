"""A cell with an arm, two tools in docks and a tool changer, for tests."""

from typing import Any

from understudy.app.build import build_cell
from understudy.config.cell import read_config
from understudy.devices.tool_changer.lock import ToolLock
from understudy.errors import Refused
from understudy.jobs.tools.change import ToolChanger
from understudy.jobs.tools.manager import ToolManager
from understudy.ports import Ticket
from understudy.robots.arm.controller import ArmController
from understudy.wire.exchange import InProcessCell

CELL = """
robots:
  g60:
    kind: arm
    tool: {tool}
    tools:
      1:
        name: torch
        tcp_mm_deg: [0, 0, 150, 0, 0, 0]
        mass_kg: 1.5
        com_mm: [0, 0, 60]
        outputs: [0, 1]
        dock: {{x: 300, y: 400, z: 300}}
      2: {{name: gripper, tcp_mm_deg: [0, 0, 80, 0, 0, 0], mass_kg: 0.8, com_mm: [0, 0, 40],
          dock: {{x: 300, y: -400, z: 300}}}}
      3: {{name: pen, tcp_mm_deg: [0, 0, 30, 0, 0, 0]}}
    simulation: {simulation}
    collision: {{enable: false}}
    start_deg: [0, -30, 60, 0, 60, 0]
    {more}
"""


class ToolCell:
    """A cell on virtual time with one arm and a tool changer."""

    def __init__(
        self,
        *,
        tool: int = 1,
        changer: str = "{}",
        simulation: str = "{}",
        more: str = "",
    ) -> None:
        keys = f"tool_changer: {changer}\n    {more}"
        text = CELL.format(tool=tool, simulation=simulation, more=keys)
        self.config = read_config(text, "cell.yaml")
        built = build_cell(self.config)
        self.cell = InProcessCell(built)
        self.components: dict[str, Any] = dict(built.components)
        self.arm: ArmController = self.components["g60"]
        self.tools: ToolManager = self.components["g60.tools"]
        self.changer: ToolChanger = self.components["g60.tool_change"]
        self.lock: ToolLock = self.components["g60.tool_changer"]
        self.ended: list[tuple[int, Refused | None]] = []
        self.changer.on_finished(lambda ticket, refused, now: self._note(ticket, refused))
        self.arm.connect(self.now)
        self.arm.enable(self.now)

    def _note(self, ticket: Ticket, refused: Refused | None) -> None:
        self.ended.append((int(ticket), refused))

    @property
    def now(self) -> int:
        return self.cell.timed_cell.now

    def run(self) -> None:
        """Runs until the arm and the changer are at rest."""
        self.cell.run_while(lambda: self.arm.busy() or self.changer.busy())

    def lines(self, *lines: str) -> Refused | None:
        """Runs lines; the refusal, or the error at their end."""
        for line in lines:
            if refused := self.arm.send_gcode(line, self.now):
                return refused
        self.run()
        status = self.arm.status(self.now)
        return Refused(status.error_message, status.error_code) if status.error else None

    def change(self, tool: int) -> Refused | None:
        """Changes the tool; how the change ended."""
        ticket = self.changer.change(tool, self.now)
        if isinstance(ticket, Refused):
            return ticket
        self.run()
        number, refused = self.ended[-1]
        assert number == ticket
        return refused
