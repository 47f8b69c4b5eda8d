"""Section `modes`: modes of operation of a robot, and the changeover between them."""

from collections.abc import Collection
from typing import Annotated, Literal

from msgspec import Meta, Struct

from understudy.errors import ConfigError
from understudy.ports.modes import TargetMode
from understudy.space.pose import Coordinate, Position, Speed

Seconds = Annotated[float, Meta(gt=0, le=3600)]
Millimetres = Annotated[float, Meta(gt=0, le=1000)]
JointsDeg = Annotated[tuple[float, ...], Meta(min_length=6, max_length=6)]


class TouchPlate(Struct, frozen=True, forbid_unknown_fields=True):
    """Touch sensing of a new tool. `position`: of the tip above the plate. `plate_z_mm`: the top of
    the plate in the cell. The tip probes down (G38.2) for `depth_mm`; a touch that is farther than
    `tolerance_mm` from the plate is a failure: the data of the tool are wrong.
    """

    position: Position
    plate_z_mm: Coordinate
    depth_mm: Millimetres = 50.0
    speed_mm_s: Annotated[float, Meta(gt=0, le=100)] = 5.0
    tolerance_mm: Millimetres = 1.0


class ModesConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Section `modes`. `start`: the mode in which the cell starts.

    `tools`: the tool of a mode; without one the mode keeps the tool that is mounted. `change`: at
    the docks of a tool changer, or by hand with a confirmation. `park_positions`, or
    `park_joints_deg`: where the arm goes before the tool of a mode is changed; without one it
    stays. `calibrate`: the touch plate that every new tool touches.
    """

    start: TargetMode = "MANUAL"
    tools: dict[TargetMode, Annotated[int, Meta(ge=0, le=99)]] = {}
    change: Literal["automatic", "manual"] = "manual"
    park_positions: dict[TargetMode, Position] = {}
    park_joints_deg: dict[TargetMode, JointsDeg] = {}
    park_speed_mm_s: Speed = 250.0
    calibrate: TouchPlate | None = None
    stop_timeout_s: Seconds = 10.0
    step_timeout_s: Seconds = 300.0


def check_modes(modes: ModesConfig, tools: Collection[int], *, automatic: bool) -> None:
    """Raises a ConfigError for a tool that the robot does not have, an automatic change without a
    tool changer (``automatic``: there is one), or two park positions of a mode."""
    known = sorted({0, *tools})
    for mode, tool in modes.tools.items():
        if tool not in known:
            problem, allowed = "the robot has no such tool", ", ".join(map(str, known))
            raise ConfigError(problem, key=f"modes.tools.{mode}", value=tool, allowed=allowed)
    if modes.change == "automatic" and not automatic:
        problem = "the robot has no tool changer"
        raise ConfigError(problem, key="modes.change", value="automatic", allowed="manual")
    for mode in modes.park_joints_deg:
        if mode in modes.park_positions:
            problem = "the mode has a park position already"
            raise ConfigError(problem, key=f"modes.park_joints_deg.{mode}")
