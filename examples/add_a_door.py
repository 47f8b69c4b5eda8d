"""Add a door from outside the package: one module and one entry point.

`install` writes the package `line_door` and its entry point to a folder, as pip does. Then
`understudy run text_robot --lines=PORT` opens a door that a terminal can use: a line is the name of
a command or query with its parameters as JSON, and a line of JSON is the answer. The first line is
the secret of the run, which no web page knows.
"""

import json
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

DOOR = '''
"""Commands and queries of a running cell as lines of text."""
import asyncio
import json
from contextlib import asynccontextmanager
import msgspec
from understudy.errors import Refused
from understudy.ports.hmi import Later

HELP = "commands and queries as lines of text, at this address"
LONGEST_LINE = 64 * 1024

@asynccontextmanager
async def open_door(live, value):
    async def serve(reader, writer):
        try:
            if await reader.readline() == f"{live.secret}\\n".encode():
                while line := await reader.readline():
                    answer = await answered(live, line.decode())
                    writer.write(msgspec.json.encode(answer) + b"\\n")
                    await writer.drain()
        except (ValueError, OSError) as problem:
            print("lines: a client is disconnected:", problem)
        finally:
            writer.close()

    host, _, port = value.rpartition(":")
    place = host or "127.0.0.1", int(port or 0)
    async with await asyncio.start_server(serve, *place, limit=LONGEST_LINE) as server:
        address, port = server.sockets[0].getsockname()[:2]
        yield {"lines": f"tcp://{address}:{port}"}

async def answered(live, line):
    name, _, parameters = line.strip().partition(" ")
    answer = live.commands.call(name, json.loads(parameters or "{}"), "operator")
    if isinstance(answer, Later):
        later = asyncio.get_running_loop().create_future()
        answer.then(later.set_result)
        answer = await later
    return {"error": answer.reason} if isinstance(answer, Refused) else answer
'''
FILES = {
    "line_door.py": DOOR,
    "line_door-1.0.dist-info/METADATA": "Name: line_door\nVersion: 1.0\n",
    "line_door-1.0.dist-info/entry_points.txt": "[understudy.doors]\nlines = line_door\n",
}
RUN = "run text_robot --ephemeral --no-hmi --lines=127.0.0.1:0 --ready-file=ready.json"


def install(folder: Path) -> None:
    """Writes the package as pip does; Python finds it, since the cell runs in this folder."""
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)


def ask(address: str, secret: str, *lines: str) -> list[Any]:
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60) as client:
        client.sendall("".join(f"{line}\n" for line in (secret, *lines)).encode())
        with client.makefile("rb") as answers:
            return [json.loads(answers.readline()) for _ in lines]


def main(folder: Path) -> None:
    install(folder)
    command = [sys.executable, "-m", "understudy", *RUN.split()]
    cell = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        ready: dict[str, Any] = {"endpoints": {}}
        while "lines" not in ready["endpoints"] and cell.poll() is None:
            time.sleep(0.05)
            with suppress(FileNotFoundError):
                ready = json.loads((folder / "ready.json").read_text())
        door = ready["endpoints"]["lines"]
        lines = 'send_gcode {"robot": "bench"}', "pause", "robots"
        refused, paused, robots = ask(door, ready["secret"], *lines)
        print(door, "has", [each["name"] for each in robots["robots"]])
        print("pause:", paused["state"])
        print("send_gcode:", refused["error"])
        assert paused["state"] == "PAUSED"
    finally:
        cell.terminate()
        cell.wait()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
