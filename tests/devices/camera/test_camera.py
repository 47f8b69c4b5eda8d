"""The virtual camera: what it shows, exposure and noise, the flange at the exposure, faults."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.devices.camera.camera_cell import camera_cell, camera_of, grabbed
from tests.parts import part

from understudy.app.build import load_cell
from understudy.devices.camera.camera import color_of
from understudy.errors import ConfigError, Refused
from understudy.ports import device as ports
from understudy.ports import state as snapshots
from understudy.ports.hmi import HasPanel
from understudy.robots.arm.controller import ArmController
from understudy.sight.markers import MarkerFinder
from understudy.simulation.engine import SimulationEngine
from understudy.simulation.environment import CellEnvironment
from understudy.simulation.workpieces.workpieces import Workpieces
from understudy.space.model.environment import ObjectConfig
from understudy.space.pose import Pose
from understudy.space.transform import inverse, matrix, translation
from understudy.units import MM

LENS_SIZE = "width_px: 640, height_px: 480, fx_px: 900, fy_px: 900, cx_px: 319.5, cy_px: 239.5"


def test_a_marker_is_where_the_part_is(tmp_path: Path) -> None:
    cell = camera_cell(tmp_path, size=LENS_SIZE)
    frame = grabbed(cell)
    (found,) = MarkerFinder("DICT_APRILTAG_36h11").find(frame.picture)
    assert found.number == 5
    assert frame.lens is not None
    top = part(cell, "parts", Workpieces).place("cube", 0) @ translation(0.0, 0.0, 20.0 * MM)
    half = 15.0 * MM
    corners = [(-half, half), (half, half), (half, -half), (-half, -half)]
    points = np.array([top @ (x, y, 0.0, 1.0) for x, y in corners])
    true = frame.lens.pixels((points @ inverse(camera_of(cell).model.at).T)[:, :3])
    assert np.abs(found.corners - true).max() < 0.8


def test_the_colours_of_parts_and_objects_are_seen(tmp_path: Path) -> None:
    frame = grabbed(camera_cell(tmp_path, more="noise_grey: 0"))
    row, column = 119, 119 + 50  # 0 mm across, 70 mm aside at 740 mm
    for point, color in (((450, 150, 50), (200, 176, 140)), ((520, 150, 110), (34, 102, 204))):
        at = np.array(point) - (450.0, 150.0, 850.0)
        assert frame.lens is not None
        column, row = np.rint(frame.lens.pixels(at * (1, -1, -1))).astype(int)
        assert np.abs(frame.picture[row, column] - np.array(color)).max() < 12, (row, column)


def test_depth_is_the_distance_along_the_axis(tmp_path: Path) -> None:
    frame = grabbed(camera_cell(tmp_path, more="depth: true"))
    assert frame.depth is not None
    assert frame.depth[119, 150] == pytest.approx(0.8, abs=1e-6), "the table"
    noisy = grabbed(camera_cell(tmp_path, more="depth: true, depth_noise_mm: 2")).depth
    assert noisy is not None
    deviation = (noisy - frame.depth)[frame.depth > 0]
    assert deviation.std() == pytest.approx(2.0 * MM, rel=0.05)
    near = grabbed(camera_cell(tmp_path, more="depth: true, depth_range_mm: [100, 790]")).depth
    assert near is not None
    assert near[119, 150] == 0.0, "the table is too far away"
    assert (near[near > 0] <= 0.79).all()


def test_exposure_gain_and_light_make_the_picture_bright_or_dark(tmp_path: Path) -> None:
    cell = camera_cell(tmp_path, more="noise_grey: 0")
    usual = grabbed(cell).picture.astype(float)
    half = grabbed(cell, exposure_ms=5.0).picture
    assert np.abs(half - usual / 2.0).max() <= 1.0
    louder = grabbed(cell, gain_db=6.0206).picture
    assert np.abs(louder - np.minimum(usual * 2.0, 255.0)).max() <= 1.0
    bright = grabbed(cell, exposure_ms=1000.0).picture
    assert (bright == 255).mean() > 0.95, "saturated, but for black cells"
    assert grabbed(cell, exposure_ms=0.001).picture.max() <= 1, "dark"
    actions = camera_of(cell).actions()
    assert actions["set_camera_light"].run(0, 0.5, 0.6) is None
    assert np.abs(grabbed(cell).picture - usual / 2.0).max() <= 1.0
    assert isinstance(actions["set_camera_light"].run(0, 0.5, 2.0), Refused)
    assert isinstance(actions["set_camera_exposure"].run(0, float("nan")), Refused)
    assert camera_of(cell).status(0).ambient == 0.6


def test_noise_belongs_to_the_seed_and_the_number_of_the_frame(tmp_path: Path) -> None:
    first = [grabbed(cell) for cell in [camera_cell(tmp_path)] for _ in range(3)]
    again = [grabbed(cell) for cell in [camera_cell(tmp_path)] for _ in range(3)]
    other = grabbed(camera_cell(tmp_path, seed=2))
    assert [f.frame_id for f in first] == [1, 2, 3]
    for one, two in zip(first, again, strict=True):
        assert (one.picture == two.picture).all()
    assert (first[0].picture != first[1].picture).mean() > 0.5
    assert (first[0].picture != other.picture).mean() > 0.5
    quiet = grabbed(camera_cell(tmp_path, more="noise_grey: 0")).picture.astype(float)
    assert (first[0].picture - quiet).std() == pytest.approx(2.0, rel=0.05)


def test_the_flange_is_that_of_the_exposure(tmp_path: Path) -> None:
    """In the middle of a motion: the marker is where flange, mount and picture say."""
    mount = "mount: eye_in_hand, pose_mm_deg: [0, -60, 0, 0, 0, 0]"
    cell = camera_cell(tmp_path, mount=mount, size=LENS_SIZE, more="noise_grey: 0")
    robot, camera = part(cell, "g60", ArmController), camera_of(cell)
    robot.connect(0)
    robot.enable(0)
    assert robot.send_gcode("G90 G21 G0 X380 Y140 Z420 A180 B0 C0", 0) is None
    cell.run_while(robot.busy)
    assert robot.send_gcode("G1 X420 Y180 Z400 C20 F3000", cell.timed_cell.now) is None
    cell.advance(0.5)
    assert robot.busy(), "it moves"
    now = cell.timed_cell.now
    frame = grabbed(cell, now)
    cell.advance(0.1)
    assert frame.flange is not None
    assert frame.lens is not None
    assert np.abs(frame.flange - robot.flange(cell.timed_cell.now)).max() > 1e-3, "it moved on"
    (found,) = MarkerFinder("DICT_APRILTAG_36h11").find(frame.picture)
    top = part(cell, "parts", Workpieces).place("cube", now) @ translation(0.0, 0.0, 20.0 * MM)
    seen = inverse(frame.flange @ camera.model.at) @ top
    assert np.abs(frame.lens.pixels(seen[:3, 3]) - found.corners.mean(axis=0)).max() < 0.5


def test_a_held_part_and_the_arm_are_seen(tmp_path: Path) -> None:
    cell = camera_cell(tmp_path, more="noise_grey: 0")
    parts = part(cell, "parts", Workpieces)
    before = grabbed(cell).picture.astype(int)
    parts.take("can", "g60", 0)
    assert np.abs(grabbed(cell).picture - before).max() < 2, "it has not moved yet"
    parts.let_go("g60", 0)
    parts.move("can", matrix(Pose(0.35, 0.1, 0.08, 0, 0, 0)), 0)
    moved = np.abs(grabbed(cell).picture - before).max(axis=2) > 30
    assert 500 < moved.sum() < 5000
    orange = (before[..., 0] > 130) & (before[..., 1] < 100) & (before[..., 2] < 20)
    aside = camera_cell(
        tmp_path, mount="mount: eye_to_hand, pose_mm_deg: [450, 0, 2500, 180, 0, 0]"
    )
    picture = grabbed(aside).picture.astype(int)
    orange = (picture[..., 0] > 130) & (picture[..., 1] < 130) & (picture[..., 2] < 30)
    assert orange.sum() > 500, "the arm"


@pytest.mark.parametrize(
    ("fault", "figures", "words"),
    [
        ("camera_dark", {"share": 0.1}, "dark"),
        ("camera_blur", {"px": 5.0}, "focus"),
        ("camera_noise", {"grey": 40.0}, "noise"),
        ("camera_silent", {}, "answer"),
        ("camera_frozen", {}, "frozen"),
    ],
)
def test_faults_act_until_reset(
    fault: str, figures: dict[str, float], words: str, tmp_path: Path
) -> None:
    cell = camera_cell(tmp_path, more="noise_grey: 0")
    camera = camera_of(cell)
    usual = grabbed(cell).picture.astype(float)
    assert camera.inject(fault, figures, 0) is None
    assert words in camera.active_faults()[0]
    saved = snapshots.saved(camera)
    frames = [camera.grab(0) for _ in range(2)]
    snapshots.load(camera, saved)
    assert [f is None for f in frames] == [camera.grab(0) is None for _ in range(2)]
    if fault == "camera_silent":
        assert frames == [None, None]
    elif fault == "camera_frozen":
        assert frames[0] is not None
        assert frames[1] is not None
        assert frames[0].frame_id == frames[1].frame_id == 2
    else:
        assert frames[0] is not None
        assert np.abs(frames[0].picture - usual).mean() > 1.0
    camera.reset(0)
    assert camera.active_faults() == []
    assert (grabbed(cell).picture == usual).all()


def test_a_reset_of_the_cell_zeroes_the_count_on_the_panel(tmp_path: Path) -> None:
    """The number of a frame counts on: the noise belongs to it."""
    cell = camera_cell(tmp_path)
    camera = camera_of(cell)
    grabbed(cell)
    part(cell, "engine", SimulationEngine).reset(0)
    assert camera.panel(0)[0].value == 0
    assert grabbed(cell).frame_id == 2
    assert camera.panel(0)[0].value == 1


def test_faults_of_rules_act_on_single_frames(tmp_path: Path) -> None:
    rules = "gone: {on: g60.camera, fault: frame_lost, probability: 0.5}"
    cell = camera_cell(tmp_path, rules=rules)
    there = [camera_of(cell).grab(0) is not None for _ in range(12)]
    again = camera_cell(tmp_path, rules=rules)
    assert there == [camera_of(again).grab(0) is not None for _ in range(12)]
    assert 0 < sum(there) < 12
    assert isinstance(camera_of(cell).inject("frame_lost", {}, 0), Refused)


def test_the_camera_offers_the_protocols(tmp_path: Path) -> None:
    camera = camera_of(camera_cell(tmp_path))
    for protocol in (ports.Device, ports.SeesCell, ports.HasActions, HasPanel):
        assert isinstance(camera, protocol)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("light: {towards: [0, 0, 0]}", "direction"),
        ("depth_range_mm: [5, 2]", "nearest"),
        ("width_px: 5000", "4096"),
        ("pose_mm_deg: [.nan, 0, 0, 0, 0, 0]", "a number"),
        ("pose_mm_deg: [1e300, 0, 0, 0, 0, 0]", "a number"),
        ("cx_px: 1e300", "cx_px"),
        ("distortion: [1e300, 0, 0, 0, 0]", "distortion"),
        ("exposure: 3", "exposure_ms"),
    ],
)
def test_wrong_keys_are_named(more: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        camera_cell(tmp_path, mount="mount: eye_to_hand", size="gain_db: 0", more=more)


def test_a_wrong_marker_is_named(tmp_path: Path) -> None:
    cell = camera_cell(tmp_path)
    assert cell.now == 0.0
    text = (tmp_path / "cell.yaml").read_text().replace("DICT_APRILTAG_36h11", "DICT_9X9_50")
    (tmp_path / "wrong.yaml").write_text(text)
    with pytest.raises(ConfigError, match="DICT_9X9_50"):
        load_cell(str(tmp_path / "wrong.yaml"))


@pytest.mark.parametrize(
    "state",
    [
        {"disturbed": {"blur": 1e9}},
        {"disturbed": {"dark": float("nan")}},
        {"disturbed": {"silent": 1.0}},
        {"disturbed": {"smoke": 1.0}},
        {"frames": -1},
        {"exposure_ms": 1e9},
        {"frozen": [b"{}"]},
        {"frozen": [b'{"frame_id": 1, "t_exposure": 0, "shape": [9999, 9999, 3]}', b""]},
    ],
)
def test_a_crafted_snapshot_is_refused(state: dict[str, object], tmp_path: Path) -> None:
    camera = camera_of(camera_cell(tmp_path))
    with pytest.raises((ValueError, ConfigError)):
        snapshots.load(camera, state)
    assert camera.status(0).frames == 0


def test_a_board_with_too_few_markers_is_named_and_one_added_later_stays_plain(
    tmp_path: Path,
) -> None:
    camera_cell(tmp_path)
    file, board = tmp_path / "cell.yaml", "board: {columns: 40, rows: 40, square_mm: 5}"
    usual = file.read_text()
    file.write_text(usual.replace('color: "#c8b08c"', board))
    with pytest.raises(ConfigError, match="needs 800"):
        load_cell(str(file))
    file.write_text(usual)
    cell = load_cell(str(file))
    config = msgspec.convert(
        {"name": "late", "type": "box", "position_mm": [450, 150, 60],
         "dimensions_mm": [200, 200, 20], "board": {"columns": 40, "rows": 40, "square_mm": 5}},
        ObjectConfig,
    )  # fmt: skip
    environment = part(cell, "environment", CellEnvironment)
    before = grabbed(cell).picture
    assert environment.add([config.build(lambda name: b"")], 0) is None
    assert (grabbed(cell).picture != before).mean() > 0.05


def test_boards_and_colours_are_in_snapshots(tmp_path: Path) -> None:
    cell = camera_cell(tmp_path, more="noise_grey: 0")
    config = msgspec.convert(
        {"name": "target", "type": "box", "position_mm": [450, 150, 55], "color": "#ff0000",
         "dimensions_mm": [220, 220, 10], "board": {"square_mm": 25}},
        ObjectConfig,
    )  # fmt: skip
    part(cell, "environment", CellEnvironment).add([config.build(lambda name: b"")], 0)
    snapshot, seen = cell.exchange.snapshot(), grabbed(cell).picture
    again = camera_cell(tmp_path, more="noise_grey: 0")
    again.exchange.restore(snapshot)
    assert (grabbed(again).picture == seen).all()


def test_a_color_is_read_in_hexadecimal() -> None:
    assert color_of("#d9822b") == (217, 130, 43)
