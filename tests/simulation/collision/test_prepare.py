"""`prepare` does in advance what a first motion would wait for, and changes no state."""

import msgspec
from tests.parts import part

import understudy
from understudy.simulation.collision.watch import CollisionWatch


def test_a_watch_that_is_prepared_says_what_it_said_before() -> None:
    cell, other = (understudy.load_cell("g60_welding") for _ in range(2))
    watch = part(cell, "g60.collision", CollisionWatch)
    for _ in watch.prepare():
        pass
    assert "sweeper" in watch._scene.__dict__
    assert msgspec.json.encode(cell.snapshot()) == msgspec.json.encode(other.snapshot())
