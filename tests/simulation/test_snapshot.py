"""A cell that is saved and restored gives the same answers afterwards."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.app.build import build_cell
from understudy.config import load_config
from understudy.errors import ConfigError
from understudy.ports import Snapshot
from understudy.simulation.cell import read_snapshot, write_snapshot
from understudy.wire.exchange import Client, InProcessCell

CONFIG = load_config("text_robot")


def virtual_cell(seed: int = 3) -> InProcessCell:
    return InProcessCell(build_cell(CONFIG.with_seed(seed)))


def on_paper(snapshot: Snapshot) -> Snapshot:
    return read_snapshot(write_snapshot(snapshot))


# ── invisible ──

LINES = ["GET_POS\n", "GET_STATUS\n", "MOVE_REL 1,2,3\n", "HOME\n", "STOP\n", "RESET\n", "MOVE_ABS"]
LINES += [" 5,6,7,0,0,0\nGET_", "POS\n"]
SAY = st.tuples(st.just("say"), st.integers(0, 2), st.sampled_from(LINES))
ADVANCE = st.tuples(st.just("advance"), st.floats(0.0, 0.7), st.none())
END = st.tuples(st.just("end"), st.integers(0, 2), st.none())


def _take(steps: list[Any], cell: InProcessCell, clients: list[Client | None]) -> None:
    """A client without remaining lines is removed from the list."""
    for kind, what, text in steps:
        if kind == "advance":
            cell.advance(what)
        elif (client := clients[what]) and kind == "say":
            client.say(text.encode())
        elif client:
            clients[what] = None
            client.end()


@given(st.lists(SAY | ADVANCE | END, max_size=12), st.lists(SAY | ADVANCE, max_size=12))
def test_snapshot_run_restore_run_again(before: list[Any], after: list[Any]) -> None:
    cell = virtual_cell()
    clients: list[Client | None] = [cell.connect() for _ in range(3)]
    _take(before, cell, clients)
    snapshot = on_paper(cell.snapshot())
    runs = []
    for _ in range(2):
        start = len(cell.transcript)
        _take(after, cell, clients)
        cell.advance(60)
        runs.append(cell.transcript[start:])
        cell.restore(snapshot)
    assert runs[0] == runs[1]


def test_a_new_cell_continues_from_the_snapshot() -> None:
    old = virtual_cell()
    mover = old.connect()
    mover.say(b"MOVE_ABS 100,0,0,0,0,0\nGET_PO")
    old.advance(0.2)
    new = virtual_cell()
    new.restore(on_paper(old.snapshot()))
    assert new.now == 0.2

    for cell in (old, new):
        watcher = cell.connect()
        assert watcher.peer == "2"
        watcher.say(b"GET_POS\n")
        cell.run_while_owed()
        watcher.say(b"GET_STATUS\n")
    reported = [(e.at, e.peer, e.kind, e.data) for e in new.transcript]
    assert reported == [(e.at, e.peer, e.kind, e.data) for e in old.transcript[2:]]
    assert ("1", "<", b"OK Movement completed\n") in [event[1:] for event in reported]


# ── peers ──


def test_a_peer_in_the_snapshot_stays_connected_and_any_other_is_closed() -> None:
    cell = virtual_cell()
    known = cell.connect()
    known.say(b"GET_")
    snapshot = cell.snapshot()
    stranger = cell.connect()
    known.ask(b"POS\nHOME\n")
    cell.restore(snapshot)
    assert (known.connected, stranger.connected) == (True, False)
    assert known.ask(b"STATUS\n").startswith(b"OK Idle,")
    assert cell.connect().peer == "2"


def test_a_peer_that_disconnected_since_is_answered_in_the_transcript() -> None:
    cell = virtual_cell()
    mover = cell.connect()
    mover.say(b"MOVE_REL 1,0,0\n")
    snapshot = cell.snapshot()
    mover.leave()
    cell.run_while_busy()
    said = len(cell.transcript)
    cell.restore(snapshot)
    cell.run_while_owed()
    assert [event.data for event in cell.transcript[said:]] == [b"OK Movement completed\n"]
    assert mover.received() == b""


# ── refused ──


def _fails(cell: InProcessCell, snapshot: Snapshot, problem: str) -> None:
    """Checks that the snapshot is refused and nothing has changed."""
    before = write_snapshot(cell.snapshot())
    with pytest.raises(ConfigError, match=problem):
        cell.restore(snapshot)
    assert write_snapshot(cell.snapshot()) == before


def test_a_snapshot_of_another_configuration_is_refused() -> None:
    cell = virtual_cell(seed=4)
    snapshot = virtual_cell(seed=5).snapshot()
    _fails(
        cell, snapshot, r"digest: the snapshot is of another configuration \(cell 'text_robot'\)"
    )


def test_a_snapshot_of_another_format_is_refused() -> None:
    cell = virtual_cell()
    snapshot = msgspec.structs.replace(cell.snapshot(), format=99)
    _fails(cell, snapshot, r"format: the snapshot has another format \(got 99\); allowed: 3")


@pytest.mark.parametrize("part", ["bench", "bench.text_tcp", "scenario"])
def test_a_snapshot_with_a_damaged_part_is_refused_as_a_whole(part: str) -> None:
    cell = virtual_cell()
    snapshot = cell.snapshot()
    cell.connect().ask(b"MOVE_REL 1,2,3\n")
    damaged = msgspec.structs.replace(snapshot, parts=snapshot.parts | {part: 7})
    _fails(cell, damaged, "the snapshot is damaged")
    missing = {name: state for name, state in snapshot.parts.items() if name != part}
    _fails(
        cell, msgspec.structs.replace(snapshot, parts=missing), f"the snapshot is damaged: {part}: "
    )


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1]", b"\xff\x00", b'{"cell": "\xff"}', b"[" * 5000]
)
def test_bytes_that_are_not_a_snapshot_are_refused(content: bytes) -> None:
    with pytest.raises(ConfigError, match=r"^not a snapshot: "):
        read_snapshot(content)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if not isinstance(value, dict | list):
        return [path]
    items = value.items() if isinstance(value, dict) else enumerate(value)
    inside = [place for key, item in items for place in _places(item, (*path, key))]
    return [path, *inside] if path else inside


DAMAGE: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3) | st.just({}) | st.just([])
)


@given(st.data())
def test_a_damaged_snapshot_is_refused_or_leaves_a_cell_that_works(data: st.DataObject) -> None:
    cell = virtual_cell()
    client = cell.connect()
    client.say(b"HOME\nGET_POS\nMOVE_REL 1,2,3\nGET_")
    cell.advance(0.3)
    whole = msgspec.to_builtins(cell.snapshot())
    place = data.draw(st.sampled_from(_places(whole)))
    spot = whole
    for key in place[:-1]:
        spot = spot[key]
    spot[place[-1]] = data.draw(DAMAGE)
    fresh = virtual_cell()
    try:
        fresh.restore(read_snapshot(msgspec.json.encode(whole)))
    except ConfigError:
        assert fresh.now == 0.0
    witness = fresh.connect()
    witness.say(b"STOP\nGET_STATUS\n")
    fresh.run_while_owed()
    assert b"OK " in witness.received()
