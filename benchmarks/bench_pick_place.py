"""A whole pallet without a display: 32 parts are seen, picked and stacked 4×4×2 by the G60.

Vision is the ground truth of the cell; collisions are watched with the held and all placed parts.
The peer is real time: how long the cell itself takes.
"""

from time import process_time
from typing import Any

from benchmarks import Row
from understudy.app.build import build_cell
from understudy.config.cell import read_config
from understudy.jobs.pick_place.manager import PickPlaceManager
from understudy.units import NS_PER_SECOND, seconds

CELL = """
robots:
  g60:
    kind: arm
    tool: 2
    tools:
      2:
        name: cup
        tcp_mm_deg: [0, 0, 80, 0, 0, 0]
        mass_kg: 0.8
        com_mm: [0, 0, 40]
        shapes:
          - {name: body, type: cylinder, radius_mm: 25, height_mm: 60, position_mm: [0, 0, 30]}
          - {name: cup, type: cylinder, radius_mm: 14, height_mm: 18, position_mm: [0, 0, 70]}
    gripper: {type: PNEUMATIC_VACUUM}
    pickplace:
      scan_position: {x: 390, y: 310, z: 500}
      place_position: {x: 600, y: -200, z: 100}
      retract_distance_mm: 80
      order: highest
      grasps: {"*": {offset_mm_deg: [0, 0, 25, 180, 0, 0], symmetry_deg: 90}}
    pallet: {layers: 2, corner2: {x: 600, y: 100, z: 100}}
parts:
  - name: box
    dimensions_mm: [40, 40, 50]
    position_mm: [300, 220, 75]
    mass_kg: 0.2
    grid: {columns: 4, rows: 4, layers: 2, pitch_mm: [60, 60, 50]}
environment:
  objects:
    - {name: floor, type: box, position_mm: [0, 0, -50], dimensions_mm: [4000, 4000, 100]}
    - {name: table, type: box, position_mm: [450, 100, 25], dimensions_mm: [500, 800, 50]}
"""
LONGEST = 3600 * NS_PER_SECOND
ROUNDS = 3


def full_pallet() -> tuple[float, float, Any]:
    """CPU seconds, simulated seconds and the status of the job at the end of a whole pallet."""
    cell = build_cell(read_config(CELL, "pick_place.yaml"))
    robot: Any = cell.components["g60"]
    job = cell.components["g60.pick_place"]
    assert isinstance(job, PickPlaceManager)
    robot.connect(0)
    robot.enable(0)
    begun = process_time()
    refused = job.run_continuous(0)
    assert refused is None, refused
    while job.busy() and cell.now < LONGEST:
        cell.advance(cell.now + NS_PER_SECOND)
    cpu = process_time() - begun
    assert robot.tally(cell.now).collisions_detected == 0
    return cpu, seconds(cell.now), job.status(cell.now)


def rows() -> list[Row]:
    full_pallet()  # compiles
    cpus = []
    for _ in range(ROUNDS):
        cpu, simulated, status = full_pallet()
        assert status.success_count == 32, status
        cpus.append(cpu)
    cpu = sorted(cpus)[ROUNDS // 2]
    return [
        Row(
            "32 parts on a pallet 4×4×2", f"{cpu:.2f} s", f"{simulated:.0f} s in real time",
            f"{simulated / cpu:.0f}×", "< 1 s",
        )
    ]  # fmt: skip
