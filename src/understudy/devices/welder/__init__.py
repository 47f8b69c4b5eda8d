"""A power source with wire feeder and gas on the welding pins of an arm."""

from typing import TYPE_CHECKING

from understudy.devices.welder.phases import FAULTS, Config, WeldParameters, program_wait_s

if TYPE_CHECKING:
    from understudy.devices.welder.welder import Welder
    from understudy.ports.device import Mount

__all__ = ["FAULTS", "OPERATION_MODES", "Config", "WeldParameters", "build", "program_wait_s"]

OPERATION_MODES = ("WELDING",)


def build(name: str, config: Config, mount: "Mount") -> "Welder":
    from understudy.devices.welder.welder import Welder

    return Welder(name, config, mount)
