"""The key `fleet` of a cell file: what all mobile robots of the cell share."""

from typing import Annotated

from msgspec import Meta, Struct

from understudy.robots.mobile.config.planner import Planner
from understudy.robots.mobile.config.profile import MOST_OBSTACLES, BarcodeMarker, Metres, Text
from understudy.units import DEG

Degrees = Annotated[float, Meta(ge=-1e6, le=1e6)]


class Marker(Struct, frozen=True, forbid_unknown_fields=True):
    """A code on the floor or on a wall, which scanners of robots read that come near."""

    code: Text
    x_m: Metres
    y_m: Metres
    yaw_deg: Degrees | None = None
    type: Text | None = None

    def built(self) -> BarcodeMarker:
        yaw = None if self.yaw_deg is None else self.yaw_deg * DEG
        return BarcodeMarker(self.code, self.x_m, self.y_m, yaw, self.type)


class FleetKeys(Struct, frozen=True, forbid_unknown_fields=True):
    """`planner`: finds routes if no backend does. `markers`: in addition to those of the robots'
    profiles."""

    planner: Planner = "grid"
    markers: Annotated[tuple[Marker, ...], Meta(max_length=MOST_OBSTACLES)] = ()


Config = FleetKeys
