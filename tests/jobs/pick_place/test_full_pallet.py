"""A full pallet of 4×4×2 parts, from one pallet to another without vision."""

from tests.jobs.pick_place.cell_bench import CellBench, cube

SIZE = {
    "rows": 4, "columns": 4, "layers": 2, "pitch_x": 80.0, "pitch_y": 60.0, "layer_height": 40.0,
}  # fmt: skip


def test_a_full_pallet_is_moved_without_a_contact() -> None:
    grid = {"columns": 4, "rows": 4, "layers": 2, "pitch_mm": [60, 80, 40]}
    origin, corner = ({"x": 560.0, "y": y, "z": 70.0} for y in (100.0, 340.0))
    source = {**SIZE, "depalletise": True, "origin": origin, "corner2": corner}
    to, along = ({"x": 560.0, "y": y, "z": 70.0} for y in (-340.0, -100.0))
    bench = CellBench(
        {**cube("box", 380.0, 100.0), "grid": grid},
        pickplace={"source": "pallet", "source_pallet": source},
        robot={"pallet": {**SIZE, "origin": to, "corner2": along}},
    )
    assert bench.job.start(0) is None
    bench.finish()
    assert bench.status.success_count == 32, bench.status.last_error
    assert bench.contacts() == 0
