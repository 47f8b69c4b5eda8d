"""`understudy record` and `understudy replay`: transcripts of a wire."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from understudy.app.build import build_cell
from understudy.cli.transcript import Transcript
from understudy.config import CellConfig, load_config, shipped_cells
from understudy.config.files import read_text
from understudy.errors import ConfigError, unknown
from understudy.registry import kinds, module_of
from understudy.wire.address import parse_address
from understudy.wire.chat import Chat, parse
from understudy.wire.in_process import InProcessCell
from understudy.wire.place import parse_place
from understudy.wire.play import Tolerance, play
from understudy.wire.record import Recorder, Terminal


def add_to(app: typer.Typer) -> None:
    app.command(
        epilog="Example: understudy record --listen :5000 --to 192.168.0.10:5000 "
        "--face text_tcp --out morning.chat"
    )(record)
    app.command(epilog="Example: understudy replay morning.chat --tolerance 0.2")(replay)


def record(
    listen: Annotated[str, typer.Option(help="[HOST]:PORT for the client, or pty")],
    to: Annotated[str, typer.Option(help="HOST:PORT or serial device of the REAL controller")],
    face: Annotated[str, typer.Option(help="the dialect spoken")],
    out: Annotated[Path, typer.Option(help="the transcript to write")],
    force: Annotated[bool, typer.Option("--force", help="overwrite a transcript")] = False,
) -> None:
    """Stand between a client and a REAL controller, and write down what they say."""
    known = kinds("faces")
    if face not in known:
        raise unknown("face", face, known)
    front = Terminal() if listen == "pty" else parse_address(listen)
    recorder = Recorder(front, parse_place(to), face=face)
    transcript = Transcript(out, "--out", overwrite=force)

    def listens(told: str) -> None:
        transcript.open()
        print(told, flush=True)

    try:
        asyncio.run(recorder.run(transcript.write, listens))
    finally:
        transcript.close()


def replay(
    chat: Annotated[Path, typer.Argument(help="a transcript")],
    cell: Annotated[str | None, typer.Option(help="default: one that speaks the dialect")] = None,
    tolerance: Annotated[float, typer.Option(min=0.0, help="how far numbers may be off")] = 0.0,
    rules: Annotated[
        bool | None,
        typer.Option(help="with the cell's scenario rules; default: only for a cell's own log"),
    ] = None,
) -> None:
    """Play the client's side against a cell; name the first byte and field that differs."""
    recording = parse(read_text(chat), str(chat))
    config = _config_for(recording, cell, chat)
    if not (rules if rules is not None else "cell" in recording.facts):
        config = config.without_rules()
    virtual_cell = InProcessCell(build_cell(config))
    kind = recording.facts.get("face") or _face_of(config, recording)
    difference = play(
        recording,
        virtual_cell,
        dialect=module_of("faces", kind),
        tolerance=Tolerance(tolerance, None),
    )
    if difference is not None:
        print(f"{chat}: {difference}")
        raise typer.Exit(1)
    print(f"{chat}: {len(recording.events)} events, no difference")


def _config_for(recording: Chat, cell: str | None, chat: Path) -> CellConfig:
    facts = recording.facts
    name = cell or facts.get("cell") or _speaker(facts.get("face", ""), chat)
    seed = facts.get("seed", "")
    return load_config(name, seed=int(seed) if seed.isdecimal() else None)


def _speaker(face: str, chat: Path) -> str:
    """The first shipped cell that speaks this dialect and no other."""
    for name in shipped_cells():
        robots = load_config(name).robots.values()
        if [kind.kind for robot in robots for kind in robot.faces.values()] == [face]:
            return name
    raise ConfigError(
        "the transcript names no cell and no face that a shipped cell speaks",
        file=str(chat),
        value=face,
        allowed="a line `# face: NAME`, or --cell",
    )


def _face_of(config: CellConfig, recording: Chat) -> str:
    for event in recording.events:
        robot, face = (*event.endpoint.split("."), "")[:2]
        if robot in config.robots and face in config.robots[robot].faces:
            return config.robots[robot].faces[face].kind
    raise unknown("face in the transcript", "", kinds("faces"))
