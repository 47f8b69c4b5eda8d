"""`understudy record`: a proxy between a client and a REAL controller that writes a transcript."""

import asyncio
from json import dumps
from pathlib import Path
from typing import Annotated

from understudy.cli.options import JsonOption, faces, json_beside_text
from understudy.cli.parameters import Option
from understudy.cli.transcript import Transcript
from understudy.errors import unknown
from understudy.registry import kinds, module_of
from understudy.wire.dial import parse_place
from understudy.wire.record import Recorder, parse_front


def record(
    listen: Annotated[
        str,
        Option(
            help="[HOST]:PORT for the client, or pty[:PATH], a serial port behind a link at PATH"
        ),
    ],
    to: Annotated[str, Option(help="HOST:PORT or serial device of the REAL controller")],
    face: Annotated[
        str,
        Option(help="dialect of the controller, e.g. text_tcp", autocompletion=faces),
    ],
    out: Annotated[Path, Option(help="transcript file to write")],
    force: Annotated[bool, Option("--force", help="overwrite an existing transcript")] = False,
    json: JsonOption = None,
) -> None:
    """Record the conversation of a client and a REAL controller, as a proxy between them."""
    known = kinds("faces")
    if face not in known:
        raise unknown("face", face, known)
    (wire, *_) = next(iter(module_of("faces", face).ENDPOINTS.values())).wires
    recorder = Recorder(parse_front(listen), parse_place(to), face=face, wire=wire)
    transcript = Transcript(out, "--out", overwrite=force)

    with json_beside_text(json) as lines:

        def listening(message: str) -> None:
            transcript.open()
            print(message, flush=True)
            if lines:
                about = {"listen": recorder.place, "to": to, "face": face, "out": str(out)}
                print(dumps(about), file=lines, flush=True)

        try:
            asyncio.run(recorder.run(transcript.write, listening))
        finally:
            transcript.close()
