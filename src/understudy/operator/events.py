"""What happened, with a number each: states, alarms, weld phases, faults, ends of programs.

A controller tells of itself; the other robots are looked at whenever somebody asks. The log is the
desk's own and in no snapshot.
"""

from collections import deque
from collections.abc import Callable
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from understudy.operator.advice import advice_on
from understudy.operator.robots import Robot, Robots
from understudy.operator.table import Command
from understudy.ports import ControllerStatus
from understudy.simulation.cell import Cell
from understudy.simulation.faults import FAULTS
from understudy.simulation.scenario import Scenario
from understudy.units import seconds

KEPT = 2000
MOST_AT_ONCE = 500

Kind = Literal["state", "alarm", "welder", "collision", "program", "fault", "mode", "message"]
Moment = Callable[[int], int]
"""From the time that a controller knows to the cell's."""


class Event(Struct, frozen=True):
    """`what_to_do`: of an alarm, in words for the operator."""

    number: int
    time_s: float
    kind: Kind
    robot: str
    text: str
    code: int = 0
    what_to_do: str = ""


class Since(Struct, frozen=True, forbid_unknown_fields=True):
    since: Annotated[int, Meta(ge=0)] = 0


class EventLog:
    """Bounded; numbers go on counting."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=KEPT)
        self._count = 0

    def note(
        self, kind: Kind, robot: str, text: str, now: int, *, code: int = 0, what_to_do: str = ""
    ) -> None:
        self._count += 1
        at = seconds(now)
        self._events.append(Event(self._count, at, kind, robot, text, code, what_to_do))

    def since(self, number: int) -> dict[str, Any]:
        """Those after this number, the oldest first; ``lost``: how many are forgotten already."""
        first = self._events[0].number if self._events else self._count + 1
        fresh = [event for event in self._events if event.number > number]
        sent = fresh[:MOST_AT_ONCE]
        last = sent[-1].number if sent else self._count
        lost = max(0, min(first, self._count + 1) - number - 1)
        return {"events": sent, "last": last, "lost": lost, "more": len(fresh) - len(sent)}


class Told:
    """Turns the status of one controller into events, when something in it is new."""

    def __init__(
        self,
        log: EventLog,
        robot: str,
        moment: Moment = lambda now: now,
        reads: Callable[[str], str] = lambda error: error,
    ) -> None:
        self._log = log
        self._robot = robot
        self._moment = moment
        self._reads = reads
        self._state = ""
        self.error = ""

    def __call__(self, status: ControllerStatus) -> None:
        error = self._reads(status.error_message)
        self.tell(status.state, error, status.error_code, status.at)

    def tell(self, state: str, error: str, code: int, now: int) -> None:
        at = self._moment(now)
        if state != self._state:
            before, self._state = self._state, state
            if before:
                self._log.note("state", self._robot, f"{before} → {state}", at)
        if error != self.error:
            self.error = error
            if error:
                advice = advice_on(code, error)
                self._log.note("alarm", self._robot, error, at, code=code, what_to_do=advice)


class Watch:
    """Fills the log from the parts of a cell."""

    def __init__(self, cell: Cell, robots: Robots, log: EventLog, now: Callable[[], int]) -> None:
        self._log = log
        self._now = now
        fault_source = cell.parts["scenario"]
        assert isinstance(fault_source, Scenario)
        self._fault_source = fault_source
        self._struck: dict[str, int] = {}
        self._looked: list[tuple[Robot, Told]] = []
        for robot in robots:
            self._attend(robot)

    def commands(self) -> list[Command]:
        doc = "what happened since a number: at most 500 at once, the last 2000 are kept"
        return [Command("events", doc, self._events, Since, role="viewer")]

    def attend_real(self, robot: Robot, moment: Moment) -> None:
        """A controller that has just taken the simulated one's place."""
        if robot.real is not None and hasattr(robot.real.controller, "on_status"):
            told = Told(self._log, robot.name, moment, robot.real.in_file)
            robot.real.controller.on_status(told)

    def _attend(self, robot: Robot) -> None:
        part, name = robot.simulated.controller, robot.name
        told = Told(self._log, name, reads=robot.simulated.in_file)
        if hasattr(part, "on_status"):
            part.on_status(told)
        else:
            self._looked.append((robot, told))
        if (welder := getattr(part, "parts", {}).get("welder")) is not None:
            welder.on_phase(lambda phase, now: self._phase(told, name, welder, phase, now))
        if (watch := getattr(part, "parts", {}).get("collision")) is not None:
            watch.on_collision(
                lambda contact: self._log.note("collision", name, contact.told(), contact.at)
            )
        if robot.simulated.program is not None:
            robot.simulated.program.on_end(
                lambda text, now: self._log.note("program", name, text, now)
            )

    def _phase(self, told: Told, robot: str, welder: Any, phase: str, now: int) -> None:
        """A fault is an alarm, unless the controller has told it as its own."""
        if phase != "Fault" or welder.reason in told.error:
            self._log.note("welder", robot, phase, now)
            return
        advice = advice_on(0, welder.reason)
        self._log.note("alarm", robot, f"weld fault: {welder.reason}", now, what_to_do=advice)

    def _events(self, given: Since) -> dict[str, Any]:
        self.look(self._now())
        return self._log.since(given.since)

    def look(self, now: int) -> None:
        """At the robots that do not tell of themselves, and at the scenario's rules."""
        for robot, told in self._looked:
            how = robot.condition()
            told.tell(how.state, how.error, how.code, now)
        for name, count in self._fault_source.status(now).items():
            rule = self._fault_source.rule(name)
            if FAULTS[rule.fault].how == "brought" and count.strikes > self._struck.get(name, 0):
                self._log.note("fault", rule.on, f"rule {name}: {rule.fault}", now)
            self._struck[name] = count.strikes
