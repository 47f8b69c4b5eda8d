import math
from itertools import product
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from understudy.config.typed import read
from understudy.errors import ConfigError, Refused
from understudy.jobs.pick_place.config import (
    MOST_CELLS,
    Interleave,
    PalletConfig,
    PatternType,
    StartCorner,
)
from understudy.jobs.pick_place.pallet import (
    ORDERS,
    PALLET_EMPTY,
    PALLET_FULL,
    PalletPattern,
    layer_order,
    unreachable,
    unreachable_message,
)
from understudy.space.pose import Pose, Position
from understudy.space.transform import matrix, rotation_about

PATTERNS: tuple[PatternType, ...] = get_args(PatternType)
CORNERS: tuple[StartCorner, ...] = get_args(StartCorner)
INTERLEAVED: tuple[Interleave, ...] = get_args(Interleave)
ANY_SIZE: tuple[Interleave, ...] = ("NONE", "SHIFT", "MIRROR")
PLACE = Position(600.0, -200.0, 100.0)
SHIPPED = PalletConfig(layers=2, corner2=Position(600.0, 100.0, 100.0))


def drawn(pattern: PatternType, rows: int, columns: int) -> list[list[int]]:
    """The layer as the design document draws it: the number of every cell."""
    picture = np.zeros((rows, columns), dtype=int)
    for number, (row, column) in enumerate(ORDERS[pattern](rows, columns), start=1):
        picture[row, column] = number
    return picture.tolist()


# ── Pallet: Pattern generation ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("index", [-1, 13])
def test_an_index_outside_the_pallet_is_refused_in_a_snapshot(index: int) -> None:
    pallet = PalletPattern(PalletConfig(rows=3, columns=4, layers=1), PLACE)
    with pytest.raises(ValueError, match=f"no cell {index}"):
        pallet.load(index)
    pallet.load(12)
    assert pallet.is_full()


def test_snake_goes_along_rows_and_zigzag_along_columns() -> None:
    assert drawn("SNAKE", 3, 4) == [[1, 2, 3, 4], [8, 7, 6, 5], [9, 10, 11, 12]]
    assert drawn("ZIGZAG", 3, 4) == [[1, 6, 7, 12], [2, 5, 8, 11], [3, 4, 9, 10]]


def test_rows_and_columns_without_turning_back() -> None:
    assert drawn("ROW_BY_ROW", 3, 4) == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]
    assert drawn("COLUMN_BY_COLUMN", 3, 4) == [[1, 4, 7, 10], [2, 5, 8, 11], [3, 6, 9, 12]]


def test_the_spiral_is_the_one_of_the_design_document() -> None:
    assert drawn("SPIRAL", 4, 4) == [[1, 2, 3, 4], [12, 13, 14, 5], [11, 16, 15, 6], [10, 9, 8, 7]]


def test_a_spiral_of_one_row_or_one_column_is_a_line() -> None:
    assert drawn("SPIRAL", 1, 4) == [[1, 2, 3, 4]]
    assert drawn("SPIRAL", 4, 1) == [[1], [2], [3], [4]]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_from_every_corner_is_a_permutation_of_the_layer(
    pattern: PatternType,
) -> None:
    """All layers of all pallets up to 12×12; a pallet is a stack of these."""
    for rows, columns in product(range(1, 13), repeat=2):
        every = np.arange(rows * columns)
        for corner, opposite in product(CORNERS, (False, True)):
            cells = layer_order(pattern, rows, columns, corner=corner, opposite=opposite)
            assert np.array_equal(np.sort(cells @ [columns, 1]), every)


def assert_permutation(config: PalletConfig) -> None:
    pallet = PalletPattern(config)
    row, column, layer = pallet.layout.cells.T
    shorter = (config.interleave == "SHIFT") & (layer % 2)
    assert (row >= 0).all()
    assert (row < config.rows).all()
    assert (column < config.columns).all()
    assert (column >= 0).all()
    assert (column < config.columns - shorter).all()
    assert len({*zip(row.tolist(), column.tolist(), layer.tolist(), strict=True)}) == len(row)
    fewer = config.rows * (config.layers // 2) * (config.interleave == "SHIFT")
    assert len(row) == config.rows * config.columns * config.layers - fewer
    assert len(row) == pallet.get_total_positions()
    steps = np.diff(layer)
    assert ((steps == 0) | (steps == (-1 if config.depalletise else 1))).all()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pallet_of_some_sizes_is_a_permutation(pattern: PatternType) -> None:
    for rows, columns, layers in product((1, 2, 5, 12), (2, 3, 12), (1, 2, 12)):
        for interleave, depalletise in product(ANY_SIZE, (False, True)):
            assert_permutation(
                PalletConfig(rows, columns, layers, pattern=pattern, interleave=interleave,
                             depalletise=depalletise)
            )  # fmt: skip


@pytest.mark.soak
@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pallet_of_every_size_is_a_permutation(pattern: PatternType) -> None:
    for rows, columns, layers in product(range(1, 13), repeat=3):
        for interleave in ANY_SIZE:
            if columns > 1 or interleave != "SHIFT":
                assert_permutation(
                    PalletConfig(rows, columns, layers, pattern=pattern, interleave=interleave)
                )


@pytest.mark.parametrize(
    ("corner", "first"),
    [("BOTTOM_LEFT", [0, 0, 0]), ("BOTTOM_RIGHT", [0, 4, 0]), ("TOP_LEFT", [2, 0, 0]),
     ("TOP_RIGHT", [2, 4, 0])],
)  # fmt: skip
def test_a_pallet_begins_at_its_start_corner(corner: StartCorner, first: list[int]) -> None:
    pallet = PalletPattern(PalletConfig(3, 5, start_corner=corner))
    assert pallet.layout.cells[0].tolist() == first


def test_not_start_bottom_left_counts_the_rows_from_the_other_end() -> None:
    pallet = PalletPattern(PalletConfig(3, 5, start_bottom_left=False))
    assert pallet.layout.cells[:2].tolist() == [[2, 0, 0], [2, 1, 0]]


# ── Pallet: Position accuracy ───────────────────────────────────────────────────────────────────


def place(pallet: PalletPattern, index: int) -> Pose:
    found = pallet.get_position(index)
    assert isinstance(found, Pose)
    return found


def test_the_shipped_pallet_has_columns_along_y_and_rows_against_x() -> None:
    pallet = PalletPattern(replace(SHIPPED, pattern="ROW_BY_ROW"), PLACE)
    assert place(pallet, 0) == PLACE.pose()
    assert place(pallet, 1)[:3] == pytest.approx((0.6, -0.1, 0.1))
    assert place(pallet, 4)[:3] == pytest.approx((0.5, -0.2, 0.1))
    assert place(pallet, 31)[:3] == pytest.approx((0.3, 0.1, 0.15))
    assert place(pallet, 31)[3:] == PLACE.pose()[3:]


def test_without_corners_the_axes_are_those_of_the_cell() -> None:
    pallet = PalletPattern(PalletConfig(pattern="ROW_BY_ROW", pitch_y=50.0), PLACE)
    assert place(pallet, 1)[:3] == pytest.approx((0.7, -0.2, 0.1))
    assert place(pallet, 4)[:3] == pytest.approx((0.6, -0.15, 0.1))


angles = st.floats(-math.pi, math.pi)


@given(yaw=angles, tilt=st.floats(-1.0, 1.0), skew=st.floats(-80.0, 80.0))
def test_three_points_give_the_frame_of_a_tilted_pallet(
    yaw: float, tilt: float, skew: float
) -> None:
    turn = rotation_about([0, 0, 1], yaw) @ rotation_about([1, 0, 0], tilt)
    origin = np.array([600.0, -200.0, 100.0])
    x, y, z = turn.T
    corner2, corner3 = origin + 300.0 * x, origin + 200.0 * y + skew * x
    config = PalletConfig(
        3, 2, 2, origin=Position(*origin), corner2=Position(*corner2), corner3=Position(*corner3)
    )
    last = PalletPattern(replace(config, pattern="ROW_BY_ROW")).layout.points[-1]
    assert last * 1000.0 == pytest.approx(origin + 100.0 * x + 200.0 * y + 50.0 * z, abs=1e-6)


def test_layers_go_upwards_also_if_the_rows_are_to_the_right_of_the_columns() -> None:
    config = PalletConfig(corner2=Position(700.0, -200.0, 100.0), corner3=Position(600, -300, 100))
    pallet = PalletPattern(replace(config, pattern="ROW_BY_ROW"), PLACE)
    assert place(pallet, 4)[:3] == pytest.approx((0.6, -0.3, 0.1))
    assert place(pallet, 16)[:3] == pytest.approx((0.6, -0.2, 0.15))


@pytest.mark.parametrize(
    ("corner2", "corner3", "named"),
    [
        (PLACE, None, "corner2: the point is too near to origin"),
        (Position(600, -200, 400), None, "corner2: the point is too near to the vertical"),
        (Position(700, -200, 100), PLACE, "corner3: the point is too near to the line"),
        (Position(700, -200, 100), Position(500, -200, 100), "corner3: the point is too near"),
    ],
)
def test_degenerate_corner_points_are_errors(
    corner2: Position, corner3: Position | None, named: str
) -> None:
    with pytest.raises(ConfigError, match=named):
        PalletPattern(PalletConfig(corner2=corner2, corner3=corner3), PLACE)


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"rows": 1000, "columns": 1000}, f"at most {MOST_CELLS}"),
        ({"start_corner": "TOP_LEFT", "start_bottom_left": False}, "use one of them"),
        ({"corner3": {"x": 0, "y": 0, "z": 0}}, "without corner2"),
        ({"interleave": "SHIFT", "columns": 1}, "2 columns"),
        ({"interleave": "ROTATE", "columns": 3}, "300 × 400 mm"),
        ({"rows": 0}, "rows"),
        ({"pattern": "SPIRALE"}, "did you mean 'SPIRAL'|SPIRAL"),
    ],
)
def test_settings_that_do_not_fit_together_are_errors(keys: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        read(keys, PalletConfig)


# ── Pallet: Layer switching ─────────────────────────────────────────────────────────────────────


def test_the_layer_changes_after_its_last_cell() -> None:
    pallet = PalletPattern(SHIPPED, PLACE)
    heights = []
    for index in range(32):
        status = pallet.status(0)
        assert (status.index, status.layer) == (index, index // 16)
        assert [status.row, status.column, status.layer] == pallet.layout.cells[index].tolist()
        found = pallet.get_next_position()
        assert isinstance(found, Pose)
        assert found == place(pallet, index)
        heights.append(found.z)
    assert heights == pytest.approx([0.1] * 16 + [0.15] * 16)
    assert pallet.is_full()
    assert pallet.is_done()
    assert not pallet.is_empty()
    assert pallet.get_next_position() == Refused(PALLET_FULL)
    assert pallet.get_current_index() == 32
    assert (pallet.get_current_row(), pallet.get_current_column()) == (3, 0)
    pallet.reset()
    assert pallet.is_empty()
    assert pallet.get_next_position() == place(pallet, 0)


def test_a_layer_and_a_cell_can_be_chosen() -> None:
    pallet = PalletPattern(PalletConfig(2, 3, 4))
    assert pallet.set_layer(2) is None
    assert (pallet.get_current_index(), pallet.get_current_layer()) == (12, 2)
    assert pallet.skip_to_position(7) is None
    assert pallet.get_current_layer() == 1
    assert pallet.skip_to_position(24) is None
    assert pallet.is_full()
    assert pallet.set_layer(4) == Refused("there is no layer 4; allowed: 0…3")
    assert isinstance(pallet.skip_to_position(25), Refused)
    assert isinstance(pallet.skip_to_position(-1), Refused)
    assert isinstance(pallet.get_position(24), Refused)
    assert isinstance(pallet.get_position(-1), Refused)
    assert pallet.is_full()


@given(
    pattern=st.sampled_from(PATTERNS), interleave=st.sampled_from(INTERLEAVED), at=st.integers(0)
)
def test_a_pallet_goes_on_at_any_index(
    pattern: PatternType, interleave: Interleave, at: int
) -> None:
    config = PalletConfig(3, 3, 3, pattern=pattern, interleave=interleave)
    whole, resumed = PalletPattern(config, PLACE), PalletPattern(config, PLACE)
    total = whole.get_total_positions()
    at %= total + 1
    poses = [whole.get_next_position() for _ in range(at)]
    resumed.load(whole.save())
    rest = [resumed.get_next_position() for _ in range(at, total)]
    assert poses + rest == [place(whole, index) for index in range(total)]
    assert resumed.is_done()


@pytest.mark.parametrize("interleave", INTERLEAVED)
def test_depalletising_takes_the_cells_in_reverse_order(interleave: Interleave) -> None:
    config = PalletConfig(3, 3, 3, pattern="SPIRAL", interleave=interleave)
    stacking = PalletPattern(config, PLACE)
    taking = PalletPattern(replace(config, depalletise=True), PLACE)
    assert taking.is_full()
    total = stacking.get_total_positions()
    taken = [taking.get_next_position() for _ in range(total)]
    assert taken == [place(stacking, index) for index in reversed(range(total))]
    assert taking.is_empty()
    assert taking.get_next_position() == Refused(PALLET_EMPTY)
    assert taking.set_layer(2) is None
    assert taking.get_current_index() == 0


# ── interleaved layers ──────────────────────────────────────────────────────────────────────────


def test_mirrored_layers_begin_at_the_opposite_corner() -> None:
    pallet = PalletPattern(PalletConfig(3, 4, 3, interleave="MIRROR"))
    assert pallet.layout.cells[12].tolist() == [2, 3, 1]
    assert pallet.layout.cells[24].tolist() == [0, 0, 2]


def test_shifted_layers_lie_on_two_parts_each() -> None:
    pallet = PalletPattern(PalletConfig(2, 3, 2, pattern="ROW_BY_ROW", interleave="SHIFT"), PLACE)
    below, above = pallet.layout.points[:6], pallet.layout.points[6:]
    assert len(above) == 4
    for each in above:
        distances = np.abs(below[:, :2] - each[:2])
        supports = (distances[:, 0] < 0.0501) & (distances[:, 1] < 1e-9)
        assert supports.sum() == 2


def test_rotated_layers_cover_the_same_square_with_turned_parts() -> None:
    config = PalletConfig(4, 2, 2, pitch_x=100.0, pitch_y=50.0, interleave="ROTATE")
    pallet = PalletPattern(replace(config, pattern="ROW_BY_ROW"), PLACE)
    even, odd = pallet.layout.points[:8], pallet.layout.points[8:]
    assert even[:, :2].mean(axis=0) == pytest.approx(odd[:, :2].mean(axis=0))
    assert np.ptp(odd, axis=0) == pytest.approx([0.15, 0.1, 0.0])
    straight, turned = matrix(place(pallet, 0)), matrix(place(pallet, 8))
    quarter = turned[:3, :3] @ straight[:3, :3].T
    assert quarter == pytest.approx(rotation_about([0, 0, 1], math.pi / 2))


def assert_apart(pallet: PalletPattern) -> None:
    """Parts of one layer, as large as their cells, do not overlap."""
    c = pallet.layout.config
    for layer in range(c.layers):
        at = pallet.layout.points[pallet.layout.cells[:, 2] == layer][:, :2]
        size = (c.pitch_x, c.pitch_y)
        if c.interleave == "ROTATE" and layer % 2:
            size = size[::-1]
        gaps = np.abs(at[:, None] - at[None]) - np.array(size) / 1000.0
        touching = (gaps < -1e-9).all(axis=2)
        assert touching.sum() == len(at)  # each overlaps itself only


@pytest.mark.parametrize("interleave", INTERLEAVED)
def test_parts_of_a_layer_do_not_overlap(interleave: Interleave) -> None:
    assert_apart(PalletPattern(PalletConfig(4, 2, 3, 100.0, 50.0, interleave=interleave)))


# ── safe heights ────────────────────────────────────────────────────────────────────────────────


def test_the_safe_height_follows_what_is_stacked() -> None:
    pallet = PalletPattern(SHIPPED, PLACE)
    heights = [pallet.safe_height(index) for index in range(33)]
    assert heights[0] == pytest.approx(0.12)  # nothing is stacked: above the own cell
    assert heights[1:17] == pytest.approx([0.17] * 16)  # one layer is begun
    assert heights[17:] == pytest.approx([0.22] * 16)


def test_the_safe_height_of_depalletising_falls_with_the_layers() -> None:
    pallet = PalletPattern(replace(SHIPPED, depalletise=True), PLACE)
    heights = [pallet.safe_height(index) for index in range(33)]
    assert heights[:16] == pytest.approx([0.22] * 16)
    assert heights[16:32] == pytest.approx([0.17] * 16)
    assert heights[32] == pytest.approx(0.12)


def test_only_parts_near_the_way_count() -> None:
    pallet = PalletPattern(replace(SHIPPED, pattern="ROW_BY_ROW"), PLACE)
    at = Pose(0.6, -0.5, 0.11, 0, 0, 0)
    beside = Pose(0.6, -0.4, 0.11, 0, 0, 0)
    far = Pose(0.3, 0.1, 0.11, 0, 0, 0)
    along = Pose(0.3, -0.5, 0.11, 0, 0, 0)
    assert pallet.safe_height_along(at, beside, 1) == pytest.approx(0.11)
    assert pallet.safe_height_along(at, along, 1) == pytest.approx(0.11)
    assert pallet.safe_height_along(at, place(pallet, 1), 1) == pytest.approx(0.17)
    assert pallet.safe_height_along(at, far, 16) == pytest.approx(0.17)


@given(
    pattern=st.sampled_from(PATTERNS),
    interleave=st.sampled_from(INTERLEAVED),
    index=st.integers(0, 20),
    depalletise=st.booleans(),
)
def test_a_carried_part_at_the_safe_height_is_above_all_stacked_ones(
    pattern: PatternType, interleave: Interleave, index: int, depalletise: bool
) -> None:
    config = PalletConfig(3, 3, 3, pattern=pattern, interleave=interleave, depalletise=depalletise)
    pallet = PalletPattern(config, PLACE)
    stacked = pallet.layout.points[index:] if depalletise else pallet.layout.points[:index]
    bottom = pallet.safe_height(index) - 0.05  # gripped at its top: one layer height below
    assert bottom >= stacked[:, 2].max(initial=-1.0) + 0.0199
    end = place(pallet, index)
    along = pallet.safe_height_along(PLACE.pose(), end, index)
    assert along <= max(pallet.safe_height(index), end.z) + 1e-12


# ── reach ───────────────────────────────────────────────────────────────────────────────────────


def test_unreachable_cells_are_named() -> None:
    pallet = PalletPattern(replace(SHIPPED, pattern="ROW_BY_ROW"), PLACE)
    found = unreachable(pallet.layout, lambda poses: [pose.x < 0.55 for pose in poses])
    assert found == (0, 1, 2, 3, 16, 17, 18, 19)
    low = unreachable(pallet.layout, lambda poses: [pose.z < 0.19 for pose in poses], approach=0.05)
    assert low == tuple(range(16, 32))
    text = unreachable_message(pallet.layout, low)
    assert "cannot reach 16 of 32 cells" in text
    assert "16 (row 0, column 0, layer 1)" in text
    assert "and 8 more" in text


def test_every_key_and_pattern_is_on_the_page() -> None:
    page = (Path(__file__).parents[4] / "docs/jobs/pallet.md").read_text()
    words = (*PalletConfig.__struct_fields__, *PATTERNS, *CORNERS, *INTERLEAVED)
    assert [word for word in words if f"`{word}`" not in page] == []
