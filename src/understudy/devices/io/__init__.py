"""The digital and analog pins of a robot's controller."""

from typing import TYPE_CHECKING

from understudy.devices.io.pins import FAULTS, Config

if TYPE_CHECKING:
    from understudy.devices.io.virtual_io import VirtualIO
    from understudy.ports.device import Mount

__all__ = ["FAULTS", "Config", "build"]


def build(name: str, config: Config, mount: "Mount") -> "VirtualIO":
    from understudy.devices.io.virtual_io import VirtualIO

    return VirtualIO(config)
