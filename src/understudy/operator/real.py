"""A real robot on a line of its own and on its own time, which is the wall's."""

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from understudy.config import CellConfig
from understudy.config.real import RealPlace
from understudy.errors import Refused
from understudy.operator.robots import Robot, Side
from understudy.ports import Part
from understudy.ports.operation import OperatorActions
from understudy.simulation.cell import Cell
from understudy.wire.clock import Clock
from understudy.wire.dial import Destination, Dial
from understudy.wire.exchange import Exchange
from understudy.wire.pump import Pump

if TYPE_CHECKING:
    from understudy.jobs.program_run import ProgramRun

PROBE_SECONDS = 1.0


class Client(NamedTuple):
    """A driver (`Part` and `Caller`), the actions on it, and what runs programs on it."""

    driver: Any
    actions: OperatorActions
    program: "ProgramRun | None" = None


@dataclass(frozen=True)
class RealLine:
    """A driver, and what keeps it talking."""

    side: Side
    dial: Dial
    pump: Pump

    def call(self) -> None:
        """Nothing is enabled, homed or reset by that."""
        self.pump.start()
        self.dial.start()
        if hasattr(self.side.controller, "connect"):
            self.pump.act(self.side.controller.connect)

    async def hang_up(self) -> None:
        if hasattr(self.side.controller, "disconnect"):
            self.pump.act(self.side.controller.disconnect)
        await self.dial.stop()
        self.pump.stop()


def line_to(config: CellConfig, robot: Robot, place: RealPlace) -> RealLine | Refused:
    """Where the real one is that this robot stands in for; nobody is called yet."""
    if robot.kind not in CLIENTS:
        known = ", ".join(CLIENTS)
        return Refused(f"there is no driver for a REAL robot of kind {robot.kind}; for: {known}")
    client = CLIENTS[robot.kind](config, robot)
    parts: dict[str, Part] = {robot.name: client.driver}
    if client.program is not None:
        parts[f"{robot.name}.program"] = client.program
    pump = Pump(Exchange(Cell("real", digest="", parts=parts, faces={})), Clock(), poll_step=1)
    side = Side(client.driver, client.actions, pump, client.program)
    return RealLine(side, Dial(client.driver, place, pump), pump)


async def answers(place: RealPlace) -> bool:
    """Whether somebody is there: a connection comes about, or the device exists."""
    if not isinstance(place, Destination):
        return await asyncio.to_thread(os.path.exists, place.path)
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            _, writer = await asyncio.open_connection(place.host, place.port)
    except (OSError, TimeoutError, UnicodeError):
        return False
    writer.close()
    return True


def _text(config: CellConfig, robot: Robot) -> Client:
    from understudy.robots.text_robot.driver import Config, build
    from understudy.robots.text_robot.operator import TextRobotActions

    driver = build(Config())
    return Client(driver, TextRobotActions(driver))


def _grblhal(config: CellConfig, robot: Robot) -> Client:
    """Model, language and the names of the pins are those of the simulated arm."""
    from understudy.jobs.program_run import ProgramRun
    from understudy.robots.arm.operator import ArmActions
    from understudy.robots.arm.real import driver_of
    from understudy.robots.grblhal.driver import Config

    arm, io = robot.simulated.controller.arm, robot.simulated.controller.io
    settings = Config(
        dialect=robot.config.dialect,
        digital_output_names={io.do.name(pin): pin for pin in range(io.do.count)},
        analog_output_names={io.ao.name(pin): pin for pin in range(io.ao.count)},
    )
    driver = driver_of(config, robot.name, settings)
    dialect = arm.options.dialect if settings.dialect == "arm" else arm.options.wire
    return Client(driver, ArmActions(driver, arm, dialect=dialect), ProgramRun(driver, dialect))


CLIENTS: Mapping[str, Callable[[CellConfig, Robot], Client]] = {
    "arm": _grblhal,
    "text_robot": _text,
}
"""Kind of robot → who talks to the real one."""
