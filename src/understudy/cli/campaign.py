"""`understudy campaign`: a cell with many seeds and values, and how often it succeeds."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from understudy.campaign.engines import ENGINES
from understudy.campaign.journal import Journal
from understudy.campaign.one_run import Outcome, run_one
from understudy.campaign.plan import PlanFile, RunSpec, read_plan, replaced
from understudy.campaign.report import Report, as_csv, as_json, page, report_of, smallest_failures
from understudy.config.files import read_text
from understudy.errors import ConfigError, unknown

JOURNAL, REPORT, TABLE, PAGE = "runs.jsonl", "report.json", "runs.csv", "report.html"
"""The files of a campaign in its folder."""


def campaign(
    file: Annotated[Path, typer.Argument(help="campaign file")],
    runs: Annotated[int | None, typer.Option(min=1, help="runs for each point")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="first seed")] = None,
    engine: Annotated[str, typer.Option(help="local: this machine; ray: a Ray cluster")] = "local",
    workers: Annotated[
        int | None, typer.Option(min=1, max=1024, help="processes; default: one for each core")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="folder of journal and reports; default: FILE.runs")
    ] = None,
    fresh: Annotated[bool, typer.Option(help="begin again, instead of going on")] = False,
    json: Annotated[Path | None, typer.Option(help="write the report here, too")] = None,
    only: Annotated[int | None, typer.Option(min=0, help="carry out one seed and show it")] = None,
    point: Annotated[list[str] | None, typer.Option(help="with --only: KEY=VALUE")] = None,
    without: Annotated[list[str] | None, typer.Option(help="with --only: leave a rule out")] = None,
) -> None:
    """Run a cell with many seeds and values. Exit code 0 if every run passed, else 1."""
    planned = read_plan(str(file), read_text(file))
    planned = PlanFile(replaced(planned.plan, runs=runs, seed=seed), planned.file)
    if only is not None:
        spec = RunSpec(0, only, _point(planned, point or []), tuple(without or ()))
        raise typer.Exit(_replay(planned, spec))
    if point or without:
        raise ConfigError("--point and --without are for one run", allowed="with --only SEED")
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    folder = out or file.with_suffix(".runs")
    _make_folder(folder, fresh=fresh)
    if json is not None:
        _put(json, b"")
    with Journal(folder / JOURNAL, planned) as journal:
        _carry_out(planned, journal, engine, workers or os.cpu_count() or 1)
        outcomes = list(journal.outcomes.values())
    failures = smallest_failures(planned, outcomes, lambda spec: run_one(planned, spec))
    report = report_of(planned.plan, outcomes, failures)
    _write(planned, report, outcomes, folder, json)
    _tell(report, folder)
    raise typer.Exit(0 if report.passed == report.runs else 1)


def _make_folder(folder: Path, *, fresh: bool) -> None:
    """``fresh``: removes the files of an earlier campaign; the folder may have others."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in (JOURNAL, REPORT, TABLE, PAGE) if fresh else ():
            (folder / name).unlink(missing_ok=True)
    except OSError as problem:
        raise _unwritable(folder, problem) from None


def _carry_out(planned: PlanFile, journal: Journal, engine: str, workers: int) -> None:
    left = [spec for spec in planned.plan.specs() if spec.number not in journal.outcomes]
    total = len(left) + len(journal.outcomes)
    if journal.outcomes:
        print(f"{len(journal.outcomes):,} of {total:,} runs are done already", file=sys.stderr)
    bar = Progress(
        "{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
    )
    with bar:
        shown = bar.add_task("runs", total=total, completed=len(journal.outcomes))
        for outcome in ENGINES[engine](planned, left, workers):
            journal.add(outcome)
            bar.advance(shown)


def _write(
    planned: PlanFile, report: Report, outcomes: list[Outcome], folder: Path, json: Path | None
) -> None:
    _put(folder / REPORT, as_json(report))
    _put(folder / TABLE, as_csv(planned.plan, outcomes).encode())
    _put(folder / PAGE, page(planned.plan, report, outcomes).encode())
    if json is not None:
        _put(json, as_json(report))


def _put(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all; a pipe or a terminal as it is."""
    from understudy.config.outside_files import FilesFolder, anything

    place = path.resolve()
    if place.is_file() or (place.parent.is_dir() and not place.exists()):
        FilesFolder(place.parent).write(place.name, content, anything)
        return
    try:
        path.write_bytes(content)
    except OSError as problem:
        raise _unwritable(path, problem) from None


def _unwritable(path: Path, problem: OSError) -> ConfigError:
    return ConfigError(f"cannot be written: {problem.strerror}", file=str(path))


def _tell(report: Report, folder: Path) -> None:
    low, high = report.between
    print(
        f"{report.passed:,} of {report.runs:,} runs passed: {report.pass_rate:.2%} "
        f"(95 %: {low:.2%} … {high:.2%})"
    )
    for failure in report.failures:
        print(f"  seed {failure.seed}: {failure.problem}\n    {failure.command}")
    print(
        f"digest {report.digest}, {report.robot_hours_per_core_day:,.0f} robot-hours for each core "
        f"and day\n{folder / PAGE}"
    )


# ── one run again ───────────────────────────────────────────────────────────────────────────────


def _point(planned: PlanFile, given: list[str]) -> dict[str, Any]:
    point: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals:
            raise ConfigError("--point needs KEY=VALUE", value=text)
        if key not in planned.plan.grid:
            raise unknown("key of the grid", key, planned.plan.grid)
        try:
            point[key] = msgspec.json.decode(value)
        except msgspec.DecodeError:
            point[key] = value
    return point


def _replay(planned: PlanFile, spec: RunSpec) -> int:
    rules = planned.config(spec).head.scenario.rules
    known = planned.config(msgspec.structs.replace(spec, without=())).head.scenario.rules
    for name in spec.without:
        if name not in known:
            raise unknown("rule", name, known)
    outcome = run_one(planned, spec)
    print(f"seed {spec.seed}, rules: {', '.join(rules) or 'none'}")
    for name, value in outcome.figures.items():
        print(f"  {name}: {value}")
    print(f"digest {outcome.digest}\n{'passed' if outcome.passed else outcome.problem}")
    return 0 if outcome.passed else 1
