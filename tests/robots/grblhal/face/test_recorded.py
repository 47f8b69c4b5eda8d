"""Recorded sessions of the real firmware: the face gives the same answers."""

import json
from pathlib import Path

import pytest
from tests.robots.grblhal.face.bench import FACTORY
from tests.robots.grblhal.face.sessions import CellWire, difference, outgoing, play_step, prepare

from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.wire.exchange import InProcessCell

GOLDEN = Path(__file__).parents[3] / "golden" / "grblhal_wire"
SESSIONS = sorted(GOLDEN.glob("*.json"))


def test_there_are_51_recorded_sessions() -> None:
    assert len(SESSIONS) == 51


def machine(cell: str = FACTORY) -> InProcessCell:
    return InProcessCell(build_cell(load_config(cell)))


def play(path: Path, virtual_cell: InProcessCell) -> None:
    session = json.loads(path.read_text())
    client = virtual_cell.connect("machine.grblhal")
    wire = CellWire(virtual_cell, client)
    prepare(wire, session["settings"])
    for number, step in enumerate(session["steps"], 1):
        problem = difference(step, play_step(wire, step))
        assert problem is None, f"{path.stem}, step {number} {outgoing(step)[:60]!r}: {problem}"
    client.leave()


@pytest.mark.parametrize("cell", [FACTORY, "grblhal_6axis"], ids=["factory", "shipped"])
@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_session(path: Path, cell: str) -> None:
    """Each session begins with `$RST=*`: the settings of the cell file do not matter."""
    play(path, machine(cell))


def test_all_sessions_one_after_the_other_on_one_machine() -> None:
    virtual_cell = machine()
    for path in (*SESSIONS, *reversed(SESSIONS)):
        play(path, virtual_cell)
