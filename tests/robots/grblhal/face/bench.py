"""A machine and its one client, on virtual time."""

from pathlib import Path
from typing import Any

from understudy.app.build import load_cell
from understudy.simulation.cell import Cell
from understudy.wire.exchange import Client, InProcessCell

FACTORY = str(Path(__file__).parents[3] / "golden/grblhal_chat/factory.yaml")
"""A machine with the firmware's own settings."""
FAST = (
    "$110=6000",
    "$111=6000",
    "$112=6000",
    "$113=7200",
    "$114=7200",
    "$115=7200",
    "$120=500",
    "$121=500",
    "$122=500",
    "$123=1000",
    "$124=1000",
    "$125=1000",
)
QUIET_S = 2.0


class Bench:
    """Sends bytes and returns the lines that come back."""

    def __init__(self, cell: str = FACTORY, endpoint: str = "machine.grblhal") -> None:
        self.virtual_cell: InProcessCell = load_cell(cell)
        self.endpoint = endpoint
        self.client: Client = self.virtual_cell.connect(endpoint)
        self.client.received()

    def fast(self, end: bytes = b"\n") -> "Bench":
        """Give the machine high speeds and accelerations."""
        self.say(b"".join(setting.encode() + end for setting in FAST))
        assert self.received() == ["ok"] * len(FAST)
        return self

    def say(self, data: bytes) -> None:
        self.client.say(data)

    def received(self) -> list[str]:
        lines = self.client.received().decode("latin-1").split("\r\n")
        assert lines.pop() == "", "only whole lines are sent"
        return lines

    def ask(self, line: str) -> list[str]:
        """Send a line; time runs while its answer is owed."""
        data = self.client.ask(line.encode("latin-1") + b"\n")
        return data.decode("latin-1").split("\r\n")[:-1]

    def wait(self, seconds: float) -> list[str]:
        self.virtual_cell.advance(seconds)
        return self.received()

    def report(self, command: bytes = b"?") -> str:
        self.say(command)
        (line,) = (line for line in self.received() if line.startswith("<"))
        return line

    def state(self) -> str:
        return self.report()[1:].partition("|")[0]

    @property
    def outputs(self) -> int:
        return int(self.robot.io.digital().outputs)

    def inject(self, fault: str, **parameters: float) -> None:
        self.robot.inject(fault, parameters, self.virtual_cell.timed_cell.now)
        self.virtual_cell.exchange.deliver()

    @property
    def robot(self) -> Any:
        cell = self.virtual_cell.timed_cell
        assert isinstance(cell, Cell)
        return cell.components[self.endpoint.partition(".")[0]]

    def idle(self, patience: float = 600.0) -> list[str]:
        """Let time run until nothing is in progress."""
        end = self.virtual_cell.now + patience
        while self.virtual_cell.timed_cell.busy() and self.virtual_cell.now < end:
            self.virtual_cell.run_while_busy()
        return self.received()


def answers(lines: list[str]) -> list[str]:
    return [line for line in lines if line == "ok" or line.startswith("error:")]


def fields(report: str) -> dict[str, str]:
    """Fields of a status report by name."""
    state, *rest = report.strip("<>").split("|")
    return {"State": state} | {name: value for name, _, value in (f.partition(":") for f in rest)}
