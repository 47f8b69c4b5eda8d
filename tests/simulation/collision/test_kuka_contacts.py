"""Contacts of a KUKA with objects."""

from typing import Any

import pytest

from understudy.agenda import advance
from understudy.app.build import build_cell
from understudy.config import read_config
from understudy.ports import TimedComponent
from understudy.robots.kuka.records import Record
from understudy.robots.kuka.robot import KukaGcodeServer
from understudy.simulation.cell import Cell
from understudy.simulation.engine import SimulationEngine
from understudy.units import MM, NS_PER_SECOND

CELL = """
robots:
  kuka:
    kind: kuka
    base_mm_deg: [0, -1000, 0, 0, 0, 90]
    collision: {on_collision: HOW}
    on_emergency_stop: KEEP
    tool_shapes: {1: [{name: torch, type: capsule, radius_mm: 10, height_mm: 120, position_mm: [0, 0, 60]}]}
environment:
  objects:
    - {name: post, type: box, position_mm: [-100, -550, 300], dimensions_mm: [40, 400, 400]}
"""  # noqa: E501
"""The tip is at x 450, y 0, z 200 from the foot: at -0, -550, 200 in the cell."""


def cell(how: str = "report", keep: str = "clear") -> Cell:
    return build_cell(read_config(CELL.replace("HOW", how).replace("KEEP", keep), "kuka.yaml"))


def say(cell: Cell, seq: int, kind: int = 0, **words: float) -> None:
    given = {word: value * MM for word, value in words.items()}
    server = cell.components["kuka"]
    assert isinstance(server, KukaGcodeServer)
    server.submit(Record(seq, kind, given), cell.now)


def run(cell: Cell, seconds: float) -> None:
    cell.advance(cell.now + round(seconds * NS_PER_SECOND))


def watched(cell: Cell) -> tuple[Any, list[Any]]:
    watch: Any = cell.components["kuka.collision"]
    found: list[Any] = []
    watch.on_collision(found.append)
    return watch, found


def test_a_contact_is_reported_and_the_robot_continues() -> None:
    here = cell()
    watch, found = watched(here)
    say(here, 1, Y=50.0, F=100.0)
    say(here, 2, Y=150.0)
    say(here, 3, Y=0.0)
    run(here, 10.0)
    assert "torch" in [c.link for c in found]
    assert {c.object for c in found} == {"post"}
    assert watch.contacts() == ()
    assert here.components["engine"].status(here.now).metrics.collisions_detected == len(found)


@pytest.mark.parametrize("keep", ["clear", "keep"])
def test_a_contact_can_stop_the_robot_which_continues_if_configured(keep: str) -> None:
    here = cell("stop", keep)
    watch, found = watched(here)
    say(here, 1, Y=150.0, F=100.0)
    run(here, 10.0)
    server, engine = here.components["kuka"], here.components["engine"]
    assert isinstance(server, KukaGcodeServer)
    assert isinstance(engine, SimulationEngine)
    assert len(found) == 1
    assert watch.stopped
    assert found[0].text() in server.status(here.now).messages
    assert here.components["engine"].status(here.now).state == "ERROR"
    stood = server.reading(here.now).pose.y
    assert 0.0 < stood < 100 * MM
    if keep == "clear":
        engine.reset(here.now)
        run(here, 10.0)
        assert server.reading(here.now).pose.y == pytest.approx(stood)
        say(here, 2, Y=150.0)
        run(here, 10.0)
    while keep == "keep" and watch.stopped:  # by one part of it after the other
        engine.reset(here.now)
        assert engine.status(here.now).state == "RUNNING"
        run(here, 10.0)
    moved_on = server.reading(here.now).pose.y
    assert moved_on > stood + 1 * MM
    assert keep == "clear" or moved_on == pytest.approx(150 * MM)


@pytest.mark.parametrize("at", [0.2, 0.75, 1.3, 2.2])
def test_a_snapshot_is_invisible(at: float) -> None:
    plain, here = cell(), cell()
    for each in (plain, here):
        say(each, 1, Y=50.0, F=100.0)
        say(each, 2, Y=150.0)
        say(each, 3, Y=0.0)
    _, expected = watched(plain)
    run(plain, 6.0)
    run(here, at)
    snapshot = here.snapshot()
    other = cell()
    other.restore(snapshot)
    _, found = watched(other)
    advance([p for p in other.components.values() if isinstance(p, TimedComponent)], plain.now)
    other.advance(plain.now)
    assert found == [c for c in expected if c.at > here.now]
    assert other.snapshot() == plain.snapshot()
