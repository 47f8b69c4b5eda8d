"""Gives the orders of a demo: rounds of all robots, faults, and what puts the cell back."""

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from understudy.chance import draw
from understudy.config.files import ShippedClients
from understudy.errors import Refused
from understudy.jobs.demo.section import Break, Config
from understudy.ports.hmi import Later
from understudy.simulation.engine import SimulationEngine
from understudy.units import nanoseconds
from understudy.wire.connection import Event

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell
    from understudy.space.transform import Array

log = logging.getLogger(__name__)

PERIOD_SECONDS = 0.25
OWN_COMMANDS = ("break_something", "mend", "run_demo", "put_parts_back", "send_line")
"""Commands to the demo itself: the loop does not leave a robot alone because of them."""


class Given(dict[str, Any]):
    """Parameters of a command that the demo gives itself: it hears of all commands, and must
    tell them from those of others."""


@dataclass
class Round:
    """Where a robot is in its orders. `step`: the next order. `moved`: time of the cell when it was
    last seen at work. `free_at`: wall time from which on the demo may use it. `left`: orders that a
    broken robot still gets, so that its fault shows."""

    step: int = 0
    moved: int = 0
    free_at: float = 0.0
    left: int = 0


@dataclass
class Broken:
    """What is broken, and since when in wall time."""

    row: Break
    since: float
    robot: str = field(init=False)

    def __post_init__(self) -> None:
        self.robot = self.row.on.partition(".")[0]


class Director:
    """Acts on a timer of the event loop. `wires`: the clients of each endpoint that has some."""

    def __init__(
        self,
        cell: "OperatedCell",
        config: Config,
        wires: Mapping[str, ShippedClients],
    ) -> None:
        self.config = config
        self.runs = config.runs
        self.broken: Broken | None = None
        self._cell = cell
        self._wires = wires
        self._rounds = {name: Round() for name in config.loop}
        self._count = 0
        self._parts: dict[str, Array] = {}
        self._touched: float | None = None
        """Wall time of the last command that was not the demo's own; None: there was none since the
        cell was put back."""
        self._error_since: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        cell.on_table.append(lambda table: table.on_change.append(self._commanded))
        cell.notes.append(self._heard)
        cell.on_stop.append(self._stop)
        self._schedule()

    # ── the rounds ──

    def held(self) -> dict[str, float]:
        """Robots that the loop leaves alone, and the seconds until it goes on with them."""
        now = time.monotonic()
        left = {name: each.free_at - now for name, each in self._rounds.items()}
        return {name: seconds for name, seconds in left.items() if seconds > 0.0}

    def run(self, on: bool) -> None:
        self.runs = on
        for each in self._rounds.values():
            each.free_at = 0.0

    def _schedule(self) -> None:
        self._timer = self._cell.loop.call_later(PERIOD_SECONDS, self._tick)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self) -> None:
        self._schedule()
        now, rate = self._cell.pump.now(), self._cell.cell.clock_state.running_rate
        if isinstance(rate, str) or now == 0:
            return  # in lock-step, or before time runs
        if not self._parts:
            self._remember_parts(now)
        self._put_back_in_time(now)
        if self.runs and rate > 0.0:
            for name, each in self._rounds.items():
                if not self._busy(name, each, now):
                    self._next_order(name, each, now)

    def _busy(self, name: str, each: Round, now: int) -> bool:
        robot = self._cell.robots.find(name)
        if isinstance(robot, Refused) or robot.real is not None:
            return True
        if robot.under_way() or robot.job_refusal() is not None:
            each.moved = now
            return True
        if self.broken is not None and self.broken.robot == name and each.left == 0:
            return True  # the round in which the fault shows is over
        stands = now - each.moved >= nanoseconds(self.config.rest_s)
        return not stands or time.monotonic() < each.free_at

    def _next_order(self, name: str, each: Round, now: int) -> None:
        """A refused order is left out: its turn comes again in the next round."""
        orders = self.config.loop[name]
        order = orders[each.step % len(orders)]
        each.step = (each.step + 1) % len(orders)
        each.left = max(0, each.left - 1)
        refused = self._order(order.command, robot=name, **order.parameters)
        if not refused and not order.at_once:
            each.moved = now

    def _order(self, command: str, **parameters: Any) -> bool:
        """Gives an order; whether it was refused at once. A later refusal is in the log."""
        answer = self._cell.table.call(command, Given(parameters), "operator")
        if isinstance(answer, Later):
            answer.then(lambda late: _log_refusal(command, late))
        _log_refusal(command, answer)
        return isinstance(answer, Refused)

    # ── orders of operators and clients ──

    def _commanded(self, name: str, parameters: Mapping[str, Any]) -> None:
        """An operator has given an order: to a robot, or to the whole cell."""
        if name in OWN_COMMANDS:
            self._touched = time.monotonic()
        elif not isinstance(parameters, Given):
            self._leave_alone(str(parameters.get("robot") or ""))

    def _heard(self, event: Event) -> None:
        """A client has sent something: the loop leaves its robot alone for a while. On a wire
        without status requests it does so from the connection on, so that the program of the demo
        has ended when the first bytes come."""
        wire = self._wires.get(event.endpoint)
        if wire is None:
            return
        robot = event.endpoint.partition(".")[0]
        if event.kind == "!" and event.data == b"open" and not wire.status:
            self._take(robot)
        if event.kind != ">":
            return
        if event.data.decode("latin-1").strip() in ("", *wire.status):
            return
        if event.address is not None:  # robot.NAME.…, behind a broker
            robot = event.address[0].split(".")[1] if "." in event.address[0] else ""
        self._take(robot)

    def _take(self, robot: str) -> None:
        """Leaves a robot to its client."""
        if robot in self._rounds:
            if self.runs and robot not in self.held():
                self._cell.loop.call_soon(self._give_way, robot)
            self._leave_alone(robot)

    def _give_way(self, robot: str) -> None:
        """Ends the program of the demo, so that the lines of the client are not behind it."""
        found = self._cell.robots.find(robot)
        if not isinstance(found, Refused) and found.side.program is not None:
            self._order("stop_program", robot=robot)

    def _leave_alone(self, robot: str) -> None:
        now = time.monotonic()
        self._touched = now
        for name, each in self._rounds.items():
            if robot in ("", name):
                each.free_at, each.step = now + self.config.hold_s, 0

    # ── faults ──

    def break_something(self, name: str) -> Refused | None:
        """Injects the fault of this name; without one the next of a random order, which is the same
        for every run of a seed."""
        if self.broken is not None:
            return Refused(f"{self.broken.row.name} is broken already: mend it first")
        rows = {row.name: row for row in self.config.breaks}
        if not rows or (name and name not in rows):
            return Refused(f"there is no break {name!r}; allowed: {', '.join(rows) or 'none'}")
        row = rows[name or self._drawn(list(rows))]
        answer = self._cell.table.call("inject", Given(fault=row.fault, on=row.on), "operator")
        if isinstance(answer, Refused):
            return answer
        self.broken = Broken(row, time.monotonic())
        found = self._rounds.get(self.broken.robot)
        if found is not None:
            if row.restart:
                self._order("stop_program", robot=self.broken.robot)
                found.step, found.left = 0, len(self.config.loop[self.broken.robot])
            else:
                found.left = 0
            found.free_at = 0.0
        return None

    def _drawn(self, names: list[str]) -> str:
        """All names in a random order, then again."""
        turn, place = divmod(self._count, len(names))
        self._count += 1
        seed = self._cell.config.head.seed
        return sorted(names, key=lambda name: draw(seed, f"demo.{name}", turn))[place]

    def mend(self) -> None:
        """Clears what is broken: its robot begins its round again. With nothing broken that the
        demo knows of, the whole cell is reset."""
        broken, self.broken = self.broken, None
        self._order("reset", **({} if broken is None else {"robot": broken.robot}))
        self._order("clear_collisions")
        for name, each in self._rounds.items():
            if broken is None or broken.robot == name:
                each.step, each.free_at = 0, 0.0

    # ── the cell as it was at its start ──

    def start_again(self) -> None:
        """Mends the cell, lets time run, and loads the programs and the environment of the cell
        file again."""
        self._touched = None
        self._order("rate", rate=1.0)
        self._order("start")
        self.mend()
        if self._cell.environment.edits.shown()["undo"]:
            self._order("reload_environment")
        for robot in self._cell.robots:
            named = self._cell.config.robots[robot.name].program
            program = robot.simulated.program
            if named is not None and program is not None and program.text != named.text:
                self._order("load_program", robot=robot.name, text=named.text, name=named.name)
        self.runs = self.config.runs

    def _put_back_in_time(self, at: int) -> None:
        """A fault of the demo is mended after `mend_s`, another one if no visitor gave an order
        for as long; what visitors have changed is put back after `idle_s`."""
        now, engine = time.monotonic(), self._cell.components["engine"]
        assert isinstance(engine, SimulationEngine)
        if engine.state(at) != "ERROR" or self.broken is not None:
            self._error_since = None
        elif self._error_since is None:
            self._error_since = now
        if self.broken is not None and now - self.broken.since > self.config.mend_s:
            self.mend()
        quiet = self._touched is None or now - self._touched > self.config.mend_s
        in_error = self._error_since is not None and now - self._error_since > self.config.mend_s
        gone = self._touched is not None and now - self._touched > self.config.idle_s
        if gone or (in_error and quiet):
            self.start_again()

    def _remember_parts(self, now: int) -> None:
        parts = self._cell.workpieces
        if parts is not None:
            self._parts = {name: parts.place(name, now) for name in parts.names()}

    def put_parts_back(self) -> Refused | None:
        """Puts every part that no robot holds where it was at the start, the lowest first."""
        parts = self._cell.workpieces
        if parts is None:
            return Refused("this cell has no parts")
        there = set(parts.names())
        for name, place in sorted(self._parts.items(), key=lambda each: float(each[1][2, 3])):
            if name in there and parts.within_flange(name) is None:
                self._cell.pump.act(partial(parts.move, name, place))
        return None


def _log_refusal(command: str, answer: Any) -> None:
    if isinstance(answer, Refused):
        log.debug("demo: %s is refused: %s", command, answer.reason)
