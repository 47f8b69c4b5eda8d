"""`understudy validate`: checks programs before a robot runs them."""

import gc
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from understudy import __version__
from understudy.cli.cycle_time import DialectName, known_dialect
from understudy.cli.job_choice import Cycles, JobName, chosen_job
from understudy.cli.progress_bar import progress_bar
from understudy.cli.warm import announce
from understudy.config import load_config
from understudy.errors import ConfigError

if TYPE_CHECKING:
    from understudy.app.validate import Options
    from understudy.config import CellConfig
    from understudy.offline.validate.report import Finding, Report

SHOWN = 50
"""Most violations printed to the terminal; the report files have all of them."""


Programs = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[PROGRAM...]",
        help="G-code, or moves of a text robot; a cell file, or nothing: its pick & place job",
    ),
]
Clearance = Annotated[
    float | None, typer.Option(min=0.0, max=1000.0, help="clearance that every line must keep")
]
WithStops = Annotated[bool, typer.Option(help="also check a stop at any time")]
Strict = Annotated[bool, typer.Option("--strict", help="every warning is a violation")]
MaxViolations = Annotated[int | None, typer.Option(min=1, help="report at most N violations")]


def validate(
    programs: Programs = None,
    cell: Annotated[str, typer.Option(help="cell whose first arm or robot runs them")] = "default",
    robot: Annotated[str, typer.Option(help="another robot of this cell")] = "",
    dialect: DialectName = "",
    scenario: Annotated[Path | None, typer.Option(help="file with scenario rules")] = None,
    held: Annotated[Path | None, typer.Option(help="file with parts that the robot holds")] = None,
    json: Annotated[Path | None, typer.Option(help="write the report as JSON; - prints it")] = None,
    junit: Annotated[Path | None, typer.Option(help="write JUnit XML")] = None,
    sarif: Annotated[Path | None, typer.Option(help="write SARIF 2.1.0")] = None,
    html: Annotated[Path | None, typer.Option(help="write a page with a 3D view")] = None,
    clearance_mm: Clearance = None,
    with_stops: WithStops = False,
    strict: Strict = False,
    max_violations: MaxViolations = None,
    mode_of_operation: Annotated[str, typer.Option(help="mode of operation, e.g. WELDING")] = "",
    job: JobName = "",
    cycles: Cycles = 0,
) -> None:
    """Check programs, or a whole pick & place job: reach, limits, speed, torque, collisions."""
    from understudy.app.validate import Options

    options = Options(
        robot=robot,
        dialect=known_dialect(dialect),
        scenario=str(scenario) if scenario else "",
        held=str(held) if held else "",
        clearance_mm=clearance_mm,
        with_stops=with_stops,
        max_violations=max_violations,
        mode_of_operation=mode_of_operation,
        strict=strict,
    )
    chosen = chosen_job(programs or (), cell, job)
    config = chosen[0] if chosen else load_config(cell)
    announce()
    gc.freeze()  # loaded modules stay: keep them out of garbage collections during long programs
    if chosen:
        reports = [chosen[1].validate_job(config, options, cycles)]
    else:
        reports = [_report(program, config, options) for program in programs or ()]
    _show_all(reports, on_stderr=json is not None and str(json) == "-")
    _write(reports, config, json=json, junit=junit, sarif=sarif, html=html)
    if not all(report.passed for report in reports):
        raise typer.Exit(1)


def _report(program: Path, config: "CellConfig", options: "Options") -> "Report":
    from understudy.app.validate import validate_text
    from understudy.config.files import read_program

    text = read_program(program)
    with progress_bar(program, text.count(b"\n")) as progress:
        return validate_text(
            text, config, options=options, program=_name(program), progress=progress
        )


def _name(program: Path) -> str:
    """The file name as text; a name that is not UTF-8 gets replacement characters."""
    return os.fsencode(program).decode("utf-8", "replace")


# ── files ───────────────────────────────────────────────────────────────────────────────────────


def _write(
    reports: Sequence["Report"],
    config: "CellConfig",
    *,
    json: Path | None,
    junit: Path | None,
    sarif: Path | None,
    html: Path | None,
) -> None:
    from understudy.app.validate import figures_of
    from understudy.offline.json_stream import indented, indented_list
    from understudy.offline.validate import ci
    from understudy.offline.validate.html_report import page

    if json is not None:
        documents = [report.listed_document() for report in reports]
        _save(json, indented(documents[0]) if len(documents) == 1 else indented_list(documents))
    if junit is not None:
        _save(junit, (part.encode() for part in ci.junit(reports)))
    if sarif is not None:
        _save(sarif, ci.sarif(reports, __version__))
    if html is not None:
        _save(html, [page(reports, config.surroundings(), figures_of(config)).encode()])


def _save(path: Path, parts: Iterable[bytes]) -> None:
    """Writes a report piece by piece; a JSON document ends with a line break."""
    try:
        with nullcontext(sys.stdout.buffer) if str(path) == "-" else path.open("wb") as file:
            last = b"\n"
            for last in parts:
                file.write(last)
            if not last.endswith(b"\n"):
                file.write(b"\n")
            file.flush()
    except OSError as problem:
        raise ConfigError(f"cannot be written: {problem.strerror}", file=str(path)) from None


# ── the terminal ────────────────────────────────────────────────────────────────────────────────


def _show_all(reports: Iterable["Report"], *, on_stderr: bool) -> None:
    console = Console(stderr=on_stderr)
    for report in reports:
        _show(console, report)


def _show(console: Console, report: "Report") -> None:
    verdict = "[green]pass[/green]" if report.passed else "[red]fail[/red]"
    console.print(f"{escape(report.program)} on {report.cell} ({report.robot}): {verdict}")
    _show_findings(console, report.violations, color="red")
    _show_findings(console, report.warnings, color="yellow", label="warning: ")
    if report.omitted:
        console.print(f"  and {report.omitted} more")
    for note in report.notes:
        console.print(f"  note: {escape(note)}", soft_wrap=True)
    for left_out in report.left_out_notes():
        console.print(f"  not compared, {escape(left_out)}", soft_wrap=True)
    console.print(_times(report))
    if report.job:
        console.print(report.job.summary())
    console.print(_proof(report))


def _show_findings(
    console: Console, found: Sequence["Finding"], *, color: str, label: str = ""
) -> None:
    for each in found[:SHOWN]:
        kind = f"[{color}]{label}{each.kind}[/{color}]"
        console.print(f"  {kind} {escape(each.message)}", soft_wrap=True)
    if len(found) > SHOWN:
        console.print(f"  {label}{len(found) - SHOWN} more: --json has them all")


def _times(report: "Report") -> str:
    """Cycle time in one line; a table would be cut off in a narrow terminal."""
    kinds = ("motion", "process", "dwell", "io")
    parts = [(kind, report.cycle_time[f"{kind}_s"]) for kind in kinds]
    shares = ", ".join(f"{kind} {seconds:.3f} s" for kind, seconds in parts if seconds > 0.0)
    return f"cycle time {report.total_s:.3f} s{': ' if shares else ''}{shares}"


def _proof(report: "Report") -> str:
    lines = report.table
    moving, unproven = lines.moving, lines.unproven
    least = report.least_clearance
    word = "step" if report.job else "line"
    text = f"{moving} {word}{' moves' if moving == 1 else 's move'}, {report.distance_m:.2f} m"
    if least is not None:
        seen = report.least_seen
        text += f"; proven clearance {least * 1e3:.1f} mm"
        text += "" if seen is None else f", smallest distance seen {seen * 1e3:.1f} mm"
    elif moving and lines.least_clearance is None:
        text += "; no clearance is proven"
    elif unproven:
        text += f"; {unproven} {word}{' is' if unproven == 1 else 's are'} not proven"
    if report.wall_s > 0.0:
        text += f"; {report.total_s / report.wall_s:.0f} times real time"
    return text
