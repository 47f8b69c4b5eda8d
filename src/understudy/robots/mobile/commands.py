"""Mobile robots at the operator's table: their map, one robot in detail, commands and tasks.

A command, a task and a hold reach the robot as messages of its backend do: it handles them at its
next tick and answers on NATS. What it would reject now is refused at once.
"""

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, to_builtins

from understudy.config.limits import MOST_ROWS
from understudy.errors import Refused
from understudy.operator.robots import Robots
from understudy.operator.table import Command, command, commands_of, query
from understudy.ports import Component
from understudy.robots.mobile.fleet_interface import FleetView, HasFleetView, RequestKind
from understudy.units import DEG, seconds
from understudy.wire.pump import Pump

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell

IN_ESTOP = Refused(
    "SAFETY_STOP_ACTIVE: the robot is in emergency stop; reset it before it gets a task"
)
"""A task of the backend waits in the robot's queue: a robot that an operator resets would then
drive at once, without another order."""
OPERATOR = "operator"
KEPT = 1000
"""Events of robots."""
MOST_AT_ONCE = 200
MOST_TASKS = 500
Metres = Annotated[float, Meta(ge=-1e6, le=1e6)]
Speed = Annotated[float, Meta(ge=0, le=1e3)]
Id = Annotated[str, Meta(min_length=1, max_length=256)]
Heading = Annotated[float, Meta(ge=-1e6, le=1e6)]
Place = tuple[Metres, Metres, Heading | None]
Order = Literal["drive", "task", "stop", "hold", "release", "estop", "reset"]


CommandName = Literal[
    "MOVE_VELOCITY", "MOVE_TO_POSE", "STOP", "RESET_MOTOR", "SET_SPEED_LIMIT", "EXECUTE_ACTION"
]


def commands(cell: "OperatedCell") -> list[Command]:
    view = fleet_in(cell.components)
    return [] if view is None else commands_of(FleetCommands(view, cell.robots, cell.pump))


class FleetEvent(Struct, frozen=True):
    """An event that a robot has published, or the end of one of its tasks (`task.done`,
    `task.failed`). `reason`: why a task has failed, errorCode and errorMessage."""

    number: int
    time_s: float
    robot: str
    type: str
    text: str
    reason: str = ""


class FleetCommands:
    """The mobile robots of a cell."""

    def __init__(self, view: FleetView, robots: Robots, pump: Pump) -> None:
        self._view = view
        self._robots = robots
        self._pump = pump
        self._events: deque[FleetEvent] = deque(maxlen=KEPT)
        self._count = 0
        view.on_event(self._note)

    # ── queries ──

    @query(large=True)
    def fleet(self) -> dict[str, Any]:
        """The map of the mobile robots: outlines, obstacles, markers."""
        return {**to_builtins(self._view.floor()), "link": self._view.link()}

    @query()
    def fleet_robot(self, robot: str) -> Any:
        """A mobile robot in detail."""
        view = self._of(robot)
        return view if isinstance(view, Refused) else view.details(robot, self._pump.now())

    @query()
    def fleet_events(self, since: Annotated[int, Meta(ge=0)] = 0) -> dict[str, Any]:
        """Events of mobile robots and ends of their tasks; the last 1000 are kept.

        `since`: those after this number, the oldest first; `lost` in the answer: how many of them
        were dropped.
        """
        fresh = [event for event in self._events if event.number > since]
        sent = fresh[:MOST_AT_ONCE]
        last = sent[-1].number if len(fresh) > len(sent) else self._count
        first = self._events[0].number if self._events else self._count + 1
        lost = max(0, min(first, self._count + 1) - since - 1)
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

    @query()
    def fleet_tasks(self) -> dict[str, Any]:
        """The tasks of all mobile robots: the running ones and those that wait.

        At most 500 of them; `count` in the answer: how many there are.
        """
        tasks = list(self._view.tasks())
        shown = [{"robot": robot, **to_builtins(task)} for robot, task in tasks[:MOST_TASKS]]
        return {"tasks": shown, "count": len(tasks)}

    # ── orders ──

    @command()
    def fleet_order(
        self,
        robots: Annotated[list[Id], Meta(min_length=1, max_length=MOST_ROWS)],
        order: Order,
        places: list[Place] = [],  # noqa: B006 - msgspec copies it
    ) -> Any:
        """One order to several mobile robots.

        `places`: for drive and task, a place for each robot: metres, metres, and degrees or null.
        The answer has the number of robots that took the order, and who refused it.
        """
        if len(places) != (len(robots) if order in ("drive", "task") else 0):
            return Refused(
                f"fleet_order: {order} with {len(places)} places for {len(robots)} robots"
            )
        refused = []
        for number, robot in enumerate(robots):
            outcome = self._give(robot, order, places[number] if places else None)
            if isinstance(outcome, Refused):
                refused.append({"robot": robot, "reason": outcome.reason})
        return {"done": len(robots) - len(refused), "refused": refused}

    def _give(self, robot: str, order: Order, place: Place | None) -> Any:
        if place is not None:
            x, y, yaw = place
            if order == "task":
                return self.fleet_task(robot, x, y, yaw)
            heading = {} if yaw is None else {"yaw": yaw * DEG}
            return self.fleet_command(robot, "MOVE_TO_POSE", {"x": x, "y": y, **heading})
        if order == "stop":
            return self.fleet_command(robot, "STOP")
        if order in ("hold", "release"):
            return self.fleet_traffic(robot, hold=order == "hold")
        view = self._of(robot)
        action = "emergency_stop" if order == "estop" else "reset"
        return view if isinstance(view, Refused) else self._robots.do(robot, action)

    @command()
    def fleet_command(
        self,
        robot: str,
        command: CommandName,
        parameters: dict[str, Any] = {},  # noqa: B006 - msgspec copies it
    ) -> Any:
        """A command to a mobile robot.

        In the words of `command.request`: metres and radians.
        """
        payload = {"commandType": command, "parameters": parameters, "requestedBy": OPERATOR}
        moves = command not in ("STOP", "RESET_MOTOR", "SET_SPEED_LIMIT")
        return self._request(robot, "command.request", payload, moves=moves)

    @command()
    def fleet_task(
        self,
        robot: str,
        x_m: Metres,
        y_m: Metres,
        yaw_deg: Annotated[float, Meta(ge=-1e6, le=1e6)] | None = None,
        priority: Annotated[int, Meta(ge=-1000, le=1000)] = 0,
    ) -> Any:
        """Send a mobile robot to a place.

        A task MOVE_TO_POINT: the robot asks for a route and drives along it.
        """
        view = self._of(robot)
        if isinstance(view, Refused):
            return view
        if view.details(robot, self._pump.now()).estop:
            return IN_ESTOP
        yaw = {} if yaw_deg is None else {"yaw": yaw_deg * DEG}
        payload = {
            "taskType": "MOVE_TO_POINT",
            "priority": priority,
            "moveToPoint": {"x": x_m, "y": y_m, **yaw},
        }
        return self._request(robot, "task.assign", payload, moves=True)

    @command()
    def fleet_input(self, robot: str, input: Id, on: bool | None = None) -> Any:
        """Set a digital input of a simulated mobile robot.

        Without `on` a limit input follows its axis again; another one is off.
        """
        view, found = self._of(robot), self._robots.find(robot)
        if isinstance(view, Refused) or isinstance(found, Refused):
            return view
        refused = self._pump.act(lambda now: view.set_input(robot, input, on, now))
        return refused or found.summary()

    @command()
    def fleet_cancel_task(self, robot: str, task: Id) -> Any:
        """End a task."""
        return self._request(robot, "task.cancel", {"taskId": task})

    @command()
    def fleet_traffic(
        self,
        robot: str,
        hold: bool | None = None,
        node: Id | None = None,
        max_speed_mps: Speed | None = None,
    ) -> Any:
        """Hold or release a mobile robot, limit its speed.

        `hold`: true holds the robot where it is, or at `node` if that is given; false releases it.
        `max_speed_mps`: another speed limit, 0 for none.
        """
        if hold is None and max_speed_mps is None:
            return Refused("fleet_traffic: give hold or max_speed_mps")
        control: dict[str, Any] = {}
        if hold is False:
            control |= {"releaseHold": True, "targetSpeedMps": None}
        elif hold and node is not None:
            control["holdAtNodeId"] = node
        elif hold:
            control["targetSpeedMps"] = 0.0
        if max_speed_mps is not None:
            control["maxSpeedMps"] = max_speed_mps or None
        return self._request(robot, "traffic.control", control)

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


def fleet_in(parts: Mapping[str, Component]) -> FleetView | None:
    """The mobile robots of a cell; None if it has none."""
    found = (part.seen_together for part in parts.values() if isinstance(part, HasFleetView))
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
