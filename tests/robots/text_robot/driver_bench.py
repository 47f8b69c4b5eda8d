"""Two benches on virtual time: a simulated robot itself, and a driver that calls it."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from tests.robots.cable import Cable

from understudy.agenda import advance
from understudy.errors import Refused
from understudy.ports import Component, Ticket
from understudy.robots.text_robot.driver import Config, TextTcpDriver, build
from understudy.robots.text_robot.face import TextTcpFace
from understudy.robots.text_robot.robot import Config as RobotConfig
from understudy.robots.text_robot.robot import TextRobot
from understudy.simulation import scenario
from understudy.simulation.cell import Cell
from understudy.simulation.scenario import Config as Scenario
from understudy.simulation.scenario import Rule
from understudy.units import nanoseconds
from understudy.wire.exchange import InProcessCell

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


class DriverBench(Cable):
    """The driver, a cable, and the simulated robot behind its face."""

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
        parts: dict[str, Component] = {
            "bench": self.simulated,
            "bench.text_tcp": face,
            "scenario": fault_source,
        }
        cell = Cell("bench", digest="", components=parts, faces={"bench.text_tcp": face})
        self.robot: TextTcpDriver = build(config)
        self.ended: list[Ended] = []
        self.robot.on_finished(lambda *end: self.ended.append(end))
        super().__init__(self.robot, InProcessCell(cell), cut=cut)
        self.advance(0.0)

    def received_by_robot(self) -> list[str]:
        """All lines that the robot received."""
        stream = b"".join(event.data for event in self.virtual_cell.transcript if event.kind == ">")
        return stream.decode().splitlines()

    def moves(self) -> list[str]:
        return [line for line in self.received_by_robot() if line.startswith(("MOVE", "HOME"))]
