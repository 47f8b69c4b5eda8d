"""The shipped cells of pick & place: a whole run of each, compared with the true places of the
parts."""

import math
from collections import Counter
from typing import Any

import pytest
from msgspec import convert

from understudy.app.build import build_cell
from understudy.config import CellConfig, load_config, read_config
from understudy.config.files import find_cell
from understudy.errors import ConfigError
from understudy.jobs.pick_place.manager import PickPlaceManager
from understudy.ports.workpieces import WorkpieceReading
from understudy.simulation.cell import Cell, read_snapshot, write_snapshot
from understudy.simulation.scenario import Config as Rules
from understudy.units import nanoseconds
from understudy.wire.exchange import InProcessCell

LONGEST_S = 400.0
ROWS_OF_FOUR = [(x, y) for x in (600, 500, 400, 300) for y in (-200, -100, 0, 100)]


class WholeRun:
    """A run of the job of g60 from its start until it ends by itself."""

    def __init__(self, name: str) -> None:
        built = build_cell(load_config(name))
        self.components: dict[str, Any] = dict(built.components)
        self.pins: list[tuple[str, int, bool]] = []
        self.components["g60.io"].subscribe(
            lambda change: self.pins.append((change.bank, change.pin, change.value))
        )
        arm, job = self.components["g60"], self.components["g60.pick_place"]
        assert arm.connect(0) is None
        assert arm.enable(0) is None
        assert job.start(0) is None
        cell = InProcessCell(built)
        end = nanoseconds(LONGEST_S)
        cell.run_while(lambda: (job.is_running() or arm.busy()) and built.now < end)
        self.now = built.now
        self.status = job.status(built.now)
        self.contacts = self.components["engine"].metrics(built.now).collisions_detected

    def readings(self) -> list[WorkpieceReading]:
        return list(self.components["parts"].status(self.now).parts)

    def places_mm(self) -> list[tuple[float, float, float]]:
        """Centres of all parts, which rest."""
        readings = self.readings()
        assert {part.state for part in readings} == {"resting"}
        return [(p.pose[0] * 1e3, p.pose[1] * 1e3, p.pose[2] * 1e3) for p in readings]

    def near(self, expected: list[tuple[float, float, float]]) -> bool:
        """Whether the parts are at these places, one at each."""
        found, wanted = sorted(self.places_mm()), sorted(expected)
        assert len(found) == len(wanted)
        return all(min(math.dist(a, b) for b in found) < 0.5 for a in wanted)


def started(config: CellConfig) -> tuple[Cell, PickPlaceManager]:
    """A cell whose job has been started."""
    cell = build_cell(config)
    parts: dict[str, Any] = dict(cell.components)
    parts["g60"].connect(0)
    parts["g60"].enable(0)
    job = parts["g60.pick_place"]
    assert isinstance(job, PickPlaceManager)
    assert job.start(0) is None
    return cell, job


def test_pick_place_fills_its_pallet() -> None:
    run = WholeRun("pick_place")
    assert (run.status.success_count, run.status.fail_count) == (32, 0), run.status.last_error
    assert (run.status.state, run.status.reason, run.contacts) == ("IDLE", "PALLET_FULL", 0)
    assert run.near([(x, y, z) for x, y in ROWS_OF_FOUR for z in (75, 125)])


def test_bin_picking_empties_the_bin_and_aligns_the_parts() -> None:
    run = WholeRun("bin_picking")
    assert (run.status.success_count, run.status.fail_count) == (12, 0), run.status.last_error
    assert (run.status.reason, run.contacts) == ("PALLET_FULL", 0)
    assert run.near([(x, y, 70) for x in (600, 520, 440) for y in (-200, -120, -40, 40)])
    for part in run.readings():
        turn = math.degrees(part.pose[5]) % 90.0
        assert min(turn, 90.0 - turn) < 0.1, part.name


def test_sorting_brings_every_class_to_its_bin() -> None:
    run = WholeRun("sorting")
    assert run.status.statistics.by_class == {"cube": 3, "plate": 3, "can": 3}
    assert (run.status.state, run.status.reason, run.contacts) == ("IDLE", "SOURCE_EMPTY", 0)
    bins = {"cube": -250, "plate": -110, "can": 30}
    for part, place in zip(run.readings(), run.places_mm(), strict=True):
        middle = (550, bins[part.class_name])
        assert math.dist(place[:2], middle) < 1.0, part.name
        assert place[2] < 180.0


def test_machine_tending_asks_door_and_chuck_in_their_order() -> None:
    run = WholeRun("machine_tending")
    assert (run.status.success_count, run.status.fail_count) == (4, 0), run.status.last_error
    assert run.contacts == 0
    assert run.near([(550, y, 110) for y in (-230, -150, -70, 10)])
    steps = [(bank, pin, value) for bank, pin, value in run.pins if pin in (20, 21, 22)]
    first = steps[: steps.index(("DI", 22, True))]
    assert first == [
        ("DO", 20, True), ("DI", 20, True),     # the door opens
        ("DO", 21, True), ("DI", 21, True),     # the chuck closes
        ("DO", 20, False), ("DI", 20, False),     # the door closes
        ("DO", 22, True),                               # the machine starts
    ]  # fmt: skip
    assert Counter(steps)["DI", 22, True] == 4


def test_assembly_inserts_every_pin_until_the_force() -> None:
    run = WholeRun("assembly")
    assert (run.status.success_count, run.status.fail_count) == (4, 0), run.status.last_error
    assert run.contacts == 0
    assert run.near([(550, y, 90) for y in (-170, -90, -10, 70)])


def test_assembly_without_the_force_is_a_fault_with_the_pin_in_the_hand() -> None:
    config = load_config("assembly")
    rules = {n: r for n, r in config.head.scenario.rules.items() if n != "bottom_2"}
    cell, job = started(config.with_rules(Rules(rules)))
    InProcessCell(cell).run_while(job.is_running)
    status = job.status(cell.now)
    assert (status.state, status.code, status.success_count) == ("ERROR", "NO_CONTACT", 1)
    assert status.holding


@pytest.mark.parametrize(
    ("rule", "code", "holds"),
    [
        ({"fault": "vacuum_leak", "on": "g60.gripper", "parameters": {"share": 1.0},
          "when": {"of": "g60.io", "pin": "VACUUM_OK", "after_s": 1.5}}, "PART_LOST", False),
        ({"fault": "vision_silent", "on": "g60.vision"}, "VISION_TIMEOUT", False),
        ({"fault": "grip_miss", "on": "g60.gripper"}, "GRIP_FAILED", False),
        ({"fault": "emergency_stop", "on": "g60",
          "when": {"of": "g60.io", "pin": "VACUUM_OK", "after_s": 1.5}}, "EMERGENCY_STOP", True),
    ],
)  # fmt: skip
def test_a_fault_in_bin_picking_is_named_and_only_a_leak_drops_the_part(
    rule: dict[str, Any], code: str, holds: bool
) -> None:
    config = load_config("bin_picking").with_rules(convert({"rules": {"it": rule}}, Rules))
    cell, job = started(config)
    InProcessCell(cell).run_while(job.is_running)
    parts: dict[str, Any] = dict(cell.components)
    status = job.status(cell.now)
    assert (status.state, status.code, status.holding) == ("ERROR", code, holds)
    cell.advance(cell.now + nanoseconds(2.0))  # the vacuum decays, the part falls
    true = parts["parts"].status(cell.now)
    assert any(part.state == "held" for part in true.parts) == holds
    assert true.dropped == (code == "PART_LOST")


def test_a_run_that_is_restored_in_another_cell_ends_with_the_same_bytes() -> None:
    config = load_config("machine_tending")
    cell, job = started(config)
    saved = []
    for instant in (0.7, 3.1, 4.9, 6.2, 8.8):
        cell.advance(nanoseconds(instant))
        saved.append(write_snapshot(cell.snapshot()))
    end = nanoseconds(14.0)
    cell.advance(end)
    assert job.status(end).success_count == 1
    expected = write_snapshot(cell.snapshot())
    for snapshot in saved:
        other = build_cell(config)
        other.restore(read_snapshot(snapshot))
        other.advance(end)
        assert write_snapshot(other.snapshot()) == expected


@pytest.mark.parametrize(
    "name", ["pick_place", "bin_picking", "sorting", "machine_tending", "assembly"]
)
def test_the_log_has_no_warning_at_load(name: str, caplog: pytest.LogCaptureFixture) -> None:
    build_cell(load_config(name))
    assert not caplog.records


def changed(name: str, old: str, new: str) -> CellConfig:
    """A shipped cell with another text."""
    file, text = find_cell(name)
    assert old in text
    return read_config(text.replace(old, new), file)


def test_places_in_the_pick_zone_are_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    build_cell(changed("pick_place", "min: [200, 160, 40]", "min: [200, 100, 40]"))
    text = "pallet, cell 3 and 7 more in safety.pick_zone: parts that were placed there are picked"
    assert text in caplog.text


def test_an_insert_without_an_input_is_an_error_also_with_a_handshake() -> None:
    without = "insert: {}\n      handshake: {before_pick: [{wait: DI20}]}"
    old = "insert: {distance_mm: 12, speed_mm_s: 5, force_input: AI6, force_volts: 2}"
    with pytest.raises(ConfigError, match="no input reports it"):
        build_cell(changed("assembly", old, without))
