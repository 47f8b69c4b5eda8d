"""Links from outputs of robots to inputs of others."""

from pathlib import Path
from typing import Any

import pytest
from tests.parts import components_of

from understudy.app.build import load_cell
from understudy.errors import ConfigError
from understudy.simulation.io import robot_links

CELL = """
robots:
  one: {kind: arm, io: {links: [{output: 1, input: 1}], digital_output_names: {9: GO}}}
  two: {kind: arm, base_mm_deg: [3000, 0, 0, 0, 0, 0], welder: {}}
  bench: {kind: text_robot}
links:
  - {output: one.GO, input: two.DI10, delay_ms: 3}
  - {output: two.DO10, input: one.10}
"""


def load(folder: Path, text: str = CELL) -> Any:
    (folder / "cell.yaml").write_text(text)
    return load_cell(str(folder / "cell.yaml"))


def part(cell: Any, name: str) -> Any:
    return components_of(cell)[name]


def test_an_edge_arrives_after_the_delay(tmp_path: Path) -> None:
    cell = load(tmp_path)
    one, two = (part(cell, name) for name in ("one", "two"))
    one.io.set_digital_output("GO", True, cell.timed_cell.now)
    cell.advance(0.002)
    assert not two.io.digital_input(10)
    cell.advance(0.0011)
    assert two.io.digital_input(10)
    assert not one.io.digital_input(10), "the way back is another link"
    assert part(cell, "links").status(0).edges == 1


@pytest.mark.parametrize("edges", [6, 7])
def test_many_edges_on_their_way_end_at_the_level_of_the_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edges: int
) -> None:
    monkeypatch.setattr(robot_links, "MOST_EDGES", 3)
    cell = load(tmp_path)
    one, two = (part(cell, name) for name in ("one", "two"))
    for edge in range(edges):
        one.io.set_digital_output("GO", edge % 2 == 0, cell.timed_cell.now)
    assert part(cell, "links").status(0).waiting <= 3
    cell.advance(0.01)
    assert two.io.digital_input(10) == one.io.digital_output("GO") == (edges % 2 == 1)


def test_an_edge_on_its_way_is_in_the_snapshot(tmp_path: Path) -> None:
    cell = load(tmp_path)
    part(cell, "one").io.set_digital_output("GO", True, cell.timed_cell.now)
    saved = cell.timed_cell.snapshot()
    for _ in range(2):
        cell.advance(0.01)
        assert part(cell, "two").io.digital_input(10)
        cell.timed_cell.restore(saved)
        assert not part(cell, "two").io.digital_input(10)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("one.GO", "onne.GO", "did you mean 'one'"),
        ("one.GO", "one.GOO", "pin of DO"),
        ("one.GO", "two.9", "another robot"),
        ("one.GO", "bench.9", "robot with pins"),
        ("two.DI10", "two.99", "there is no DI99"),
        ("two.DI10", "two.ARC_OK", "follows a device"),
        ("one.10", "one.1}\n  - {output: two.3, input: one.5", "follows a link"),
        ("one.10", "two.DI10", "another robot"),
        ("one.10}", "one.10}\n  - {output: two.3, input: one.10}", "follows another link"),
        ("delay_ms: 3", "delay_ms: 0", "delay_ms"),
    ],
)
def test_a_wrong_link_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as problem:
        load(tmp_path, CELL.replace(old, new))
    assert "links" in str(problem.value)
