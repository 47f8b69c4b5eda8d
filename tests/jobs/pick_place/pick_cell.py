"""A cell that palletises four cubes, for tests of the operator's commands."""

from pathlib import Path

TEXT = """
robots:
  g60:
    kind: arm
    tool: 2
    tools:
      1: {name: torch, tcp_mm_deg: [0, 0, 150, 0, 0, 0]}
      2: {name: gripper, tcp_mm_deg: [0, 0, 80, 0, 0, 0]}
    start_deg: [0, -30, 60, 0, 60, 0]
    welder: {}
    gripper: {}
    pickplace: {scan_position: {x: 400, y: 0, z: 400}, place_position: {x: 450, y: -250, z: 70}}
    pallet: {rows: 2, columns: 2, layers: 1, pitch_x: 80, pitch_y: 80, layer_height: 40}
    modes: {start: PICKPLACE, tools: {PICKPLACE: 2, WELDING: 1}}
parts:
  - name: cube
    dimensions_mm: [40, 40, 40]
    position_mm: [400, 0, 70]
    grid: {columns: 2, rows: 2, layers: 1, pitch_mm: [80, 80, 40]}
environment:
  objects:
    - {name: table, type: box, position_mm: [500, 0, 25], dimensions_mm: [700, 1200, 50]}
"""


def written(folder: Path, text: str = TEXT) -> str:
    file = folder / "pick.yaml"
    file.write_text(text)
    return str(file)
