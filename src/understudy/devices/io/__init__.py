"""The digital and analog pins of a robot's controller."""

from typing import TYPE_CHECKING, NoReturn

from understudy.devices.io.reactions import REACTIONS
from understudy.errors import ConfigError
from understudy.simulation.io.virtual_io import FAULTS, Config

if TYPE_CHECKING:
    from understudy.ports.device import Mount

__all__ = ["FAULTS", "REACTIONS", "Config", "build"]


def build(name: str, config: Config, mount: "Mount") -> NoReturn:
    """Refuses pins without a controller: a robot that has pins builds them itself."""
    allowed = "`io` of a robot whose controller has pins"
    raise ConfigError("there is no controller with pins here", value=name, allowed=allowed)
