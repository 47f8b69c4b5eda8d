"""Parts rest, are held, fall, stack and tip over."""

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.simulation.workpieces.table_cell import (
    CUBE,
    TOP,
    arm_of,
    at,
    components_of,
    send,
    table_cell,
)

from understudy.errors import ConfigError, Refused
from understudy.motion.path import Floats
from understudy.ports.workpieces import WorkpieceReading
from understudy.simulation.cell import Cell, read_snapshot, write_snapshot
from understudy.simulation.collision.watch import CollisionWatch
from understudy.simulation.workpieces.config import WorkpieceConfig
from understudy.space.pose import Pose
from understudy.space.transform import matrix
from understudy.units import DEG, MM, seconds


def reading(cell: Cell, name: str = "cube") -> WorkpieceReading:
    return components_of(cell).reading(name, cell.now)


def events(cell: Cell) -> list[str]:
    found: list[str] = []
    components_of(cell).on_event(lambda event: found.append(event.text))
    return found


def put(cell: Cell, name: str, x: float, y: float, z: float, **turned: float) -> None:
    """Moves a part and lets it come to rest; millimetres and degrees."""
    rx, ry, rz = (turned.get(key, 0.0) * DEG for key in ("rx", "ry", "rz"))
    place = matrix(Pose(x * MM, y * MM, z * MM, rx, ry, rz))
    assert components_of(cell).move(name, place, cell.now) is None
    settle(cell)


def settle(cell: Cell) -> None:
    while (due := components_of(cell).next_wake()) is not None:
        cell.advance(due)


# ── cell file ───────────────────────────────────────────────────────────────────────────────────


def test_parts_of_a_cell_file_rest_on_what_is_below() -> None:
    grid = {
        **at(CUBE, "box", 400, -200, 72), "class": "carton", "color": "#112233",
        "grid": {"columns": 2, "rows": 3, "layers": 2, "pitch_mm": [50, 50, 41]},
    }  # fmt: skip
    can = {"name": "can", "type": "cylinder", "radius_mm": 20, "height_mm": 60,
           "position_mm": [500, 200, 300]}  # fmt: skip
    cell = table_cell(grid, can)
    status = components_of(cell).status(0)
    assert [part.name for part in status.parts] == [*(f"box_{n}" for n in range(1, 13)), "can"]
    heights = [round(part.pose.z, 9) for part in status.parts]
    assert heights == [TOP + 0.02] * 6 + [TOP + 0.06] * 6 + [TOP + 0.03]
    assert status.parts[0].class_name == "carton"
    assert status.parts[0].color == "#112233"
    assert status.parts[-1].size == (0.04, 0.04, 0.06)


@pytest.mark.parametrize(
    ("part", "problem"),
    [
        (at(CUBE, "table", 500, 200, 70), "an object of the environment has this name"),
        (at(CUBE, "cube", 500, 200, 70), "the name is used twice"),
        (at(CUBE, "other", 520, 0, 70), "overlaps an object or another part"),
        (at(CUBE, "other", 895, 440, 70) | {"rotation_deg": [0, 30, 0]}, "is tilted"),
        (at(CUBE, "other", 915, 0, 70), "nothing supports it under its centre"),
        ({"name": "other", "type": "cylinder", "position_mm": [0, 0, 0]}, "wrong size"),
        (at(CUBE, "other", 1e9, 0, 0), "wrong pose"),
        (at(CUBE, "other", 0, 0, 70) | {"color": "red"}, "color"),
        (at(CUBE, "other", 0, 0, 70) | {"grid": {"rows": 400, "columns": 400}}, "too many parts"),
        (at(CUBE, "other", 0, 0, 70) | {"grid": {"rows": 2, "pitch_mm": [0, 1e300, 0]}}, "large"),
    ],
)
def test_a_part_that_does_not_fit_is_an_error_with_its_name(
    part: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        table_cell(CUBE, part)


def test_a_cell_without_the_key_has_no_parts() -> None:
    assert "parts" not in table_cell(parts=None).components
    assert "parts" in table_cell().components


# ── held ────────────────────────────────────────────────────────────────────────────────────────


def test_a_held_part_moves_with_the_flange_and_rests_where_it_is_put_down() -> None:
    cell = table_cell(CUBE)
    parts, arm = components_of(cell), arm_of(cell)
    before = np.linalg.inv(arm.flange(cell.now)) @ parts.place("cube", cell.now)
    parts.take("cube", "g60", cell.now)
    assert parts.held_by("g60") == "cube"
    send(cell, "G0 A30")
    carried = reading(cell)
    assert (carried.state, carried.holder) == ("held", "g60")
    assert np.allclose(parts.place("cube", cell.now), arm.flange(cell.now) @ before, atol=1e-12)
    turn = carried.pose.x, carried.pose.y
    assert turn == pytest.approx((0.5 * math.cos(30 * DEG), 0.5 * math.sin(30 * DEG)))
    parts.let_go("g60", cell.now)
    down = reading(cell)
    assert (down.state, down.holder) == ("resting", "")
    assert down.pose.z == pytest.approx(TOP + 0.02, abs=1e-12)
    assert parts.held_by("g60") == ""


def test_a_part_is_near_the_tool_if_it_reaches_into_the_box() -> None:
    cell = table_cell(CUBE, at(CUBE, "left", 500, 60, 70))

    def near(y: float, wide: float) -> Sequence[str]:
        tool = Pose(0.5, y, 0.07, math.pi, 0.0, 0.0)
        return components_of(cell).near(tool, (0.02, wide, 0.02), cell.now)

    assert near(0.0, 0.02) == ["cube"]
    assert near(0.03, 0.018) == []
    assert near(0.031, 0.024) == ["left", "cube"]
    components_of(cell).take("cube", "g60", cell.now)
    assert near(0.0, 0.02) == []


def test_the_torques_of_the_joints_contain_the_held_part() -> None:
    """The work of gravity on the part: m·g times the slope of its height over each joint."""
    cell = table_cell({**CUBE, "mass_kg": 4.0})
    parts, arm = components_of(cell), arm_of(cell)
    empty = np.array(arm.joint_state(cell.now).torques)
    parts.take("cube", "g60", cell.now)
    loaded = np.array(arm.joint_state(cell.now).torques)
    within = parts.within_flange("cube")
    assert within is not None
    chain, q, step = arm.arm.movers[0].chain, np.array(arm.joint_state(cell.now).positions), 1e-5

    def height(q: Floats) -> float:
        return float((chain.flange(q) @ within)[2, 3])

    slopes = [
        (height(q + step * row) - height(q - step * row)) / (2 * step) for row in np.eye(chain.dof)
    ]
    assert loaded - empty == pytest.approx(4.0 * 9.81 * np.array(slopes), abs=1e-6)
    assert np.abs(loaded - empty).max() > 10.0
    parts.let_go("g60", cell.now)
    assert np.array_equal(arm.joint_state(cell.now).torques, empty)


POST = {
    "name": "post", "type": "cylinder", "position_mm": [0.0, 500.0, 300.0],
    "radius_mm": 20.0, "height_mm": 600.0,
}  # fmt: skip


def test_a_carried_part_collides_under_its_own_name() -> None:
    """The arm alone passes above the post; the part that hangs below the flange does not."""
    low_post = {**POST, "position_mm": [0.0, 500.0, 60.0], "height_mm": 120.0}
    for carried in (True, False):
        cell = table_cell(CUBE, objects=(low_post,))
        watch = cell.components["g60.collision"]
        assert isinstance(watch, CollisionWatch)
        found: list[tuple[str, str]] = []
        watch.on_collision(lambda contact, found=found: found.append(contact.names))  # type: ignore[misc]
        if carried:
            components_of(cell).take("cube", "g60", cell.now)
        send(cell, "G1 A120 F3000")
        assert found == ([("cube", "post")] if carried else [])
        held = watch.status(cell.now).held
        assert held == (("cube",) if carried else ())


def test_a_resting_part_is_an_obstacle_until_it_is_taken() -> None:
    tower = {"name": "tower", "dimensions_mm": [60, 60, 1100], "position_mm": [540, 300, 600]}
    cell = table_cell(tower)
    watch = cell.components["g60.collision"]
    assert isinstance(watch, CollisionWatch)
    send(cell, "G1 A60 F3000")
    assert {contact.object for contact in watch.uncleared()} == {"tower"}
    assert components_of(cell).remove("tower", cell.now) is None
    watch.clear()
    send(cell, "G1 A0 F3000")
    assert watch.uncleared() == ()


# ── falling, stacking, tipping ──────────────────────────────────────────────────────────────────


def test_a_part_that_is_let_go_in_the_air_falls_freely() -> None:
    cell = table_cell(CUBE)
    seen, parts = events(cell), components_of(cell)
    parts.take("cube", "g60", cell.now)
    send(cell, "G0 B-20")
    above = reading(cell).pose.z
    drop = parts.place("cube", cell.now)
    parts.let_go("g60", cell.now)
    start = cell.now
    due = parts.next_wake()
    assert due is not None
    lowest = reading(cell).pose.z
    assert lowest == pytest.approx(above)
    settle(cell)
    height = float(drop[2, 3]) - reading(cell).pose.z
    assert height > 0.05
    assert seconds(due - start) == pytest.approx(math.sqrt(2 * height / 9.81), abs=1e-6)
    assert reading(cell).state == "resting"
    assert parts.status(cell.now).dropped == 1
    assert any("has dropped" in text for text in seen)


def test_half_way_down_a_falling_part_has_fallen_a_quarter() -> None:
    cell = table_cell(CUBE)
    parts = components_of(cell)
    assert parts.move("cube", matrix(Pose(0.5, 0.2, TOP + 0.02 + 0.4, 0, 0, 0)), 0) is None
    due = parts.next_wake()
    assert due is not None
    assert reading(cell).state == "falling"
    cell.advance(due // 2)
    assert reading(cell).pose.z == pytest.approx(TOP + 0.02 + 0.3, abs=1e-6)
    assert parts.near(reading(cell).pose, (1.0, 1.0, 1.0), cell.now) == []


def test_parts_stack_and_fall_when_the_lower_one_is_taken() -> None:
    cell = table_cell(CUBE, at(CUBE, "upper", 700, 0, 70), at(CUBE, "top", 700, 200, 70))
    seen = events(cell)
    put(cell, "upper", 505, 5, 111.5, rz=20)
    put(cell, "top", 500, 0, 151)
    heights = [reading(cell, name).pose.z for name in ("cube", "upper", "top")]
    assert heights == pytest.approx([TOP + 0.02, TOP + 0.06, TOP + 0.10], abs=1e-9)
    assert seen == []
    components_of(cell).take("cube", "g60", cell.now)
    settle(cell)
    heights = [reading(cell, name).pose.z for name in ("upper", "top")]
    assert heights == pytest.approx([TOP + 0.02, TOP + 0.06], abs=1e-9)
    assert len(seen) == 2
    assert components_of(cell).status(cell.now).dropped == 2


def test_a_part_that_is_not_supported_under_its_centre_tips_and_lies_beside() -> None:
    cell = table_cell(CUBE, at(CUBE, "upper", 700, 0, 70))
    seen = events(cell)
    put(cell, "upper", 522, 0, 110)
    assert "upper is unstable and falls over" in seen
    lies = reading(cell, "upper").pose
    assert lies.z == pytest.approx(TOP + 0.02)
    assert lies.x >= 0.54 - 1e-9
    assert components_of(cell).status(cell.now).tipped == 1


def test_two_supports_carry_a_part_whose_centre_is_between_them() -> None:
    wide = {"name": "plank", "dimensions_mm": [200, 40, 20], "position_mm": [700, 300, 60]}
    cell = table_cell(CUBE, at(CUBE, "other", 620, 0, 70), wide)
    put(cell, "plank", 560, 0, 101)
    assert reading(cell, "plank").pose.z == pytest.approx(TOP + 0.05)
    assert components_of(cell).status(cell.now).tipped == 0
    components_of(cell).take("other", "g60", cell.now)
    settle(cell)
    assert components_of(cell).status(cell.now).tipped == 1


def test_tilted_parts_come_to_lie_on_the_nearest_side() -> None:
    can = {"name": "can", "type": "cylinder", "radius_mm": 20, "height_mm": 60,
           "position_mm": [500, 200, 300]}  # fmt: skip
    cell = table_cell(CUBE, can)
    put(cell, "can", 500, 200, 100, rx=3)
    assert reading(cell, "can").pose == pytest.approx((0.5, 0.2, TOP + 0.03, 0, 0, 0), abs=1e-9)
    assert components_of(cell).status(cell.now).tipped == 0
    put(cell, "can", 500, 200, 100, rx=70)
    assert reading(cell, "can").pose.z == pytest.approx(TOP + 0.02)
    assert components_of(cell).status(cell.now).tipped == 1


def test_beside_everything_a_part_rests_on_the_floor() -> None:
    cell = table_cell(CUBE)
    put(cell, "cube", 3000, 3000, 500)
    assert reading(cell).pose.z == pytest.approx(0.02)


def test_a_part_that_is_put_into_another_one_is_lifted_onto_it() -> None:
    cell = table_cell(CUBE, at(CUBE, "other", 700, 0, 70))
    put(cell, "other", 505, 0, 70)
    assert reading(cell, "other").pose.z == pytest.approx(TOP + 0.06)


def test_parts_fall_when_their_table_is_removed() -> None:
    cell = table_cell(CUBE)
    environment: Any = cell.components["environment"]
    environment.remove("table", cell.now)
    settle(cell)
    assert reading(cell).pose.z == pytest.approx(0.02)


# ── changes by an operator ──────────────────────────────────────────────────────────────────────


def test_parts_are_added_and_removed_while_the_cell_runs() -> None:
    cell = table_cell(CUBE)
    parts = components_of(cell)
    new = msgspec.convert(at(CUBE, "new", 500, 100, 70), WorkpieceConfig, strict=False)
    assert parts.add(new, cell.now) is None
    assert isinstance(parts.add(new, cell.now), Refused)
    assert parts.names() == ("cube", "new")
    parts.take("new", "g60", cell.now)
    for refused in (parts.remove("new", cell.now), parts.move("new", np.eye(4), cell.now)):
        assert refused == Refused("g60 holds new: release it first")
    assert isinstance(parts.remove("nobody", cell.now), Refused)
    assert parts.remove("cube", cell.now) is None
    assert parts.names() == ("new",)
    assert parts.add(msgspec.structs.replace(new, name="third"), cell.now) is None
    with pytest.raises(ValueError, match="holds new"):
        parts.take("third", "g60", cell.now)


def test_an_object_cannot_have_the_name_of_a_part() -> None:
    cell = table_cell(CUBE)
    environment: Any = cell.components["environment"]
    (table,) = environment.environment.objects
    named = type(table)(**{**vars_of(table), "name": "cube"})
    assert environment.add([named], cell.now) == Refused(
        "cube is the name of a part; choose another"
    )


def vars_of(thing: Any) -> dict[str, Any]:
    return {key: getattr(thing, key) for key in thing.__dataclass_fields__}


# ── snapshots ───────────────────────────────────────────────────────────────────────────────────


def test_a_snapshot_keeps_resting_held_and_falling_parts() -> None:
    def begun() -> Cell:
        cell = table_cell(CUBE, at(CUBE, "other", 600, 200, 70), at(CUBE, "third", 700, 0, 70))
        components_of(cell).take("cube", "g60", cell.now)
        components_of(cell).move("other", matrix(Pose(0.5, 0.2, 0.9, 0, 0, 0)), cell.now)
        send(cell, "G1 A40 F3000", until_idle=False)
        cell.advance(150_000_000)
        return cell

    cell = begun()
    written = write_snapshot(cell.snapshot())
    states = {part.name: part.state for part in components_of(cell).status(cell.now).parts}
    assert states == {"cube": "held", "other": "falling", "third": "resting"}
    other = table_cell(CUBE, at(CUBE, "other", 600, 200, 70), at(CUBE, "third", 700, 0, 70))
    other.restore(read_snapshot(written))
    for each in (cell, other):
        each.advance(2_000_000_000)
    assert write_snapshot(cell.snapshot()) == write_snapshot(other.snapshot())
    assert other.status() == cell.status()
    torques = [arm_of(each).joint_state(each.now).torques for each in (cell, other)]
    assert torques[0] == torques[1]


def test_another_grasp_of_the_same_part_is_another_body_for_other_arms() -> None:
    cell = table_cell(CUBE)
    watch, parts = arm_of(cell).collision, components_of(cell)
    assert watch is not None
    parts.take("cube", "g60", cell.now)
    first = watch.tool_and_held
    parts.let_go("g60", cell.now)
    put(cell, "cube", 500, 10, 70)
    parts.take("cube", "g60", cell.now)
    assert watch.tool_and_held != first


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("records", 0, "place", 0, 0), 2.0),
        (("records", 0, "place", 0, 3), 1e7),
        (("records", 1, "place", 0, 0), 2.0),
        (("records", 2, "target", 1, 1), 0.0),
        (("records", 2, "target"), None),
        (("records", 2, "since"), 1 << 60),
        (("records", 0, "holder"), "g60"),
        (("records", 1, "holder"), "kuka"),
        (("records", 0, "state"), "flying"),
        (("records", 0, "value", "size", 0), -0.04),
        (("records", 1, "value", "size", 0), 0.0),
        (("records", 0, "value", "mass"), 0.0),
        (("records", 0, "value", "color"), "<b>"),
        (("records", 0, "value", "name"), "other"),
    ],
)
def test_a_damaged_snapshot_is_refused_and_changes_nothing(
    keys: tuple[Any, ...], value: Any
) -> None:
    cell = table_cell(CUBE, at(CUBE, "other", 600, 200, 70), at(CUBE, "third", 700, 0, 70))
    components_of(cell).take("other", "g60", cell.now)
    components_of(cell).move("third", matrix(Pose(0.5, 0.2, 0.9, 0, 0, 0)), cell.now)
    before = write_snapshot(cell.snapshot())
    damaged = msgspec.json.decode(before)
    inside = damaged["parts"]["parts"]
    for key in keys[:-1]:
        inside = inside[key]
    inside[keys[-1]] = value
    with pytest.raises(ConfigError):
        cell.restore(read_snapshot(msgspec.json.encode(damaged)))
    assert write_snapshot(cell.snapshot()) == before
