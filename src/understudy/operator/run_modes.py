"""SIMULATION or REAL: which side of a robot is operated, and what is refused for a REAL one.

A REAL robot needs `--real` on the command line. The mode changes only while the robot is at rest.
If the connection to a REAL robot is lost it is made again; the simulation never takes over. While
a robot is REAL, the cell runs in real time, and the faces of its simulated sibling are closed.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from understudy.config import CellConfig
from understudy.config.cell import RealPlace
from understudy.errors import ConfigError, Refused
from understudy.operator.events import EventLog, EventSources
from understudy.operator.robots import Robot, Robots, Side
from understudy.operator.table import Command, command, commands_of
from understudy.ports import Component, HasCallers
from understudy.ports.device import Device, real_devices
from understudy.ports.jobs import JobSite, build_real_jobs
from understudy.ports.modes import ObeysModes
from understudy.ports.operation import Jog, RealClient
from understudy.registry import kinds, module_of
from understudy.simulation import scenario
from understudy.simulation.cell import Cell
from understudy.wire.can import device_place
from understudy.wire.dial import Destination, Dial
from understudy.wire.exchange import Exchange
from understudy.wire.pump import Pump
from understudy.wire.zmq_request import AskedProcess, QuestionWire

if TYPE_CHECKING:
    from understudy.operator.cell import OperatedCell

log = logging.getLogger(__name__)

PROBE_SECONDS = 1.0
"""Time in which a REAL robot must accept a connection for `controller: auto`."""
DEAD_MAN_SECONDS = 0.3
"""Dead-man timeout: a jog of a REAL robot without a heartbeat for this long is stopped."""


def commands(cell: "OperatedCell") -> list[Command]:
    return commands_of(cell.modes)


# ── connection to a REAL robot ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class RealConnection:
    """The driver of a REAL robot with its connection, on wall time."""

    client: RealClient
    side: Side
    dials: tuple[Dial, ...]
    pump: Pump
    asking: tuple[QuestionWire, ...] = ()

    def start(self) -> None:
        """Connects; this enables, homes and resets nothing."""
        self.pump.start()
        for dial in self.dials:
            dial.start()
        for wire in self.asking:
            wire.start()
        self.pump.act(self.client.connect)

    async def stop(self) -> None:
        self.pump.act(self.client.disconnect)
        ends = [*(dial.stop() for dial in self.dials), *(wire.stop() for wire in self.asking)]
        await asyncio.gather(*ends)
        self.pump.stop()


def connection_to(
    config: CellConfig, robot: Robot, place: RealPlace, simulated: Mapping[str, Component]
) -> RealConnection | Refused:
    """The connection to the REAL sibling of a robot, not started yet. ``simulated``: the components
    of the simulated one."""
    real_client = _real_client(robot.kind)
    if real_client is None:
        return _no_driver(robot.kind)
    client: RealClient = real_client(config, robot.name, robot.simulated.controller)
    components: dict[str, Any] = {robot.name: client.driver}
    if client.program is not None:
        components[f"{robot.name}.program"] = client.program
    if client.pins is not None:
        components[f"{robot.name}.pins"] = client.pins
    problems: list[ConfigError] = []
    found = config.robots[robot.name].devices
    devices = real_devices(robot.name, found, client.pins, problems.append)
    jobs = _real_jobs(config, robot, client, devices, simulated, problems.append)
    own = {**devices, **jobs}
    components |= {f"{robot.name}.{kind}": component for kind, component in own.items()}
    cell = Cell("real", digest="", components=components, faces={})
    pump = Pump(Exchange(cell), real=True)
    lacks = Refused("; ".join(each.problem for each in problems)) if problems else None
    side = Side(client.driver, client.actions, pump, client.program, jobs, devices, lacks)
    asking = tuple(QuestionWire(component, pump) for component in cell.asking().values())
    callers: list[Any] = [
        caller
        for device in devices.values()
        if isinstance(device, HasCallers)
        for caller in device.callers()
    ]
    dials = (
        Dial(client.driver, place, pump),
        *(Dial(each, device_place(each.where), pump) for each in callers),
    )
    return RealConnection(client, side, dials, pump, asking)


def _real_jobs(
    config: CellConfig,
    robot: Robot,
    client: RealClient,
    devices: Mapping[str, Device],
    simulated: Mapping[str, Component],
    refuse: Callable[[ConfigError], None],
) -> dict[str, Component]:
    """The jobs of a REAL robot, by kind."""
    arm = client.job_arm
    if arm is None:
        return {}
    rules = scenario.build(scenario.Config(), config.head.seed)
    site = JobSite(
        robot.name,
        config.document.file,
        config.robots[robot.name].sections,
        client.driver,
        lambda: arm,
        rules,
        log.warning,
        devices,
        pins=client.pins,
        environment=lambda: config.environment().objects,
        real=True,
        simulated=simulated,
    )
    return build_real_jobs(site, refuse)


def _real_client(kind: str) -> Callable[..., RealClient] | None:
    return getattr(module_of("robots", kind), "real_client", None)


def _no_driver(kind: str) -> Refused:
    """The refusal for a kind without a driver; its module may say why (`NO_REAL_CLIENT`)."""
    able = ", ".join(kind for kind in kinds("robots") if _real_client(kind))
    why = getattr(module_of("robots", kind), "NO_REAL_CLIENT", f"there are drivers for: {able}")
    return Refused(f"a robot of kind {kind} cannot be REAL: {why}")


async def answers(place: RealPlace) -> bool:
    """Whether a REAL robot is there: it accepts a connection, or its serial device exists."""
    if not isinstance(place, Destination):
        return await asyncio.to_thread(os.path.exists, place.path)
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            _, writer = await asyncio.open_connection(place.host, place.port)
    except (OSError, TimeoutError, UnicodeError):
        return False
    writer.close()
    return True


class DeadManSwitch:
    """Stops the jog of a REAL robot when the operator's heartbeat stays away."""

    def __init__(self, log: EventLog, now: Callable[[], int]) -> None:
        self._log = log
        self._now = now
        self._loop = asyncio.get_running_loop()
        self._held: dict[str, tuple[Robot, Jog, asyncio.TimerHandle]] = {}

    def hold(self, robot: Robot, jog: Jog) -> None:
        """A jog without an end has begun: the time until the next heartbeat runs."""
        self.release(robot.name)
        timer = self._loop.call_later(DEAD_MAN_SECONDS, self._time_out, robot)
        self._held[robot.name] = robot, jog, timer

    def beat(self, name: str) -> bool:
        """A heartbeat of the operator; False if no jog of the robot is under way."""
        if name not in self._held:
            return False
        robot, jog, _ = self._held[name]
        goes_on = robot.condition().state == ("Jog" if jog.frame == "joint" else "Run")
        if goes_on and jog.frame == "joint":
            goes_on = robot.do("jog", jog) is None
        if not goes_on:
            self.release(name)  # the robot was stopped: a later motion is not this jog
            return False
        self.hold(robot, jog)
        return True

    def release(self, name: str) -> None:
        if name in self._held:
            self._held.pop(name)[2].cancel()

    def stop(self) -> None:
        for name in list(self._held):
            self.release(name)

    def _time_out(self, robot: Robot) -> None:
        self._held.pop(robot.name, None)
        robot.do("stop_jog")
        self._log.note("message", robot.name, "jog ended: no heartbeat", self._now())


# ── commands ────────────────────────────────────────────────────────────────────────────────────


class ModeCommands:
    """Switches robots between SIMULATION and REAL."""

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
        changed: Callable[[], None],
    ) -> None:
        """``changed`` is called when a robot has become REAL or simulated."""
        self._changed = changed
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
        self._connections: dict[str, RealConnection] = {}
        self._asked: dict[str, AskedProcess] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self.dead_man = DeadManSwitch(log, now)
        _check_drivers(config)
        _check(self._wanted, self._places, allowed=allowed)

    async def begin(self) -> None:
        """Sets the modes of the cell file; `auto`: REAL if it is allowed and the robot answers."""
        if self._wanted == "simulation":
            return
        for name, place in self._places.items():
            if self._wanted == "auto" and not await answers(place):
                self._note(name, f"nothing answers at {place}: simulated")
            elif not self._allowed:
                self._note(name, f"{place} answers; --real would use it: simulated")
            elif isinstance(refused := self.set_mode(name, "real"), Refused):
                raise ConfigError(refused.reason, key=f"robots.{name}.real")

    def ask(self, robot: str, process: AskedProcess) -> None:
        """The jobs of the REAL robot ask this process."""
        self._asked[robot] = process
        if robot in self._connections:
            for wire in self._connections[robot].asking:
                wire.ask(process)

    async def stop(self) -> None:
        self.dead_man.stop()
        for robot in self._robots.real():
            self._leave(robot)
        await asyncio.gather(*self._closing)

    @command(secret="always")
    def set_mode(self, robot: str, mode: Literal["real", "simulation"], check: bool = False) -> Any:
        """Real or simulation, at rest (--real).

        `check`: change nothing; the answer says whether it would be refused now.
        """
        found = self._robots.find(robot)
        if isinstance(found, Refused):
            return found
        if (found.mode == "REAL") == (mode == "real"):
            return found.summary()
        if refused := self._not_now(found):
            return refused
        if mode == "real" and (refused := self._not_here(found)):
            return refused
        if check:
            return found.summary()
        if mode == "real":
            return self._become_real(found)
        self._leave(found)
        self._changed()
        self._log.note("mode", robot, "SIMULATION", self._now())
        return found.summary()

    def _become_real(self, robot: Robot) -> dict[str, Any] | Refused:
        place = self._places[robot.name]
        simulated = self._robots.components[robot.name]
        connection = connection_to(self._config, robot, place, simulated)
        if isinstance(connection, Refused):
            return connection
        for wire in connection.asking if robot.name in self._asked else ():
            wire.ask(self._asked[robot.name])
        guard = self._guard(robot)
        if guard is not None and isinstance(connection.client.driver, ObeysModes):
            connection.client.driver.obey(guard)
        self._connections[robot.name] = connection
        self._robots.make_real(robot, connection.side)
        self._events.connect_real(robot, lambda at: self._now())
        self._real_time()
        self._close(robot.name, f"{robot.name} is REAL, and this is its simulated sibling")
        connection.start()
        self._changed()
        self._note(robot.name, f"REAL at {place}; the faces of its simulated sibling are closed")
        return robot.summary()

    @command()
    def heartbeat(self, robot: str) -> Any:
        """The operator still holds the jog button."""
        found = self._robots.find(robot)
        if isinstance(found, Refused):
            return found
        return {**found.summary(), "jogging": self.dead_man.beat(robot)}

    def _not_now(self, robot: Robot) -> Refused | None:
        program = robot.side.program
        if robot.condition().moving or (program is not None and program.under_way()):
            return Refused(f"{robot.name} is under way: the mode is changed at rest only")
        return robot.job_refusal() if robot.real else None

    def _guard(self, robot: Robot) -> Any:
        """The mode manager of a robot that has modes of operation."""
        return self._robots.components[robot.name].get(f"{robot.name}.modes")

    def _no_mode_for_real(self, robot: Robot) -> Refused | None:
        """A REAL robot has no speed limit from here: not in MANUAL, and not in a changeover."""
        guard = self._guard(robot)
        if guard is None or guard.current_mode not in ("MANUAL", "CHANGEOVER"):
            return None
        return Refused(
            f"{robot.name} is in {guard.current_mode}: its speed limit acts in simulation only; "
            "change its mode of operation first"
        )

    def _not_here(self, robot: Robot) -> Refused | None:
        if not self._allowed:
            return Refused("the cell was started without --real: no robot of it can be REAL")
        if refused := self._no_mode_for_real(robot):
            return refused
        if robot.name not in self._places:
            return Refused(f"the cell file does not say where the real {robot.name} is: `real`")
        return None

    def _leave(self, robot: Robot) -> None:
        """Back to SIMULATION; the connection is closed in the background."""
        self.dead_man.release(robot.name)
        connection, robot.real = self._connections.pop(robot.name), None
        self._close(robot.name, "")
        task = asyncio.get_running_loop().create_task(connection.stop())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _note(self, name: str, text: str) -> None:
        log.info("%s: %s", name, text)
        self._log.note("mode", name, text, self._now())


def _check_drivers(config: CellConfig) -> None:
    """Raises ConfigError for a robot with `real` whose kind has no driver."""
    for name, robot in config.robots.items():
        if robot.real and _real_client(robot.kind) is None:
            problem = ConfigError(_no_driver(robot.kind).reason, value=str(robot.real))
            raise config.document.error(("robots", name, "real"), problem)


def _check(wanted: str, places: Mapping[str, RealPlace], *, allowed: bool) -> None:
    """Raises ConfigError if a REAL controller is wanted that cannot be had."""
    if wanted == "real" and not allowed:
        raise ConfigError(
            "a REAL controller is wanted, but not allowed on the command line",
            key="controller",
            value="real",
            allowed="--real on the command line; or simulation, or auto",
        )
    if wanted == "real" and not places:
        raise ConfigError(
            "no robot says where the real one is",
            key="controller",
            value="real",
            allowed="`real: {to: …}` on a robot",
        )
