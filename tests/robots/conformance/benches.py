"""One arm, four ways to it: in process, over a null modem, over TCP, over a pseudo-terminal.

All four are on virtual time. Over a real socket or terminal the driver's time is that of the
stand-in, which runs only on request; a status report that is requested and received proves that
everything sent before it has been received, and every answer to it.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from tests.robots.cable import Cable

from understudy.app.build import build_cell
from understudy.app.stand_in import StandIn
from understudy.config import read_config
from understudy.ports import ControllerStatus
from understudy.ports.controller import MotionController
from understudy.robots.arm.controller import ArmController
from understudy.robots.grblhal.driver import Config, GrblHalDriver, build
from understudy.units import DEG, nanoseconds, seconds
from understudy.wire.dial import Dial, parse_place
from understudy.wire.exchange import InProcessCell

Outcome = TypeVar("Outcome")
Request = Callable[[int], Outcome]

CELL = """
robots:
  arm:
    kind: arm
    dialect: grblhal
    simulation: {{command_delay_ms: 0, feedback_delay_ms: 0}}
    io: {{links: [{{output: 0, input: 0, delay_ms: 50}}]}}
    faces: {{grblhal: {{{wire}}}}}
scenario: {{rules: {{{rules}}}}}
"""
ENDPOINT = "arm.grblhal"
LIMITS = tuple(
    tuple(degrees * DEG for degrees in row)
    for row in ((-170, -120, -80, -185, -120, -360), (170, 60, 165, 185, 120, 360))
)
CONFIG = Config(poll_ms=50, digital_output_names={"ARC_START": 0})
STEP = 0.05
PATIENCE_S = 60.0


def driver(config: Config = CONFIG) -> GrblHalDriver:
    lower, upper = LIMITS
    return build(config, limits=(lower, upper))


class Bench(Protocol):
    """A controller and its clock."""

    @property
    def robot(self) -> MotionController: ...

    @property
    def now(self) -> int: ...

    def do(self, request: Request[Outcome]) -> Outcome: ...

    def advance(self, duration: float) -> None: ...

    def leave(self) -> None: ...


class InProcess:
    """The simulated controller itself."""

    def __init__(self, path: Path) -> None:
        self._cell = build_cell(read_config(CELL.format(wire="port: 0", rules=""), "arm.yaml"))
        arm = self._cell.components["arm"]
        assert isinstance(arm, ArmController)
        self.robot: MotionController = arm

    @property
    def now(self) -> int:
        return self._cell.now

    def do(self, request: Request[Outcome]) -> Outcome:
        return request(self.now)

    def advance(self, duration: float) -> None:
        self._cell.advance(self.now + nanoseconds(duration))

    def leave(self) -> None:
        return None


class NullModem(Cable):
    """The driver, and the arm behind its face, in one process; the cable can be pulled."""

    def __init__(
        self, path: Path, config: Config = CONFIG, *, cell: str = "", rules: str = "",
        made: GrblHalDriver | None = None,
    ) -> None:  # fmt: skip
        text = cell or CELL.format(wire="port: 0", rules=rules)
        virtual_cell = InProcessCell(build_cell(read_config(text, "arm.yaml")))
        endpoint = next(iter(virtual_cell.timed_cell.faces))
        self.robot = made or driver(config)
        self.sent = bytearray()
        super().__init__(self.robot, virtual_cell, endpoint, sent=self.sent.extend)

    def do(self, request: Request[Outcome]) -> Outcome:
        outcome = request(self.now)
        self.advance(0.0)
        return outcome

    def advance(self, duration: float) -> None:
        super().advance(duration)
        self.robot.request_report(self.now)
        self.carry()

    def leave(self) -> None:
        return None

    def pull(self) -> None:
        """Pulls the cable until `reachable` is set again; both sides notice."""
        self.reachable = False
        super().pull()

    def lines(self) -> list[str]:
        """Every line that was sent, without real-time bytes."""
        text = bytes(byte for byte in self.sent if byte == 10 or 32 <= byte < 127)
        return text.replace(b"?", b"").replace(b"!", b"").replace(b"~", b"").decode().split("\n")


class Watched:
    """`Caller` that notifies of received bytes and counts sent ones."""

    def __init__(self, robot: GrblHalDriver) -> None:
        self._robot = robot
        self.news = asyncio.Event()
        self.sent = 0
        self.reports = 0
        robot.on_joint_state(lambda state: self._count(), 0)
        for name in ("wanted", "on_ready", "next_wake", "wake", "busy", "status", "save", "load"):
            setattr(self, name, getattr(robot, name))

    def _count(self) -> None:
        self.reports += 1

    def connected(self, now: int) -> None:
        self._robot.connected(now)
        self.news.set()

    def receive(self, data: bytes, now: int) -> None:
        self._robot.receive(data, now)
        self.news.set()

    def take(self, room: int) -> bytes:
        data = self._robot.take(room)
        self.sent += len(data)
        return data

    def lost(self, now: int, reason: str) -> None:
        self._robot.lost(now, reason)
        self.news.set()


class OverWire:
    """The driver on a real socket or terminal, the arm in a thread of its own."""

    wire = "port: 0"

    def __init__(self, path: Path) -> None:
        cell = path / "arm.yaml"
        cell.write_text(CELL.format(wire=self.wire, rules=""))
        self.robot = driver()
        self._now = 0
        self._loop = asyncio.new_event_loop()
        self._arm = StandIn(str(cell), rate=0.0)
        self._arm.__enter__()
        self._watched = Watched(self.robot)
        self._loop.run_until_complete(self._start())

    async def _start(self) -> None:
        place = parse_place(self._arm.endpoints[ENDPOINT])
        self._dial = Dial(self._watched, place, self)  # type: ignore[arg-type]
        self._dial.start()

    @property
    def now(self) -> int:
        return self._now

    def act(self, request: Request[Outcome]) -> Outcome:
        return request(self._now)

    def do(self, request: Request[Outcome]) -> Outcome:
        outcome = request(self._now)
        self._exchange()
        return outcome

    def advance(self, duration: float) -> None:
        to = self._now + nanoseconds(duration)
        while (at := self.robot.next_wake()) is not None and at <= to:
            self._come_to(at)
            self.robot.wake(self._now)
            self._exchange()
        self._come_to(to)
        self._exchange()

    def leave(self) -> None:
        self._loop.run_until_complete(self._dial.stop())
        self._loop.close()
        self._arm.__exit__()

    def _come_to(self, moment: int) -> None:
        ahead = seconds(moment) - self._arm.now
        if ahead > 0.0:
            self._arm.forward(ahead)
        self._now = max(self._now, moment, nanoseconds(self._arm.now))

    def _exchange(self) -> None:
        """Wait until everything sent has been received, and every answer to it."""
        self._loop.run_until_complete(asyncio.wait_for(self._quiet(), PATIENCE_S))
        self._now = max(self._now, nanoseconds(self._arm.now))

    async def _quiet(self) -> None:
        sent = -1
        while self.robot.wanted() is not None and sent != self._watched.sent:
            while self.robot.wanted() is not None and not self.robot.is_connected():
                await self._wait_for_bytes()
            reports, sent = self._watched.reports, self._watched.sent + 1  # the request itself
            self.robot.request_report(self._now)
            while self.robot.wanted() is not None and self._watched.reports == reports:
                await self._wait_for_bytes()
            await asyncio.sleep(0)  # the driver's reaction is sent

    async def _wait_for_bytes(self) -> None:
        await self._watched.news.wait()
        self._watched.news.clear()


class OverTerminal(OverWire):
    wire = "pty: true"


BENCHES: Mapping[str, Callable[[Path], Bench]] = {
    "in process": InProcess,
    "null modem": NullModem,
    "tcp": OverWire,
    "pty": OverTerminal,
}


def status(bench: Bench) -> ControllerStatus:
    return bench.robot.status(bench.now)


def joints(bench: Bench) -> list[float]:
    """Joint positions in degrees."""
    return [q / DEG for q in bench.robot.joint_state(bench.now).positions]


def settle(bench: Bench, patience: float = 60.0) -> None:
    """Let time run until nothing is in progress."""
    end = bench.now + nanoseconds(patience)
    while status(bench).moving and bench.now < end:
        bench.advance(STEP)
    assert not status(bench).moving, "still in progress"
