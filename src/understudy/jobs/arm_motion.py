"""Moves of an arm for jobs: one ticket per move, on a controller, simulated or REAL.

The controller reports every change of its status; a move has ended when it is at rest again. The
end is handled in `wake` at the same instant, because the controller is busy while it reports.
"""

import math
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from understudy.errors import Refused
from understudy.ports import ControllerStatus, Finished, Ticket
from understudy.ports.operation import Target
from understudy.ports.refusals import INHIBITED, NOT_CONNECTED, NOT_ENABLED
from understudy.space.pose import Pose
from understudy.units import MM, NS_PER_MS

WAITING = ("Hold", "Door", "Tool")
"""States of a controller that waits for the operator."""
NEAR = 1.0 * MM
"""A tool that rests farther from its target than this was moved by another command."""
LOOK = 50 * NS_PER_MS
"""Period of the check while a controller is neither moving nor idle."""
READ_LOOK = 5 * NS_PER_MS
LONGEST_READ = 5000 * NS_PER_MS
NOT_READ = Refused("the controller has not reported its inputs: M66 is answered at rest only")
STOPPED = Refused("the move was stopped")
MOVES = Refused("the arm makes another move")
AT_REST_ONLY = Refused("the robot must be at rest: it moves, holds or waits")


class MoveController(Protocol):
    """The part of `ports.controller.MotionController` that moves need."""

    def hold(self, now: int) -> Refused | None: ...

    def cycle_start(self, now: int) -> Refused | None: ...

    def stop(self, now: int) -> Refused | None: ...

    def tcp(self, now: int) -> Pose: ...

    def status(self, now: int) -> ControllerStatus: ...

    def on_status(self, listener: Callable[[ControllerStatus], None]) -> None: ...


class MotionStatus(Struct, frozen=True):
    """The move under way. `ticket`: 0 if there is none. `held`: it is interrupted by a hold."""

    ticket: int
    held: bool


class Saved(Struct):
    """The state of the moves in a snapshot. `stops`: of the controller at the start of the move.
    `due`: the time of the next check. `ready`: the controller could move at the last check.
    `rests`: since when the arm is at rest after its move, and its inputs are being read."""

    tickets: int = 0
    ticket: int = 0
    target: Pose | None = None
    stops: int = 0
    held: bool = False
    stopping: bool = False
    due: int | None = None
    ready: bool = False
    rests: int | None = None


def not_ready(status: ControllerStatus) -> Refused | None:
    """Why a controller takes no moves: not connected, emergency stop, alarm, drives off."""
    if not status.connected:
        return NOT_CONNECTED
    if status.error:
        return Refused(status.error_message, status.error_code)
    if status.inhibited:
        return INHIBITED
    return None if status.enabled else NOT_ENABLED


class ControllerMotion:
    """`ports.job_arm.ArmMotion`, and a component of the cell.

    ``move_to``: sends one move to the controller. ``flange``: its pose in the cell at a time.
    ``inputs_read``: whether the inputs of the controller were read since a time; a REAL controller
    reports them at rest only, and a move ends when they are known.
    """

    def __init__(
        self,
        controller: MoveController,
        move_to: Callable[[Target, int], Refused | None],
        flange: Callable[[int], Pose],
        inputs_read: Callable[[int], bool] = lambda since: True,
    ) -> None:
        self._inputs_read = inputs_read
        self._controller = controller
        self._move_to = move_to
        self._flange = flange
        self.state = Saved()
        self._finished: list[Finished] = []
        self._started: list[Callable[[Target, int], None]] = []
        self._faults: list[Callable[[Refused, int], None]] = []
        self._listens = False

    # ── moves ──

    def move(self, target: Target, now: int) -> Ticket | Refused:
        """Starts a move; refused while the arm moves, holds or waits."""
        state, status = self.state, self._controller.status(now)
        if state.ticket:
            return MOVES
        if refused := not_ready(status):
            return refused
        if status.moving or status.state in WAITING:
            return AT_REST_ONLY
        self.listen()
        stops = status.stops
        if refused := self._move_to(target, now):
            return refused
        state.tickets += 1
        state.ticket, state.target, state.stops = state.tickets, target.pose, stops
        state.held, state.due, state.ready, state.rests = False, now, True, None
        for listener in self._started:
            listener(target, now)
        return Ticket(state.ticket)

    def hold(self, now: int) -> Refused | None:
        if self.state.ticket:
            self.state.held = True
            return self._controller.hold(now)
        return None

    def resume(self, now: int) -> Refused | None:
        if self.state.ticket and self.state.held:
            if refused := self._controller.cycle_start(now):
                return refused
            self.state.held = False
        return None

    def stop(self, now: int) -> Refused | None:
        """Brakes along the path; the ticket ends with a refusal when the arm rests."""
        if not self.state.ticket:
            return None
        self.state.stopping, self.state.due = True, now
        return self._controller.stop(now)

    def at_rest(self, now: int) -> bool:
        """Whether the arm has come to rest, also after a stop."""
        status = self._controller.status(now)
        return not status.moving and status.state not in WAITING

    def unready(self, now: int) -> Refused | None:
        """Why the arm takes no moves; None if it does."""
        refused = not_ready(self._controller.status(now))
        return refused or (None if self._inputs_read(0) else NOT_READ)

    def flange(self, now: int) -> Pose:
        """The pose of the flange in the cell."""
        return self._flange(now)

    def tool(self, now: int) -> Pose:
        """The pose of the tool in the cell."""
        return self._controller.tcp(now)

    def on_finished(self, listener: Finished) -> None:
        self._finished.append(listener)

    def on_started(self, listener: Callable[[Target, int], None]) -> None:
        """Calls the listener with every move that the controller has taken."""
        self._started.append(listener)

    def on_fault(self, listener: Callable[[Refused, int], None]) -> None:
        """Calls the listener when the arm cannot move any more: emergency stop, alarm, drives off,
        connection lost. It does so also without a move under way."""
        self._faults.append(listener)

    def listen(self) -> None:
        """Subscribes to the controller: without listeners it has less to do."""
        if not self._listens:
            self._listens = True
            self._controller.on_status(self._status_changed)

    # ── component ──

    def next_wake(self) -> int | None:
        return self.state.due

    def wake(self, now: int) -> None:
        state = self.state
        if state.due is None or now < state.due:
            return
        state.due = None
        status = self._controller.status(now)
        fault = not_ready(status)
        if state.ticket:
            self._check(status, fault, now)
        if fault is not None and state.ready:
            state.ready = False
            for listener in self._faults:
                listener(fault, now)

    def busy(self) -> bool:
        return self.state.ticket != 0 or self.state.due is not None

    def status(self, now: int) -> MotionStatus:
        return MotionStatus(self.state.ticket, self.state.held)

    def restored(self) -> None:
        if self.state.ready or self.state.ticket:
            self.listen()

    # ── inside ──

    def _status_changed(self, status: ControllerStatus) -> None:
        state = self.state
        if not_ready(status) is None:
            state.ready = True
        elif state.ready:
            state.due = status.at
        if state.ticket:
            state.due = status.at

    def _check(self, status: ControllerStatus, fault: Refused | None, now: int) -> None:
        state = self.state
        if fault is not None:
            self._end(fault, now)
        elif status.state in WAITING and not state.stopping:
            return
        elif status.moving or status.state != "Idle":
            state.due = now + LOOK if status.state not in ("Run", "Idle") else None
        elif state.stopping or status.stops != state.stops:
            self._end(STOPPED, now)
        elif refused := self._elsewhere(now):
            self._end(refused, now)
        else:
            self._end_when_read(now)

    def _end_when_read(self, now: int) -> None:
        """Ends the move once the inputs were read at rest."""
        state = self.state
        state.rests = now if state.rests is None else state.rests
        if self._inputs_read(state.rests):
            self._end(None, now)
        elif now >= state.rests + LONGEST_READ:
            self._end(NOT_READ, now)
        else:
            state.due = now + READ_LOOK

    def _elsewhere(self, now: int) -> Refused | None:
        """The refusal of an arm that rests somewhere else than at the target of its move."""
        target = self.state.target
        if target is None:
            return None
        off = math.dist(self._controller.tcp(now)[:3], target[:3])
        if off <= NEAR:
            return None
        return Refused(f"the tool rests {off / MM:.1f} mm from its target: it was moved elsewhere")

    def _end(self, refused: Refused | None, now: int) -> None:
        ticket = Ticket(self.state.ticket)
        state = self.state
        state.ticket, state.target, state.held, state.stopping = 0, None, False, False
        for listener in self._finished:
            listener(ticket, refused, now)
