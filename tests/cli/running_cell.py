"""A cell that runs in a process of its own, with its vision process."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import psutil
from tests.processes import command_lines

from understudy.app.control_client import result_of
from understudy.app.ready_file import Ready, read_ready
from understudy.ports import Snapshot
from understudy.wire.zmq_request import NoReplyError, ZmqRequester

PATIENCE_SECONDS = 120.0
ANSWER_SECONDS = 0.1


class RunningCell:
    """`understudy run` of a cell with a robot g60, whose vision process it starts."""

    def __init__(self, folder: Path, cell: str, *, rate: str) -> None:
        self.folder = folder
        self.ready_file = folder / "ready.json"
        words = [f"--rate={rate}", "--ephemeral", "--no-hmi", f"--ready-file={self.ready_file}"]
        self._log = (folder / "log.txt").open("w")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "understudy", "run", cell, *words],
            stdout=self._log,
            stderr=self._log,
            env={**os.environ, "XDG_RUNTIME_DIR": str(folder)},
        )
        self.wait(lambda: "g60.vision" in self.endpoints())
        self._ready: Ready = read_ready(self.ready_file)

    def endpoints(self) -> dict[str, str]:
        if not self.ready_file.exists():
            return {}
        found: dict[str, str] = json.loads(self.ready_file.read_text())["endpoints"]
        return found

    def do(self, command: str, **parameters: Any) -> Any:
        return self._result({"do": command, "robot": "g60", **parameters})

    def job(self) -> dict[str, Any]:
        found: dict[str, Any] = self.do("pick_place")
        return found

    def status_of(self, component: str) -> dict[str, Any]:
        return dict(self._result({"do": "status"})["parts"][component])

    def moves(self) -> bool:
        return bool(self.status_of("g60")["moving"])

    def set_rate(self, rate: float | str) -> None:
        self._result({"do": "rate", "rate": rate})

    def snapshot(self) -> Snapshot:
        return msgspec.convert(self._result({"do": "snapshot"})["snapshot"], Snapshot)

    def restore(self, snapshot: Snapshot) -> None:
        self._result({"do": "restore", "snapshot": msgspec.to_builtins(snapshot)})

    def _result(self, asked: dict[str, Any]) -> Any:
        return result_of(self._ready, asked, timeout_s=PATIENCE_SECONDS)

    def said(self) -> str:
        return (self.folder / "log.txt").read_text()

    def wait(self, condition: Callable[[], bool]) -> float:
        """Wall seconds until the condition holds."""
        begun = time.monotonic()
        while not condition():
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < begun + PATIENCE_SECONDS, self.said()
            time.sleep(0.01)
        return time.monotonic() - begun

    def is_back(self, after: psutil.Process) -> bool:
        """Whether another vision process than this one answers."""
        child = self.vision()
        if child is None or child.pid == after.pid:
            return False
        requester = ZmqRequester(self.endpoints()["g60.vision"])
        try:
            return b"true" in requester.ask([b'{"command": "ping"}'], ANSWER_SECONDS)[0]
        except NoReplyError:
            return False
        finally:
            requester.close()

    def vision(self) -> psutil.Process | None:
        found = command_lines(self.process.pid)
        return next((child for child, line in found.items() if "vision" in line), None)

    def __enter__(self) -> "RunningCell":
        return self

    def __exit__(self, *exception: object) -> None:
        if self.process.poll() is None:
            self.end()

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE_SECONDS)
        self._log.close()
