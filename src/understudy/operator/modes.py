"""SIMULATION or REAL: who answers for a robot, and what is not done to a real one.

A real robot needs `--real` on the command line. It is switched to at rest only; if it is lost it
is called again, and nothing else takes its place. While one is REAL, time is the wall's, and nobody
is behind the faces of its stand-in.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

from understudy.config import CellConfig
from understudy.config.real import RealPlace
from understudy.errors import ConfigError, Refused
from understudy.operator.events import EventLog, EventSources
from understudy.operator.motion import OfRobot
from understudy.operator.real import RealLine, answers, line_to
from understudy.operator.robots import Robot, Robots
from understudy.operator.table import Command
from understudy.ports.operation import Jog

log = logging.getLogger(__name__)

LATE_SECONDS = 0.3
"""A jog without a heartbeat for so long is over."""


class SetMode(Struct, frozen=True, forbid_unknown_fields=True):
    robot: str
    mode: Literal["real", "simulation"]


class DeadMan:
    """Jogs of real robots go on only while the operator's heartbeat comes."""

    def __init__(self, log: EventLog, now: Callable[[], int]) -> None:
        self._log = log
        self._now = now
        self._loop = asyncio.get_running_loop()
        self._held: dict[str, tuple[Robot, Jog, asyncio.TimerHandle]] = {}

    def grasp(self, robot: Robot, jog: Jog) -> None:
        """A jog without an end has begun, or is asked for again."""
        self.let_go(robot.name)
        timer = self._loop.call_later(LATE_SECONDS, self._late, robot)
        self._held[robot.name] = robot, jog, timer

    def beat(self, name: str) -> bool:
        """Somebody still holds on; is anything jogged at all?"""
        if name not in self._held:
            return False
        robot, jog, _ = self._held[name]
        goes_on = robot.condition().state == ("Jog" if jog.frame == "joint" else "Run")
        if goes_on and jog.frame == "joint":
            goes_on = robot.do("jog", jog) is None
        if not goes_on:
            self.let_go(name)  # it was stopped: what moves after that is no jog of his
            return False
        self.grasp(robot, jog)
        return True

    def let_go(self, name: str) -> None:
        if name in self._held:
            self._held.pop(name)[2].cancel()

    def stop(self) -> None:
        for name in list(self._held):
            self.let_go(name)

    def _late(self, robot: Robot) -> None:
        self._held.pop(robot.name, None)
        robot.do("stop_jog")
        self._log.note("message", robot.name, "jog ended: no heartbeat", self._now())


class ModeCommands:
    """Switches robots between their sides."""

    def __init__(
        self,
        config: CellConfig,
        robots: Robots,
        events: EventSources,
        log: EventLog,
        *,
        allowed: bool,
        real_time: Callable[[], None],
        close: Callable[[str, str], None],
        now: Callable[[], int],
    ) -> None:
        self._config = config
        self._robots = robots
        self._events = events
        self._log = log
        self._allowed = allowed
        self._real_time = real_time
        self._close = close
        self._now = now
        self._wanted = config.head.controller
        self._places = {name: each.real for name, each in config.robots.items() if each.real}
        self._lines: dict[str, RealLine] = {}
        self._goodbyes: set[asyncio.Task[None]] = set()
        self.dead_man = DeadMan(log, now)
        if self._wanted == "real" and not allowed:
            raise ConfigError(
                "a REAL controller is wanted, but not allowed on the command line",
                key="controller",
                value="real",
                allowed="--real on the command line; or simulation, or auto",
            )
        if self._wanted == "real" and not self._places:
            raise ConfigError("no robot says where the real one is", key="controller", value="real",
                              allowed="`real: {to: …}` on a robot")  # fmt: skip

    def commands(self) -> list[Command]:
        return [
            Command("set_mode", "real or simulation, at rest (--real)", self._set_mode, SetMode),
            Command("heartbeat", "the operator still holds the jog button", self._beat, OfRobot),
        ]

    def place(self, name: str) -> RealPlace | None:
        return self._places.get(name)

    # ── the cell's life ──

    async def begin(self) -> None:
        """As the cell file wants it: `auto` takes a real one that answers, if that is allowed."""
        if self._wanted == "simulation":
            return
        for name, place in self._places.items():
            if self._wanted == "auto" and not await answers(place):
                self._tell(name, f"nothing answers at {place}: simulated")
            elif not self._allowed:
                self._tell(name, f"{place} answers; --real would use it: simulated")
            elif isinstance(refused := self._set_mode(SetMode(name, "real")), Refused):
                raise ConfigError(refused.reason, key=f"robots.{name}.real")

    async def stop(self) -> None:
        self.dead_man.stop()
        for robot in self._robots.real():
            self._leave(robot)
        await asyncio.gather(*self._goodbyes)

    # ── commands ──

    def _set_mode(self, given: SetMode) -> Any:
        robot = self._robots.find(given.robot)
        if isinstance(robot, Refused):
            return robot
        if (robot.mode == "REAL") == (given.mode == "real"):
            return robot.brief()
        if refused := self._not_now(robot) or self._not_here(robot, given.mode):
            return refused
        if given.mode == "simulation":
            self._leave(robot)
            self._log.note("mode", robot.name, "SIMULATION", self._now())
            return robot.brief()
        line = line_to(self._config, robot, self._places[robot.name])
        if isinstance(line, Refused):
            return line
        self._lines[robot.name], robot.real = line, line.side
        self._events.connect_real(robot, lambda at: self._now())
        self._real_time()
        self._close(robot.name, f"{robot.name} is REAL, and this is its stand-in")
        line.call()
        place = self._places[robot.name]
        self._tell(robot.name, f"REAL at {place}; nobody is behind its stand-in's faces now")
        return robot.brief()

    def _beat(self, given: OfRobot) -> Any:
        robot = self._robots.find(given.robot)
        if isinstance(robot, Refused):
            return robot
        return {**robot.brief(), "jogging": self.dead_man.beat(given.robot)}

    # ── inside ──

    def _not_now(self, robot: Robot) -> Refused | None:
        program = robot.side.program
        if robot.condition().moving or (program is not None and program.under_way()):
            return Refused(f"{robot.name} is under way: the mode is changed at rest only")
        return None

    def _not_here(self, robot: Robot, mode: str) -> Refused | None:
        if mode == "simulation":
            return None
        if not self._allowed:
            return Refused("the cell was started without --real: no robot of it can be REAL")
        if robot.name not in self._places:
            return Refused(f"the cell file does not say where the real {robot.name} is: `real`")
        return None

    def _leave(self, robot: Robot) -> None:
        self.dead_man.let_go(robot.name)
        line, robot.real = self._lines.pop(robot.name), None
        self._close(robot.name, "")
        task = asyncio.get_running_loop().create_task(line.hang_up())
        self._goodbyes.add(task)
        task.add_done_callback(self._goodbyes.discard)

    def _tell(self, name: str, text: str) -> None:
        log.info("%s: %s", name, text)
        self._log.note("mode", name, text, self._now())
