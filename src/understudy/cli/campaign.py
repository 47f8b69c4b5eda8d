"""`understudy campaign`: a cell with many seeds and values, and how often it succeeds."""

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from understudy.campaign.engines import ENGINES
from understudy.campaign.explore import (
    RUN_S,
    Explored,
    Exploring,
    Summary,
    explore_one,
    lacking,
    summary_of,
)
from understudy.campaign.explore import Plan as Exploration
from understudy.campaign.journal import Journal
from understudy.campaign.one_run import Outcome, Run, run_one
from understudy.campaign.plan import PlanFile, RunSpec, read_plan, replaced
from understudy.campaign.report import Report, as_csv, as_json, page, report_of, smallest_failures
from understudy.cli.options import (
    HtmlOption,
    JsonOption,
    check_writable,
    is_printed,
    is_quiet,
    origin,
    put_bytes,
    put_json,
    put_whole,
)
from understudy.cli.parameters import Argument, Exit, Option
from understudy.config import load_config, shipped_cells
from understudy.config.files import read_text
from understudy.errors import ConfigError, unknown
from understudy.ports.exploration import CATEGORIES, Category

if TYPE_CHECKING:
    from understudy.app.live import Live

LOOK_SECONDS = 0.01
FEW_HOURS = 100.0
JOURNAL, REPORT, TABLE, PAGE = "runs.jsonl", "report.json", "runs.csv", "report.html"
"""The files of a campaign in its folder."""


def campaign(
    file: Annotated[Path | None, Argument(help="campaign file")] = None,
    runs: Annotated[int | None, Option(min=1, help="runs for each point")] = None,
    seed: Annotated[int | None, Option(min=0, help="first seed")] = None,
    engine: Annotated[str, Option(help="local: this machine; ray: a Ray cluster")] = "local",
    workers: Annotated[
        int | None, Option(min=1, max=1024, help="processes; default: one for each core")
    ] = None,
    out: Annotated[
        Path | None, Option(help="folder of journal and reports; default: FILE.runs")
    ] = None,
    fresh: Annotated[bool, Option(help="begin again, instead of going on")] = False,
    json: JsonOption = None,
    html: HtmlOption = None,
    only: Annotated[int | None, Option(min=0, help="carry out one seed and show it")] = None,
    point: Annotated[list[str] | None, Option(help="with --only: KEY=VALUE")] = None,
    without: Annotated[list[str] | None, Option(help="with --only: leave a rule out")] = None,
    log_file: Annotated[
        Path | None,
        Option("--log", help="write a log of the run of --only, or of the first failure"),
    ] = None,
    open_: Annotated[
        bool, Option("--open", help="with --only: run it live, on its page in the browser")
    ] = False,
    explore: Annotated[
        bool, Option("--explore", help="play what a seed draws, in place of FILE")
    ] = False,
    cells: Annotated[str, Option(help="with --explore: A,B, in place of all")] = "",
    hours: Annotated[
        float | None, Option(min=0.01, help="with --explore: robot-hours; default: 100")
    ] = None,
    for_: Annotated[float | None, Option("--for", min=0.1, help="with --explore: seconds")] = None,
    must_reach: Annotated[
        str,
        Option(
            metavar="A,B",
            help=f"with --explore: of {', '.join(CATEGORIES)}: fail if one was not reached",
        ),
    ] = "",
    keep: Annotated[
        list[str] | None, Option(help="with --explore --only: just these faults and steps")
    ] = None,
    chat: Annotated[
        list[Path] | None, Option(help="with --explore: a recorded session to draw from")
    ] = None,
) -> None:
    """Run a cell with many seeds and values, or explore cells. Exit code 0 if every run passed,
    else 1."""
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    if explore:
        if (
            file is not None
            or runs
            or out
            or fresh
            or html
            or point
            or open_
            or without
            or log_file
        ):
            raise ConfigError(
                "an exploration has no campaign file, and none of its options",
                allowed="--cells --hours --for --seed --chat --engine --workers --json "
                "--must-reach --only --keep",
            )
        chats = tuple(read_text(path) for path in chat or ())
        named = tuple(filter(None, cells.split(","))) or tuple(shipped_cells())
        found = Exploration(named, seed or 0, hours, for_)
        found = replace(found, chats=chats, hours=hours if hours or for_ else FEW_HOURS)
        categories = _categories(must_reach)
        if only is not None:
            raise Exit(_explore_again(found, only, keep or [], json))
        if keep:
            raise ConfigError("--keep is for one run", allowed="with --only SEED")
        workers = workers or os.cpu_count() or 1
        raise Exit(_explore(found, categories, engine, workers, json))
    if cells or hours or for_ or chat or must_reach or keep:
        options = "--cells, --hours, --for, --chat, --must-reach and --keep are for explorations"
        raise ConfigError(options, allowed="with --explore")
    if file is None:
        raise ConfigError("no campaign file", allowed="FILE, or --explore")
    planned = read_plan(str(file), read_text(file))
    planned = PlanFile(replaced(planned.plan, runs=runs, seed=seed), planned.file)
    if only is not None:
        spec = RunSpec(0, only, _point(planned, point or []), tuple(without or ()))
        _check_rules(planned, spec)
        if open_:
            _show_live(planned, spec)
            return
        raise Exit(_replay(planned, spec, json, log_file))
    if point or without or open_:
        options = "--point, --without and --open are for one run"
        raise ConfigError(options, allowed="with --only SEED")
    folder = out or file.with_suffix(".runs")
    _make_folder(folder, fresh=fresh)
    for place in (json, html):
        check_writable(place)
    with Journal(folder / JOURNAL, planned) as journal:
        _carry_out(planned, journal, engine, workers or os.cpu_count() or 1)
        outcomes = list(journal.outcomes.values())
    if log_file is not None:
        _log_failure(planned, outcomes, log_file)
    failures = smallest_failures(planned, outcomes, lambda spec: run_one(planned, spec))
    report = report_of(planned.plan, outcomes, failures)
    _write(planned, report, outcomes, folder, html)
    if json is not None and is_printed(json):
        put_bytes(json, [as_json(report)])
    elif json is not None:
        put_whole(Path(json), as_json(report))
    if not is_printed(json):
        _tell(report, folder)
    raise Exit(0 if report.passed == report.runs else 1)


def _make_folder(folder: Path, *, fresh: bool) -> None:
    """``fresh``: removes the files of an earlier campaign; the folder may have others."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in (JOURNAL, REPORT, TABLE, PAGE) if fresh else ():
            (folder / name).unlink(missing_ok=True)
    except OSError as problem:
        raise ConfigError(f"cannot be written: {problem.strerror}", file=str(folder)) from None


def _carry_out(planned: PlanFile, journal: Journal, engine: str, workers: int) -> None:
    left = [spec for spec in planned.plan.specs() if spec.number not in journal.outcomes]
    total = len(left) + len(journal.outcomes)
    if journal.outcomes and not is_quiet():
        print(f"{len(journal.outcomes):,} of {total:,} runs are done already", file=sys.stderr)
    bar = Progress(
        "{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=is_quiet() or not sys.stderr.isatty(),
    )
    with bar:
        shown = bar.add_task("runs", total=total, completed=len(journal.outcomes))
        for outcome in ENGINES[engine](partial(run_one, planned), left, workers):
            journal.add(outcome)
            bar.advance(shown)


def _write(
    planned: PlanFile, report: Report, outcomes: list[Outcome], folder: Path, html: Path | None
) -> None:
    put_whole(folder / REPORT, as_json(report))
    put_whole(folder / TABLE, as_csv(planned.plan, outcomes).encode())
    text = page(planned, report, outcomes, origin(planned.plan.cell))
    for file in filter(None, (folder / PAGE, html)):
        put_whole(file, text.encode())


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


def _check_rules(planned: PlanFile, spec: RunSpec) -> None:
    known = planned.config(msgspec.structs.replace(spec, without=())).head.scenario.rules
    for name in spec.without:
        if name not in known:
            raise unknown("rule", name, known)


def _log_failure(planned: PlanFile, outcomes: list[Outcome], log_file: Path) -> None:
    """Repeats the first run that has failed, with a log."""
    first = next((each for each in outcomes if not each.passed), None)
    if first is not None:
        run_one(planned, RunSpec(first.number, first.seed, first.point), log_file)
        print(f"{log_file}: seed {first.seed}: {first.problem}", file=sys.stderr)


def _replay(planned: PlanFile, spec: RunSpec, json: str | None, log_file: Path | None) -> int:
    rules = planned.config(spec).head.scenario.rules
    outcome = run_one(planned, spec, log_file)
    if put_json(json, msgspec.to_builtins(outcome)):
        return 0 if outcome.passed else 1
    print(f"seed {spec.seed}, rules: {', '.join(rules) or 'none'}")
    for name, value in outcome.figures.items():
        print(f"  {name}: {value}")
    print(f"digest {outcome.digest}\n{'passed' if outcome.passed else outcome.problem}")
    return 0 if outcome.passed else 1


# ── explorations ────────────────────────────────────────────────────────────────────────────────


def _categories(must_reach: str) -> list[Category]:
    known: dict[str, Category] = {each: each for each in CATEGORIES}
    names = [name for name in must_reach.split(",") if name]
    for name in names:
        if name not in known:
            raise unknown("category", name, known, key="--must-reach")
    return [known[name] for name in names]


def _explore(
    plan: Exploration, must_reach: list[Category], engine: str, workers: int, json: str | None
) -> int:
    for cell in plan.cells:
        load_config(cell)
    outcomes: list[Explored] = []
    carry_out = partial(explore_one, plan.chats)
    bar = Progress("{task.description}", console=Console(stderr=True), disable=is_quiet())
    with bar:
        shown = bar.add_task("", total=None)
        for outcome in ENGINES[engine](carry_out, plan.specs(), workers):
            outcomes.append(outcome)
            hours = sum(each.robots * RUN_S / 3600.0 for each in outcomes)
            failed = sum(not each.passed for each in outcomes)
            words = f"{len(outcomes):,} runs, {hours:,.0f} robot-hours, {failed:,} failed"
            bar.update(shown, description=words)
    found = summary_of(outcomes, plan.chats)
    if not put_json(json, msgspec.to_builtins(found)) or not is_printed(json):
        _tell_explored(found, plan.cells)
    if left := lacking(found, must_reach):
        words = f"--must-reach {','.join(must_reach)}: {len(left)} were not reached, as {left[0]};"
        print(f"{words} play more --hours, or name --cells that have them", file=sys.stderr)
    return 1 if found.findings or left else 0


def _tell_explored(found: Summary, cells: Sequence[str]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    share = found.moved_hours / found.robot_hours if found.robot_hours else 0.0
    console.print(
        f"{found.robot_hours:,.1f} robot-hours in {found.runs:,} runs of {', '.join(cells)}; "
        f"seeds {found.seeds[0]} … {found.seeds[1]}; something moved in {share:.1%} of the time; "
        f"digest {found.digest}"
    )
    for key in sorted({*found.reached, *found.missed}):
        reached, missed = found.reached.get(key, []), found.missed.get(key, [])
        console.print(f"  {key}: {len(reached)} of {len(reached) + len(missed)} reached")
        if missed:
            console.print(f"    [red]not reached: {escape(', '.join(missed))}[/red]")
    for each in found.findings:
        console.print(f"[red]{escape(each.problem)}[/red] ({each.runs} runs)")
        for line in each.script:
            console.print(f"    {escape(line)}")
        console.print(f"    {each.command}", markup=False)
    if not found.findings:
        console.print("every invariant held")


def _explore_again(plan: Exploration, seed: int, keep: Sequence[str], json: str | None) -> int:
    if len(plan.cells) != 1:
        raise ConfigError("--only plays one seed of one cell", allowed="--cells CELL")
    names = Exploring(plan.cells[0], seed, (), plan.chats).names()
    for name in keep:
        if name not in names:
            raise unknown("fault or step", name, names)
    without = tuple(name for name in names if keep and name not in keep)
    outcome = explore_one(plan.chats, RunSpec(0, seed, {"cell": plan.cells[0]}, without))
    if not put_json(json, msgspec.to_builtins(outcome)):
        print("\n".join(outcome.script))
        print(f"digest {outcome.digest}\n{outcome.problem or 'passed'}")
    return 0 if outcome.passed else 1


# ── one run on its page ─────────────────────────────────────────────────────────────────────────


def _show_live(planned: PlanFile, spec: RunSpec) -> None:
    from understudy.cli.run import run_on_page

    config = planned.config(spec)
    run_on_page(config, RunOnPage(planned), Path(planned.file).parent)


class RunOnPage:
    """The programs, jobs and clients of a campaign's run, in a live cell."""

    failed = False

    def __init__(self, planned: PlanFile) -> None:
        self._planned = planned
        self._script: asyncio.Task[None] | None = None

    def start(self, live: "Live") -> None:
        live.on_cell(lambda cell: Run(self._planned, live.config, cell).begin())
        self._script = asyncio.create_task(self._say(live))

    async def stop(self) -> None:
        if self._script is not None:
            self._script.cancel()
            await asyncio.gather(self._script, return_exceptions=True)

    async def _say(self, live: "Live") -> None:
        """What clients send, at its simulated time."""
        for words in sorted(self._planned.plan.script, key=lambda each: each.at_s):
            while live.now < words.at_s:  # noqa: ASYNC110
                await asyncio.sleep(LOOK_SECONDS)
            live.say(words.to, words.data())
