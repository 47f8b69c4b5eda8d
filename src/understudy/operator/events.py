"""The event log: states, alarms, events of devices, faults, ends of programs, numbered in order.

Controllers and devices report their events themselves; the other robots are compared with their
last state whenever the log is queried. The log belongs to the operator and is in no snapshot.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct, structs

from understudy.operator.robots import Robot, Robots
from understudy.operator.table import Command, commands_of, query
from understudy.ports import ControllerStatus
from understudy.ports.controller import ReportsStatus
from understudy.ports.device import Device, DeviceEvent, ReportsEvents
from understudy.ports.operation import ReportsMessages, components_of
from understudy.simulation.cell import Cell
from understudy.simulation.collision.contact import Contact, ReportsContacts
from understudy.simulation.scenario import Scenario
from understudy.units import seconds

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell

KEPT = 2000
MOST_AT_ONCE = 500

CellTime = Callable[[int], int]
"""From the time of a controller to the time of the cell."""


def commands(cell: "OperatedCell") -> list[Command]:
    return commands_of(cell.events)


class Event(Struct, frozen=True):
    """One row of the log.

    `kind`: state, alarm, collision, program, fault, mode, message, or the kind of a device.
    `what_to_do`: advice for the operator about an alarm.
    """

    number: int
    time_s: float
    kind: str
    robot: str
    text: str
    code: int = 0
    what_to_do: str = ""


class EventLog:
    """The last events; their numbers count on when old ones are dropped."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=KEPT)
        self._count = 0
        self.on_note: list[Callable[[], None]] = []
        """Called after each event."""

    def note(
        self, kind: str, robot: str, text: str, now: int, *, code: int = 0, what_to_do: str = ""
    ) -> None:
        self._count += 1
        at = seconds(now)
        self._events.append(Event(self._count, at, kind, robot, text, code, what_to_do))
        for listener in self.on_note:
            listener()

    def since(self, number: int) -> dict[str, Any]:
        """The events after this number, the oldest first; ``lost``: how many were dropped."""
        first = self._events[0].number if self._events else self._count + 1
        fresh = [event for event in self._events if event.number > number]
        sent = fresh[:MOST_AT_ONCE]
        last = sent[-1].number if sent else self._count
        lost = max(0, min(first, self._count + 1) - number - 1)
        return {"events": sent, "last": last, "lost": lost, "more": len(fresh) - len(sent)}


class StatusEvents:
    """Turns changes in the status of one controller into events."""

    def __init__(
        self,
        log: EventLog,
        robot: Robot,
        cell_time: CellTime = lambda now: now,
        in_file: Callable[[str], str] = lambda error: error,
    ) -> None:
        self._log = log
        self._robot = robot
        self._cell_time = cell_time
        self._in_file = in_file
        self._state = ""
        self.error = ""

    def __call__(self, status: ControllerStatus) -> None:
        error = self._in_file(status.error_message)
        self.update(status.state, error, status.error_code, status.at)

    def update(self, state: str, error: str, code: int, now: int) -> None:
        at, name = self._cell_time(now), self._robot.name
        if state != self._state:
            before, self._state = self._state, state
            if before:
                self._log.note("state", name, f"{before} → {state}", at)
        if error != self.error:
            self.error = error
            if error:
                advice = advice_on(code, error, self._robot.devices.values())
                self._log.note("alarm", name, error, at, code=code, what_to_do=advice)


class EventSources:
    """Connects the parts of a cell to the log."""

    def __init__(self, cell: Cell, robots: Robots, log: EventLog, now: Callable[[], int]) -> None:
        self._log = log
        self._now = now
        fault_source = cell.components["scenario"]
        assert isinstance(fault_source, Scenario)
        self._fault_source = fault_source
        self._acted: dict[str, int] = {}
        self._polled: list[tuple[Robot, StatusEvents]] = []
        self._watches: dict[str, ReportsContacts] = {}
        self._contact_texts: dict[tuple[str, str, str], str] = {}
        for robot in robots:
            self._connect(robot)
        for name, part in cell.components.items():
            if "." not in name and isinstance(part, ReportsEvents):
                self._connect_device(part, name, name, None)

    @query()
    def events(self, since: Annotated[int, Meta(ge=0)] = 0) -> dict[str, Any]:
        """Events after a number: at most 500 per answer, the last 2000 are kept."""
        self.poll(self._now())
        return self._log.since(since)

    def connect_real(self, robot: Robot, cell_time: CellTime) -> None:
        """Connects the controller of a robot that has just become REAL."""
        if robot.real is not None and isinstance(robot.real.controller, ReportsStatus):
            events = StatusEvents(self._log, robot, cell_time, robot.real.in_file)
            robot.real.controller.on_status(events)
            for kind, device in robot.real.devices.items():
                if isinstance(device, ReportsEvents):
                    self._connect_device(device, kind, robot.name, events, cell_time)

    def _connect(self, robot: Robot) -> None:
        part, name = robot.simulated.controller, robot.name
        events = StatusEvents(self._log, robot, in_file=robot.simulated.in_file)
        if isinstance(part, ReportsStatus):
            part.on_status(events)
        else:
            self._polled.append((robot, events))
        for kind, device in robot.devices.items():
            if isinstance(device, ReportsEvents):
                self._connect_device(device, kind, name, events)
        for own in components_of(part).values():
            if isinstance(own, ReportsContacts):
                self._connect_watch(own, robot)
        if isinstance(part, ReportsMessages):
            part.on_message(lambda text, now: self._log.note("message", name, text, now))
        if robot.simulated.program is not None:
            robot.simulated.program.on_end(
                lambda text, now: self._log.note("program", name, text, now)
            )

    def _connect_watch(self, watch: ReportsContacts, robot: Robot) -> None:
        """The text of a contact is kept: a later run has other lines."""
        self._watches[robot.name] = watch

        def record(contact: Contact) -> None:
            program = robot.simulated.program
            if program is not None and not program.under_way():
                contact = structs.replace(contact, line=0)  # it is in no file
            text = robot.simulated.in_file(contact.text())
            self._contact_texts[robot.name, *contact.names] = text
            self._log.note("collision", robot.name, text, contact.at, what_to_do=CONTACT_ADVICE)

        watch.on_collision(record)

    @query()
    def contacts(self) -> list[dict[str, str]]:
        """Contacts that were not cleared, ended ones too, with advice."""
        return [
            {
                "robot": name,
                "link": contact.link,
                "object": contact.object,
                "text": self._contact_texts.get((name, *contact.names), contact.text()),
                "what_to_do": CONTACT_ADVICE,
            }
            for name, watch in self._watches.items()
            for contact in watch.uncleared()
        ]

    def _connect_device(
        self,
        device: ReportsEvents,
        kind: str,
        robot: str,
        of_robot: StatusEvents | None,
        cell_time: CellTime = lambda at: at,
    ) -> None:
        """An alarm of a device is an alarm, unless the controller has reported it as its own."""

        def record(event: DeviceEvent) -> None:
            at = cell_time(event.at)
            if not event.alarm or (of_robot is not None and event.alarm in of_robot.error):
                self._log.note(kind, robot, event.text, at)
                return
            advice = device.advice(event.alarm) or advice_on(0, event.alarm)
            self._log.note("alarm", robot, event.alarm, at, what_to_do=advice)

        device.on_event(record)

    def poll(self, now: int) -> None:
        """Records what has changed in robots that report nothing, and rules that have acted."""
        for robot, events in self._polled:
            if robot.real is not None and isinstance(robot.real.controller, ReportsStatus):
                continue
            how = robot.condition()
            events.update(how.state, how.error, how.code, now)
        for name, count in self._fault_source.status(now).items():
            rule = self._fault_source.rule(name)
            injected = self._fault_source.declared(name).how == "brought"
            if injected and count.strikes > self._acted.get(name, 0):
                self._log.note("fault", rule.on, f"rule {name}: {rule.fault}", now)
            self._acted[name] = count.strikes


# ── advice on alarms, for the operator ──────────────────────────────────────────────────────────

ADVICE_BY_CODE: Mapping[int, str] = {
    1: "A limit switch was hit: jog away from it, then reset and home.",
    2: "The target lies outside an axis's limits: correct the line, or jog back, then reset.",
    3: "The controller was reset while it moved: its position may be lost; reset and home.",
    5: "The probe met nothing: check probe and part, then reset.",
    9: "The controller is locked: reset it, then enable the drives.",
    10: "Release the emergency stop when the cell is safe, then reset; arms need their drives on.",
    17: "A drive has tripped: check motor and cable, then reset and enable the drives.",
    33: "The tool cannot get there: correct the target, the tool or the configuration of the arm.",
    38: "There is no such tool: correct the T word, or add the tool to the cell.",
}
ADVICE_BY_WORD: Mapping[str, str] = {
    "emergency stop": ADVICE_BY_CODE[10],
    "connect": "The connection to the controller is down: check cable and address.",
    "not enabled": "Enable the drives first.",
}
CONTACT = "collides with"
CONTACT_ADVICE = (
    "The robot touched something: look at the red bodies, jog away slowly, correct the program, "
    "then clear the collision."
)
OTHER_ADVICE = "Read the message, correct the cause, then reset."


def advice_on(code: int, text: str, devices: Iterable[Device] = ()) -> str:
    """The advice of the device whose alarm it is; else by the error code, else by a word of the
    message."""
    for device in devices:
        if isinstance(device, ReportsEvents) and (advice := device.advice(text)):
            return advice
    words = text.lower()
    if CONTACT in words:  # the controller reports it as a limit
        return CONTACT_ADVICE
    if code in ADVICE_BY_CODE:
        return ADVICE_BY_CODE[code]
    return next((advice for word, advice in ADVICE_BY_WORD.items() if word in words), OTHER_ADVICE)
