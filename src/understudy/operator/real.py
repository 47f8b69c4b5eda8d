"""A real robot on a line of its own and on its own time, which is the wall's."""

import asyncio
import os
from dataclasses import dataclass

from understudy.config import CellConfig
from understudy.config.real import RealPlace
from understudy.errors import Refused
from understudy.operator.robots import Robot, Side
from understudy.ports import Part
from understudy.ports.operation import RealClient
from understudy.registry import kinds, module_of
from understudy.simulation.cell import Cell
from understudy.wire.dial import Destination, Dial
from understudy.wire.exchange import Exchange
from understudy.wire.pump import Pump

PROBE_SECONDS = 1.0


@dataclass(frozen=True)
class RealLine:
    """A driver, and what keeps it talking."""

    client: RealClient
    side: Side
    dial: Dial
    pump: Pump

    def call(self) -> None:
        """Nothing is enabled, homed or reset by that."""
        self.pump.start()
        self.dial.start()
        self.pump.act(self.client.connect)

    async def hang_up(self) -> None:
        self.pump.act(self.client.disconnect)
        await self.dial.stop()
        self.pump.stop()


def line_to(config: CellConfig, robot: Robot, place: RealPlace) -> RealLine | Refused:
    """Where the real one is that this robot stands in for; nobody is called yet."""
    declared = getattr(module_of("robots", robot.kind), "real_client", None)
    if declared is None:
        able = [
            kind for kind in kinds("robots") if hasattr(module_of("robots", kind), "real_client")
        ]
        known = ", ".join(able)
        return Refused(f"there is no driver for a REAL robot of kind {robot.kind}; for: {known}")
    client: RealClient = declared(config, robot.name, robot.simulated.controller)
    parts: dict[str, Part] = {robot.name: client.driver}
    if client.program is not None:
        parts[f"{robot.name}.program"] = client.program
    pump = Pump(Exchange(Cell("real", digest="", parts=parts, faces={})))
    side = Side(client.driver, client.actions, pump, client.program)
    return RealLine(client, side, Dial(client.driver, place, pump), pump)


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
