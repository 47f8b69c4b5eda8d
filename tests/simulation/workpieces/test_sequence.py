"""The parts of an offline check step by step, compared with a running cell."""

import msgspec
import numpy as np
import pytest
from tests.simulation.workpieces.table_cell import (
    CUBE,
    TABLE,
    TOP,
    arm_of,
    at,
    components_of,
    send,
    table_cell,
)

from understudy import validate
from understudy.config import read_config
from understudy.simulation.environment import CellEnvironment
from understudy.simulation.workpieces.workpieces import WorkpieceSequence
from understudy.space.pose import Pose
from understudy.space.transform import matrix

PARTS = (CUBE, at(CUBE, "upper", 500, 0, 110), at(CUBE, "other", 700, 100, 70))
TEXT = msgspec.json.encode(
    {
        "robots": {"g60": {"kind": "arm", "model": "g60"}},
        "environment": {"objects": [TABLE]},
        "parts": list(PARTS),
    }
).decode()


def sequence() -> WorkpieceSequence:
    return read_config(TEXT, "cell.yaml").workpiece_sequence()


def places(objects: object) -> dict[str, list[float]]:
    assert isinstance(objects, tuple)
    return {thing.name: thing.place.round(9).reshape(-1).tolist() for thing in objects}


def test_the_stages_are_those_of_the_running_cell() -> None:
    cell, offline = table_cell(*PARTS), sequence()
    parts, arm = components_of(cell), arm_of(cell)
    environment = cell.components["environment"]
    assert isinstance(environment, CellEnvironment)
    assert places(offline.stage().environment.objects) == places(environment.with_parts().objects)
    seen: list[str] = []
    parts.on_event(lambda event: seen.append(event.text))
    flange = arm.flange(cell.now)
    parts.take("upper", "g60", cell.now)
    stage = offline.take("upper", flange)
    assert places(stage.environment.objects) == places(environment.with_parts().objects)
    watch = arm.collision
    assert watch is not None
    assert places(stage.held) == places(watch.held())
    assert stage.load is not None
    assert stage.load.mass == 0.1
    send(cell, "G0 A25 B-10")
    parts.let_go("g60", cell.now)
    stage = offline.let_go(arm.flange(cell.now))
    cell.advance(cell.now + 2_000_000_000)
    assert places(stage.environment.objects) == places(environment.with_parts().objects)
    assert (stage.held, stage.load) == ((), None)
    assert list(stage.events) == seen
    assert any("has dropped" in text for text in seen)


def test_a_part_is_found_at_the_tool_point() -> None:
    offline = sequence()
    tool = Pose(0.5, 0.0, TOP + 0.06, np.pi, 0.0, 0.0)
    assert offline.near(tool, (0.02, 0.02, 0.02)) == ("upper",)
    flange = matrix(tool)
    offline.take("upper", flange)
    stage = offline.let_go(flange)
    assert stage.events == ()
    assert [part.state for part in offline.readings()] == ["resting"] * 3


def test_the_validation_of_a_program_knows_the_resting_parts() -> None:
    tower = {"name": "tower", "dimensions_mm": [60, 60, 1100], "position_mm": [540, 300, 600]}
    for parts, touched in (([tower], {"tower"}), ([], set())):
        content = {**msgspec.json.decode(TEXT), "parts": parts}
        config = read_config(msgspec.json.encode(content).decode(), "cell.yaml")
        report = validate("G1 A60 F3000\n", config)
        found = {finding.contact.objects[1] for finding in report.violations if finding.contact}
        assert found == touched


@pytest.mark.parametrize("name", ["cube", "upper"])
def test_a_sequence_does_not_change_the_configuration(name: str) -> None:
    config = read_config(TEXT, "cell.yaml")
    first = config.workpiece_sequence()
    first.take(name, np.eye(4))
    assert len(config.workpiece_sequence().stage().environment.objects) == 4
