"""`understudy ctl`: one request to the control endpoint of a running cell."""

import json
import sys
from typing import Annotated, Any

from understudy.app.control_client import request
from understudy.app.ready_file import cell_elsewhere
from understudy.cli.options import JsonOption, ReadyFileOption, RunningOption, is_printed, put_json
from understudy.cli.parameters import Argument, Exit, Option
from understudy.cli.status import one_cell
from understudy.errors import ConfigError
from understudy.ports.access import TOKEN_VARIABLE

EXAMPLES = 'status, `advance seconds=3`, or a JSON object: \'{"do": "now"}\''
Words = Annotated[
    list[str],
    Argument(metavar="COMMAND [KEY=VALUE...]", help=f"a command: {EXAMPLES}"),
]


ToOption = Annotated[
    str,
    Option(
        "--to",
        metavar="HOST:PORT",
        help=f"control endpoint of a cell on another machine; {TOKEN_VARIABLE} holds its token",
    ),
]


def ctl(
    words: Words,
    running: RunningOption = "",
    ready_file: ReadyFileOption = None,
    to: ToOption = "",
    as_json: JsonOption = None,
) -> None:
    """Send one command to a running cell and print its reply as JSON; exit 1 if it is refused.

    The address and the secret of the cell come from its ready file. A value is read as JSON, or as
    text if it is not JSON.
    """
    asked = _request(words)
    chosen = cell_elsewhere(to) if to else one_cell(running, ready_file)
    try:
        reply = request(chosen, asked, timeout_s=None)
    except ConfigError as problem:  # no answer
        print(problem, file=sys.stderr)
        raise Exit(1) from None
    if as_json is None or is_printed(as_json):
        print(json.dumps(reply, ensure_ascii=not _shows_every_character()))
    else:
        put_json(as_json, reply)
    if not reply.get("ok"):
        raise Exit(1)


def _shows_every_character() -> bool:
    return (sys.stdout.encoding or "").lower().startswith("utf")


def _request(words: list[str]) -> dict[str, Any]:
    first, *rest = words
    if first.lstrip().startswith("{"):
        if rest:
            raise ConfigError("nothing may follow a JSON object", value=rest[0])
        return _object(first)
    return {"do": first} | dict(parameter(word) for word in rest)


def _object(text: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise ConfigError(f"not a JSON object: {problem}", value=text[:100]) from None
    return found


def parameter(word: str) -> tuple[str, Any]:
    """A key and its value, which is JSON or else a text."""
    key, equals, text = word.partition("=")
    if not equals or not key:
        raise ConfigError("not a parameter", value=word, allowed="KEY=VALUE, e.g. seconds=3")
    try:
        return key, json.loads(text)
    except (ValueError, RecursionError):
        return key, text
