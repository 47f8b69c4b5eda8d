"""`understudy reach`: map of the poses that an arm can reach."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from understudy.cli.options import (
    HtmlOption,
    JsonOption,
    cell_option,
    check_writable,
    is_quiet,
    origin,
    put_json,
    robot_option,
)
from understudy.cli.parameters import Exit, Option
from understudy.cli.warm import compile_for_program
from understudy.config import load_config
from understudy.errors import ConfigError
from understudy.units import MM

if TYPE_CHECKING:
    from understudy.app.reach import PoseReach, ReachMaps
    from understudy.config import CellConfig

ENDINGS = (".csv", ".npz", ".html")


def reach(
    cell: Annotated[str, cell_option("its first arm is used")] = "default",
    robot: Annotated[str, robot_option("another robot of this cell")] = "",
    resolution_mm: Annotated[float, Option(min=5.0, max=500.0, help="grid of the map")] = 50.0,
    out: Annotated[Path | None, Option(help="write the map: F.csv, F.npz or F.html")] = None,
    html: HtmlOption = None,
    json: JsonOption = None,
    program: Annotated[Path | None, Option(help="check the poses of this program instead")] = None,
) -> None:
    """Compute where an arm can bring its tool, or check the poses of a program."""
    from understudy.app.reach import reach_maps
    from understudy.offline.robot import chosen_robot

    if out is not None and out.suffix not in ENDINGS:
        raise ConfigError(
            "unknown file type for a reach map", value=str(out), allowed=" ".join(ENDINGS)
        )
    config = load_config(cell)
    chosen_robot(config, robot, with_body=True)
    for file in (out, html):
        check_writable(file)
    compile_for_program(config, "reach")
    if program is not None:
        _poses(program, config, robot, json)
        return
    progress = (lambda share: None) if is_quiet() else Progress()
    maps = reach_maps(config, robot=robot, resolution_mm=resolution_mm, progress=progress)
    for file in filter(None, (out, html)):
        _write(file, maps, config.name, as_page=file is html or file.suffix == ".html")
    if not put_json(json, _document(maps)):
        _show(maps)


class Progress:
    """Prints to stderr each tenth that is done, on a terminal and into a pipe."""

    def __init__(self) -> None:
        self._tenths = 0

    def __call__(self, share: float) -> None:
        tenths = int(10.0 * share + 1e-9)
        if tenths > self._tenths:
            self._tenths = tenths
            print(f"reach: {10 * tenths} %", file=sys.stderr, flush=True)


def _poses(program: Path, config: "CellConfig", robot: str, json: str | None) -> None:
    from understudy.app.reach import program_reach
    from understudy.config.files import read_program

    found = program_reach(read_program(program), config, robot=robot)
    rows = [
        {
            "line": each.line,
            "pose_mm": [value / MM for value in each.pose[:3]],
            "reachable": each.result.reachable,
            "reason": each.result.failure_reason,
        }
        for each in found
    ]
    if not put_json(json, {"program": program.name, "poses": rows}):
        _show_poses(program, found)
    if not all(each.result.reachable for each in found):
        raise Exit(1)


def _show_poses(program: Path, found: "Sequence[PoseReach]") -> None:
    table = Table(title=f"{program.name}: {len(found)} poses", title_justify="left")
    for column in ("line", "x mm", "y mm", "z mm"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("reach", overflow="fold")
    for each in found:
        figures = (f"{value / MM:.1f}" for value in each.pose[:3])
        table.add_row(str(each.line), *figures, escape(each.result.failure_reason) or "yes")
    Console().print(table)


def _document(maps: "ReachMaps") -> dict[str, Any]:
    found, free = maps.found, maps.free
    reachable, clear = (int((each.orientations > 0).sum()) for each in (found, free))
    return {
        "robot": maps.robot,
        "resolution_mm": round(found.resolution / MM, 6),
        "points": len(found.points),
        "reachable": reachable,
        "collision_free": clear,
        "best_manipulability": float(found.manipulability.max()),
        "low_mm": (found.workspace_min / MM).tolist() if reachable else None,
        "high_mm": (found.workspace_max / MM).tolist() if reachable else None,
    }


def _show(maps: "ReachMaps") -> None:
    facts = _document(maps)
    print(f"{facts['robot']}: {facts['reachable']} of {facts['points']} grid points are reachable,")
    best = f"best manipulability {facts['best_manipulability']:.4f}"
    print(f"{facts['collision_free']} of them without contact; {best}")
    for axis, a, b in zip("xyz", facts["low_mm"] or (), facts["high_mm"] or (), strict=False):
        print(f"  {axis} {a:.0f}…{b:.0f} mm")


def _write(out: Path, maps: "ReachMaps", cell: str, *, as_page: bool) -> None:
    import numpy as np

    from understudy.space.reach import export as reach_export

    try:
        if as_page:
            title = f"Reach of {maps.robot} in {cell}"
            out.write_text(reach_export.html(maps.free, title, origin(cell)), encoding="utf-8")
        elif out.suffix == ".npz":
            np.savez_compressed(out, **reach_export.arrays(maps.found, maps.free))  # type: ignore[arg-type]
        else:
            out.write_text(reach_export.csv(maps.found, maps.free), encoding="utf-8")
    except OSError as problem:
        raise ConfigError(f"cannot be written: {problem.strerror}", file=str(out)) from None
