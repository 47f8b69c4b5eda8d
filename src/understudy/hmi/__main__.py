"""`python -m understudy.hmi`: the HMI process, started and supervised by `understudy run`.

It serves on an inherited listening socket (`--fd`), or on one of its own. It prints `ready`, and
with --follow-stdin it ends when its standard input is closed, so that it never outlives its parent.
"""

import argparse
import asyncio
import gc
import os
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.errors import ConfigError
from understudy.hmi.access import Access, read_access
from understudy.ports.access import SECRET_VARIABLE
from understudy.protocol.client_limits import ClientLimits

if TYPE_CHECKING:
    from uvicorn import Server

SHUTDOWN_SECONDS = 0.6
"""The process is ended by force after this time."""


def main() -> int:
    given = _arguments()
    try:
        access = read_access(given.host)
        listener = _listener(given)
    except (ConfigError, OSError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    # NiceGUI stores files of pages, by default in the working directory.
    folder = Path(tempfile.gettempdir()) / f"understudy-hmi-{os.getuid()}"
    os.environ.setdefault("NICEGUI_STORAGE_PATH", str(folder))
    try:
        asyncio.run(_run(given, access, listener))
    except KeyboardInterrupt:
        return 0
    return 0


async def _run(given: argparse.Namespace, access: Access, listener: socket.socket) -> None:
    gc.disable()  # what modules allocate stays: a tenth of the time to load them
    from understudy.hmi.link import CellLink
    from understudy.hmi.server import build, command_table, server_of
    from understudy.hmi.state import GROUP_RATE_HZ, StateFeed

    gc.freeze()
    gc.enable()

    serving: list[Server] = []
    if given.follow_stdin:
        _end_with_stdin(serving)
    secret = os.environ.pop(SECRET_VARIABLE, None)
    password = secret if given.status_password else None
    link = CellLink(given.link, given.status, secret=secret, status_password=password)
    feeds = {
        "state": StateFeed(given.state, secret=secret),
        "fleet": StateFeed(given.state, want="fleet", rate_hz=GROUP_RATE_HZ, secret=secret),
    }
    await link.start()
    for feed in feeds.values():
        await feed.start()
    try:
        table = await command_table(link)
        ready = lambda: print("ready", flush=True)  # noqa: E731
        limits: ClientLimits[Any] = ClientLimits(given.max_clients, given.max_clients_per_address)
        serving.append(server_of(build(link, feeds, table, access, ready), limits))
        await serving[0].serve(sockets=[listener])
    finally:
        for feed in feeds.values():
            await feed.stop()
        await link.stop()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("understudy.hmi", description=__doc__)
    parser.add_argument("--link", required=True, help="tcp://… of the HMI link")
    parser.add_argument("--status", required=True, help="tcp://… of its status socket")
    parser.add_argument(
        "--status-password", action="store_true", help="the status socket asks for the secret"
    )
    parser.add_argument("--state", required=True, help="tcp://… of the state socket")
    parser.add_argument("--host", default="127.0.0.1", help="address that the page is served on")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument(
        "--fd", type=int, help="file descriptor of a listening socket, instead of --port"
    )
    parser.add_argument("--max-clients", type=int, default=2000)
    parser.add_argument("--max-clients-per-address", type=int, default=200)
    parser.add_argument("--follow-stdin", action="store_true", help="end when stdin is closed")
    return parser.parse_args()


def _listener(given: argparse.Namespace) -> socket.socket:
    if given.fd is not None:
        return socket.socket(fileno=given.fd)
    return socket.create_server((given.host, given.port))


def _end_with_stdin(serving: list["Server"]) -> None:
    """Waits on a thread, so that it works even if the event loop hangs."""

    def wait() -> None:
        while os.read(0, 1024):  # not sys.stdin, whose lock would delay the end
            pass
        for server in serving:
            server.should_exit = True
            time.sleep(SHUTDOWN_SECONDS)
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # there is no state to save, and unloading modules takes half a second
