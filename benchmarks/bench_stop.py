"""Emergency stop beside heavy commands: p99 and largest round trip on the control endpoint.

The stop is asked for every 10 ms on a connection of its own, first in an idle cell, then while
another connection waits for a heavy command. The idle cell of the same run is the peer.
"""

import json
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from benchmarks import Row
from benchmarks.bench_kuka import ms

CELL = """
robots:
  g60: {kind: arm, model: g60}
environment:
  objects:
    - {name: floor, type: box, position_mm: [0, 0, -50], dimensions_mm: [4000, 4000, 100]}
"""
AIM = "< 50 ms"
PERIOD = 0.01
IDLE_SECONDS = 3.0
MESH = {"type": "mesh", "mesh": "part.stl", "position_mm": [0, 0, 3000]}
PROGRAM = "G90\nG1 F1000 X400 Y0 Z400 A180 B0 C0\nM3\n" + "G1 X410\nG1 X400\n" * 499_000
HEAVY: list[tuple[str, dict[str, Any]]] = [
    ("add_object, 102,400 triangles", {"do": "add_object", "object": MESH | {"name": "a"}}),
    ("the same beside it", {"do": "add_object", "object": MESH | {"name": "b"}}),
    ("attach of the first", {"do": "attach", "robot": "g60", "name": "a"}),
    ("detach", {"do": "detach", "robot": "g60", "name": "a"}),
    ("check_objects", {"do": "check_objects"}),
    ("scene", {"do": "scene"}),
    ("load_program, 998,003 lines", {"do": "load_program", "robot": "g60", "text": PROGRAM}),
    ("process_before line 900,000", {"do": "process_before", "robot": "g60", "from_line": 900_000}),
    ("preview", {"do": "preview", "robot": "g60"}),
    ("program", {"do": "program", "robot": "g60"}),
    ("remove_object", {"do": "remove_object", "name": "a"}),
]


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, live(Path(folder)) as ready:
        idle = stops(ready, None)
        found = [row("idle", idle, idle)]
        found += [row(f"beside {name}", stops(ready, asked), idle) for name, asked in HEAVY]
    return found


def row(what: str, ours: list[float], idle: list[float]) -> Row:
    p99, largest = sorted(ours)[int(len(ours) * 0.99)], max(ours)
    peer = sorted(idle)[int(len(idle) * 0.99)]
    figures = f"p99 {ms(p99)}, largest {ms(largest)} of {len(ours)}"
    return Row(f"emergency stop, {what}", figures, f"idle p99 {ms(peer)}", f"{p99 / peer:.1f}", AIM)


def stops(ready: dict[str, Any], heavy: dict[str, Any] | None) -> list[float]:
    """Round trips of stops until the heavy command is answered, or for some seconds."""
    trips: list[float] = []
    with control(ready) as lines:
        over = threading.Event()
        other = threading.Thread(target=ask_once, args=(ready, heavy, over), daemon=True)
        other.start()
        end = time.monotonic() + IDLE_SECONDS
        while not over.is_set() if heavy else time.monotonic() < end:
            begun = time.perf_counter()
            ask(lines, {"do": "emergency_stop"})
            trips.append(time.perf_counter() - begun)
            time.sleep(PERIOD)
        other.join()
    return trips


def ask_once(ready: dict[str, Any], asked: dict[str, Any] | None, over: threading.Event) -> None:
    if asked is None:
        return
    try:
        with control(ready) as lines:
            answer = ask(lines, asked)
            if not answer["ok"]:
                print(f"{asked['do']}: {answer['error']}", file=sys.stderr)
    finally:
        time.sleep(5 * PERIOD)  # some stops after it, too
        over.set()


def ask(lines: IO[str], request: dict[str, Any]) -> Any:
    print(json.dumps(request), file=lines, flush=True)
    return json.loads(lines.readline())


@contextmanager
def control(ready: dict[str, Any]) -> Iterator[IO[str]]:
    host, port = ready["endpoints"]["control"].removeprefix("tcp://").rsplit(":", 1)
    with socket.create_connection((host, int(port))) as line, line.makefile("rw") as lines:
        ask(lines, {"do": "now", "secret": ready["secret"]})
        yield lines


@contextmanager
def live(folder: Path) -> Iterator[dict[str, Any]]:
    """A running arm beside which a mesh file lies; its ready file."""
    (folder / "cell.yaml").write_text(CELL)
    (folder / "part.stl").write_bytes(torus(320, 160))
    ready = folder / "ready.json"
    command = ["run", str(folder / "cell.yaml"), "--ephemeral", "--ready-file", str(ready)]
    process = subprocess.Popen(
        [sys.executable, "-m", "understudy", *command], stdout=subprocess.DEVNULL
    )
    try:
        while not ready.exists():
            time.sleep(0.05)
        found: dict[str, Any] = json.loads(ready.read_text())
        with control(found) as lines:
            ask(lines, {"do": "scene"})
        yield found
    finally:
        process.terminate()
        process.wait(10)


def torus(rows: int, columns: int, *, without: int = 0) -> bytes:
    """An STL file with two triangles for each row and column; ``without``: of these left out."""
    a, b = (np.arange(count) * 2.0 * np.pi / count for count in (rows, columns))
    a, b = np.meshgrid(a, b, indexing="ij")
    ring = 300.0 + 80.0 * np.cos(b)
    points = np.stack([ring * np.cos(a), ring * np.sin(a), 80.0 * np.sin(b)], axis=-1)
    right, up = np.roll(points, -1, axis=0), np.roll(points, -1, axis=1)
    across = np.roll(right, -1, axis=1)
    faces = [np.stack(face, axis=2) for face in ((points, right, across), (points, across, up))]
    corners = np.concatenate([face.reshape(-1, 3, 3) for face in faces])[without:]
    triangles = np.zeros(len(corners), [("n", "<f4", 3), ("v", "<f4", (3, 3)), ("a", "<u2")])
    triangles["v"] = corners
    return b"\0" * 80 + struct.pack("<I", len(corners)) + triangles.tobytes()
