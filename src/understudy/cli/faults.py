"""`understudy faults`: lists the faults, and tries those of a cell: the fault atlas."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from rich.console import Console

from understudy.cli.options import (
    HtmlOption,
    JsonOption,
    cell_option,
    is_printed,
    is_quiet,
    origin,
    put_bytes,
    put_json,
    put_rows,
)
from understudy.cli.parameters import Exit, Option
from understudy.cli.warm import compile_for_cell
from understudy.errors import ConfigError
from understudy.ports.faults import Figure
from understudy.simulation.scenario import declared_faults, find_fault

if TYPE_CHECKING:
    from understudy.campaign.fault_atlas import Outcome

COLORS = {"seen": "green", "missing": "red", "not possible": "yellow"}


def faults(
    run: Annotated[
        bool, Option("--run", help="inject each fault of the cell, look for the reaction")
    ] = False,
    cell: Annotated[str, cell_option("whose faults are tried, with --run")] = "",
    fault: Annotated[list[str] | None, Option(help="with --run: try only this one")] = None,
    json: JsonOption = None,
    junit: Annotated[Path | None, Option(help="with --run: write JUnit XML")] = None,
    html: HtmlOption = None,
) -> None:
    """The faults of scenario rules and of the command `inject`; with --run, whether a cell reacts
    to each of its faults as declared. Exit code 1 if a reaction is missing."""
    if run:
        raise Exit(_try_all(cell or "default", fault or [], json, junit, html))
    if cell or fault or junit or html:
        raise ConfigError(
            "--cell, --fault, --junit and --html are for trials", allowed="with --run"
        )

    def numbers(figures: Mapping[str, Figure]) -> str:
        return ", ".join(f"{key} {figure.default:g}" for key, figure in figures.items())

    columns = ("fault", "acts on", "how", "parameters", "what happens")
    rows = [
        (name, ", ".join(acts_on), each.how, numbers(each.figures), each.doc)
        for name, (each, acts_on) in declared_faults().items()
    ]
    put_rows(json, columns, rows)


def _try_all(
    cell: str, faults: Sequence[str], json: str | None, junit: Path | None, html: Path | None
) -> int:
    from understudy.campaign.fault_atlas import Atlas, as_html, as_junit
    from understudy.config import load_config

    config = load_config(cell)
    for name in faults:
        find_fault(name)
    compile_for_cell(config)
    atlas = Atlas(config, faults)
    if not atlas.planned:
        own = ", ".join(sorted({each.fault for each in Atlas(config).planned}))
        problem = f"no part of {config.name} has such a fault"
        raise ConfigError(problem, value=", ".join(faults), allowed=own or "another --cell")
    console = Console(stderr=is_printed(json))
    outcomes = []
    for outcome in atlas.outcomes():
        outcomes.append(outcome)
        if not is_quiet() or outcome.verdict == "missing":
            _tell(console, outcome)
    if junit is not None:
        put_bytes(junit, [as_junit(config.name, outcomes).encode()])
    if html is not None:
        put_bytes(html, [as_html(config.name, outcomes, origin(config.name)).encode()])
    put_json(json, [msgspec.to_builtins(each) for each in outcomes])
    counts = Counter(each.verdict for each in outcomes)
    console.print(
        f"{len(outcomes)} faults: {counts['seen']} reactions seen, {counts['missing']} missing, "
        f"{counts['not possible']} not possible in this cell",
        highlight=False,
    )
    return 1 if counts["missing"] else 0


def _tell(console: Console, outcome: "Outcome") -> None:
    """One line; what is missing, or why it was not possible, below."""
    color = COLORS[outcome.verdict]
    last = f" after {max(outcome.seen.values()):g} s" if outcome.verdict == "seen" else ""
    console.print(
        f"[{color}]{outcome.verdict:<12}[/{color}] {outcome.on} {outcome.fault}{last}",
        highlight=False,
        soft_wrap=True,
    )
    for text in (*outcome.missing, *filter(None, [outcome.note])):
        console.print(f"             {text}", markup=False, highlight=False, soft_wrap=True)
