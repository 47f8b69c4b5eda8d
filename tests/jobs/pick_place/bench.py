"""The pick & place manager with doubles of arm, gripper, vision and pins.

Each double ends its tickets only when the test says so, or by `Bench.run`, where every request
takes 100 ms and does what the test has set.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from understudy.agenda import advance
from understudy.errors import Refused
from understudy.jobs.pick_place.choice import TargetChoice
from understudy.jobs.pick_place.config import CycleConfig, SafetyConfig
from understudy.jobs.pick_place.manager import PickPlaceManager
from understudy.jobs.pick_place.pallet import PalletPattern
from understudy.jobs.pick_place.safety import PickPlaceSafety
from understudy.jobs.pick_place.steps import Equipment
from understudy.ports import Finished, Ticket
from understudy.ports import state as snapshots
from understudy.ports.hand import HandStatus
from understudy.ports.io import PinChange
from understudy.ports.object_finder import DetectedObject, FoundObjects, ResultListener
from understudy.ports.operation import Target
from understudy.space.pose import Pose, pose_of
from understudy.units import NS_PER_MS

TIME = 100 * NS_PER_MS
ESTOP = Refused("emergency stop: reset first", 10)
STOPPED = Refused("the move was stopped")


class FakeArm:
    """An arm whose moves end when `finish` is called."""

    def __init__(self) -> None:
        self.moves: list[Target] = []
        self.at: Pose = pose_of((400.0, 0.0, 600.0, 180.0, 0.0, 0.0))
        self.ticket = self.tickets = 0
        self.target: Pose | None = None
        self.held = False
        self.braking = False
        self.broken: Refused | None = None
        self.refuses: Refused | None = None
        self.unreachable: Callable[[Target], bool] = lambda target: False
        self._finished: list[Finished] = []
        self._faults: list[Callable[[Refused, int], None]] = []
        self.started = 0

    def move(self, target: Target, now: int) -> Ticket | Refused:
        assert not self.ticket, "a second move"
        if refused := self.broken or self.refuses:
            return refused
        self.moves.append(target)
        self.tickets += 1
        self.ticket, self.target, self.started = self.tickets, target.pose, now
        return Ticket(self.ticket)

    def hold(self, now: int) -> Refused | None:
        self.held = bool(self.ticket)
        return None

    def resume(self, now: int) -> Refused | None:
        self.held = False
        return self.broken

    def stop(self, now: int) -> Refused | None:
        self.braking, self.held = True, False
        return None

    def flange(self, now: int) -> Pose:
        return self.at

    def tool(self, now: int) -> Pose:
        return self.at

    def unready(self, now: int) -> Refused | None:
        return self.broken

    def at_rest(self, now: int) -> bool:
        return not self.ticket

    def on_finished(self, listener: Finished) -> None:
        self._finished.append(listener)

    def on_fault(self, listener: Callable[[Refused, int], None]) -> None:
        self._faults.append(listener)

    def check(self, targets: Sequence[Target], now: int) -> Refused | None:
        bad = [number for number, target in enumerate(targets, 1) if self.unreachable(target)]
        return Refused(f"move {bad[0]}: out of reach") if bad else None

    # ── by the test ──

    def finish(self, now: int, refused: Refused | None = None) -> None:
        ticket, self.ticket = Ticket(self.ticket), 0
        if self.braking:
            refused, self.braking = STOPPED, False
        if refused is None and self.target is not None:
            self.at = self.target
        for listener in self._finished:
            listener(ticket, refused, now)

    def trip(self, now: int, why: Refused = ESTOP) -> None:
        """An emergency stop, or another fault of the controller."""
        self.broken, self.held, self.braking = why, False, False
        if self.ticket:
            self.finish(now, why)
        for listener in self._faults:
            listener(why, now)


class FakeGripper:
    """A hand; `outcomes`: what the next grips do, True if it takes a part, then always True."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.outcomes: deque[bool | Refused] = deque()
        self.part = False
        self.force = 0.0
        self.state: Any = "OPENED"
        self.ticket = self.tickets = 0
        self.task = ""
        self.refuses: Refused | None = None
        self.sticks = False
        self.halts = 0
        self.started = 0
        self._finished: list[Finished] = []
        self._lost: list[Callable[[int], None]] = []

    def start_grip(self, now: int, *, timeout_ms: float = 0.0) -> Ticket | Refused:
        return self._start("grip", now)

    def start_release(self, now: int, *, timeout_ms: float = 0.0) -> Ticket | Refused:
        return self._start("release", now)

    def _start(self, task: str, now: int) -> Ticket | Refused:
        if self.refuses:
            return self.refuses
        self.calls.append(task)
        self.tickets += 1
        self.ticket, self.task, self.started = self.tickets, task, now
        return Ticket(self.ticket)

    def halt(self, now: int) -> None:
        self.halts += 1
        self.ticket = 0

    def status(self, now: int) -> HandStatus:
        return HandStatus(self.state, self.part, self.force)

    def on_finished(self, listener: Finished) -> None:
        self._finished.append(listener)

    def on_lost(self, listener: Callable[[int], None]) -> None:
        self._lost.append(listener)

    # ── by the test ──

    def finish(self, now: int) -> None:
        ticket, self.ticket = Ticket(self.ticket), 0
        refused = self._gripped() if self.task == "grip" else self._opened()
        for listener in self._finished:
            listener(ticket, refused, now)

    def _gripped(self) -> Refused | None:
        outcome = self.outcomes.popleft() if self.outcomes else True
        if outcome is True:
            self.part, self.state = True, "GRIPPING"
            return None
        self.state = "CLOSED"
        return outcome if isinstance(outcome, Refused) else Refused("MISSED: closed, no part")

    def _opened(self) -> Refused | None:
        if self.sticks:
            return Refused("the part sensor is still on")
        self.part, self.state = False, "OPENED"
        return None

    def lose(self, now: int) -> None:
        self.part = False
        for listener in self._lost:
            listener(now)


PART = DetectedObject(1, "part", 0.95, pose_of((0.0, 50.0, 490.0, 0.0, 0.0, 0.0)))


class FakeVision:
    """A camera at the flange; `answers`: of the next requests, then always one part."""

    takes_pictures = True

    def __init__(self) -> None:
        self.answers: deque[tuple[DetectedObject, ...] | Refused | None] = deque()
        self.always: tuple[DetectedObject, ...] | Refused | None = (PART,)
        self.requests: list[str] = []
        self.ticket = self.tickets = 0
        self.started = 0
        self.cancelled = 0
        self._listeners: list[ResultListener] = []

    def request(self, class_filter: str, now: int) -> Ticket | Refused:
        self.requests.append(class_filter)
        self.tickets += 1
        self.ticket, self.started = self.tickets, now
        return Ticket(self.ticket)

    def cancel(self, now: int) -> None:
        self.cancelled += 1
        self.ticket = 0

    def camera(self, flange: Pose) -> Pose:
        return flange

    def on_result(self, listener: ResultListener) -> None:
        self._listeners.append(listener)

    def finish(self, now: int) -> None:
        answer = self.answers.popleft() if self.answers else self.always
        ticket, self.ticket = Ticket(self.ticket), 0
        if answer is None:
            return  # lost on the way
        whole = answer if isinstance(answer, Refused) else FoundObjects(now, ticket, answer)
        for listener in self._listeners:
            listener(ticket, whole, now)


class FakePins:
    """Digital pins by name."""

    def __init__(self) -> None:
        self.levels: dict[Any, bool] = {}
        self.volts: dict[Any, float] = {}
        self.log: list[tuple[Any, bool]] = []
        self._listeners: list[Callable[[PinChange], None]] = []

    def digital_input(self, pin: Any, /) -> bool:
        return self.levels.get(pin, False)

    def digital_output(self, pin: Any, /) -> bool:
        return bool(dict(self.log).get(pin, False))

    def analog_input(self, channel: Any, now: int, /) -> float:
        return self.volts.get(channel, 0.0)

    def set_digital_output(self, pin: Any, value: bool, now: int, /) -> Refused | None:
        self.log.append((pin, value))
        return None

    def on_change(self, listener: Callable[[PinChange], None], /) -> None:
        self._listeners.append(listener)

    def set(self, pin: Any, value: bool, now: int) -> None:
        self.levels[pin] = value
        for listener in self._listeners:
            listener(PinChange(now, "DI", 0, value))


class Bench:
    """A manager and its doubles; `now` is their time."""

    def __init__(
        self,
        config: CycleConfig = CycleConfig(),  # noqa: B008
        safety: SafetyConfig = SafetyConfig(),  # noqa: B008
        *,
        pallet: PalletPattern | None = None,
        source: PalletPattern | None = None,
    ) -> None:
        self.arm, self.gripper = FakeArm(), FakeGripper()
        self.vision, self.pins = FakeVision(), FakePins()
        limits = PickPlaceSafety(safety, config)
        choice = TargetChoice(
            config, limits, arm=self.arm, reach=self.arm, finder=self.vision,
            pallet=pallet, source=source,
        )  # fmt: skip
        equipment = Equipment(self.arm, self.gripper, self.vision, self.pins)
        self.job = PickPlaceManager(config, limits, choice, equipment, self.arm)
        self.now = 0
        self.cycles: list[tuple[int, bool]] = []
        self.states: list[str] = []
        self.job.on_cycle(lambda number, success, now: self.cycles.append((number, success)))
        self.job.on_state(lambda old, new, now: self.states.append(new))

    @property
    def state(self) -> str:
        return str(self.status.state)

    @property
    def status(self) -> Any:
        return self.job.status(self.now)

    def devices(self) -> list[Any]:
        arm: list[Any] = [] if self.arm.held else [self.arm]
        return [each for each in (*arm, self.gripper, self.vision) if each.ticket]

    def wake(self, after: int = 0) -> None:
        """Lets time pass; no device ends anything by itself."""
        before, self.now = self.now, self.now + after
        advance([self.job], self.now, since=before)

    def step(self) -> bool:
        """Ends the ticket that is due next; False if nothing is under way."""
        due = [(each.started + TIME, each) for each in self.devices()]
        at = min((time for time, _ in due), default=None)
        wakes = self.job.next_wake()
        if at is None and wakes is None:
            return False
        if at is None or (wakes is not None and wakes < at):
            assert wakes is not None
            self.wake(max(wakes - self.now, 0))
            return True
        self.now = max(self.now, at)
        next(each for time, each in due if time == at).finish(self.now)
        self.wake()
        return True

    def run(self, until: Callable[[], bool] = lambda: False, most: int = 5000) -> None:
        """Runs until nothing is under way, or the condition is true."""
        for _ in range(most):
            if until() or not self.step():
                return
        raise AssertionError("the job does not come to an end")

    def run_to(self, state: str) -> None:
        self.run(lambda: self.state == state)
        assert self.state == state, f"{self.state}: {self.status.last_error}"

    def copy_state(self) -> Any:
        return msgspec.json.decode(msgspec.json.encode(snapshots.saved(self.job)))
