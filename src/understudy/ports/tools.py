"""The tools of an arm, and the tool changer between them and its flange. Metres, rad, kg."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from msgspec import Struct

from understudy.errors import Refused
from understudy.space.pose import ORIGIN, Pose

Point = tuple[float, float, float]


class ToolDefinition(Struct, frozen=True):
    """A tool. `tcp`: its tip seen from the flange, T_flange_tcp. `com`: its centre of mass there.

    `outputs`: the outputs that belong to the tool; they are off before it is put away. `dock`: the
    pose of the flange in the cell when the tool sits in its dock; None: it has none.
    """

    number: int
    name: str = ""
    tcp: Pose = ORIGIN
    mass: float = 0.0
    com: Point = (0.0, 0.0, 0.0)
    outputs: tuple[int, ...] = ()
    dock: Pose | None = None


class ToolTable(Protocol):
    """The tool table of an arm, and the tool that its controller uses."""

    def tools(self) -> Mapping[int, ToolDefinition]:
        """The tools by number, without 0."""
        ...

    def mounted(self, now: int) -> int:
        """The tool that the controller moves; 0: the bare flange."""
        ...

    def flange(self, now: int) -> Pose:
        """The pose of the flange in the cell."""
        ...

    def set_tip(self, number: int, tcp: Pose, now: int) -> Refused | None:
        """Sets the tip of a tool of the table."""
        ...


class ChangerSettings(Struct, frozen=True):
    """Pins and motion of a tool changer.

    `unlock`: the output that opens the lock. `locked`: input, a tool is clamped. `present`: input,
    a tool is at the flange. `timeout`: seconds for a sensor. `approach`: distance above a dock,
    back along the axis of the flange. `near`: farther from a dock than this the flange is outside.
    """

    unlock: int
    locked: int
    present: int
    timeout: float
    approach: float
    move_speed: float
    dock_speed: float
    near: float


@runtime_checkable
class ChangesTools(Protocol):
    """A device with a lock for tools at the flange."""

    @property
    def settings(self) -> ChangerSettings: ...

    def confirm_tool(self, tool: int) -> Refused | None:
        """M6: the controller moves this tool from now on; refused if the sensors see something
        else, or if the lock was not opened since it confirmed another one."""
        ...
