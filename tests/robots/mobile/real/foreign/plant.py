"""Drives of a mobile robot: behind a PLC (pymodbus), or at a CAN bus (canopen).

python plant.py PLC|CANOPEN PLACE DELAY_MS LAG_MS

The drives follow their set speeds with a tick of 4 ms, DELAY_MS late and with a lag; what is read
is noisy. The first line says where they are. For each line that comes, it prints the true pose, and
since the last line: what the robot did, and the longest times for which its drives kept a command,
in all and while it moved. On a busy machine the driver or this process waits for a processor.
"""

import asyncio
import json
import math
import random
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

TRACK, COUNTS, STEPS = 0.48, 20_000, 10_000
TICK = 0.004
MOST_TICKS = 50
MOVES = 0.05
"""m/s of both wheels together, without the noise."""
NOISE = (1e-4, 5e-3)
"""Metres and m/s."""


class Wheel(Protocol):
    @property
    def speed(self) -> float:
        """m/s."""
        ...


class Body:
    """The true pose, and what the robot did."""

    def __init__(self, left: Wheel, right: Wheel) -> None:
        self._left, self._right = left, right
        self._x = self._y = self._yaw = 0.0
        self._heard_at = time.monotonic()
        self._begin()

    def _begin(self) -> None:
        self._backwards = self._turned = self._kept = self._kept_moving = 0.0

    def heard(self) -> None:
        """A command has come."""
        now = time.monotonic()
        self.kept(now - self._heard_at)
        self._heard_at = now

    def kept(self, seconds: float) -> None:
        """The drives have kept a command for this time."""
        self._kept = max(self._kept, seconds)
        if abs(self._left.speed) + abs(self._right.speed) > MOVES:
            self._kept_moving = max(self._kept_moving, seconds)

    def run(self, seconds: float) -> None:
        ahead = (self._left.speed + self._right.speed) / 2.0 * seconds
        turn = (self._right.speed - self._left.speed) / TRACK * seconds
        self._x += ahead * math.cos(self._yaw + turn / 2.0)
        self._y += ahead * math.sin(self._yaw + turn / 2.0)
        self._yaw += turn
        self._backwards += max(-ahead, 0.0)
        self._turned += abs(turn)

    def tell(self) -> None:
        found = {
            "x": self._x,
            "y": self._y,
            "yaw": self._yaw,
            "backwards": self._backwards,
            "turned": self._turned,
            "kept": self._kept,
            "kept_moving": self._kept_moving,
        }
        print(json.dumps(found), flush=True)
        self._begin()


class Late:
    """What was wanted some time ago, smoothed by a lag."""

    def __init__(self, delay: float, lag: float) -> None:
        self._delay, self._lag = delay, lag
        self._given: deque[tuple[float, float]] = deque()
        self._time = self._wanted = 0.0

    def follow(self, speed: float, wanted: float, seconds: float) -> float:
        self._time += seconds
        self._given.append((self._time + self._delay, wanted))
        while self._given and self._given[0][0] <= self._time:
            self._wanted = self._given.popleft()[1]
        share = math.exp(-seconds / self._lag) if self._lag else 0.0
        return self._wanted + (speed - self._wanted) * share


class Motor:
    """A wheel behind a PLC."""

    def __init__(self, late: Late) -> None:
        self._late = late
        self._counter, self._silence = 0, 0.0
        self._position = 0.0
        self.speed = 0.0
        self._chance = random.Random(1)

    def run(self, holding: list[int], seconds: float) -> list[int]:
        """Its input registers."""
        values = [_number(*holding[at : at + 2]) for at in (1, 7, 9, 11)]
        wanted, fastest, faster, slower = values
        same = holding[13] == self._counter
        self._silence = self._silence + seconds if same else 0.0
        self._counter = holding[13]
        if not holding[0] & 1 or self._silence > 0.5:
            wanted = 0.0
        wanted = self._late.follow(self.speed, max(min(wanted, fastest), -fastest), seconds)
        brakes = abs(wanted) < abs(self.speed) or wanted * self.speed < 0.0
        most = (slower if brakes else faster) * seconds
        before = self.speed
        self.speed += max(min(wanted - before, most), -most)
        self._position += (before + self.speed) / 2.0 * seconds
        place, pace = (self._chance.uniform(-most, most) for most in NOISE)
        return [1, *_halves(self._position + place), *_halves(self.speed + pace), 0]

    @property
    def heard(self) -> bool:
        """Whether a command has come since the last tick."""
        return self._silence == 0.0


def _number(high: int, low: int) -> float:
    steps = high << 16 | low
    return (steps - (1 << 32) if steps >> 31 else steps) / STEPS


def _halves(value: float) -> tuple[int, int]:
    steps = round(value * STEPS) & 0xFFFFFFFF
    return steps >> 16, steps & 0xFFFF


class Plc:
    """The registers of both wheels, at 0 and 100, and an idle axis at 200."""

    def __init__(self, delay: float, lag: float) -> None:
        from pymodbus.server import ModbusTcpServer
        from pymodbus.simulator import DataType, SimData, SimDevice

        bits = [SimData(0, count=16, values=False, datatype=DataType.BITS) for _ in range(2)]
        words = [SimData(0, count=300, values=0, datatype=DataType.REGISTERS) for _ in range(2)]
        device = SimDevice(1, ([bits[0]], [bits[1]], [words[0]], [words[1]]))
        self.server: Any = ModbusTcpServer(device, address=("127.0.0.1", 0))
        self._motors = [Motor(Late(delay, lag)) for _ in range(2)]
        self.body = Body(*self._motors)

    async def listen(self) -> str:
        assert await self.server.listen()
        await self.server.async_setValues(1, 16, 200, [0])
        return str(self.server.transport.sockets[0].getsockname()[1])

    async def run(self, seconds: float) -> None:
        for address, motor in zip((0, 100), self._motors, strict=True):
            holding = await self.server.async_getValues(1, 3, address, 14)
            await self.server.async_setValues(1, 4, address, motor.run(holding, seconds))
        if self._motors[0].heard:
            self.body.heard()
        await self.server.async_setValues(1, 4, 200, [1, 0, 0, 0, 0, 0])
        self.body.run(seconds)


class Bus:
    """Nodes of `canopen` at a bus over multicast."""

    def __init__(self, group: str, delay: float, lag: float) -> None:
        import canopen
        from tests.robots.mobile.real.virtual_drive import VirtualDrive

        class LateDrive(VirtualDrive):
            """A drive that also follows late."""

            heard: Callable[[], None] = staticmethod(lambda: None)

            def __init__(self, network: Any, number: int) -> None:
                super().__init__(network, number)
                self._late = Late(delay, lag)
                self._seconds = TICK
                self.noise = (NOISE[0] * COUNTS, NOISE[1] * COUNTS)

            @property
            def speed(self) -> float:
                return self.velocity / COUNTS

            def _sync(self, can_id: int, data: bytes, timestamp: float) -> None:
                self.heard()
                super()._sync(can_id, data, timestamp)

            def run(self, seconds: float) -> None:
                self._seconds = seconds
                super().run(seconds)

            def _wanted_speed(self, seconds: float) -> float:
                wanted = super()._wanted_speed(seconds)
                if self.get(0x6060) != 3:
                    return wanted
                return self._late.follow(self.velocity, wanted, seconds)

        self._group = group
        self._network = canopen.Network()
        self._network.connect(interface="udp_multicast", channel=group)
        self._drives = [LateDrive(self._network, node) for node in (1, 2, 3)]
        self.body = Body(*self._drives[:2])
        self._drives[0].heard = self.body.heard

    async def listen(self) -> str:
        for drive in self._drives:
            drive.boot()
        return self._group

    async def run(self, seconds: float) -> None:
        for drive in self._drives:
            drive.run(seconds)
        self.body.run(seconds)


async def main(kind: str, place: str, delay: float, lag: float) -> None:
    plant = Plc(delay, lag) if kind == "PLC" else Bus(place, delay, lag)
    print(await plant.listen(), flush=True)
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    asked = asyncio.create_task(lines.readline())
    last = time.monotonic()
    while True:
        await asyncio.sleep(TICK)
        now = time.monotonic()
        plant.body.kept(now - last)
        ticks = min(round((now - last) / TICK), MOST_TICKS)
        for _ in range(ticks):
            await plant.run(TICK)
        last = last + ticks * TICK if ticks < MOST_TICKS else now
        if asked.done():
            if not asked.result():
                return
            plant.body.tell()
            asked = asyncio.create_task(lines.readline())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]) / 1e3, float(sys.argv[4]) / 1e3))
