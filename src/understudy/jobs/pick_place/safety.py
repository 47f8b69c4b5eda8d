"""PickPlaceSafety: zones, force, part presence, speeds and confidence of the pick & place job."""

from collections.abc import Callable, Iterable

from msgspec import Struct

from understudy.errors import Refused
from understudy.jobs.pick_place.config import CycleConfig, SafetyConfig, Zone
from understudy.jobs.pick_place.moves import CycleMove
from understudy.ports.hand import HandStatus
from understudy.space.pose import Pose
from understudy.units import MM, NS_PER_MS

SLOW = ("APPROACH_PICK", "RETRACT_PICK", "APPROACH_PLACE")
"""Legs near parts."""


class PickPlaceSafety:
    """The limits of the job: those of `safety`, and the stricter ones of `pickplace`.

    Every check returns a refusal or None, and changes nothing.
    """

    def __init__(self, config: SafetyConfig, cycle: CycleConfig) -> None:
        self.config = config
        self.min_confidence = max(cycle.min_confidence, config.min_detection_confidence)
        self.picture_timeout = round(
            min(cycle.vision_timeout_ms, config.vision_timeout_ms) * NS_PER_MS
        )
        self.answer_timeout = round(cycle.vision_answer_timeout_ms * NS_PER_MS)
        self.monitor_interval = round(config.grip_monitor_interval_ms * NS_PER_MS)
        self.retract_height = config.safe_retract_height_mm * MM
        self.require_part_sensor = config.require_part_sensor

    # ── before a motion ──

    def validate_pick_position(self, at: Pose) -> Refused | None:
        if not self.config.enable_pick_zone:
            return None
        return _outside(at, self.config.pick_zone, "pick")

    def validate_place_position(self, at: Pose) -> Refused | None:
        if not self.config.enable_place_zone:
            return None
        return _outside(at, self.config.place_zone, "place")

    def validate_speeds(self, moves: Iterable[CycleMove]) -> Refused | None:
        """Moves at a part or a place are not faster than `max_approach_speed_mm_s`."""
        most = self.config.max_approach_speed_mm_s
        for move in moves:
            speed = move.target.speed / MM
            if move.leg in SLOW and speed > most * (1 + 1e-9):
                return Refused(f"{move.leg} at {speed:g} mm/s; at most {most:g} mm/s is allowed")
        return None

    # ── while the hand has a part ──

    def monitor_grip_force(self, hand: HandStatus) -> Refused | None:
        most = self.config.max_grip_force_n
        if hand.force_n <= most:
            return None
        return Refused(f"the hand presses with {hand.force_n:.1f} N; at most {most:g} N")

    def check_part_presence(self, hand: HandStatus) -> Refused | None:
        if hand.part_detected or not self.require_part_sensor:
            return None
        return Refused("the part sensor of the hand is off: the part was lost")


def _outside(at: Pose, zone: Zone | None, name: str) -> Refused | None:
    if zone is None:
        return None
    for axis, value, low, high in zip("XYZ", at[:3], zone.min, zone.max, strict=True):
        if not low - 1e-6 <= value / MM <= high + 1e-6:
            where = f"{axis} {value / MM:.1f} mm"
            return Refused(f"{where} is outside the {name} zone {low:g}…{high:g} mm")
    return None


class WatchdogState(Struct):
    """The watchdog in a snapshot. `last_feed`: None if it is not started. Times in ns."""

    timeout: int = 0
    last_feed: int | None = None


class PictureWatchdog:
    """Expires when no valid answer of vision has come for the time-out, and then calls its action
    once. Times in ns."""

    def __init__(self) -> None:
        self.state = WatchdogState()
        self._action: Callable[[int], None] = lambda now: None

    def set_timeout_action(self, action: Callable[[int], None]) -> None:
        """``action`` is called with the time at which the watchdog has expired; it replaces the
        former one."""
        self._action = action

    def start(self, timeout: int, now: int) -> None:
        self.state.timeout, self.state.last_feed = timeout, now

    def feed(self, now: int) -> None:
        """A valid answer has come; one without objects is valid too."""
        if self.state.last_feed is not None:
            self.state.last_feed = now

    def stop(self) -> None:
        self.state.last_feed = None

    def delay(self, time: int) -> None:
        """A pause of the job does not count."""
        if self.state.last_feed is not None:
            self.state.last_feed += time

    @property
    def expires(self) -> int | None:
        state = self.state
        return None if state.last_feed is None else state.last_feed + state.timeout

    def is_expired(self, now: int) -> bool:
        return self.expires is not None and now >= self.expires

    def wake(self, now: int) -> None:
        """Calls the action if the watchdog has expired, and stops."""
        if self.is_expired(now):
            self.stop()
            self._action(now)
