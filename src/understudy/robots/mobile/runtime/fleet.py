"""The runtime of all mobile robots of a process, REAL or MOCK: one timed part."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from understudy.errors import Refused
from understudy.ports import State, WireMessage
from understudy.robots.mobile.config.layout import Layout
from understudy.robots.mobile.fleet_interface import (
    FleetColumns,
    FleetListener,
    FleetRobot,
    RequestKind,
)
from understudy.robots.mobile.hardware_interface import Rests, TimedHardware
from understudy.robots.mobile.runtime.ids import BOOT, robot_key, uuid_text
from understudy.robots.mobile.runtime.messages import TO_ROBOT, kind_of
from understudy.robots.mobile.runtime.modules import Module
from understudy.robots.mobile.runtime.overview import Drawn, columns_of, drawn_of, reading_of
from understudy.robots.mobile.runtime.post import Post, SavedPost
from understudy.robots.mobile.runtime.robot import Robot
from understudy.robots.mobile.runtime.routes import Planner
from understudy.robots.mobile.runtime.ticker import Delivery, SavedTicker, Ticker
from understudy.units import LATEST

INBOX = 1024
"""Messages that may wait for the next tick; twice as many as robots, if these are more."""
ANSWERS = 4
"""Confirmed messages that a message of the backend causes: an ack and its event, twice or more."""


@dataclass(frozen=True, slots=True)
class FleetStatus:
    """`waiting`: messages that the broker has not confirmed; `given_up`: too many waited."""

    robots: int
    connected: bool
    waiting: int
    given_up: int


class SavedFleet(Struct, forbid_unknown_fields=True):
    post: SavedPost
    tickers: list[SavedTicker]
    ended: bool


class Fleet:
    """`ports.TimedComponent` and `ports.mobile.FleetLink`.

    ``run_id`` and ``epoch`` (nanoseconds since 1970 at the time 0) are part of every message;
    ``seeds``: of the robots, for `simulation.started`; ``planner``: finds routes if no backend
    does.
    """

    def __init__(
        self, layout: Layout, hardware: TimedHardware, *, run_id: str, epoch: int,
        seeds: Sequence[int | None] = (), planner: Planner | None = None,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:  # fmt: skip
        count = len(layout.robots)
        self._layout = layout
        self._hardware = hardware
        self._rests = hardware if isinstance(hardware, Rests) else None
        self._post = Post(count, run_id=run_id, epoch=epoch, log=log)
        self._seeds = seeds or (None,) * count
        rates = sorted({robot.runtime.tick_hz for robot in layout.robots})
        groups = [
            [row for row, robot in enumerate(layout.robots) if robot.runtime.tick_hz == rate]
            for rate in rates
        ]
        self._tickers = [
            Ticker(layout, rows, hardware, self._post, planner, self._take_scans) for rows in groups
        ]
        self._places = {
            row: (ticker, place)
            for ticker, rows in zip(self._tickers, groups, strict=True)
            for place, row in enumerate(rows)
        }
        self._capacity = max(INBOX, 2 * count)
        self._ended = False

    @property
    def layout(self) -> Layout:
        return self._layout

    def robot(self, row: int) -> Robot:
        """A robot by its row in the layout."""
        ticker, place = self._places[row]
        return ticker.robots[place]

    def hold(self, row: int, held: bool, now: int) -> None:
        """An operator stops a robot (MANUAL_HOLD), or releases it."""
        ticker, place = self._places[row]
        ticker.table.operator_hold[place] = held
        ticker.poked = now

    def stop(self, row: int, now: int) -> None:
        """An operator ends what a robot does: the running command fails, those that wait are
        canceled, and its tasks end as after the command STOP."""
        ticker, place = self._places[row]
        ticker.stop(place, now)
        ticker.poked = now

    def poke(self, row: int, now: int) -> None:
        """Something outside of the hardware's scripts has changed (an operator, a test): the robot
        looks at its hardware at the next tick."""
        self._places[row][0].poked = now

    def request(
        self, row: int, kind: RequestKind, payload: Mapping[str, Any], now: int
    ) -> Refused | None:
        """An operator gives a robot a message in the place of its backend: it is handled at the
        robot's next tick. Refused if the robot would reject it now."""
        ticker, place = self._places[row]
        if len(ticker.inbox) >= self._capacity:
            return Refused(f"{self._capacity} messages wait for the next tick")
        robot_id = self._layout.robots[row].identity.robot_id
        count = int(ticker.table.sent[place]), len(ticker.inbox)
        made = f"{self._post.run_id}/operator/{now}/{count}"
        message_id = uuid_text(robot_key(made, robot_id), BOOT)
        if own_id := TO_ROBOT[kind].own_id:
            payload = {own_id: message_id, **payload}
        data = msgspec.json.encode({"messageId": message_id, "payload": payload})
        problem = self.robot(row).problem(kind, data)
        if problem is None:
            ticker.inbox.append(Delivery(place, kind, data, ""))
            ticker.poked = now
        return problem

    def on_event(self, listener: FleetListener) -> None:
        """Calls ``listener`` at every event of a robot, and at the end of every task."""
        self._post.listeners.append(listener)

    def columns(self) -> FleetColumns:
        """All robots, where they believe to be."""
        return columns_of(self._tickers, len(self._places), self._hardware)

    def drawn(self) -> Drawn:
        """What pages draw of all robots."""
        return drawn_of(self._tickers, len(self._places))

    def reading(self, row: int) -> FleetRobot:
        """One robot in detail, without what only the simulation and the lidar know."""
        return reading_of(self.robot(row), self._layout, row, self._hardware)

    def add_module(self, row: int, module: Module) -> None:
        """Another module of a robot, while the cell is built."""
        self.robot(row).add_module(module)

    def wake_modules(self, row: int, now: int) -> None:
        """A module of a robot has received something: it acts at the next tick."""
        ticker, place = self._places[row]
        ticker.wake_modules(place, now)

    # ── time ──

    def next_wake(self) -> int | None:
        if self._ended:
            return None
        wakes = [wake for each in self._tickers if (wake := self._next_tick(each)) is not None]
        return min(wakes, default=None)

    def _next_tick(self, ticker: Ticker) -> int | None:
        """The next tick. While robots stand, ticks that change nothing are left out: the next one
        is that of the next message, module, script or fault. What comes from outside, and messages
        that wait for their confirmation, bring the next tick."""
        if ticker.ticks < 0:
            return 0
        reason = ticker.ticks, ticker.poked, self._post.connected, self._post.waiting > 0
        if ticker.plan[0] != reason:
            ticker.plan = reason, self._plan_tick(ticker)
        return ticker.plan[1]

    def _plan_tick(self, ticker: Ticker) -> int | None:
        waits = self._post.connected and self._post.waiting > 0
        if self._rests is None or waits or ticker.expects():
            return ticker.next_tick()
        change = self._rests.next_change()
        wake = min(ticker.next_module_wake(), LATEST if change is None else change)
        if self._post.connected:
            wake = min(wake, ticker.next_message())
        return None if wake >= LATEST else ticker.tick_from(wake)

    def wake(self, now: int) -> None:
        for ticker in self._tickers:
            at = self._next_tick(ticker)
            if at is None or at > now:
                continue
            if ticker.ticks < 0:
                ticker.start([self._seeds[row] for row in ticker.table.robots], now)
            else:
                ticker.tick(now)
        self._post.flush(now)

    def busy(self) -> bool:
        """Whether a command is under way."""
        return any(ticker.busy() for ticker in self._tickers)

    def status(self, now: int) -> FleetStatus:
        post = self._post
        return FleetStatus(len(self._places), post.connected, post.waiting, post.given_up)

    def shut_down(self, now: int) -> None:
        """The last messages of all robots; afterwards nothing moves."""
        for row in range(len(self._places)):
            self.robot(row).shut_down(now)
        self._post.flush(now)
        self._ended = True

    def _take_scans(self, now: int) -> None:
        for scan in self._hardware.sensors.take_scans():
            self.robot(self._layout.devices[scan.row].robot).scanned(scan, now)

    # ── the broker ──

    def set_connected(self, connected: bool, now: int) -> None:
        """The messages of a new connection are sent at the next tick."""
        self._post.set_connected(connected)
        for ticker in self._tickers:
            ticker.poked = now
            ticker.greets = connected

    def receive(self, message: WireMessage, now: int) -> None:
        robot_id, kind = kind_of(message.address)
        row = self._layout.robot_rows.get(robot_id)
        if row is None:
            self._post.note_handled(message.reply_to)
            return
        ticker, place = self._places[row]
        ticker.inbox.append(Delivery(place, kind, message.payload, message.reply_to))
        ticker.poked = now

    def confirmed(self, message_id: str, now: int) -> None:
        self._post.confirmed(message_id)
        if self._ended:  # no tick comes that sends what is left
            self._post.flush(now)

    def credit(self) -> int:
        """Half of the outbox is for answers to the backend: a backend that asks faster than the
        broker stores the answers has to wait. It may always send one message, so that a STOP comes
        through while nothing is stored."""
        most = min(self._capacity, max(self._post.free_half() // ANSWERS, 1))
        return max(most - sum(len(ticker.inbox) for ticker in self._tickers), 0)

    def take(self, room: int) -> WireMessage | None:
        return self._post.take(room)

    def take_many(self, room: int) -> Sequence[WireMessage]:
        return self._post.take_many(room)

    def take_handled(self) -> Sequence[str]:
        return self._post.take_handled()

    def waiting(self) -> bool:
        return self._post.has_ready()

    def subjects(self) -> Sequence[str]:
        """What the robots listen to."""
        return [f"robot.*.{kind}" for kind in TO_ROBOT]

    # ── snapshot ──

    def save(self) -> State:
        return SavedFleet(self._post.save(), [each.save() for each in self._tickers], self._ended)

    def load(self, state: State) -> None:
        saved = msgspec.convert(state, SavedFleet)
        if len(saved.tickers) != len(self._tickers):
            raise msgspec.ValidationError(f"tickers: {len(self._tickers)} are needed")
        self._post.load(saved.post)
        for ticker, part in zip(self._tickers, saved.tickers, strict=True):
            ticker.load(part)
        self._ended = saved.ended
