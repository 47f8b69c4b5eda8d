"""Two benches on virtual time: a simulated robot itself, and a driver that calls it."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from understudy.agenda import advance
from understudy.errors import Refused
from understudy.ports import UNLIMITED, Part, Ticket
from understudy.robots.text_robot.driver import Config, TextTcpDriver, build
from understudy.robots.text_robot.face import TextTcpFace
from understudy.robots.text_robot.robot import Config as RobotConfig
from understudy.robots.text_robot.robot import TextRobot
from understudy.simulation import scenario
from understudy.simulation.cell import Cell
from understudy.simulation.scenario import Config as Scenario
from understudy.simulation.scenario import Rule
from understudy.units import nanoseconds
from understudy.wire.exchange import Client, InProcessCell

Outcome = TypeVar("Outcome")
Ended = tuple[Ticket, Refused | None, int]
Rules = Mapping[str, Rule]


class RobotBench:
    """The simulated robot, without a wire."""

    def __init__(self) -> None:
        self.robot = TextRobot("bench", RobotConfig(), scenario.build(Scenario(), 1))
        self.now = 0
        self.ended: list[Ended] = []
        self.robot.on_finished(lambda *end: self.ended.append(end))

    def do(self, deed: Callable[[int], Outcome]) -> Outcome:
        return deed(self.now)

    def advance(self, seconds: float) -> None:
        to = self.now + nanoseconds(seconds)
        advance([self.robot], to)
        self.now = to


class DriverBench:
    """The driver, a null modem, and the simulated robot behind its face."""

    def __init__(
        self,
        config: Config = Config(),  # noqa: B008
        *,
        rules: Rules | None = None,
        robot_config: RobotConfig = RobotConfig(),  # noqa: B008
        cut: Callable[[bytes], list[bytes]] = lambda data: [data],
    ) -> None:
        fault_source = scenario.build(Scenario(dict(rules or {})), 1)
        self.simulated = TextRobot("bench", robot_config, fault_source)
        face = TextTcpFace("bench.text_tcp", self.simulated, fault_source)
        fault_source.act_on({"bench": self.simulated, "bench.text_tcp": face})
        parts: dict[str, Part] = {
            "bench": self.simulated,
            "bench.text_tcp": face,
            "scenario": fault_source,
        }
        cell = Cell("bench", digest="", parts=parts, faces={"bench.text_tcp": face})
        self.virtual_cell = InProcessCell(cell)
        self.robot: TextTcpDriver = build(config)
        self.ended: list[Ended] = []
        self.robot.on_finished(lambda *end: self.ended.append(end))
        self.reachable = True
        self.mute = False
        self._cut = cut
        self._call: int | None = None
        self._client: Client | None = None
        self.advance(0.0)

    @property
    def now(self) -> int:
        return self.virtual_cell.timed_cell.now

    def do(self, deed: Callable[[int], Outcome]) -> Outcome:
        outcome = deed(self.now)
        self._carry()
        return outcome

    def advance(self, seconds: float) -> None:
        to = self.now + nanoseconds(seconds)
        self._carry()
        while (at := self._next()) is not None and at <= to:
            self.virtual_cell.advance_to(at)
            if self.robot.next_wake() == at:
                self.robot.wake(at)
            self._carry()
        self.virtual_cell.advance_to(to)

    def cut_line(self) -> None:
        """Cuts the connection; both sides notice."""
        if self._client is not None:
            self._client.leave()
            self._client = self._call = None
            self.robot.lost(self.now, "the cable was pulled")

    def received_by_robot(self) -> list[str]:
        """All lines that the robot received."""
        stream = b"".join(event.data for event in self.virtual_cell.transcript if event.kind == ">")
        return stream.decode().splitlines()

    def moves(self) -> list[str]:
        return [line for line in self.received_by_robot() if line.startswith(("MOVE", "HOME"))]

    def _next(self) -> int | None:
        wakes = (self.virtual_cell.timed_cell.next_wake(), self.robot.next_wake())
        return min((at for at in wakes if at is not None), default=None)

    # ── the null modem ──

    def _carry(self) -> None:
        moved = True
        while moved:
            self._dial()
            moved = False
            while data := self.robot.take(UNLIMITED):
                assert self._client is not None, "bytes are sent without a connection"
                self._client.say(data)
                moved = True
            data = self._client.received() if self._client else b""
            for piece in self._cut(data) if data and not self.mute else []:
                if self.robot.wanted() == self._call:
                    self.robot.receive(piece, self.now)
                    moved = True
        self._dial()

    def _dial(self) -> None:
        wanted = self.robot.wanted()
        if self._client is not None and self._call != wanted:
            self._client.leave()
            self._client = self._call = None
        if wanted is None or self._client is not None:
            return
        if not self.reachable:
            self.robot.lost(self.now, "no route to host")
            return
        self._call, self._client = wanted, self.virtual_cell.connect()
        self.robot.connected(self.now)
