"""`python -m understudy.hmi`: the page's process, started and looked after by `understudy run`.

It serves on a listening socket that it is handed (`--fd`), or on one of its own. It says `ready` on
its standard output, and ends when its standard input does: with whoever started it, however that
came to its end.
"""

import argparse
import asyncio
import os
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.errors import ConfigError
from understudy.hmi.access import Access, read_access

if TYPE_CHECKING:
    from uvicorn import Server

LAST_SECONDS = 0.6
"""How long it may take to end; then it is cut off."""


def main() -> int:
    given = _arguments()
    try:
        access = read_access(given.host)
        listener = _listener(given)
    except (ConfigError, OSError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    # NiceGUI keeps what pages store in files of its own, by default where it was started.
    folder = Path(tempfile.gettempdir()) / f"understudy-hmi-{os.getuid()}"
    os.environ.setdefault("NICEGUI_STORAGE_PATH", str(folder))
    try:
        asyncio.run(_run(given, access, listener))
    except KeyboardInterrupt:
        return 0
    return 0


async def _run(given: argparse.Namespace, access: Access, listener: socket.socket) -> None:
    from understudy.hmi.link import Link
    from understudy.hmi.server import build, command_table, server_of
    from understudy.hmi.state import StateFeed

    serving: list[Server] = []
    if given.follow_stdin:
        _end_with_stdin(serving)
    link, feed = Link(given.link, given.status), StateFeed(given.state)
    await link.start()
    await feed.start()
    try:
        table = await command_table(link)
        ready = lambda: print("ready", flush=True)  # noqa: E731
        serving.append(server_of(build(link, feed, table, access, ready)))
        await serving[0].serve(sockets=[listener])
    finally:
        await feed.stop()
        await link.stop()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("understudy.hmi", description=__doc__)
    parser.add_argument("--link", required=True, help="tcp://… of the HMI link")
    parser.add_argument("--status", required=True, help="tcp://… of its status socket")
    parser.add_argument("--state", required=True, help="tcp://… of the state socket")
    parser.add_argument("--host", default="127.0.0.1", help="where it is served")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--fd", type=int, help="of a listening socket, instead of --port")
    parser.add_argument("--follow-stdin", action="store_true", help="end when stdin does")
    return parser.parse_args()


def _listener(given: argparse.Namespace) -> socket.socket:
    if given.fd is not None:
        return socket.socket(fileno=given.fd)
    return socket.create_server((given.host, given.port))


def _end_with_stdin(serving: list["Server"]) -> None:
    """On a thread, so that a loop that hangs ends too."""

    def wait() -> None:
        while os.read(0, 1024):  # not by sys.stdin: its lock would be missed at the end
            pass
        for server in serving:
            server.should_exit = True
            time.sleep(LAST_SECONDS)
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # nothing is kept here, and taking down what was imported takes half a second
