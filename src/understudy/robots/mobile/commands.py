"""Mobile robots at the operator's table: their map, one robot in detail, commands and tasks.

A command, a task and a hold reach the robot as messages of its backend do: it handles them at its
next tick and answers on NATS. What it would reject now is refused at once.
"""

from collections import deque
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, to_builtins

from understudy.errors import Refused
from understudy.operator.robots import OfRobot, Robots
from understudy.operator.table import Command
from understudy.ports import Component
from understudy.robots.mobile.fleet_interface import FleetView, HasFleetView, RequestKind
from understudy.units import DEG, seconds
from understudy.wire.pump import Pump

NO_FLEET = Refused("this cell has no mobile robots")
IN_ESTOP = Refused(
    "SAFETY_STOP_ACTIVE: the robot is in emergency stop; reset it before it gets a task"
)
"""A task of the backend waits in the robot's queue: a robot that an operator resets would then
drive at once, without another order."""
OPERATOR = "operator"
KEPT = 1000
"""Events of robots."""
MOST_AT_ONCE = 200
Metres = Annotated[float, Meta(ge=-1e6, le=1e6)]
Speed = Annotated[float, Meta(ge=0, le=1e3)]
Id = Annotated[str, Meta(min_length=1, max_length=256)]


class FleetCommand(Struct, frozen=True, forbid_unknown_fields=True):
    """A command of mobile robots, in the words of `command.request`: metres and radians."""

    robot: str
    command: Literal[
        "MOVE_VELOCITY", "MOVE_TO_POSE", "STOP", "RESET_MOTOR", "SET_SPEED_LIMIT",
        "EXECUTE_ACTION",
    ]  # fmt: skip
    parameters: dict[str, Any] = {}


class FleetTask(Struct, frozen=True, forbid_unknown_fields=True):
    """A task MOVE_TO_POINT: the robot asks for a route and drives along it."""

    robot: str
    x_m: Metres
    y_m: Metres
    yaw_deg: Annotated[float, Meta(ge=-1e6, le=1e6)] | None = None
    priority: Annotated[int, Meta(ge=-1000, le=1000)] = 0


class OfTask(Struct, frozen=True, forbid_unknown_fields=True):
    robot: str
    task: Id


class FleetTraffic(Struct, frozen=True, forbid_unknown_fields=True):
    """`hold`: true holds the robot where it is, or at `node` if that is given; false releases it.
    `max_speed_mps`: another speed limit, 0 for none."""

    robot: str
    hold: bool | None = None
    node: Id | None = None
    max_speed_mps: Speed | None = None


class FleetEvent(Struct, frozen=True):
    """An event that a robot has published, or the end of one of its tasks (`task.done`,
    `task.failed`). `reason`: why a task has failed, errorCode and errorMessage."""

    number: int
    time_s: float
    robot: str
    type: str
    text: str
    reason: str = ""


class FleetSince(Struct, frozen=True, forbid_unknown_fields=True):
    since: Annotated[int, Meta(ge=0)] = 0


class FleetCommands:
    """The mobile robots of a cell."""

    def __init__(self, view: FleetView, robots: Robots, pump: Pump) -> None:
        self._view = view
        self._robots = robots
        self._pump = pump
        self._events: deque[FleetEvent] = deque(maxlen=KEPT)
        self._count = 0
        view.on_event(self._note)

    def commands(self) -> list[Command]:
        events = f"events of mobile robots and ends of their tasks; the last {KEPT} are kept"
        reading = [
            Command(
                "fleet", "the map of the mobile robots: outlines, obstacles, markers",
                lambda _: self._map(), role="viewer", large=True,
            ),
            Command(
                "fleet_robot", "a mobile robot in detail", self._details, OfRobot, role="viewer"
            ),
            Command("fleet_events", events, self._since, FleetSince, role="viewer"),
        ]  # fmt: skip
        ordering = [
            Command("fleet_command", "a command to a mobile robot", self._command, FleetCommand),
            Command("fleet_task", "send a mobile robot to a place", self._task, FleetTask),
            Command("fleet_cancel_task", "end a task", self._cancel, OfTask),
            Command(
                "fleet_traffic", "hold or release a mobile robot, limit its speed", self._traffic,
                FleetTraffic,
            ),
        ]  # fmt: skip
        return reading + ordering

    # ── queries ──

    def _map(self) -> dict[str, Any]:
        return {**to_builtins(self._view.floor()), "link": self._view.link()}

    def _details(self, given: OfRobot) -> Any:
        view = self._of(given.robot)
        return view if isinstance(view, Refused) else view.details(given.robot, self._pump.now())

    def _since(self, given: FleetSince) -> dict[str, Any]:
        """The events after a number, the oldest first; ``lost``: how many were dropped."""
        fresh = [event for event in self._events if event.number > given.since]
        sent = fresh[:MOST_AT_ONCE]
        last = sent[-1].number if len(fresh) > len(sent) else self._count
        first = self._events[0].number if self._events else self._count + 1
        lost = max(0, min(first, self._count + 1) - given.since - 1)
        return {"events": sent, "last": last, "lost": lost, "more": len(fresh) - len(sent)}

    def _note(self, robot: str, type_: str, details: Mapping[str, Any], now: int) -> None:
        self._count += 1
        known = to_builtins(details)
        why = [str(known[key]) for key in ("errorCode", "errorMessage") if key in known]
        self._events.append(
            FleetEvent(
                self._count, seconds(now), robot, type_, _in_words(known), reason=": ".join(why)
            )
        )

    # ── orders ──

    def _command(self, given: FleetCommand) -> Any:
        payload = {"commandType": given.command, "parameters": given.parameters}
        moves = given.command not in ("STOP", "RESET_MOTOR", "SET_SPEED_LIMIT")
        return self._request(
            given.robot, "command.request", {**payload, "requestedBy": OPERATOR}, moves=moves
        )

    def _task(self, given: FleetTask) -> Any:
        view = self._of(given.robot)
        if isinstance(view, Refused):
            return view
        if view.details(given.robot, self._pump.now()).estop:
            return IN_ESTOP
        yaw = {} if given.yaw_deg is None else {"yaw": given.yaw_deg * DEG}
        payload = {
            "taskType": "MOVE_TO_POINT",
            "priority": given.priority,
            "moveToPoint": {"x": given.x_m, "y": given.y_m, **yaw},
        }
        return self._request(given.robot, "task.assign", payload, moves=True)

    def _cancel(self, given: OfTask) -> Any:
        return self._request(given.robot, "task.cancel", {"taskId": given.task})

    def _traffic(self, given: FleetTraffic) -> Any:
        if given.hold is None and given.max_speed_mps is None:
            return Refused("fleet_traffic: give hold or max_speed_mps")
        control: dict[str, Any] = {}
        if given.hold is False:
            control |= {"releaseHold": True, "targetSpeedMps": None}
        elif given.hold and given.node is not None:
            control["holdAtNodeId"] = given.node
        elif given.hold:
            control["targetSpeedMps"] = 0.0
        if given.max_speed_mps is not None:
            control["maxSpeedMps"] = given.max_speed_mps or None
        return self._request(given.robot, "traffic.control", control)

    def _request(
        self, name: str, kind: RequestKind, payload: Mapping[str, Any], *, moves: bool = False
    ) -> Any:
        view, robot = self._of(name), self._robots.find(name)
        if isinstance(view, Refused) or isinstance(robot, Refused):
            return view
        if moves and (refused := robot.motion_refusal("move_to")):
            return refused
        refused = self._pump.act(lambda now: view.request(name, kind, payload, now))
        return refused or robot.summary()

    def _of(self, robot: str) -> FleetView | Refused:
        """The fleet, if it has this robot."""
        found = self._robots.find(robot)
        if isinstance(found, Refused):
            return found
        if robot not in self._view.names():
            return Refused(f"{robot} ({found.kind}) is no mobile robot")
        return self._view


def fleet_commands(
    parts: Mapping[str, Component], robots: Robots, pump: Pump
) -> tuple[FleetCommands, ...]:
    """None in a cell without mobile robots."""
    view = fleet_in(parts)
    return () if view is None else (FleetCommands(view, robots, pump),)


def fleet_in(parts: Mapping[str, Component]) -> FleetView | None:
    """The mobile robots of a cell; None if it has none."""
    found = (part.fleet_view for part in parts.values() if isinstance(part, HasFleetView))
    return next(found, None)


def _in_words(details: Mapping[str, Any]) -> str:
    """The details of an event in one line; of a list the number of its entries."""
    shown = {key: value for key, value in details.items() if value is not None}
    return ", ".join(f"{key} {_word(value)}" for key, value in shown.items())


def _word(value: Any) -> str:
    match value:
        case list():
            return f"({len(value)})"
        case dict():
            return " ".join(_word(each) for each in value.values())
        case float():
            return f"{value:.3g}"
    return str(value)
