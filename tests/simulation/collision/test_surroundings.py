"""The environment of a running cell: loaded, reloaded, changed, attached to the robot."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from understudy.app.stand_in import StandIn
from understudy.robots.arm.controller import ArmController

CELL = """
include: {environment: around.yaml}
robots:
  arm:
    kind: arm
    collision: {on_collision: stop}
environment:
  objects:
    - {name: floor, type: box, position_mm: [0, 0, -60], dimensions_mm: [4000, 4000, 100]}
"""
AROUND = """
objects:
  - {name: post, type: cylinder, position_mm: [0, 620, 995], radius_mm: 20, height_mm: 400}
zones:
  - {name: aisle, type: box, position_mm: [-1500, 0, 1000], dimensions_mm: [500, 500, 500]}
"""
BOX = {"name": "box", "type": "box", "dimensions_mm": [100, 100, 100]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cell.yaml").write_text(CELL)
    (tmp_path / "around.yaml").write_text(AROUND)
    return tmp_path


@pytest.fixture
def cell(folder: Path) -> Iterator[StandIn]:
    with StandIn(str(folder / "cell.yaml")) as stand_in:
        yield stand_in


def there(cell: StandIn) -> list[str]:
    status = cell.do("status")["parts"]["environment"]
    return [*status.objects, *status.zones]


def parts(cell: StandIn) -> dict[str, Any]:
    found: dict[str, Any] = cell.do("status")["parts"]
    return found


def test_the_cell_reports_its_objects(cell: StandIn) -> None:
    assert there(cell) == ["floor", "post", "aisle"]
    reported = {thing["name"]: thing for thing in cell.do("environment")["objects"]}
    assert reported["post"]["position_mm"] == pytest.approx([0.0, 620.0, 995.0])
    assert reported["post"]["radius_mm"] == 20.0
    assert [name for name, thing in reported.items() if thing["zone"]] == ["aisle"]


def test_objects_are_added_replaced_and_removed(cell: StandIn) -> None:
    cell.do("add_object", object={**BOX, "position_mm": [0, 0, 3000]})
    cell.do("add_object", object={**BOX, "position_mm": [0, 0, 3500]}, zone=True)
    assert there(cell) == ["floor", "post", "aisle", "box"]
    cell.do("remove_object", name="box")
    with pytest.raises(RuntimeError, match="there is no object 'box'; there are: floor, post"):
        cell.do("remove_object", name="box")
    with pytest.raises(RuntimeError, match=r"box.dimensions_mm: wrong size"):
        cell.do("add_object", object={"name": "box", "type": "box"})
    cell.do("clear_environment")
    assert there(cell) == []


def test_overlapping_objects_are_reported(cell: StandIn) -> None:
    """The document's two boxes: 50 mm apart they overlap, 200 mm apart they do not."""
    cell.do("clear_environment")
    cell.do("add_object", object={**BOX, "name": "box1"})
    cell.do("add_object", object={**BOX, "name": "box2", "position_mm": [50, 0, 0]})
    (overlap,) = cell.do("check_objects")["overlapping"]
    assert (overlap.link, overlap.object) == ("box1", "box2")
    assert overlap.depth_mm == pytest.approx(50.0)
    cell.do("add_object", object={**BOX, "name": "box2", "position_mm": [200, 0, 0]})
    assert cell.do("check_objects")["overlapping"] == ()


def test_a_file_is_loaded_and_the_cells_own_objects_are_restored(
    cell: StandIn, folder: Path
) -> None:
    other = folder / "other.yaml"
    other.write_text(
        "objects: [{name: ball, type: sphere, radius_mm: 50, position_mm: [2000,0,0]}]"
    )
    cell.do("load_environment", file=str(other))
    assert there(cell) == ["ball"]
    (folder / "around.yaml").write_text(AROUND.replace("post", "pillar"))
    cell.do("reload_environment")
    assert there(cell) == ["floor", "pillar", "aisle"]


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("objects: [{name: a, type: bock}]", "type"),
        ("objects: [{name: a, type: sphere}]", "a.radius_mm: wrong size"),
        ("objects: {", "not YAML"),
        ("things: []", "unknown key"),
        ("objects: [{name: a, type: mesh, mesh: nowhere.stl}]", "cannot be read"),
    ],
)
def test_a_broken_file_leaves_everything_as_it_was(
    cell: StandIn, folder: Path, text: str, reported: str
) -> None:
    before = cell.do("snapshot")
    (folder / "around.yaml").write_text(text)
    with pytest.raises(RuntimeError, match=reported):
        cell.do("reload_environment")
    with pytest.raises(RuntimeError, match=reported):
        cell.do("load_environment", file=str(folder / "around.yaml"))
    with pytest.raises(RuntimeError, match="cannot be read"):
        cell.do("load_environment", file=str(folder / "missing.yaml"))
    assert cell.do("snapshot") == before


def drive(cell: StandIn, *lines: str) -> None:
    arm = cell._running()._cell.components["arm"]
    assert isinstance(arm, ArmController)

    def send(live: Any) -> None:
        now = live._pump.now()
        arm.connect(now)
        arm.enable(now)
        for line in lines:
            assert arm.send_gcode(line, now) is None

    cell._call(send)


def test_a_contact_stops_the_arm_until_reset_and_is_an_event(cell: StandIn) -> None:
    drive(cell, "G1 A120 F3000")
    cell.forward(5.0)
    assert parts(cell)["engine"].state == "ERROR"
    (contact,) = parts(cell)["arm.collision"].contacts
    assert (contact.link, contact.object, contact.line) == ("wrist_2", "post", 1)
    assert cell.do("metrics")["collisions_detected"] == 1
    events = [e for e in cell.do("events")["events"] if e.kind == "collision"]
    assert [event.robot for event in events] == ["arm"]
    cell.do("clear_collisions")
    assert parts(cell)["arm.collision"].contacts == ()
    cell.do("reset")
    assert parts(cell)["engine"].state == "RUNNING"
    assert cell.do("metrics")["collisions_detected"] == 0


def test_a_loaded_environment_is_in_the_snapshot(cell: StandIn) -> None:
    cell.do("add_object", object={**BOX, "position_mm": [0, 0, 3000]})
    snapshot = cell.do("snapshot")["snapshot"]
    cell.do("clear_environment")
    cell.do("restore", snapshot=snapshot)
    assert there(cell) == ["floor", "post", "box", "aisle"]


def test_an_object_is_attached_and_detached_elsewhere(cell: StandIn) -> None:
    part = {**BOX, "dimensions_mm": [60, 60, 60], "position_mm": [655, 0, 995]}
    cell.do("remove_object", name="post")
    cell.do("add_object", object=part)
    held = cell.do("attach", robot="arm", name="box")
    assert held.held == ("box",)
    assert "box" not in there(cell)
    drive(cell, "G1 A-90 F3000")
    cell.forward(5.0)
    cell.do("detach", robot="arm", name="box")
    reported = {thing["name"]: thing for thing in cell.do("environment")["objects"]}
    assert reported["box"]["position_mm"] == pytest.approx([0.0, -655.0, 995.0])
    with pytest.raises(RuntimeError, match="box is not held; held: nothing"):
        cell.do("detach", robot="arm", name="box")
    with pytest.raises(RuntimeError, match="either name or object"):
        cell.do("attach", robot="arm")
    with pytest.raises(RuntimeError, match="unknown robot with a collision watch"):
        cell.do("attach", robot="leg", name="box")


@pytest.mark.parametrize(
    "odd",
    [
        {**BOX, "position_mm": [float("nan"), 0, 0]},
        {**BOX, "rotation_deg": [0, float("inf"), 0]},
        {"name": "box", "type": "capsule", "radius_mm": 5, "height_mm": float("nan")},
        {"name": "box", "type": "capsule", "radius_mm": 5, "height_mm": -1},
        {"name": "box", "type": "sphere", "radius_mm": 1e300},
        {"name": "box", "type": "cylinder", "radius_mm": 1, "height_mm": 1_000_001},
        {**BOX, "dimensions_mm": [100, -100, 100]},
        {**BOX, "dimensions_mm": [100, 100, float("nan")]},
        {**BOX, "position_mm": [0, 0, 1e300]},
    ],
)
def test_an_object_with_an_invalid_place_is_refused_and_changes_nothing(
    cell: StandIn, odd: dict[str, Any]
) -> None:
    with pytest.raises(RuntimeError, match=r"^box"):
        cell.do("add_object", object=odd)
    assert there(cell) == ["floor", "post", "aisle"]
    cell.do("add_object", object=BOX)
    assert "box" in there(cell)


def test_a_file_is_found_beside_the_cell_file(
    cell: StandIn, folder: Path, tmp_path_factory: Any, monkeypatch: Any
) -> None:
    (folder / "other.yaml").write_text("objects: [{name: ball, type: sphere, radius_mm: 5}]")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    cell.do("load_environment", file="other.yaml")
    assert there(cell) == ["ball"]
    with pytest.raises(RuntimeError, match=f"{folder}/none.yaml: cannot be read: No such file"):
        cell.do("load_environment", file="none.yaml")


def test_a_file_of_another_format_has_a_short_error(cell: StandIn, folder: Path) -> None:
    (folder / "letter.txt").write_text("dear reader " * 100)
    with pytest.raises(RuntimeError) as reported:
        cell.do("load_environment", file=str(folder / "letter.txt"))
    assert len(str(reported.value)) < 400 + len(str(folder))
