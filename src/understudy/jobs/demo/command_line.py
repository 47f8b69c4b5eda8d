"""`understudy demo`: the shipped cell `demo` with its page in the browser."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from msgspec import structs

from understudy.cli.hmi import missing_extra
from understudy.cli.options import JsonOption, json_beside_text
from understudy.cli.parameters import Option
from understudy.cli.run import run_on_page
from understudy.config import load_config
from understudy.errors import ConfigError

CELL = "demo"


def demo(
    open_: Annotated[bool, Option("--open/--no-open", help="open the page in the browser")] = True,
    loop: Annotated[
        bool,
        Option(
            "--loop/--no-loop", help="robots work for ever, and faults are mended after a while"
        ),
    ] = True,
    port: Annotated[
        int | None,
        Option(min=0, max=65535, help="port of the page; default: a free one"),
    ] = None,
    seed: Annotated[
        int | None, Option(min=0, help="another order of faults; default: the cell's own")
    ] = None,
    ready_file: Annotated[
        Path | None, Option(help="JSON file with all addresses, written when all listens")
    ] = None,
    json: JsonOption = None,
) -> None:
    """Show a cell that works by itself until Ctrl-C: break it, talk to it, copy a client.

    Two arms, a KUKA and two mobile robots, on free ports. `understudy run demo` is the same cell
    with the options of `run`.
    """
    if lack := missing_extra():
        raise ConfigError(f"the demo is a page: {lack}")
    config = load_config(CELL, seed=seed)
    section = structs.replace(config.sections["demo"], runs=loop)
    config = replace(config, sections={**config.sections, "demo": section})
    with json_beside_text(json) as lines:
        run_on_page(
            config,
            None,
            Path.cwd(),
            open_page=open_,
            page_port=port,
            ready_file=ready_file,
            lines=lines,
        )
