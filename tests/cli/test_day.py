"""A day of the default cell with its page and three clients that work every five minutes.

The cell is a process: at rate `step` while the clients work, at a high rate while they rest. The
same is said at the same times to a cell in this process; the answers of the text robot and of
grblHAL are compared byte by byte, and so is the time that both have reached.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.robots.kuka.kuka_wire import command, feedback

from understudy.app.build import load_cell
from understudy.config.files import find_cell
from understudy.wire.exchange import Client

PATIENCE = 120.0
PAUSE = 300.0
TEXT, GRBL, KUKA = "bench.text_tcp", "g60.grblhal", "kuka.kuka_eki.command"
FAST = 2000.0
POLL_STEP = 0.01
STAYS = 10.0
FRAME = 48
"""Bytes of a feedback frame of the KUKA."""
MOST_GROWTH_MB = 8.0


class Peer:
    """A client with a socket, and its twin in this process."""

    def __init__(self, address: str, twin: Client) -> None:
        host, _, port = address.removeprefix("tcp://").rpartition(":")
        self.socket = socket.create_connection((host, int(port)), PATIENCE)
        self._twin = twin
        self.answers = 0

    def ask(self, text: bytes) -> None:
        """Both answer with the same bytes; a rule of the cell loses some commands."""
        expected = self._twin.ask(text)
        self.socket.sendall(text)
        assert self.read(len(expected)) == expected
        self.answers += len(expected.splitlines())

    def read(self, count: int) -> bytes:
        data = b""
        while len(data) < count and (more := self.socket.recv(count - len(data))):
            data += more
        return data


class Day:
    """The cell's process and its twin."""

    def __init__(self, *options: str) -> None:
        # Without mobile robots: on a server they tick all the time, and an hour takes minutes.
        lines = find_cell("default")[1].splitlines(keepends=True)
        Path("default.yaml").write_text("".join(x for x in lines if "kind: mobile" not in x))
        words = ["run", "default.yaml", "--ephemeral", "--rate", "step"]
        words += ["--ready-file", "ready.json"]
        with Path("log.txt").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "understudy", *words, *options], stdout=log, stderr=log
            )
        wait_until(lambda: Path("ready.json").exists() and not self.ready()["starting"])
        self.twin = load_cell("default.yaml")
        self._control = socket.create_connection(self._place("control"), PATIENCE)
        self._lines = self._control.makefile("rb")
        self._secret = self.ready().get("secret", "")
        self.text, self.grbl = self.connect(TEXT), self.connect(GRBL)
        self.grbl.ask(b"$X\n")

    def ready(self) -> Any:
        return json.loads(Path("ready.json").read_text())

    def _place(self, endpoint: str) -> tuple[str, int]:
        host, _, port = self.ready()["endpoints"][endpoint].removeprefix("tcp://").rpartition(":")
        return host, int(port)

    def connect(self, endpoint: str) -> Peer:
        return Peer(self.ready()["endpoints"][endpoint], self.twin.connect(endpoint))

    def do(self, name: str, **parameters: Any) -> Any:
        request = {"do": name, "secret": self._secret, **parameters}
        self._control.sendall(json.dumps(request).encode() + b"\n")
        answer = json.loads(self._lines.readline())
        assert answer["ok"], answer
        return answer["result"]

    def advance(self, seconds: float) -> None:
        """Both run ahead, and have reached the same time."""
        self.twin.advance(seconds)
        assert self.do("advance", seconds=seconds)["now_ns"] == self.twin.timed_cell.now

    def idle(self, seconds: float) -> None:
        """Time runs by the wall clock, at a high rate, for at least as long."""
        end = self.twin.now + seconds
        self.do("rate", rate=FAST)
        wait_until(lambda: bool(self.do("now")["now_s"] >= end))
        self.twin.advance_to(self.do("rate", rate="step")["now_ns"])

    def meet(self) -> None:
        """Waits until the process has run as far as its twin."""
        wait_until(lambda: bool(self.do("now")["now_ns"] == self.twin.timed_cell.now))

    # ── the clients ──

    def work(self, number: int) -> None:
        """All three robots move, one after the other."""
        there = 1 if number % 2 else -1
        self.text.ask(b"MOVE_REL %d,0,0\n" % there)
        self.text.ask(b"GET_POS\n")
        self.text.ask(b"GET_STATUS\n")
        self.grbl.ask(b"G91 G1 A%d F3000\n" % there)
        self.twin.advance(POLL_STEP)  # it was answered while the robot moves
        self.meet()
        self.advance(2.0)
        self.grbl.ask(b"?")
        self.move_kuka()

    def move_kuka(self) -> None:
        """A client comes, moves the robot there and back, stays for a while, and leaves."""
        twin = self.twin.connect(KUKA)
        with socket.create_connection(self._place(KUKA), PATIENCE) as peer:
            for sequence, x in ((1, 5.0), (2, 0.0)):
                record = command(sequence, X=x, F=100.0)
                twin.ask(record)
                peer.sendall(record)
                wait_for(peer, sequence)
                self.meet()
            self.advance(STAYS)
        twin.leave()
        wait_until(lambda: self.do("status")["parts"][KUKA]["clients"] == 0)

    # ── the processes ──

    def close(self) -> None:
        self._lines.close()
        for each in (self._control, self.text.socket, self.grbl.socket):
            each.close()
        self.process.kill()
        self.process.wait()

    def rss_mb(self) -> dict[str, float]:
        """Resident memory of the cell and of the page."""
        pids = {"cell": self.process.pid}
        pid = self.process.pid
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            if b"understudy.hmi" in Path(f"/proc/{child}/cmdline").read_bytes():
                pids["page"] = int(child)
        return {name: resident_mb(pid) for name, pid in pids.items()}

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def wait_for(peer: socket.socket, sequence: int) -> None:
    """Reads feedback until this record is done."""
    frame = b""
    while len(frame) < FRAME or feedback(frame)[0][0] < sequence:
        frame = b"" if len(frame) == FRAME else frame
        frame += peer.recv(FRAME - len(frame))


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Day]]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    days: list[Day] = []

    def begin(*options: str) -> Day:
        days.append(Day(*options))
        return days[-1]

    yield begin
    for day in days:
        day.close()


def run_day(day: Day, rounds: int) -> None:
    """Works, idles, and so on; memory does not grow after the first quarter."""
    begun, cpu, memory = time.monotonic(), day.cpu_seconds(), list[dict[str, float]]()
    for number in range(rounds):
        day.work(number)
        day.idle(PAUSE)
        memory.append(day.rss_mb())
    wall, cpu = time.monotonic() - begun, day.cpu_seconds() - cpu
    print(f"\n{day.twin.now:.0f} s simulated in {wall:.0f} s, {cpu:.1f} s CPU of the cell")
    print(f"answers: {day.text.answers} of the text robot, {day.grbl.answers} of grblHAL")
    print(f"MB: {memory[0]} → {memory[rounds // 4]} → {memory[-1]}")
    for name, first in memory[rounds // 4].items():
        assert memory[-1][name] <= first + MOST_GROWTH_MB, (name, memory)
    day.process.send_signal(signal.SIGTERM)
    assert day.process.wait(PATIENCE) == 0
    assert "Traceback" not in Path("log.txt").read_text()


def test_twenty_minutes_of_the_default_cell(start: Callable[..., Day]) -> None:
    run_day(start("--no-hmi"), rounds=4)


@pytest.mark.soak
def test_a_day_of_the_default_cell_with_its_page(start: Callable[..., Day]) -> None:
    run_day(start("--hmi"), rounds=288)
