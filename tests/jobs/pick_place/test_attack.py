"""Random operators, two clients, faults and snapshots at a pick & place cell: what must hold does.

The checks are in `attack.py`: no part is dropped, lost or doubled, no arc outside WELDING, at most
250 mm/s in MANUAL, every state defined, no exception, the same bytes after a restore; then the
job runs again.
"""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.operator.attack import Attacked, Call, cell_text

GRIPPERS = ("PNEUMATIC_2FINGER", "PNEUMATIC_VACUUM", "ELECTRIC_SERVO")
MODES = ("MANUAL", "PICKPLACE", "WELDING", "SCAN_TO_PATH")
OF_JOB = (
    "start_pick_place", "single_pick_place", "stop_pick_place", "pause_pick_place",
    "resume_pick_place", "reset_pick_place", "retract_pick_place", "grip_part", "release_part",
    "gripper_close", "gripper_open", "gripper_emergency_release", "reset_pallet", "confirm_tool",
    "retry_changeover", "abort_changeover", "reset", "stop", "emergency_stop",
)  # fmt: skip
OF_ROBOT = (
    "reset", "stop", "emergency_stop", "enable", "disable", "hold", "cycle_start", "home",
    "stop_jog", "run_program", "stop_program", "pause_program",
)  # fmt: skip
FAULTS: tuple[tuple[str, str, dict[str, float]], ...] = (
    ("closed_sensor_stuck", "g60.gripper", {"value": 1}),
    ("opened_sensor_stuck", "g60.gripper", {"value": 0}),
    ("part_sensor_stuck", "g60.gripper", {"value": 1}),
    ("part_sensor_stuck", "g60.gripper", {"value": 0}),
    ("valve_stuck", "g60.gripper", {}),
    ("air_lost", "g60.gripper", {}),
    ("vacuum_leak", "g60.gripper", {"share": 0.9}),
    ("slip", "g60.gripper", {}),
    ("finger_blocked", "g60.gripper", {}),
    ("drive_fault", "g60.gripper", {}),
    ("cable_cut", "g60.gripper", {"duration_s": 1.0}),
    ("emergency_stop", "g60", {}),
    ("emergency_release", "g60", {}),
    ("axis_fault", "g60", {"axis": 2}),
    ("force_analog", "g60.io", {"pin": 4, "value": 12}),
    ("force_input", "g60.io", {"pin": 10, "value": 1}),
    ("pulse_input", "g60.io", {"pin": 10, "value": 0, "duration_s": 0.02}),
    ("gas_fault", "g60.welder", {}),
)
LINES = ("M3", "M4", "M62 P0", "M64 P0", "M64 P9", "M65 P9", "G0 A10", "T1 M6", "M61 Q1", "G49")
PROGRAMS = ("G0 A20\nM3\nG1 A0 F1000\nM5\n", "M64 P9\nG4 P0.2\nM65 P9\nG0 A10\n", "T1 M6\nG0 A5\n")
PIECES = (
    b"G0 A10\n", b"M3 S100\n", b"?", b"!", b"~", b"\x18", b"$X\n", b"$H\n", b"\x84", b"\x85",
    b"$J=G91 A20 F5000\n", b"M64 P9\n", b"T1 M6\n", b"$N0=M3\n", b"G1 X400 Y0 Z400 F60000\n",
    b"\x90\x91", b"\xff\x00garbage", b"$$\n", b"$C\n",
)  # fmt: skip
TABLE = {"name": "table", "type": "box", "dimensions_mm": [700, 1200, 50]}
WALL = {"name": "wall", "type": "box", "position_mm": [400, 0, 300], "dimensions_mm": [50, 50, 50]}
BOX = {"name": "box", "dimensions_mm": [40, 40, 40]}
CUBES = tuple(f"cube_{number}" for number in range(1, 5))

times = st.sampled_from([0.001, 0.02, 0.1, 0.3, 1.0, 3.0])
places = st.tuples(st.floats(300, 500), st.floats(-150, 150), st.sampled_from([70.0, 100.0, 300.0]))
turns = st.tuples(st.floats(-90, 90), st.floats(-90, 90), st.floats(-90, 90))
joints = st.floats(-60, 60).map(lambda first: [first, -30, 60, 0, 60, 0])
pins = st.sampled_from([0, 8, 9, 10, 11])


def command(name: str, /, **parameters: Any) -> st.SearchStrategy[Call]:
    """A call of a command; values that are strategies are drawn."""
    drawn = {key: v if isinstance(v, st.SearchStrategy) else st.just(v) for key, v in
             parameters.items()}  # fmt: skip
    return st.fixed_dictionaries(drawn).map(lambda given: (name, given))


def of_robot(name: str, /, **parameters: Any) -> st.SearchStrategy[Call]:
    return command(name, robot="g60", **parameters)


CALLS = st.one_of(
    st.sampled_from(OF_JOB).map(lambda name: (name, {})),
    st.sampled_from(OF_ROBOT).map(lambda name: (name, {"robot": "g60"})),
    command("request_mode", mode=st.sampled_from(MODES)),
    st.sampled_from(FAULTS).map(
        lambda row: ("inject", {"fault": row[0], "on": row[1], "parameters": row[2]})
    ),
    of_robot("set_joint_positions", joints_deg=joints),
    of_robot("set_tool", tool=st.integers(0, 2)),
    of_robot("move_to", joints_deg=joints),
    of_robot("jog", frame=st.sampled_from(["joint", "base", "tool"]), axis=st.integers(0, 5),
             speed=st.sampled_from([5, 500]), step=st.sampled_from([None, 10])),
    of_robot("override", feed_percent=st.sampled_from([10, 100, 200])),
    of_robot("set_output", pin=pins, value=st.booleans()),
    of_robot("set_input", pin=pins, value=st.booleans()),
    of_robot("release_input", pin=pins),
    of_robot("link", output=9, input=pins),
    of_robot("send_gcode", line=st.sampled_from(LINES)),
    of_robot("mdi", line=st.sampled_from(LINES)),
    of_robot("load_program", text=st.sampled_from(PROGRAMS)),
    of_robot("attach", name=st.sampled_from(["wall", "cube_1"])),
    of_robot("detach", name=st.sampled_from(["wall", *CUBES])),
    command("place_part", name=st.sampled_from(CUBES), position_mm=places, rotation_deg=turns),
    command("place_part", name=st.sampled_from(CUBES), position_mm=places),
    command("remove_part", name=st.sampled_from(["box", "cube_4"])),
    command("add_part", part=places.map(lambda at: {**BOX, "position_mm": at})),
    command("add_object", object=st.floats(10, 40).map(
        lambda z: {**TABLE, "position_mm": [500, 0, z]})),
    command("add_object", object=WALL),
    command("remove_object", name=st.sampled_from(["wall", "table"])),
    command("set_pallet_index", index=st.integers(0, 5)),
)  # fmt: skip
STEPS = st.one_of(
    times.map(lambda seconds: ("wait", (seconds,))),
    times.map(lambda seconds: ("wait", (seconds,))),
    st.sampled_from([0.01, 0.3, 2.0]).map(lambda seconds: ("repeat", (seconds,))),
    CALLS.map(lambda call: ("operate", call)),
    CALLS.map(lambda call: ("operate", call)),
    st.just(("operate", ("start_pick_place", {}))),
    st.tuples(st.integers(0, 1), st.sampled_from(PIECES)).map(lambda piece: ("send", piece)),
    st.integers(0, 1).map(lambda client: ("leave", (client,))),
)
SLOW = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)


def attack(file: str, steps: list[tuple[str, Any]]) -> None:
    cell = Attacked(file)
    try:
        for name, given in steps:
            getattr(cell, name)(*given)
        cell.recover()
    finally:
        cell.close()


@pytest.fixture(params=GRIPPERS)
def file(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    cell = tmp_path / "pick.yaml"
    cell.write_text(cell_text(request.param))
    return str(cell)


@settings(SLOW, max_examples=3, derandomize=True)
@given(steps=st.lists(STEPS, min_size=6, max_size=25))
def test_nothing_breaks_the_job(file: str, steps: list[tuple[str, Any]]) -> None:
    attack(file, steps)


@pytest.mark.soak
@settings(SLOW, max_examples=150)
@given(steps=st.lists(STEPS, min_size=6, max_size=60))
def test_nothing_breaks_the_job_for_long(file: str, steps: list[tuple[str, Any]]) -> None:
    attack(file, steps)
