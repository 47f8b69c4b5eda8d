"""Tools of a robot without a tool changer: a person mounts them, M61 names them."""

from understudy.errors import Refused
from understudy.ports import Finished, Ticket
from understudy.ports.pick_place import JobArm


class ControllerTools:
    """`ToolsInHand` of a controller alone: no sensor sees the tool."""

    def __init__(self, arm: JobArm) -> None:
        self._arm = arm

    def mounted(self, now: int) -> int:
        return self._arm.tool(now)

    def change(self, tool: int, now: int) -> Ticket | Refused:
        return Refused("the robot has no tool changer: set `change: manual` in its section `modes`")

    def exchanged(self, tool: int, now: int) -> Refused | None:
        """M61 sets the number of the tool without a change."""
        return self._arm.controller.send_gcode(f"M61 Q{tool}", now)

    def cancel(self, now: int) -> None:
        """No change is ever under way."""

    def on_finished(self, listener: Finished) -> None:
        """No change is ever under way."""
