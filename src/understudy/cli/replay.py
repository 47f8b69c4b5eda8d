"""`understudy replay`: plays the client side of a transcript and names the first difference."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from msgspec import structs
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from understudy.app.build import build_cell, end_run, repeatable_run
from understudy.app.live import replay_facts
from understudy.app.ready_file import printable
from understudy.cli.options import JsonOption, cell_option, put_json
from understudy.cli.parameters import Argument, Exit, Option
from understudy.config import CellConfig, load_config, shipped_cells
from understudy.config.files import name_of_cell, read_text
from understudy.config.limits import LARGEST_CHAT
from understudy.config.shards import with_robots
from understudy.errors import ConfigError
from understudy.ports import Epoch, Run
from understudy.simulation.cell import Cell
from understudy.simulation.scenario import Scenario
from understudy.wire.chat import Chat, injected_by, parse, write
from understudy.wire.compare import Comparison, Tolerance, compare
from understudy.wire.exchange import InProcessCell
from understudy.wire.play import play_all


def replay(
    chat: Annotated[Path, Argument(help="transcript file")],
    cell: Annotated[
        str | None,
        cell_option("the client talks to it; default: a shipped one with this dialect"),
    ] = None,
    tolerance: Annotated[float, Option(min=0.0, help="allowed difference of numbers")] = 0.0,
    time_tolerance: Annotated[
        float | None,
        Option(
            min=0.0,
            metavar="SECONDS",
            help="allowed difference of the times of answers; default: times are not compared",
        ),
    ] = None,
    exact: Annotated[
        bool,
        Option("--exact", help="compare times of day and ids in messages, too"),
    ] = False,
    rules: Annotated[
        bool | None,
        Option(help="apply the cell's scenario rules; default: only for a log of `run --log`"),
    ] = None,
    accept: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="write the answers of the cell as a transcript that replays without a difference",
        ),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Play the client's side against a simulated cell; report the first difference, and how well
    the messages of each type fit."""
    recording = parse(read_text(chat, LARGEST_CHAT), str(chat))
    config = _config_for(recording, cell, chat)
    with_rules = recording.facts.get("rules", "on" if "cell" in recording.facts else "off") == "on"
    if not (with_rules if rules is None else rules):
        config, with_rules = config.without_rules(), False
    run = _run_of(recording, config)
    built = build_cell(config, run)
    virtual_cell = InProcessCell(built)
    streams = play_all(recording, virtual_cell, act=partial(_act, built))
    found = compare(streams, Tolerance(tolerance, time_tolerance, volatile=not exact))
    if accept is not None:
        facts = recording.facts | replay_facts(name_of_cell(config.document.file), config, run)
        facts |= {"rules": "on" if with_rules else "off"}
        _write(accept, write(facts, virtual_cell.transcript))
    if not put_json(json, _report(chat, config.name, recording, found)):
        _show(chat, recording, found)
        if accept is not None:
            print(f"{accept}: the answers of {config.name}")
    if found.first is not None and accept is None:
        raise Exit(1)


def _act(cell: Cell, data: bytes) -> None:
    """Does what happened to the recorded cell."""
    injected = injected_by(data)
    if injected is None:
        return end_run(cell.components, cell.now)
    scenario = cell.components["scenario"]
    assert isinstance(scenario, Scenario)
    refused = scenario.inject(injected.fault, injected.on, injected.parameters, cell.now)
    if refused is not None:
        raise ConfigError(f"the recorded fault cannot be injected: {refused.reason}")
    return None


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise ConfigError(
            f"--accept cannot be written: {problem.strerror}", file=str(file)
        ) from None


def _report(chat: Path, cell: str, recording: Chat, found: Comparison) -> dict[str, Any]:
    first = found.first
    return {
        "chat": str(chat),
        "cell": cell,
        "events": len(recording.events),
        "answers": found.answers,
        "differences": found.differences,
        "difference": None if first is None else str(first),
        "first": first
        and {
            "endpoint": first.peer[0],
            "peer": first.peer[1],
            "answer": first.number,
            "byte": first.byte,
            "field": first.field,
        },
        "score": found.score,
        "types": [structs.asdict(each) for each in found.fidelity],
    }


def _show(chat: Path, recording: Chat, found: Comparison) -> None:
    if found.first is None:
        print(f"{chat}: {len(recording.events)} events, no difference")
    else:
        print(f"{chat}: {found.differences} of {found.answers} answers differ; the first one:")
        print(found.first)
    if not found.fidelity or found.first is None:
        return
    title = f"Fidelity {found.score:.1%}"
    table = Table("endpoint", "message", title=title, title_justify="left")
    for column in ("recorded", "own", "matched", "distance", "late by", "score"):
        table.add_column(column, justify="right")
    for each in found.fidelity:
        numbers = map(str, (each.recorded, each.own, each.matched))
        late = f"{each.mean_s:.3g} s, {each.latest_s:.3g} s at most"
        names = map(escape, map(printable, (each.endpoint, each.type)))
        table.add_row(*names, *numbers, f"{each.distance:.2g}", late, f"{each.score:.1%}")
    Console().print(table)


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
    beside = chat.parent / facts.get("cell", "")
    recorded = str(beside) if beside.is_file() else facts.get("cell")
    name = cell or recorded or _cell_with_face(facts.get("face", ""), chat)
    seed, robots = facts.get("seed", ""), facts.get("robots", "")
    config = load_config(name, seed=int(seed) if seed.isdecimal() else None)
    return with_robots(config, int(robots)) if robots.isdecimal() and int(robots) else config


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
