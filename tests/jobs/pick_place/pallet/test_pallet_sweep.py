"""A whole pallet of the G60: every cell is within reach, and no move touches what is stacked."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from understudy.config import load_config
from understudy.config.typed import read
from understudy.errors import Refused
from understudy.gcode.requests import LineMove
from understudy.jobs.pick_place.config import CycleConfig, Interleave, PalletConfig, PatternType
from understudy.jobs.pick_place.moves import CycleMove, CyclePoses, pick_moves, place_moves
from understudy.jobs.pick_place.pallet import PalletLayout, unreachable
from understudy.motion.path import Path
from understudy.robots.arm import Config
from understudy.robots.arm.assembly import body_of, mover_of
from understudy.simulation.collision.body import Body, six_joint_chain
from understudy.space.collision.sweep import LineResult, Sweeper
from understudy.space.kinematics.ik import nearest, solve
from understudy.space.model.environment import Environment, ObjectConfig
from understudy.space.model.shapes import CollisionObject, ObjectType
from understudy.space.pose import Position
from understudy.space.transform import Array, matrix, translation

GRIPPER: dict[str, Any] = {
    "name": "gripper",
    "tcp_mm_deg": [0, 0, 80, 0, 0, 0],
    "mass_kg": 1.0,
    "shapes": [
        {"name": "palm", "type": "cylinder", "radius_mm": 25, "height_mm": 50,
         "position_mm": [0, 0, 25]},
        {"name": "beam", "type": "box", "dimensions_mm": [90, 16, 10], "position_mm": [0, 0, 45]},
        {"name": "left", "type": "box", "dimensions_mm": [10, 16, 40], "position_mm": [-40, 0, 70]},
        {"name": "right", "type": "box", "dimensions_mm": [10, 16, 40], "position_mm": [40, 0, 70]},
    ],
}  # fmt: skip
ARM: Config = read({"model": "g60", "tool": 1, "tools": {1: GRIPPER}}, Config)
READ = load_config("g60_welding").read_file
CHAIN = six_joint_chain(ARM, READ)
MOVER = mover_of(ARM, CHAIN, 1)
SHIPPED = PalletConfig(layers=2, corner2=Position(600.0, 100.0, 100.0))
CYCLE = CycleConfig(scan_position=Position(350.0, 300.0, 400.0))
PICK = Position(350.0, 300.0, 100.0).pose()
PART = np.array([0.06, 0.06, 0.05])
MARGIN = 0.001
"""Taken off every side of a part, so that parts that rest on each other do not touch."""


@pytest.fixture(scope="module")
def body() -> Body:
    return body_of(ARM, CHAIN, READ)


def around() -> Environment:
    floor = ObjectConfig(name="floor", type=ObjectType.BOX, position_mm=(0, 0, -50),
                         dimensions_mm=(4000, 4000, 100))  # fmt: skip
    table = ObjectConfig(name="table", type=ObjectType.BOX, position_mm=(450, 50, 37.5),
                         dimensions_mm=(600, 900, 75))  # fmt: skip
    return Environment((floor.build(READ), table.build(READ)))


def part(name: str, at: Array) -> CollisionObject:
    size = tuple((PART - 2 * MARGIN).tolist())
    return CollisionObject(type=ObjectType.BOX, name=name, transform=at, dimensions=size)


def followed(moves: list[CycleMove], q: Array) -> tuple[list[Path], Array]:
    """The joint paths of these moves, and where they end."""
    paths = []
    for move in moves:
        assert move.target.pose is not None
        path = MOVER.path(LineMove(move.target.pose, speed=0.5, turning=1.0), q, line=0)
        assert not isinstance(path, Refused), (move, path)
        if len(path):
            paths.append(path)
            q = path.end[-1]
    return paths, q


def fill(
    layout: PalletLayout, body: Body, cycle: CycleConfig, *, safe: bool = True
) -> Iterator[LineResult]:
    """The verdicts of all moves with which the pallet is filled; not ``safe``: at the heights of
    approach and retract only."""
    detector = body.detector(around(), 1)
    sweeper = Sweeper(detector)
    here = cycle.scan_position.pose()
    start = solve(CHAIN, matrix(here), frames=MOVER.frames)
    assert not isinstance(start, Refused)
    q = nearest(start, np.zeros(6))
    for index in range(layout.total):
        travel = layout.safe_height(index + 1) if safe else None
        poses = CyclePoses(PICK, layout.pose(index), travel=travel)
        *picking, retract_pick = pick_moves(cycle, poses, here)
        moves = place_moves(cycle, poses, retract_pick.target.pose or PICK)
        released = next(n for n, m in enumerate(moves) if m.leg == "RETRACT_PLACE")
        loaded = [retract_pick, *moves[:released]]
        for what, carries in ((picking, False), (loaded, True), (moves[released:], False)):
            if carries:
                detector.attach(part("held", translation(0, 0, 0.08)))
            paths, q = followed(what, q)
            for path in paths:
                yield from sweeper.sweep(path.shape, path.length)
            if carries:
                detector.detach("held")
                detector.add_object(part(f"part{index}", matrix(layout.pose(index))))
        here = moves[-1].target.pose or here


def assert_clear(config: PalletConfig, body: Body, cycle: CycleConfig = CYCLE) -> None:
    layout = PalletLayout(config, Position(600.0, -200.0, 100.0))
    results = list(fill(layout, body, cycle))
    assert len(results) > 4 * layout.total
    touched = [r.spot for r in results if not r.proven]
    assert touched == []


@pytest.mark.parametrize("pattern", ["SNAKE", "ZIGZAG", "ROW_BY_ROW", "COLUMN_BY_COLUMN", "SPIRAL"])
def test_no_move_of_a_full_pallet_touches_a_placed_part(pattern: PatternType, body: Body) -> None:
    assert_clear(replace(SHIPPED, pattern=pattern), body)


@pytest.mark.parametrize("interleave", ["MIRROR", "ROTATE", "SHIFT"])
def test_no_move_touches_a_part_of_interleaved_layers(interleave: Interleave, body: Body) -> None:
    assert_clear(replace(SHIPPED, interleave=interleave, rows=3, columns=3), body)


def test_the_safe_height_and_not_the_approach_distance_keeps_the_part_clear(body: Body) -> None:
    """With an approach of 20 mm the carried part would touch what is stacked."""
    low = replace(CYCLE, approach_distance_mm=20.0, retract_distance_mm=20.0)
    layout = PalletLayout(replace(SHIPPED, rows=2, columns=2), Position(600.0, -200.0, 100.0))
    assert not all(result.proven for result in fill(layout, body, low, safe=False))
    assert_clear(replace(SHIPPED, rows=2, columns=2), body, low)


# ── reach ───────────────────────────────────────────────────────────────────────────────────────


def test_every_cell_of_the_shipped_pallet_is_within_reach() -> None:
    layout = PalletLayout(SHIPPED, Position(600.0, -200.0, 100.0))
    assert unreachable(layout, MOVER.reaches, approach=0.05) == ()


def test_the_pallet_of_the_design_document_is_partly_out_of_reach() -> None:
    layout = PalletLayout(PalletConfig(layers=2), Position(600.0, -200.0, 100.0))
    found = unreachable(layout, MOVER.reaches, approach=0.05)
    assert found
    far = [index for index, at in enumerate(layout.points) if np.hypot(*at[:2]) > 0.85]
    assert set(far) <= set(found)
    assert MOVER.reaches([layout.pose(0)]) == [True]
