"""The section `vision` of a cell that sees through a process: errors at load, and snapshots."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.devices.camera.camera_cell import ask
from tests.jobs.pick_place.cell_bench import CellBench, cube
from tests.parts import part
from tests.vision.loop_cell import DETECTORS, PARTS, SCAN, LoopCell, camera_keys

from understudy.app.build import build_live_cell, repeatable_run
from understudy.errors import ConfigError
from understudy.jobs.pick_place.manager import PickPlaceManager
from understudy.robots.arm.controller import ArmController
from understudy.sight.frame import Frame
from understudy.units import NS_PER_MS
from understudy.vision.bridge import ProcessVision
from understudy.wire.exchange import InProcessCell

MARKERS = [DETECTORS["markers"]]
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no camera": ({"vision": {"detectors": MARKERS}}, r"vision\.camera: .* needs a camera"),
    "no detectors": ({"camera": {}, "vision": {}}, r"vision\.detectors: .*kind: markers"),
    "address": (
        {"camera": {}, "vision": {"detectors": MARKERS, "camera_address": "5570"}},
        r"vision\.camera_address: .*tcp://HOST:PORT",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_process_that_cannot_be_asked_is_an_error_at_load(name: str) -> None:
    robot, message = WRONG[name]
    robot = robot | {"vision": robot["vision"] | {"source": "process"}}
    with pytest.raises(ConfigError, match=message):
        CellBench(cube("a", 450.0, 0.0), robot=robot)


def test_detectors_that_were_set_look_in_every_run_alike(tmp_path: Path) -> None:
    """Markers of another dictionary are not seen; with those of the file the part is found."""
    cell, ends = LoopCell(tmp_path, "markers"), []
    vision: Any = cell.cell.components["g60.vision"]
    assert vision.set_detectors([DETECTORS["markers"] | {"dictionary": "DICT_4X4_50"}]) is None
    kept = cell.cell.snapshot()
    for _ in range(2):
        cell.cell.restore(kept)
        cell.now = cell.cell.now
        assert cell.job.start(cell.now, max_cycles=1) is None
        cell.finish()
        ends.append(msgspec.json.encode(cell.cell.snapshot().parts))
    assert ends[0] == ends[1]
    assert (cell.status.success_count, vision.status(cell.now).last.objects) == (0, ())
    assert vision.set_detectors(None) is None
    assert cell.cycle().success


def test_a_snapshot_between_question_and_answer_goes_on_with_the_same_bytes(
    tmp_path: Path,
) -> None:
    """The answer of a picture is on its way when the snapshot is taken."""
    cell = LoopCell(tmp_path, "markers")
    vision: Any = cell.cell.components["g60.vision"]
    assert cell.job.start(cell.now, max_cycles=1) is None
    while not vision.busy():
        cell.now += 20 * NS_PER_MS
        cell.cell.advance(cell.now)
    kept, ends = cell.cell.snapshot(), []
    for _ in range(2):
        cell.cell.restore(kept)
        cell.now = cell.cell.now
        cell.finish()
        ends.append(msgspec.json.encode(cell.cell.snapshot().parts))
    assert ends[0] == ends[1]
    assert cell.status.success_count == 1


def asking_cell(folder: Path) -> InProcessCell:
    """A cell that has just asked for its first picture; nobody answers."""
    small = camera_keys(folder, "markers", width_px=64, height_px=48)
    bench = CellBench(
        cube("cube", 450.0, 0.0) | PARTS["markers"],
        pickplace={"scan_position": SCAN},
        robot=small | {"faces": {"camera": {}}},
    )
    cell = InProcessCell(build_live_cell(bench.config, repeatable_run(bench.config)))
    robot = part(cell, "g60", ArmController)
    robot.connect(0)
    robot.enable(0)
    assert part(cell, "g60.pick_place", PickPlaceManager).start(0, max_cycles=1) is None
    cell.run_while(lambda: part(cell, "g60.vision", ProcessVision).question() is None)
    return cell


def request_of(cell: InProcessCell) -> dict[str, Any]:
    """What the vision process sends to the camera for the question that is out."""
    question = part(cell, "g60.vision", ProcessVision).question()
    assert question is not None
    return {"grab": "g60", "trigger": msgspec.json.decode(question.payload)["trigger"]}


def test_a_picture_for_a_question_before_a_restore_does_not_count(tmp_path: Path) -> None:
    """The number of a frame is the key of its noise."""
    cell = asking_cell(tmp_path)
    client = cell.connect()
    kept, before = cell.snapshot(), request_of(cell)
    for late in (False, True):
        if not late:  # the picture is taken, its answer is still on the way
            assert isinstance(ask(client, before)[0], Frame)
        cell.restore(kept)
        (reply,) = ask(client, before)
        assert isinstance(reply, dict)
        assert "not want" in reply["error"]
        assert cell.snapshot() == kept
        (frame,) = ask(client, request_of(cell))
        assert isinstance(frame, Frame)
        assert frame.frame_id == 1
        before = request_of(cell)
    assert isinstance(ask(client, {"grab": "g60"})[0], Frame), "other clients are served"
    assert isinstance(ask(client, {"grab": "g60", "trigger": "x"})[0], Frame)
