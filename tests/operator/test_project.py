"""Programs to open, and project folders: saved, read by people, loaded again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.benches import Bench

from understudy.config.files import shipped_programs
from understudy.operator.library import program_index
from understudy.registry import kinds

CELL = """
robots:
  arm:
    kind: arm
    tool: 1
    tools: {1: {name: torch, tcp_mm_deg: [0, 0, 150, 0, 0, 0]}, 2: {name: gripper}}
  bench: {kind: text_robot}
"""
PROGRAM = "G21 G90\nG1 A5 F600  ; ä\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "line" / "cell.yaml"
    path.parent.mkdir()
    path.write_text(CELL)
    return path


@pytest.fixture
def work(bench_of: Callable[[str], Bench], file: Path) -> Bench:
    """A cell with work in it: a program, points, a measured tool, work frames."""
    bench = bench_of(str(file))
    bench.do("enable", robot="arm")
    bench.do("set_joint_positions", robot="arm", joints_deg=[0, 0, 37, 0, 53, 0])
    bench.do("load_program", robot="arm", text=PROGRAM, name="part", breakpoints=[2])
    bench.do("teach_point", robot="arm", name="P 1: start")
    bench.do("teach_point", robot="bench", name="P1")
    bench.do("set_tcp", robot="arm", tcp_mm=[1, 2, 160.5])
    bench.do("send_gcode", robot="arm", line="G10 L2 P2 X10 Y20.5 Z-3")
    bench.forward(0.1)
    return bench


def state(bench: Bench) -> dict[str, Any]:
    facts = bench.facts("arm")
    return {
        "points": [bench.do("points", robot=robot)["points"] for robot in ("arm", "bench")],
        "tools": facts["tools"],
        "frames": facts["work_offsets_mm_deg"],
        "program": [bench.do("program", robot="arm")[key] for key in ("text", "breakpoints")],
    }


def near(value: Any) -> Any:
    """The same structure with approximate numbers."""
    if isinstance(value, dict):
        return {key: near(item) for key, item in value.items()}
    if isinstance(value, list):
        return [near(item) for item in value]
    return pytest.approx(value, abs=1e-6) if isinstance(value, float) else value


def test_a_saved_project_is_loaded_into_another_cell(
    work: Bench, bench_of: Callable[[str], Bench], file: Path
) -> None:
    saved = work.do("save_project")
    folder = file.parent / "cell_project"
    assert saved["folder"] == str(folder)
    assert (folder / "arm/programs/part.gcode").read_text() == PROGRAM
    assert all((folder / name).is_file() for name in saved["files"])

    other = bench_of(str(file))
    assert state(other) != near(state(work))
    answer = other.do("load_project")
    assert (answer["robots"], answer["notes"]) == (["arm", "bench"], [])
    assert state(other) == near(state(work))
    assert other.do("project") == {"folder": str(folder), "saved": True}

    again = {name: (folder / name).read_text() for name in saved["files"]}
    other.do("save_project")
    assert {name: (folder / name).read_text() for name in saved["files"]} == again, "no difference"


def test_loading_puts_back_what_the_project_does_not_name(work: Bench, file: Path) -> None:
    work.do("save_project", folder="full")
    (file.parent / "full/arm/robot.yaml").write_text("points: {}\n")
    work.do("load_project", folder="full")
    assert work.do("points", robot="arm")["points"] == []
    assert work.facts("arm")["tools"]["1"]["tcp_mm_deg"][2] == 150.0
    assert work.facts("arm")["work_offsets_mm_deg"] == {}
    assert work.do("undo_point", robot="arm")["points"], "the loaded points can be undone"


def test_the_tcp_of_a_tool_that_is_not_mounted_is_loaded(work: Bench, file: Path) -> None:
    work.do("save_project", folder="full")
    text = "tools: {2: [0, 0, 77, 0, 0, 0]}\n"
    (file.parent / "full/arm/robot.yaml").write_text(text)
    work.do("load_project", folder="full")
    assert work.facts("arm")["tools"]["2"]["tcp_mm_deg"] == pytest.approx([0, 0, 77, 0, 0, 0])
    work.do("set_tool", robot="arm", tool=2)
    work.forward(1.0)
    before = work.pose("arm")[2]
    work.do("set_tcp", robot="arm")
    work.forward(0.1)
    assert work.pose("arm")[2] == pytest.approx(before + 77.0, abs=0.01), "it was in use"


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("project.yaml", "format: 9\n", "format"),
        ("arm/robot.yaml", "points: {P1: {}}\n", "pose_mm_deg"),
        ("arm/robot.yaml", "pionts: {}\n", "did you mean 'points'"),
        ("arm/robot.yaml", "[\n", "not YAML"),
    ],
)
def test_a_broken_project_changes_nothing_and_says_where(
    work: Bench, file: Path, name: str, text: str, says: str
) -> None:
    work.do("save_project")
    before = state(work)
    (file.parent / "cell_project" / name).write_text(text)
    reason = work.refusal("load_project")
    assert says in reason
    assert name in reason
    assert state(work) == before


def test_what_does_not_fit_is_named(work: Bench, file: Path) -> None:
    work.do("save_project")
    folder = file.parent / "cell_project"
    (folder / "arm/robot.yaml").write_text("program: gone.gcode\nframes: {G50: [0,0,0,0,0,0]}\n")
    (folder / "gantry").mkdir()
    (folder / "gantry/robot.yaml").write_text("points: {}\n")
    notes = work.do("load_project")["notes"]
    assert any("gone.gcode" in note for note in notes)
    assert any("G50" in note for note in notes)
    assert "the cell has no robot gantry" in notes


def test_no_project_is_loaded_while_a_program_runs(work: Bench) -> None:
    work.do("save_project")
    work.do("run_program", robot="arm")
    assert "stop it before load_project" in work.refusal("load_project")


def test_a_folder_that_cannot_be_written_or_read_is_refused(work: Bench) -> None:
    assert "cannot be written" in work.refusal("save_project", folder="a" * 1000)
    for folder in ("nowhere", "~nobody_of_this_name/x", "a" * 1000):
        assert "cannot be read" in work.refusal("load_project", folder=folder)
    for command in ("save_project", "load_project"):
        assert "not the name of a file" in work.refusal(command, folder="a\0b")
        assert "outside the folder" in work.refusal(command, folder="/proc/none")
    assert work.do("project")["folder"].endswith("cell_project"), "still the one of the cell"


# ── programs to open ──


def test_shipped_and_own_programs_are_listed_and_read(work: Bench, file: Path) -> None:
    (file.parent / "own.nc").write_text("G4 P1\r\n")
    (file.parent / "notes.md").write_text("no program")
    saved = work.do("save_program", robot="arm", name="mine", text="G28\n")
    assert Path(saved["file"]) == file.parent / "cell_project/arm/programs/mine.gcode"
    listed = work.do("programs", robot="arm")["programs"]
    found = {(row["source"], row["name"]) for row in listed}
    assert {("cell", "own.nc"), ("project", "mine.gcode"), ("shipped", "seam.gcode")} <= found
    assert ("shipped", "text_square.txt") not in found, "another kind of robot"
    read = work.do("read_program", robot="arm", name="own.nc", source="cell")
    assert read == {"name": "own.nc", "text": "G4 P1\n"}
    seam = work.do("read_program", robot="arm", name="seam.gcode")
    assert seam["text"] == shipped_programs()["seam"].read_text()
    assert [row["name"] for row in work.do("programs", robot="bench")["programs"]] == [
        "text_square.txt",
        "own.nc",
    ]


@pytest.mark.parametrize("name", ["../x.gcode", "a/b.gcode", ".hidden", "a\\b", "/etc/passwd"])
def test_no_name_leads_out_of_the_folder(work: Bench, name: str, file: Path) -> None:
    assert "not the name of a file" in work.refusal(
        "save_program", robot="arm", name=name, text="G28\n"
    )
    for source in ("project", "cell", "shipped"):
        assert "no program" in work.refusal("read_program", robot="arm", name=name, source=source)
    assert not list(file.parent.glob("**/*.gcode"))


def test_the_index_names_every_shipped_program() -> None:
    assert set(program_index()) == set(shipped_programs())
    for row in program_index().values():
        assert row["kind"] in kinds("robots")
        assert row["en"]
        assert row["vi"]
