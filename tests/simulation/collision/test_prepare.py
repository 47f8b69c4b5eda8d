"""`prepare` does the slow work of the first motion in advance and changes no state."""

import msgspec
from tests.parts import part

import understudy
from understudy.simulation.collision.watch import CollisionWatch


def test_prepare_does_not_change_the_contacts() -> None:
    cell, other = (understudy.load_cell("g60_welding") for _ in range(2))
    watch = part(cell, "g60.collision", CollisionWatch)
    for _ in watch.prepare():
        pass
    assert "sweeper" in watch._scene.__dict__
    assert msgspec.json.encode(cell.snapshot()) == msgspec.json.encode(other.snapshot())
