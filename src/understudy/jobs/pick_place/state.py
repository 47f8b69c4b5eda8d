"""The state machine of the pick & place cycle, as a table, and the state that snapshots hold."""

from collections.abc import Mapping
from typing import Literal, get_args

from msgspec import Struct, field

from understudy.jobs.pick_place.choice import Chosen
from understudy.jobs.pick_place.safety import WatchdogState
from understudy.jobs.pick_place.status import (
    PickPlaceError,
    PickPlaceReason,
    PickPlaceState,
    PickPlaceStatistics,
    RunningState,
)
from understudy.jobs.pick_place.steps import WorkState
from understudy.ports.object_finder import FoundObjects
from understudy.units import NS_PER_SECOND

State = PickPlaceState
Event = Literal[
    "start",
    "go_on",
    "stop",
    "pause",
    "resume",
    "reset",
    "done",
    "found",
    "not_found",
    "scans_used_up",
    "missed",
    "rescan",
    "next_cycle",
    "fault",
]
"""`go_on`: a start with the part of the last run in the hand. `done`: all steps of a state are
made. `not_found`: a scan without a part that can be picked.
`missed`: the hand closed without a part. `fault`: also the emergency stop."""
BEFORE_PAUSE: Literal["BEFORE_PAUSE"] = "BEFORE_PAUSE"
"""In the table: the state in which the cycle was paused."""

CYCLE: Mapping[tuple[State, Event], State] = {
    ("IDLE", "start"): "MOVE_TO_SCAN",
    ("IDLE", "go_on"): "RETRACT_PICK",
    ("MOVE_TO_SCAN", "done"): "SCANNING",
    ("SCANNING", "found"): "MOVE_TO_PICK",
    ("SCANNING", "not_found"): "SCANNING",
    ("SCANNING", "scans_used_up"): "IDLE",
    ("MOVE_TO_PICK", "done"): "APPROACH_PICK",
    ("APPROACH_PICK", "done"): "GRIPPING",
    ("GRIPPING", "done"): "RETRACT_PICK",
    ("GRIPPING", "missed"): "RETRACT_PICK",
    ("RETRACT_PICK", "done"): "MOVE_TO_PLACE",
    ("RETRACT_PICK", "rescan"): "MOVE_TO_SCAN",
    ("MOVE_TO_PLACE", "done"): "APPROACH_PLACE",
    ("APPROACH_PLACE", "done"): "RELEASING",
    ("RELEASING", "done"): "RETRACT_PLACE",
    ("RETRACT_PLACE", "done"): "IDLE",
    ("RETRACT_PLACE", "next_cycle"): "MOVE_TO_SCAN",
}
RUNNING: tuple[State, ...] = get_args(RunningState)
CARRYING: tuple[State, ...] = ("RETRACT_PICK", "MOVE_TO_PLACE", "APPROACH_PLACE")
"""States in which the hand has a part, unless the grip failed."""
TRANSITIONS: Mapping[tuple[State, Event], State | Literal["BEFORE_PAUSE"]] = {
    **CYCLE,
    **{(state, "stop"): "IDLE" for state in RUNNING},
    **{(state, "pause"): "PAUSED" for state in RUNNING},
    **{(state, "fault"): "ERROR" for state in RUNNING},
    ("PAUSED", "resume"): BEFORE_PAUSE,
    ("PAUSED", "stop"): "IDLE",
    ("PAUSED", "fault"): "ERROR",
    ("ERROR", "stop"): "ERROR",
    ("ERROR", "fault"): "ERROR",
    ("ERROR", "reset"): "IDLE",
}


def diagram() -> str:
    """The table as a Mermaid diagram; what every running state has is drawn once."""
    lines = [f"    {a} --> {b}: {event}" for (a, event), b in CYCLE.items()]
    common = [(event, TRANSITIONS[RUNNING[0], event]) for event in ("stop", "pause", "fault")]
    lines += [f"    RUNNING --> {b}: {event}" for event, b in common]
    rest = ((a, event, b) for (a, event), b in TRANSITIONS.items() if a in ("PAUSED", "ERROR"))
    lines += [f"    {a} --> {b}: {event}" for a, event, b in rest]
    return "\n".join(["stateDiagram-v2", *lines])


# ── what a snapshot holds ──

NoteKind = Literal["arm", "hand", "finder", "lost", "arm_fault"]
UNLIMITED = -1
"""Number of cycles of a run without an end."""


class Note(Struct, frozen=True):
    """A report of the arm, the gripper or vision; it is handled in the next wake."""

    kind: NoteKind
    ticket: int = 0
    refused: str | None = None
    result: FoundObjects | None = None


class CycleTimes(Struct):
    """Times of the successful cycles in ns."""

    count: int = 0
    total: int = 0
    last: int = 0
    shortest: int = 0
    longest: int = 0

    def add(self, time: int, *, whole: bool = True) -> None:
        """``whole``: False for a cycle that has begun with the part in the hand."""
        self.last = time
        if not whole:
            return
        self.shortest = min(self.shortest, time) if self.count else time
        self.longest = max(self.longest, time)
        self.count, self.total = self.count + 1, self.total + time


class Saved(Struct):
    """The state of the job in a snapshot. `before`: the state in which the cycle was paused, at
    `paused_at`. `ended_in`: in which the last run was stopped. `left`: cycles that follow.
    `placed`: parts of this run. `holding`: the hand has a part. `went_on`: this cycle began with
    it; `puts_back`: it goes back to where it was picked. `monitor`: the next check of the force.
    `started`: of the cycle. `due`: the next wake for notes. `work`: the steps of the present
    state."""

    state: State = "IDLE"
    before: State = "IDLE"
    paused_at: int = 0
    ended_in: State = "IDLE"
    placed: int = 0
    went_on: bool = False
    puts_back: bool = False
    reason: PickPlaceReason = ""
    code: PickPlaceError = ""
    last_error: str = ""
    left: int = 0
    cycles: int = 0
    successes: int = 0
    failures: int = 0
    by_class: dict[str, int] = {}
    times: CycleTimes = field(default_factory=CycleTimes)
    watchdog: WatchdogState = field(default_factory=WatchdogState)
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


def check_saved(saved: Saved) -> None:
    """Raises ValueError for a snapshot that no job has written."""
    work = saved.work
    if not 0 <= work.step <= len(work.steps):
        raise ValueError(f"step {work.step} of {len(work.steps)}")
    if saved.state == "PAUSED" and saved.before not in RUNNING:
        raise ValueError(f"paused in {saved.before}")
    at = saved.before if saved.state == "PAUSED" else saved.state
    if saved.target is None and at in RUNNING[RUNNING.index("MOVE_TO_PICK") :]:
        raise ValueError(f"{at} without a part")


def statistics(saved: Saved) -> PickPlaceStatistics:
    times, second = saved.times, NS_PER_SECOND
    return PickPlaceStatistics(
        times.last / second,
        times.total / times.count / second if times.count else 0.0,
        times.shortest / second,
        times.longest / second,
        dict(saved.by_class),
    )
