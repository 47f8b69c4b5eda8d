"""`understudy validate` and `cycle-time`: programs and jobs checked before a robot runs them."""

import gc
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from heapq import nlargest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from rich.console import Console
from rich.markup import escape

from understudy import __version__
from understudy.cli.options import (
    HtmlOption,
    JsonOption,
    cell_option,
    discard_output,
    is_printed,
    is_quiet,
    is_verbose,
    origin,
    put_bytes,
    robot_option,
)
from understudy.cli.parameters import Argument, Exit, Option
from understudy.cli.warm import compile_for_program, compile_kernels
from understudy.config import load_config
from understudy.config.files import read_program, read_text
from understudy.errors import ConfigError, unknown
from understudy.registry import module_of, present_name

if TYPE_CHECKING:
    from rich.table import Table

    from understudy.app.validate import OfflineJob, Options
    from understudy.app.validate import Progress as OnProgress
    from understudy.app.validate_several import RobotProgram
    from understudy.config import CellConfig
    from understudy.offline.cycle_time import CycleTime, JobTable
    from understudy.offline.validate.report import Finding, Report

DIALECTS = ("arm", "grblhal")
CELL_FILES = (".yaml", ".yml")
LONG = 2000
"""Number of lines from which a program gets a progress bar."""
SHOWN = 50
"""Most violations printed to the terminal; the report files have all of them."""
SLOWEST_LINES = 10

Programs = Annotated[
    list[Path] | None,
    Argument(
        metavar="[PROGRAM...]",
        help="G-code, or moves of a text robot; ROBOT=PROGRAM for several robots in one proof; a "
        "cell file, or nothing: the job of the cell, or the programs of its robots",
    ),
]
Program = Annotated[
    Path | None,
    Argument(help="G-code, or a text robot's moves; a cell file, or nothing: the job of the cell"),
]
DialectName = Annotated[str, Option(metavar="[arm|grblhal]", help="default: the robot's own")]
JobName = Annotated[str, Option(metavar="JOB", help="check this job of the cell, not a program")]
Cycles = Annotated[int, Option(min=0, help="of a job: parts at most; 0 means all of them")]
Clearance = Annotated[
    float | None, Option(min=0.0, max=1000.0, help="clearance that every line must keep")
]
WithStops = Annotated[bool, Option(help="also check a stop at any time")]
Strict = Annotated[bool, Option("--strict", help="every warning is a violation")]
Timing = Annotated[
    str,
    Option(
        metavar="SECONDS|any",
        help="several robots: clear in every timing within ± SECONDS that their handshakes allow",
    ),
]
Workers = Annotated[
    int | None,
    Option(min=1, max=1024, help="threads for a long program; default: one for each core"),
]
MaxViolations = Annotated[int | None, Option(min=1, help="report at most N violations")]


def validate(
    programs: Programs = None,
    cell: Annotated[str, cell_option("its first arm or robot runs them")] = "default",
    robot: Annotated[str, robot_option("another robot of this cell")] = "",
    dialect: DialectName = "",
    scenario: Annotated[Path | None, Option(help="file with scenario rules")] = None,
    held: Annotated[Path | None, Option(help="file with parts that the robot holds")] = None,
    json: JsonOption = None,
    junit: Annotated[Path | None, Option(help="write JUnit XML")] = None,
    sarif: Annotated[Path | None, Option(help="write SARIF 2.1.0")] = None,
    html: HtmlOption = None,
    clearance_mm: Clearance = None,
    with_stops: WithStops = False,
    strict: Strict = False,
    max_violations: MaxViolations = None,
    workers: Workers = None,
    mode_of_operation: Annotated[str, Option(help="mode of operation, e.g. WELDING")] = "",
    job: JobName = "",
    cycles: Cycles = 0,
    timing: Timing = "",
    log_file: Annotated[
        Path | None, Option("--log", help="run the program on virtual time and log it")
    ] = None,
) -> None:
    """Check programs, or a whole job: reach, limits, speed, torque, collisions."""
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
        workers=workers or 0,
    )
    several = chosen_programs(programs or (), cell, job)
    chosen = None if several else chosen_job(programs or (), cell, job)
    config = several[0] if several else chosen[0] if chosen else load_config(cell)
    timing_s = None
    if timing:
        from understudy.app.validate_several import timing_of

        timing_s = timing_of(timing)
        if not several:
            allowed = "ROBOT=PROGRAM …"
            raise ConfigError(
                "--timing is of several robots in one proof", value=timing, allowed=allowed
            )
    if log_file is not None and (several or chosen):
        allowed = "no ROBOT=PROGRAM" if several else "a program, not a job"
        raise ConfigError("--log writes the run of one program", allowed=allowed)
    compile_for_program(config)
    gc.freeze()  # loaded modules stay: keep them out of garbage collections during long programs
    if several:
        from understudy.app.validate_several import validate_together

        reports = validate_together(several[1], config, options=options, timing_s=timing_s)
    elif chosen:
        reports = [chosen[1].validate_job(config, options, cycles)]
    else:
        reports = [_report(program, config, options) for program in programs or ()]
    if log_file is not None:
        _log(log_file, config, programs or (), reports)
    # The terminal comes last: files are whole also if its reader leaves (`| head`).
    _write(reports, config, json=json, junit=junit, sarif=sarif, html=html)
    _show_all(reports, on_stderr=is_printed(json))
    if not all(report.passed for report in reports):
        raise Exit(1)


def _report(program: Path, config: "CellConfig", options: "Options") -> "Report":
    from understudy.app.validate import validate_text

    text = read_program(program)
    with progress_bar(program, text.count(b"\n")) as progress:
        return validate_text(
            text, config, options=options, program=_name(program), progress=progress
        )


def _log(
    file: Path, config: "CellConfig", programs: Sequence[Path], reports: Sequence["Report"]
) -> None:
    """A log of one program: of the first that has failed, else of the first one."""
    from understudy.app.virtual_run import log_program
    from understudy.config.files import ProgramFile

    pairs = list(zip(programs, reports, strict=True))
    program, report = next((pair for pair in pairs if not pair[1].passed), pairs[0])
    text = read_program(program).decode("utf-8", "replace")
    ended = log_program(file, config, report.robot, ProgramFile(program.name, text))
    print(f"{file}: {program.name} on {report.robot}: {ended}", file=sys.stderr)


def _name(program: Path) -> str:
    """The file name as text; a name that is not UTF-8 gets replacement characters."""
    return os.fsencode(program).decode("utf-8", "replace")


# ── what is meant ─────────────────────────────────────────────────────────────────────────────────


def known_dialect(name: str) -> str:
    """The present name of a dialect; empty if none was given."""
    name = present_name("dialect", name)
    if name and name not in DIALECTS:
        raise unknown("dialect", name, DIALECTS, key="--dialect")
    return name


def chosen_programs(
    programs: Sequence[Path], cell: str, job: str
) -> "tuple[CellConfig, list[RobotProgram]] | None":
    """The cell and the programs of several robots; None if one program or a job is meant."""
    from understudy.app.validate import offline_jobs

    if len(programs) == 1 and programs[0].suffix.lower() in CELL_FILES:
        cell, programs = str(programs[0]), []
    if job or not (not programs or any("=" in str(each) for each in programs)):
        return None
    from understudy.app.validate_several import assigned_programs, own_programs

    config = load_config(cell)
    if programs:
        found = assigned_programs(programs, config)
    else:
        jobs = any(check.is_in(config) for check in offline_jobs().values())
        found = [] if jobs else own_programs(config)
    return (config, found) if found else None


def chosen_job(
    programs: Sequence[Path], cell: str, job: str
) -> "tuple[CellConfig, OfflineJob] | None":
    """The cell whose job is meant, and the check of the job; None if programs are meant."""
    from understudy.app.validate import offline_jobs

    if len(programs) == 1 and programs[0].suffix.lower() in CELL_FILES:
        cell, programs = str(programs[0]), []
    if programs and not job:
        return None
    jobs = offline_jobs()
    if job and job not in jobs:
        raise unknown("job", job, jobs, key="--job")
    if programs:
        raise ConfigError("give a program or a job, not both", key="--job", value=job)
    config = load_config(cell)
    named = [jobs[job]] if job else list(jobs.values())
    for check in named:
        if check.is_in(config):
            return config, check
    needs = " or ".join(check.NEEDS for check in named)
    allowed = f"a program, or a cell in which {needs}" if needs else "a program"
    raise ConfigError("there is nothing to check", value=cell, allowed=allowed)


@contextmanager
def progress_bar(program: Path, lines: int) -> Iterator["OnProgress | None"]:
    """A progress callback; None for a short program or without a terminal."""
    console = Console(stderr=True)
    if is_quiet() or not console.is_terminal or lines < LONG:
        yield None
        return
    from rich.progress import Progress

    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(program.name, total=lines)

        def progress(done: int, total: int) -> bool:
            bar.update(task, completed=done, total=total)
            return True

        yield progress


# ── files ───────────────────────────────────────────────────────────────────────────────────────


def _write(
    reports: Sequence["Report"],
    config: "CellConfig",
    *,
    json: str | None,
    junit: Path | None,
    sarif: Path | None,
    html: Path | None,
) -> None:
    if junit is not None or sarif is not None:
        from understudy.offline.validate import ci
    if junit is not None:
        put_bytes(junit, (part.encode() for part in ci.junit(reports)))
    if sarif is not None:
        put_bytes(sarif, ci.sarif(reports, __version__))
    if html is not None:
        from understudy.app.validate import figures_of
        from understudy.offline.validate.html_report import page

        made = origin(config.name)
        text = page(reports, config.surroundings(), figures_of(config), made)
        put_bytes(html, [text.encode()])
    if json is not None:  # the last one, as it may be printed
        from understudy.offline.json_stream import indented, indented_list

        documents = [report.listed_document() for report in reports]
        put_bytes(json, indented(documents[0]) if len(documents) == 1 else indented_list(documents))


# ── the terminal ────────────────────────────────────────────────────────────────────────────────


class Terminal(Console):
    """A console whose reader may leave: the exit code remains the verdict."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        discard_output()


def _show_all(reports: Iterable["Report"], *, on_stderr: bool) -> None:
    console = Terminal(stderr=on_stderr)
    for report in reports:
        _show_report(console, report)


def _show_report(console: Console, report: "Report") -> None:
    from understudy.offline.validate.hints import HINT

    verdict = "[green]pass[/green]" if report.passed else "[red]fail[/red]"
    console.print(f"{escape(report.program)} on {report.cell} ({report.robot}): {verdict}")
    _show_findings(console, report.violations, color="red")
    _show_findings(console, report.warnings, color="yellow", label="warning: ")
    if report.omitted:
        console.print(f"  and {report.omitted} more")
    if is_quiet():
        return
    if is_verbose():
        console.print(_line_table(report))
    for note in report.notes:
        label = "" if note.startswith(HINT) else "note: "
        console.print(f"  {label}{escape(note)}", soft_wrap=True)
    for left_out in report.left_out_notes():
        console.print(f"  not compared, {escape(left_out)}", soft_wrap=True)
    console.print(_times(report))
    if report.job:
        console.print(report.job.summary())
    console.print(_proof(report))


def _show_findings(
    console: Console, found: Sequence["Finding"], *, color: str, label: str = ""
) -> None:
    shown = len(found) if is_verbose() else SHOWN
    for each in found[:shown]:
        kind = f"[{color}]{label}{each.kind}[/{color}]"
        console.print(f"  {kind} {escape(each.message)}", soft_wrap=True)
    if len(found) > shown:
        console.print(f"  {label}{len(found) - shown} more: -v shows all, --json has them too")


def _line_table(report: "Report") -> "Table":
    """Time and clearance of every line."""
    from rich.table import Table

    table = Table()
    for column in ("line", "from s", "proven mm", "seen mm"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("text", overflow="fold")
    for row in report.lines:
        lengths = (row.clearance, row.seen)
        texts = ("" if length is None else f"{length * 1e3:.1f}" for length in lengths)
        table.add_row(str(row.line), f"{row.start_s:.3f}", *texts, escape(row.text))
    return table


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
        text += "; no clearance to the environment is proven"
    elif unproven:
        text += f"; {unproven} {word}{' is' if unproven == 1 else 's are'} not proven"
    if report.wall_s > 0.0:
        text += f"; {report.total_s / report.wall_s:.0f} times real time"
    return text


# ── cycle time ────────────────────────────────────────────────────────────────────────────────────


def cycle_time(
    program: Program = None,
    cell: Annotated[str, cell_option("its first arm or robot runs it")] = "default",
    robot: Annotated[str, robot_option("another robot of this cell")] = "",
    settings: Annotated[
        Path | None,
        Option(help="file of grblHAL settings ($n=v): use the machine they describe"),
    ] = None,
    dialect: DialectName = "",
    mode_of_operation: Annotated[str, Option(help="mode of operation, e.g. MANUAL")] = "",
    json: JsonOption = None,
    job: JobName = "",
    cycles: Cycles = 0,
) -> None:
    """Compute the cycle time of a program, line by line, or of a job, part by part."""
    from understudy.offline.cycle_time import as_document
    from understudy.offline.json_stream import encoded

    options = {"robot": robot, "mode_of_operation": mode_of_operation}
    if chosen := chosen_job((program,) if program else (), cell, job):
        config, check = chosen
        program = Path(config.name)
        compile_for_program(config)
        result = check.job_cycle_time(config, **options, cycles=cycles)
    else:
        assert program is not None
        options |= {"dialect": known_dialect(dialect)}
        result = _of_program(program, cell, settings, options)
    if json is not None:
        put_bytes(json, encoded(as_document(result)))
    if not is_printed(json):
        _show(program, result)
    for violation in result.violations:
        print(f"{program}: {violation.message}", file=sys.stderr)
    if result.violations:
        raise Exit(1)


def _of_program(
    program: Path, cell: str, settings: Path | None, options: dict[str, str]
) -> "CycleTime":
    data = read_program(program)
    if settings is not None:
        return _on_machine(data, settings, options["dialect"])
    return _on_cell(program, data, load_config(cell), options)


def _on_machine(data: bytes, settings: Path, dialect: str) -> "CycleTime":
    from understudy.offline.cycle_time import CycleTimeEstimator

    if dialect == "arm":
        raise ConfigError(
            "--settings describe a grblHAL machine, which speaks no other dialect",
            value=f"--dialect {dialect}",
            allowed="--dialect grblhal, or no --settings",
        )
    setup = module_of("robots", "machine").machine_of(read_text(settings), str(settings))
    compile_kernels("motion")
    return CycleTimeEstimator(setup).estimate(data)


def _on_cell(
    program: Path, data: bytes, config: "CellConfig", options: dict[str, str]
) -> "CycleTime":
    from understudy.app.validate import cycle_time

    compile_for_program(config)
    with progress_bar(program, data.count(b"\n")) as progress:
        return cycle_time(data, config, **options, progress=progress)


def _show(program: Path, result: "CycleTime") -> None:
    from rich.table import Table

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


def _job_table(given: "JobTable") -> "Table":
    from rich.table import Table

    table = Table(title=given.title, title_justify="left")
    for column in given.columns:
        figure = column.startswith(">")
        justify: Literal["left", "right"] = "right" if figure else "left"
        table.add_column(column.removeprefix(">"), justify=justify, no_wrap=figure)
    for row in given.rows:
        table.add_row(*map(escape, row))
    return table


def _breakdown(program: Path, result: "CycleTime") -> "Table":
    from rich.table import Table

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
    if result.interval_s:
        low, high = result.interval_s
        table.add_row("interval", f"{low:.3f} … {high:.3f}", "")
    return table
