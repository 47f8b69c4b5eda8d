"""A simulated power source with wire feeder and gas: what stands behind the welding pins."""

from understudy.devices.welder.config import Config, WeldParameters
from understudy.devices.welder.gauges import WeldingState
from understudy.devices.welder.welder import Welder

__all__ = ["Config", "WeldParameters", "Welder", "WeldingState"]
