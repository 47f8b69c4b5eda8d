"""Objects and parts that operators move, add, undo and save."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.benches import Bench
from tests.operator.real_pair import Operator, alive, run

from understudy.wire.dial import parse_place

CELL = """\
# hall 3
robots:
  arm: {kind: arm, model: g60}
parts:
  - {name: cube, class: cube, type: box, dimensions_mm: [20, 20, 20], position_mm: [600, 0, 60]}
environment:
  objects:
    - {name: table, type: box, position_mm: [600, 0, 25], dimensions_mm: [600, 900, 50]}  # oak
    # the post of the crane
    - {name: post, type: cylinder, position_mm: [0, 900, 500], radius_mm: 40, height_mm: 1000}
"""
RACK = """<robot name="rack">
  <link name="foot"><collision><geometry><box size="0.4 0.4 0.1"/></geometry></collision></link>
  <link name="shelf"><collision><geometry><box size="0.4 0.4 0.02"/></geometry></collision></link>
  <joint name="up" type="fixed"><parent link="foot"/><child link="shelf"/>
    <origin xyz="0 0 0.5"/></joint>
</robot>
"""
BOX = {"name": "box 1", "type": "box", "position_mm": [300, 0, 50], "dimensions_mm": [10, 20, 30]}


def stl() -> bytes:
    """A tetrahedron of 100 mm as a binary STL."""
    corners = np.array([[0, 0, 0], [100, 0, 0], [0, 100, 0], [0, 0, 100]], np.float32)
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    rows = b"".join(bytes(12) + corners[list(face)].tobytes() + bytes(2) for face in faces)
    return bytes(80) + len(faces).to_bytes(4, "little") + rows


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "line" / "cell.yaml"
    path.parent.mkdir()
    path.write_text(CELL)
    return path


@pytest.fixture
def bench(bench_of: Callable[[str], Bench], file: Path) -> Bench:
    return bench_of(str(file))


def places(bench: Bench) -> dict[str, list[float]]:
    rows = bench.do("environment")["objects"]
    return {
        each["name"]: [round(v, 6) + 0.0 for v in (*each["position_mm"], *each["rotation_deg"])]
        for each in rows
    }


def test_objects_are_moved_added_and_removed_and_each_change_undone(bench: Bench) -> None:
    states = [places(bench)]
    bench.do("move_object", name="table", position_mm=[650, 0, 25], rotation_deg=[0, 0, 30])
    assert places(bench)["table"] == pytest.approx([650, 0, 25, 0, 0, 30])
    states.append(places(bench))
    bench.do("add_object", object=BOX)
    states.append(places(bench))
    bench.do("remove_object", name="post")
    states.append(places(bench))
    assert bench.do("environment")["undo"] == "remove post"
    for state in reversed(states[:-1]):
        bench.do("undo_change")
        assert places(bench) == state
    assert bench.refusal("undo_change") == "there is no change to undo"
    for state in states[1:]:
        bench.do("redo_change")
        assert places(bench) == state
    assert bench.refusal("redo_change") == "there is no change to redo"
    assert "did you mean" in bench.refusal("move_object", name="tabel", position_mm=[0, 0, 0])
    assert "pose" in bench.refusal("move_object", name="table", position_mm=[1e9, 0, 0])


def test_a_change_is_not_undone_over_one_that_came_otherwise(bench: Bench) -> None:
    bench.do("move_object", name="table", position_mm=[650, 0, 25])
    bench.do("attach", robot="arm", name="post")
    assert "changed by something else" in bench.refusal("undo_change")
    assert "post" not in places(bench), "the robot still has it, and it is not there twice"


def test_a_moved_part_is_put_back(bench: Bench) -> None:
    def cube() -> Any:
        return bench.do("parts")["parts"][0]["position_mm"]

    first = cube()
    bench.do("place_part", name="cube", position_mm=[700, 100, 80])
    there = cube()
    assert there[:2] == pytest.approx([700, 100])
    bench.do("undo_change")
    assert cube() == pytest.approx(first, abs=1e-3)
    bench.do("redo_change")
    assert cube() == pytest.approx(there, abs=1e-3)


def test_the_cell_file_gets_the_changes_and_keeps_its_comments(
    bench: Bench, bench_of: Callable[[str], Bench], file: Path
) -> None:
    assert bench.do("save_environment") == {"files": [], "lost": [], "notes": []}
    assert file.read_text() == CELL
    bench.do("move_object", name="table", position_mm=[650.5, 0, 25])
    bench.do("add_object", object=BOX)
    bench.do("add_object", object={"name": "cage", "type": "sphere", "radius_mm": 5}, zone=True)
    assert bench.do("save_environment")["files"] == [str(file)]
    text = file.read_text()
    assert [line for line in CELL.splitlines() if line not in text] == [CELL.splitlines()[7]]
    assert "position_mm: [650.5, 0, 25], dimensions_mm: [600, 900, 50]}  # oak" in text
    again = bench_of(str(file))
    assert places(again) == places(bench)
    assert again.do("save_environment")["files"] == []
    again.do("remove_object", name="table")
    assert again.do("save_environment")["lost"] == ["oak"]
    bench.do("reload_environment")
    assert "table" not in places(bench)


def test_meshes_and_urdfs_that_are_sent_are_saved_beside_the_file(
    bench: Bench, bench_of: Callable[[str], Bench], file: Path
) -> None:
    cast = {"name": "cast", "type": "mesh", "mesh": "cast.stl", "position_mm": [0, -800, 0]}
    bench.do("add_object", object=cast, meshes={"cast.stl": stl(), "evil.sh": b"#"})
    bench.do(
        "add_fixture",
        fixture={"name": "rack", "urdf": "rack.urdf", "position_mm": [-900, 0, 50]},
        files={"rack.urdf": RACK.encode()},
    )
    bench.do("move_object", name="rack.shelf", position_mm=[-900, 100, 550])
    assert places(bench)["rack.foot"] == pytest.approx([-900, 100, 50, 0, 0, 0]), "as a whole"
    bench.do("save_environment")
    assert sorted(each.name for each in file.parent.iterdir()) == [
        "cast.stl",
        "cell.yaml",
        "rack.urdf",
    ]
    assert "{name: rack, urdf: rack.urdf, position_mm: [-900, 100, 50]}" in file.read_text()
    assert places(bench_of(str(file))) == places(bench)
    bad = {"name": "bad", "type": "mesh", "mesh": "bad.stl"}
    assert "no triangles" in bench.refusal("add_object", object=bad, meshes={"bad.stl": b"solid"})


def test_an_included_environment_file_is_the_one_that_is_saved(
    bench_of: Callable[[str], Bench], file: Path
) -> None:
    around = file.parent / "around.yaml"
    around.write_text(
        "objects:\n  - {name: wall, type: box, dimensions_mm: [10, 900, 900]}  # new\n"
    )
    own = CELL.replace("parts:", "include: {environment: around.yaml}\nparts:")
    file.write_text(own)
    bench = bench_of(str(file))
    bench.do("move_object", name="wall", position_mm=[900, 0, 450])
    bench.do("add_object", object=BOX)
    assert bench.do("save_environment")["files"] == [str(around)]
    assert file.read_text() == own
    assert "{name: wall, type: box, dimensions_mm: [10, 900, 900], position_mm: [900, 0, 450]}" in (
        around.read_text()
    )
    assert "box 1" in around.read_text()


def test_a_shipped_cell_is_saved_under_a_name_of_the_folder(
    bench_of: Callable[[str], Bench], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bench = bench_of("g60_welding")
    bench.do("move_object", name="table", position_mm=[500, 0, 25])
    assert "understudy new" in bench.refusal("save_environment")
    assert "outside the folder" in bench.refusal("save_environment", file="../x.yaml")
    (saved,) = bench.do("save_environment", file="around.yaml")["files"]
    before = places(bench)
    bench.do("clear_environment")
    bench.do("load_environment", file=Path(saved).name)
    assert places(bench) == before


MACHINE = """\
robots:
  machine: {kind: machine, faces: {grblhal: {port: 0}}}
environment:
  objects: [{name: table, type: box, dimensions_mm: [100, 100, 10]}]
"""


def test_no_change_of_the_environment_sends_a_real_robot_anything(tmp_path: Path) -> None:
    path = tmp_path / "cell.yaml"
    path.write_text(MACHINE)

    async def test() -> None:
        async with contextlib.AsyncExitStack() as stack:
            there = Operator(
                await stack.enter_async_context(alive(str(path), "machine")), "machine"
            )
            at: Any = parse_place(there.live.endpoints["machine.grblhal"])
            real = {"at": at, "controller": "real", "real": True}
            here = Operator(
                await stack.enter_async_context(alive(str(path), "machine", **real)), "machine"
            )
            await here.connected()
            here.on("enable")

            def lines() -> list[Any]:
                """What the real one received, without requests for its state."""
                found = there.do("journal")["journal"]
                return [
                    each["text"] for each in found if each["kind"] == ">" and each["text"] != "?"
                ]

            before, stands = lines(), there.axis_reading().joints
            here.do("move_object", name="table", position_mm=[10, 0, 0])
            here.do("add_object", object=BOX | {"position_mm": [0, 0, 0]})
            here.do("undo_change")
            here.do("redo_change")
            assert lines() == before
            await here.later("home")
            await here.at_rest()
            assert lines() != before, "a command of motion is seen there"
            assert there.axis_reading().joints == pytest.approx(stands)

    run(test)
