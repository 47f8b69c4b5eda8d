"""What the pick & place job holds in a snapshot, and what it reports."""

from typing import Literal

from msgspec import Struct, field

from understudy.jobs.pick_place.choice import Chosen
from understudy.jobs.pick_place.safety import ErrorCode, VisionWatchdog
from understudy.jobs.pick_place.table import State
from understudy.jobs.pick_place.work import WorkState
from understudy.ports.pick_place import DetectedObject, VisionResult
from understudy.units import NS_PER_SECOND

Reason = Literal["", "DONE", "STOPPED", "NO_OBJECT", "PALLET_FULL", "SOURCE_EMPTY"]
"""Why the last run has ended without a fault."""
NoteKind = Literal["arm", "gripper", "vision", "lost", "arm_fault"]
UNLIMITED = -1
"""Number of cycles of a run without an end."""


class Note(Struct, frozen=True):
    """A report of the arm, the gripper or vision; it is handled in the next wake."""

    kind: NoteKind
    ticket: int = 0
    refused: str | None = None
    result: VisionResult | None = None


class CycleTimes(Struct):
    """Times of the successful cycles in ns."""

    count: int = 0
    total: int = 0
    last: int = 0
    shortest: int = 0
    longest: int = 0

    def add(self, time: int) -> None:
        self.shortest = min(self.shortest, time) if self.count else time
        self.longest = max(self.longest, time)
        self.count, self.total, self.last = self.count + 1, self.total + time, time


class Saved(Struct):
    """`before`: the state in which the cycle was paused, at `paused_at`. `left`: cycles that
    follow. `holding`: the hand has a part. `monitor`: the next check of the force. `started`: of
    the cycle. `due`: the next wake for notes. `work`: the steps of the present state."""

    state: State = "IDLE"
    before: State = "IDLE"
    paused_at: int = 0
    reason: Reason = ""
    code: ErrorCode = ""
    last_error: str = ""
    left: int = 0
    cycles: int = 0
    successes: int = 0
    failures: int = 0
    by_class: dict[str, int] = {}
    times: CycleTimes = field(default_factory=CycleTimes)
    watchdog: VisionWatchdog = field(default_factory=VisionWatchdog)
    monitor: int | None = None
    holding: bool = False
    target: Chosen | None = None
    scan_misses: int = 0
    grip_misses: int = 0
    miss: str = ""
    started: int = 0
    notes: list[Note] = []
    due: int | None = None
    work: WorkState = field(default_factory=WorkState)


class Statistics(Struct, frozen=True):
    """Cycle times in seconds; 0 before the first successful cycle."""

    last_s: float = 0.0
    mean_s: float = 0.0
    shortest_s: float = 0.0
    longest_s: float = 0.0
    by_class: dict[str, int] = {}


class PickPlaceStatus(Struct, frozen=True):
    """State, counts and target of the job. `code`: of the fault; `reason`: why the last run ended
    without one. `cycles_left`: that follow the present one, -1 without an end. `progress`: 0…1 of
    the present cycle. `paused_in`: the state before a pause."""

    state: State = "IDLE"
    cycle_count: int = 0
    success_count: int = 0
    fail_count: int = 0
    current_target: DetectedObject | None = None
    last_error: str = ""
    code: ErrorCode = ""
    reason: Reason = ""
    running: bool = False
    cycles_left: int = 0
    holding: bool = False
    scan_misses: int = 0
    grip_misses: int = 0
    progress: float = 0.0
    paused_in: State | Literal[""] = ""
    statistics: Statistics = Statistics()


def statistics(saved: Saved) -> Statistics:
    times, second = saved.times, NS_PER_SECOND
    return Statistics(
        times.last / second,
        times.total / times.count / second if times.count else 0.0,
        times.shortest / second,
        times.longest / second,
        dict(saved.by_class),
    )
