"""What clients can reach on the disk: one folder, files of the expected kind, or what they send."""

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.benches import Bench

CELL = "robots: {arm: {kind: arm}, bench: {kind: text_robot}}\n"
PYRAMID = """
solid p
facet normal 0 0 -1
outer loop
vertex 0 0 0
vertex 0 1 0
vertex 1 0 0
endloop
endfacet
endsolid p
"""
SECRET = "token: hunter2\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret.yaml").write_text(SECRET)
    (tmp_path / "secret.stl").write_text(PYRAMID)
    (tmp_path / "line").mkdir()
    (tmp_path / "line/cell.yaml").write_text(CELL)
    return tmp_path / "line"


@pytest.fixture
def cell(bench_of: Callable[[str], Bench], folder: Path) -> Bench:
    return bench_of(str(folder / "cell.yaml"))


MESH = {"name": "part", "type": "mesh"}


@pytest.mark.parametrize(
    ("command", "parameters"),
    [
        ("snapshot", {"file": "../x.json"}),
        ("restore", {"file": "../secret.yaml"}),
        ("load_environment", {"file": "../secret.yaml"}),
        ("load_environment", {"text": "objects: [{name: a, type: mesh, mesh: ../secret.stl}]"}),
        ("add_object", {"object": MESH | {"mesh": "../secret.stl"}}),
        ("attach", {"robot": "arm", "object": MESH | {"mesh": "../secret.stl"}}),
        ("save_project", {"folder": "../other"}),
        ("load_project", {"folder": "../other"}),
    ],
)
def test_every_command_stays_in_the_folder(
    cell: Bench, folder: Path, command: str, parameters: dict[str, object]
) -> None:
    before = sorted(folder.parent.rglob("*"))
    assert cell.do("status")["files"] == str(folder)
    text = json.dumps(parameters)
    for given in (text, text.replace("../", f"{folder.parent}/")):
        reason = cell.refusal(command, **json.loads(given))
        assert f"outside the folder for files of this run, {folder}" in reason
    assert sorted(folder.parent.rglob("*")) == before


@pytest.mark.parametrize("mesh", ["file:///etc/hosts.stl", "package://arm/link.stl"])
def test_names_as_ros_writes_them_lead_nowhere(cell: Bench, mesh: str) -> None:
    assert "cannot be read" in cell.refusal("add_object", object=MESH | {"mesh": mesh})


def test_a_xacro_file_is_expanded_for_the_user_only(cell: Bench, folder: Path) -> None:
    (folder / "a.xacro").write_text("<robot/>")
    text = "fixtures: [{name: a, urdf: a.xacro}]"
    assert "neither shipped nor the path of a file" in cell.refusal("load_environment", text=text)


def test_a_snapshot_replaces_nothing_but_a_snapshot(cell: Bench, folder: Path) -> None:
    (folder / "other.json").write_text("{}")
    assert "a file of another kind" in cell.refusal("snapshot", file="other.json")
    assert "ends in .json" in cell.refusal("snapshot", file="cell.yaml")
    assert ((folder / "other.json").read_text(), (folder / "cell.yaml").read_text()) == ("{}", CELL)
    for _ in range(2):  # the second one replaces the first
        assert cell.do("snapshot", file="moment.json") == {"file": str(folder / "moment.json")}
        cell.forward(1.0)
    assert cell.do("restore", file="moment.json")["now_s"] == 1.0


def test_a_project_replaces_no_files_of_others(cell: Bench, folder: Path) -> None:
    (folder / "robot/arm").mkdir(parents=True)
    (folder / "robot/arm/robot.yaml").write_text("mine: 1\n")
    assert "a file of another kind" in cell.refusal("save_project", folder="robot")
    (folder / "tool").mkdir()
    (folder / "tool/project.yaml").write_text("mine: 1\n")
    assert "unknown key" in cell.refusal("save_project", folder="tool")
    assert (folder / "robot/arm/robot.yaml").read_text() == "mine: 1\n"
    assert (folder / "tool/project.yaml").read_text() == "mine: 1\n"
    for _ in range(2):
        cell.do("save_project", folder="new")


def test_an_environment_and_its_meshes_are_sent_in_the_request(cell: Bench) -> None:
    text = "objects: [{name: part, type: mesh, mesh: parts/p.stl}]"
    assert "cannot be read: No such file" in cell.refusal("load_environment", text=text)
    mesh = base64.b64encode(PYRAMID.encode()).decode()
    found = cell.do("load_environment", text=text, meshes={"parts/p.stl": mesh})
    assert [(each["name"], each["triangles"]) for each in found["objects"]] == [("part", 1)]
    assert "either file or text" in cell.refusal("load_environment")


def test_a_fixture_finds_its_meshes_beside_its_urdf(cell: Bench, folder: Path) -> None:
    (folder / "clamp/meshes").mkdir(parents=True)
    (folder / "clamp/meshes/p.stl").write_text(PYRAMID)
    (folder / "clamp/clamp.urdf").write_text(
        "<robot name='c'><link name='l'><collision><geometry>"
        "<mesh filename='meshes/p.stl'/></geometry></collision></link></robot>"
    )
    (folder / "around.yaml").write_text("fixtures: [{name: c, urdf: clamp/clamp.urdf}]")
    found = cell.do("load_environment", file="around.yaml")
    assert [each["name"] for each in found["objects"]] == ["c.l"]


def test_errors_quote_no_file(cell: Bench, folder: Path) -> None:
    """A file that is no environment is refused by its line and by what is allowed."""
    (folder / "keys.yaml").write_text("root:x:hunter2:0:root:/root:/bin/bash\n")
    (folder / "list.yaml").write_text("- hunter2\n")
    (folder / "broken.yaml").write_text("a: [hunter2\nb: }\n")
    for name in ("keys.yaml", "list.yaml", "broken.yaml"):
        for command in ("load_environment", "restore"):
            reason = cell.refusal(command, file=name)
            assert "hunter2" not in reason, reason
            assert len(reason) < 400 + len(str(folder))
