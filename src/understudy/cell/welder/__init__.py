"""A simulated power source with wire feeder and gas: what stands behind the welding pins."""

from understudy.cell.welder.config import Config, WeldParameters
from understudy.cell.welder.gauges import WeldingState
from understudy.cell.welder.welder import Welder

__all__ = ["Config", "WeldParameters", "Welder", "WeldingState"]
