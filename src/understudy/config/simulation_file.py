"""simulation.yaml: timing, collision checks, colours and pin links; defaults for the robots."""

from collections.abc import Iterable
from typing import Annotated, Any

from msgspec import Meta, Struct, to_builtins

from understudy.config.document import parse
from understudy.config.typed import read
from understudy.errors import ConfigError
from understudy.simulation.io.virtual_io import Link
from understudy.space.model.environment import CollisionConfig

Color = Annotated[int, Meta(ge=0, le=0xFFFFFF)]
NotNegative = Annotated[float, Meta(ge=0, le=1e6)]


class Simulation(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Timing, dynamics and delays: defaults for the arms of the cell."""

    update_rate_hz: Annotated[float, Meta(gt=0)] | None = None
    default_time_scale: Annotated[float, Meta(ge=1e-6, le=1e6)] = 1.0
    enable_dynamics: bool | None = None
    joint_inertia: list[NotNegative] | None = None
    joint_friction: list[NotNegative] | None = None
    command_delay_ms: NotNegative | None = None
    feedback_delay_ms: NotNegative | None = None


class Visualization(Struct, frozen=True, forbid_unknown_fields=True):
    """What pages show, and the colours."""

    show_collision_volumes: bool = False
    show_trajectory_preview: bool = True
    show_weld_trail: bool = True
    show_workspace_boundary: bool = False
    robot_color: Color = 0xFF5E00
    ghost_robot_color: Color = 0x808080
    collision_color: Color = 0xFF0000
    trajectory_color: Color = 0x00FF00
    weld_color: Color = 0xFFD700


class VirtualIo(Struct, frozen=True, forbid_unknown_fields=True):
    """Links from outputs to inputs."""

    links: list[Link] = []


class SimulationFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A simulation.yaml; the same sections can stand in the cell file itself."""

    simulation: Simulation = Simulation()
    collision: CollisionConfig = CollisionConfig()
    visualization: Visualization = Visualization()
    virtual_io: VirtualIo = VirtualIo()

    def defaults(self, section: str) -> dict[str, Any]:
        """A section as the defaults of the robot's key of the same name."""
        if section == "io":
            return {"links": to_builtins(self.virtual_io.links)}
        values: dict[str, Any] = to_builtins(getattr(self, section))
        values.pop("default_time_scale", None)
        return values

    def under(self, robot: dict[str, Any], sections: Iterable[str]) -> dict[str, Any]:
        """A robot of the cell file with these sections as defaults of its own keys."""
        return robot | {key: _over(robot.get(key), self.defaults(key)) for key in sections}


def _over(own: Any, ours: dict[str, Any]) -> Any:
    """Defaults with the robot's own keys over them; the reader reports what is no mapping."""
    return ours | (own or {}) if isinstance(own or {}, dict) else own


def read_simulation(text: str, file: str) -> SimulationFile:
    document = parse(text, file)
    try:
        found: SimulationFile = read(document.value, SimulationFile)
    except ConfigError as problem:
        raise document.error((), problem) from None
    return found
