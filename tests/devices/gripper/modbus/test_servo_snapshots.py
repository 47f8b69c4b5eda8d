"""Crafted snapshots of a servo gripper: refused as a whole, or the cell runs on."""

from copy import deepcopy
from random import Random

import msgspec
import pytest
from tests.devices.gripper.modbus.servo_cell import ServoCell
from tests.simulation.mutants import CHANGES, places

from understudy.devices.gripper.modbus.assembly import MAKES
from understudy.errors import ConfigError
from understudy.ports import Snapshot
from understudy.simulation.cell import write_snapshot

FEW, MANY = 20, 1000
GRIPPER = ("parts", "g60.gripper")


@pytest.mark.parametrize("make", list(MAKES))
@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.soak)])
def test_a_crafted_state_is_refused_or_the_cell_runs_on(make: str, count: int) -> None:
    cell, chance = ServoCell(make), Random(make)
    saved = []
    for command in (cell.gripper.start_grip, cell.gripper.start_release):
        command(cell.cell.now)
        for _ in range(4):
            cell.advance(chance.uniform(0.0, 0.4))
            saved.append(cell.run.snapshot())
        cell.advance(2.0)
    refused = 0
    for _ in range(count):
        document = deepcopy(msgspec.to_builtins(chance.choice(saved)))
        path = (*GRIPPER, *chance.choice(list(places(document["parts"]["g60.gripper"]))))
        change = chance.choice(CHANGES)
        change(document, path, chance)
        try:
            cell.run.restore(msgspec.convert(document, Snapshot))
        except (ConfigError, msgspec.ValidationError):
            refused += 1
            continue
        cell.advance(5.0)
        write_snapshot(cell.run.snapshot())
        cell.run.restore(saved[0])
    assert count // 4 < refused < count
