"""Parts at the operator's table: the query, commands, refusals, events and the scene."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.benches import Bench

from understudy.operator.workpieces import workpieces_in

CELL = """
robots:
  g60: {kind: arm, model: g60}
environment:
  objects:
    - {name: table, type: box, position_mm: [600, 0, 25], dimensions_mm: [600, 900, 50]}
parts:
  - {name: cube, class: red, color: "#cc2222", dimensions_mm: [40, 40, 40], mass_kg: 0.5,
     position_mm: [500, 0, 70]}
"""


@pytest.fixture
def table(bench_of: Callable[[str], Bench], tmp_path: Path) -> Bench:
    file = tmp_path / "cell.yaml"
    file.write_text(CELL)
    return bench_of(str(file))


def row(bench: Bench, name: str = "cube") -> dict[str, Any]:
    found: dict[str, Any] = {part["name"]: part for part in bench.do("parts")["parts"]}[name]
    return found


def take(bench: Bench, name: str) -> None:
    parts = workpieces_in(bench.live._cell.components)
    assert parts is not None
    bench.live._pump.act(lambda now: parts.take(name, "g60", now))


def test_the_query_says_where_the_parts_are(table: Bench) -> None:
    found = row(table)
    assert found["position_mm"] == pytest.approx([500, 0, 70])
    assert (found["class"], found["state"], found["holder"]) == ("red", "resting", "")
    assert (found["mass_kg"], found["color"]) == (0.5, "#cc2222")
    assert found["size_mm"] == pytest.approx([40, 40, 40])
    assert found["transform"][3::4] == pytest.approx([0.5, 0, 0.07, 1])


def test_a_held_part_is_placed_from_the_flange_and_is_not_among_the_held_objects(
    table: Bench,
) -> None:
    before = table.live.watch.look().parts
    take(table, "cube")
    assert table.live.watch.look().parts != before
    found = row(table)
    assert (found["state"], found["holder"]) == ("held", "g60")
    assert found["position_mm"] == pytest.approx([500, 0, 70])
    assert found["transform"][3::4] != pytest.approx([0.5, 0, 0.07, 1])
    scene = table.do("scene")
    assert scene["robots"]["g60"]["held"] == []
    assert [thing["name"] for thing in scene["environment"]] == ["table"]
    refused = table.refusal("detach", robot="g60", name="cube")
    assert refused == "cube is a part: let g60 release it"


def test_parts_are_placed_added_and_removed(table: Bench) -> None:
    table.do("place_part", name="cube", position_mm=[600, 100, 270])
    assert row(table)["state"] == "falling"
    table.forward(1.0)
    assert row(table)["position_mm"] == pytest.approx([600, 100, 70])
    texts = [event["text"] for event in plain(table.do("events"))["events"]]
    assert "cube has dropped 200 mm" in texts
    new = {"name": "can", "type": "cylinder", "radius_mm": 20, "height_mm": 50,
           "position_mm": [500, 0, 75], "grid": {"columns": 3, "pitch_mm": [60, 0, 0]}}  # fmt: skip
    names = [part["name"] for part in table.do("add_part", part=new)["parts"]]
    assert names == ["cube", "can_1", "can_2", "can_3"]
    assert "already" in table.refusal("add_part", part=new)
    table.do("remove_part", name="can_2")
    assert [part["name"] for part in table.do("parts")["parts"]] == ["cube", "can_1", "can_3"]
    assert "can_2" in table.refusal("remove_part", name="can_2")
    assert "wrong pose" in table.refusal("place_part", name="can_1", position_mm=[1e9, 0, 0])
    take(table, "can_1")
    held = "g60 holds can_1: release it first"
    assert table.refusal("remove_part", name="can_1") == held
    assert table.refusal("place_part", name="can_1", position_mm=[0, 0, 0]) == held


def plain(answer: Any) -> Any:
    return msgspec.to_builtins(answer)


def test_a_cell_without_parts_says_what_to_do(arm: Bench) -> None:
    assert arm.do("parts") == {"version": 0, "parts": []}
    assert arm.live.watch.look().parts == 0
    for command, given in (
        ("place_part", {"name": "a", "position_mm": [0, 0, 0]}),
        ("remove_part", {"name": "a"}),
        ("add_part", {"part": {"name": "a", "position_mm": [0, 0, 0]}}),
    ):
        assert "`parts: []`" in arm.refusal(command, **given)
