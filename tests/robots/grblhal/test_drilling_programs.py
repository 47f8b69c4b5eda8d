"""The shipped drilling programs: streamed to the running machine they take the validated time."""

from pathlib import Path
from typing import Any

import pytest

from understudy.app.build import build_cell
from understudy.app.validate import cycle_time, validate_text
from understudy.config import CellConfig, load_config
from understudy.config.files import read_program
from understudy.simulation.cell import Cell
from understudy.wire.exchange import Client, InProcessCell

PROGRAMS = ("drill_plate", "drill_dwell")
SHARE = 1e-3
"""± 0.1 %"""
CYCLE_START = b"~"
FACTORY = Path(__file__).parents[2] / "golden/grblhal_chat/factory.yaml"
OTHER_SETTINGS = """
robots:
  machine:
    kind: machine
    settings:
      {28: 0.5, 110: 3000, 111: 2500, 112: 900, 120: 150, 394: 3, 398: 30, 539: 2, 673: 1}
    faces:
      grblhal: {port: 2323}
"""


class Sender:
    """Streams a program line by line; changes the tool at once when the machine asks for it."""

    def __init__(self, config: CellConfig) -> None:
        built = build_cell(config)
        assert isinstance(built, Cell)
        self.cell = InProcessCell(built)
        self.machine: Any = built.components["machine"]
        self._client: Client = self.cell.connect("machine.grblhal")
        self._client.received()

    def stream(self, program: bytes) -> float:
        """Simulated seconds until the machine is at rest again."""
        for line in program.splitlines():
            self._send(line)
        while self.cell.timed_cell.busy():
            self.cell.run_while_busy()
        return self.cell.now

    def _send(self, line: bytes) -> None:
        self._client.say(line + b"\n")
        answered = self._client.received()
        while b"ok" not in answered:
            assert b"error" not in answered, (line, answered)
            assert b"ALARM" not in answered, (line, answered)
            if self.machine.status(self.cell.timed_cell.now).changing:
                self._client.say(CYCLE_START)
            else:
                at = self.cell.timed_cell.next_wake()
                assert at is not None, f"{line!r} is never answered"
                self.cell.advance_to(at)
            answered += self._client.received()


@pytest.fixture(params=["grblhal_6axis", "factory", "other settings"])
def config(request: pytest.FixtureRequest, tmp_path: Path) -> CellConfig:
    if request.param == "other settings":
        file = tmp_path / "cell.yaml"
        file.write_text(OTHER_SETTINGS)
        return load_config(str(file))
    return load_config(str(FACTORY) if request.param == "factory" else request.param)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_running_machine_takes_the_time_of_cycle_time(name: str, config: CellConfig) -> None:
    program = read_program(Path(name))
    report = validate_text(program, config)
    assert report.passed, report.violations
    expected = cycle_time(program, config)
    assert not expected.violations
    assert expected.total_s == report.total_s
    assert Sender(config).stream(program) == pytest.approx(expected.total_s, rel=SHARE)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_shipped_machine_runs_them_without_warnings(name: str) -> None:
    report = validate_text(read_program(Path(name)), load_config("grblhal_6axis"))
    assert report.warnings == ()
