"""`understudy reach`: map of the poses that an arm can reach."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from understudy.cli.warm import announce
from understudy.config import load_config
from understudy.errors import ConfigError
from understudy.units import MM

if TYPE_CHECKING:
    from understudy.app.reach import ReachMaps
    from understudy.config import CellConfig

ENDINGS = (".csv", ".npz", ".html")


def reach(
    cell: Annotated[str, typer.Option(help="cell whose first arm is used")] = "default",
    robot: Annotated[str, typer.Option(help="another robot of this cell")] = "",
    resolution_mm: Annotated[
        float, typer.Option(min=5.0, max=500.0, help="grid of the map")
    ] = 50.0,
    out: Annotated[Path | None, typer.Option(help="write the map: F.csv, F.npz or F.html")] = None,
    program: Annotated[
        Path | None, typer.Option(help="check the poses of this program instead")
    ] = None,
) -> None:
    """Compute where an arm can bring its tool, or check the poses of a program."""
    from understudy.app.reach import reach_maps

    announce()
    if out is not None and out.suffix not in ENDINGS:
        raise ConfigError(
            "unknown file type for a reach map", value=str(out), allowed=" ".join(ENDINGS)
        )
    config = load_config(cell)
    if program is not None:
        _poses(program, config, robot)
        return
    maps = reach_maps(config, robot=robot, resolution_mm=resolution_mm, progress=Progress())
    _show(maps)
    if out is not None:
        _write(out, maps, f"{config.name}: {maps.robot}")


class Progress:
    """Prints to stderr each tenth that is done, on a terminal and into a pipe."""

    def __init__(self) -> None:
        self._tenths = 0

    def __call__(self, share: float) -> None:
        tenths = int(10.0 * share + 1e-9)
        if tenths > self._tenths:
            self._tenths = tenths
            print(f"reach: {10 * tenths} %", file=sys.stderr, flush=True)


def _poses(program: Path, config: "CellConfig", robot: str) -> None:
    from understudy.app.reach import program_reach
    from understudy.config.files import read_program

    found = program_reach(read_program(program), config, robot=robot)
    table = Table(title=f"{program.name}: {len(found)} poses", title_justify="left")
    for column in ("line", "x mm", "y mm", "z mm"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("reach", overflow="fold")
    for each in found:
        figures = (f"{value / MM:.1f}" for value in each.pose[:3])
        table.add_row(str(each.line), *figures, escape(each.result.failure_reason) or "yes")
    Console().print(table)
    if not all(each.result.reachable for each in found):
        raise typer.Exit(1)


def _show(maps: "ReachMaps") -> None:
    found, free = maps.found, maps.free
    reachable, clear = (int((each.orientations > 0).sum()) for each in (found, free))
    low, high = found.workspace_min / MM, found.workspace_max / MM
    print(f"{maps.robot}: {reachable} of {len(found.points)} grid points are reachable,")
    print(f"{clear} of them without contact; best manipulability {found.manipulability.max():.4f}")
    for axis, a, b in zip("xyz", low, high, strict=True):
        print(f"  {axis} {a:.0f}…{b:.0f} mm")


def _write(out: Path, maps: "ReachMaps", title: str) -> None:
    import numpy as np

    from understudy.space.reach import export as reach_export

    try:
        if out.suffix == ".npz":
            np.savez_compressed(out, **reach_export.arrays(maps.found, maps.free))  # type: ignore[arg-type]
        elif out.suffix == ".csv":
            out.write_text(reach_export.csv(maps.found, maps.free), encoding="utf-8")
        else:
            out.write_text(reach_export.html(maps.free, title), encoding="utf-8")
    except OSError as problem:
        raise ConfigError(f"cannot be written: {problem.strerror}", file=str(out)) from None
