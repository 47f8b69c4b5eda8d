"""ToolChanger: changes the tool of an arm at its docks, step by step, verified by sensors.

It acts on events: the end of a move, a change of an input, of the controller's status, and the
deadline of a sensor. A step begins in `wake`, because those who report an event are busy then.
"""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from understudy.errors import Refused
from understudy.jobs.arm_motion import ControllerMotion
from understudy.jobs.tools.manager import (
    TRANSITIONS,
    WORKING,
    Change,
    Event,
    Go,
    Phase,
    Sense,
    Step,
    ToolManager,
    Use,
    event_after,
    outside,
    step,
)
from understudy.ports import Component, ControllerStatus, Finished, Ticket
from understudy.ports.hand import Hand
from understudy.ports.io import DevicePins, PinChange
from understudy.ports.job_arm import ArmMotion
from understudy.ports.jobs import JobSite
from understudy.ports.operation import Target
from understudy.ports.refusals import HAND_FULL
from understudy.ports.tools import ChangerSettings, ChangesTools
from understudy.space.transform import inverse, matrix
from understudy.units import nanoseconds

BUSY = Refused("a tool change is under way")
CANCELLED = "the tool change was cancelled"
WIDE = 5.0
"""A flange within this many tolerances beside a dock, and below its approach, is in the dock."""


class ChangeController(Protocol):
    """The part of a motion controller that a tool change needs."""

    def send_gcode(self, text: str, now: int) -> Refused | None: ...

    def on_status(self, listener: Callable[[ControllerStatus], None]) -> None: ...


class ChangeStatus(Struct, frozen=True):
    """The tool of a robot, and the change under way. `tool`: the active one; `target`: of the
    change under way, or of the last one that failed. `progress`: 0 to 1. `error`: why it has
    failed."""

    phase: Phase
    tool: int
    target: int
    progress: float
    error: str = ""


class State(Struct):
    """The state in snapshots. `due`: the step of the phase is begun or checked then. `begun`: it is
    begun. `moving`: the ticket of its move."""

    phase: Phase = "IDLE"
    change: Change | None = None
    tickets: int = 0
    begun: bool = False
    moving: int = 0
    due: int | None = None
    deadline: int | None = None
    error: str = ""


class ToolChanger:
    """`ports.modes.ToolsInHand` of an arm with a tool changer; a `TimedComponent` of the cell."""

    def __init__(
        self,
        manager: ToolManager,
        *,
        arm: ArmMotion,
        pins: DevicePins,
        controller: ChangeController,
        settings: ChangerSettings,
        hand: Hand | None = None,
    ) -> None:
        self._manager = manager
        self._hand = hand
        self._arm = arm
        self._pins = pins
        self._controller = controller
        self._settings = settings
        self.state = State()
        self._finished: list[Finished] = []
        self._listens = False
        pins.on_change(self._pin_changed)
        arm.on_finished(self._moved)
        arm.on_fault(self._arm_failed)

    # ── tools in hand ──

    def mounted(self, now: int) -> int:
        return self._manager.get_active_tool(now)

    def change(self, tool: int, now: int) -> Ticket | Refused:
        """Changes the tool at the docks; the ticket ends when the new one is verified. After a
        failure it starts again from the tool that the controller has."""
        state, change = self.state, self.planned(tool, now)
        if isinstance(change, Refused):
            return change
        self._listen()
        for pin in change.old.outputs:
            if refused := self._pins.set_digital_output(pin, False, now):
                return refused
        state.tickets += 1
        state.change, state.error = change, ""
        self._go("start", now)
        return Ticket(state.tickets)

    def planned(self, tool: int, now: int) -> Change | Refused:
        """The change that would begin now, or why none can."""
        if self.state.phase in WORKING:
            return BUSY
        if self._hand is not None and self._hand.status(now).part_detected:
            return HAND_FULL
        change = self._manager.change(tool, now)
        if isinstance(change, Refused):
            return change
        return self._disagreement(change.old.number, at_dock=True) or change

    def exchanged(self, tool: int, now: int) -> Refused | None:
        """A person has mounted this tool; refused if the sensors do not agree."""
        if self.state.phase in WORKING:
            return BUSY
        if refused := self._disagreement(tool):
            return refused
        return self._manager.set_active_tool(tool, now)

    def cancel(self, now: int) -> None:
        """Ends a change under way where it is; its listeners are not called."""
        if self.state.phase in WORKING:
            self._end_step()
            self._arm.stop(now)
            self._go("cancel", now)
            self.state.error, self.state.due = CANCELLED, None

    def on_finished(self, listener: Finished) -> None:
        self._finished.append(listener)

    def _disagreement(self, tool: int, *, at_dock: bool = False) -> Refused | None:
        """Why the sensors do not fit to a tool; ``at_dock``: a tool may lie under the flange."""
        locked = self._pins.digital_input(self._settings.locked)
        present = self._pins.digital_input(self._settings.present)
        if tool and not (locked and present):
            return Refused(f"the sensors of the tool changer report no locked tool: not T{tool}")
        if not tool and (locked or (present and not at_dock)):
            return Refused("the sensors of the tool changer report a tool at the flange")
        return None

    # ── time ──

    def next_wake(self) -> int | None:
        moments = [at for at in (self.state.due, self.state.deadline) if at is not None]
        return min(moments, default=None)

    def wake(self, now: int) -> None:
        state = self.state
        while state.due is not None and now >= state.due:
            state.due = None
            self._work(now)
        if state.deadline is not None and now >= state.deadline:
            current = self._step(now)
            problem = current.problem if isinstance(current, Sense) else "the controller is busy"
            self._fail(Refused(problem), now)

    def _work(self, now: int) -> None:
        """Begins the step of this phase, or checks whether it is done."""
        state = self.state
        current = self._step(now)
        if current is None:
            self._done(now)
        elif not state.begun:
            state.begun = True
            if refused := self._begin(current, now):
                self._fail(refused, now)
        elif not isinstance(current, Go) and self._is_met(current, now):
            self._done(now)

    def _begin(self, current: Step, now: int) -> Refused | None:
        state = self.state
        if isinstance(current, Go):
            return self._begin_move(current, now)
        state.deadline = now + nanoseconds(self._settings.timeout)
        state.due = now
        if isinstance(current, Use):
            return self._controller.send_gcode(f"M61 Q{current.tool}", now)
        if current.set is not None:
            return self._pins.set_digital_output(*current.set, now)
        return None

    def _begin_move(self, go: Go, now: int) -> Refused | None:
        tip = self._manager.apply_tlo(go.flange, go.tool)
        if isinstance(tip, Refused):
            return tip
        ticket = self._arm.move(Target(None, tip, go.line, go.speed), now)
        if isinstance(ticket, Refused):
            return ticket
        self.state.moving = int(ticket)
        return None

    def _is_met(self, current: Step, now: int) -> bool:
        if isinstance(current, Use):
            return self._manager.get_active_tool(now) == current.tool
        assert isinstance(current, Sense)
        return all(self._pins.digital_input(pin) == level for pin, level in current.levels)

    def _step(self, now: int) -> Step | None:
        """The step of this phase; None: there is nothing to do."""
        state = self.state
        assert state.change is not None
        return step(state.phase, state.change) if state.phase != "CLEAR" else self._clear(now)

    def _clear(self, now: int) -> Go | None:
        """A flange that is in a dock leaves it first, straight."""
        at, s = matrix(self._arm.flange(now)), self._settings
        for tool in self._manager.tools().values():
            if tool.dock is None:
                continue
            x, y, z = (inverse(matrix(tool.dock)) @ at)[:3, 3].tolist()
            beside = max(abs(x), abs(y)) <= WIDE * s.near
            if beside and -s.approach + s.near < z <= s.near:
                return Go(outside(tool.dock, s.approach), s.dock_speed, True, self.mounted(now))
        return None

    # ── phases ──

    def _done(self, now: int) -> None:
        state = self.state
        assert state.change is not None
        self._go(event_after(state.phase, state.change), now)
        if state.phase == "IDLE":
            state.due = None
            self._end(None, now)

    def _fail(self, refused: Refused, now: int) -> None:
        """Ends the change. A lock that was being switched goes back: a tool that did not come off
        stays clamped, and one that was not clamped stays in its dock."""
        current = self._step(now) if self.state.begun else None
        self._go("failed", now)
        if isinstance(current, Sense) and current.set is not None:
            pin, value = current.set
            self._pins.set_digital_output(pin, not value, now)
        self.state.error, self.state.due = refused.reason, None
        self._end(refused, now)

    def _go(self, event: Event, now: int) -> None:
        self._end_step()
        self.state.phase = TRANSITIONS[self.state.phase, event]
        self.state.due = now

    def _end_step(self) -> None:
        state = self.state
        state.begun, state.moving, state.deadline = False, 0, None

    def _end(self, refused: Refused | None, now: int) -> None:
        for listener in self._finished:
            listener(Ticket(self.state.tickets), refused, now)

    # ── listening ──

    def _listen(self) -> None:
        """Subscribes to the controller: without listeners it has less to do."""
        if not self._listens:
            self._listens = True
            self._controller.on_status(self._status_changed)

    def _pin_changed(self, change: PinChange) -> None:
        if change.bank == "DI" and self.state.deadline is not None:
            self.state.due = change.at

    def _status_changed(self, status: ControllerStatus) -> None:
        if self.state.deadline is not None:
            self.state.due = status.at

    def _moved(self, ticket: Ticket, refused: Refused | None, now: int) -> None:
        if self.state.moving and int(ticket) == self.state.moving:
            if refused is not None:
                self._fail(refused, now)
            else:
                self._done(now)

    def _arm_failed(self, refused: Refused, now: int) -> None:
        if self.state.phase in WORKING:
            self._fail(refused, now)

    # ── component ──

    def busy(self) -> bool:
        return self.state.phase in WORKING

    def status(self, now: int) -> ChangeStatus:
        state = self.state
        done = 1.0 if state.phase == "IDLE" else 0.0
        if state.phase in WORKING:
            done = WORKING.index(state.phase) / len(WORKING)
        target = state.change.new.number if state.change else self.mounted(now)
        return ChangeStatus(state.phase, self.mounted(now), target, done, state.error)

    def restored(self) -> None:
        if self.state.phase in WORKING:
            self._listen()


def tool_components(site: JobSite, device: ChangesTools | None) -> dict[str, Component]:
    arm, settings = site.arm, None if device is None else device.settings
    manager = ToolManager(
        table=arm.table,
        controller=arm.controller,
        settings=settings,
        feed_per_second=arm.feed_per_second,
    )
    if settings is None:
        return {"tools": manager}
    motion = ControllerMotion(arm.controller, arm.move_to, arm.flange)
    changer = ToolChanger(
        manager,
        arm=motion,
        pins=site.pins,
        controller=arm.controller,
        settings=settings,
        hand=site.find(Hand),
    )
    return {"tools": manager, "tool_motion": motion, "tool_change": changer}
