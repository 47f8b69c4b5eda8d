"""`understudy fit`: values of a cell file, with intervals, from the recording of a real robot."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from understudy.app.build import build_cell
from understudy.cli.options import JsonOption, cell_option, put_bytes, put_json, robot_option
from understudy.cli.parameters import Argument, Option
from understudy.cli.warm import compile_for_program
from understudy.config import CellConfig, load_config, read_config
from understudy.config.files import find_cell, read_text
from understudy.config.limits import LARGEST_CHAT
from understudy.errors import ConfigError, unknown
from understudy.registry import module_of, modules
from understudy.wire.chat import parse

if TYPE_CHECKING:
    from understudy.offline.fit.estimate import Estimate, Fit


def fit(
    recording: Annotated[Path, Argument(help="transcript of `understudy record`")],
    cell: Annotated[str, cell_option("the robot as far as it is known")],
    robot: Annotated[str, robot_option("the recorded robot; default: the first that fits")] = "",
    out: Annotated[
        Path | None, Option(help="cell file to write, with the estimates and intervals")
    ] = None,
    force: Annotated[bool, Option("--force", help="overwrite an existing cell file")] = False,
    json: JsonOption = None,
) -> None:
    """Estimate values of a cell file, with intervals, from the recording of a real robot."""
    from understudy.offline.fit.cell_file import fitted_text
    from understudy.offline.fit.estimate import fit as fit_to

    if out is not None and out.exists() and not force:
        raise ConfigError(
            "--out: the file exists; choose another name, or overwrite it with --force",
            file=str(out),
        )
    chat = parse(read_text(recording, LARGEST_CHAT), str(recording))
    config = load_config(cell)
    name = _recorded_robot(config, robot)
    compile_for_program(config)
    recorded = module_of("robots", config.robots[name].kind).recorded(config, name, chat)
    found = fit_to(recorded)
    if out is not None:
        _, text = find_cell(cell)
        text = fitted_text(text, found, recorded, robot=name, recording=recording.name)
        build_cell(read_config(text, str(out)))  # what is written can be run
        put_bytes(out, [text.encode()])
    document = {"recording": str(recording), "cell": config.name, "robot": name, **_document(found)}
    if put_json(json, document):
        return
    _show(found, f"{recording.name}: {name} of {config.name}")
    if out is None:
        print("nothing is written; --out FILE writes a cell file with these values")
    else:
        print(f"wrote {out}; check it: understudy check {out}")


def _recorded_robot(config: CellConfig, robot: str) -> str:
    able = [
        name
        for name, each in config.robots.items()
        if hasattr(module_of("robots", each.kind), "recorded")
    ]
    if robot and robot not in able:
        raise unknown("robot that can be fitted", robot, able, key="--robot")
    if not able:
        fitted = ", ".join(kind for _, kind, each in modules("robots") if hasattr(each, "recorded"))
        allowed = f"a --cell with a robot of kind {fitted}"
        raise ConfigError("no robot of this cell can be fitted", value=config.name, allowed=allowed)
    return robot or able[0]


def _document(found: "Fit") -> dict[str, Any]:
    """Plain values for JSON."""
    return {
        "reports": found.reports,
        "motions": found.motions,
        "left_out": found.left_out,
        "jitter_s": found.jitter_s,
        "notes": list(found.notes),
        "parameters": [
            {
                "key": each.key,
                "meaning": each.meaning,
                "unit": each.unit,
                "visible": each.visible,
                "value": each.value if each.visible else None,
                "low": each.low if each.visible else None,
                "high": each.high if each.visible else None,
                "at_least": each.at_least,
                "seen_from": each.seen_from,
            }
            for each in found.estimates
        ],
    }


def _show(found: "Fit", title: str) -> None:
    console = Console()
    table = Table(title=title, title_justify="left")
    table.add_column("parameter", overflow="fold")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("interval", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    table.add_column("seen from", overflow="fold")
    for each in found.estimates:
        table.add_row(*_row(each))
    console.print(table)
    if found.reports:
        console.print(
            f"{found.reports} reports in {found.motions} motions, {found.left_out} outliers; "
            f"times of reports vary by {1e3 * found.jitter_s:.2f} ms"
        )
    for note in found.notes:
        console.print(f"note: {escape(note)}", soft_wrap=True)


def _row(each: "Estimate") -> tuple[str, ...]:
    name = f"{each.meaning}\n[dim]{escape(each.key)}[/dim]" if each.keys else each.meaning
    if not each.visible:
        bound = "" if each.at_least is None else f"at least {each.at_least:.5g}"
        return name, "", bound, each.unit, each.seen_from
    interval = f"{each.low:.6g} … {each.high:.6g}"
    return name, f"{each.value:.6g}", interval, each.unit, each.seen_from
