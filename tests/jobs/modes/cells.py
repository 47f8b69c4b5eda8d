"""Cells with modes of operation, for tests."""

from typing import Any

from understudy.app.build import build_cell
from understudy.config.cell import read_config
from understudy.errors import Refused
from understudy.jobs.modes.manager import ModeManager
from understudy.robots.arm.controller import ArmController
from understudy.wire.exchange import InProcessCell

CELL = """
robots:
  g60:
    kind: arm
    tool: 1
    tools:
      1: {{name: torch, tcp_mm_deg: [0, 0, 150, 0, 0, 0]}}
      2: {{name: gripper, tcp_mm_deg: [0, 0, 80, 0, 0, 0]}}
    welder: {{}}
    collision: {{enable: {touches}}}
    start_deg: [0, -30, 60, 0, 60, 0]
    modes: {modes}
    faces: {{grblhal: {{port: 0}}}}
environment:
  objects:
    - {{name: plate, type: box, position_mm: [500, 0, 50], dimensions_mm: [200, 200, 100]}}
"""


class ModeCell:
    """A cell on virtual time with one arm and its mode manager."""

    def __init__(self, modes: str, *, touches: bool = False) -> None:
        text = CELL.format(modes=modes, touches=str(touches).lower())
        built = build_cell(read_config(text, "cell.yaml"))
        self.cell = InProcessCell(built)
        self.components: dict[str, Any] = dict(built.components)
        self.arm: ArmController = self.components["g60"]
        self.modes: ModeManager = self.components["g60.modes"]
        self.arm.connect(self.now)
        self.arm.enable(self.now)

    @property
    def now(self) -> int:
        return self.cell.timed_cell.now

    @property
    def arc(self) -> bool:
        return self.arm.io.digital_output("ARC_START")

    def lines(self, *lines: str) -> Refused | None:
        """Runs lines; the refusal, or the error at their end."""
        for line in lines:
            if refused := self.arm.send_gcode(line, self.now):
                return refused
        self.cell.run_while(self.arm.busy)
        status = self.arm.status(self.now)
        return Refused(status.error_message, status.error_code) if status.error else None

    def request(self, mode: Any) -> Refused | None:
        return self.modes.request_mode_change(mode, self.now)

    def settle(self) -> str:
        """Runs until the changeover has ended, failed, or waits for a person; the mode."""
        self.cell.run_while(lambda: self.modes.next_wake() is not None)
        return self.modes.current_mode

    def step(self) -> str:
        return self.modes.status(self.now).step
