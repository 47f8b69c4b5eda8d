"""A whole cell: vision finds the parts, the gripper takes them, the arm stacks them on a pallet;
compared with the true state of the parts."""

import msgspec
from tests.simulation.workpieces.table_cell import CUBE, arm_of, at, components_of

from understudy.app.build import build_cell
from understudy.config import read_config
from understudy.jobs.pick_place.manager import PickPlaceManager
from understudy.simulation.cell import Cell, read_snapshot, write_snapshot

FINGER = {"type": "box", "dimensions_mm": [20, 10, 50]}
ROBOT = {
    "kind": "arm", "model": "g60", "tool": 2, "start_deg": [0, 0, 37, 0, 53, 0],
    "tools": {2: {
        "name": "gripper", "tcp_mm_deg": [0, 0, 80, 0, 0, 0], "mass_kg": 1.0,
        "shapes": [
            {"name": "palm", "type": "box", "dimensions_mm": [60, 90, 40],
             "position_mm": [0, 0, 20]},
            {**FINGER, "name": "left", "position_mm": [0, 45, 65]},
            {**FINGER, "name": "right", "position_mm": [0, -45, 65]},
        ],
    }},
    "gripper": {"type": "PNEUMATIC_2FINGER"},
    "pickplace": {
        "scan_position": {"x": 400, "y": 0, "z": 500},
        "place_position": {"x": 400, "y": -400, "z": 70},
        "grasps": {"*": {"symmetry_deg": 90}},
    },
    "pallet": {"rows": 2, "columns": 1, "layers": 2, "pitch_x": 70, "pitch_y": 70,
               "layer_height": 40},
}  # fmt: skip
TABLE = {
    "name": "table", "type": "box", "position_mm": [500, 0, 25],
    "dimensions_mm": [700, 1200, 50],
}  # fmt: skip
FEED = {
    **at(CUBE, "box", 350, -40, 70), "mass_kg": 0.3,
    "grid": {"columns": 2, "rows": 2, "pitch_mm": [110, 90, 0]},
}  # fmt: skip


def pick_cell() -> Cell:
    content = {"robots": {"g60": ROBOT}, "environment": {"objects": [TABLE]}, "parts": [FEED]}
    text = msgspec.json.encode(content).decode().replace('"2":', "2:")
    cell = build_cell(read_config(text, "pick.yaml"))
    arm_of(cell).connect(0)
    arm_of(cell).enable(0)
    return cell


def job_of(cell: Cell) -> PickPlaceManager:
    found = cell.components["g60.pick_place"]
    assert isinstance(found, PickPlaceManager)
    return found


def run(cell: Cell, until: str) -> None:
    job = job_of(cell)
    while job.status(cell.now).state not in (until, "ERROR"):
        due = cell.next_wake()
        assert due is not None
        cell.advance(due)


def test_four_parts_are_stacked_two_by_two_without_a_contact() -> None:
    cell = pick_cell()
    assert job_of(cell).start(0, max_cycles=4) is None
    run(cell, "IDLE")
    status = job_of(cell).status(cell.now)
    assert (status.state, status.success_count, status.fail_count) == ("IDLE", 4, 0)
    parts = components_of(cell).status(cell.now)
    found = {tuple(round(value, 5) for value in part.pose[:3]) for part in parts.parts}
    assert found == {(0.4, y, z) for y in (-0.4, -0.33) for z in (0.07, 0.11)}
    assert (parts.dropped, parts.tipped) == (0, 0)
    watch = arm_of(cell).collision
    assert watch is not None
    assert watch.detected == 0


def test_a_snapshot_with_the_part_in_the_hand_goes_on_alike() -> None:
    cell, other = pick_cell(), pick_cell()
    job_of(cell).start(0, max_cycles=1)
    run(cell, "MOVE_TO_PLACE")
    assert components_of(cell).held_by("g60")
    other.restore(read_snapshot(write_snapshot(cell.snapshot())))
    for each in (cell, other):
        run(each, "IDLE")
    assert write_snapshot(other.snapshot()) == write_snapshot(cell.snapshot())
