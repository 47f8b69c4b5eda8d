"""The tool table of an arm for jobs and devices: the tools of its cell file, with present tips."""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from understudy.errors import Refused
from understudy.ports.tools import ToolDefinition
from understudy.robots.arm import Config, ToolConfig
from understudy.space.pose import Pose, pose_of
from understudy.units import MM


class ArmTools:
    """`ports.tools.ToolTable` of an arm.

    ``flange``: its pose in the cell. ``measured``: tips that differ from the cell file.
    """

    def __init__(
        self,
        config: Config,
        *,
        mounted: Callable[[int], int],
        flange: Callable[[int], Pose],
        measured: Callable[[], Mapping[int, Pose]] = dict,
        set_tip: Callable[[int, Pose, int], Refused | None] = lambda number, tcp, now: None,
    ) -> None:
        self._configured = {
            number: _definition(number, tool) for number, tool in config.tools.items()
        }
        self.mounted = mounted
        self.flange = flange
        self._measured = measured
        self._set_tip = set_tip

    def tools(self) -> Mapping[int, ToolDefinition]:
        measured = self._measured()
        if not measured:
            return self._configured
        return {
            number: _definition_with(tool, measured.get(number))
            for number, tool in self._configured.items()
        }

    def set_tip(self, number: int, tcp: Pose, now: int) -> Refused | None:
        return self._set_tip(number, tcp, now)


def _definition(number: int, tool: ToolConfig) -> ToolDefinition:
    x, y, z = (value * MM for value in tool.com_mm)
    return ToolDefinition(
        number,
        tool.name,
        pose_of(tool.tcp_mm_deg),
        tool.mass_kg,
        (x, y, z),
        tool.outputs,
        tool.dock.pose() if tool.dock else None,
    )


def _definition_with(tool: ToolDefinition, tip: Pose | None) -> ToolDefinition:
    return tool if tip is None else replace(tool, tcp=tip)
