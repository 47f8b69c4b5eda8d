"""Every state of the real manager with every event and fault, breadth first, with doubles.

A node is the manager with its doubles, without counts, times and ticket numbers. From every node
each action of `ACTIONS` is made once on a copy that was restored from a snapshot.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.jobs.pick_place.bench import ESTOP, PART, Bench

from understudy.errors import Refused
from understudy.jobs.pick_place.config import (
    CycleConfig,
    Handshake,
    HandshakeStep,
    Insert,
)
from understudy.jobs.pick_place.state import RUNNING, TRANSITIONS
from understudy.jobs.pick_place.status import PickPlaceState
from understudy.ports import state as snapshots
from understudy.ports.object_finder import DetectedObject

PLAIN = CycleConfig(max_grip_retries=2, max_scan_retries=2)
TENDING = CycleConfig(
    max_grip_retries=1,
    max_scan_retries=1,
    handshake=Handshake(
        before_place=(HandshakeStep(set="OPEN_DOOR"), HandshakeStep(wait="DOOR_OPEN")),
        at_pick=(HandshakeStep(wait="CLAMP_OFF"),),
    ),
    insert=Insert(contact="CONTACT"),
)
PINS = ("DOOR_OPEN", "CLAMP_OFF", "CONTACT")
BEFORE_GRIP = ("MOVE_TO_SCAN", "SCANNING", "MOVE_TO_PICK", "APPROACH_PICK")
WEAK = DetectedObject(2, "part", 0.1, PART.pose)


class Explored(Bench):
    """A bench that checks what must hold in every path."""

    def __init__(self, config: CycleConfig) -> None:
        super().__init__(config)
        self.config = config
        self.by_hand = False
        start = self.gripper.start_release

        def start_release(now: int, *, timeout_ms: float = 0.0) -> Any:
            allowed = self.state == "RELEASING" or self.by_hand
            assert allowed or not self.gripper.part, f"drops a part in {self.state}"
            return start(now, timeout_ms=timeout_ms)

        self.gripper.start_release = start_release  # type: ignore[method-assign]
        self.job.on_state(self._checked)

    def _checked(self, old: PickPlaceState, new: PickPlaceState, now: int) -> None:
        ends = {after for (before, _), after in TRANSITIONS.items() if before == old}
        assert new in ends or ("BEFORE_PAUSE" in ends and new in RUNNING), f"{old} → {new}"

    def copied(self) -> "Explored":
        other = Explored(self.config)
        for mine, its in zip(self.doubles(), other.doubles(), strict=True):
            vars(its).update(_plain(mine))
        other.now = self.now
        snapshots.load(other.job, self.copy_state())
        return other

    def doubles(self) -> tuple[Any, ...]:
        return self.arm, self.gripper, self.vision, self.pins

    def node(self) -> bytes:
        saved = self.copy_state()
        kept = ["state", "holding"]
        kept += ["before"] if saved["state"] == "PAUSED" else []
        kept += ["scan_misses", "grip_misses", "left"] if self.job.is_running() else []
        work = saved["work"]
        steps = [step["type"] for step in work["steps"][work["step"] :]]
        flags = [
            self.arm.ticket > 0, self.arm.held, self.arm.braking, self.arm.broken is not None,
            self.gripper.ticket > 0 and self.gripper.task, self.gripper.part, self.gripper.state,
            self.vision.ticket > 0,
            [note["kind"] for note in saved["notes"]],
        ]  # fmt: skip
        return msgspec.json.encode([[saved[name] for name in kept], steps, work["waits"], flags])


def _plain(double: Any) -> dict[str, Any]:
    """The state of a double, without its listeners and what the bench has put over it."""
    found = {n: v for n, v in vars(double).items() if not n.startswith("_") and not callable(v)}
    return {name: v.copy() if hasattr(v, "copy") else v for name, v in found.items()}


# ── actions ─────────────────────────────────────────────────────────────────────────────────────

Action = Callable[[Explored], bool]
"""Acts on a copy; False if it does not apply."""


def _arm(refused: Refused | None) -> Action:
    def act(bench: Explored) -> bool:
        if not bench.arm.ticket or (bench.arm.held and refused is None):
            return False
        bench.arm.finish(bench.now, refused)
        return True

    return act


def _grip(outcome: Any) -> Action:
    def act(bench: Explored) -> bool:
        if not bench.gripper.ticket:
            return False
        bench.gripper.outcomes.clear()
        bench.gripper.outcomes.append(outcome)
        bench.gripper.sticks = outcome is not True
        bench.gripper.finish(bench.now)
        return True

    return act


def _picture(answer: Any) -> Action:
    def act(bench: Explored) -> bool:
        if not bench.vision.ticket:
            return False
        bench.vision.answers.append(answer)
        bench.vision.finish(bench.now)
        return True

    return act


def _lose(bench: Explored) -> bool:
    bench.gripper.lose(bench.now)
    return True


def _late_part(bench: Explored) -> bool:
    """The part sensor goes on after the hand has missed the part."""
    if bench.gripper.state != "CLOSED":
        return False
    bench.gripper.part = True
    return True


def _press(bench: Explored) -> bool:
    """The gripper presses too much at the next check."""
    monitored = bench.job.next_wake()
    bench.gripper.force = 500.0
    bench.wake(max((monitored or bench.now) - bench.now, 0))
    bench.gripper.force = 0.0
    return True


def _trip(bench: Explored) -> bool:
    if bench.arm.broken:
        return False
    bench.arm.trip(bench.now)
    bench.wake()
    assert bench.state in ("ERROR", "IDLE")
    assert not bench.job.is_running()
    return True


def _repair(bench: Explored) -> bool:
    bench.arm.broken = None
    return True


def _time(bench: Explored) -> bool:
    """Time passes up to the next wake of the job."""
    at = bench.job.next_wake()
    if at is None:
        return False
    bench.wake(max(at - bench.now, 0))
    return True


def _pin(pin: str) -> Action:
    def act(bench: Explored) -> bool:
        if not bench.job._work.awaits_input():
            return False
        bench.pins.set(pin, True, bench.now)
        bench.wake()
        bench.pins.set(pin, False, bench.now)
        return True

    return act


def _command(name: str) -> Action:
    def act(bench: Explored) -> bool:
        bench.by_hand = name == "release_part"
        getattr(bench.job, name)(bench.now)
        bench.by_hand = False
        return True

    return act


def _stop(bench: Explored) -> bool:
    running, part = bench.job.is_running(), bench.gripper.part
    bench.job.stop(bench.now)
    assert bench.state == ("IDLE" if running else bench.state)
    assert not bench.arm.ticket or bench.arm.braking
    assert bench.gripper.part == part
    return True


ACTIONS: dict[str, Action] = {
    "arm arrives": _arm(None),
    "arm refuses": _arm(Refused("soft limit")),
    "hand done": _grip(True),
    "hand missed": _grip(False),
    "hand fails": _grip(Refused("time-out")),
    "part seen": _picture((PART,)),
    "nothing seen": _picture(()),
    "weak seen": _picture((WEAK,)),
    "vision error": _picture(Refused("no camera")),
    "vision silent": _picture(None),
    "part lost": _lose,
    "part sensor on": _late_part,
    "force": _press,
    "emergency stop": _trip,
    "repaired": _repair,
    "time": _time,
    **{f"pin {pin}": _pin(pin) for pin in PINS},
    "start": _command("start"),
    "stop": _stop,
    "pause": _command("pause"),
    "resume": _command("resume"),
    "reset": _command("reset"),
    "retract": _command("emergency_retract"),
    "release": _command("release_part"),
}


def check(bench: Explored, before: str, action: str) -> None:
    """What holds after every action."""
    status = bench.status
    place = f"{before} + {action}: {status}"
    assert (status.state == "ERROR") == (status.code != ""), place
    assert status.state != "ERROR" or status.last_error, place
    assert status.success_count + status.fail_count <= status.cycle_count, place
    assert not (status.holding and status.state in BEFORE_GRIP), place
    if bench.arm.broken == ESTOP:
        assert not bench.arm.ticket, f"moves in an emergency stop: {place}"
    if status.state in ("IDLE", "ERROR") and bench.arm.ticket:
        assert bench.arm.braking or bench.job.busy(), f"a move that has no owner: {place}"


def ends(bench: Explored) -> None:
    """Without further faults the job comes to an end from here."""
    for pin in PINS[:2]:
        bench.pins.levels[pin] = True
    if bench.state == "PAUSED" and bench.job.resume(bench.now):
        return
    bench.job.stop(bench.now)
    bench.run(most=50)
    assert not bench.job.is_running()


@pytest.mark.parametrize(
    "config",
    [PLAIN, pytest.param(TENDING, marks=pytest.mark.soak)],
    ids=["plain", "tending"],
)
def test_every_event_and_fault_in_every_state(config: CycleConfig) -> None:
    first = Explored(config)
    known, queue = {first.node()}, deque([first])
    seen: set[str] = set()
    pairs: set[tuple[str, str]] = set()
    while queue:
        assert len(known) < 3000
        here = queue.popleft()
        seen.add(here.state)
        ends(here.copied())
        for name, act in ACTIONS.items():
            there = here.copied()
            if not act(there):
                continue
            there.wake()
            check(there, here.state, name)
            pairs.add((here.state, name))
            if (node := there.node()) not in known:
                known.add(node)
                queue.append(there)
    assert seen == {*RUNNING, "IDLE", "ERROR", "PAUSED"}
    always = ("start", "stop", "pause", "resume", "reset", "emergency stop", "part lost", "force")
    assert {(state, name) for state in seen for name in always} <= pairs
    assert len(known) > 250
