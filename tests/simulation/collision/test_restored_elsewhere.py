"""A snapshot continues in a new process as in its own."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.parts import part
from tests.simulation.collision.restored import END, run_on

from understudy.app.build import load_cell
from understudy.robots.arm.controller import ArmController
from understudy.simulation.cell import write_snapshot
from understudy.wire.exchange import InProcessCell

ROOT = Path(__file__).parents[3]
CELL = """
seed: 5
robots:
  g60:
    kind: arm
    tool: 1
    tools:
      1:
        name: torch
        tcp_mm_deg: [0, 0, 150, 0, 0, 0]
        shapes:
          - {name: tube, type: cylinder, radius_mm: 10, height_mm: 140, position_mm: [0, 0, 70]}
    io:
      links:
        - {output: ARC_START, input: ARC_OK, delay_ms: 50}
        - {output: GAS, input: GAS_OK, delay_ms: 100}
        - {output: 5, input: 6, delay_ms: 700}
    welder: {}
environment:
  objects:
    - {name: clamp, type: box, position_mm: [450, 40, 345], dimensions_mm: [20, 20, 60]}
scenario:
  rules:
    noise: {fault: weld_noise, on: g60.welder}
    shaky: {fault: ignition_failure, on: g60.welder, probability: 0.5}
    stuck: {fault: wire_fault, on: g60.welder, at_s: 7.5}
"""
LATER = 37_000_000
PROGRAM = (
    "G0 X450 Y-100 Z350 A180 B0 C0", "M7", "M62 P5", "M3", "G1 Y100 F1800", "M5", "M9",
    "M63 P5", "G0 Z450", "G4 P0.3", "G0 Y-100",
)  # fmt: skip


def begun(cell: Path) -> InProcessCell:
    virtual_cell = load_cell(str(cell))
    arm = part(virtual_cell, "g60", ArmController)
    arm.connect(0)
    arm.enable(0)
    for line in PROGRAM:
        assert arm.send_gcode(line, 0) is None
    return virtual_cell


def events(cell: Path) -> list[int]:
    """The times of all wakes."""
    virtual_cell, found = begun(cell), list[int]()
    while (at := virtual_cell.timed_cell.next_wake()) is not None and at < END:
        virtual_cell.advance_to(at)
        found.append(at)
    return found


@pytest.mark.parametrize("count", [5, pytest.param(100, marks=pytest.mark.soak)])
def test_a_snapshot_at_any_event_continues_in_a_new_process(tmp_path: Path, count: int) -> None:
    cell = tmp_path / "weld.yaml"
    cell.write_text(CELL)
    moments = events(cell)
    assert len(moments) >= 20
    # At events, and where more are wanted a little after them, too.
    chosen = sorted(moments[k * (len(moments) - 1) // count] + k % 5 * LATER for k in range(count))
    virtual_cell, files = begun(cell), []
    for number, moment in enumerate(chosen):
        virtual_cell.advance_to(moment)
        files.append(tmp_path / f"{number}.json")
        files[-1].write_bytes(write_snapshot(virtual_cell.snapshot()))
    here = [run_on(str(cell), file) for file in files]
    script = [
        sys.executable,
        "-m",
        "tests.simulation.collision.restored",
        str(cell),
        *map(str, files),
    ]
    done = subprocess.run(script, capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == here
    assert len(set(here)) > 1
