"""`understudy cycle-time`: the duration of a program, computed without running it."""

import sys
from heapq import nlargest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from understudy.cli.job_choice import Cycles, JobName, chosen_job
from understudy.cli.progress_bar import progress_bar
from understudy.cli.warm import announce
from understudy.config import load_config
from understudy.config.files import read_program, read_text
from understudy.errors import ConfigError, unknown
from understudy.registry import present_name

if TYPE_CHECKING:
    from understudy.config import CellConfig
    from understudy.offline.cycle_time import CycleTime
    from understudy.offline.job import JobTable

SLOWEST_LINES = 10


DIALECTS = ("arm", "grblhal")
DialectName = Annotated[str, typer.Option(metavar="[arm|grblhal]", help="default: the robot's own")]


Program = Annotated[
    Path | None,
    typer.Argument(
        help="G-code, or a text robot's moves; a cell file, or nothing: its pick & place job"
    ),
]


def known_dialect(name: str) -> str:
    """The present name of a dialect; empty if none was given."""
    name = present_name("dialect", name)
    if name and name not in DIALECTS:
        raise unknown("dialect", name, DIALECTS, key="--dialect")
    return name


def cycle_time(
    program: Program = None,
    cell: Annotated[str, typer.Option(help="cell whose first arm or robot runs it")] = "default",
    robot: Annotated[str, typer.Option(help="another robot of this cell")] = "",
    settings: Annotated[
        Path | None,
        typer.Option(help="file of grblHAL settings ($n=v): use the machine they describe"),
    ] = None,
    dialect: DialectName = "",
    mode_of_operation: Annotated[str, typer.Option(help="mode of operation, e.g. MANUAL")] = "",
    json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
    job: JobName = "",
    cycles: Cycles = 0,
) -> None:
    """Compute the cycle time of a program, line by line, or of a pick & place job, part by part."""
    from understudy.offline.cycle_time import as_document
    from understudy.offline.json_stream import encoded

    options = {"robot": robot, "mode_of_operation": mode_of_operation}
    if chosen := chosen_job((program,) if program else (), cell, job):
        config, check = chosen
        program = Path(config.name)
        announce()
        result = check.job_cycle_time(config, **options, cycles=cycles)
    else:
        assert program is not None
        options |= {"dialect": known_dialect(dialect)}
        result = _of_program(program, cell, settings, options)
    if json:
        for part in encoded(as_document(result)):
            sys.stdout.write(part.decode())
        print()
    else:
        _show(program, result)
    for violation in result.violations:
        print(f"{program}: {violation.message}", file=sys.stderr)
    if result.violations:
        raise typer.Exit(1)


def _of_program(
    program: Path, cell: str, settings: Path | None, options: dict[str, str]
) -> "CycleTime":
    data = read_program(program)
    if settings is not None:
        return _on_machine(data, settings, options["dialect"])
    return _on_cell(program, data, load_config(cell), options)


def _on_machine(data: bytes, settings: Path, dialect: str) -> "CycleTime":
    from understudy.offline.cycle_time import CycleTimeEstimator
    from understudy.robots.grblhal.offline import machine_of

    if dialect == "arm":
        raise ConfigError(
            "--settings describe a grblHAL machine, which speaks no other dialect",
            value=f"--dialect {dialect}",
            allowed="--dialect grblhal, or no --settings",
        )
    setup = machine_of(read_text(settings), str(settings))
    announce()
    return CycleTimeEstimator(setup).estimate(data)


def _on_cell(
    program: Path, data: bytes, config: "CellConfig", options: dict[str, str]
) -> "CycleTime":
    from understudy.app.validate import cycle_time

    announce()
    with progress_bar(program, data.count(b"\n")) as progress:
        return cycle_time(data, config, **options, progress=progress)


def _show(program: Path, result: "CycleTime") -> None:
    console = Console()
    console.print(_breakdown(program, result))
    if result.job:
        for given in result.job.tables():
            console.print(_job_table(given))
        return
    slowest = nlargest(SLOWEST_LINES, result.lines, key=lambda row: row.seconds)
    table = Table(title="slowest lines", title_justify="left")
    for column in ("line", "seconds", "from", "kind"):
        table.add_column(column, justify="left" if column == "kind" else "right", no_wrap=True)
    table.add_column("text")
    for row in slowest:
        if row.seconds > 0.0:
            figures = (str(row.line), f"{row.seconds:.3f}", f"{row.start_s:.3f}")
            table.add_row(*figures, row.kind, escape(row.text))
    if table.row_count:
        console.print(table)
    for overload in result.overloads:
        console.print(f"[yellow]effort[/yellow]: {overload}")
    for wait in result.waits:
        console.print(f"line {wait.line} waits for an input: up to {wait.timeout_s:g} s more")


def _job_table(given: "JobTable") -> Table:
    table = Table(title=given.title, title_justify="left")
    for column in given.columns:
        figure = column.startswith(">")
        justify: Literal["left", "right"] = "right" if figure else "left"
        table.add_column(column.removeprefix(">"), justify=justify, no_wrap=figure)
    for row in given.rows:
        table.add_row(*map(escape, row))
    return table


def _breakdown(program: Path, result: "CycleTime") -> Table:
    table = Table(title=f"{program.name}: {result.blocks} blocks", title_justify="left")
    table.add_column("", no_wrap=True)
    table.add_column("seconds", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    whole = result.total_s or 1.0
    for name in ("motion", "process", "dwell", "io"):
        value: float = getattr(result, f"{name}_s")
        table.add_row(name, f"{value:.3f}", f"{value / whole:.1%}")
    table.add_section()
    table.add_row("total", f"{result.total_s:.3f}", "")
    return table
