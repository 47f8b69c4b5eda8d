"""Read a running cell as Foxglove does: channels, their messages, a service, a parameter.

The cell is one that this script starts; with a cell of your own, `understudy run --foxglove`, the
address is ws://127.0.0.1:8765, and Foxglove itself can be beside this client.
"""

import json
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

RUN = "run text_robot --ephemeral --no-hmi --foxglove --ready-file=ready.json"
SECONDS = 120


def received(socket: ClientConnection, op: str | int) -> Any:
    """The next message with this operation: the name of a text, the number of a binary one."""
    while True:
        data = socket.recv(SECONDS)
        if isinstance(data, str):
            message = json.loads(data)
            if message["op"] == op:
                return message
        elif data[0] == op:
            return data


def look(address: str) -> None:
    with connect(address, subprotocols=["foxglove.sdk.v1"]) as socket:  # type: ignore[list-item]
        print("server:", received(socket, "serverInfo")["name"])
        found = received(socket, "advertise")["channels"]
        advertised = received(socket, "advertiseServices")["services"]
        services = {each["name"]: each["id"] for each in advertised}
        while "/bench/tool_pose" not in (channels := {each["topic"]: each for each in found}):
            found += received(socket, "advertise")["channels"]  # at the first reading of the cell
        wanted = {"id": 1, "channelId": channels["/bench/tool_pose"]["id"]}
        socket.send(json.dumps({"op": "subscribe", "subscriptions": [wanted]}))
        data = received(socket, 1)
        _, at_ns = struct.unpack_from("<IQ", data, 1)
        print(f"tool at {at_ns / 1e9:.3f} s:", json.loads(data[13:])["pose"]["position"])

        rate = {"name": "rate", "value": 20.0}
        socket.send(json.dumps({"op": "setParameters", "parameters": [rate], "id": "1"}))
        print("rate:", received(socket, "parameterValues")["parameters"][0]["value"])

        call = struct.pack("<BIII", 2, services["/emergency_stop"], 1, 4) + b"json{}"
        socket.send(call)
        print("emergency stop:", json.loads(received(socket, 3)[17:]))


def main(folder: Path) -> None:
    command = [sys.executable, "-m", "understudy", *RUN.split()]
    cell = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        ready: dict[str, Any] = {"endpoints": {}}
        while "foxglove" not in ready["endpoints"] and cell.poll() is None:
            time.sleep(0.05)
            with suppress(FileNotFoundError):
                ready = json.loads((folder / "ready.json").read_text())
        look(ready["endpoints"]["foxglove"])
    finally:
        cell.terminate()
        cell.wait()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(Path(scratch))
