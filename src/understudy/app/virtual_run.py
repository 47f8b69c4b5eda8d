"""Runs on virtual time: programs that begin, and a log of what happens."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from understudy.app.build import build_cell, repeatable_run
from understudy.config import CellConfig
from understudy.config.files import ProgramFile
from understudy.errors import ConfigError, Refused, unknown
from understudy.ports.operation import skills
from understudy.ports.program import ProgramControl, all_read
from understudy.registry import kinds, module_of
from understudy.simulation.cell import Cell
from understudy.wire.exchange import InProcessCell

SLICE_S = 1.0
LONGEST_S = 3600.0
"""Simulated time after which a program that waits for something is left."""


def recorded(
    file: Path | None, config: CellConfig, cell: InProcessCell
) -> AbstractContextManager[Any]:
    """A log of a cell on virtual time, of the kind that the ending of the file names; its value has
    `take_snapshot`. None: no log."""
    if file is None:
        return nullcontext()
    kind = file.suffix.removeprefix(".").lower()
    if kind not in kinds("logs"):
        raise unknown("ending of a log", file.suffix, [f".{each}" for each in kinds("logs")])
    log: AbstractContextManager[Any] = module_of("logs", kind).recorded(
        file, config, repeatable_run(config), cell
    )
    return log


def enable(config: CellConfig, cell: Cell, robot: str) -> None:
    """Switches the drives on, as an operator does before the first motion."""
    kind = module_of("robots", config.robots[robot].kind)
    actions: Any = kind.operator_actions(cell.components[robot])
    if "drives" in skills(actions):
        actions.enable(cell.now)


def start_program(
    config: CellConfig, cell: Cell, robot: str, program: ProgramFile
) -> Refused | None:
    """Loads a program and starts it with the drives on; why it does not run."""
    control: ProgramControl = cell.components[f"{robot}.program"]  # type: ignore[assignment]
    reading = control.prepare(program.text)
    enable(config, cell, robot)
    return all_read(reading) or control.load_prepared(program.name) or control.run(cell.now)


def log_program(file: Path, config: CellConfig, robot: str, program: ProgramFile) -> str:
    """Runs a program on its cell and writes the log; how it ended."""
    timed = build_cell(config)
    cell = InProcessCell(timed)
    control: Any = timed.components.get(f"{robot}.program")
    if control is None:
        raise ConfigError("this robot runs no programs", key="--log", value=robot)
    with recorded(file, config, cell) as log:
        refused = start_program(config, timed, robot, program)
        log.take_snapshot()
        while control.under_way() and cell.now < LONGEST_S:
            cell.advance(SLICE_S)
    if refused is not None:
        return refused.reason
    reading = control.reading(timed.now)
    return str(reading.error or f"{reading.state} in {reading.elapsed_s:.3f} s")
