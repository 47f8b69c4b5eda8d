"""`understudy replay`: plays the client side of a transcript and names the first difference."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from understudy.app.build import build_cell, end_run, repeatable_run
from understudy.cli.options import JsonOption, cell_option, put_json
from understudy.config import CellConfig, load_config, shipped_cells
from understudy.config.files import read_text
from understudy.config.limits import LARGEST_CHAT
from understudy.errors import ConfigError
from understudy.ports import Epoch, Run
from understudy.wire.chat import Chat, parse
from understudy.wire.exchange import InProcessCell
from understudy.wire.play import Tolerance, play


def replay(
    chat: Annotated[Path, typer.Argument(help="transcript file")],
    cell: Annotated[
        str | None,
        cell_option("the client talks to it; default: a shipped one with this dialect"),
    ] = None,
    tolerance: Annotated[float, typer.Option(min=0.0, help="allowed difference of numbers")] = 0.0,
    rules: Annotated[
        bool | None,
        typer.Option(
            help="apply the cell's scenario rules; default: only for a log of `run --log`"
        ),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Play the client's side against a simulated cell; report the first difference."""
    recording = parse(read_text(chat, LARGEST_CHAT), str(chat))
    config = _config_for(recording, cell, chat)
    if not (rules if rules is not None else "cell" in recording.facts):
        config = config.without_rules()
    cell_ = build_cell(config, _run_of(recording, config))
    virtual_cell = InProcessCell(cell_)
    difference = play(
        recording,
        virtual_cell,
        tolerance=Tolerance(tolerance, None),
        end=partial(end_run, cell_.components),
    )
    found = None if difference is None else str(difference)
    events = len(recording.events)
    if not put_json(json, {"chat": str(chat), "events": events, "difference": found}):
        print(f"{chat}: {found or f'{events} events, no difference'}")
    if found:
        raise typer.Exit(1)


def _run_of(recording: Chat, config: CellConfig) -> Run:
    """The run that was recorded, as far as the transcript says."""
    run, facts = repeatable_run(config), recording.facts
    epoch = facts.get("epoch_ns", "")
    return replace(
        run,
        id=facts.get("run", run.id),
        seed_given="seed_given" in facts,
        epoch=Epoch(int(epoch)) if epoch.isdecimal() else run.epoch,
    )


def _config_for(recording: Chat, cell: str | None, chat: Path) -> CellConfig:
    facts = recording.facts
    name = cell or facts.get("cell") or _cell_with_face(facts.get("face", ""), chat)
    seed = facts.get("seed", "")
    return load_config(name, seed=int(seed) if seed.isdecimal() else None)


def _cell_with_face(face: str, chat: Path) -> str:
    """The first shipped cell that has this face and no other."""
    for name in shipped_cells():
        robots = load_config(name).robots.values()
        if [kind.kind for robot in robots for kind in robot.faces.values()] == [face]:
            return name
    raise ConfigError(
        "the transcript names no cell, and no shipped cell has its face",
        file=str(chat),
        value=face,
        allowed="a line `# face: NAME`, or --cell",
    )
