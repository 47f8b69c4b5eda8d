"""`understudy mcp`: the tools for an agent, on standard input and output or on HTTP."""

import sys
from typing import Annotated

import typer

from understudy.cli.options import ReadyFileOption, RunningOption
from understudy.doors.mcp.http import serve
from understudy.doors.mcp.protocol import LONGEST_MESSAGE, Protocol
from understudy.doors.mcp.tools import Tools, tools_of

Http = Annotated[
    int | None,
    typer.Option(
        "--http",
        metavar="PORT",
        min=0,
        max=65535,
        help="serve on http://127.0.0.1:PORT/mcp with a token, which is printed; 0: a free port",
    ),
]


def mcp(running: RunningOption = "", ready_file: ReadyFileOption = None, http: Http = None) -> None:
    """Serve simulated cells as tools to an agent (Model Context Protocol).

    Without options an agent starts this command itself and talks over standard input and output. No
    tool commands a REAL robot; cells that the agent starts end with it.
    """
    tools = Tools(running, ready_file)
    protocol = Protocol(tools_of(tools))
    try:
        if http is None:
            _serve_stdio(protocol)
        else:
            serve(protocol, http)
    finally:
        tools.close()


def _serve_stdio(protocol: Protocol) -> None:
    """One message a line, until the agent closes its side."""
    while line := sys.stdin.buffer.readline(LONGEST_MESSAGE + 1):
        if not line.strip():
            continue
        answer = protocol.answer(line)
        if len(line) > LONGEST_MESSAGE:
            while line and not line.endswith(b"\n"):
                line = sys.stdin.buffer.readline(LONGEST_MESSAGE)
        if answer is not None:
            sys.stdout.buffer.write(answer + b"\n")
            sys.stdout.buffer.flush()
