"""The real firmware's sessions: all that it said is said here, too."""

import json
from pathlib import Path

import pytest

from understudy.app import build_cell, load_config
from understudy.wire.rehearsal import Rehearsal

from .sessions import Wire, difference, outgoing, play_step, prepare

GOLDEN = Path(__file__).parents[2] / "golden" / "grblhal_wire"
SESSIONS = sorted(GOLDEN.glob("*.json"))


def test_there_are_48_of_them() -> None:
    assert len(SESSIONS) == 48


def machine() -> Rehearsal:
    return Rehearsal(build_cell(load_config("grblhal_6axis")))


def play(path: Path, rehearsal: Rehearsal) -> None:
    session = json.loads(path.read_text())
    client = rehearsal.connect("machine.grblhal")
    wire = Wire(rehearsal, client)
    prepare(wire, session["settings"])
    for number, step in enumerate(session["steps"], 1):
        problem = difference(step, play_step(wire, step))
        assert problem is None, f"{path.stem}, step {number} {outgoing(step)[:60]!r}: {problem}"
    client.leave()


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_session(path: Path) -> None:
    play(path, machine())


def test_all_sessions_one_after_the_other_on_one_machine() -> None:
    rehearsal = machine()
    for path in (*SESSIONS, *reversed(SESSIONS)):
        play(path, rehearsal)
