"""Practise homing, probing and hard limits on a simulated mill. Run it with pytest."""

import pytest

from understudy.app.build import load_cell
from understudy.wire.exchange import Client, InProcessCell


@pytest.fixture
def mill() -> InProcessCell:
    """The shipped machine: limit switches at the positive ends of X, Y and Z, a table, a workpiece
    and a tool setter. See docs/robots/grblhal.md."""
    return load_cell("grblhal_6axis")


def answer(client: Client, line: str) -> list[str]:
    """The lines that answer a line; time runs until the last one has come."""
    return client.ask(line.encode() + b"\n").decode().split("\r\n")[:-1]


def homed(mill: InProcessCell) -> Client:
    client = mill.connect("machine.grblhal")
    client.received()
    report, message, ok = answer(client, "$H")  # the axes search, pull off, locate and pull off
    assert report.startswith("<Home|")
    assert (message, ok) == ("[MSG:]", "ok")
    return client


def test_home_and_find_the_workpiece(mill: InProcessCell) -> None:
    client = homed(mill)
    assert answer(client, "G53 G0 X-250 Y-200") == ["ok"]
    touch, _ = answer(client, "G38.2 Z-118 F200")
    assert touch == "[PRB:-250.000,-200.000,-110.000,0.000,0.000,0.000:1]"


def test_a_limit_switch_stops_the_axes(mill: InProcessCell) -> None:
    client = homed(mill)
    assert answer(client, "$21=1") == ["ok"]
    assert answer(client, "G1 X20 F600") == ["ok"]
    mill.advance(5.0)
    assert client.received().decode().split("\r\n")[0] == "ALARM:1"


def test_a_broken_switch_is_not_found(mill: InProcessCell) -> None:
    client = mill.connect("machine.grblhal")
    client.received()
    machine = mill.timed_cell.components["machine"]  # type: ignore[attr-defined]
    machine.inject("limit_switch_dead", {"axis": 2.0}, 0)  # Z is homed first
    assert "ALARM:9" in answer(client, "$H")
