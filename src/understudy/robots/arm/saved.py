"""What a snapshot holds of an arm's controller."""

from msgspec import Struct

from understudy.robots.arm.drives import Saved as SavedDrives
from understudy.robots.arm.listeners import State as AudienceState
from understudy.robots.grblhal.firmware import State as SavedFirmware


class Saved(Struct):
    """`alarm`: why nothing is accepted until reset. `fresh`: readings are never older than
    this.
    """

    connected: bool
    enabled: bool
    alarm: tuple[str, int] | None
    lines: int
    fresh: int
    audience: AudienceState
    drives: SavedDrives
    firmware: SavedFirmware
